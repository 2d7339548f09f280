// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/fuzz/kv_fuzz_targets.h"

#include <cstring>
#include <span>

#include "vtkv/mem/value_pointer.h"
#include "vtkv/span/block.h"
#include "vtkv/span/block_builder.h"
#include "vtkv/span/block_compression.h"
#include "vtkv/span/block_range.h"
#include "vtkv/table/quotient_filter.h"
#include "vtkv/table/run_format.h"
#include "vtkv/tree/manifest.h"
#include "vtkv/tree/manifest_format.h"
#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"
#include "vtkv/util/hash.h"
#include "vtkv/wal/log_format.h"
#include "vtkv/write_batch.h"

namespace vtkv {

namespace {

constexpr uint64_t kFileBytes = uint64_t{1} << 40;

// Looks at every byte it is given, so that a sanitizer sees one that is not there.
class BatchReader final : public WriteBatch::Handler, public BatchVisitor {
 public:
  void put(std::string_view key, std::string_view value) override { m_again.put(key, value); }
  void remove(std::string_view key) override { m_again.remove(key); }
  void remove_range(std::string_view begin, std::string_view end) override { m_again.remove_range(begin, end); }
  void external_write(const ExternalWrite& write) override { m_again.external_write(write); }
  void note(std::string_view bytes) override { m_again.note(bytes); }
  Status batch(SequenceNumber, uint32_t, std::string_view encoded, const LogAddress&) override {
    return WriteBatch::iterate(encoded, *this);
  }
  const WriteBatch& again() const { return m_again; }

