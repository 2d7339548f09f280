// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/kv_workload.h"

#include <algorithm>
#include <deque>
#include <span>

#include "vtkv/testing/at_rest.h"
#include "vtkv/testing/log_trace.h"

namespace vtkv {

namespace {

constexpr char kDirectory[] = "/db";
constexpr char kSlotPath[] = "/slots";
constexpr char kCountKey[] = "~batches";  // every batch says which one it is
constexpr char kCollectedKeys[] = "\x7f";  // behind what the history knows of
constexpr uint64_t kInlineKeys = 12;

std::string external_value(uint64_t slot, uint64_t tag) { return std::to_string(slot) + ":" + std::to_string(tag); }

void parse_external(const std::string& value, uint64_t* slot, uint64_t* tag) {
  *slot = std::stoull(value);
  *tag = std::stoull(value.substr(value.find(':') + 1));
}

bool is_external(const std::string& key) { return key.front() == 'x'; }

}  // namespace

class KvWorkload::Batch final : public Submission {
 public:
  Batch(KvWorkload* workload, size_t number) : m_workload(workload), m_number(number) {}

  void sequenced(SequenceNumber sequence) override {
    std::string text = std::to_string(sequence);
    for (uint64_t slot : freed) {
      m_workload->m_slots->free_at(sequence, slot);
      text += " " + std::to_string(slot);
    }
    m_workload->m_env->mark(kFreedMark + m_number, std::move(text));
  }
  void durable(const Status& status) override {
    if (status.ok()) {
      m_workload->m_env->mark(kDurableMark + m_number, std::to_string(last_sequence));
    }
    delete this;
  }

  std::vector<uint64_t> freed;

 private:
  KvWorkload* const m_workload;
  const size_t m_number;
};

// Counts how often it collected, in one of a few keys: a state that changes without a sequence number of its own, as a
// container's does when slots are punched. So a memtable that is closed twice at one sequence may have two versions of
// a key, and the later counts.
class KvWorkload::Participant final : public CheckpointParticipant {
 public:
  explicit Participant(SimEnv* env) : m_env(env) {}

  Status load(const TreeReader& tree) override {
    const auto iterator = tree(kCollectedKeys, "\x80");
    for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
      m_loaded[std::string(iterator->key())] = std::stoull(std::string(iterator->value()));
    }
    for (const auto& [key, number] : m_loaded) {
      m_collected = std::max(m_collected, number);
    }
    return iterator->status();
  }
  Status replay(SequenceNumber, std::string_view) override { return {}; }
  void collect(SequenceNumber as_of, std::vector<CheckpointEntry>* entries) override {
    const bool again = as_of == m_last_as_of;
    m_last_as_of = as_of;
    ++m_calls;
    if (again ? !m_has_collected : m_calls % kCallsPerKey != 0) {
      m_has_collected = false;
      return;
    }
    m_key += again ? 0 : 1;
    m_has_collected = true;
    const std::string key = kCollectedKeys + std::to_string(m_key % kKeys);
    entries->push_back({key, std::to_string(++m_collected)});
    // What is collected again at one sequence is not told from the first when that becomes durable.
    m_not_durable.push_back({again ? as_of + 1 : as_of, key, m_collected});
  }
  void checkpoint_durable(SequenceNumber as_of) override {
    for (; !m_not_durable.empty() && m_not_durable.front().as_of <= as_of; m_not_durable.pop_front()) {
      m_env->mark(kCollectedMark + m_not_durable.front().number, m_not_durable.front().key);
    }
  }

  // By key.
  const std::map<std::string, uint64_t>& loaded() const { return m_loaded; }

 private:
  static constexpr uint64_t kCallsPerKey = 4;  // the others leave the tree as it is
  static constexpr uint64_t kKeys = 3;
  struct Collected {
    SequenceNumber as_of;
    std::string key;
    uint64_t number;
  };

  SimEnv* const m_env;
  std::map<std::string, uint64_t> m_loaded;
  uint64_t m_collected = 0;  // the last number
  uint64_t m_calls = 0;
  uint64_t m_key = 0;
  SequenceNumber m_last_as_of = 0;
  bool m_has_collected = false;  // the last time
  std::deque<Collected> m_not_durable;
};

KvWorkload::KvWorkload(SimEnv* env, const KvWorkloadSettings& settings, KvHistory history)
    : m_env(env), m_settings(settings), m_history(std::move(history)) {}

KvWorkload::~KvWorkload() { close(); }

