// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs whose blocks contradict each other under good checksums: opening and verify() say which.

#include "vtkv/table/run.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "vtkv/span/span_writer.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/util/coding.h"
#include "vtkv/util/hash.h"

namespace vtkv {
namespace {

constexpr uint64_t kRunId = 7;

class RunDamageTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ZoneFile::create(&m_env, "/tree").ok());
    ASSERT_TRUE(ZoneFile::open(&m_env, "/tree", 1 << 20, &m_file).ok());
    m_reader.emplace(m_file, std::make_shared<ReadCache>(0));
  }

  // A span of one block.
  Span write(BlockBuilder builder) {
    SpanList list(m_file);
    SpanWriter writer(&m_env, m_file, ZoneStream::last, &list);
    BlockHandle handle;
    EXPECT_TRUE(writer.append(&builder, &handle).ok());
    EXPECT_TRUE(writer.finish().ok());
    m_pins.push_back(std::move(list));
    return m_pins.back().spans[0];
  }
  Span write(BlockKind kind, std::string body) {
    BlockBuilder builder(kind);
    builder.set_body(std::move(body));
    return write(std::move(builder));
  }
  RunLocation locate(const RunDescriptor& descriptor) {
    std::string body;
    descriptor.encode(&body);
    return {kRunId, 1, write(BlockKind::descriptor, body), 0};
  }
  // Its whole message when it does not open.
  std::string open(const RunLocation& location, std::shared_ptr<const vtkv::Run>* run = nullptr) {
    std::shared_ptr<const vtkv::Run> opened;
    const Status status = vtkv::Run::open(*m_reader, location, &opened);
    EXPECT_TRUE(status.ok() || status.is_corruption()) << status.to_string();
    if (run) {
      *run = opened;
    }
    return std::string(status.message());
  }
  std::string open(const RunDescriptor& descriptor) { return open(locate(descriptor)); }
  static RunDescriptor empty_run() {
    RunDescriptor descriptor;
    descriptor.run_id = kRunId;
    return descriptor;
  }

  using Lines = std::vector<std::pair<BlockRange, std::string>>;  // of an index, and what is behind each
  struct Edits {
    std::function<void(Lines*)> index = [](Lines*) {};
    std::function<void(BlockRange*)> slice = [](BlockRange*) {};
    QuotientFilter filter;
  };
  // What verify() finds in a run of one span, of these blocks of keys, when index and descriptor are edited.
  std::string findings(const std::vector<std::vector<Entry>>& blocks, Edits edits) {
    SpanList list(m_file);
    SpanWriter writer(&m_env, m_file, ZoneStream::flush, &list);
    RunDescriptor descriptor = empty_run();
    Lines lines;
    for (const std::vector<Entry>& entries : blocks) {
      BlockBuilder builder(BlockKind::entries);
      BlockRange range;
      for (const Entry& entry : entries) {
        builder.add(entry);
        range.add(entry, false);
      }
      BlockHandle handle;
      EXPECT_TRUE(writer.append(&builder, &handle, 64 << 10).ok());
      range.unit = handle.unit;
      range.units = handle.units;
      append_slice(0, range, &descriptor.slices);
      lines.emplace_back(std::move(range), "");
    }
    edits.index(&lines);
    edits.slice(&descriptor.slices[0].blocks);
    BlockBuilder index(BlockKind::index);
    for (const auto& [range, behind] : lines) {
      std::string line;
      range.encode(&line);
      line += behind;
      index.add({range.first_key, range.first_sequence, EntryType::value, line});
    }
    BlockHandle handle;
    EXPECT_TRUE(writer.append(&index, &handle).ok());
    EXPECT_TRUE(writer.finish().ok());
    list.spans[0].index_unit = handle.unit;
    list.spans[0].index_units = handle.units;
    descriptor.spans = list.spans;
    const RunLocation location = locate(descriptor);
    const vtkv::Run run(*m_reader, location, descriptor,
                        std::make_shared<RangeTombstones>(std::vector<RangeTombstone>()),
                        std::make_shared<const QuotientFilter>(std::move(edits.filter)));
    std::vector<std::string> found;
    run.verify(&found);
    std::string all;
    for (const std::string& one : found) {
      EXPECT_EQ(one.find("run 7 of /tree: "), 0u) << one;
      all += one.substr(16) + ";";
    }
    return all;
  }

  SimEnv m_env{{.record = false}};
  std::shared_ptr<ZoneFile> m_file;
  std::optional<SpanReader> m_reader;
  std::vector<SpanList> m_pins;
  const std::vector<std::vector<Entry>> m_blocks{{{"a", 1, EntryType::value, "1"}, {"b", 2, EntryType::value, "2"}},
                                                 {{"c", 3, EntryType::value, "3"}, {"d", 4, EntryType::value, "4"}}};
};

