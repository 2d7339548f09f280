// SPDX-License-Identifier: LGPL-2.1-or-later
// A submission of the engine's own, which ends itself when it is durable.
#pragma once

#include <functional>

#include "vtkv/db.h"

namespace vtkv {

class OwnSubmission final : public Submission {
 public:
  explicit OwnSubmission(std::function<void()> done) : m_done(std::move(done)) {}
  void durable(const Status&) override {
    const std::function<void()> done = std::move(m_done);
    delete this;
    done();
  }

 private:
  std::function<void()> m_done;
};

}  // namespace vtkv
