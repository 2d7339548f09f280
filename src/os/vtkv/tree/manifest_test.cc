// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tree/manifest.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>

#include "vtkv/testing/format_page.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/tree/manifest_format.h"
#include "vtkv/util/crc32c.h"
#include "vtkv/wal/log_format.h"

namespace vtkv {
namespace {

Checkpoint example(uint64_t epoch = 1) {
  Checkpoint checkpoint;
  checkpoint.epoch = epoch;
  checkpoint.uuid = {0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf};
  checkpoint.geometry = {
      .log_segment_bytes = 0x10000, .initial_log_segments = 2, .zone_bytes = 0x8000, .block_bytes = 0x1000};
  checkpoint.position = {
      .sequence = 0x21, .segment_id = 0x22, .epoch = 0x23, .end_offset = 0x24000, .header_checksum = 0x25262728};
  checkpoint.next_run_id = 8;
  checkpoint.segments = {{0x41, 0x42, 0x43, 0x44, 0x45}};
  checkpoint.runs = {{7, 1, {0x3132333435363738, 0x3000, 2}, 0, 7}};
  return checkpoint;
}

void fix_checksum(std::string* copy) {
  uint32_t length;
  std::memcpy(&length, copy->data() + 16, 4);
  const uint32_t crc = crc32c(copy->data() + 12, length - 12);
  std::memcpy(copy->data() + 8, &crc, 4);
}

bool decode_copy(const std::string& bytes, Checkpoint* checkpoint) {
  return Checkpoint::decode(bytes, checkpoint).ok();
}

TEST(ManifestFormat, ManifestIsAsOnThePage) {
  FormatCheck<Checkpoint> check(
      "Manifest", [](const Checkpoint& checkpoint) { return checkpoint.encode(); }, decode_copy);
  Checkpoint with_features;
  with_features.epoch = 2;
  with_features.uuid = example().uuid;
  with_features.geometry = example().geometry;
  with_features.features = {.compat = {"notes"}, .ro_compat = {}, .incompat = {"zoned"}};
  check.example("manifest", example());
  check.example("manifest with features", with_features);
  check.constant("magic", std::string_view(kManifestMagic, sizeof(kManifestMagic)));
  check.constant("version", kManifestVersion);
  check.derived("length", [](const Checkpoint& checkpoint) {
    return PageValue(128 + 48 * checkpoint.runs.size() + 40 * checkpoint.segments.size() +
                     checkpoint.features.encode().size());
  });
  check.derived("runs", [](const Checkpoint& checkpoint) { return PageValue(checkpoint.runs.size()); });
  check.field("epoch", 0x22334455667788, &Checkpoint::epoch);
  check.field("uuid", Uuid{9, 8, 7}, &Checkpoint::uuid);
  check.field("block bytes", 0x3000, [](Checkpoint& it) -> auto& { return it.geometry.block_bytes; });
  check.field("log segments", 0x11223, [](Checkpoint& it) -> auto& { return it.geometry.initial_log_segments; });
  check.field("log segment bytes", 0x1122334000, [](Checkpoint& it) -> auto& { return it.geometry.log_segment_bytes; });
  check.field("zone bytes", 0x1122334000, [](Checkpoint& it) -> auto& { return it.geometry.zone_bytes; });
  check.field("log checksum", 0x11223344, [](Checkpoint& it) -> auto& { return it.position.header_checksum; });
  check.derived("segments", [](const Checkpoint& checkpoint) { return PageValue(checkpoint.segments.size()); });
  check.field("log sequence", 0x22334455667788, [](Checkpoint& it) -> auto& { return it.position.sequence; });
  check.field("log segment id", 0x1122334455667788, [](Checkpoint& it) -> auto& { return it.position.segment_id; });
  check.field("log epoch", 0x22334455667788, [](Checkpoint& it) -> auto& { return it.position.epoch; });
  check.field("log end offset", 0x22334455667000, [](Checkpoint& it) -> auto& { return it.position.end_offset; });
  check.field("next run id", 0x22334455667788, &Checkpoint::next_run_id);
  check.derived("feature bytes",
                [](const Checkpoint& checkpoint) { return PageValue(checkpoint.features.encode().size()); });
  check.part("run records", "", [](Checkpoint& it) { it.runs.clear(); });
  check.part("segment records", page_example("segment record") + page_example("segment record"),
             [](Checkpoint& it) { it.segments.push_back(it.segments[0]); });
  check.part("features", page_example("feature"),
             [](Checkpoint& it) { it.features = {.compat = {}, .ro_compat = {"sums"}, .incompat = {}}; });
  EXPECT_EQ(check.findings(), "");
  // The records of the example are those below it.
  EXPECT_EQ(example().encode().substr(128), page_example("run record") + page_example("segment record"));
}

// Decodes a manifest whose bytes from `offset` on are these.
bool decode_with(size_t offset, const std::string& bytes, Checkpoint* checkpoint) {
  std::string copy = example().encode();
  copy.replace(offset, bytes.size(), bytes);
  fix_checksum(&copy);
  return decode_copy(copy, checkpoint);
}

TEST(ManifestFormat, RunRecordIsAsOnThePage) {
  constexpr size_t kOffset = sizeof(manifest_header_t);
  FormatCheck<Checkpoint> check(
      "Run record", [](const Checkpoint& it) { return it.encode().substr(kOffset, sizeof(manifest_run_t)); },
      [](const std::string& bytes, Checkpoint* it) { return decode_with(kOffset, bytes, it); });
  check.example("run record", example());
  check.field("run id", 3, [](Checkpoint& it) -> auto& { return it.runs[0].run_id; });
  check.field("span id", 0x1122334455667788, [](Checkpoint& it) -> auto& { return it.runs[0].span.id; });
  check.field("offset", 0x22334455667000, [](Checkpoint& it) -> auto& { return it.runs[0].span.offset; });
  check.field("units", 0x3344, [](Checkpoint& it) -> auto& { return it.runs[0].span.units; });
  check.field("level", 0x11223344, [](Checkpoint& it) -> auto& { return it.runs[0].level; });
  check.field("sorted run id", 2, [](Checkpoint& it) -> auto& { return it.runs[0].sorted_run_id; });
  EXPECT_EQ(check.findings(), "");
}

TEST(ManifestFormat, SegmentRecordIsAsOnThePage) {
  constexpr size_t kOffset = sizeof(manifest_header_t) + sizeof(manifest_run_t);
  FormatCheck<Checkpoint> check(
      "Segment record", [](const Checkpoint& it) { return it.encode().substr(kOffset); },
      [](const std::string& bytes, Checkpoint* it) { return decode_with(kOffset, bytes, it); });
  check.example("segment record", example());
  const auto field = [&check](const std::string& row, PageValue other, auto member) {
    check.field(row, std::move(other), [member](Checkpoint& it) -> auto& { return it.segments[0].*member; });
  };
  field("segment id", 0x1122334455667788, &SegmentValues::segment_id);
  field("epoch", 0x22334455667788, &SegmentValues::epoch);
  field("pointers", 0x22334455667788, &SegmentValues::entries);
  field("bytes", 0x22334455667788, &SegmentValues::bytes);
  field("end", 0x22334455667788, &SegmentValues::end);
  EXPECT_EQ(check.findings(), "");
}

TEST(ManifestFormat, EveryFlippedBitIsNoticed) {
  Checkpoint checkpoint = example();
  checkpoint.features.compat = {"notes"};
  const std::string good = checkpoint.encode();
  Checkpoint decoded;
  ASSERT_TRUE(Checkpoint::decode(good, &decoded).ok());
  EXPECT_EQ(decoded.encode(), good);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_TRUE(Checkpoint::decode(bad, &decoded).is_corruption()) << "bit " << bit;
  }
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_TRUE(Checkpoint::decode(good.substr(0, length), &decoded).is_corruption());
  }
}

