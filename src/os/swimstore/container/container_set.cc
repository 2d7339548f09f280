// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/container_set.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "swimstore/container/activity.h"
#include "swimstore/container/best_fit.h"
#include "swimstore/container/container.h"
#include "swimstore/container/primer.h"
#include "swimstore/container/quarantine.h"
#include "swimstore/container/reclaimer.h"
#include "swimstore/container/space_promises.h"
#include "swimstore/container/space_reserve.h"
#include "swimstore/format/container_header.h"
#include "vtkv/env/background_errors.h"
#include "vtkv/env/read_retries.h"
#include "vtkv/env/small_file.h"
#include "vtkv/env/uuid.h"
#include "vtkv/util/mutations.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

using vtkv::Mutation;
using vtkv::MutexLock;
using vtkv::NextStep;
using vtkv::SequenceNumber;
using vtkv::Status;

namespace {

using namespace std::chrono_literals;

constexpr uint64_t kPrimedAtCreationBytes = 16u << 20;
// A container grows only when nothing of it is free, so its file is never larger than the file system; some room for
// stores that were copied to a smaller one. A sparse file says any size, and each of its slots takes bits in memory.
constexpr uint64_t kFileShareMax = 8;
constexpr unsigned kScrapRoundsMax = 1000;
constexpr auto kMaintenanceInterval = 50ms;  // while transactions come
constexpr auto kYield = 2ms;               // between units of priming and punching, while transactions come
constexpr auto kRetryInterval = 5s;        // of what failed, while none come
constexpr vtkv::BackgroundWork kReserveWork{"keeping the reserve of space",
                                            "log and tree may find no room when the file system is full"};
constexpr vtkv::BackgroundWork kReclaimWork{"giving free space back to the file system",
                                            "space that is free in one container helps no other until it succeeds"};

std::string header_path(const std::string& directory) { return directory + "/header"; }

std::string container_path(const std::string& directory, unsigned size_class) {
  return directory + "/" + Container::file_name(size_class);
}

Status check_options(const ContainerOptions& options) {
  if (!is_chunk_size(options.chunk_bytes)) {
    return Status::invalid_argument("chunk_bytes " + std::to_string(options.chunk_bytes) +
                                    ": must be a power of two from 4 KiB to 1 TiB");
  }
  return {};
}

// Who has waited for room is lent half of the reserve, a chunk at a time.
uint64_t lendable_chunk(uint64_t bytes, uint64_t reserve_bytes) {
  while (bytes > kSlotBytesMax && reserve_bytes > 0 && bytes > reserve_bytes / 4) {
    bytes /= 2;
  }
  return bytes;
}

// Reserves the first chunk of a small class and primes the start of it.
Status create_container(vtkv::Env* env, const std::string& directory, const ContainerOptions& options,
                        const vtkv::FileSystemInfo& host, unsigned size_class, uint64_t* primed_slots) {
  vtkv::OpenOptions open;
  open.create = true;
  open.exclusive = true;
  std::unique_ptr<vtkv::File> file;
  VTKV_RETURN_IF_ERROR(env->open_file(container_path(directory, size_class), open, &file));
  if (const uint64_t growth = Container::created_bytes(size_class, options, host); growth > 0) {
    const uint64_t bytes = std::min({growth, kPrimedAtCreationBytes, options.primed_ahead_bytes}) /
                           slot_bytes(size_class) * slot_bytes(size_class);
    VTKV_RETURN_IF_ERROR(file->allocate(0, growth));
    if (bytes > 0) {
      VTKV_RETURN_IF_ERROR(file->write_zeros(0, bytes));
    }
    *primed_slots = bytes / slot_bytes(size_class);
  }
  return file->sync();
}

Status read_header(vtkv::Env* env, const std::string& directory, ContainerHeader* header) {
  return vtkv::read_with_retries([&] {
    std::string bytes;
    VTKV_RETURN_IF_ERROR(vtkv::read_small_file(env, header_path(directory), &bytes));
    return ContainerHeader::decode(header_path(directory), bytes, header);
  });
}

}  // namespace

