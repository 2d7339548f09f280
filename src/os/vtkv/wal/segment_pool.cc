// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/wal/segment_pool.h"

#include <algorithm>
#include <cstring>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/env/read_retries.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

// Spares made ahead of need; one of them waits for a recovery.
constexpr uint32_t kSparesWanted = 2;
constexpr uint64_t kZerosSliceBytes = 4 << 20;  // between two looks whether to stop

bool parse_name(const std::string& name, uint64_t* id) {
  if (name.size() < 7 || name.size() > 20 || !name.ends_with(".log")) {
    return false;
  }
  uint64_t value = 0;
  for (char c : name.substr(0, name.size() - 4)) {
    if (c < '0' || c > '9') {
      return false;
    }
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  *id = value;
  return value > 0;
}

uint64_t round_up(uint64_t bytes) { return (bytes + kLogBlockBytes - 1) / kLogBlockBytes * kLogBlockBytes; }

}  // namespace

SegmentPool::SegmentPool(Env* env, std::string directory, const Geometry& geometry, const Uuid& uuid,
                         uint64_t primed_bytes_per_commit, std::function<bool()> make_room)
    : m_env(env),
      m_directory(std::move(directory)),
      m_geometry(geometry),
      m_uuid(uuid),
      m_primed_bytes_per_commit(primed_bytes_per_commit),
      m_make_room(std::move(make_room)) {}

std::string SegmentPool::path_of(uint64_t id) const {
  const std::string digits = std::to_string(id);
  return m_directory + "/" + std::string(6 - std::min<size_t>(6, digits.size()), '0') + digits + ".log";
}

LogSegment* SegmentPool::find(uint64_t id) const {
  MutexLock lock(m_lock);
  auto found = m_segments.find(id);
  return found == m_segments.end() ? nullptr : found->second.segment.get();
}

std::vector<LogSegment*> SegmentPool::segments() const {
  MutexLock lock(m_lock);
  std::vector<LogSegment*> all;
  for (const auto& [id, entry] : m_segments) {
    all.push_back(entry.segment.get());
  }
  return all;
}

std::string SegmentPool::header_block(const LogSegment& segment) const {
  segment_header_t header;
  header.uuid = m_uuid;
  header.segment_id = segment.id;
  header.epoch = segment.epoch;
  header.segment_bytes = segment.bytes;
  header.flags = segment.primed.load() ? 0 : kUnprimedSegment;
  seal(&header);
  std::string block(kLogBlockBytes, '\0');
  std::memcpy(block.data(), &header, sizeof(header));
  return block;
}

Status SegmentPool::write_header(const LogSegment& segment) const {
  const std::string block = header_block(segment);
  AlignedBuffer buffer(block.size());
  std::memcpy(buffer.data(), block.data(), block.size());
  VTKV_RETURN_IF_ERROR(segment.file->write(0, buffer.data(), block.size()));
  return segment.file->sync();
}

// The header comes after the file's size and zeros are durable: a file without one was never used.
Status SegmentPool::make_file(const std::string& path, uint64_t bytes, bool primed, std::unique_ptr<File>* file) {
  OpenOptions options;
  options.create = true;
  options.exclusive = true;
  VTKV_RETURN_IF_ERROR(m_env->open_file(path, options, file));
  if (primed) {
    VTKV_RETURN_IF_ERROR(write_zeros(**file, 0, bytes));
    m_primed_bytes.fetch_add(bytes, std::memory_order_relaxed);
  } else {
    VTKV_RETURN_IF_ERROR((*file)->allocate(0, bytes));
  }
  return (*file)->sync();
}

// Spare to live and back, spare to priming and back: nothing else.
void SegmentPool::Entry::change_to(State next) {
  VTKV_ASSERT(state == State::spare ? next != State::spare : next == State::spare);
  state = next;
}

bool SegmentPool::epochs_ascend() const {
  return std::all_of(m_segments.begin(), m_segments.end(),
                     [next = m_next_epoch](const auto& one) { return one.second.segment->epoch < next; });
}