// ---- opening

TEST_F(RunDamageTest, WhatLiesOutsideTheFileIsNoRun) {
  const RunLocation good = locate(empty_run());
  EXPECT_EQ(open(good), "ok");
  for (int wrong = 0; wrong < 4; ++wrong) {
    RunLocation location = good;
    switch (wrong) {
      case 0:
        location.span.offset += 1;
        break;
      case 1:
        location.span.offset = uint64_t{1} << 40;
        break;
      case 2:
        location.span.units = 1 << 20;
        break;
      default:
        location.unit = location.span.units;
    }
    EXPECT_EQ(open(location), "run 7 does not lie in /tree") << wrong;
  }
}

TEST_F(RunDamageTest, DescriptorMustBeWellFormedAndTheRuns) {
  EXPECT_EQ(open({kRunId, 1, write(BlockKind::descriptor, "junk"), 0}),
            "descriptor of run 7 in /tree: a run's descriptor is malformed");
  RunDescriptor other = empty_run();
  other.run_id = 8;
  EXPECT_EQ(open(other), "descriptor of run 7 in /tree: it describes run 8");
}

TEST_F(RunDamageTest, RangeTombstonesMustBeWellFormed) {
  const auto value = [](std::string_view end, uint32_t count, std::vector<uint64_t> sequences) {
    std::string bytes;
    put_length_prefixed(&bytes, end);
    put_varint32(&bytes, count);
    for (const uint64_t sequence : sequences) {
      put_varint64(&bytes, sequence);
    }
    return bytes;
  };
  std::string only_end;
  put_length_prefixed(&only_end, "z");
  const std::pair<std::string, bool> values[] = {
      {value("z", 2, {9, 3}), true},
      {"", false},
      {only_end, false},
      {value("a", 1, {9}), false},
      {value("z", 2, {9}), false},
      {value("z", 1, {0}), false},
      {value("z", 1, {9, 3}), false},
  };
  for (const auto& [bytes, good] : values) {
    BlockBuilder builder(BlockKind::tombstones);
    builder.add({"k", 9, EntryType::tombstone, bytes});
    RunDescriptor descriptor = empty_run();
    descriptor.spans = {write(std::move(builder))};
    descriptor.tombstone_blocks = {{0, 0, 1}};
    std::shared_ptr<const vtkv::Run> run;
    EXPECT_EQ(open(locate(descriptor), &run), good ? "ok" : "a range tombstone is malformed")
        << testing::PrintToString(bytes);
    if (good) {
      EXPECT_EQ(run->range_tombstones()->covering("m", UINT64_MAX), 9u);
      EXPECT_EQ(run->range_tombstones()->covering("m", 8), 3u);
    }
  }
}