 private:
  WriteBatch m_again;
};

void run_batch(std::string_view bytes) {
  BatchReader first, second;
  if (WriteBatch::iterate(bytes, first).ok() &&
      (!first.again().iterate(second).ok() || first.again().encoded() != second.again().encoded())) {
    fuzz_violation("a batch is another one after it was encoded again");
  }
}

WriteBatch small_batch() {
  WriteBatch batch;
  batch.put("key", "value");
  batch.remove("another");
  batch.remove_range("a", "b");
  batch.external_write({.container = 2, .slot = 77, .offset = 4096, .length = 8192, .crc32c = 0x12345678});
  batch.note("a note");
  return batch;
}

std::vector<std::string> batch_seeds() { return {std::string(small_batch().encoded()), std::string()}; }

// ---- log

void run_segment_header(std::string_view bytes) {
  segment_header_t header;
  decode_segment_header(bytes, Uuid{}, &header);
  if (bytes.size() < sizeof header) {
    return;
  }
  segment_header_t sealed;
  std::memcpy(&sealed, bytes.data(), sizeof sealed);
  seal(&sealed);
  const std::string_view again(reinterpret_cast<const char*>(&sealed), sizeof sealed);
  const HeaderState state = decode_segment_header(again, sealed.uuid, &header);
  // Version 1 has no flags, whatever its bytes say.
  const bool known = header.version == 1 ? header.flags == 0
                                         : header.version > 1 && header.version <= kSegmentVersion &&
                                               (header.flags & ~kUnprimedSegment) == 0;
  if (state == HeaderState::valid && (header.magic != kSegmentMagic || !known)) {
    fuzz_violation("a segment header of another kind is taken for valid");
  }
}

std::vector<std::string> segment_header_seeds() {
  segment_header_t header;
  header.segment_id = 3;
  header.epoch = 17;
  header.segment_bytes = 64u << 10;
  seal(&header);
  segment_header_t before = header;
  before.version = kSegmentVersion - 1;
  seal(&before);
  return {std::string(reinterpret_cast<const char*>(&header), sizeof header),
          std::string(reinterpret_cast<const char*>(&before), sizeof before)};
}

// The checksums are made right first: a fuzzer does not find them.
void run_log_record(std::string_view bytes) {
  record_header_t header;
  decode_record_header(bytes, Uuid{}, &header);
  if (bytes.size() < sizeof header) {
    return;
  }
  const std::string_view body = bytes.substr(sizeof header);
  record_header_t sealed;
  std::memcpy(&sealed, bytes.data(), sizeof sealed);
  sealed.magic = kRecordMagic;
  sealed.version = kRecordVersion;
  seal(&sealed, body);
  if (decode_record_header({reinterpret_cast<const char*>(&sealed), sizeof sealed}, sealed.uuid, &header)) {
    BatchReader reader;
    (void)for_each_batch(header, body, {}, reader);
  }
}

std::vector<std::string> log_record_seeds() {
  const WriteBatch batch = small_batch();
  std::string body;
  for (int i = 0; i < 2; ++i) {
    const batch_frame_t frame{batch.sequence_count(), static_cast<uint32_t>(batch.encoded_bytes())};
    body.append(reinterpret_cast<const char*>(&frame), sizeof frame);
    body.append(batch.encoded());
  }
  record_header_t header;
  header.epoch = 17;
  header.first_sequence = 100;
  header.sequence_count = 2 * batch.sequence_count();
  header.batch_count = 2;
  header.durable_seq = 99;
  seal(&header, body);
  record_header_t recovery;
  recovery.flags = kRecoveryRecord;
  recovery.epoch = 18;
  recovery.first_sequence = 107;
  recovery.sequence_count = 1;
  recovery.nonce = 4711;
  seal(&recovery, {});
  return {std::string(reinterpret_cast<const char*>(&header), sizeof header) + body,
          std::string(reinterpret_cast<const char*>(&recovery), sizeof recovery)};
}

// ---- tree

void iterate(const std::shared_ptr<const Block>& block) {
  BlockIterator it(block);
  std::string middle;
  SequenceNumber sequence = 0;
  uint64_t forwards = 0;
  for (it.seek_to_first(); it.valid(); it.next()) {
    if (++forwards == block->entries_bytes() / 2) {
      middle = it.entry().key;
      sequence = it.entry().sequence;
    }
    if (forwards > block->body().size()) {
      fuzz_violation("a block has more entries than bytes");
    }
  }
  uint64_t backwards = 0;
  for (it.seek_to_last(); it.valid(); it.previous()) {
    if (++backwards > block->body().size()) {
      fuzz_violation("an iterator does not come to a block's beginning");
    }
  }
  it.reset(block);
  it.seek(middle, sequence);
  it.reset(block);
  it.seek_for_previous(middle + "x", sequence);
  it.reset(block);
  it.seek("key_07", 3);
}

void run_block(std::string_view bytes) {
  std::shared_ptr<const Block> block;
  (void)Block::parse(bytes, {}, &block);
  block_header_t header;
  if (bytes.size() < sizeof header) {
    return;
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  header.magic = kBlockMagic;
  header.version = header.version % 2 == 0 ? kCompressedBlockVersion : kBlockVersion;
  header.body_bytes = std::min<uint32_t>(header.body_bytes, static_cast<uint32_t>(bytes.size() - sizeof header));
  std::string sealed(bytes);
  std::memcpy(sealed.data(), &header, sizeof header);
  constexpr size_t kCrcBytes = sizeof header.crc32c;
  patch32(&sealed, 0, crc32c(sealed.data() + kCrcBytes, sizeof header - kCrcBytes + header.body_bytes));
  if (Block::parse(sealed, {static_cast<BlockKind>(header.kind), header.span_id, header.unit}, &block).ok()) {
    iterate(block);
  }
}

// The same block with a body that is compressed to literals alone: what another release of the library makes of it does
// not matter.
std::string as_compressed(const std::string& block) {
  block_header_t header;
  std::memcpy(&header, block.data(), sizeof header);
  const std::string plain = block.substr(sizeof header, header.body_bytes);
  constexpr size_t kLengthInToken = 15, kLengthByteMax = 255;
  std::string literals("\xf0");
  size_t length = plain.size() - kLengthInToken;
  for (; length >= kLengthByteMax; length -= kLengthByteMax) {
    literals.push_back('\xff');
  }
  literals.push_back(static_cast<char>(length));
  literals += plain;
  const compressed_body_t body{
      static_cast<uint8_t>(CompressionAlgorithm::lz4), {}, static_cast<uint32_t>(plain.size())};
  header.version = kCompressedBlockVersion;
  header.body_bytes = static_cast<uint32_t>(sizeof body + literals.size());
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(&body), sizeof body);
  bytes += literals;
  constexpr size_t kCrcBytes = sizeof header.crc32c;
  patch32(&bytes, 0, crc32c(bytes.data() + kCrcBytes, bytes.size() - kCrcBytes));
  return bytes;
}

std::vector<std::string> block_seeds() {
  BlockBuilder entries(BlockKind::entries);
  for (int i = 0; i < 40; ++i) {
    const std::string key = "key_" + std::to_string(10 + i / 2);
    entries.add({key, static_cast<SequenceNumber>(100 - i), i % 5 == 0 ? EntryType::tombstone : EntryType::value,
                 std::string_view("some value").substr(0, i % 10)});
  }
  std::string with_entries, with_bytes;
  entries.finish(5, 1, &with_entries);
  BlockBuilder plain(BlockKind::descriptor);
  plain.set_body("plain bytes");
  plain.finish(6, 2, &with_bytes);
  // Without the padding: it says nothing to a fuzzer.
  with_entries.resize(with_entries.find_last_not_of('\0') + 4);
  with_bytes.resize(with_bytes.find_last_not_of('\0') + 1);
  return {with_entries, with_bytes, as_compressed(with_entries)};
}

BlockRange some_blocks() {
  BlockRange blocks;
  blocks.unit = 1;
  blocks.units = 2;
  blocks.first_key = "key_10";
  blocks.first_sequence = 90;
  blocks.last_key = "key_29";
  blocks.entries = 40;
  blocks.doubtful = 20;
  blocks.smallest_sequence = 61;
  blocks.greatest_sequence = 100;
  return blocks;
}

// Its first key stands before it, as in both of its places on disk.
void run_block_range(std::string_view bytes) {
  BlockRange blocks;
  std::string_view in = bytes, first_key;
  if (!get_length_prefixed(&in, &first_key) || !get_varint64(&in, &blocks.first_sequence)) {
    return;
  }
  blocks.first_key = first_key;
  BlockRange again = blocks;
  uint32_t unit = 0, units = 0;
  BlockRange::decode_address(in, &unit, &units);
  if (!blocks.decode(&in)) {
    return;
  }
  std::string encoded;
  blocks.encode(&encoded);
  std::string_view from = encoded;
  if (!again.decode(&from) || !from.empty() || again != blocks) {
    fuzz_violation("a range of blocks is another one after it was encoded again");
  }
}

std::vector<std::string> block_range_seeds() {
  const BlockRange blocks = some_blocks();
  std::string bytes;
  put_length_prefixed(&bytes, blocks.first_key);
  put_varint64(&bytes, blocks.first_sequence);
  blocks.encode(&bytes);
  return {bytes};
}

void run_run_descriptor(std::string_view bytes) {
  RunDescriptor run, again;
  if (!RunDescriptor::decode(bytes, kFileBytes, &run).ok()) {
    return;
  }
  std::string encoded, twice;
  run.encode(&encoded);
  if (!RunDescriptor::decode(encoded, kFileBytes, &again).ok()) {
    fuzz_violation("a run's descriptor that was accepted is not, once it was encoded again");
  }
  again.encode(&twice);
  if (encoded != twice || run.entries() != again.entries() || run.bytes() != again.bytes()) {
    fuzz_violation("a run's descriptor is another one after it was encoded again");
  }
}

std::vector<std::string> run_descriptor_seeds() {
  RunDescriptor run;
  run.run_id = 9;
  run.smallest_sequence = 61;
  run.greatest_sequence = 100;
  run.spans = {{.id = 5, .offset = 65536, .units = 5, .index_unit = 3, .index_units = 1},
               {.id = 6, .offset = 131072, .units = 2}};
  run.slices = {{0, some_blocks()}};
  run.tombstone_blocks = {{1, 0, 1}};
  run.filter_blocks = {{1, 1, 1}};
  std::string bytes, empty;
  run.encode(&bytes);
  RunDescriptor().encode(&empty);
  return {bytes, empty};
}

void run_manifest(std::string_view bytes) {
  Checkpoint checkpoint, again;
  (void)Checkpoint::decode(bytes, &checkpoint);
  if (bytes.size() < sizeof(manifest_header_t)) {
    return;
  }
  std::string sealed(bytes);
  std::memcpy(sealed.data(), kManifestMagic, sizeof kManifestMagic);
  patch32(&sealed, offsetof(manifest_header_t, length), static_cast<uint32_t>(sealed.size()));
  constexpr size_t kCrcStart = offsetof(manifest_header_t, version);
  patch32(&sealed, offsetof(manifest_header_t, crc32c), crc32c(sealed.data() + kCrcStart, sealed.size() - kCrcStart));
  if (!Checkpoint::decode(sealed, &checkpoint).ok()) {
    return;
  }
  const std::string encoded = checkpoint.encode();
  if (!Checkpoint::decode(encoded, &again).ok() || again.encode() != encoded) {
    fuzz_violation("a checkpoint is another one after it was encoded again");
  }
}

std::vector<std::string> manifest_seeds() {
  Checkpoint checkpoint;
  checkpoint.epoch = 4;
  checkpoint.position = {100, 3, 17, 8192, 0x1234};
  checkpoint.next_run_id = 10;
  checkpoint.runs = {{9, 1, {.id = 7, .offset = 65536, .units = 1}, 0}};
  checkpoint.segments = {{3, 17, 2, 4000, 8000}};
  const std::string plain = checkpoint.encode();
  checkpoint.features = {.compat = {"notes"}, .ro_compat = {}, .incompat = {"zoned"}};
  return {plain, checkpoint.encode()};
}

void run_quotient_filter(std::string_view bytes) {
  QuotientFilter filter;
  if (!QuotientFilter::parse(bytes, &filter)) {
    return;
  }
  if (filter.serialized() != bytes) {
    fuzz_violation("a filter has other bytes than those it was parsed from");
  }
  if (!filter.active()) {
    return;
  }
  uint64_t count = 0;
  for (QuotientFilter::Cursor cursor(filter); cursor.valid(); cursor.next(), ++count) {
    if (!filter.may_contain(cursor.fingerprint() << (64 - filter.bits()))) {
      fuzz_violation("a filter denies a fingerprint that it holds");
    }
  }
  if (count != filter.entries()) {
    fuzz_violation("a filter does not hold as many fingerprints as it says");
  }
}

std::vector<std::string> quotient_filter_seeds() {
  std::vector<std::string> seeds;
  for (const uint64_t keys : {0, 5, 40, 90}) {
    QuotientFilter filter(keys, 16);
    for (uint64_t i = 0; i < keys; ++i) {
      (void)filter.insert(hash64("key_" + std::to_string(i)));
    }
    seeds.push_back(filter.serialized());
  }
  return seeds;
}

void run_value_pointer(std::string_view bytes) {
  ValuePointer pointer, again;
  std::string encoded;
  if (pointer.decode(bytes)) {
    pointer.encode(&encoded);
    if (!again.decode(encoded) || again != pointer) {
      fuzz_violation("a value pointer is another one after it was encoded again");
    }
  }
}

std::vector<std::string> value_pointer_seeds() {
  std::string bytes;
  ValuePointer{.segment_id = 3, .epoch = 17, .offset = 4200, .length = 70000, .crc32c = 0x12345678}.encode(&bytes);
  return {bytes};
}

constexpr FuzzTarget kTargets[] = {{"batch", run_batch, batch_seeds},
                                   {"segment_header", run_segment_header, segment_header_seeds},
                                   {"log_record", run_log_record, log_record_seeds},
                                   {"block", run_block, block_seeds},
                                   {"block_range", run_block_range, block_range_seeds},
                                   {"run_descriptor", run_run_descriptor, run_descriptor_seeds},
                                   {"manifest", run_manifest, manifest_seeds},
                                   {"quotient_filter", run_quotient_filter, quotient_filter_seeds},
                                   {"value_pointer", run_value_pointer, value_pointer_seeds}};

}  // namespace

std::span<const FuzzTarget> kv_fuzz_targets() { return kTargets; }

}  // namespace vtkv
