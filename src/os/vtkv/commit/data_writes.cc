// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/commit/data_writes.h"

#include <algorithm>

namespace vtkv {

namespace {

constexpr size_t kMaxRequestBuffers = 512;     // of one coalesced data write
constexpr size_t kMaxRequestBytes = 1u << 20;  // beyond this, joining requests gains nothing

}  // namespace

// A write to primed space is durable by any file's sync: it shares no request with one that needs its own file's, which
// may belong to a later group.
bool DataWrites::joins(const CommitRequest& request, const ExternalData& data) {
  return request.io.file == data.file && request.primed == data.primed &&
         request.io.offset + request.bytes == data.offset && request.bytes < kMaxRequestBytes &&
         request.io.buffers.size() + data.buffers.size() <= kMaxRequestBuffers;
}

void DataWrites::add_slices(DequeuedWrite& dequeued) {
  for (const ExternalData& data : dequeued.submission->data) {
    if (data.buffers.empty()) {
      continue;
    }
    auto seen = std::find(m_files_seen.begin(), m_files_seen.end(), data.file);
    seen = seen != m_files_seen.end() ? seen : m_files_seen.insert(seen, data.file);
    m_slices.push_back({&data, &dequeued, static_cast<size_t>(seen - m_files_seen.begin())});
    const bool own_sync = !data.primed || !m_options.single_flush;
    if (own_sync &&
        std::find(dequeued.sync_files.begin(), dequeued.sync_files.end(), data.file) == dequeued.sync_files.end()) {
      dequeued.sync_files.push_back(data.file);
    } else if (!own_sync && m_options.data_elsewhere) {
      dequeued.primed_elsewhere = data.file;
    }
  }
}

void DataWrites::start(IoQueue& io, DequeuedWrites& writes, size_t first) {
  m_slices.clear();
  m_files_seen.clear();
  for (size_t i = first; i < writes.size(); ++i) {
    if (writes[i].submission) {
      add_slices(writes[i]);
    }
  }
  std::stable_sort(m_slices.begin(), m_slices.end(), [](const Slice& a, const Slice& b) {
    return std::pair(a.file_rank, a.data->offset) < std::pair(b.file_rank, b.data->offset);
  });
  CommitRequest* request = nullptr;
  for (const Slice& slice : m_slices) {
    if (!request || !joins(*request, *slice.data)) {
      if (request) {
        io.submit(&request->io);
      }
      request = m_requests->take(CommitRequest::Kind::data, IoRequest::Op::write, slice.data->file, slice.data->offset);
      request->primed = slice.data->primed;
    }
    for (const iovec& buffer : slice.data->buffers) {
      request->io.buffers.push_back(buffer);
      request->bytes += buffer.iov_len;
      slice.dequeued->data_bytes += buffer.iov_len;
      m_counters->count_data(buffer.iov_len);
    }
    if (request->dequeued.empty() || request->dequeued.back() != slice.dequeued) {
      request->dequeued.push_back(slice.dequeued);
      ++slice.dequeued->data_left;
    }
  }
  if (request) {
    io.submit(&request->io);
  }
}

}  // namespace vtkv
