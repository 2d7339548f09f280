// SPDX-License-Identifier: LGPL-2.1-or-later
// Load on an ObjectStore, shaped like an OSD's: several PGs, several operations in flight, and beside the
// data of each write what the OSD would add (object info, PG log entry, PG info, log trimming).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/ObjectStore.h"
#include "swimstore/tool/metadata_counters.h"

namespace swimstore {

enum class LoadOp { write, overwrite, append, read, omap };

struct LoadOptions {
  LoadOp op = LoadOp::write;
  uint64_t size_bytes = 4096;
  unsigned depth = 1;
  unsigned threads = 1;       // each with a PG of its own
  double seconds = 10;
  uint64_t operations = 0;    // ends earlier, after so many; 0: does not
  bool pg_log = true;
  unsigned objects = 64;      // per thread, for all but write
  uint64_t object_bytes = 4u << 20;
  uint64_t fragment_bytes = 0;  // existing objects are then overwritten in slices of so many, all in random order
};

struct LoadResult {
  uint64_t operations = 0;
  double seconds = 0;
  double average_ms = 0, p50_ms = 0, p99_ms = 0, max_ms = 0;
  double variation = 0;       // standard deviation of the operations per second, by their mean
  uint64_t device_written_bytes = 0, device_flushes = 0;
  bool device_known = false;
  MetadataCounters metadata;  // of the load; what still lies in the memtable is not written yet
  // What the store says it holds, and what that takes of its data files: the most of ten looks a second during the
  // load, and a second after its end.
  uint64_t stored_bytes = 0, allocated_most_bytes = 0, allocated_bytes = 0;
};

// Fills the objects first where the operation needs them; only the load itself is measured.
// REQUIRES: mounted. Returns 0 or a negative errno of the first operation that failed.
int run_load(ObjectStore& store, const std::string& path, const LoadOptions& options, LoadResult* result);

}  // namespace swimstore