// Its state is set under the same lock that makes it visible, or release_before() could take it for unused.
Status SegmentPool::make_segment(uint64_t bytes, bool spare, bool primed, LogSegment** result) {
  auto segment = std::make_unique<LogSegment>();
  segment->primed.store(primed);
  segment->written_bytes = kLogBlockBytes;
  {
    MutexLock lock(m_lock);
    segment->id = m_next_id++;
  }
  segment->bytes = bytes;
  segment->path = path_of(segment->id);
  Status status = make_file(segment->path, bytes, primed, &segment->file);
  if (status.ok()) {
    status = write_header(*segment);
  }
  if (status.ok()) {
    status = m_env->sync_directory(m_directory);
  }
  if (!status.ok()) {
    segment->file.reset();
    (void)m_env->remove_file(segment->path);  // a half-made file is harmless; the first error counts
    return status;
  }
  MutexLock lock(m_lock);
  if (!spare) {
    segment->epoch = m_next_epoch++;
  }
  *result = segment.get();
  const uint64_t id = segment->id;
  m_segments[id] = {std::move(segment), spare ? State::spare : State::live};
  changed();
  return Status();
}

Status SegmentPool::create() {
  VTKV_RETURN_IF_ERROR(m_env->create_directory(m_directory));
  for (uint32_t i = 0; i < m_geometry.initial_log_segments; ++i) {
    LogSegment* segment = nullptr;
    VTKV_RETURN_IF_ERROR(make_segment(m_geometry.log_segment_bytes, true, true, &segment));
  }
  LogSegment* first = nullptr;
  VTKV_RETURN_IF_ERROR(take(0, false, &first));
  return write_header(*first);
}

Status SegmentPool::holds_record(File& file, uint64_t bytes, bool* holds) const {
  *holds = false;
  AlignedBuffer buffer(kLogBlockBytes);
  for (uint64_t offset = kLogBlockBytes; offset + kLogBlockBytes <= bytes; offset += kLogBlockBytes) {
    VTKV_RETURN_IF_ERROR(read_with_retries([&] { return file.read(offset, kLogBlockBytes, buffer.data()); }));
    record_header_t header;
    if (decode_record_header({buffer.data(), kLogBlockBytes}, m_uuid, &header)) {
      *holds = true;
      return Status();
    }
  }
  return Status();
}

Status SegmentPool::check_header(const LogSegment& segment, HeaderState state, const segment_header_t& header) const {
  if (state == HeaderState::foreign) {
    return header.uuid != m_uuid
               ? Status::corruption(segment.path + ": belongs to another database; restore the right file")
               : Status::unsupported(segment.path + ": written by a newer version (format " +
                                     std::to_string(header.version) + "); use that version");
  }
  if (state == HeaderState::damaged || (state == HeaderState::valid && header.segment_id != segment.id)) {
    return Status::corruption(segment.path + ": the segment header is damaged; restore the file");
  }
  return {};
}

Status SegmentPool::load_segment(const std::string& name, uint64_t id) {
  auto segment = std::make_unique<LogSegment>();
  segment->id = id;
  segment->path = m_directory + "/" + name;
  VTKV_RETURN_IF_ERROR(m_env->open_file(segment->path, OpenOptions(), &segment->file));
  uint64_t bytes = 0;
  VTKV_RETURN_IF_ERROR(segment->file->size(&bytes));
  {
    MutexLock lock(m_lock);
    m_next_id = std::max(m_next_id, id + 1);
  }

  segment_header_t header;
  HeaderState state = HeaderState::blank;
  if (bytes >= kLogBlockBytes) {
    AlignedBuffer block(kLogBlockBytes);
    const Status read = read_with_retries([&] {
      VTKV_RETURN_IF_ERROR(segment->file->read(0, kLogBlockBytes, block.data()));
      state = decode_segment_header({block.data(), kLogBlockBytes}, m_uuid, &header);
      return state == HeaderState::blank ? Status::not_found("blank") : check_header(*segment, state, header);
    });
    VTKV_RETURN_IF_ERROR(read.is_not_found() ? Status() : read);
  }
  if (state == HeaderState::blank) {
    bool holds = false;
    VTKV_RETURN_IF_ERROR(holds_record(*segment->file, bytes, &holds));
    if (holds) {
      return Status::corruption(segment->path + ": the segment header is gone but records follow; restore the file");
    }
    m_half_made.push_back(segment->path);
    return Status();
  }
  if (header.segment_bytes != bytes || bytes < 2 * kLogBlockBytes || bytes % kLogBlockBytes != 0) {
    return Status::corruption(segment->path + ": is " + std::to_string(bytes) + " bytes long, its header says " +
                              std::to_string(header.segment_bytes) + "; restore the file");
  }
  segment->bytes = bytes;
  segment->epoch = header.epoch;
  segment->header_version = header.version;
  VTKV_RETURN_IF_ERROR(find_written(segment.get(), (header.flags & kUnprimedSegment) == 0));
  MutexLock lock(m_lock);
  m_next_epoch = std::max(m_next_epoch, header.epoch + 1);
  m_segments[id].segment = std::move(segment);
  return Status();
}

