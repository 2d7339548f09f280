// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/span/long_body.h"

#include <gtest/gtest.h>

#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

class LongBodyTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ZoneFile::create(&m_env, "/tree").ok());
    ASSERT_TRUE(ZoneFile::open(&m_env, "/tree", 64 << 10, &m_file).ok());
  }
  Span write(const std::string& body, uint32_t units_most) {
    SpanList list(m_file);
    SpanWriter writer(&m_env, m_file, ZoneStream::last, &list);
    EXPECT_TRUE(write_long_body(BlockKind::descriptor, body, &writer, units_most).ok());
    EXPECT_EQ(list.spans.size(), 1u);
    return list.spans.front();
  }
  Status read(const Span& span, uint32_t units_most, std::string* body) {
    return read_long_body({m_file, std::make_shared<ReadCache>(0)}, span, 0, BlockKind::descriptor, body, units_most);
  }

  SimEnv m_env{{.record = false}};
  std::shared_ptr<ZoneFile> m_file;
};

// A body of that many bytes, all different in their places.
std::string body_of(size_t bytes) {
  std::string body;
  for (size_t i = 0; i < bytes; ++i) {
    body.push_back(static_cast<char>(i % 251));
  }
  return body;
}

TEST_F(LongBodyTest, OfAnyLengthIsReadAsItWasWritten) {
  constexpr size_t kFragment = 2 * kUnitBytes - sizeof(block_header_t);
  for (const size_t bytes : {size_t{0}, size_t{1}, kFragment - 1, kFragment, kFragment + 1, 2 * kFragment,
                             2 * kFragment + 1, size_t{200'000}}) {  // more than a zone
    const Span span = write(body_of(bytes), 2);
    std::string body;
    ASSERT_TRUE(read(span, 2, &body).ok()) << bytes;
    EXPECT_TRUE(body == body_of(bytes)) << bytes;
  }
}

// As every descriptor was written before, and still is when it fits.
TEST_F(LongBodyTest, OneThatFitsOneBlockIsOneBlock) {
  const std::string expected = body_of(50'000);
  const Span span = write(expected, kBlockUnitsMax);
  std::shared_ptr<const Block> block;
  const SpanReader reader(m_file, std::make_shared<ReadCache>(0));
  ASSERT_TRUE(reader.read_uncached(span, 0, span.units, BlockKind::descriptor, &block).ok());
  EXPECT_TRUE(block->body() == expected);
}

TEST_F(LongBodyTest, DamageInAnyFragmentIsAnError) {
  const Span span = write(body_of(30'000), 2);
  for (uint32_t unit = 0; unit < span.units; ++unit) {
    AlignedBuffer old, damaged;
    old.reserve(kUnitBytes);
    const uint64_t offset = span.offset + uint64_t{unit} * kUnitBytes;
    ASSERT_TRUE(m_file->file()->read(offset, kUnitBytes, old.data()).ok());
    std::string bytes(old.data(), kUnitBytes);
    bytes[40] ^= 1;
    damaged.append(bytes);
    ASSERT_TRUE(m_file->file()->write(offset, damaged.data(), kUnitBytes).ok());
    std::string body;
    EXPECT_EQ(read(span, 2, &body).code(), Status::Code::corruption) << unit;
    ASSERT_TRUE(m_file->file()->write(offset, old.data(), kUnitBytes).ok());
  }
}

}  // namespace
}  // namespace vtkv