TEST(ManifestFormat, ImpossibleValuesUnderAGoodChecksumAreRefused) {
  Checkpoint decoded;
  for (const auto& [offset, value] : {std::pair<size_t, uint32_t>{20, 2},  // runs beyond the length
                                      {24, 0},                            // epoch 0
                                      {64, 5},                            // zones of 5 bytes
                                      {48, 0},                            // blocks of none
                                      {120, 6},                           // fewer bytes of features
                                      {216, 0x62610400}}) {               // a shorter name
    Checkpoint checkpoint = example();
    checkpoint.features.compat = {"abcde"};
    std::string bad = checkpoint.encode();
    std::memcpy(bad.data() + offset, &value, 4);
    fix_checksum(&bad);
    EXPECT_TRUE(Checkpoint::decode(bad, &decoded).is_corruption()) << offset;
  }
}

// Nothing that counts on from what is found may overflow: the epoch, the log's sequence, epoch and offset, the next
// run's id, a run's, and a segment's.
TEST(ManifestFormat, CountsThatNoDatabaseReachesAreRefused) {
  Checkpoint decoded;
  for (const size_t offset : {24, 80, 96, 104, 112, 128, 144, 184, 192, 200, 208}) {
    for (const uint64_t value : {UINT64_MAX, uint64_t{1} << 63, uint64_t{1} << 56}) {
      std::string bad = example().encode();
      std::memcpy(bad.data() + offset, &value, 8);
      fix_checksum(&bad);
      EXPECT_TRUE(Checkpoint::decode(bad, &decoded).is_corruption()) << offset << " " << value;
    }
  }
}