// A copy that leaves out zeros has holes in what the header calls primed.
Status SegmentPool::find_written(LogSegment* segment, bool primed) const {
  segment->written_bytes = kLogBlockBytes;
  FileSpace space;
  const Status mapped = segment->file->map_space(&space);
  if (mapped.ok()) {
    uint64_t written = segment->bytes;
    for (const std::vector<FileRange>* ranges : {&space.holes, &space.unwritten}) {
      written = ranges->empty() ? written : std::min(written, ranges->front().offset);
    }
    segment->written_bytes = std::max(kLogBlockBytes, written);
    primed = primed && written == segment->bytes;
  }
  segment->primed.store(primed);
  return mapped.code() == Status::Code::unsupported ? Status{} : mapped;
}

Status SegmentPool::load_without_header(const std::string& name, uint64_t id) {
  auto segment = std::make_unique<LogSegment>();
  segment->id = id;
  segment->path = m_directory + "/" + name;
  VTKV_RETURN_IF_ERROR(m_env->open_file(segment->path, OpenOptions(), &segment->file));
  VTKV_RETURN_IF_ERROR(segment->file->size(&segment->bytes));
  segment->bytes -= segment->bytes % kLogBlockBytes;
  record_header_t record;
  AlignedBuffer block(kLogBlockBytes);
  for (uint64_t offset = kLogBlockBytes; offset < segment->bytes; offset += kLogBlockBytes) {
    const Status read = read_with_retries([&] { return segment->file->read(offset, kLogBlockBytes, block.data()); });
    if (read.ok() && decode_record_header({block.data(), kLogBlockBytes}, m_uuid, &record)) {
      segment->epoch = std::max<uint64_t>(segment->epoch, record.epoch);  // others are of earlier uses
    }
  }
  if (segment->epoch > 0) {
    MutexLock lock(m_lock);
    m_segments[id].segment = std::move(segment);
  }
  return Status();
}

Status SegmentPool::load(std::vector<std::string>* notes) {
  std::vector<std::string> names;
  if (const Status status = m_env->list_directory(m_directory, &names); !status.ok()) {
    if (!notes) {
      return status;
    }
    notes->push_back("went on without the log: " + std::string(status.message()));
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    uint64_t id = 0;
    if (parse_name(name, &id)) {
      const Status status = load_segment(name, id);
      if (!notes || status.ok() || status.code() == Status::Code::unsupported) {
        VTKV_RETURN_IF_ERROR(status);
        continue;
      }
      notes->emplace_back(status.message());
      (void)load_without_header(name, id);  // or without it
    }
  }
  return Status();
}

void SegmentPool::use_epochs_above(uint64_t epoch) {
  MutexLock lock(m_lock);
  m_next_epoch = std::max(m_next_epoch, epoch + 1);
}

Status SegmentPool::remove_half_made() {
  for (const std::string& path : m_half_made) {
    VTKV_RETURN_IF_ERROR(m_env->remove_file(path));
  }
  m_half_made.clear();
  return Status();
}

uint32_t SegmentPool::spare_count(bool primed_only) const {
  return static_cast<uint32_t>(std::count_if(m_segments.begin(), m_segments.end(), [&](const auto& one) {
    const LogSegment& segment = *one.second.segment;
    return one.second.is_good_spare() && segment.bytes == m_geometry.log_segment_bytes &&
           (!primed_only || segment.primed.load());
  }));
}

// One that is being primed will do for a recovery: that comes with the next open.
uint32_t SegmentPool::spares_of_any_size() const {
  return static_cast<uint32_t>(
      std::count_if(m_segments.begin(), m_segments.end(), [](const auto& one) { return one.second.is_good_spare(); }));
}

uint64_t SegmentPool::room_bytes() const {
  MutexLock lock(m_lock);
  return (std::max(spare_count(), 1u) - 1) * m_geometry.log_segment_bytes;
}

void SegmentPool::update_primed_awaits() {
  m_primed_awaits.store(m_prime_ahead.load() && spare_count() > 1 && spare_count(true) > 0, std::memory_order_relaxed);
}

void SegmentPool::changed() {
  update_primed_awaits();
  m_changed.store(true, std::memory_order_relaxed);
}

void SegmentPool::note_waited_flush() {
  const uint64_t flushes = m_waited_flushes.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!m_prime_ahead.load(std::memory_order_relaxed) && many_waited(flushes)) {
    MutexLock lock(m_lock);
    m_prime_ahead.store(true);
    changed();
  }
}

