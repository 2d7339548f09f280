// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/move/online_mover.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/debug.h"

#define dout_context m_store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.move "

namespace swimstore {

using vtkv::Status;

namespace {

constexpr uint64_t kRestUsMax = 200'000;

}  // namespace

bool OnlineMover::Report::is_under_way() const {
  return state == std::string_view("moving") || state == std::string_view("measuring");
}

OnlineMover::OnlineMover(StoreContext& store, TransactionPipeline& pipeline) : m_store(store), m_pipeline(pipeline) {}

OnlineMover::~OnlineMover() { stop(); }

Status OnlineMover::check_divided() const {
  return m_store.cubes.size() > 1
             ? Status()
             : Status::invalid_argument("the store has one cube: there is none to move anything to");
}

Status OnlineMover::check_target(unsigned cube) const {
  VTKV_RETURN_IF_ERROR(check_divided());
  const CubeSet& cubes = m_store.cubes.set();
  if (cube == 0 || cube >= cubes.size()) {
    return Status::invalid_argument(
        fmt::format("placement groups are moved to cubes 1 to {}, not to cube {}", cubes.size() - 1, cube));
  }
  const auto missing = cubes.missing().find(cube);
  return missing == cubes.missing().end()
             ? Status()
             : Status::failed(fmt::format("cube {} is abandoned: {}. Choose another one", cube, missing->second));
}

std::vector<unsigned> OnlineMover::targets() const {
  std::vector<unsigned> targets;
  for (const auto& cube : m_store.cubes) {  // without those that are missing
    if (cube->number != 0) {
      targets.push_back(cube->number);
    }
  }
  return targets;
}

Status OnlineMover::find(const coll_t& cid, unsigned cube, CollectionRef* group) const {
  VTKV_RETURN_IF_ERROR(check_target(cube));
  if (!cid.is_pg()) {
    return Status::invalid_argument(fmt::format("{} is no placement group, and stays in cube 0", cid.to_str()));
  }
  *group = m_store.collections.find(cid);
  return *group ? Status() : Status::not_found(fmt::format("there is no placement group {}", cid.to_str()));
}

Status OnlineMover::move(const coll_t& cid, unsigned cube) {
  Task task{.to = cube};
  VTKV_RETURN_IF_ERROR(find(cid, cube, &task.group));
  return begin(std::move(task));
}

Status OnlineMover::balance(bool only_plan) {
  VTKV_RETURN_IF_ERROR(check_divided());
  return begin({.is_balance = true, .only_plan = only_plan});
}

Status OnlineMover::begin(Task task) {
  vtkv::MutexLock worker_lock(m_worker_lock);
  if (m_ended) {
    return Status::failed("the store is being unmounted");
  }
  {
    vtkv::MutexLock lock(m_lock);
    if (m_report.is_under_way()) {
      return Status::make(Status::Code::busy, "a move is under way: see swimstore status", EBUSY);
    }
    m_report = {.state = task.is_balance ? "measuring" : "moving"};
    if (!task.is_balance) {
      m_report.plan.push_back({.cid = task.group->cid, .to = task.to});
    }
    m_progress.reset();
    m_stop.cancel = false;
    m_task = std::move(task);
  }
  if (!m_worker) {
    m_worker = m_store.env->start_worker("move", 0, [this](vtkv::IoQueue&) { return step(); });
  } else {
    m_worker->wake();
  }
  return {};
}

void OnlineMover::cancel() {
  m_stop.cancel = true;
  vtkv::MutexLock lock(m_lock);
  m_woken.notify_all();
}

void OnlineMover::stop() {
  m_stop.leave = true;
  cancel();
  vtkv::MutexLock lock(m_worker_lock);
  m_ended = true;
  cancel();  // what has begun since, too
  m_worker.reset();  // waits for its step
}

vtkv::NextStep OnlineMover::step() {
  std::optional<Task> task;
  {
    vtkv::MutexLock lock(m_lock);
    task = std::exchange(m_task, std::nullopt);
  }
  if (task) {
    end(*task, run(*task, [this](uint64_t us) { rest(us); }));
  }
  return vtkv::NextStep::on_event();
}

void OnlineMover::rest(uint64_t us) {
  vtkv::MutexLock lock(m_lock);
  m_woken.wait_for(lock, std::chrono::microseconds(std::min(us, kRestUsMax)), [this] { return m_stop.cancel.load(); });
}

Status OnlineMover::run(const Task& task, const std::function<void(uint64_t)>& between) {
  return task.is_balance ? balance_all(task.only_plan, between) : move_one(task.group, task.to, {}, between);
}

void OnlineMover::end(const Task& task, const Status& status) {
  if (!status.ok()) {
    derr << status.message() << dendl;
  }
  vtkv::MutexLock lock(m_lock);
  m_report.error = status.ok() ? m_report.error : status.message();
  if (status.ok()) {
    m_report.state = task.only_plan ? "planned" : "done";
  } else {
    m_report.state = m_stop.cancel ? "stopped" : "failed";
  }
}

Status OnlineMover::move_one(const CollectionRef& group, unsigned to, const MoveLimits& limits,
                             const std::function<void(uint64_t)>& between) {
  const auto progress = std::make_shared<MoveProgress>();
  const auto move = std::make_shared<OnlineMove>(m_store, m_pipeline, group, to, between, limits, m_stop, *progress);
  {
    vtkv::MutexLock lock(m_lock);
    m_progress = progress;
    m_move = move;
  }
  const Status status = move->run();
  vtkv::MutexLock lock(m_lock);
  m_move.reset();
  m_report.done += status.ok() ? 1 : 0;
  m_report.failed += status.ok() || m_stop.cancel || m_stop.leave ? 0 : 1;
  return status;
}

Status OnlineMover::measure(const CollectionRef& group, const std::function<void(uint64_t)>& between, GroupSize* size) {
  MoveProgress progress;
  {
    SharedLock lock(group->lock);
    *size = {group->cid, group->record.home(), 0};
  }
  OnlineMove unmoved(m_store, m_pipeline, group, size->cube, between, {}, m_stop, progress);
  const int r = unmoved.measure(&size->slot_bytes);
  return r == 0 || r == -ENOENT || r == -ESTALE
             ? Status()
             : Status::make(Status::Code::failed,
                            r == -ECANCELED ? "it was stopped"
                                            : fmt::format("the extents of collection {} in cube {} cannot be read",
                                                          group->cid.to_str(), size->cube),
                            -r);
}

Status OnlineMover::balance_all(bool only_plan, const std::function<void(uint64_t)>& between) {
  const std::vector<unsigned> cubes = targets();
  std::vector<GroupSize> groups;
  for (const CollectionRef& group : m_store.collections.all()) {
    if (group->cid.is_pg() && !cubes.empty()) {
      VTKV_RETURN_IF_ERROR(measure(group, between, &groups.emplace_back()));
    }
  }
  const std::vector<GroupMove> plan = plan_balance(groups, cubes);
  {
    vtkv::MutexLock lock(m_lock);
    m_report.plan = plan;
    m_report.state = only_plan ? m_report.state : "moving";
  }
  for (const GroupMove& move : only_plan ? std::vector<GroupMove>() : plan) {
    const CollectionRef group = m_store.collections.find(move.cid);
    const Status status = group ? move_one(group, move.to, {}, between) : Status();
    if (!status.ok()) {
      if (m_stop.cancel || status.error_number() == ESHUTDOWN || status.error_number() == EIO) {
        return status;
      }
      // Others may go all the same; metadata that cannot be read is no group's own matter.
      derr << status.message() << dendl;
      vtkv::MutexLock lock(m_lock);
      m_report.error = status.message();
    }
  }
  return {};
}

OnlineMover::Report OnlineMover::report() const {
  vtkv::MutexLock lock(m_lock);
  Report report = m_report;
  if (m_progress) {
    report.phase = m_progress->phase;
    report.slot_bytes = m_progress->slot_bytes;
    report.objects = m_progress->objects;
    report.bytes = m_progress->bytes;
    report.passes = m_progress->passes;
    report.hashes_left = m_progress->hashes_left;
    report.blocked_us = m_progress->blocked_us;
  }
  return report;
}

void OnlineMover::make_way(Collection& collection, unsigned cube) {
  collection.give_up_copy("a transaction moved it");
  remove_copies(cube, collection.cid, collection.record.bits);
}

int OnlineMover::make_way(unsigned cube, const coll_t& cid, uint32_t bits) {
  remove_copies(cube, cid, bits);
  if (!m_store.unowned.meet(cube, cid, bits)) {
    return 0;
  }
  if (m_stop.leave) {
    return -ESHUTDOWN;
  }
  derr << "copies of a move that lie in cube " << cube << " in the range of collection " << cid
       << " cannot be removed; the next mount does it" << dendl;
  return -EIO;
}

void OnlineMover::remove_copies(unsigned cube, const coll_t& cid, uint32_t bits) {
  if (!m_store.unowned.meet(cube, cid, bits)) {
    return;
  }
  std::shared_ptr<OnlineMove> move;
  {
    vtkv::MutexLock lock(m_lock);
    move = m_move;
  }
  if (move) {
    move->make_way(cube, cid, bits);
  }
}

Status OnlineMover::move_now(const coll_t& cid, unsigned cube, const MoveLimits& limits,
                             const std::function<void()>& between) {
  CollectionRef group;
  VTKV_RETURN_IF_ERROR(find(cid, cube, &group));
  m_stop.cancel = false;
  return move_one(group, cube, limits, [&between](uint64_t) { between(); });
}

}  // namespace swimstore
