// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/superblock.h"

#include <gtest/gtest.h>

#include "vtkv/env/small_file.h"
#include "vtkv/testing/format_page.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {
namespace {

using vtkv::FormatCheck;
using vtkv::PageValue;
using vtkv::Status;

Superblock example() {
  Superblock superblock;
  for (size_t i = 0; i < superblock.uuid.size(); i++) {
    superblock.uuid[i] = static_cast<uint8_t>(0xa0 + i);
  }
  superblock.cubes = 3;
  superblock.created_us = 0x1122334455667788;
  superblock.chunk_bytes = 32u << 20;
  superblock.geometry = {64u << 20, 4, 8u << 20, 4096};
  return superblock;
}

std::string with_copies(std::string copy) {
  vtkv::encode_fixed32(copy.data() + 76, Superblock::checksum(copy));
  return copy + copy;
}

std::string encode_copy(const Superblock& superblock) {
  const std::string copies = superblock.encode();
  EXPECT_EQ(copies.substr(0, Superblock::kCopyBytes), copies.substr(Superblock::kCopyBytes));
  return copies.substr(0, Superblock::kCopyBytes);
}

TEST(Superblock, SuperblockIsAsOnThePage) {
  FormatCheck<Superblock> check("Superblock", encode_copy, [](const std::string& copy, Superblock* superblock) {
    return Superblock::decode("superblock", copy + copy, superblock).ok();
  });
  Superblock newest = example();
  newest.features.compat = {"notes"};
  Superblock of_version_2 = example();
  of_version_2.version = 2;
  check.example("superblock", newest);
  check.example("superblock of version 2", of_version_2);
  check.constant("magic", "SWIMSTOR");
  check.constant("version", kSuperblockVersion);
  check.field("cubes", 0x0102, &Superblock::cubes);
  check.field("uuid", std::array<uint8_t, 16>{9, 8, 7}, &Superblock::uuid);
  check.field("created", 0x2233445566778899, &Superblock::created_us);
  check.field("chunk bytes", 1u << 13, &Superblock::chunk_bytes);
  check.field("log segment bytes", 0x2233445566778899,
              [](Superblock& it) -> auto& { return it.geometry.log_segment_bytes; });
  check.field("zone bytes", 0x2233445566778899, [](Superblock& it) -> auto& { return it.geometry.zone_bytes; });
  check.field("log segments", 0x22334455, [](Superblock& it) -> auto& { return it.geometry.initial_log_segments; });
  check.field("block bytes", 0x22334455, [](Superblock& it) -> auto& { return it.geometry.block_bytes; });
  check.derived("feature bytes",
                [](const Superblock& it) { return PageValue(it.version == 2 ? 0 : it.features.encode().size()); });
  check.part("features", vtkv::page_example("feature"),
             [](Superblock& it) { it.features = {.compat = {}, .ro_compat = {"sums"}, .incompat = {}}; });
  EXPECT_EQ(check.findings(), "");
}

// As programs wrote it that knew no features: such a store stays as it is.
TEST(Superblock, OneOfVersion2IsWrittenAsItWasRead) {
  std::string copy = example().encode().substr(0, 76);
  copy[8] = 2;
  copy[72] = 0;
  const uint32_t crc = vtkv::crc32c(copy);
  copy.resize(Superblock::kCopyBytes);
  vtkv::encode_fixed32(copy.data() + 76, crc);
  Superblock superblock;
  ASSERT_TRUE(Superblock::decode("superblock", copy + copy, &superblock).ok());
  EXPECT_EQ(superblock.version, 2u);
  EXPECT_EQ(superblock.features, features_of_version_2());
  EXPECT_EQ(superblock.encode(), copy + copy);
}

TEST(Superblock, FeaturesAreKeptAlsoIfNobodyKnowsThem) {
  Superblock superblock = example(), read;
  superblock.features = {.compat = {"dots"}, .ro_compat = {"lines"}, .incompat = {"planes", "split_slots"}};
  ASSERT_TRUE(Superblock::decode("superblock", superblock.encode(), &read).ok());
  EXPECT_EQ(read.features, superblock.features);
  EXPECT_EQ(read.encode(), superblock.encode());
  std::string copy = superblock.encode().substr(0, Superblock::kCopyBytes);
  for (const size_t offset : {72, 73, 80, 81}) {  // what the length or the features say no more
    std::string bad = copy;
    bad[offset] = '\x7f';
    EXPECT_TRUE(Superblock::decode("superblock", with_copies(bad), &read).is_corruption()) << offset;
  }
}

TEST(Superblock, OneWholeCopyIsEnough) {
  const std::string bytes = example().encode();
  for (size_t damaged : {0u, 1u}) {
    for (size_t offset = 0; offset < 93; offset++) {
      std::string copy = bytes;
      copy[damaged * Superblock::kCopyBytes + offset] ^= 0x10;
      Superblock superblock;
      ASSERT_TRUE(Superblock::decode("superblock", copy, &superblock).ok()) << offset;
      EXPECT_EQ(superblock.uuid, example().uuid);
      EXPECT_EQ(superblock.geometry.zone_bytes, example().geometry.zone_bytes);
    }
  }
}

// Each kind of damage has its own sentence, which names the file.
TEST(Superblock, SaysWhatIsWrong) {
  const std::string bytes = example().encode();
  const auto message = [](const std::string& damaged, Status::Code code) {
    Superblock superblock;
    const Status status = Superblock::decode("/store/superblock", damaged, &superblock);
    EXPECT_EQ(status.code(), code);
    EXPECT_EQ(status.message().find("/store/superblock: "), 0u);
    return std::string(status.message());
  };
  const auto contains = [](const std::string& text, const std::string& word) {
    return text.find(word) != std::string::npos;
  };
  EXPECT_TRUE(contains(message(bytes.substr(0, 5000), Status::Code::corruption), "truncated, 5000 of 8192"));
  EXPECT_TRUE(contains(message(std::string(8192, 'x'), Status::Code::corruption), "neither copy is a superblock"));
  std::string flipped = bytes;
  flipped[20] ^= 1;
  flipped[Superblock::kCopyBytes + 20] ^= 1;
  EXPECT_TRUE(contains(message(flipped, Status::Code::corruption), "checksum mismatch"));
  std::string future = bytes.substr(0, Superblock::kCopyBytes);
  future[8] = 9;
  const std::string text = message(with_copies(future), Status::Code::unsupported);
  EXPECT_TRUE(contains(text, "version 9") && contains(text, "up to 3"));
  // The other copy may be damaged: then the store is merely newer.
  for (const std::string& mixed :
       {flipped.substr(Superblock::kCopyBytes) + with_copies(future).substr(0, Superblock::kCopyBytes),
        with_copies(future).substr(0, Superblock::kCopyBytes) + flipped.substr(0, Superblock::kCopyBytes)}) {
    EXPECT_EQ(message(mixed, Status::Code::unsupported), text);
  }
  // Nor is a newer one done without where the other copy is older and whole.
  for (const std::string& mixed :
       {bytes.substr(Superblock::kCopyBytes) + with_copies(future).substr(0, Superblock::kCopyBytes),
        with_copies(future).substr(0, Superblock::kCopyBytes) + bytes.substr(Superblock::kCopyBytes)}) {
    EXPECT_EQ(message(mixed, Status::Code::unsupported), text);
  }
  // A version that nothing vouches for is damage.
  std::string torn = bytes;
  torn[8] = torn[Superblock::kCopyBytes + 8] = 9;
  EXPECT_TRUE(contains(message(torn, Status::Code::corruption), "checksum mismatch"));
  std::string absurd = bytes.substr(0, Superblock::kCopyBytes);
  absurd[12] = 0;
  EXPECT_TRUE(contains(message(with_copies(absurd), Status::Code::corruption), "geometry"));
  // Of two bad copies, the one that knows its magic tells more.
  EXPECT_TRUE(contains(message(std::string(Superblock::kCopyBytes, 'x') + flipped.substr(Superblock::kCopyBytes),
                               Status::Code::corruption),
                       "checksum mismatch"));
}

TEST(Superblock, AMissingFileIsToldFromOneThatCannotBeRead) {
  vtkv::SimEnv env({.record = false});
  ASSERT_TRUE(env.create_directory("/store").ok());
  Superblock superblock;
  EXPECT_TRUE(Superblock::read(&env, "/store", &superblock).is_not_found());
  ASSERT_TRUE(vtkv::replace_small_file(&env, "/store/superblock", example().encode()).ok());
  env.fail_nth(vtkv::SimCall::read, 1, Status::from_errno(EIO, "injected"), false);
  EXPECT_EQ(Superblock::read(&env, "/store", &superblock).code(), Status::Code::io_error);
  EXPECT_TRUE(Superblock::read(&env, "/store", &superblock).ok());
}

}  // namespace
}  // namespace swimstore
