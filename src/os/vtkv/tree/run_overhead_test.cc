// SPDX-License-Identifier: LGPL-2.1-or-later
// What runs take beside their entries: indexes on disk, slices in memory.

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "vtkv/compaction/older_runs.h"
#include "vtkv/compaction/stitch_compaction.h"
#include "vtkv/span/fill.h"
#include "vtkv/table/run_writer.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

using RunPointer = std::shared_ptr<const vtkv::Run>;

constexpr uint64_t kDataBytes = 3 << 20;

enum class Kind {
  random,  // keys share little with their neighbours
  names,   // or all but their last bytes
};

class RunOverheadTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ZoneFile::create(&m_env, "/tree").ok());
    ASSERT_TRUE(ZoneFile::open(&m_env, "/tree", 8 << 20, &m_file).ok());
  }

  std::set<std::string> keys(Kind kind, size_t key_bytes, size_t count) {
    std::set<std::string> all;
    while (all.size() < count) {
      std::string key(key_bytes, 'n');
      for (size_t i = kind == Kind::names ? key_bytes - 10 : 0; i < key_bytes; ++i) {
        key[i] = static_cast<char>('a' + m_random() % 26);
      }
      all.insert(std::move(key));
    }
    return all;
  }

  RunPointer write(const std::set<std::string>& keys, size_t value_bytes, size_t every = 1) {
    RunWriter writer(&m_env, reader(), settings());
    const std::string value(value_bytes, 'v');
    size_t number = 0;
    ++m_sequence;
    for (const std::string& key : keys) {
      if (number++ % every == 0) {
        EXPECT_TRUE(writer.add({key, m_sequence, EntryType::value, value}).ok());
      }
    }
    RunPointer run;
    EXPECT_TRUE(writer.finish(std::make_shared<RangeTombstones>(), &run).ok());
    return run;
  }

  RunPointer compact(const std::vector<RunPointer>& runs, uint64_t* stitched_bytes) {
    const std::vector<SequenceNumber> snapshots;
    const RangeTombstones tombstones;
    const OlderRuns none({}, 0);
    CompactionIterator compaction_iterator(&snapshots, &tombstones, &none);
    RunWriter writer(&m_env, reader(), settings());
    StitchCompaction compaction(runs, &compaction_iterator, StitchPolicy(), [](uint64_t) { return Status(); }, &writer);
    EXPECT_TRUE(compaction.run().ok());
    *stitched_bytes = writer.stitched_bytes();
    RunPointer compacted;
    EXPECT_TRUE(writer.finish(std::make_shared<RangeTombstones>(), &compacted).ok());
    return compacted;
  }

  SpanReader reader() { return {m_file, std::make_shared<ReadCache>(0)}; }
  RunWriter::Settings settings() {
    RunWriter::Settings settings;
    settings.run_id = ++m_run_id;
    return settings;
  }

  SimEnv m_env{{.record = false}};
  std::shared_ptr<ZoneFile> m_file;
  uint64_t m_run_id = 0;
  SequenceNumber m_sequence = 0;
  std::mt19937_64 m_random{5};
};

uint64_t index_bytes(const vtkv::Run& run) {
  uint64_t units = 0;
  for (const Span& span : run.descriptor().spans) {
    units += span.index_units;
  }
  return units * kUnitBytes;
}

constexpr size_t kKeyBytes[] = {16, 50, 100, 250, 500, 1024};

TEST_F(RunOverheadTest, IndexesAreATenthAndPartsHalfAPercentAtMost) {
  for (const Kind kind : {Kind::random, Kind::names}) {
    for (const size_t key_bytes : kKeyBytes) {
      for (const size_t value_bytes : {20, 1000}) {
        const auto run = write(keys(kind, key_bytes, kDataBytes / (key_bytes + value_bytes)), value_bytes);
        const double bytes = static_cast<double>(run->entry_bytes());
        SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << ", keys of " << key_bytes
                                        << ", values of " << value_bytes << " bytes, " << bytes << " in all");
        EXPECT_LE(static_cast<double>(index_bytes(*run)), bytes / 10);
        // Of a span that may be short.
        const double last_slice = static_cast<double>(kSliceMemoryBytes + 2 * key_bytes);
        EXPECT_LE(static_cast<double>(run->descriptor().memory_bytes()), bytes / 200 + last_slice);
      }
    }
  }
}

TEST_F(RunOverheadTest, KeysOfUsualLengthKeepTheirBlocks) {
  const auto run = write(keys(Kind::random, 100, 20000), 100);
  std::vector<std::string> findings;
  run->verify(&findings);
  EXPECT_EQ(findings, std::vector<std::string>());
  for (const SpanSlice& slice : run->descriptor().slices) {
    EXPECT_GT(slice.blocks.units, slice.blocks.entries / 40);  // 4096 bytes hold 19 of them
  }
}

// A change every 100 KiB or so cuts the older run into fragments, of which each takes a slice.
TEST_F(RunOverheadTest, WhatIsStitchedIsWorthItsSlices) {
  for (const size_t key_bytes : kKeyBytes) {
    const auto all = keys(Kind::random, key_bytes, kDataBytes / (key_bytes + 100));
    const auto older = write(all, 100);
    for (const uint64_t apart : {50u << 10, 100u << 10, 1000u << 10}) {
      const auto newer = write(all, 100, apart / (key_bytes + 100));
      uint64_t stitched_bytes = 0;
      const auto compacted = compact({newer, older}, &stitched_bytes);
      EXPECT_LE(static_cast<double>(compacted->descriptor().memory_bytes()),
                static_cast<double>(compacted->entry_bytes()) / 100)
          << "keys of " << key_bytes << " bytes";
      EXPECT_EQ(compacted->entries(), all.size());
      if (apart > 500 << 10) {
        EXPECT_GT(stitched_bytes, compacted->entry_bytes() / 4) << "keys of " << key_bytes << " bytes";
      }
      std::vector<std::string> findings;
      compacted->verify(&findings);
      EXPECT_EQ(findings, std::vector<std::string>());
    }
  }
}

}  // namespace
}  // namespace vtkv
