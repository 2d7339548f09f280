// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/blob/value_fetcher.h"

#include <algorithm>
#include <numeric>

#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

constexpr uint64_t kGapBytes = 16u << 10;      // cheaper to read than to ask twice
constexpr uint64_t kGapPart = 8;               // of a segment, at most: those of tests are small
constexpr uint64_t kRequestBytes = 1u << 20;   // of one read, unless one value is larger

// In the log: each use of a segment has an epoch of its own.
bool lies_before(const ValuePointer& left, const ValuePointer& right) {
  return left.epoch != right.epoch ? left.epoch < right.epoch : left.offset < right.offset;
}

}  // namespace

Status ValueFetch::add(const ValuePointer& pointer) {
  Wanted wanted;
  wanted.pointer = pointer;
  wanted.cached = m_reader->find(pointer);
  if (!wanted.cached) {
    VTKV_RETURN_IF_ERROR(m_reader->locate(pointer, &wanted.segment, &wanted.extent));
  }
  m_wanted.push_back(std::move(wanted));
  return Status();
}

uint64_t ValueFetch::gap_bytes() const { return std::min(kGapBytes, m_reader->segment_bytes() / kGapPart); }

std::vector<bool> ValueFetch::find_apart() const {
  std::vector<size_t> order(m_wanted.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [this](size_t a, size_t b) { return lies_before(pointer(a), pointer(b)); });
  std::vector<bool> apart(m_wanted.size(), true);
  for (size_t i = 1; i < order.size(); ++i) {
    const ValuePointer& left = pointer(order[i - 1]);
    const ValuePointer& right = pointer(order[i]);
    if (left.epoch == right.epoch && right.offset <= left.offset + left.length + gap_bytes()) {
      apart[order[i - 1]] = apart[order[i]] = false;
    }
  }
  return apart;
}

void ValueFetch::plan() {
  std::vector<size_t> order;
  for (size_t i = 0; i < m_wanted.size(); ++i) {
    if (!m_wanted[i].cached) {
      order.push_back(i);
    }
  }
  std::sort(order.begin(), order.end(), [this](size_t a, size_t b) { return lies_before(pointer(a), pointer(b)); });
  for (const size_t index : order) {
    Wanted& wanted = m_wanted[index];
    const uint64_t end = wanted.extent.start + wanted.extent.bytes;
    Read* last = m_reads.empty() ? nullptr : m_reads.back().get();
    const bool joins = last && last->segment == wanted.segment &&
                       wanted.extent.start <= last->start + last->bytes + gap_bytes() &&
                       end <= last->start + std::max(kRequestBytes, last->bytes);
    if (!joins) {
      last = m_reads.emplace_back(std::make_unique<Read>()).get();
      last->segment = wanted.segment;
      last->start = wanted.extent.start;
    }
    last->bytes = std::max(last->bytes, end - last->start);
    wanted.read = m_reads.size() - 1;
  }
  for (const auto& read : m_reads) {
    read->buffer.reserve(read->bytes);
    read->io.op = IoRequest::Op::read;
    read->io.file = read->segment->file.get();
    read->io.offset = read->start;
    read->io.buffers.push_back({read->buffer.data(), read->bytes});
    read->io.owner = this;
  }
}

Status ValueFetch::value(size_t n, std::string_view key, std::string_view* value) const {
  VTKV_RETURN_IF_ERROR(look_at(n, key, value));
  if (m_remember && !m_wanted[n].cached) {
    m_reader->remember(m_wanted[n].pointer, *value);
  }
  return Status();
}

Status ValueFetch::look_at(size_t n, std::string_view key, std::string_view* value) const {
  const Wanted& wanted = m_wanted[n];
  if (wanted.cached) {
    *value = wanted.cached->value();
    return Status();
  }
  const Read& read = *m_reads[wanted.read];
  VTKV_RETURN_IF_ERROR(read.io.result);
  *value = {read.buffer.data() + (wanted.pointer.offset - read.start), wanted.pointer.length};
  return ValueReader::check(key, wanted.pointer, *wanted.segment, *value);
}

ValueFetcher::ValueFetcher(Env* env, unsigned io_depth)
    : m_signal(env->new_signal()),
      m_worker(env->start_worker("vtkv_fetch", io_depth, [this](IoQueue& io) { return step(io); })) {}

void ValueFetcher::start(const std::shared_ptr<ValueFetch>& fetch, std::function<void()> done) {
  fetch->plan();
  fetch->m_done = std::move(done);
  if (fetch->m_reads.empty()) {
    return;
  }
  {
    MutexLock lock(m_lock);
    fetch->m_left = fetch->m_reads.size();
    m_new.push_back(fetch);
  }
  m_worker->wake();
}

bool ValueFetcher::ended(const ValueFetch& fetch) const {
  MutexLock lock(m_lock);
  return fetch.m_left == 0;
}

void ValueFetcher::wait(const ValueFetch& fetch) {
  MutexLock lock(m_lock);
  m_signal->wait(lock, [&] { return fetch.m_left == 0; });
}

NextStep ValueFetcher::step(IoQueue& io) {
  std::vector<std::shared_ptr<ValueFetch>> fresh;
  {
    MutexLock lock(m_lock);
    fresh.swap(m_new);
  }
  for (auto& fetch : fresh) {
    for (const auto& read : fetch->m_reads) {
      io.submit(&read->io);
    }
    m_started.push_back(std::move(fetch));
  }
  m_completed.clear();
  io.reap(&m_completed);
  bool finished = false;
  {
    MutexLock lock(m_lock);
    for (IoRequest* request : m_completed) {
      const size_t left = static_cast<ValueFetch*>(request->owner)->m_left--;
      VTKV_ASSERT(left > 0);
      finished |= left == 1;
    }
    if (finished) {
      m_signal->notify_all();
    }
  }
  if (finished) {
    // m_left changes here only.
    for (const auto& fetch : m_started) {
      if (fetch->m_left == 0 && fetch->m_done) {
        fetch->m_done();
      }
    }
    std::erase_if(m_started, [](const auto& fetch) { return fetch->m_left == 0; });
  }
  return m_completed.empty() && fresh.empty() ? NextStep::on_event() : NextStep::now();
}

}  // namespace vtkv
