// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/wal/log_format.h"

#include <gtest/gtest.h>

#include <cstring>

#include "vtkv/testing/format_page.h"
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

template <typename T>
std::string raw(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
T copy_from(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

TEST(VlogFormatTest, SegmentHeaderIsAsOnThePage) {
  const auto encode = [](segment_header_t header) {
    seal(&header);
    return raw(header);
  };
  const auto decode = [](const std::string& bytes, segment_header_t* header) {
    return decode_segment_header(bytes, copy_from<segment_header_t>(bytes).uuid, header) == HeaderState::valid;
  };
  FormatCheck<segment_header_t> check("Segment header", encode, decode);
  segment_header_t header;
  header.uuid = test_uuid();
  header.segment_id = 0x0102;
  header.epoch = 0x0304;
  header.segment_bytes = 64 << 20;
  header.flags = kUnprimedSegment;
  check.example("segment header", header);
  check.constant("magic", raw_bytes(kSegmentMagic));
  check.constant("version", kSegmentVersion);
  check.field("flags", 0, &segment_header_t::flags);
  check.names("flags", {{"not primed", kUnprimedSegment}});
  check.field("uuid", Uuid{9, 8, 7}, &segment_header_t::uuid);
  check.field("segment id", 0x1122334455667788, &segment_header_t::segment_id);
  check.field("epoch", 0x22334455667788, &segment_header_t::epoch);
  check.field("segment bytes", 0x1122334455667788, &segment_header_t::segment_bytes);
  EXPECT_EQ(check.findings(), "");
}

struct RecordExample {
  record_header_t header;
  std::string body;
};

TEST(VlogFormatTest, RecordIsAsOnThePage) {
  const auto encode = [](const RecordExample& record) {
    record_header_t header = record.header;
    seal(&header, record.body);
    return raw(header) + record.body;
  };
  const auto decode = [](const std::string& bytes, RecordExample* record) {
    record->body = bytes.substr(sizeof(record_header_t));
    return decode_record_header(bytes, copy_from<record_header_t>(bytes).uuid, &record->header) &&
           record->header.body_bytes == record->body.size() && record->header.body_crc == crc32c(record->body);
  };
  FormatCheck<RecordExample> check("Record", encode, decode);
  record_header_t header;
  header.uuid = test_uuid();
  header.epoch = 5;
  header.first_sequence = 0x1122;
  header.sequence_count = 1;
  header.batch_count = 1;
  header.previous_crc = 0xdeadbeef;
  header.nonce = 0x1020304050607080;
  header.durable_seq = 0x1100;
  check.example("record", {header, page_example("batch in a record")});
  // Of the header.
  const auto field = [&check](const std::string& row, PageValue other, auto member) {
    check.field(row, std::move(other), [member](RecordExample& record) -> auto& { return record.header.*member; });
  };
  check.constant("magic", raw_bytes(kRecordMagic));
  check.constant("version", kRecordVersion);
  field("flags", kContinues, &record_header_t::flags);
  check.names("flags", {{"ends a recovery", kRecoveryRecord}, {"cross-cube", kCrossCube}, {"continues", kContinues}});
  field("uuid", Uuid{9, 8, 7}, &record_header_t::uuid);
  field("epoch", 0x22334455667788, &record_header_t::epoch);
  field("first sequence", 0x22334455667788, &record_header_t::first_sequence);
  field("sequence numbers", 0x11223344, &record_header_t::sequence_count);
  field("batches", 0x11223344, &record_header_t::batch_count);
  check.derived("body bytes", [](const RecordExample& record) { return PageValue(record.body.size()); });
  field("previous checksum", 0x11223344, &record_header_t::previous_crc);
  field("nonce", 0x1122334455667788, &record_header_t::nonce);
  field("durable_seq", 0x0102, &record_header_t::durable_seq);
  check.field("body", "another body", &RecordExample::body);
  EXPECT_EQ(check.findings(), "");
  EXPECT_EQ(header.last_sequence(), 0x1122u);
  EXPECT_EQ(header.padded_bytes(), 4096u);
}

// A batch as the log has it, in a record of its own.
class BatchInARecord final : public BatchVisitor {
 public:
  uint32_t sequence_count = 0;
  std::string encoded;

  std::string encode() const {
    const batch_frame_t frame{sequence_count, static_cast<uint32_t>(encoded.size())};
    return raw(frame) + encoded;
  }
  bool decode(const std::string& bytes) {
    record_header_t header;
    header.first_sequence = 1;
    header.sequence_count = copy_from<batch_frame_t>(bytes).sequence_count;
    header.batch_count = 1;
    return for_each_batch(header, bytes, {}, *this).ok();
  }
  Status batch(SequenceNumber, uint32_t count, std::string_view bytes, const LogAddress&) override {
    sequence_count = count;
    encoded = bytes;
    return Status();
  }
};

TEST(VlogFormatTest, BatchInARecordIsAsOnThePage) {
  FormatCheck<BatchInARecord> check(
      "Batch in a record", [](const BatchInARecord& batch) { return batch.encode(); },
      [](const std::string& bytes, BatchInARecord* batch) { return batch->decode(bytes); });
  BatchInARecord batch;
  batch.sequence_count = 1;
  batch.encoded = page_example("put");
  check.example("batch in a record", batch);
  check.field("sequence numbers", 0x11223344, &BatchInARecord::sequence_count);
  check.derived("bytes", [](const BatchInARecord& batch) { return PageValue(batch.encoded.size()); });
  check.field("encoded batch", page_example("remove"), &BatchInARecord::encoded);
  EXPECT_EQ(check.findings(), "");
}

// One operation of a batch; what it has no use for stays empty.
class Operation final : public WriteBatch::Handler {
 public:
  enum Kind { kPut, kRemove, kRemoveRange, kExternal, kNote };
  Kind kind = kPut;
  std::string first, second;
  ExternalWrite write;

  std::string encode() const {
    WriteBatch batch;
    switch (kind) {
      case kPut:
        batch.put(first, second);
        break;
      case kRemove:
        batch.remove(first);
        break;
      case kRemoveRange:
        batch.remove_range(first, second);
        break;
      case kExternal:
        batch.external_write(write);
        break;
      case kNote:
        batch.note(first);
        break;
    }
    return std::string(batch.encoded());
  }
  void put(std::string_view key, std::string_view value) override { take(kPut, key, value); }
  void remove(std::string_view key) override { take(kRemove, key, ""); }
  void remove_range(std::string_view begin, std::string_view end) override { take(kRemoveRange, begin, end); }
  void note(std::string_view bytes) override { take(kNote, bytes, ""); }
  void external_write(const ExternalWrite& found) override {
    take(kExternal, "", "");
    write = found;
  }

 private:
  void take(Kind found, std::string_view one, std::string_view two) {
    kind = found;
    first = one;
    second = two;
  }
};

FormatCheck<Operation> operation_check(const std::string& section, const std::string& example, Operation::Kind kind,
                                       std::string first, std::string second, int tag) {
  FormatCheck<Operation> check(
      section, [](const Operation& operation) { return operation.encode(); },
      [](const std::string& bytes, Operation* operation) { return WriteBatch::iterate(bytes, *operation).ok(); });
  Operation operation;
  operation.kind = kind;
  operation.first = std::move(first);
  operation.second = std::move(second);
  operation.write = {.container = 1, .slot = 300, .offset = 8192, .length = 4096, .crc32c = 0x01020304};
  check.example(example, operation);
  check.constant("tag", tag);
  return check;
}

TEST(VlogFormatTest, BatchIsAsOnThePage) {
  FormatCheck<Operation> put = operation_check("Operation put", "put", Operation::kPut, "key", "v", 1);
  put.field("key", "another key", &Operation::first);
  put.field("value", std::string(200, 'x'), &Operation::second);
  EXPECT_EQ(put.findings(), "");
  FormatCheck<Operation> remove = operation_check("Operation remove", "remove", Operation::kRemove, "k", "", 2);
  remove.field("key", "another key", &Operation::first);
  EXPECT_EQ(remove.findings(), "");
  FormatCheck<Operation> range =
      operation_check("Operation remove_range", "remove_range", Operation::kRemoveRange, "a", "b", 3);
  range.field("begin", "aaa", &Operation::first);
  range.field("end", "another end", &Operation::second);
  EXPECT_EQ(range.findings(), "");
  FormatCheck<Operation> note = operation_check("Operation note", "operation note", Operation::kNote, "n", "", 5);
  note.field("note", "another note", &Operation::first);
  EXPECT_EQ(note.findings(), "");
  FormatCheck<Operation> external =
      operation_check("Operation external write", "external write", Operation::kExternal, "", "", 4);
  const auto field = [&external](const std::string& row, PageValue other, auto member) {
    external.field(row, std::move(other), [member](Operation& operation) -> auto& { return operation.write.*member; });
  };
  field("container", 0x11223344, &ExternalWrite::container);
  field("slot", 0x1122334455667788, &ExternalWrite::slot);
  field("offset", 0x11223344, &ExternalWrite::offset);
  field("length", 0x11223344, &ExternalWrite::length);
  field("checksum", 0x11223344, &ExternalWrite::crc32c);
  EXPECT_EQ(external.findings(), "");
}

TEST(VlogFormatTest, AnOperationTakesASequenceNumberOrNone) {
  WriteBatch batch;
  batch.put("key", "v");
  batch.remove("k");
  batch.remove_range("a", "b");
  batch.remove_range("b", "a");  // nothing
  batch.external_write({});
  batch.note("n");
  EXPECT_EQ(batch.sequence_count(), 3u);
  std::string operations;
  for (const char* name : {"put", "remove", "remove_range"}) {
    operations += page_example(name);
  }
  EXPECT_TRUE(batch.encoded().starts_with(operations));
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