TEST(ManifestFormat, RunsThatALaterOneCouldBeTakenForAreRefused) {
  Checkpoint decoded;
  Checkpoint late = example();
  late.next_run_id = late.runs[0].run_id;
  EXPECT_TRUE(Checkpoint::decode(late.encode(), &decoded).is_corruption());
  Checkpoint twice = example();
  twice.runs.push_back(twice.runs[0]);
  EXPECT_TRUE(Checkpoint::decode(twice.encode(), &decoded).is_corruption());
}

class ManifestTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(m_env.create_directory("/db").ok());
    ASSERT_TRUE(Manifest::create(&m_env, "/db", example()).ok());
  }
  Status open() { return Manifest::open(&m_env, "/db", &m_manifest, &m_newest, &m_older); }
  void write(uint64_t epoch) {
    ASSERT_TRUE(open().ok());
    ASSERT_TRUE(m_manifest->write(example(epoch)).ok());
  }
  // The copies are 32 KiB: a zone's size.
  void damage_copy(uint64_t epoch, uint64_t offset) { m_env.flip_bits("/db/manifest", epoch % 2 * 0x8000 + offset, 1); }

  SimEnv m_env;
  std::unique_ptr<Manifest> m_manifest;
  Checkpoint m_newest, m_older;
};

TEST_F(ManifestTest, TheNewestCopyWinsAndTheOtherIsTheOneBefore) {
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(m_newest.epoch, 1u);
  EXPECT_EQ(m_older.epoch, 0u);
  for (uint64_t epoch = 2; epoch < 6; ++epoch) {
    write(epoch);
    ASSERT_TRUE(open().ok());
    EXPECT_EQ(m_newest.epoch, epoch);
    EXPECT_EQ(m_older.epoch, epoch - 1);
  }
}

TEST_F(ManifestTest, ADamagedCopyLeavesTheOther) {
  write(2);
  damage_copy(2, 30);
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(m_newest.epoch, 1u);
  EXPECT_EQ(m_older.epoch, 0u);
}

TEST_F(ManifestTest, TwoDamagedCopiesAreCorruptionWithARemedy) {
  write(2);
  damage_copy(1, 30);
  damage_copy(2, 0);
  const Status status = open();
  EXPECT_TRUE(status.is_corruption());
  EXPECT_NE(status.message().find("/db/manifest"), std::string_view::npos);
  EXPECT_NE(status.message().find("restore"), std::string_view::npos);
}