TEST_F(RunDamageTest, BlocksOfTombstonesAndOfTheFilterMustBeReadable) {
  BlockBuilder builder(BlockKind::tombstones);
  builder.add({"k", 9, static_cast<EntryType>(100), "value"});
  RunDescriptor descriptor = empty_run();
  descriptor.spans = {write(std::move(builder))};
  descriptor.tombstone_blocks = {{0, 0, 1}};
  EXPECT_NE(open(descriptor).find("a type that this program does not know"), std::string::npos);

  descriptor = empty_run();
  descriptor.spans = {write(BlockKind::filter, "junk")};
  descriptor.filter_blocks = {{0, 0, 1}};
  EXPECT_EQ(open(descriptor), "the filter of run 7 in /tree is malformed");
}

// ---- verify

TEST_F(RunDamageTest, GoodRunHasNoFindings) { EXPECT_EQ(findings(m_blocks, {}), ""); }

TEST_F(RunDamageTest, LinesOfAnIndexMustFollowEachOtherWithinTheirPart) {
  const std::string contradiction = "a span's index contradicts the descriptor;";
  EXPECT_EQ(findings(m_blocks, {.index = [](Lines* lines) { (*lines)[0].second = "more"; }}), contradiction);
  EXPECT_EQ(findings(m_blocks, {.index = [](Lines* lines) { (*lines)[1].first.units = 2; }}), contradiction);
  EXPECT_EQ(findings(m_blocks, {.index = [](Lines* lines) { (*lines)[1].first.unit = 0; }}), contradiction);
  // No entries, though units: a line that no writer writes.
  EXPECT_EQ(findings(m_blocks, {.index = [](Lines* lines) { (*lines)[0].first.entries = 0; }}), contradiction);
  EXPECT_EQ(findings(m_blocks, {.slice =
                                    [](BlockRange* slice) {
                                      slice->unit = 1;
                                      slice->units = 1;
                                    }}),
            contradiction);
}

TEST_F(RunDamageTest, BlockMustHoldWhatItsIndexSays) {
  EXPECT_EQ(findings(m_blocks, {.index = [](Lines* lines) { (*lines)[1].first.greatest_sequence = 9; }}),
            "a block does not hold what its span's index says;");
}

TEST_F(RunDamageTest, SpanMustHoldWhatTheDescriptorSays) {
  const std::string contradiction = "a span does not hold what the descriptor says;";
  EXPECT_EQ(findings(m_blocks, {.slice = [](BlockRange* slice) { slice->greatest_sequence = 9; }}), contradiction);
  EXPECT_EQ(findings(m_blocks, {.index = [](Lines* lines) { lines->pop_back(); }}), contradiction);
}

TEST_F(RunDamageTest, EntriesMustBeInOrderAndReadable) {
  EXPECT_EQ(
      findings({{{"b", 1, EntryType::value, ""}, {"a", 2, EntryType::value, ""}, {"c", 3, EntryType::value, ""}}}, {}),
      "entries are out of order;");
  const Entry a{"a", 1, EntryType::value, ""}, b{"b", 2, EntryType::value, ""}, c{"c", 3, EntryType::value, ""};
  EXPECT_EQ(findings({{a, c}, {b, {"d", 4, EntryType::value, ""}}}, {}), "entries are out of order;");
  EXPECT_EQ(findings({{a, b}, {{"b", 9, EntryType::value, ""}, c}}, {}), "entries are out of order;");
  EXPECT_NE(findings({{{"a", 1, EntryType::value, ""}, {"b", 2, static_cast<EntryType>(100), ""}}}, {})
                .find("a type that this program does not know"),
            std::string::npos);
}

TEST_F(RunDamageTest, KeyRangeAndFilterMustKnowEveryKey) {
  const std::string denied = "its key range or filter denies a key that it holds;";
  EXPECT_EQ(findings(m_blocks, {.slice = [](BlockRange* slice) { slice->last_key = "c"; }}), denied);
  QuotientFilter filter(8, 24);
  ASSERT_TRUE(filter.insert(hash64("a")));
  EXPECT_EQ(findings(m_blocks, {.filter = filter}), denied + "its filter has 1 fingerprints for 4 entries;");
}

}  // namespace
}  // namespace vtkv