ContainerSet::ContainerSet(vtkv::Env* env, std::string directory, const ContainerOptions& options)
    : m_env(env),
      m_directory(std::move(directory)),
      m_options(options),
      m_shares_reserve(options.reserve != nullptr),
      m_reserve(m_shares_reserve ? options.reserve : std::make_shared<SpaceReserve>()),
      m_quarantine(std::make_unique<Quarantine>(env, m_directory)),
      m_errors(std::make_unique<vtkv::BackgroundErrors>(env, options.on_background_error)) {}

ContainerSet::~ContainerSet() { stop(); }

Status ContainerSet::open_files() {
  ContainerHeader header;
  VTKV_RETURN_IF_ERROR(read_header(m_env, m_directory, &header));
  m_options.chunk_bytes = header.chunk_bytes;
  VTKV_RETURN_IF_ERROR(m_quarantine->open(header.uuid));
  if (!m_shares_reserve) {
    VTKV_RETURN_IF_ERROR(m_reserve->open(m_env, m_directory, m_options.reserve_bytes));
  }
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(m_env->file_system_info(m_directory, &host));
  const uint64_t bytes_max =
      kFileShareMax * host.total_bytes + 2 * Container::growth_bytes(kSizeClasses - 1, header.chunk_bytes);
  for (unsigned size_class = 0; size_class < kSizeClasses; size_class++) {
    std::unique_ptr<vtkv::File> file;
    VTKV_RETURN_IF_ERROR(m_env->open_file(container_path(m_directory, size_class), {}, &file));
    m_containers[size_class] = std::make_unique<Container>(size_class, m_options.chunk_bytes, std::move(file));
    VTKV_RETURN_IF_ERROR(m_containers[size_class]->open(header.primed_slots[size_class], bytes_max));
  }
  m_promises = std::make_unique<SpacePromises>(m_env, m_directory, *m_reserve,
                                               m_options.metadata_reserve ? *m_options.metadata_reserve : *m_reserve,
                                               m_containers);
  m_primer = std::make_unique<Primer>(m_env, m_directory, m_options, *m_reserve, *m_promises, m_containers,
                                      *m_quarantine, *m_errors, host.single_flush);
  m_reclaimer = std::make_unique<Reclaimer>(m_env, m_directory, m_options, *m_reserve, *m_promises, m_containers);
  return {};
}

// ---- allocation

Status ContainerSet::allocate(uint64_t bytes, std::vector<AllocatedSlot>* slots) {
  if (bytes == 0) {
    return Status::invalid_argument("an allocation of 0 bytes");
  }
  std::vector<WriteSlice> slices;
  best_fit(bytes, &slices);
  const size_t before = slots->size();
  for (const WriteSlice& slice : slices) {
    if (take(slice.size_class, slice.bytes, true, slots) || take_elsewhere(slice, slots)) {
      continue;
    }
    abandon({slots->begin() + static_cast<ptrdiff_t>(before), slots->end()});
    slots->resize(before);
    if (const std::string error = m_promises->growth_error(); !error.empty()) {
      return Status::make(Status::Code::no_space, error, ENOSPC);
    }
    return Status::make(Status::Code::no_space,
                        m_directory + ": no free slots for " + std::to_string(bytes) +
                            " bytes, and the host file system has no room above the reserve; delete objects or "
                            "enlarge the file system",
                        ENOSPC);
  }
  return {};
}

bool ContainerSet::take(unsigned size_class, uint32_t bytes, bool may_grow, std::vector<AllocatedSlot>* slots) {
  Container& container = *m_containers[size_class];
  AllocatedSlot slot;
  slot.bytes = bytes;
  const bool is_small = size_class <= m_options.primed_class_max;
  if (is_small && take_fragment(size_class, bytes, true, slots)) {
    return true;
  }
  if (is_small && container.take(true, &slot)) {
    slots->push_back(slot);
    return true;
  }
  if (take_fragment(size_class, bytes, false, slots)) {
    return true;
  }
  // Another thread may take what this one grew, so it is tried again while growing helps.
  while (!container.take(false, &slot)) {
    if (!may_grow || (!container.cancel_punch(true) && !grow(container))) {
      return false;
    }
  }
  slots->push_back(slot);
  return true;
}

