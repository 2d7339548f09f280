// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/compaction/stitch_compaction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "vtkv/compaction/older_runs.h"
#include "vtkv/compaction/run_part_writer.h"
#include "vtkv/mem/memtable.h"
#include "vtkv/table/run_writer.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/util/hash.h"

namespace vtkv {
namespace {

using RunPointer = std::shared_ptr<const vtkv::Run>;

// What lies below the compactions of a test.
class Below final : public CompactionIterator::Older {
 public:
  explicit Below(bool any) : m_any(any) {}
  bool may_hold(std::string_view) const override { return m_any; }
  bool may_hold_any(std::string_view, std::string_view) const override { return m_any; }
  bool empty() const override { return !m_any; }

 private:
  const bool m_any;
};

std::string key_of(int number) { return "key" + std::to_string(10000 + number); }

class StitchCompactionTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ZoneFile::create(&m_env, "/tree").ok());
    std::shared_ptr<ZoneFile> file;
    ASSERT_TRUE(ZoneFile::open(&m_env, "/tree", 1 << 20, &file).ok());
    m_reader.emplace(file, std::make_shared<ReadCache>(0));
  }
  RunPointer write(const MemTable& table) {
    RunWriter::Settings settings;
    settings.run_id = ++m_run_id;
    settings.filter_bits = m_filter_bits;
    RunWriter writer(&m_env, *m_reader, settings);
    const auto iterator = table.new_iterator();
    for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
      EXPECT_TRUE(writer.add(iterator->entry()).ok());
    }
    std::vector<RangeTombstone> all;
    add_tombstones(table.range_tombstones(), &all);
    auto tombstones = std::make_shared<RangeTombstones>(std::move(all));
    RunPointer run;
    EXPECT_TRUE(writer.finish(std::move(tombstones), &run).ok());
    return run;
  }
  // Keys numbered [first, last), 100 bytes each, one put each.
  RunPointer write_keys(int first, int last, int step = 1) {
    MemTable table;
    for (int i = first; i < last; i += step) {
      table.put(++m_sequence, key_of(i), std::string(100, 'v'));
    }
    return write(table);
  }
  static void add_tombstones(const RangeTombstones& from, std::vector<RangeTombstone>* to) {
    from.for_each([&](const RangeTombstone& tombstone) { to->push_back(tombstone); });
  }
  Status try_compact(const std::vector<RunPointer>& runs, RunPointer* compacted) {
    std::vector<RangeTombstone> all;
    for (const auto& run : runs) {
      add_tombstones(*run->range_tombstones(), &all);
    }
    const RangeTombstones tombstones(std::move(all));
    const Below below(m_below);
    CompactionIterator compaction_iterator(&m_snapshots, &tombstones, &below);
    const auto left = compaction_iterator.tombstones_left();
    const KeyRange everything;
    const auto settings = [&] {
      RunWriter::Settings settings;
      settings.run_id = ++m_run_id;
      settings.filter_bits = 24;
      return settings;
    };
    RunPartWriter writer(&m_env, *m_reader, settings, UINT64_MAX, everything, *left);
    StitchCompaction compaction(runs, &compaction_iterator, m_policy, [](uint64_t) { return Status(); }, &writer);
    VTKV_RETURN_IF_ERROR(compaction.run());
    std::vector<RunPointer> parts;
    VTKV_RETURN_IF_ERROR(writer.finish(&parts));
    *compacted = parts.empty() ? nullptr : parts.front();
    m_stitched = writer.stitched_bytes();
    m_copied = writer.copied_bytes();
    m_filter_read = writer.filter_read_bytes();
    return {};
  }
  RunPointer compact(const std::vector<RunPointer>& runs) {
    RunPointer compacted;
    const Status status = try_compact(runs, &compacted);
    EXPECT_TRUE(status.ok()) << status.to_string();
    if (compacted) {
      std::vector<std::string> findings;
      compacted->verify(&findings);
      EXPECT_EQ(findings, std::vector<std::string>());
    }
    return compacted;
  }
  // "key@sequence" of every entry, tombstones with a minus before; checked to be the same backward.
  static std::string content(const RunPointer& run) {
    std::vector<std::string> forward, backward;
    const auto text = [](const Entry& entry) {
      return (entry.type == EntryType::tombstone ? "-" : "") + std::string(entry.key) + "@" +
             std::to_string(entry.sequence) + " ";
    };
    const auto iterator = run->new_iterator();
    for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
      forward.push_back(text(iterator->entry()));
    }
    for (iterator->seek_to_last(); iterator->valid(); iterator->previous()) {
      backward.push_back(text(iterator->entry()));
    }
    EXPECT_TRUE(iterator->status().ok());
    std::reverse(backward.begin(), backward.end());
    EXPECT_EQ(forward, backward);
    std::string all;
    for (const std::string& one : forward) {
      all += one;
    }
    return all;
  }
  // Compacts with every threshold; the contents must be the same. The last one stays in m_stitched.
  std::string content_at_any_threshold(const std::vector<RunPointer>& runs) {
    m_policy.bytes_min = kNeverStitch;
    const RunPointer copied = compact(runs);
    const std::string expected = copied ? content(copied) : "";
    EXPECT_EQ(m_stitched, 0u);
    for (const uint64_t bytes_min : {64 << 10, 12 << 10, 0}) {
      m_policy.bytes_min = bytes_min;
      const RunPointer compacted = compact(runs);
      EXPECT_EQ(compacted ? content(compacted) : "", expected) << bytes_min;
    }
    return expected;
  }

  SimEnv m_env{{.seed = 1, .record = false}};
  std::optional<SpanReader> m_reader;
  uint64_t m_run_id = 0;
  SequenceNumber m_sequence = 0;
  std::vector<SequenceNumber> m_snapshots;
  bool m_below = false;
  StitchPolicy m_policy;
  uint64_t m_stitched = 0, m_copied = 0, m_filter_read = 0;
  int m_filter_bits = 24;
};

