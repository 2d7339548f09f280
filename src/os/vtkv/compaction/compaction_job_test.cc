// SPDX-License-Identifier: LGPL-2.1-or-later
// Random steps over random sorted runs: no reader, of whatever snapshot, may notice one.
#include "vtkv/compaction/compaction_job.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>

#include "vtkv/mem/memtable.h"
#include "vtkv/testing/mutations.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/util/hash.h"

namespace vtkv {
namespace {

constexpr int kKeys = 60;

std::string key_of(uint64_t number) { return "key" + std::to_string(100 + number % kKeys); }

class JobHistory {
 public:
  explicit JobHistory(uint64_t seed) : m_random(seed) {
    EXPECT_TRUE(ZoneFile::create(&m_env, "/tree").ok());
    std::shared_ptr<ZoneFile> file;
    EXPECT_TRUE(ZoneFile::open(&m_env, "/tree", 64 << 10, &file).ok());
    m_context.emplace(CompactionJob::Context{
        &m_env, SpanReader(file, std::make_shared<ReadCache>(0)), [this] { return ++m_id; }, {}, {}, 1000});
    m_context->settings.filter_bits = 20;
    m_context->settings.pace = [](uint64_t) { return Status(); };
    m_context->policy.bytes_min = seed % 2 == 0 ? 0 : kNeverStitch;
  }

  // "" when nobody can tell the state after each step from the one before.
  std::string play(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      add_run();
      if (m_random() % 3 == 0) {
        m_snapshots.push_back(m_sequence);
      }
      for (uint64_t steps = m_random() % 4; steps > 0; --steps) {
        const auto before = views();
        if (const std::string fault = step(); !fault.empty()) {
          return fault;
        }
        if (views() != before) {
          return "a reader notices a step in round " + std::to_string(round);
        }
      }
      if (m_random() % 6 == 0) {
        m_snapshots.clear();
      }
    }
    return {};
  }
  uint64_t parts_most() const { return m_parts_most; }

 private:
  // A run of level 0, as a flush writes it.
  void add_run() {
    MemTable table;
    for (int i = 0; i < 25; ++i) {
      ++m_sequence;
      const uint64_t key = m_random() % kKeys;
      switch (m_random() % 8) {
        case 0:
        case 1:
          table.remove(m_sequence, key_of(key));
          break;
        case 2:
          table.remove_range(m_sequence, key_of(key), key_of(std::min<uint64_t>(kKeys - 1, key + m_random() % 8)));
          break;
        default:
          table.put(m_sequence, key_of(key), std::to_string(m_sequence) + std::string(m_random() % 900, 'v'));
      }
    }
    RunWriter::Settings settings = m_context->settings;
    settings.run_id = ++m_id;
    RunWriter writer(&m_env, m_context->reader, settings);
    const auto iterator = table.new_iterator();
    for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
      EXPECT_TRUE(writer.add(iterator->entry()).ok());
    }
    std::shared_ptr<const Run> run;
    auto tombstones = std::make_shared<RangeTombstones>(table.range_tombstones().within("", std::nullopt));
    EXPECT_TRUE(writer.finish(std::move(tombstones), &run).ok());
    m_runs.insert(m_runs.begin(), {settings.run_id, 0, {run}});
  }

  std::string step() {
    CompactionStep step;
    step.first = m_random() % m_runs.size();
    step.count = 1 + m_random() % (m_runs.size() - step.first);
    const bool reaches_last = step.first + step.count == m_runs.size();
    if (m_random() % 4 != 0) {
      step.range.begin = key_of(m_random() % kKeys);
    }
    if (m_random() % 4 != 0) {
      step.range.end =
          step.range.begin + (m_random() % 2 == 0 ? "x" : std::string(1, static_cast<char>('0' + m_random() % 10)));
      if (m_random() % 2 == 0) {
        step.range.end = key_of(kKeys - 1 - m_random() % 20);
      }
      if (*step.range.end <= step.range.begin) {
        step.range.end.reset();
      }
    }
    step.joins_oldest = step.count > 1 && m_random() % 2 == 0;
    step.level = reaches_last && m_random() % 2 == 0 ? kLastLevel : 1;
    step.part_bytes = 4096 * (1 + m_random() % 4);
    step.renews_filters = m_random() % 2 == 0;
    CompactionJob job(*m_context, m_runs, step, m_snapshots, nullptr);
    if (const Status status = job.run(); !status.ok()) {
      return status.to_string();
    }
    job.take_edit().apply(&m_runs);
    return check_parts();
  }

  std::string check_parts() {
    for (const SortedRun& run : m_runs) {
      m_parts_most = std::max<uint64_t>(m_parts_most, run.parts.size());
      for (size_t p = 0; p < run.parts.size(); ++p) {
        if (p > 0 && run.parts[p - 1]->end_key() > run.parts[p]->begin_key()) {
          return "parts overlap";
        }
        std::vector<std::string> findings;
        run.parts[p]->verify(&findings);
        if (!findings.empty()) {
          return findings.front();
        }
      }
    }
    return {};
  }

  // What each key is at each snapshot, and now.
  std::map<std::string, std::string> views() {
    std::map<std::string, std::string> result;
    std::vector<SequenceNumber> sequences = m_snapshots;
    sequences.push_back(UINT64_MAX);
    for (uint64_t number = 0; number < kKeys; ++number) {
      const std::string key = key_of(number);
      for (const SequenceNumber sequence : sequences) {
        result[key + "@" + std::to_string(sequence)] = get(key, sequence);
      }
    }
    return result;
  }
  std::string get(const std::string& key, SequenceNumber at_most) {
    for (const SortedRun& run : m_runs) {
      if (const auto* const part = run.find(key)) {
        Lookup found = Lookup::absent;
        std::string value;
        EXPECT_TRUE((*part)->get(key, hash64(key), at_most, &found, &value).ok());
        if (found != Lookup::absent) {
          return found == Lookup::found ? value : "";
        }
      }
    }
    return "";
  }

  SimEnv m_env{{.record = false}};
  std::mt19937_64 m_random;
  std::optional<CompactionJob::Context> m_context;
  SortedRuns m_runs;
  std::vector<SequenceNumber> m_snapshots;
  SequenceNumber m_sequence = 0;
  uint64_t m_id = 0;
  uint64_t m_parts_most = 0;
};

std::string play(uint64_t seeds) {
  uint64_t parts_most = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    JobHistory history(seed);
    if (const std::string fault = history.play(12); !fault.empty()) {
      return "seed " + std::to_string(seed) + ": " + fault;
    }
    parts_most = std::max(parts_most, history.parts_most());
  }
  EXPECT_GT(parts_most, 4u);
  return {};
}

TEST(CompactionJobTest, NoReaderNoticesAStep) { EXPECT_EQ(play(150), ""); }

class CompactionJobMutationTest : public testing::TestWithParam<Mutation> {};

TEST_P(CompactionJobMutationTest, IsNoticed) {
  VTKV_NEEDS_MUTATIONS();
  const ScopedMutation broken(GetParam());
  EXPECT_NE(play(150), "");
}

INSTANTIATE_TEST_SUITE_P(Rules, CompactionJobMutationTest,
                         testing::Values(Mutation::step_leaves_newest_out, Mutation::tombstone_dropped_above,
                                         Mutation::range_tombstone_not_cut),
                         [](const auto& rule) { return std::string(to_string(rule.param)); });

}  // namespace
}  // namespace vtkv