bool ContainerSet::take_fragment(unsigned size_class, uint32_t bytes, bool only_primed,
                                 std::vector<AllocatedSlot>* slots) {
  AllocatedSlot slot;
  slot.bytes = bytes;
  for (unsigned container = size_class + 1; container < kSizeClasses; container++) {
    if (m_containers[container]->take_fragment(size_class, only_primed, &slot)) {
      slots->push_back(slot);
      return true;
    }
  }
  return false;
}

bool ContainerSet::grow(Container& container) {
  vtkv::FileSystemInfo host;
  if (!m_env->file_system_info(m_directory, &host).ok() || m_reserve->growable_bytes(host) < container.growth_bytes()) {
    return false;
  }
  const Status status = container.grow(true);
  m_promises->note_growth(container, status);
  return status.ok();
}

bool ContainerSet::take_smaller(const WriteSlice& slice, size_t limit, bool may_grow,
                                std::vector<AllocatedSlot>* slots) {
  const size_t before = slots->size();
  uint32_t left = slice.bytes;
  for (unsigned size_class = slice.size_class; left > 0 && size_class-- > 0;) {
    while (left > 0 && slots->size() - before < limit) {
      // A slot larger than the rest is left to a smaller class, if there is one.
      if (left < slot_bytes(size_class) && size_class > 0 && left <= slot_bytes(size_class - 1)) {
        break;
      }
      const uint32_t bytes = std::min(left, slot_bytes(size_class));
      if (!take(size_class, bytes, may_grow, slots)) {
        break;
      }
      left -= bytes;
    }
  }
  if (left == 0) {
    return true;
  }
  abandon({slots->begin() + static_cast<ptrdiff_t>(before), slots->end()});
  slots->resize(before);
  return false;
}

// The class is exhausted and cannot grow. First what wastes little, then what still works.
bool ContainerSet::take_elsewhere(const WriteSlice& slice, std::vector<AllocatedSlot>* slots) {
  short_of_space(0, 0);
  if (take_smaller(slice, 4, false, slots)) {
    return true;
  }
  return break_up_larger(slice.size_class, slice.bytes, slots) ||
         take_smaller(slice, kSlotBytesMax / kBlockBytes, true, slots) || take_scraps(slice.bytes, slots);
}

bool ContainerSet::break_up_larger(unsigned size_class, uint32_t bytes, std::vector<AllocatedSlot>* slots) {
  AllocatedSlot slot;
  slot.bytes = bytes;
  for (unsigned larger = size_class + 1; larger < kSizeClasses; larger++) {
    Container& container = *m_containers[larger];
    if (container.break_up(size_class, &slot) ||
        (container.cancel_punch(true) && container.break_up(size_class, &slot))) {
      slots->push_back(slot);
      return true;
    }
  }
  return false;
}

bool ContainerSet::take_scraps(uint32_t bytes, std::vector<AllocatedSlot>* slots) {
  const size_t before = slots->size();
  uint32_t left = bytes;
  unsigned size_class = kSizeClasses - 1;
  for (unsigned rounds = 0; left > 0 && rounds < kScrapRoundsMax;) {
    const uint32_t slice = slot_bytes(size_class);
    if (slice <= left && (take(size_class, slice, false, slots) || break_up_larger(size_class, slice, slots))) {
      left -= slice;
    } else if (size_class > 0) {
      size_class--;
    } else if (m_promises->free_bytes() >= left) {  // others gave and took meanwhile
      size_class = kSizeClasses - 1;
      rounds++;
    } else {
      break;
    }
  }
  if (left > 0) {
    abandon({slots->begin() + static_cast<ptrdiff_t>(before), slots->end()});
    slots->resize(before);
  }
  return left == 0;
}

bool ContainerSet::promise(uint64_t bytes, Urgency urgency) {
  if (m_promises->take(bytes, urgency)) {
    return true;
  }
  short_of_space(0, 0);
  return false;
}

