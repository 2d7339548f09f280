// SPDX-License-Identifier: LGPL-2.1-or-later
// The database of one engine and one value size, over the workloads that follow one another on it.
#pragma once

#include "vtkv/tool/bench/engine.h"
#include "vtkv/tool/bench/result.h"
#include "vtkv/tool/bench/workload.h"

namespace vtkv::bench {

class Session {
 public:
  // `directory` is the session's own: wiped before a workload that starts from nothing.
  Session(std::string directory, EngineSpec spec, const LoadSettings& load, size_t memory_bytes, bool sync);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // Removes the directory.
  ~Session();

  // Opens the database (nothing is cached), runs the workload, closes. A database that lacks what the workload
  // needs is made first, which is not measured.
  Status run(const WorkloadKind& kind, Result* result);

 private:
  Status open(bool sync, std::unique_ptr<Engine>* engine) const;
  Status start_anew();
  Status fill();
  uint64_t allocated_bytes() const;

  const std::string m_directory;
  const EngineSpec m_spec;
  const LoadSettings m_load;
  const size_t m_memory_bytes;
  const bool m_sync;
  const Values m_values;
  DataState m_state;
};

}  // namespace vtkv::bench
