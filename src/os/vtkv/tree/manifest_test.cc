// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tree/manifest.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>

#include "vtkv/testing/golden.h"
#include "vtkv/testing/sim_env.h"
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
  checkpoint.runs = {{7, 1, {0x3132333435363738, 0x3000, 2}, 0}};
  return checkpoint;
}

void fix_checksum(std::string* copy) {
  uint32_t length;
  std::memcpy(&length, copy->data() + 16, 4);
  const uint32_t crc = crc32c(copy->data() + 12, length - 12);
  std::memcpy(copy->data() + 8, &crc, 4);
}

TEST(ManifestFormat, Golden) {
  std::string expected = bytes_from_hex(R"(
    76 74 6b 76 6d 6e 66 74  # magic "vtkvmnft"
    00 00 00 00              # crc32c, filled in below
    01 00 00 00              # format version
    d8 00 00 00              # length: 128 + 48 + 40
    01 00 00 00              # runs
    01 00 00 00 00 00 00 00  # epoch
    a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 aa ab ac ad ae af  # uuid
    00 10 00 00              # geometry: block
    02 00 00 00              # geometry: log segments at creation
    00 00 01 00 00 00 00 00  # geometry: log segment
    00 80 00 00 00 00 00 00  # geometry: zone
    28 27 26 25              # log position: header checksum
    01 00 00 00              # log segments with values
    21 00 00 00 00 00 00 00  # log position: sequence
    22 00 00 00 00 00 00 00  # log position: segment id
    23 00 00 00 00 00 00 00  # log position: epoch
    00 40 02 00 00 00 00 00  # log position: end offset
    08 00 00 00 00 00 00 00  # next run id
    00 00 00 00 00 00 00 00
    07 00 00 00 00 00 00 00  # run id
    38 37 36 35 34 33 32 31  # span id
    00 30 00 00 00 00 00 00  # offset
    02 00 00 00              # units
    01 00 00 00              # level
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
    41 00 00 00 00 00 00 00  # segment id
    42 00 00 00 00 00 00 00  # its epoch
    43 00 00 00 00 00 00 00  # pointers
    44 00 00 00 00 00 00 00  # bytes of their values
    45 00 00 00 00 00 00 00  # end of the last one
  )");
  fix_checksum(&expected);
  EXPECT_EQ(hex_dump(example().encode()), hex_dump(expected));
}

TEST(ManifestFormat, GoldenWithFeatures) {
  Checkpoint checkpoint = example();
  checkpoint.features = {.compat = {"notes"}, .ro_compat = {}, .incompat = {"zoned"}};
  std::string expected = example().encode();
  expected[12] = 2;                       // format version
  expected[16] = static_cast<char>(0xe6);  // length: 128 + 48 + 40 + 14
  expected[120] = 14;                     // bytes of the features
  expected += bytes_from_hex("00 05 6e 6f 74 65 73  02 05 7a 6f 6e 65 64");
  fix_checksum(&expected);
  EXPECT_EQ(hex_dump(checkpoint.encode()), hex_dump(expected));
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
  m_env.fail_nth(SimCall::read, 1, Status::from_errno(EIO, "copy"), false);
  m_manifest->verify(example(2), &findings);
  EXPECT_EQ(findings.size(), 2u);
}

TEST_F(ManifestTest, AnUnreadableCopyLeavesTheOther) {
  write(2);
  m_env.fail_nth(SimCall::read, 1, Status::from_errno(EIO, "copy"), false);  // the copy of epoch 2
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
    lost.runs.insert(lost.runs.end(), 2, {run, 1, {run, run * 0x1000, 1}, 0});
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