TEST_F(StitchCompactionTest, RunsThatDoNotOverlapAreReadForTheirKeysAlone) {
  const RunPointer low = write_keys(0, 3000), high = write_keys(3000, 6000);
  const uint64_t reads = m_env.calls(SimCall::read);
  m_policy.bytes_min = 64 << 10;
  RunPointer compacted;
  ASSERT_TRUE(try_compact({high, low}, &compacted).ok());
  EXPECT_EQ(m_filter_read, m_stitched);
  EXPECT_LE(m_env.calls(SimCall::read) - reads, 2 * m_stitched / (512 << 10) + 12);
  EXPECT_EQ(m_copied, 0u);
  EXPECT_EQ(m_stitched, low->descriptor().entry_bytes() + high->descriptor().entry_bytes());
  EXPECT_EQ(compacted->entries(), 6000u);
  EXPECT_EQ(content_at_any_threshold({high, low}).size(), content(compacted).size());
}

TEST_F(StitchCompactionTest, OnlyTheBlocksThatOverlapAreCopied) {
  const RunPointer all = write_keys(0, 10000), few = write_keys(5000, 5010);
  m_policy.bytes_min = 64 << 10;
  const RunPointer compacted = compact({few, all});
  EXPECT_LE(m_copied, 5u * 4096);
  EXPECT_GE(m_stitched, all->descriptor().entry_bytes() - 4u * 4096);
  EXPECT_EQ(compacted->entries(), 10000u);
  EXPECT_EQ(compacted->descriptor().slices.size(), all->descriptor().slices.size() + 2);
  m_policy.bytes_min = kNeverStitch;
  EXPECT_EQ(content(compact({few, all})), content(compacted));
}

TEST_F(StitchCompactionTest, ContiguousBlocksBelowTheThresholdAreCopied) {
  const RunPointer all = write_keys(0, 3000), some = write_keys(0, 3000, 150);  // every fourth block or so
  m_policy.bytes_min = 64 << 10;
  compact({some, all});
  EXPECT_EQ(m_stitched, 0u);
  m_policy.bytes_min = 0;
  compact({some, all});
  EXPECT_GT(m_stitched, all->descriptor().entry_bytes() / 2);
  content_at_any_threshold({some, all});
}

