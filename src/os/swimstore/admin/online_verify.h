// SPDX-License-Identifier: LGPL-2.1-or-later
// `ceph daemon osd.N swimstore verify`: reads every block of log and tree, in the background.
//
//   swimstore verify          starts one
//   swimstore verify status   is one under way, and what did the last one find?
//   swimstore verify stop     ends one early
//
// What it finds goes to the log as well, and raises a health alert. An unmount ends one that is under way. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/admin_socket.h"

#include "swimstore/object/store_context.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class OnlineVerify final : public AdminSocketHook {
 public:
  explicit OnlineVerify(StoreContext& store);
  ~OnlineVerify() override;

  int call(std::string_view command, const cmdmap_t& arguments, const ceph::bufferlist& input,
           ceph::Formatter* formatter, std::ostream& errors, ceph::bufferlist& output) override;

  // For an unmount: it ends, whatever it has come to. Waits for that.
  void end();

  // What the last one found, as one sentence for a health alert; empty: nothing. One that was stopped says nothing of
  // what it did not come to: if it found nothing, what the one before found stands.
  std::string alert() const;

 private:
  vtkv::NextStep step() EXCLUDES(m_lock);
  // Not under m_lock, which its step takes.
  void end_worker() REQUIRES(m_command_lock) EXCLUDES(m_lock);
  void dump_status(ceph::Formatter* formatter) const EXCLUDES(m_lock);

  StoreContext& m_store;

  vtkv::Mutex m_command_lock ACQUIRED_BEFORE(m_lock);  // one command at a time
  std::unique_ptr<vtkv::Worker> m_worker GUARDED_BY(m_command_lock);
  std::atomic<bool> m_cancelled{false};

  mutable vtkv::Mutex m_lock;
  const char* m_state GUARDED_BY(m_lock) = "never run";  // running, done, stopped
  std::vector<std::string> m_findings GUARDED_BY(m_lock);  // the first thousand
  size_t m_count GUARDED_BY(m_lock) = 0;  // all
};

}  // namespace swimstore