TEST_F(ManifestTest, ALaterFormatIsUnsupportedNotDamaged) {
  write(2);
  std::string copy = example(3).encode();
  copy[12] = 9;
  fix_checksum(&copy);
  copy.resize(4096);
  AlignedBuffer buffer(4096);
  buffer.append(copy);
  std::unique_ptr<File> file;
  ASSERT_TRUE(m_env.open_file("/db/manifest", {}, &file).ok());
  ASSERT_TRUE(file->write(0x8000, buffer.data(), 4096).ok());
  const Status status = open();
  EXPECT_EQ(status.code(), Status::Code::unsupported);
  EXPECT_NE(status.message().find("version 9"), std::string_view::npos);
}

TEST_F(ManifestTest, ACheckpointInTheWrongCopyDoesNotCount) {
  std::string copy = example(3).encode();  // belongs into the second copy
  copy.resize(4096);
  AlignedBuffer buffer(4096);
  buffer.append(copy);
  std::unique_ptr<File> file;
  ASSERT_TRUE(m_env.open_file("/db/manifest", {}, &file).ok());
  ASSERT_TRUE(file->write(0, buffer.data(), 4096).ok());
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(m_newest.epoch, 1u);
}

TEST_F(ManifestTest, AFileOfTheWrongSizeIsCorruption) {
  std::unique_ptr<File> file;
  ASSERT_TRUE(m_env.open_file("/db/manifest", {}, &file).ok());
  ASSERT_TRUE(file->truncate(4096).ok());
  EXPECT_TRUE(open().is_corruption());
}

TEST_F(ManifestTest, ASizeThatNoManifestHasIsCorruption) {
  std::unique_ptr<File> file;
  ASSERT_TRUE(m_env.open_file("/db/manifest", {}, &file).ok());
  for (const uint64_t bytes : {uint64_t{4} << 20, uint64_t{0x10000 + 4096}}) {
    ASSERT_TRUE(file->truncate(bytes).ok());
    const Status status = open();
    EXPECT_TRUE(status.is_corruption());
    EXPECT_NE(status.message().find("impossible size of " + std::to_string(bytes)), std::string_view::npos);
  }
}

TEST_F(ManifestTest, CopiesOfTwoDatabasesContradictEachOther) {
  Checkpoint other = example(2);
  other.uuid[0] ^= 1;
  ASSERT_TRUE(open().ok());
  ASSERT_TRUE(m_manifest->write(other).ok());
  const Status status = open();
  EXPECT_TRUE(status.is_corruption());
  EXPECT_NE(status.message().find("contradict each other"), std::string_view::npos);
}

TEST_F(ManifestTest, ANewerCopyThatGoesBackContradictsTheOlder) {
  const std::function<void(Checkpoint*)> changes[] = {
      [](Checkpoint* next) { next->position.sequence--; },
      [](Checkpoint* next) { next->position.epoch--; },
      [](Checkpoint* next) { next->position.end_offset -= 0x1000; },
  };
  ASSERT_TRUE(open().ok());
  for (const auto& change : changes) {
    Checkpoint next = example(2);
    change(&next);
    ASSERT_TRUE(m_manifest->write(next).ok());
    std::unique_ptr<Manifest> manifest;
    const Status status = Manifest::open(&m_env, "/db", &manifest, &m_newest, &m_older);
    EXPECT_TRUE(status.is_corruption());
    EXPECT_NE(status.message().find("contradict each other"), std::string_view::npos);
  }
}

TEST_F(ManifestTest, VerifyTellsACopyThatIsNotTheOneThatWasWritten) {
  write(2);
  ASSERT_TRUE(open().ok());
  std::vector<std::string> findings;
  m_manifest->verify(example(2), &findings);
  EXPECT_TRUE(findings.empty()) << findings.front();
  m_manifest->verify(example(4), &findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].find("copy of checkpoint 4: it holds checkpoint 2"), std::string::npos) << findings[0];
  m_env.fail_nth(SimCall::read, 1, Status::from_errno(EIO, "copy"), true);
  m_manifest->verify(example(2), &findings);
  EXPECT_EQ(findings.size(), 2u);
}