TEST_F(StitchCompactionTest, ContiguousBlocksGoOnOverTheEndOfASpan) {
  const RunPointer all = write_keys(0, 9000);
  ASSERT_GT(all->descriptor().slices.size(), 1u);
  uint64_t greatest = 0;
  for (const SpanSlice& slice : all->descriptor().slices) {
    greatest = std::max<uint64_t>(greatest, slice.blocks.units * 4096);
  }
  m_policy.bytes_min = greatest + 1;  // no span alone
  compact({write_keys(20000, 20001), all});
  EXPECT_EQ(m_stitched, all->descriptor().entry_bytes());
}

TEST_F(StitchCompactionTest, StitchedSlicesCanBeCutAndStitchedAgain) {
  m_policy.bytes_min = 0;
  RunPointer run = write_keys(0, 4000);
  std::string expected;
  for (int round = 0; round < 40; ++round) {
    const int first = (round * 1237) % 3900;
    run = compact({write_keys(first, first + 5), run});
    EXPECT_EQ(run->entries(), 4000u);
    EXPECT_GT(m_stitched, m_copied);
  }
  RunPointer reopened;
  ASSERT_TRUE(vtkv::Run::open(*m_reader, run->location(), &reopened).ok());
  EXPECT_EQ(content(reopened), content(run));
  m_policy.bytes_min = kNeverStitch;
  EXPECT_EQ(content(compact({run})), content(run));
}

// The tombstone must not go while the version that it removes is stitched in.
TEST_F(StitchCompactionTest, AKeyAtABlocksEndIsNotSplitFromItsVersions) {
  MemTable older, newer;
  for (int i = 0; i < 2000; ++i) {
    older.put(++m_sequence, key_of(i), std::string(100, 'v'));
  }
  const RunPointer low = write(older);
  // Remove the first key of every block: the block before and this one are neighbours of a version's home.
  CompactionSource source(low.get());
  while (source.valid()) {
    if (source.at_block()) {
      newer.remove(++m_sequence, source.key());
      ASSERT_TRUE(source.open().ok());
    }
    ASSERT_TRUE(source.next().ok());
  }
  const std::string text = content_at_any_threshold({write(newer), low});
  EXPECT_EQ(text.find('-'), std::string::npos);
  EXPECT_EQ(text.find(key_of(0) + "@"), std::string::npos);
}

// From slice to slice it goes on; it does not begin to read ahead anew.
TEST_F(StitchCompactionTest, AScanReadsEachStitchedSliceAtOnce) {
  MemTable tables[2];
  for (int i = 0; i < 4000; ++i) {
    tables[i / 100 % 2].put(++m_sequence, key_of(i), std::string(100, 'v'));
  }
  m_policy.bytes_min = 0;
  const RunPointer run = compact({write(tables[1]), write(tables[0])});
  const uint64_t slices = run->descriptor().slices.size();
  ASSERT_GE(slices, 40u);
  const uint64_t before = m_env.calls(SimCall::read);
  const auto iterator = run->new_iterator();
  uint64_t entries = 0;
  for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
    ++entries;
  }
  EXPECT_EQ(entries, 4000u);
  EXPECT_LE(m_env.calls(SimCall::read) - before, 2 * slices + 10);  // the slice, and the index of its span
}

// One key whose versions fill many blocks.
TEST_F(StitchCompactionTest, VersionsThatSpanBlocksStayTogether) {
  MemTable table;
  table.put(++m_sequence, "a", "v");
  for (int i = 0; i < 500; ++i) {
    table.put(++m_sequence, "m", std::string(100, 'v'));
    if (i % 2 == 0) {
      m_snapshots.push_back(m_sequence);
    }
  }
  for (int i = 0; i < 2000; ++i) {
    table.put(++m_sequence, "z" + std::to_string(10000 + i), std::string(100, 'v'));
  }
  const RunPointer low = write(table);
  MemTable newer;
  newer.remove(++m_sequence, "m");
  newer.put(++m_sequence, "zz", "v");
  const RunPointer high = write(newer);
  for (int held = 0; held < 4; ++held) {
    content_at_any_threshold({high, low});
    m_below = !m_below;
    content_at_any_threshold({high, low});
    m_snapshots.resize(m_snapshots.size() / 4);
  }
  m_snapshots.clear();
  m_below = false;
  const std::string text = content_at_any_threshold({high, low});
  EXPECT_EQ(text.find("m@"), std::string::npos);
  EXPECT_NE(text.find("a@"), std::string::npos);
}

