// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/container_header.h"

#include <gtest/gtest.h>

#include "swimstore/format/format_version.h"
#include "vtkv/testing/format_page.h"
#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {
namespace {

using vtkv::FormatCheck;
using vtkv::PageValue;
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

TEST(ContainerHeader, ContainerHeaderIsAsOnThePage) {
  FormatCheck<ContainerHeader> check(
      "Container header", [](const ContainerHeader& header) { return header.encode(); },
      [](const std::string& bytes, ContainerHeader* header) {
        return ContainerHeader::decode("header", bytes, header).ok();
      });
  check.example("container header", example());
  check.constant("magic", "SWIMCONT");
  check.constant("version", kContainerHeaderVersion);
  check.constant("size classes", kSizeClasses);
  check.field("uuid", std::array<uint8_t, 16>{9, 8, 7}, &ContainerHeader::uuid);
  check.field("chunk bytes", 1u << 13, &ContainerHeader::chunk_bytes);
  check.constant("block bytes", kBlockBytes);
  std::string primed;
  for (unsigned size_class = 0; size_class < kSizeClasses; ++size_class) {
    primed += vtkv::raw_bytes(uint64_t{0x100} + size_class);
  }
  check.part("primed slots", primed, [](ContainerHeader& it) {
    for (unsigned size_class = 0; size_class < kSizeClasses; ++size_class) {
      it.primed_slots[size_class] = 0x100 + size_class;
    }
  });
  EXPECT_EQ(check.findings(), "");
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
