// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/container_header.h"

#include <gtest/gtest.h>

#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {
namespace {

using vtkv::Status;

ContainerHeader example() {
  ContainerHeader header;
  for (size_t i = 0; i < header.uuid.size(); i++) {
    header.uuid[i] = static_cast<uint8_t>(0xb0 + i);
  }
  header.chunk_bytes = 32u << 20;
  header.primed_slots = {4096, 2048};
  return header;
}

TEST(ContainerHeader, GoldenBytes) {
  std::string expected(
      "SWIMCONT"
      "\x01\x00\x00\x00"                                                  // version
      "\x0b\x00\x00\x00"                                                  // size classes
      "\xb0\xb1\xb2\xb3\xb4\xb5\xb6\xb7\xb8\xb9\xba\xbb\xbc\xbd\xbe\xbf"  // uuid
      "\x00\x00\x00\x02\x00\x00\x00\x00"                                  // chunk bytes
      "\x00\x10\x00\x00\x00\x00\x00\x00"                                  // block bytes, 0
      "\x00\x10\x00\x00\x00\x00\x00\x00"                                  // primed slots of 4K,
      "\x00\x08\x00\x00\x00\x00\x00\x00",                                 // of 8K
      64);
  expected.resize(136);
  vtkv::put_fixed32(&expected, vtkv::crc32c(expected));
  expected.resize(ContainerHeader::kBytes);
  EXPECT_EQ(example().encode(), expected);
}

TEST(ContainerHeader, DecodesWhatItEncoded) {
  ContainerHeader header;
  ASSERT_TRUE(ContainerHeader::decode("header", example().encode(), &header).ok());
  EXPECT_EQ(header.uuid, example().uuid);
  EXPECT_EQ(header.chunk_bytes, example().chunk_bytes);
  EXPECT_EQ(header.primed_slots, example().primed_slots);
}

TEST(ContainerHeader, NoticesEveryFlippedByte) {
  const std::string bytes = example().encode();
  for (size_t offset = 0; offset < 140; offset++) {
    std::string damaged = bytes;
    damaged[offset] ^= 0x04;
    ContainerHeader header;
    const Status status = ContainerHeader::decode("/c/header", damaged, &header);
    ASSERT_TRUE(status.is_corruption()) << offset;  // in the version, too: it is not newer
    ASSERT_EQ(status.message().find("/c/header: "), 0u);
  }
  ContainerHeader header;
  EXPECT_TRUE(ContainerHeader::decode("header", bytes.substr(0, 100), &header).is_corruption());
}

TEST(ContainerHeader, RefusesChunksThatNobodyMakes) {
  for (const uint64_t chunk : {uint64_t{0}, uint64_t{2048}, uint64_t{12288}, 2 * kChunkBytesMax, uint64_t{1} << 63}) {
    ContainerHeader header = example();
    header.chunk_bytes = chunk;
    const Status status = ContainerHeader::decode("header", header.encode(), &header);
    EXPECT_TRUE(status.is_corruption()) << chunk;
    EXPECT_NE(status.message().find("a geometry that this program never writes"), std::string_view::npos);
  }
}

}  // namespace
}  // namespace swimstore