bool ContainerSet::promise_much(uint64_t bytes, Urgency urgency, uint64_t metadata_bytes) {
  if (has_room(bytes, urgency, metadata_bytes)) {
    return promise(bytes, urgency);
  }
  const bool on_this_host = !m_options.metadata_reserve && metadata_bytes > 0;
  // What it gives itself, it has to grow by: of use only where log and tree lack as much without that.
  short_of_space(on_this_host && !has_metadata_room(metadata_bytes, urgency) ? metadata_bytes : 0,
                 on_this_host ? metadata_bytes + m_promises->growth_for(bytes, urgency, m_promises->free_bytes()) : 0);
  return false;
}

bool ContainerSet::has_room(uint64_t bytes, Urgency urgency, uint64_t metadata_bytes) const {
  const ContainerStatistics now = statistics();
  const uint64_t lent = urgency == Urgency::usual ? 0 : now.reserve_bytes / 2;
  const uint64_t grown = m_promises->growth_for(bytes, urgency, now.free_bytes);  // log and tree cannot have that, too
  return now.growable_bytes + lent >= grown &&
         has_metadata_room(metadata_bytes + (m_options.metadata_reserve || metadata_bytes == 0 ? 0 : grown), urgency);
}

bool ContainerSet::has_metadata_room(uint64_t bytes, Urgency urgency) const {
  return m_promises->has_metadata_room(bytes, urgency);
}

bool ContainerSet::promise_spare(uint64_t bytes) { return m_promises->take_spare(bytes); }

void ContainerSet::short_of_space(uint64_t own_bytes, uint64_t others_bytes) {
  give_space_back(own_bytes);  // one class has what another lacks
  if (m_options.on_short_of_space) {
    m_options.on_short_of_space(others_bytes);
  }
}

void ContainerSet::give_space_back(uint64_t metadata_bytes) {
  m_reclaimer->short_of_space(metadata_bytes);
  wake_worker(m_activity.note());
}

void ContainerSet::abandon(const std::vector<AllocatedSlot>& slots) {
  for (const AllocatedSlot& slot : slots) {
    m_containers[slot.address.container()]->put_back(slot);
  }
}

Status ContainerSet::claim(const SlotBlocks& blocks, std::vector<SlotBlocks>* claimed) {
  if (!blocks.is_valid()) {
    return Status::invalid_argument("there is no slot of size class " + std::to_string(blocks.slot.size_class) +
                                    ", split " + std::to_string(blocks.slot.split_levels) + " times, of " +
                                    std::to_string(blocks.written) + " blocks");
  }
  return m_containers[blocks.slot.container()]->claim(blocks, claimed);
}

bool ContainerSet::begin_free(const SlotBlocks& blocks) {
  return blocks.is_valid() && m_containers[blocks.slot.container()]->begin_free(blocks);
}

void ContainerSet::end_free(const SlotBlocks& blocks) { m_containers[blocks.slot.container()]->end_free(blocks); }

void ContainerSet::give_back(uint64_t bytes) { m_promises->give_back(bytes); }

// ---- what there is

vtkv::File* ContainerSet::file(unsigned container) { return m_containers[container]->file(); }

std::vector<SlotAddress> ContainerSet::quarantined() const { return m_quarantine->slots(); }

bool ContainerSet::is_owned(const SlotBlocks& blocks) const {
  return blocks.is_valid() && m_containers[blocks.slot.container()]->is_owned(blocks);
}

bool ContainerSet::is_primed(SlotAddress slot) const {
  return slot.is_valid() && m_containers[slot.container()]->is_primed(slot.whole().index);
}

bool ContainerSet::next_owned(unsigned container, uint64_t from, std::vector<SlotBlocks>* owned, bool* split) const {
  return m_containers[container]->next_owned(from, owned, split);
}

std::vector<vtkv::BackgroundError> ContainerSet::background_errors() const { return m_errors->current(); }

// ---- transactions

void ContainerSet::apply(SequenceNumber sequence, const AllocationDelta& delta) {
  for (const SlotBlocks& blocks : delta.allocated) {
    m_containers[blocks.slot.container()]->apply_allocated(blocks);
  }
  uint64_t waiting = 0;
  for (const SlotBlocks& blocks : delta.freed) {
    waiting += m_containers[blocks.slot.container()]->apply_freed(sequence, blocks);
  }
  if (waiting > 0 && !mutated(Mutation::slot_reused_at_once)) {
    m_waiting.fetch_add(waiting, std::memory_order_relaxed);
  }
  wake_worker(m_activity.note());
}