TEST_F(ManifestTest, AnUnreadableCopyLeavesTheOther) {
  write(2);
  const Status error = Status::from_errno(EIO, "copy");
  m_env.fail_nth(SimCall::read, 1, error, false);  // the copy of epoch 2, for a moment
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(m_newest.epoch, 2u);
  std::unique_ptr<File> file;
  ASSERT_TRUE(m_env.open_file("/db/manifest", {}, &file).ok());
  uint64_t bytes = 0;
  ASSERT_TRUE(file->size(&bytes).ok());
  m_env.set_bad(SimBad::reads, "/db/manifest", 0, bytes / 2);
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(m_newest.epoch, 1u);
}

TEST(CheckGeometry, NamesTheWrongSize) {
  Geometry geometry;
  EXPECT_TRUE(check_geometry(geometry).ok());
  geometry.zone_bytes = 5000;
  EXPECT_NE(check_geometry(geometry).message().find("zone_bytes is 5000"), std::string_view::npos);
  geometry = {};
  geometry.block_bytes = 0;
  EXPECT_EQ(check_geometry(geometry).code(), Status::Code::invalid_argument);
  geometry = {};
  geometry.log_segment_bytes = 100;
  EXPECT_EQ(check_geometry(geometry).code(), Status::Code::invalid_argument);
  geometry = {};
  geometry.initial_log_segments = 1;
  EXPECT_EQ(check_geometry(geometry).code(), Status::Code::invalid_argument);
}

// A crash left the first sector of checkpoint 3. The next one with this number, of which another crash left all but the
// first, is the same there: of the newest run, which comes first, another was written to the same place.
TEST(Manifest, WhatACrashLeftOfACheckpointIsNotMadeWholeByTheNext) {
  constexpr size_t kSector = 512;
  SimEnv env;
  ASSERT_TRUE(Manifest::create(&env, "/", example(1)).ok());
  std::unique_ptr<Manifest> manifest;
  Checkpoint newest, older;
  ASSERT_TRUE(Manifest::open(&env, "/", &manifest, &newest, &older).ok());
  ASSERT_TRUE(manifest->write(example(2)).ok());
  std::unique_ptr<File> file;
  ASSERT_TRUE(env.open_file("/manifest", {}, &file).ok());
  uint64_t bytes = 0;
  ASSERT_TRUE(file->size(&bytes).ok());
  const uint64_t second = bytes / 2;
  Checkpoint lost = example(3);
  for (uint64_t run = 6; run > 0; run--) {
    lost.runs.insert(lost.runs.end(), 2, {run, 1, {run, run * 0x1000, 1}, 0, run});
  }
  const std::string encoded = lost.encode();
  ASSERT_GT(encoded.size(), kSector);
  AlignedBuffer block(kLogBlockBytes);
  const auto write_sectors = [&](size_t from, size_t to) {
    ASSERT_TRUE(file->read(second, kLogBlockBytes, block.data()).ok());
    const std::string padded = encoded + std::string(kLogBlockBytes - encoded.size(), '\0');
    std::memcpy(block.data() + from, padded.data() + from, to - from);
    ASSERT_TRUE(file->write(second, block.data(), kLogBlockBytes).ok());
  };
  write_sectors(0, kSector);
  ASSERT_TRUE(Manifest::open(&env, "/", &manifest, &newest, &older).ok());
  EXPECT_EQ(newest.epoch, 2u);
  ASSERT_TRUE(manifest->clear_torn().ok());
  write_sectors(kSector, kLogBlockBytes);
  ASSERT_TRUE(Manifest::open(&env, "/", &manifest, &newest, &older).ok());
  EXPECT_EQ(newest.epoch, 2u);
  EXPECT_EQ(older.epoch, 0u);
}

}  // namespace
}  // namespace vtkv