TEST_F(StitchCompactionTest, ARangeTombstoneDropsWholeBlocksUnread) {
  const RunPointer low = write_keys(0, 10000);
  MemTable table;
  table.remove_range(++m_sequence, key_of(1000), key_of(9000));
  const RunPointer high = write(table);
  m_policy.bytes_min = 64 << 10;
  const uint64_t reads = m_env.calls(SimCall::read);
  RunPointer compacted;
  ASSERT_TRUE(try_compact({high, low}, &compacted).ok());
  EXPECT_LE(m_env.calls(SimCall::read) - reads, 16u);
  // Two blocks at the ends of the range, and the rest of what they hold.
  EXPECT_LE(m_filter_read, low->descriptor().entry_bytes() / 4);
  EXPECT_EQ(compacted->entries(), 2000u);
  EXPECT_TRUE(compacted->range_tombstones()->empty());
  content_at_any_threshold({high, low});
}

TEST_F(StitchCompactionTest, ASnapshotKeepsWhatARangeTombstoneHides) {
  const RunPointer low = write_keys(0, 3000);
  m_snapshots = {m_sequence};
  MemTable table;
  table.remove_range(++m_sequence, key_of(100), key_of(2900));
  const RunPointer high = write(table);
  content_at_any_threshold({high, low});
  m_policy.bytes_min = 0;
  RunPointer compacted = compact({high, low});
  EXPECT_EQ(compacted->entries(), 3000u);
  EXPECT_FALSE(compacted->range_tombstones()->empty());
  // A snapshot in the middle of what was put: the older half is kept, not the younger one.
  m_snapshots = {1500};
  compacted = compact({high, low});
  EXPECT_EQ(compacted->entries(), 1500u + 100u);
  content_at_any_threshold({high, low});
}

TEST_F(StitchCompactionTest, WhatWasPutBehindARangeTombstoneIsStitched) {
  MemTable table;
  table.remove_range(++m_sequence, key_of(0), key_of(9000));
  const RunPointer low = write(table);
  const RunPointer high = write_keys(0, 3000);
  m_policy.bytes_min = 64 << 10;
  m_below = true;
  const RunPointer compacted = compact({high, low});
  EXPECT_EQ(m_copied, 0u);
  EXPECT_EQ(compacted->entries(), 3000u);
  EXPECT_FALSE(compacted->range_tombstones()->empty());
}

TEST_F(StitchCompactionTest, TombstonesAreCleanedUpWhereNothingLiesBelow) {
  MemTable table;
  for (int i = 0; i < 3000; ++i) {
    if (i >= 1000 && i < 1005) {
      table.remove(++m_sequence, key_of(i));
    } else {
      table.put(++m_sequence, key_of(i), std::string(100, 'v'));
    }
  }
  const RunPointer run = write(table);
  EXPECT_EQ(run->descriptor().doubtful(), 5u);
  m_policy.bytes_min = 64 << 10;
  m_below = true;
  EXPECT_EQ(compact({run})->entries(), 3000u);
  EXPECT_EQ(m_copied, 0u);
  m_below = false;
  EXPECT_EQ(compact({run})->entries(), 2995u);
  EXPECT_LE(m_copied, 3u * 4096);
}

