// SPDX-License-Identifier: LGPL-2.1-or-later
// Opening what is left of a database (salvage.h).

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "vtkv/db/db_impl.h"
#include "vtkv/env/read_only_env.h"
#include "vtkv/iter/visible_iterator.h"
#include "vtkv/salvage.h"
#include "vtkv/table/salvaged.h"
#include "vtkv/tree/run_version.h"
#include "vtkv/util/hash.h"
#include "vtkv/wal/log_recovery.h"

namespace vtkv {

namespace {

// What one run has lost.
struct LostOfRun {
  bool everything = false, tombstones = false;
  std::vector<LostKeys> blocks;  // of entries, ascending; two may have a border in common

  // The last that begins at or before `key` reaches farthest of those that do.
  bool reaches_to(std::string_view lower, std::string_view key) const {
    const auto behind =
        std::partition_point(blocks.begin(), blocks.end(), [&](const LostKeys& lost) { return lost.first_key <= key; });
    return behind != blocks.begin() && lower <= std::prev(behind)->last_key;
  }
};

class LostEntriesImpl final : public LostEntries {
 public:
  LostEntriesImpl(std::shared_ptr<const ReadState> state, std::vector<LostKeys> lost,
                  const std::map<std::string, std::string>& values)
      : m_state(std::move(state)) {
    for (LostKeys& keys : lost) {
      const bool is_block = keys.kind == LostKeys::Kind::entries;
      m_ranges.push_back({!is_block, keys.first_key, keys.last_key, keys.entries, keys.reason});
      LostOfRun& of_run = m_lost[keys.run_id];
      of_run.everything |= keys.kind == LostKeys::Kind::run;
      of_run.tombstones |= keys.kind == LostKeys::Kind::tombstones;
      if (is_block) {
        of_run.blocks.push_back(std::move(keys));
      }
    }
    for (const auto& [key, reason] : values) {
      m_ranges.push_back({false, key, key, 1, reason});
      m_values.insert(key);
    }
  }

  const std::vector<Range>& ranges() const override { return m_ranges; }

  bool may_hold(std::string_view key, bool in_range) const override {
    if (m_ranges.empty() || m_values.contains(key)) {
      return !m_ranges.empty();
    }
    Lookup found = Lookup::absent;
    std::string value;
    for (const auto& memtable : m_state->memtables) {
      if (memtable->get(key, UINT64_MAX, &value) != Lookup::absent) {
        return false;
      }
    }
    const uint64_t key_hash = hash64(key);
    for (const auto& run : static_cast<const RunVersion&>(*m_state->version).runs()) {
      const auto lost = m_lost.find(run->location().run_id);
      if (lost != m_lost.end()) {
        const LostOfRun& of_run = lost->second;
        if (of_run.everything || (of_run.tombstones && in_range) ||
            (of_run.reaches_to(key, key) && run->filter().may_contain(key_hash))) {
          return true;
        }
      }
      if (!run->get(key, key_hash, UINT64_MAX, &found, &value).ok()) {
        return true;
      }
      if (found != Lookup::absent) {
        return false;  // it is newer than what older runs have lost
      }
    }
    return false;
  }

  bool may_hold_any(std::string_view lower, std::string_view upper) const override {
    const auto value = m_values.lower_bound(lower);
    return (value != m_values.end() && *value < upper) ||
           std::any_of(m_lost.begin(), m_lost.end(), [&](const auto& lost) {
             return lost.second.everything || lost.second.tombstones || lost.second.reaches_to(lower, upper);
           });
  }

 private:
  const std::shared_ptr<const ReadState> m_state;
  std::map<uint64_t, LostOfRun> m_lost;  // by run id
  std::set<std::string, std::less<>> m_values;  // keys of values that cannot be read
  std::vector<Range> m_ranges;
};

}  // namespace

// What lost tombstones and runs held, nobody knows; a block says how many entries are lost with it.
struct DbImpl::SalvageLoss {
  uint64_t unknown = 0, entries = 0;
  SequenceNumber end = 0;  // of what the log holds that can be read
  std::string reason;      // of the first

