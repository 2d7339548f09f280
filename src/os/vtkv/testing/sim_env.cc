// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/sim_env.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "vtkv/env/sync_failures.h"
#include "vtkv/testing/sim_file.h"
#include "vtkv/testing/sim_interleaving.h"
#include "vtkv/testing/sim_worker.h"
#include "vtkv/util/hash.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

constexpr uint64_t kWallClockStartUs = 1'700'000'000'000'000;

// One slash between names, none at the end.
std::string normalize(const std::string& path) {
  std::string result = "/";
  for (const char letter : path) {
    if (letter != '/' || result.back() != '/') {
      result += letter;
    }
  }
  if (result.size() > 1 && result.back() == '/') {
    result.pop_back();
  }
  return result;
}

bool is_write_like(const SimOp& op) { return op.kind == SimOp::Kind::write || op.kind == SimOp::Kind::zeros; }

}  // namespace

std::string_view to_string(SimProfile profile) {
  switch (profile) {
    case SimProfile::ext4:
      return "ext4";
    case SimProfile::xfs:
      return "xfs";
    case SimProfile::btrfs:
      return "btrfs";
    case SimProfile::weakest:
      return "weakest";
  }
  return "?";
}

class SimEnv::Lock : public FileLock {
 public:
  Lock(SimEnv* env, std::string path) : m_env(env), m_path(std::move(path)) {}
  ~Lock() override { m_env->m_locked.erase(m_path); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  SimEnv* const m_env;
  const std::string m_path;
};

SimEnv::SimEnv(const SimOptions& options) : SimEnv(options, SimImage(), 1) {}

SimEnv::SimEnv(const SimOptions& options, SimImage image, uint64_t next_inode)
    : m_random(options.seed),
      m_record(options.record),
      m_thread(std::this_thread::get_id()),
      m_image(std::move(image)) {
  m_image.drop_unreachable();
  m_trace.profile = options.profile;
  m_trace.capacity_bytes = options.capacity_bytes;
  m_trace.next_inode = next_inode;
  m_trace.base = m_image;
  if (options.interleaved) {
    m_interleaving = std::make_unique<SimInterleaving>(this, mix64(options.seed));
  }
}

SimEnv::~SimEnv() {
  const bool all_workers_are_gone = m_workers.empty();
  VTKV_ASSERT(all_workers_are_gone);
  const bool all_files_are_closed = m_open_files.empty();
  VTKV_ASSERT(all_files_are_closed);
}

void SimEnv::check_thread() const {
  const bool used_by_one_thread = m_thread == std::this_thread::get_id();
  VTKV_ASSERT(used_by_one_thread);
}

// Names

Status SimEnv::open_file(const std::string& raw_path, const OpenOptions& options, std::unique_ptr<File>* file) {
  check_thread();
  split();
  const std::string path = normalize(raw_path);
  VTKV_RETURN_IF_ERROR(strike(SimCall::open));
  if (m_image.directories.contains(path)) {
    return Status::from_errno(EISDIR, "cannot open " + raw_path);
  }
  auto found = m_image.names.find(path);
  if (found != m_image.names.end() && options.create && options.exclusive) {
    return Status::from_errno(EEXIST, "cannot open " + raw_path);
  }
  if (found == m_image.names.end()) {
    if (!options.create || !m_image.directories.contains(sim_parent_of(path))) {
      return Status::from_errno(ENOENT, "cannot open " + raw_path);
    }
    SimOp op;
    op.kind = SimOp::Kind::create;
    op.inode = m_trace.next_inode++;
    op.path = path;
    VTKV_RETURN_IF_ERROR(perform(std::move(op)));
    found = m_image.names.find(path);
  }
  *file = std::make_unique<SimFile>(this, raw_path, found->second, options);
  return {};
}

Status SimEnv::create_directory(const std::string& raw_path) {
  const std::string path = normalize(raw_path);
  VTKV_RETURN_IF_ERROR(strike(SimCall::create_directory));
  if (m_image.directories.contains(path)) {
    return {};
  }
  if (m_image.names.contains(path) || !m_image.directories.contains(sim_parent_of(path))) {
    return Status::from_errno(m_image.names.contains(path) ? EEXIST : ENOENT, "cannot create directory " + raw_path);
  }
  SimOp op;
  op.kind = SimOp::Kind::create_directory;
  op.path = path;
  return perform(std::move(op));
}

Status SimEnv::sync_directory(const std::string& raw_path) {
  const std::string path = normalize(raw_path);
  if (!m_image.directories.contains(path)) {
    return Status::from_errno(ENOENT, "cannot open directory " + raw_path);
  }
  return perform_sync(0, path);
}

Status SimEnv::list_directory(const std::string& raw_path, std::vector<std::string>* names) {
  const std::string path = normalize(raw_path);
  names->clear();
  VTKV_RETURN_IF_ERROR(strike(SimCall::list_directory));
  if (!m_image.directories.contains(path)) {
    return Status::from_errno(m_image.names.contains(path) ? ENOTDIR : ENOENT, "cannot list directory " + raw_path);
  }
  const size_t prefix = path == "/" ? 1 : path.size() + 1;
  for (const std::string& directory : m_image.directories) {
    if (directory != "/" && sim_parent_of(directory) == path) {
      names->push_back(directory.substr(prefix));
    }
  }
  for (const auto& [name, inode] : m_image.names) {
    if (sim_parent_of(name) == path) {
      names->push_back(name.substr(prefix));
    }
  }
  std::sort(names->begin(), names->end());
  return {};
}

Status SimEnv::rename_file(const std::string& from, const std::string& to) {
  split();
  VTKV_RETURN_IF_ERROR(strike(SimCall::rename));
  const auto found = m_image.names.find(normalize(from));
  const std::string target = normalize(to);
  if (found == m_image.names.end() || !m_image.directories.contains(sim_parent_of(target))) {
    return Status::from_errno(ENOENT, "cannot rename " + from + " to " + to);
  }
  if (m_image.directories.contains(target)) {
    return Status::from_errno(EISDIR, "cannot rename " + from + " to " + to);
  }
  SimOp op;
  op.kind = SimOp::Kind::rename;
  op.inode = found->second;
  op.from_path = found->first;
  op.path = target;
  return perform(std::move(op));
}

Status SimEnv::remove_file(const std::string& path) {
  split();
  VTKV_RETURN_IF_ERROR(strike(SimCall::remove));
  const auto found = m_image.names.find(normalize(path));
  if (found == m_image.names.end()) {
    const bool is_directory = m_image.directories.contains(normalize(path));
    return Status::from_errno(is_directory ? EISDIR : ENOENT, "cannot remove " + path);
  }
  SimOp op;
  op.kind = SimOp::Kind::remove;
  op.inode = found->second;
  op.path = found->first;
  return perform(std::move(op));
}

bool SimEnv::exists(const std::string& path) {
  return m_image.names.contains(normalize(path)) || m_image.directories.contains(normalize(path));
}

Status SimEnv::file_system_info(const std::string& path, FileSystemInfo* info) {
  VTKV_RETURN_IF_ERROR(strike(SimCall::file_system_info));
  if (!exists(path)) {
    return Status::from_errno(ENOENT, "cannot ask for the file system of " + path);
  }
  *info = FileSystemInfo();
  switch (m_trace.profile) {
    case SimProfile::ext4:
      info->kind = FileSystemKind::ext4;
      break;
    case SimProfile::xfs:
      info->kind = FileSystemKind::xfs;
      break;
    case SimProfile::btrfs:
      info->kind = FileSystemKind::btrfs;
      break;
    case SimProfile::weakest:
      info->kind = FileSystemKind::other;
      break;
  }
  info->single_flush = info->kind == FileSystemKind::ext4 || info->kind == FileSystemKind::xfs;
  info->total_bytes = m_trace.capacity_bytes;
  info->available_bytes = m_trace.capacity_bytes - std::min(m_trace.capacity_bytes, allocated_bytes());
  const bool is_other = is_on_other_file_system(normalize(path));
  if (is_other && m_other_capacity_bytes != kSimNever) {
    info->total_bytes = m_other_capacity_bytes;
    info->available_bytes = m_other_capacity_bytes - std::min(m_other_capacity_bytes, other_allocated_bytes());
  }
  info->device = is_other ? "sim1" : "sim0";
  info->mount_point = is_other ? kSimOtherFileSystem : "/";
  return {};
}

Status SimEnv::lock_file(const std::string& path, std::unique_ptr<FileLock>* lock) {
  std::unique_ptr<File> file;
  VTKV_RETURN_IF_ERROR(open_file(path, {.create = true, .direct = false}, &file));
  if (!m_locked.insert(normalize(path)).second) {
    return Status::busy(path + " is locked: another store of this process has it open");
  }
  *lock = std::make_unique<Lock>(this, normalize(path));
  return {};
}

// Operations and syncs

Status SimEnv::check_space(const SimOp& op) const {
  if (!is_write_like(op) && op.kind != SimOp::Kind::allocate) {
    return {};
  }
  const uint64_t missing = m_image.inode(op.inode).missing_blocks(op.offset, op.length) * kSimBlock;
  const bool is_full = allocated_bytes() + missing > m_trace.capacity_bytes ||
                       (op.is_on_other && m_other_capacity_bytes != kSimNever &&
                        other_allocated_bytes() + missing > m_other_capacity_bytes);
  if (missing != 0 && is_full) {
    return Status::from_errno(ENOSPC, "cannot write " + path_of(op.inode) + " at " + std::to_string(op.offset));
  }
  return {};
}

uint64_t SimEnv::other_allocated_bytes() const {
  uint64_t blocks = 0;
  for (const auto& [name, inode] : m_image.names) {
    blocks += is_on_other_file_system(name) ? m_image.inode(inode).allocated_blocks() : 0;
  }
  return blocks * kSimBlock;
}

std::string SimEnv::path_of(uint64_t inode) const {
  for (const auto& [name, id] : m_image.names) {
    if (id == inode) {
      return name;
    }
  }
  return "a removed file";
}

size_t SimEnv::submit(SimOp op) {
  check_thread();
  op.submitted = tick();
  m_trace.ops.push_back(std::move(op));
  return m_trace.ops.size() - 1;
}

Status SimEnv::execute(size_t index) {
  SimOp& op = m_trace.ops[index];
  if (op.kind == SimOp::Kind::write) {
    Status status = strike(SimCall::write);
    if (status.ok()) {
      status = strike_bad(SimBad::writes, op.inode, op.offset, op.length);
    }
    if (!status.ok()) {
      // It may have reached the disk all the same, whatever is synced later.
      op.spoiled = true;
      return status;
    }
  }
  const Status room = check_space(op);
  if (!room.ok()) {
    op.data = SimData();
    op.length = 0;
    return room;
  }
  op.executed = tick();
  if (op.kind == SimOp::Kind::write) {
    damage(&op);
    op.primed = op.primed && m_image.inode(op.inode).is_primed(op.offset, op.length);
  }
  sim_apply(op, m_record ? SimSpace::written : SimSpace::primed, &m_image);
  if (is_write_like(op) && !op.primed) {
    m_unprimed[op.inode].push_back(index);
  }
  return {};
}

void SimEnv::complete(size_t index) { m_trace.ops[index].completed = tick(); }

Status SimEnv::perform(SimOp op) {
  const bool is_write = op.kind == SimOp::Kind::write;
  const size_t index = submit(std::move(op));
  if (is_write) {
    ++m_calls_under_way;
    split();
    --m_calls_under_way;
  }
  VTKV_RETURN_IF_ERROR(execute(index));
  complete(index);
  forget_past();
  split();
  return {};
}

Status SimEnv::perform_sync(uint64_t inode, const std::string& directory) {
  const size_t index = submit_sync(inode, directory);
  ++m_calls_under_way;
  split();
  --m_calls_under_way;
  Status status = execute_sync(index);
  split();
  return status;
}

void SimEnv::split() {
  if (m_interleaving) {
    m_interleaving->at_io();
  }
}

void SimEnv::damage(SimOp* op) {
  const auto found = m_damages.find(m_calls[SimCall::write]);
  if (found == m_damages.end() || op->length == 0) {
    return;
  }
  switch (found->second) {
    case SimDamage::lost:
      op->data = SimData(op->offset, {});
      op->length = 0;
      break;
    case SimDamage::misdirected:
      op->offset = op->offset >= kSimBlock ? op->offset - kSimBlock : op->offset + kSimBlock;
      op->data = op->data.moved(op->offset);
      break;
    case SimDamage::bit_flip:
      op->data = op->data.with_flipped_bit(m_random());
      break;
  }
}

size_t SimEnv::submit_sync(uint64_t inode, const std::string& directory) {
  check_thread();
  SimSync sync;
  sync.inode = inode;
  sync.directory = inode == 0 ? directory : sim_parent_of(path_of(inode));
  sync.is_on_other = is_on_other_file_system(sync.directory);
  sync.submitted = tick();
  m_trace.syncs.push_back(std::move(sync));
  return m_trace.syncs.size() - 1;
}

Status SimEnv::execute_sync(size_t index) {
  SimSync& sync = m_trace.syncs[index];
  const Status status = strike(sync.inode == 0 ? SimCall::sync_directory : SimCall::sync);
  if (!status.ok()) {
    spoil_covered(sync);
    return note_sync(status);
  }
  sync.completed = tick();
  prime_covered(sync);
  forget_past();
  return {};
}

void SimEnv::prime_covered(const SimSync& sync) {
  const auto found = m_unprimed.find(sync.inode);
  if (found == m_unprimed.end()) {
    return;
  }
  std::erase_if(found->second, [&](size_t index) {
    const SimOp& op = m_trace.ops[index];
    if (op.completed > sync.submitted || op.spoiled) {
      return op.spoiled;
    }
    m_image.change(op.inode).prime(op.offset, op.length);
    return true;
  });
}

void SimEnv::spoil_covered(const SimSync& sync) {
  for (SimOp& op : m_trace.ops) {
    if (op.completed > sync.submitted || op.spoiled || !sim_covers(m_trace.profile, sync, op)) {
      continue;
    }
    // Unless an earlier sync had made it durable already.
    const bool durable = std::any_of(m_trace.syncs.begin(), m_trace.syncs.end(), [&](const SimSync& earlier) {
      return earlier.completed != kSimNever && op.completed <= earlier.submitted &&
             sim_covers(m_trace.profile, earlier, op);
    });
    op.spoiled = !durable;
  }
}

void SimEnv::forget_past() {
  const auto busy = [](const SimWorker* worker) { return const_cast<SimWorker*>(worker)->queue().in_flight() != 0; };
  if (!m_record && m_calls_under_way == 0 && m_trace.ops.size() + m_trace.syncs.size() > 1000 &&
      std::none_of(m_workers.begin(), m_workers.end(), busy)) {
    restart_trace();
  }
}

void SimEnv::drop_unused_inodes() {
  std::set<uint64_t> named;
  for (const auto& [name, inode] : m_image.names) {
    named.insert(inode);
  }
  std::erase_if(m_image.inodes,
                [&](const auto& inode) { return !named.contains(inode.first) && !m_open_files.contains(inode.first); });
}

void SimEnv::restart_trace() {
  for (SimWorker* worker : m_workers) {
    VTKV_ASSERT(worker->queue().in_flight() == 0);
  }
  VTKV_ASSERT(m_calls_under_way == 0);
  for (const auto& [inode, indexes] : m_unprimed) {
    for (const size_t index : indexes) {
      m_image.change(inode).prime(m_trace.ops[index].offset, m_trace.ops[index].length);
    }
  }
  m_unprimed.clear();
  m_trace.ops.clear();
  m_trace.syncs.clear();
  m_trace.marks.clear();
  drop_unused_inodes();
  m_trace.base = m_image;
}

void SimEnv::mark(uint64_t id, std::string text) { m_trace.marks.push_back({tick(), id, std::move(text)}); }

// Faults

void SimEnv::set_bad(SimBad what, const std::string& path, uint64_t begin, uint64_t end) {
  m_bad.push_back({what, m_image.names.at(normalize(path)), begin, end});
}

void SimEnv::flip_bits(const std::string& path, uint64_t offset, char mask) {
  const uint64_t inode = m_image.names.at(normalize(path));
  m_image.change(inode).flip_bits(offset, mask);
  if (m_trace.base.inodes.contains(inode) && offset < m_trace.base.inode(inode).size()) {
    m_trace.base.change(inode).flip_bits(offset, mask);
  }
}

std::vector<std::string> SimEnv::files() const {
  std::vector<std::string> paths;
  for (const auto& [name, inode] : m_image.names) {
    paths.push_back(name);
  }
  return paths;
}

// Time and workers

std::unique_ptr<Worker> SimEnv::start_worker(std::string name, unsigned io_depth, Worker::Step step) {
  check_thread();
  return std::make_unique<SimWorker>(this, std::move(name), io_depth, std::move(step));
}

std::unique_ptr<Signal> SimEnv::new_signal() { return std::make_unique<SimSignal>(this); }

// Asking takes time: a loop that waits for the clock ends.
uint64_t SimEnv::now_us() { return ++m_now_us; }

uint64_t SimEnv::wall_clock_us() { return kWallClockStartUs + now_us(); }

uint64_t SimEnv::random_u64() { return m_random(); }

size_t SimEnv::count_choices() {
  size_t choices = 0;
  for (SimWorker* worker : m_workers) {
    choices += (worker->can_run() ? 1 : 0) + worker->queue().executable();
  }
  return choices;
}

void SimEnv::run_chosen(size_t chosen) {
  ++m_now_us;
  for (SimWorker* worker : m_workers) {
    if (worker->can_run() && chosen-- == 0) {
      worker->run();
      if (m_step_observer) {
        m_step_observer();
      }
      return;
    }
    if (chosen < worker->queue().executable()) {
      worker->queue().execute(chosen);
      worker->wake();
      return;
    }
    chosen -= worker->queue().executable();
  }
}

bool SimEnv::run_one() {
  check_thread();
  if (m_interleaving) {
    m_interleaving->next_turn();
  }
  size_t choices = count_choices();
  if (choices == 0 && m_interleaving) {
    uint64_t next = UINT64_MAX;
    for (const SimWorker* worker : m_workers) {
      next = std::min(next, worker->resumes_at());
    }
    if (next != UINT64_MAX) {
      m_interleaving->skip_to(next);
      choices = count_choices();
    }
  }
  if (choices == 0) {
    return false;
  }
  const bool was_driving = std::exchange(m_driving, true);
  run_chosen(m_random() % choices);
  m_driving = was_driving;
  return true;
}

bool SimEnv::fire_timer(uint64_t limit_us) {
  SimWorker* first = nullptr;
  for (SimWorker* worker : m_workers) {
    if (worker->timer_us() && (first == nullptr || *worker->timer_us() < *first->timer_us())) {
      first = worker;
    }
  }
  if (first == nullptr || *first->timer_us() > limit_us) {
    return false;
  }
  m_now_us = std::max(m_now_us, *first->timer_us());
  first->wake();
  return true;
}

void SimEnv::run_until_idle() {
  const bool workers_become_idle = becomes_idle(100'000'000);
  VTKV_ASSERT(workers_become_idle);
}

void SimEnv::advance(std::chrono::microseconds time) {
  const uint64_t until = m_now_us + static_cast<uint64_t>(time.count());
  run_until_idle();
  while (fire_timer(until)) {
    run_until_idle();
  }
  m_now_us = std::max(m_now_us, until);
}

bool SimEnv::becomes_idle(uint64_t steps_most, std::chrono::microseconds time) {
  const uint64_t until = m_now_us + static_cast<uint64_t>(time.count());
  while (steps_most > 0 && (run_one() || (time.count() > 0 && fire_timer(until)))) {
    --steps_most;
  }
  m_now_us = std::max(m_now_us, until);
  return steps_most > 0;
}

void SimEnv::report_deadlock() {
  std::fprintf(stderr, "sim_env: deadlock: a waiter's predicate is false and nothing will ever run again\n");
  for (SimWorker* worker : m_workers) {
    const bool in_step = worker->resumes_at() != UINT64_MAX;
    std::fprintf(stderr, "  worker %s is %s\n", worker->name().c_str(), in_step ? "in the middle of a step" : "idle");
  }
  std::abort();
}

}  // namespace vtkv
