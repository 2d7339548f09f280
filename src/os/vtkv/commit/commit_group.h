// SPDX-License-Identifier: LGPL-2.1-or-later
// What the commit pipeline keeps about work under way. Its own; the commit worker's.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "vtkv/commit/commit_pipeline.h"

namespace vtkv {

// A submission or a write buffer that was dequeued, or a fragment of a submission's batch.
struct CommitPipeline::Dequeued {
  Submission* submission = nullptr;  // with fragments: null in all but the last, so that it is told once
  const WriteBatch::Fragment* fragment = nullptr;
  std::shared_ptr<WriteBuffer> write_buffer;  // instead of a submission; until it is in the file
  SequenceNumber last_sequence = 0;
  uint32_t data_left = 0;  // data requests in flight
  size_t data_bytes = 0;
  Group* group = nullptr;
  bool acknowledged = false;
  std::vector<File*> sync_files;  // need a sync of their own

  uint32_t sequence_count() const {
    return fragment       ? fragment->sequence_count
           : write_buffer ? write_buffer->sequence_count()
                          : submission->batch.sequence_count();
  }
  std::string_view encoded() const {
    return fragment ? fragment->encoded : write_buffer ? write_buffer->encoded() : submission->batch.encoded();
  }
  LogAddress* address() const {
    return fragment ? fragment->log_address : write_buffer ? &write_buffer->address : submission->log_address;
  }
  // More fragments of its batch follow.
  bool continues() const { return fragment && !submission; }
  // Its write takes longer than a record's.
  bool awaits_large_data() const { return data_left > 0 && data_bytes >= kLargeDataBytes; }

 private:
  static constexpr size_t kLargeDataBytes = 256u << 10;
};

struct CommitPipeline::Group {
  size_t submissions = 0;  // and write buffers and fragments
  size_t waiters = 0;      // of these, submissions
  size_t writes_left = 0;
  bool logged = false;     // its record is in the file
  bool continues = false;  // its record ends inside a batch
  FormedRecord record;
  std::vector<File*> sync_files;  // of its data; besides the log's
};

// A request at the I/O queue.
struct CommitPipeline::Tracked {
  enum class Kind { data, log, sync } kind = Kind::data;
  IoRequest io;
  std::vector<Dequeued*> dequeued;  // of data
  size_t bytes = 0;                 // of data
  bool primed = false;              // likewise
  Group* group = nullptr;           // of a log write
};

struct CommitPipeline::DataSlice {
  const ExternalData* data;
  Dequeued* dequeued;
  size_t file_rank;  // by first appearance
};

}  // namespace vtkv