  bool is_any() const { return unknown + entries > 0; }
  bool is_less_than(const SalvageLoss& other) const {
    return end >= other.end && std::pair(unknown, entries) < std::pair(other.unknown, other.entries);
  }
};

Status DbImpl::salvage(Env* env, const std::string& directory, const Options& options, CheckpointCopy copy,
                       SalvagedDb* result, SalvageLoss* loss) {
  auto guard = std::make_unique<ReadOnlyEnv>(env);
  auto opened = std::make_unique<DbImpl>(guard.get(), directory, options);
  opened->m_read_only_env = std::move(guard);
  Salvaged salvaged{.copy = copy, .notes = {}, .lost = {}};
  VTKV_RETURN_IF_ERROR(opened->recover_without(&salvaged));
  *loss = {.unknown = 0, .entries = 0, .end = opened->m_states->visible(), .reason = {}};
  for (const LostKeys& lost : salvaged.lost) {
    loss->unknown += lost.kind != LostKeys::Kind::entries ? 1 : 0;
    loss->entries += lost.entries;
    loss->reason = salvaged.lost.front().reason;
  }
  const std::map<std::string, std::string> values = opened->lose_values(&salvaged);
  result->notes = std::move(salvaged.notes);
  result->lost = std::make_unique<LostEntriesImpl>(opened->m_states->current(), std::move(salvaged.lost), values);
  result->db = std::move(opened);
  return Status();
}

// One holds the lock on the directory, so that each ends before the next begins.
Status open_to_salvage(Env* env, const std::string& directory, SalvagedDb* salvaged, ExternalStore* external_store) {
  Options options;
  options.external_store = external_store;
  DbImpl::SalvageLoss of_newest, of_older;
  VTKV_RETURN_IF_ERROR(DbImpl::salvage(env, directory, options, CheckpointCopy::newest, salvaged, &of_newest));
  if (!of_newest.is_any()) {
    return Status();
  }
  salvaged->close();
  const Status status = DbImpl::salvage(env, directory, options, CheckpointCopy::older, salvaged, &of_older);
  if (status.ok() && of_older.is_less_than(of_newest)) {
    salvaged->notes.push_back(
        "went back to the checkpoint before, of which less is damaged, and read more of the log; of the "
        "newest this is: " +
        of_newest.reason);
    return Status();
  }
  salvaged->close();
  return DbImpl::salvage(env, directory, options, CheckpointCopy::newest, salvaged, &of_newest);
}

// As recover_read_only.
Status DbImpl::recover_without(Salvaged* salvaged) {
  VTKV_RETURN_IF_ERROR(open_files(salvaged));
  LogRecovery recovery = new_recovery();
  recovery.go_on_without(&salvaged->notes);
  VTKV_RETURN_IF_ERROR(recovery.read_chain());
  VTKV_RETURN_IF_ERROR(recovery.report_orphans());
  VTKV_RETURN_IF_ERROR(recovery.check_data(/*assume_written=*/true));
  recovery.cut_unreadable();
  return replay_to_read(recovery);
}

std::map<std::string, std::string> DbImpl::lose_values(Salvaged* salvaged) {
  std::map<std::string, std::string> lost;
  VisibleIterator iterator(m_states->current(), "", "", m_states->visible());
  std::string value;
  for (iterator.seek_to_first(); iterator.valid(); iterator.next()) {
    if (iterator.type() == EntryType::value_pointer) {
      if (const Status status = m_values->read(iterator.key(), iterator.value(), &value); !status.ok()) {
        lost[std::string(iterator.key())] = status.message();
      }
    }
  }
  if (!iterator.status().ok()) {
    salvaged->notes.push_back("the tree could be read at first, and no more: " +
                              std::string(iterator.status().message()));
  }
  SequenceNumber last = m_states->visible();
  for (const auto& [key, reason] : lost) {
    m_states->current()->memtables.front()->remove(++last, key);
  }
  m_states->set_visible(last);
  return lost;
}

}  // namespace vtkv
