// What becomes of a checkpoint or a merge that fails, of what it wrote, and of the work that comes after it.
#include <algorithm>

#include "vtkv/tree/tree_impl.h"

namespace vtkv {

Status TreeImpl::failure() const {
  std::lock_guard lock(m_lock);
  return m_failure;
}

Status TreeImpl::fail(Status status) {
  std::lock_guard lock(m_lock);
  if (m_failure.ok()) {
    m_failure = status;
  }
  return status;
}

Status TreeImpl::checkpoint_failed(const Runs& runs, Status status, bool final) {
  if (!m_options.mutations.free_doubtful_runs) {
    std::lock_guard lock(m_lock);
    if (m_doubtful.empty() || m_doubtful.back() != runs) {
      m_doubtful.push_back(runs);
    }
  }
  return final ? fail(std::move(status)) : status;
}

Status TreeImpl::sync_zones() {
  Status status = m_reader.file().sync();
  if (status.ok()) {
    status = m_syncs.check();
  }
  return status.ok() ? status : fail(std::move(status));
}

// A snapshot that was taken since is above everything in the inputs, as for a merge under way.
Status TreeImpl::install_unlisted(bool* did) {
  Unlisted unlisted;
  const auto next = [&](const Runs& runs, const std::set<uint64_t>& busy) {
    for (const Unlisted& one : m_unlisted) {
      const auto place = std::search(runs.begin(), runs.end(), one.inputs.begin(), one.inputs.end());
      if (place != runs.end() && std::none_of(one.inputs.begin(), one.inputs.end(), [&](const auto& run) {
            return busy.contains(run->location().run_id);
          })) {
        unlisted = one;
        return MergeChoice{static_cast<size_t>(place - runs.begin()), one.inputs.size(), 0};
      }
    }
    return MergeChoice();
  };
  *did = false;
  for (Claim claimed; claim(next, &claimed); *did = true) {
    const Status status = install_merge(unlisted.inputs, unlisted.outputs, unlisted.values);
    give_up(claimed, status);
    VTKV_RETURN_IF_ERROR(status);
  }
  return {};
}

std::vector<TreeImpl::Unlisted> TreeImpl::take_useless_unlisted(const Runs& current) {
  std::vector<Unlisted> useless;
  std::erase_if(m_unlisted, [&](Unlisted& one) {
    const auto place = std::search(current.begin(), current.end(), one.inputs.begin(), one.inputs.end());
    if (place != current.end()) {
      return false;
    }
    useless.push_back(std::move(one));
    return true;
  });
  return useless;
}

Status TreeImpl::flushed_run(const MemTable& memtable, const std::vector<SequenceNumber>& snapshots, ValueDelta* delta,
                             std::shared_ptr<const Run>* run) {
  UnlistedFlush& last = m_unlisted_flush;
  if (last.memtable != &memtable || last.last_sequence != memtable.last_sequence() ||
      last.entries != memtable.entries()) {
    last = {};
    VTKV_RETURN_IF_ERROR(write_run(memtable, snapshots, delta, run));
    VTKV_RETURN_IF_ERROR(*run ? sync_zones() : Status());
    last = {&memtable, memtable.last_sequence(), memtable.entries(), *run, *delta};
  }
  *run = last.run;
  *delta = last.values;
  return {};
}

// --- merges -------------------------------------------------------------------------------------------

SnapshotSource TreeImpl::listed(const SnapshotSource& snapshots) const {
  return m_options.mutations.list_snapshots_early ? SnapshotSource(snapshots()) : snapshots;
}

void TreeImpl::give_up(const Claim& claimed, const Status& status) {
  const bool puts_aside = is_put_aside(status);
  std::lock_guard lock(m_lock);
  for (const auto& run : claimed.inputs) {
    m_busy.erase(run->location().run_id);
    if (puts_aside) {
      m_put_aside[run->location().run_id] = true;
    }
  }
  if (puts_aside) {
    m_put_aside_state = {status, m_put_aside_state.failures + 1};
    m_debt_bytes = debt_of(m_current->runs());
  }
}

bool TreeImpl::is_put_aside(const Status& status) {
  return status.is_corruption() || status.code() == Status::Code::io_error;
}

Tree::PutAside TreeImpl::put_aside() const {
  std::lock_guard lock(m_lock);
  return m_put_aside_state;
}

void TreeImpl::try_put_aside_again() {
  std::lock_guard lock(m_lock);
  if (m_put_aside.empty()) {
    return;
  }
  for (auto& [id, waits] : m_put_aside) {
    waits = false;
  }
  m_debt_bytes = debt_of(m_current->runs());
}

void TreeImpl::forget_put_aside(const Runs& current) {
  std::erase_if(m_put_aside, [&](const auto& entry) {
    return std::none_of(current.begin(), current.end(),
                        [&](const auto& run) { return run->location().run_id == entry.first; });
  });
  if (m_put_aside.empty()) {
    m_put_aside_state.status = Status();
  }
}

// Writers are slowed for what merges can still do, and for nothing else.
uint64_t TreeImpl::debt_of(const Runs& runs) const {
  Runs rest = runs;
  std::erase_if(rest, [this](const auto& run) {
    const auto found = m_put_aside.find(run->location().run_id);
    return found != m_put_aside.end() && found->second;
  });
  return vtkv::merge_debt(rest, m_shape);
}

// Writing on is no use when the result could not be made durable.
Status TreeImpl::go_on() const {
  return m_stop.load(std::memory_order_relaxed) ? Status::busy("the database is being closed") : failure();
}

}  // namespace vtkv
