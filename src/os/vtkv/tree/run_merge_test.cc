#include "vtkv/tree/run_merge.h"

#include <gtest/gtest.h>

#include <optional>

#include "vtkv/mem/memtable.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/tree/filter_merge.h"
#include "vtkv/util/hash.h"

namespace vtkv {
namespace {

class RunMergeTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ZoneFile::create(&m_env, "/tree").ok());
    std::shared_ptr<ZoneFile> file;
    ASSERT_TRUE(ZoneFile::open(&m_env, "/tree", 64 << 10, &file).ok());
    m_reader.emplace(file, std::make_shared<BlockCache>(0));
  }
  std::shared_ptr<const vtkv::Run> write(const MemTable& table) {
    RunWriter::Settings settings;
    settings.run_id = ++m_run_id;
    settings.filter_bits = m_filter_bits;
    RunWriter writer(&m_env, *m_reader, settings);
    const auto iterator = table.new_iterator();
    for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
      EXPECT_TRUE(writer.add(iterator->entry()).ok());
    }
    std::shared_ptr<const vtkv::Run> run;
    EXPECT_TRUE(writer.finish(std::make_shared<RangeRemovals>(), &run).ok());
    return run;
  }

  SimEnv m_env{{.seed = 1, .record = false}};
  std::optional<SpanReader> m_reader;
  uint64_t m_run_id = 0;
  int m_filter_bits = 24;
};

TEST_F(RunMergeTest, MergerGivesOneOrderOverAllSources) {
  MemTable first, second;
  second.put(1, "a", "");
  second.put(2, "b", "");
  first.put(3, "a", "");
  first.put(4, "c", "");
  std::vector<std::unique_ptr<EntryIterator>> sources;
  sources.push_back(first.new_iterator());
  sources.push_back(second.new_iterator());
  EntryMerger merger(std::move(sources));
  std::string order;
  for (merger.seek_to_first(); merger.valid(); merger.next()) {
    order += std::string(merger.entry().key) + std::to_string(merger.entry().sequence) + " ";
  }
  EXPECT_EQ(order, "a3 a1 b2 c4 ");
  EXPECT_TRUE(merger.status().ok());
}

TEST_F(RunMergeTest, ASourceThatFailsEndsTheMerge) {
  MemTable table;
  for (SequenceNumber s = 1; s <= 3000; ++s) {
    table.put(s, "k" + std::to_string(s), std::string(100, 'v'));
  }
  const auto run = write(table);
  std::vector<std::unique_ptr<EntryIterator>> sources;
  sources.push_back(run->new_iterator(true));
  EntryMerger merger(std::move(sources));
  merger.seek_to_first();
  ASSERT_TRUE(merger.valid());
  m_env.fail_nth(SimCall::read, 1, Status::from_errno(EIO, "fault"), true);
  while (merger.valid()) {
    merger.next();
  }
  EXPECT_EQ(merger.status().code(), Status::Code::io_error);
}

TEST_F(RunMergeTest, OlderRunsKnowTheirKeysAndRanges) {
  MemTable table;
  table.put(1, "b1", "");
  table.put(2, "b5", "");
  table.put(3, "d", "");
  const OlderRuns older({write(table)}, 100);
  EXPECT_TRUE(older.may_hold("b5"));
  EXPECT_FALSE(older.may_hold("a"));
  EXPECT_FALSE(older.may_hold("e"));
  EXPECT_TRUE(older.may_hold_any("b", "c"));
  EXPECT_TRUE(older.may_hold_any("b5", "b6"));
  EXPECT_FALSE(older.may_hold_any("b2", "b5"));
  EXPECT_FALSE(older.may_hold_any("c", "d"));
  EXPECT_FALSE(older.may_hold_any("d1", "z"));
}

TEST_F(RunMergeTest, WithoutReadsLeftARangeMayHoldSomething) {
  MemTable table;
  table.put(1, "b", "");
  table.put(3, "d", "");
  const OlderRuns older({write(table)}, 1);
  EXPECT_FALSE(older.may_hold_any("c", "d"));
  EXPECT_TRUE(older.may_hold_any("c", "d"));
  EXPECT_FALSE(older.may_hold_any("e", "f"));
}

// Only runs whose fingerprints are too short for the merge are read; the rate holds either way.
TEST_F(RunMergeTest, FiltersAreMergedWithoutKeysWhereTheyAreLongEnough) {
  constexpr double kRate = 0.008;
  constexpr int kEach = 2000;
  const auto write_keys = [&](int from) {
    MemTable table;
    for (int i = from; i < from + kEach; ++i) {
      table.put(i + 1, "key" + std::to_string(i), "value");
    }
    return write(table);
  };
  const int enough = QuotientFilter::bits_needed(3 * kEach, kRate);
  m_filter_bits = enough;
  std::vector<std::shared_ptr<const vtkv::Run>> runs = {write_keys(0), write_keys(kEach)};
  for (const int bits : {enough, enough - 1, 0}) {
    m_filter_bits = bits;
    runs.push_back(write_keys(2 * kEach));
    EXPECT_EQ(runs.back()->filter().active(), bits > 0);
    QuotientFilter merged;
    uint64_t read = 0;
    ASSERT_TRUE(merge_filters(runs, enough + 1, kRate, &merged, &read).ok());
    EXPECT_EQ(read, bits == enough ? 0 : runs.back()->descriptor().bytes());
    EXPECT_EQ(merged.entries(), 3u * kEach);
    int wrong = 0;
    for (int i = 0; i < 6 * kEach; ++i) {
      const bool may = merged.may_contain(hash64("key" + std::to_string(i)));
      ASSERT_TRUE(may || i >= 3 * kEach);
      wrong += may && i >= 3 * kEach;
    }
    EXPECT_LE(wrong, 3 * kEach * kRate * 1.6);
    runs.pop_back();
  }
}

}  // namespace
}  // namespace vtkv