// Primed ones first, and of these the smallest that will do.
LogSegment* SegmentPool::choose_spare(uint64_t wanted) const {
  LogSegment* chosen = nullptr;
  for (const auto& [id, entry] : m_segments) {
    if (!entry.is_free() || entry.segment->bytes < wanted) {
      continue;
    }
    const auto rank = [](const LogSegment& one) { return std::pair(!one.primed.load(), one.bytes); };
    if (!chosen || rank(*entry.segment) < rank(*chosen)) {
      chosen = entry.segment.get();
    }
  }
  return chosen;
}

LogSegment* SegmentPool::take_spare(uint64_t wanted, bool for_recovery) {
  LogSegment* const chosen = for_recovery || spares_of_any_size() > 1 ? choose_spare(wanted) : nullptr;
  if (chosen) {
    INVARIANT(epochs_ascend());
    m_segments.at(chosen->id).change_to(State::live);
    chosen->epoch = m_next_epoch++;
    chosen->header_version = kSegmentVersion;
    changed();
  }
  return chosen;
}

Status SegmentPool::take(uint64_t minimum_bytes, bool for_recovery, LogSegment** result) {
  const uint64_t wanted = std::max(m_geometry.log_segment_bytes, round_up(minimum_bytes));
  {
    MutexLock lock(m_lock);
    m_prime_ahead.store(many_waited(m_waited_flushes.exchange(0, std::memory_order_relaxed)));
    m_few_spares = false;
    changed();
    *result = take_spare(wanted, for_recovery);
  }
  while (!*result) {
    // The writer waits for it: reserving its space is quick.
    const Status made = make_segment(wanted, false, false, result);
    if (!made.is_no_space()) {
      return made;
    }
    const bool made_room = m_make_room && m_make_room();
    MutexLock lock(m_lock);
    *result = take_spare(wanted, for_recovery);  // the space may have gone to one, or a flush has set one free
    if (!*result && !made_room) {
      return made;
    }
  }
  return Status();
}

void SegmentPool::release_before(uint64_t oldest_needed_epoch, const std::set<uint64_t>& listed) {
  MutexLock lock(m_lock);
  for (auto& [id, entry] : m_segments) {
    const uint64_t epoch = entry.segment->epoch;
    if (entry.is_live() && epoch < oldest_needed_epoch && !listed.contains(epoch)) {
      entry.change_to(State::spare);
    }
  }
  changed();
}

void SegmentPool::release_abandoned(uint64_t end_epoch, uint64_t record_epoch, const std::set<uint64_t>& listed) {
  MutexLock lock(m_lock);
  for (auto& [id, entry] : m_segments) {
    const uint64_t epoch = entry.segment->epoch;
    if (entry.is_live() && epoch > end_epoch && epoch != record_epoch && !listed.contains(epoch)) {
      entry.change_to(State::spare);
    }
  }
  changed();
}

void SegmentPool::remove_spares() {
  MutexLock lock(m_lock);
  m_few_spares = true;
  m_changed.store(true, std::memory_order_relaxed);
}

// Of another size than usual, where another one is left for a recovery.
void SegmentPool::give_up_odd() {
  const auto is_odd = [this](const auto& one) {
    return one.second.is_free() && one.second.segment->bytes != m_geometry.log_segment_bytes;
  };
  if (const auto odd = std::find_if(m_segments.begin(), m_segments.end(), is_odd);
      odd != m_segments.end() && spares_of_any_size() > 1) {
    give_up(odd);
  }
}

void SegmentPool::give_up(Segments::iterator entry) {
  m_unneeded.push_back(std::move(entry->second.segment));
  m_segments.erase(entry);
  changed();
}

void SegmentPool::give_up_superfluous() {
  // As many as two checkpoints in a row can set free: fewer would be removed and made again in turn.
  const uint32_t keep = m_few_spares ? kSparesWanted : std::max(kSparesWanted, 2 * m_geometry.initial_log_segments);
  const auto spare =
      std::find_if(m_segments.begin(), m_segments.end(), [](const auto& it) { return it.second.is_free(); });
  spare_count() > keep ? give_up(spare) : give_up_odd();
}

