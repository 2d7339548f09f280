// SPDX-License-Identifier: LGPL-2.1-or-later
// Looks at the files of a database as they lie on disk, without recovering it: what it can still read of a
// damaged one, it shows. Uses the engine's own readers through a door that changes nothing.
//
// Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "vtkv/env.h"
#include "vtkv/span/span_reader.h"
#include "vtkv/table/run.h"
#include "vtkv/tool/report.h"
#include "vtkv/tree/manifest.h"
#include "vtkv/wal/segment_pool.h"

namespace vtkv {

class Inspection {
 public:
  // Code::not_found when there is no database, busy while somebody has it open.
  static Status open(Env* env, const std::string& directory, std::unique_ptr<Inspection>* inspection);

  // Identity, geometry, features and the checkpoints of both manifest copies. What follows is refused where there are
  // features without which it cannot be read.
  void describe(Report& report) const;
  // Segments and their records; with `operations`, what the records say.
  Status dump_log(bool operations, Report& report);
  // What lies in each zone of the tree's file, as the newest checkpoint has it.
  Status dump_zones(Report& report);
  // The runs of the newest checkpoint, newest first; only `run_id` when given; with `entries`, all they hold.
  Status dump_runs(std::optional<uint64_t> run_id, bool entries, Report& report);
  Status dump_filters(std::optional<uint64_t> run_id, Report& report);

 private:
  explicit Inspection(std::unique_ptr<Env> env) : m_env(std::move(env)) {}
  Status open_files(const std::string& directory);
  Status check_may_read() const;
  Status open_run(const RunLocation& location, std::shared_ptr<const Run>* run) const;
  // Calls visit for each run, or for one.
  template <typename Visit>
  Status for_each_run(std::optional<uint64_t> run_id, Visit visit);

  const std::unique_ptr<Env> m_env;
  std::string m_directory;
  std::unique_ptr<FileLock> m_lock;
  std::unique_ptr<Manifest> m_manifest;
  Checkpoint m_newest, m_older;
  std::unique_ptr<SegmentPool> m_pool;
  std::shared_ptr<ZoneFile> m_zones;
  std::unique_ptr<SpanReader> m_reader;
};

}  // namespace vtkv