void ContainerSet::set_reuse_horizon(SequenceNumber horizon) {
  if (!has_waiting()) {
    return;
  }
  uint64_t released = 0;
  for (auto& container : m_containers) {
    released += container->set_reuse_horizon(horizon);
  }
  m_waiting.fetch_sub(released, std::memory_order_relaxed);
  if (released > 0 && m_reserve->held_bytes() < m_reserve->target_bytes()) {
    wake_worker(m_activity.note());  // the host may get it back
  }
}

void ContainerSet::mark_primed(const std::vector<SlotAddress>& slots) {
  for (const SlotAddress& slot : slots) {
    m_containers[slot.size_class]->set_primed(slot.index);
  }
}

std::string ContainerSet::note_failed_write(vtkv::File* file, uint64_t offset, const std::vector<iovec>& buffers) {
  for (uint8_t size_class = 0; size_class < kSizeClasses; size_class++) {
    if (m_containers[size_class]->file() == file) {
      const std::vector<SlotAddress> bad = find_bad_slots(*file, size_class, offset, buffers);
      if (bad.empty()) {
        return "written again slot by slot, and none was refused: nothing is quarantined";
      }
      const Status status = m_quarantine->add(bad);
      return to_string(bad, *file) + " " +
             (status.ok() ? "quarantined: not used again after the next start"
                          : "cannot be quarantined: " + std::string(status.message()));
    }
  }
  return {};
}

bool ContainerSet::make_room() {
  bool gave = false;
  return m_reserve->give_slice(&gave).ok() && gave;
}

// ---- recovery and checkpoints

Status ContainerSet::begin_recovery() {
  if (m_options.read_only) {
    return {};
  }
  bool changed = false;
  // Recovery may need what the host has lost since.
  VTKV_RETURN_IF_ERROR(m_reserve->make_room(&changed));
  VTKV_RETURN_IF_ERROR(m_options.metadata_reserve ? m_options.metadata_reserve->make_room(&changed) : Status());
  return m_quarantine->make_missing();
}

Status ContainerSet::load_page(std::string_view key, std::string_view value) {
  AllocationPage page;
  VTKV_RETURN_IF_ERROR(AllocationPage::decode(key, value, &page));
  return m_containers[page.size_class]->load(page);
}

Status ContainerSet::load_split_slot(std::string_view key, std::string_view value) {
  SplitSlotRecord record;
  VTKV_RETURN_IF_ERROR(SplitSlotRecord::decode(key, value, &record));
  return m_containers[record.container]->load(record);
}

Status ContainerSet::replay(const AllocationDelta& delta) {
  for (const SlotBlocks& blocks : delta.allocated) {
    VTKV_RETURN_IF_ERROR(m_containers[blocks.slot.container()]->replay(blocks, true));
  }
  for (const SlotBlocks& blocks : delta.freed) {
    VTKV_RETURN_IF_ERROR(m_containers[blocks.slot.container()]->replay(blocks, false));
  }
  return {};
}

Status ContainerSet::finish_recovery() {
  if (!mutated(Mutation::quarantine_forgotten)) {
    for (const SlotAddress& slot : m_quarantine->slots()) {
      m_containers[slot.size_class]->quarantine(slot.index);
    }
  }
  for (auto& container : m_containers) {
    VTKV_RETURN_IF_ERROR(container->finish_recovery());
  }
  if (!m_options.maintenance) {
    return {};
  }
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(m_env->file_system_info(m_directory, &host));
  uint64_t room_bytes = m_reserve->growable_bytes(host);
  for (auto& container : m_containers) {
    container->fill_owned(&room_bytes);
  }
  std::unique_ptr<vtkv::Worker> worker =
      m_env->start_worker("containers", 0, [this](vtkv::IoQueue&) { return maintenance_step(); });
  MutexLock lock(m_worker_lock);
  m_worker = std::move(worker);
  m_worker->wake();  // who claimed its wake before this found nobody to wake
  return {};
}

void ContainerSet::collect_pages(SequenceNumber as_of, std::vector<vtkv::CheckpointEntry>* entries) {
  for (auto& container : m_containers) {
    container->collect_pages(as_of, entries);
  }
}