Options KvWorkload::options_for(SimEnv* env, const KvWorkloadSettings& settings) {
  Options options;
  options.geometry = {.log_segment_bytes = settings.log_segment_bytes,
                      .initial_log_segments = 3,
                      .zone_bytes = 32 << 10,
                      .block_bytes = 4096};
  options.memtable_bytes = settings.memtable_bytes;
  options.growth_factor = options.runs_per_level = 2;
  options.purge_tombstones_min = 1;
  options.stitch_threshold_bytes = 0;  // runs of a few blocks: all contiguous blocks count
  options.value_separation_bytes = settings.value_separation_bytes;
  options.fragmented_values_min = 1;  // there are few values to be relocated
  options.space_amplification_target = settings.space_amplification_target;
  options.primed_bytes_per_commit = settings.primed_bytes_per_commit;
  options.io_depth = settings.io_depth;
  options.gc_lookup_cost_bytes = settings.gc_lookup_cost_bytes;
  FileSystemInfo info;
  options.single_flush = env->file_system_info("/", &info).ok() && info.single_flush;
  return options;
}

Status KvWorkload::create(SimEnv* env, const KvWorkloadSettings& settings) {
  VTKV_RETURN_IF_ERROR(SlotFile::create(env, kSlotPath, settings.slots));
  VTKV_RETURN_IF_ERROR(env->sync_directory("/"));
  Options options = options_for(env, settings);
  options.compress_blocks = !settings.upgraded;
  return DB::create(env, kDirectory, options);
}

Status KvWorkload::upgrade(SimEnv* env, const KvWorkloadSettings& settings) {
  bool changed = false;
  return settings.upgraded ? DB::upgrade(env, kDirectory, options_for(env, settings), &changed) : Status();
}

std::string KvWorkload::open(size_t at_least, const KvCollected& collected_at_least) {
  if (const Status status = SlotFile::open(m_env, kSlotPath, &m_slots); !status.ok()) {
    return status.to_string();
  }
  Options options = options_for(m_env, m_settings);
  options.external_store = m_slots.get();
  m_participant = std::make_unique<Participant>(m_env);
  options.participant = m_participant.get();
  if (const Status status = DB::open(m_env, kDirectory, options, &m_db); !status.ok()) {
    return "open: " + status.to_string();
  }
  for (const auto& [key, number] : collected_at_least) {
    const auto found = m_participant->loaded().find(key);
    if (found == m_participant->loaded().end() || found->second < number) {
      return "what was collected as number " + std::to_string(number) + " is durable; " +
             (found == m_participant->loaded().end() ? "nothing" : "number " + std::to_string(found->second)) +
             " was loaded";
    }
  }
  KvEntries found;
  bool backward_agrees = false;
  if (const Status status = read_entries(*m_db, "", "\x7f", nullptr, &found, &backward_agrees); !status.ok()) {
    return "read: " + status.to_string();
  }
  if (!backward_agrees) {
    return "reading backward gives something else than reading forward";
  }
  const size_t batches = found.contains(kCountKey) ? std::stoull(found[kCountKey]) : 0;
  if (batches < at_least) {
    return "batch " + std::to_string(at_least) + " was acknowledged; only " + std::to_string(batches) + " are there";
  }
  if (batches > m_history.size()) {
    return "batch " + std::to_string(batches) + " is there; only " + std::to_string(m_history.size()) +
           " were submitted";
  }
  m_history.truncate(batches);
  if (const std::string text = difference(m_history.after(batches), found); !text.empty()) {
    return "after " + std::to_string(batches) + " batches: " + text;
  }
  if (const std::string text = check_slots(); !text.empty()) {
    return text;
  }
  m_env->mark(kOpenedMark + batches);
  return {};
}

std::string KvWorkload::check_slots() {
  for (const auto& [key, value] : m_history.after(m_history.size())) {
    if (!is_external(key)) {
      continue;
    }
    uint64_t slot = 0;
    uint64_t tag = 0;
    parse_external(value, &slot, &tag);
    m_next_tag = std::max(m_next_tag, tag + 1);
    bool holds = false;
    Status status;
    for (int tries = 0; tries < kReadTries && !holds; ++tries) {
      status = m_slots->holds(slot, tag, &holds);
    }
    if (!status.ok()) {
      return status.to_string();
    }
    if (!holds) {
      return "slot " + std::to_string(slot) + " does not hold what key " + key + " says";
    }
    if (!m_slots->claim(slot)) {
      return "slot " + std::to_string(slot) + " has two owners";
    }
  }
  std::vector<std::string> findings;
  m_db->verify(&findings);
  return findings.empty() ? "" : "verify: " + findings.front();
}

