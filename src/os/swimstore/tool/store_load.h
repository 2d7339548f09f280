// SPDX-License-Identifier: LGPL-2.1-or-later
// Load on an ObjectStore, shaped like an OSD's: several PGs, several operations in flight, and beside the
// data of each write what the OSD would add (object info, PG log entry, PG info, log trimming).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/ObjectStore.h"
#include "swimstore/tool/acked_objects.h"
#include "swimstore/tool/metadata_counters.h"

namespace swimstore {

// list: every object of each PG, 300 at a time. remove: the oldest objects. check: whether each object is there and has
// the content it was written with, the newest first.
enum class LoadOp { write, overwrite, append, read, omap, list, remove, check };

struct LoadOptions {
  LoadOp op = LoadOp::write;
  uint64_t size_bytes = 4096;
  unsigned depth = 1;
  unsigned threads = 1;  // of a new store, each with a PG of its own; else the PGs of AckedObjects count
  double seconds = 10;
  uint64_t operations = 0;  // ends earlier, after so many; 0: does not
  bool pg_log = true;
  bool existing = false;  // the store has the acknowledged objects; else they are made here
  unsigned objects = 64;  // of each PG, for all but write; of a store that is new
  uint64_t object_bytes = 4u << 20;
  uint64_t fragment_bytes = 0;  // existing objects are then overwritten in slices of so many, all in random order
};

struct LoadResult {
  uint64_t operations = 0;
  double seconds = 0;
  double average_ms = 0, p50_ms = 0, p99_ms = 0, max_ms = 0;
  double variation = 0;  // standard deviation of the operations per second, by their mean
  uint64_t device_written_bytes = 0, device_flushes = 0;
  bool device_known = false;
  double processor_seconds = 0;  // of this process; the kernel's own threads are not in it
  uint64_t resident_bytes = 0;  // of this process at the end, less what the load needs for itself
  uint64_t listed_objects = 0;  // by LoadOp::list
  uint64_t wrong_objects = 0;  // by LoadOp::check
  std::string first_wrong;  // its name
  double first_read_ms = 0, first_write_ms = 0;  // of a store that exists: before anything else, one after the other
  MetadataCounters metadata;  // of the load; what still lies in the memtable is not written yet
  // What the store says it holds, and what that takes of its data files: the most of ten looks a second during the
  // load, and a second after its end.
  uint64_t stored_bytes = 0, allocated_most_bytes = 0, allocated_bytes = 0;
};

// How many PGs a new store gets.
unsigned pgs_of(const LoadOptions& options);

// Fills the objects first where the operation needs them and the store is new; only the load itself is measured.
// REQUIRES: mounted. Returns 0 or a negative errno of the first operation that failed; -ENOENT: there are no objects.
int run_load(ObjectStore& store, const std::string& path, const LoadOptions& options, AckedObjects& acked,
             LoadResult* result);

}  // namespace swimstore
