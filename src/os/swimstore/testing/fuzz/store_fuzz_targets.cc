// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/fuzz/store_fuzz_targets.h"

#include <algorithm>

#include "swimstore/format/allocation_page.h"
#include "swimstore/format/collection_record.h"
#include "swimstore/format/container_header.h"
#include "swimstore/format/counter_record.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/format/onode_record.h"
#include "swimstore/format/slot_references.h"
#include "swimstore/format/split_slot.h"
#include "swimstore/format/superblock.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {

using vtkv::fuzz_violation;
using vtkv::FuzzTarget;

namespace {

// Where their crc lies (superblock.cc, container_header.cc): a fuzzer does not find it.
constexpr size_t kSuperblockCrc = 76;
constexpr size_t kContainerHeaderCrc = 136;

std::string sealed(std::string_view bytes, size_t crc_offset, size_t size) {
  std::string copy(bytes);
  copy.resize(std::max(copy.size(), size));
  vtkv::patch32(&copy, crc_offset, vtkv::crc32c(copy.data(), crc_offset));
  return copy;
}

// All but the zeros at the end, which say nothing to a fuzzer.
std::string trimmed(const std::string& bytes, size_t size) { return bytes.substr(0, size); }

void run_superblock(std::string_view bytes) {
  Superblock superblock, again;
  (void)Superblock::decode("superblock", bytes, &superblock);
  std::string copy(bytes.substr(0, Superblock::kCopyBytes));
  copy.resize(Superblock::kCopyBytes);
  vtkv::patch32(&copy, kSuperblockCrc, Superblock::checksum(copy));
  if (Superblock::decode("superblock", copy + copy, &superblock).ok() &&
      (!Superblock::decode("superblock", superblock.encode(), &again).ok() || again.encode() != superblock.encode())) {
    fuzz_violation("a superblock is another one after it was encoded again");
  }
}

std::vector<std::string> superblock_seeds() {
  Superblock superblock;
  superblock.uuid[3] = 7;
  superblock.created_us = 1'700'000'000'000'000;
  superblock.chunk_bytes = 32u << 20;
  const std::string newest = trimmed(superblock.encode(), 93);
  superblock.version = 2;
  return {newest, trimmed(superblock.encode(), kSuperblockCrc + 4)};
}

void run_container_header(std::string_view bytes) {
  ContainerHeader header, again;
  (void)ContainerHeader::decode("header", bytes, &header);
  if (ContainerHeader::decode("header", sealed(bytes, kContainerHeaderCrc, ContainerHeader::kBytes), &header).ok() &&
      (!ContainerHeader::decode("header", header.encode(), &again).ok() || again.encode() != header.encode())) {
    fuzz_violation("a container header is another one after it was encoded again");
  }
}

std::vector<std::string> container_header_seeds() {
  ContainerHeader header;
  header.uuid[5] = 9;
  header.chunk_bytes = 32u << 20;
  header.primed_slots[1] = 64;
  return {trimmed(header.encode(), kContainerHeaderCrc + 4)};
}

ExtentShard some_shard() {
  ExtentShard shard;
  shard.extents = {
      {.block = 0, .count = 1, .slot = {0, 9}, .slot_written_blocks = 1},
      {.block = 4, .count = 3, .shared = true, .slot = {2, 70000}, .slot_block = 1, .slot_written_blocks = 4},
      {.block = 8, .count = 2, .slot = {1, 300, 9}, .slot_block = 0, .slot_written_blocks = 2}};
  shard.crc32c[0] = 0x11111111;
  shard.crc32c[5] = 0x22222222;
  return shard;
}

ExtentShard shard_with_blobs() {
  ExtentShard shard = some_shard();
  CompressedBlob blob;
  blob.block = 10;
  blob.count = 6;
  blob.live = 0xb400;
  blob.algorithm = 2;
  blob.message = -15;
  blob.bytes = 8000;
  blob.extents = {{.block = 0, .count = 2, .slot = {3, 70}, .slot_block = 4, .slot_written_blocks = 8}};
  blob.crc32c = {0x33333333, 0x44444444};
  shard.blobs = {blob};
  return shard;
}

std::string encoded(const ExtentShard& shard) {
  std::string bytes;
  encode_extent_shard(shard, &bytes);
  return bytes;
}

void run_extent_shard(std::string_view bytes) {
  ExtentShard shard, again;
  if (!decode_extent_shard(bytes, &shard)) {
    return;
  }
  if (!decode_extent_shard(encoded(shard), &again) || again != shard) {
    fuzz_violation("an extent shard is another one after it was encoded again");
  }
}

std::vector<std::string> extent_shard_seeds() {
  return {encoded(some_shard()), encoded(ExtentShard()), encoded(shard_with_blobs())};
}

void run_onode(std::string_view bytes) {
  OnodeRecord record, again;
  ExtentShard shard, shard_again;
  if (!decode_onode(bytes, &record, &shard)) {
    return;
  }
  std::string once, twice;
  encode_onode(record, shard, &once);
  if (!decode_onode(once, &again, &shard_again)) {
    fuzz_violation("an onode that was accepted is not, once it was encoded again");
  }
  encode_onode(again, shard_again, &twice);
  if (once != twice) {
    fuzz_violation("an onode is another one after it was encoded again");
  }
}

std::vector<std::string> onode_seeds() {
  OnodeRecord record;
  record.nid = 300;
  record.size = 50000;
  record.flags = OnodeRecord::has_omap | OnodeRecord::shard_inline | OnodeRecord::has_hints;
  record.expected_object_size = 4u << 20;
  record.expected_write_size = 65536;
  record.alloc_hint_flags = 3;
  for (const char* name : {"_", "snapset"}) {
    record.attrs.emplace(name, ceph::buffer::copy("an attribute", 12));
  }
  OnodeRecord large;
  large.nid = 301;
  large.size = 40u << 20;
  std::string first, second;
  encode_onode(record, some_shard(), &first);
  encode_onode(large, ExtentShard(), &second);
  return {first, second};
}

void run_collection(std::string_view bytes) {
  CollectionRecord record, again;
  if (decode_collection(bytes, &record) && (!decode_collection(encode_collection(record), &again) || again != record)) {
    fuzz_violation("a collection is another one after it was encoded again");
  }
}

std::vector<std::string> collection_seeds() {
  return {encode_collection({0x1234, 5, 0, 0}), encode_collection({0x1234, 5, 3, 9})};
}

// All kinds of keys: the first byte says which.
void run_key(std::string_view bytes) {
  ghobject_t oid, oid_again;
  if (decode_object_key(bytes, &oid) && (!decode_object_key(object_key(oid), &oid_again) || oid != oid_again)) {
    fuzz_violation("an object is another one after its key was encoded again");
  }
  coll_t cid, cid_again;
  if (decode_collection_key(bytes, &cid) &&
      (!decode_collection_key(collection_key(cid), &cid_again) || cid != cid_again)) {
    fuzz_violation("a collection is another one after its key was encoded again");
  }
  uint64_t nid = 0;
  uint32_t number = 0;
  std::string_view user_key;
  SlotAddress slot;
  uint32_t group = 0;
  if ((decode_extent_key(bytes, &nid, &number) && extent_key(nid, number) != bytes) ||
      (decode_omap_header_key(bytes, &nid) && omap_header_key(nid) != bytes) ||
      (decode_omap_key(bytes, &nid, &user_key) && omap_key(nid, user_key) != bytes) ||
      (decode_omap_row_key(bytes, &nid, &user_key) && omap_row_key(nid, user_key) != bytes) ||
      (decode_omap_tombstone_key(bytes, &nid, &user_key) && omap_tombstone_key(nid, user_key) != bytes) ||
      (decode_omap_floor_key(bytes, &nid) && omap_floor_key(nid) != bytes) ||
      (decode_slot_reference_key(bytes, &slot, &group) && slot_reference_key(slot, group) != bytes)) {
    fuzz_violation("a key is another one after it was encoded again");
  }
}

std::vector<std::string> key_seeds() {
  const hobject_t object(object_t("name"), "locator", 17, 0x12345678, 3, "space");
  const hobject_t plain(object_t(std::string("a\0b\1c", 5)), "", CEPH_NOSNAP, 5, -4, "");
  return {object_key(ghobject_t(object)),
          object_key(ghobject_t(plain, 9, shard_id_t(2))),
          object_key(ghobject_t::get_max()),
          collection_key(coll_t(spg_t(pg_t(7, 3), shard_id_t(1)))),
          collection_key(coll_t::meta()),
          extent_key(300, 4),
          omap_header_key(300),
          omap_key(300, "user key"),
          omap_row_key(300, "user key"),
          omap_tombstone_key(300, "user key"),
          omap_floor_key(300),
          slot_reference_key({3, 77}, 0)};
}

void run_note(std::string_view bytes) {
  CubeDelta delta, again;
  if (!CubeDelta::decode(bytes, &delta).ok()) {
    return;
  }
  const std::string once = delta.encode();
  if (!CubeDelta::decode(once, &again).ok() || again.encode() != once) {
    fuzz_violation("a note is another one after it was encoded again");
  }
  PoolUsage sum;
  for (const auto& [pool, usage] : delta.pools) {
    sum += usage;
  }
}

std::vector<std::string> note_seeds() {
  CubeDelta delta;
  delta.allocation.allocated = {SlotBlocks::all({0, 17}), SlotBlocks::all({3, 5}, 7)};
  delta.allocation.freed = {SlotBlocks::all({0, 16, 4}), {{5, 2}, 3, 4, 32}};
  delta.pools[3] = {.allocated = 8192, .stored = -100, .omap = 7, .objects = 1};
  delta.next_object_id = 400;
  return {delta.encode()};
}

// The first byte is the key's length.
void run_counter(std::string_view bytes) {
  const size_t length = bytes.empty() ? 0 : std::min<size_t>(static_cast<uint8_t>(bytes[0]), bytes.size() - 1);
  Counters counters;
  if (!bytes.empty() && counters.load(bytes.substr(1, length), bytes.substr(1 + length)).ok()) {
    for (const auto& [pool, usage] : counters.pools) {
      Counters again;
      if (!again.load(Counters::pool_key(pool), Counters::pool_value(usage)).ok() || again.pools != counters.pools) {
        fuzz_violation("a pool's usage is another one after it was encoded again");
      }
    }
  }
}

std::string with_length(const std::string& key, const std::string& value) {
  return static_cast<char>(key.size()) + key + value;
}

std::vector<std::string> counter_seeds() {
  Counters counters;
  counters.next_object_id = 400;
  return {with_length(Counters::next_object_id_key(), counters.next_object_id_value()),
          with_length(Counters::pool_key(3), Counters::pool_value({.allocated = 8192, .stored = 5000, .objects = 1}))};
}

void run_allocation_page(std::string_view bytes) {
  constexpr size_t kKeyBytes = 6;
  AllocationPage page, again;
  if (AllocationPage::decode(bytes.substr(0, kKeyBytes), bytes.substr(std::min(kKeyBytes, bytes.size())), &page).ok() &&
      (!AllocationPage::decode(page.encode_key(), page.encode_value(), &again).ok() || again.owned != page.owned ||
       again.primed != page.primed)) {
    fuzz_violation("an allocation page is another one after it was encoded again");
  }
}

std::vector<std::string> allocation_page_seeds() {
  AllocationPage page;
  page.size_class = 2;
  page.number = 1;
  page.slots = 70;
  page.owned[0] = 0x5;
  page.primed[1] = 0x3f;
  return {page.encode_key() + page.encode_value()};
}

void run_split_slot(std::string_view bytes) {
  constexpr size_t kKeyBytes = 10;
  SplitSlotRecord record, again;
  if (SplitSlotRecord::decode(bytes.substr(0, kKeyBytes), bytes.substr(std::min(kKeyBytes, bytes.size())), &record)
          .ok() &&
      (!SplitSlotRecord::decode(SplitSlotRecord::encode_key(record.container, record.slot),
                                SplitSlotRecord::encode_value(record.container, record.owned), &again)
            .ok() ||
       again.owned != record.owned)) {
    fuzz_violation("a split slot is another one after it was encoded again");
  }
}

std::vector<std::string> split_slot_seeds() {
  const std::vector<uint64_t> small = {2}, large = {0xff00, 1};
  return {SplitSlotRecord::encode_key(1, 5) + SplitSlotRecord::encode_value(1, small),
          SplitSlotRecord::encode_key(7, 1) + SplitSlotRecord::encode_value(7, large)};
}

void run_slot_references(std::string_view bytes) {
  SlotReferences::Counts counts(kReferenceGroupBlocks, 1), again(kReferenceGroupBlocks, 1);
  if (SlotReferences::decode(bytes, counts) &&
      (!SlotReferences::decode(SlotReferences::encode(counts), again) || again != counts)) {
    fuzz_violation("slot references are others after they were encoded again");
  }
}

std::vector<std::string> slot_references_seeds() {
  SlotReferences::Counts counts(kReferenceGroupBlocks, 1);
  std::fill(counts.begin() + 7, counts.begin() + 30, 2);
  counts[63] = 1000;
  return {SlotReferences::encode(counts)};
}

constexpr FuzzTarget kTargets[] = {{"superblock", run_superblock, superblock_seeds},
                                   {"container_header", run_container_header, container_header_seeds},
                                   {"extent_shard", run_extent_shard, extent_shard_seeds},
                                   {"onode", run_onode, onode_seeds},
                                   {"collection", run_collection, collection_seeds},
                                   {"key", run_key, key_seeds},
                                   {"note", run_note, note_seeds},
                                   {"counter", run_counter, counter_seeds},
                                   {"allocation_page", run_allocation_page, allocation_page_seeds},
                                   {"split_slot", run_split_slot, split_slot_seeds},
                                   {"slot_references", run_slot_references, slot_references_seeds}};

}  // namespace

std::span<const FuzzTarget> store_fuzz_targets() { return kTargets; }

}  // namespace swimstore
