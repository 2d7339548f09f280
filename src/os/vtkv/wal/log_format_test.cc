// SPDX-License-Identifier: LGPL-2.1-or-later
// The bytes of the log, spelled out. A change here is a change of format.

#include "vtkv/wal/log_format.h"

#include <gtest/gtest.h>

#include <cstring>

#include "vtkv/util/crc32c.h"

namespace vtkv {
namespace {

Uuid test_uuid() {
  Uuid uuid;
  for (size_t i = 0; i < uuid.size(); ++i) {
    uuid[i] = static_cast<uint8_t>(0xa0 + i);
  }
  return uuid;
}

// Hex digits and spaces; what follows a '#' on a line is a remark.
std::string bytes_of(const std::string& annotated) {
  std::string bytes;
  std::string digits;
  bool remark = false;
  for (char c : annotated) {
    remark = c == '#' || (remark && c != '\n');
    if (remark || isspace(c)) {
      continue;
    }
    digits.push_back(c);
    if (digits.size() == 2) {
      bytes.push_back(static_cast<char>(std::stoi(digits, nullptr, 16)));
      digits.clear();
    }
  }
  return bytes;
}

template <typename T>
std::string raw(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string with_crc(std::string bytes) {
  const uint32_t crc = crc32c(bytes);
  return bytes.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
}

TEST(VlogFormatTest, SegmentHeader) {
  segment_header_t header;
  header.uuid = test_uuid();
  header.segment_id = 0x0102;
  header.epoch = 0x0304;
  header.segment_bytes = 64 << 20;
  header.flags = kUnprimedSegment;
  seal(&header);
  EXPECT_EQ(raw(header), with_crc(bytes_of(R"(
    76 74 6b 76 6c 73 65 67                          # magic "vtkvlseg"
    03 00 00 00  01 00 00 00                         # version, flags: unprimed
    a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 aa ab ac ad ae af  # uuid
    02 01 00 00 00 00 00 00                          # segment id
    04 03 00 00 00 00 00 00                          # epoch
    00 00 00 04 00 00 00 00                          # segment bytes
    00 00 00 00                                      # reserved
  )")));
}

TEST(VlogFormatTest, RecordHeader) {
  record_header_t header;
  header.flags = kRecoveryRecord;
  header.uuid = test_uuid();
  header.epoch = 5;
  header.first_sequence = 0x1122;
  header.sequence_count = 3;
  header.batch_count = 2;
  header.previous_crc = 0xdeadbeef;
  header.nonce = 0x1020304050607080;
  header.durable_seq = 0x1100;
  // The check value of CRC-32C, of the digits 1 to 9.
  seal(&header, "123456789");
  EXPECT_EQ(raw(header), with_crc(bytes_of(R"(
    76 72 65 63  01 00  01 00                        # magic "vrec", version, flags
    a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 aa ab ac ad ae af  # uuid
    05 00 00 00 00 00 00 00                          # epoch
    22 11 00 00 00 00 00 00                          # first sequence
    03 00 00 00  02 00 00 00                         # sequence count, batch count
    09 00 00 00  ef be ad de                         # body bytes, previous checksum
    80 70 60 50 40 30 20 10                          # nonce
    00 11 00 00 00 00 00 00                          # durable_seq
    83 92 06 e3                                      # body checksum
  )")));
  EXPECT_EQ(header.last_sequence(), 0x1124u);
  EXPECT_EQ(header.padded_bytes(), 4096u);
}

TEST(VlogFormatTest, Batch) {
  WriteBatch batch;
  batch.put("key", "v");
  batch.remove("k");
  batch.remove_range("a", "b");
  batch.remove_range("b", "a");  // nothing
  batch.external_write({.container = 1, .slot = 300, .offset = 2, .length = 4096, .crc32c = 0x01020304});
  batch.note("n");
  EXPECT_EQ(batch.sequence_count(), 3u);
  EXPECT_EQ(std::string(batch.encoded()), bytes_of(R"(
    01  03 6b 65 79  01 76             # put
    02  01 6b                          # remove
    03  01 61  01 62                   # remove_range
    04  01  ac 02  02  80 20  04 03 02 01  # external write
    05  01 6e                          # note
  )"));
}

TEST(VlogFormatTest, EveryFlippedBitOfAHeaderIsNoticed) {
  segment_header_t segment;
  segment.uuid = test_uuid();
  seal(&segment);
  record_header_t record;
  record.uuid = test_uuid();
  record.first_sequence = 1;
  record.sequence_count = 1;
  seal(&record, "");
  for (size_t bit = 0; bit < 8 * sizeof(segment); ++bit) {
    std::string bytes = raw(segment);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    segment_header_t decoded;
    EXPECT_NE(decode_segment_header(bytes, test_uuid(), &decoded), HeaderState::valid) << "bit " << bit;
  }
  for (size_t bit = 0; bit < 8 * sizeof(record); ++bit) {
    std::string bytes = raw(record);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    record_header_t decoded;
    EXPECT_FALSE(decode_record_header(bytes, test_uuid(), &decoded)) << "bit " << bit;
  }
}

TEST(VlogFormatTest, HeaderOfTheFutureIsForeign) {
  segment_header_t header;
  header.uuid = test_uuid();
  header.version = kSegmentVersion + 1;
  seal(&header);
  segment_header_t decoded;
  EXPECT_EQ(decode_segment_header(raw(header), test_uuid(), &decoded), HeaderState::foreign);
  EXPECT_EQ(decode_segment_header(std::string(64, '\0'), test_uuid(), &decoded), HeaderState::blank);
}

TEST(VlogFormatTest, SegmentHeaderOfVersionOneHasNoFlags) {
  segment_header_t header;
  header.uuid = test_uuid();
  header.version = 1;
  header.flags = kUnprimedSegment;  // reserved then, and ignored
  seal(&header);
  segment_header_t decoded;
  EXPECT_EQ(decode_segment_header(raw(header), test_uuid(), &decoded), HeaderState::valid);
  EXPECT_EQ(decoded.flags, 0u);
}

class Collector final : public BatchVisitor, public WriteBatch::Handler {
 public:
  Status batch(SequenceNumber first, uint32_t count, std::string_view encoded, const LogAddress& address) override {
    text += "[" + std::to_string(first) + "+" + std::to_string(count) + "]";
    return WriteBatch::iterate(encoded, *this);
  }
  void put(std::string_view key, std::string_view value) override { add("put ", key, value); }
  void remove(std::string_view key) override { add("remove ", key, {}); }
  void remove_range(std::string_view begin, std::string_view end) override { add("range ", begin, end); }
  void external_write(const ExternalWrite& write) override { text += "external " + std::to_string(write.slot) + ";"; }
  void note(std::string_view bytes) override { add("note ", bytes, {}); }
  std::string text;

 private:
  void add(const char* what, std::string_view first, std::string_view second) {
    text.append(what).append(first).append(" ").append(second).append(";");
  }
};

class RecordBodyTest : public testing::Test {
 protected:
  RecordBodyTest() {
    WriteBatch first;
    first.put("a", "1");
    first.remove("b");
    WriteBatch second;
    second.note("n");
    for (const WriteBatch* batch : {&first, &second}) {
      const batch_frame_t frame{batch->sequence_count(), static_cast<uint32_t>(batch->encoded_bytes())};
      m_body += raw(frame) + std::string(batch->encoded());
    }
    m_header.first_sequence = 10;
    m_header.sequence_count = 3;
    m_header.batch_count = 2;
  }
  record_header_t m_header;
  std::string m_body;
  Collector m_collector;
};

TEST_F(RecordBodyTest, BatchesComeInOrderWithTheirSequences) {
  ASSERT_TRUE(for_each_batch(m_header, m_body, {}, m_collector).ok());
  EXPECT_EQ(m_collector.text, "[10+2]put a 1;remove b ;[12+1]note n ;");
}

TEST_F(RecordBodyTest, BodyCutAnywhereIsCorruption) {
  for (size_t length = 0; length < m_body.size(); ++length) {
    EXPECT_TRUE(for_each_batch(m_header, m_body.substr(0, length), {}, m_collector).is_corruption()) << length;
  }
}

TEST_F(RecordBodyTest, CountsThatContradictTheFramesAreCorruption) {
  m_header.batch_count = 1;
  EXPECT_TRUE(for_each_batch(m_header, m_body, {}, m_collector).is_corruption());
  m_header.batch_count = 3;
  EXPECT_TRUE(for_each_batch(m_header, m_body, {}, m_collector).is_corruption());
  m_header.batch_count = 2;
  m_header.sequence_count = 4;
  EXPECT_TRUE(for_each_batch(m_header, m_body, {}, m_collector).is_corruption());
  m_header.sequence_count = 1;
  EXPECT_TRUE(for_each_batch(m_header, m_body, {}, m_collector).is_corruption());
}

TEST(WriteBatchTest, BytesCutOrUnknownAreCorruption) {
  WriteBatch batch;
  batch.put("key", "value");
  Collector collector;
  for (size_t length = 1; length < batch.encoded_bytes(); ++length) {
    EXPECT_TRUE(WriteBatch::iterate(batch.encoded().substr(0, length), collector).is_corruption());
  }
  EXPECT_TRUE(WriteBatch::iterate("\x09", collector).is_corruption());
  EXPECT_EQ(collector.text, "");
}

}  // namespace
}  // namespace vtkv