void KvWorkload::add_external_put(const std::string& key, KvOperations* operations, Batch* batch) {
  uint64_t slot = 0;
  if (!m_slots->allocate(m_db->reuse_horizon(), &slot)) {
    m_db->advance_reuse_horizon();
    return;
  }
  const uint64_t tag = !m_settings.repeated_tags ? m_random() : m_random() % 4 == 0 ? m_random() % 3 + 1 : m_next_tag++;
  m_slots->add_write(batch, slot, tag);
  operations->push_back({KvOperation::Kind::put, key, external_value(slot, tag)});
}

// Short ones go to the tree, others stay in the log.
std::string KvWorkload::random_value() {
  constexpr size_t kSizes[] = {10, 10, 10, 40, 40, 300, 300, 3000};
  const char letter = static_cast<char>('a' + m_random() % 26);
  const size_t size = kSizes[m_random() % std::size(kSizes)];
  return std::string(std::min(size, m_settings.longest_value), letter);
}

// So many that the log cuts the batch into fragments.
void KvWorkload::add_large_puts(KvOperations* operations) {
  for (uint64_t bytes = 0; bytes < m_settings.log_segment_bytes; bytes += m_settings.longest_value) {
    const char letter = static_cast<char>('a' + m_random() % 26);
    const std::string key = "k" + std::to_string(100 + m_random() % kInlineKeys);
    operations->push_back({KvOperation::Kind::put, key, std::string(m_settings.longest_value, letter)});
  }
}

// Without external writes in a row of batches that nobody waits for.
KvOperations KvWorkload::random_operations(Batch* batch) {
  const KvEntries& before = m_history.after(m_history.size());
  KvOperations operations;
  std::set<std::string> external;  // touched by this batch
  const size_t count = m_random() % 4;
  for (size_t i = 0; i < count; ++i) {
    const std::string key = "k" + std::to_string(100 + m_random() % kInlineKeys);
    const std::string slot_key = "x" + std::to_string(m_random() % m_settings.external_keys);
    switch (m_random() % 8) {
      case 0:
      case 1:
        operations.push_back({KvOperation::Kind::put, key, random_value()});
        break;
      case 2:
        operations.push_back({KvOperation::Kind::remove, key, {}});
        break;
      case 3:
        operations.push_back({KvOperation::Kind::remove_range, key, "k" + std::to_string(100 + m_random() % 14)});
        break;
      default:
        if (m_unsynced_left == 0 && external.insert(slot_key).second) {
          if (m_random() % 4 == 0) {
            operations.push_back({KvOperation::Kind::remove, slot_key, {}});
          } else {
            add_external_put(slot_key, &operations, batch);
          }
        }
    }
  }
  if (m_settings.large_batches && m_random() % 16 == 0) {
    add_large_puts(&operations);
  }
  for (const KvOperation& operation : operations) {
    const auto old = before.find(operation.key);
    if (is_external(operation.key) && old != before.end()) {
      uint64_t slot = 0;
      uint64_t tag = 0;
      parse_external(old->second, &slot, &tag);
      batch->freed.push_back(slot);
    }
  }
  operations.push_back({KvOperation::Kind::put, kCountKey, std::to_string(m_history.size() + 1)});
  return operations;
}

void KvWorkload::submit_one() {
  // Rows of them fill segments that are not primed.
  m_unsynced_left = m_unsynced_left > 0 ? m_unsynced_left - 1 : m_random() % 8 == 0 ? 3 + m_random() % 6 : 0;
  const size_t number = m_history.size() + 1;
  auto* batch = new Batch(this, number);
  const KvOperations operations = random_operations(batch);
  apply(operations, &batch->batch);
  m_history.append(operations);
  m_env->mark(kSubmittedMark + number);
  if (batch->data.empty() && batch->freed.empty() && (m_unsynced_left > 0 || m_random() % 3 == 0)) {
    (void)m_db->write(std::move(batch->batch), {.sync = false});
    delete batch;
    return;
  }
  batch->relaxed = m_settings.relaxed && number % 2 == 0;
  m_db->submit(batch);
}

// Moves what the tree holds, or changes what its next compactions move.
void KvWorkload::reshape() {
  constexpr uint64_t kThresholds[] = {0, 8 << 10, kNeverStitch};
  m_db->set_stitch_threshold(kThresholds[m_random() % std::size(kThresholds)]);
  if (m_random() % 2 == 0) {
    (void)m_db->defragment({.gain_min = 0, .bytes_per_step = 32 << 10, .bytes_per_second = 0});
  }
}

// A scan relocates what it finds fragmented.
void KvWorkload::scan() {
  const auto iterator = m_db->new_iterator("", "\x7f");
  for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
  }
}

