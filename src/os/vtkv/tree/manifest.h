// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads and writes the manifest (manifest_format.h).
//
// Not thread-safe: the tree calls it under one lock.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vtkv/blob/value_account.h"
#include "vtkv/env.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/env/uuid.h"
#include "vtkv/options.h"
#include "vtkv/table/run_format.h"
#include "vtkv/util/features.h"
#include "vtkv/wal/log_position.h"

namespace vtkv {

struct Checkpoint {
  uint64_t epoch = 0;
  Uuid uuid{};
  Geometry geometry;
  LogPosition position;
  uint64_t next_run_id = 1;
  std::vector<RunLocation> runs;  // newest first
  std::vector<SegmentValues> segments;  // that hold values
  Features features;  // whether they are known is not for decode to say

  // The bytes of a copy; decode checks everything that does not need other files.
  std::string encode() const;
  static Status decode(std::string_view copy, Checkpoint* checkpoint);
};

// Of one database, and nothing in `next` goes back; the epochs aside.
bool follows(const Checkpoint& before, const Checkpoint& next);

class Manifest {
 public:
  // Makes the file under another name, then gives it its own: it is complete once it exists.
  static Status create(Env* env, const std::string& directory, const Checkpoint& first);
  // *older is empty (epoch 0) when only one copy is good. Reads only.
  // Code::corruption, unsupported (a later format), not_found.
  static Status open(Env* env, const std::string& directory, std::unique_ptr<Manifest>* manifest, Checkpoint* newest,
                     Checkpoint* older);

  // Before anything else is written. A copy in which a crash left a part of a checkpoint is emptied: with what lies
  // there now, a part of the next one could make the first one whole, after the blocks that it names were written over.
  Status clear_torn();
  // What is read may not be durable yet, if a process that was killed wrote it. Before the other copy is written: a
  // loss of power might tear both.
  Status sync() { return m_file->sync(); }
  // Durable on return. A failure may leave either state on disk, or none in this copy. Code::no_space: another
  // checkpoint may be written to the copy, and must be before the other copy is; after any other error no write may
  // follow.
  Status write(const Checkpoint& checkpoint);
  // Does the disk still hold `checkpoint` in its copy? One sentence when not.
  void verify(const Checkpoint& checkpoint, std::vector<std::string>* findings);
  size_t bytes_max() const { return m_copy_bytes; }  // of an encoded checkpoint
  const std::string& path() const { return m_file->path(); }

 private:
  Manifest(std::unique_ptr<File> file, uint64_t copy_bytes) : m_file(std::move(file)), m_copy_bytes(copy_bytes) {}

  std::unique_ptr<File> m_file;
  const uint64_t m_copy_bytes;
  std::optional<uint64_t> m_torn_offset;  // of a copy that holds neither a checkpoint nor zeros
};

// All that this program knows.
const Features& known_features();
// Of a database that is made with these options; and of one that is upgraded, which keeps what it has.
Features features_of(const Options& options);
bool is_upgradable(const Features& features, const Options& options);

// Incompat. Blocks may be compressed (span/block_compression.h).
inline constexpr const char* kCompressedBlocksFeature = "compressed_blocks";

// Ok when every size is one that the engine can work with.
Status check_geometry(const Geometry& geometry);

}  // namespace vtkv