TEST_F(StitchCompactionTest, BlocksThatMustMoveAreCopied) {
  const RunPointer run = write_keys(0, 10000);
  const Span& span = run->descriptor().spans[run->descriptor().slices[1].span];
  m_policy.bytes_min = 0;
  m_policy.must_move = [&](uint64_t offset, uint64_t bytes) {
    return offset < span.offset + span.bytes() && span.offset < offset + bytes;
  };
  const RunPointer compacted = compact({run});
  EXPECT_GE(m_copied, run->descriptor().slices[1].blocks.units * 4096u);
  EXPECT_LE(m_copied, (run->descriptor().slices[1].blocks.units + 4u) * 4096);
  for (const Span& now : compacted->descriptor().spans) {
    EXPECT_NE(now.id, span.id);
  }
  EXPECT_EQ(content(compacted), content(run));
}

TEST_F(StitchCompactionTest, ASourceThatFailsEndsTheCompaction) {
  const RunPointer low = write_keys(0, 3000), high = write_keys(0, 3000, 2);
  for (uint64_t n : {1, 2, 3}) {
    m_env.fail_nth(SimCall::read, n, Status::from_errno(EIO, "fault"), true);
    RunPointer compacted;
    EXPECT_EQ(try_compact({high, low}, &compacted).code(), Status::Code::io_error);
    m_env.clear_faults();
  }
}

TEST_F(StitchCompactionTest, OlderRunsKnowTheirKeysAndRanges) {
  MemTable table;
  table.put(1, "b1", "");
  table.put(2, "b5", "");
  table.put(3, "d", "");
  const OlderRuns older({{1, 0, {write(table)}}}, 100);
  EXPECT_TRUE(older.may_hold("b5"));
  EXPECT_FALSE(older.may_hold("a"));
  EXPECT_FALSE(older.may_hold("e"));
  EXPECT_TRUE(older.may_hold_any("b", "c"));
  EXPECT_TRUE(older.may_hold_any("b5", "b6"));
  EXPECT_FALSE(older.may_hold_any("b2", "b5"));
  EXPECT_FALSE(older.may_hold_any("c", "d"));
  EXPECT_FALSE(older.may_hold_any("d1", "z"));
}

TEST_F(StitchCompactionTest, WithoutReadsLeftARangeMayHoldSomething) {
  MemTable table;
  table.put(1, "b", "");
  table.put(3, "d", "");
  const OlderRuns older({{1, 0, {write(table)}}}, 1);
  EXPECT_FALSE(older.may_hold_any("c", "d"));
  EXPECT_TRUE(older.may_hold_any("c", "d"));
  EXPECT_FALSE(older.may_hold_any("e", "f"));
}

// What a pace was told, and how it ends the work.
struct Teller {
  uint64_t calls = 0, bytes = 0, calls_max = UINT64_MAX;
  CompactionPace pace() {
    return [this](uint64_t more) {
      bytes += more;
      return ++calls <= calls_max ? Status() : Status::busy("enough");
    };
  }
};

// Looking whether range tombstones may go, and writing the filter.
TEST_F(StitchCompactionTest, WhatComesBehindTheEntriesKeepsThePaceToo) {
  const RunPointer low = write_keys(0, 20000);
  Teller five{.calls_max = 5};
  const OlderRuns older({{1, 0, {low}}}, 1000, five.pace());
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(older.may_hold_any(key_of(i) + "x", key_of(i) + "y"), i >= 5);
  }
  EXPECT_EQ(older.status().code(), Status::Code::busy);

  for (const uint64_t calls_max : {UINT64_MAX, uint64_t{1}}) {
    Teller writing{.calls_max = calls_max};
    RunWriter::Settings settings;
    settings.run_id = ++m_run_id;
    settings.pace = writing.pace();
    settings.filter_bits = 40;
    RunWriter writer(&m_env, *m_reader, settings);
    const SpanSlice& slice = low->descriptor().slices[0];
    ASSERT_TRUE(writer.stitch(low->descriptor().spans[slice.span], slice.blocks).ok());
    for (uint64_t i = 0; i < 200'000; ++i) {
      writer.add_to_filter(hash64(std::to_string(i)));
    }
    RunPointer run;
    EXPECT_EQ(writer.finish(std::make_shared<RangeTombstones>(), &run).ok(), calls_max > 1);
    EXPECT_EQ(writing.bytes >= 200'000, calls_max > 1);
  }
}

}  // namespace
}  // namespace vtkv
