// SPDX-License-Identifier: LGPL-2.1-or-later
// What becomes of a store that cannot read its own metadata: a block of the tree, or a value in the log.
//
// An OSD takes any error of a metadata read for absence. It answers "no such object", makes a new one over the good
// copies of its peers, and pushes an omap that ends where the reading did. So a store that serves an OSD says once what
// it could not read, where, and what fixes it, and ends the process with a crash report, before anything is answered or
// sent: its peers serve every object. A tool gets -EIO and goes on.
//
// The data of an object is no metadata: its -EIO is understood, and the OSD repairs it from a replica.
//
// Thread-safe.
#pragma once

#include <functional>
#include <sstream>
#include <string>

#include "include/common_fwd.h"

#include "vtkv/status.h"

namespace swimstore {

class MetadataFailure {
 public:
  enum class Policy { end_process, give_error };
  // Called with the message in place of either; the caller then gets the error. For tests.
  using Handler = std::function<void(const std::string& message)>;
  // Makes it durable that this cube, or which one is not known, is to be checked before it is used again. Called before
  // the process ends.
  using Suspect = std::function<void(unsigned cube, const std::string& reason)>;
  // Of what may lie in several: an omap in parts.
  static constexpr unsigned kUnknownCube = ~0u;

  // No `suspect`: of a store with one cube.
  MetadataFailure(CephContext* cct, std::string store_path, Policy policy, Handler handler, Suspect suspect = {})
      : m_cct(cct),
        m_path(std::move(store_path)),
        m_policy(policy),
        m_handler(std::move(handler)),
        m_suspect(std::move(suspect)) {}

  // `what` ("the omap of object ", oid) cannot be read, in this cube. The result is the caller's: -EIO.
  template <typename... What>
  int met(unsigned cube, const vtkv::Status& status, const What&... what) const {
    return report(cube, to_text(what...), status);
  }
  // As met(), where the caller would take an error for the end of what it goes through: a tool ends as well. So does
  // every user of Reef's ObjectMapIterator; of Tentacle's omap_iterate, PGLog::read_log_and_missing.
  template <typename... What>
  int met_by_iterator(unsigned cube, const vtkv::Status& status, const What&... what) const {
    return report_iteration(cube, to_text(what...), status);
  }
  // What an operator does about a store whose metadata is damaged.
  static std::string remedy(const std::string& store_path);

 private:
  template <typename... What>
  static std::string to_text(const What&... what) {
    std::ostringstream text;
    (text << ... << what);
    return text.str();
  }
  int report(unsigned cube, const std::string& what, const vtkv::Status& status) const;
  int report_iteration(unsigned cube, const std::string& what, const vtkv::Status& status) const;
  std::string last_words(unsigned cube, const std::string& what, const vtkv::Status& status) const;
  void suspect(unsigned cube, const std::string& what, const vtkv::Status& status) const;
  [[noreturn]] void end_process(unsigned cube, const std::string& what, const vtkv::Status& status) const;

  CephContext* const m_cct;
  const std::string m_path;
  const Policy m_policy;
  const Handler m_handler;
  const Suspect m_suspect;
};

}  // namespace swimstore