void ContainerSet::checkpoint_durable(SequenceNumber as_of) {
  m_reclaimer->checkpoint_durable(as_of);
  wake_worker(m_activity.note());
}

void ContainerSet::set_checkpoint_request(std::function<void()> request) {
  m_reclaimer->set_checkpoint_request(std::move(request));
}

void ContainerSet::stop() {
  std::unique_ptr<vtkv::Worker> worker;
  {
    MutexLock lock(m_worker_lock);
    worker = std::move(m_worker);
  }
}

Status ContainerSet::sync_all() {
  for (auto& container : m_containers) {
    VTKV_RETURN_IF_ERROR(container->file()->sync());
  }
  return {};
}

// ---- the worker

void ContainerSet::wake_worker(bool asleep) {
  if (!asleep) {
    return;
  }
  MutexLock lock(m_worker_lock);
  if (m_worker) {
    m_worker->wake();
  }
}

NextStep ContainerSet::maintenance_step() {
  const bool busy = m_activity.look();
  bool worked = false;
  Primer::Result priming;
  // What an error of the host left undone is found again by the next round, which comes with the next activity.
  Status balanced = m_reserve->balance(&worked);
  if (balanced.ok() && m_options.metadata_reserve) {
    bool worked_there = false;
    balanced = m_options.metadata_reserve->balance(&worked_there);
    worked |= worked_there;
  }
  if (!worked && m_reserve->held_bytes() < m_reserve->target_bytes()) {
    m_reclaimer->short_of_space(0);  // the host has no room for it: what data can spare is the reserve's
  }
  const Status reclaimed = m_reclaimer->step(&worked);
  m_errors->note(kReserveWork, balanced);
  m_errors->note(kReclaimWork, reclaimed);
  m_primer->step(busy, &priming);
  const bool went_well = balanced.ok() && reclaimed.ok();
  if (went_well && priming.worked) {
    return busy && !priming.urgent ? NextStep::later(kYield) : NextStep::now();
  }
  if (went_well && worked) {
    return busy ? NextStep::later(kYield) : NextStep::now();
  }
  if (busy) {
    return NextStep::later(kMaintenanceInterval);
  }
  if (!m_activity.fall_asleep()) {
    return NextStep::later(kMaintenanceInterval);
  }
  return m_errors->current().empty() ? NextStep::on_event() : NextStep::later(kRetryInterval);
}

Status ContainerSet::create(vtkv::Env* env, const std::string& directory, const ContainerOptions& asked) {
  VTKV_RETURN_IF_ERROR(check_options(asked));
  VTKV_RETURN_IF_ERROR(env->create_directory(directory));
  ContainerOptions options = asked;
  if (!asked.reserve) {
    options.reserve = std::make_shared<SpaceReserve>();
    VTKV_RETURN_IF_ERROR(options.reserve->open(env, directory, asked.reserve_bytes));
  }
  options.chunk_bytes = lendable_chunk(asked.chunk_bytes, options.reserve->target_bytes());
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(env->file_system_info(directory, &host));
  ContainerHeader header;
  header.chunk_bytes = options.chunk_bytes;
  header.uuid = vtkv::new_uuid(env);
  for (unsigned size_class = 0; size_class < kSizeClasses; size_class++) {
    VTKV_RETURN_IF_ERROR(create_container(env, directory, options, host, size_class, &header.primed_slots[size_class]));
  }
  VTKV_RETURN_IF_ERROR(Quarantine::create(env, directory));
  VTKV_RETURN_IF_ERROR(options.reserve->settle());
  // Last: a set without its header is one whose creation was cut short.
  return vtkv::replace_small_file(env, header_path(directory), header.encode());
}

Status ContainerSet::open(vtkv::Env* env, const std::string& directory, const ContainerOptions& options,
                          std::unique_ptr<ContainerSet>* containers) {
  std::unique_ptr<ContainerSet> opened(new ContainerSet(env, directory, options));
  VTKV_RETURN_IF_ERROR(opened->open_files());
  *containers = std::move(opened);
  return {};
}

}  // namespace swimstore