// The one with the least left to write.
LogSegment* SegmentPool::spare_to_prime() const {
  LogSegment* chosen = nullptr;
  if (!m_prime_ahead.load() || spare_count(true) >= kSparesWanted) {
    return nullptr;
  }
  for (const auto& [id, entry] : m_segments) {
    LogSegment* const segment = entry.segment.get();
    if (entry.is_free() && !segment->primed.load() && segment->bytes == m_geometry.log_segment_bytes &&
        (!chosen || segment->written_bytes > chosen->written_bytes)) {
      chosen = segment;
    }
  }
  return chosen;
}

Status SegmentPool::write_zeros(File& file, uint64_t offset, uint64_t end) {
  for (; offset < end; offset += std::min(kZerosSliceBytes, end - offset)) {
    if (m_stop.load()) {
      return Status::busy("the database is being closed");
    }
    VTKV_RETURN_IF_ERROR(file.write_zeros(offset, std::min(kZerosSliceBytes, end - offset)));
  }
  return Status();
}

// Its header still says unprimed; the next one that is written tells otherwise.
Status SegmentPool::prime(LogSegment* segment) {
  const uint64_t left = segment->bytes - segment->written_bytes;
  Status status = write_zeros(*segment->file, segment->written_bytes, segment->bytes);
  if (status.ok()) {
    status = segment->file->sync();
  }
  MutexLock lock(m_lock);
  m_segments.at(segment->id).change_to(State::spare);
  if (status.ok()) {
    m_primed_bytes.fetch_add(left, std::memory_order_relaxed);
    segment->written_bytes = segment->bytes;
    segment->primed.store(true);
    changed();
  } else if (!status.is_no_space() && status.code() != Status::Code::busy) {
    segment->is_bad.store(true);
    update_primed_awaits();  // what is missing now is made when it is tried again
  }
  return status;
}

Status SegmentPool::remove_unneeded() {
  while (!m_unneeded.empty()) {
    LogSegment& segment = *m_unneeded.back();
    segment.file.reset();
    const Status removed = m_env->remove_file(segment.path);
    VTKV_RETURN_IF_ERROR(removed.is_not_found() ? Status() : removed);
    m_unneeded.pop_back();
  }
  return {};
}

// Where the host has no space, in that of a larger spare.
Status SegmentPool::make_spare() {
  LogSegment* segment = nullptr;
  const Status made = make_segment(m_geometry.log_segment_bytes, true, m_prime_ahead.load(), &segment);
  if (!made.is_no_space()) {
    return made;
  }
  {
    MutexLock lock(m_lock);
    give_up_odd();
  }
  if (m_unneeded.empty()) {
    return made;
  }
  VTKV_RETURN_IF_ERROR(remove_unneeded());
  return make_segment(m_geometry.log_segment_bytes, true, m_prime_ahead.load(), &segment);
}

Status SegmentPool::work_ahead(bool* did) {
  *did = true;
  m_changed.store(false, std::memory_order_relaxed);
  LogSegment* unprimed = nullptr;
  bool make = false;
  {
    MutexLock lock(m_lock);
    make = spare_count() < kSparesWanted;
    unprimed = make ? nullptr : spare_to_prime();
    if (unprimed) {
      m_segments.at(unprimed->id).change_to(State::priming);
    } else if (!make) {
      give_up_superfluous();
    }
  }
  if (make) {
    return make_spare();
  }
  if (unprimed) {
    return prime(unprimed);
  }
  *did = !m_unneeded.empty();
  return remove_unneeded();
}

Status SegmentPool::sync_all() {
  for (LogSegment* segment : segments()) {
    VTKV_RETURN_IF_ERROR(segment->file->sync());
  }
  return Status();
}

uint64_t SegmentPool::file_bytes() const {
  MutexLock lock(m_lock);
  uint64_t total = 0;
  for (const auto& [id, entry] : m_segments) {
    total += entry.segment->bytes;
  }
  return total;
}

LogFiles SegmentPool::files() const {
  LogFiles files;
  MutexLock lock(m_lock);
  for (const auto& [id, entry] : m_segments) {
    files.all += entry.segment->bytes;
    if (entry.is_live()) {
      files.used += entry.segment->bytes;
      files.by_epoch[entry.segment->epoch] = entry.segment->bytes;
    }
  }
  return files;
}

uint32_t SegmentPool::unprimed_count() const {
  MutexLock lock(m_lock);
  return static_cast<uint32_t>(std::count_if(m_segments.begin(), m_segments.end(), [](const auto& one) {
    return one.second.is_live() && !one.second.segment->primed.load();
  }));
}

uint32_t SegmentPool::segment_count() const {
  MutexLock lock(m_lock);
  return static_cast<uint32_t>(m_segments.size());
}

}  // namespace vtkv