void KvWorkload::compare(const char* what, size_t batches, const KvEntries& found) {
  if (std::string text = difference(m_history.after(batches), found); !text.empty() && m_wrong.empty()) {
    m_wrong = std::string(what) + ", after " + std::to_string(batches) + " batches: " + text;
  }
}

// A snapshot shows what was there when it was taken, whatever flushes and compactions went on.
void KvWorkload::change_snapshot() {
  if (!m_snapshot) {
    m_snapshot = m_db->take_snapshot();
    m_snapshot_batches = m_history.size();
    return;
  }
  KvEntries found;
  bool backward_agrees = true;
  if (read_entries(*m_db, "", "\x7f", m_snapshot, &found, &backward_agrees).ok()) {
    compare("a snapshot", m_snapshot_batches, found);
  }
  m_db->release_snapshot(m_snapshot);
  m_snapshot = nullptr;
}

// So does an iterator, from its making to its end.
void KvWorkload::change_iterator() {
  if (!m_iterator) {
    m_iterator = m_db->new_iterator("", "\x7f");
    m_iterator_batches = m_history.size();
    return;
  }
  KvEntries found;
  for (m_iterator->seek_to_first(); m_iterator->valid(); m_iterator->next()) {
    found.emplace(m_iterator->key(), m_iterator->value());
  }
  if (const Status status = m_iterator->status(); status.ok()) {
    compare("an iterator", m_iterator_batches, found);
  } else if (status.is_corruption() && m_wrong.empty()) {
    m_wrong = "an iterator: " + status.to_string();
  }
  m_iterator.reset();
}

void KvWorkload::settle() {
  if (m_snapshot) {
    change_snapshot();
  }
  if (m_iterator) {
    change_iterator();
  }
  KvEntries found;
  bool backward_agrees = true;
  const Status status = read_entries(*m_db, "", "\x7f", nullptr, &found, &backward_agrees);
  if (status.ok()) {
    compare("the database", m_history.size(), found);
  } else if (m_wrong.empty()) {
    m_wrong = "the database: " + status.to_string();
  }
  if (std::string text = unrest(m_env, *m_db); !text.empty() && m_wrong.empty()) {
    m_wrong = "at rest: " + text;
  }
}

void KvWorkload::wait_somehow() {
  const SequenceNumber last = m_db->statistics().last_sequence;
  switch (m_random() % 16) {
    case 0:
      (void)m_db->flush();
      if (last % 2 == 0) {
        (void)m_db->flush();  // at the same sequence
      }
      break;
    case 1:
      m_db->request_checkpoint();
      break;
    case 2:
      if (m_random() % 4 == 0) {
        (void)m_db->compact();
      } else {
        reshape();
      }
      break;
    case 3:
      m_db->advance_reuse_horizon();
      break;
    case 4:
      m_env->run_until_idle();
      break;
    case 5:
      change_snapshot();
      break;
    case 6:
      if (m_random() % 2 == 0) {
        (void)m_db->collect_garbage(m_random() % 3 == 0);
      }
      break;
    case 7:
    case 8:
    case 9:
      (void)m_db->wait_durable(last);
      break;
    case 10:
    case 11:
      m_db->release_snapshot(m_db->take_snapshot());  // wakes the collector, also in the middle of a flush
      break;
    case 12:
      scan();
      break;
    case 13:
      if (m_settings.holds_iterators) {
        change_iterator();
      }
      break;
    default:
      break;  // the next batch comes while this one is on its way
  }
}

void KvWorkload::run(size_t batches, uint64_t seed) {
  m_random.seed(seed);
  for (size_t i = 0; i < batches; ++i) {
    submit_one();
    wait_somehow();
  }
}

void KvWorkload::close() {
  m_iterator.reset();
  if (m_db && m_snapshot) {
    m_db->release_snapshot(m_snapshot);
  }
  m_snapshot = nullptr;
  m_db.reset();
  m_participant.reset();
  m_slots.reset();
}

void promised(std::span<const SimMark> marks, size_t* at_least, size_t* at_most) {
  for (const SimMark& mark : marks) {
    const uint64_t kind = mark_kind(mark);
    const size_t batches = mark.id - kind;
    if (kind == kSubmittedMark) {
      *at_most = std::max(*at_most, batches);
    } else if (kind == kOpenedMark || kind == kDurableMark) {
      *at_least = std::max(*at_least, batches);
    }
  }
}

KvCollected collected(std::span<const SimMark> marks, KvCollected before) {
  for (const SimMark& mark : marks) {
    if (mark_kind(mark) == kCollectedMark) {
      uint64_t& number = before[mark.text];
      number = std::max(number, mark.id - kCollectedMark);
    }
  }
  return before;
}

}  // namespace vtkv
