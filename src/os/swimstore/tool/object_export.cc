// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "swimstore/format/collection_record.h"
#include "swimstore/format/newer_entry.h"
#include "swimstore/format/unowned_range.h"
#include "swimstore/fsck/fsck.h"
#include "swimstore/isolation/collection_claims.h"
#include "swimstore/tool/object_archive.h"
#include "swimstore/tool/object_transfer.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr size_t kOmapRecordBytes = 1u << 20;

using Records = std::vector<std::pair<ArchiveRecord, std::string>>;

// The part of these bytes that lies within the object.
void add_record(const StoredObject& object, uint64_t offset, std::string_view bytes, Records* records,
                uint64_t* total_bytes) {
  const uint64_t size = object.record.size;
  bytes = bytes.substr(0, size - std::min(size, offset));
  if (bytes.empty()) {
    return;  // nobody could read it
  }
  std::string body;
  vtkv::put_fixed64(&body, offset);
  body.append(bytes);
  *total_bytes += bytes.size();
  records->emplace_back(ArchiveRecord::data, std::move(body));
}

Status add_extent(const StoreFiles& files, const StoredObject& object, const StoredShard& shard, const Extent& extent,
                  Records* records, uint64_t* total_bytes) {
  const uint64_t offset = (uint64_t{shard.number} * kShardBlocks + extent.block) * kBlockBytes;
  if (offset >= object.record.size) {
    return {};
  }
  vtkv::AlignedBuffer buffer;
  buffer.resize(uint64_t{extent.count} * kBlockBytes);
  for (uint32_t i = 0; i < extent.count; ++i) {
    char* const to = buffer.data() + uint64_t{i} * kBlockBytes;
    VTKV_RETURN_IF_ERROR(files.read_block(extent.slot, extent.slot_block + i, to));
    if (vtkv::crc32c(to, kBlockBytes) != shard.extents.crc32c[extent.block + i]) {
      return Status::corruption(
          fmt::format("the block at {} does not match its checksum", offset + uint64_t{i} * kBlockBytes));
    }
  }
  add_record(object, offset, {buffer.data(), buffer.size()}, records, total_bytes);
  return {};
}

Status add_blob(const StoreFiles& files, const StoredObject& object, const StoredShard& shard,
                const CompressedBlob& blob, Records* records, uint64_t* total_bytes) {
  const uint64_t shard_block = uint64_t{shard.number} * kShardBlocks;
  ceph::bufferlist blocks;
  if (const Status status = files.read_blob(blob, &blocks); !status.ok()) {
    return Status::make(status.code(), fmt::format("compressed data at {}: {}",
                                                   (shard_block + blob.block) * kBlockBytes, status.message()));
  }
  CompressedBlob::for_each_run(blob.live, [&](uint32_t first, uint32_t count) {
    add_record(object, (shard_block + first) * kBlockBytes,
               {blocks.c_str() + (first - blob.block) * kBlockBytes, uint64_t{count} * kBlockBytes}, records,
               total_bytes);
  });
  return {};
}

Status add_data(const StoreFiles& files, const StoredObject& object, Records* records, uint64_t* bytes) {
  std::vector<StoredShard> shards;
  VTKV_RETURN_IF_ERROR(files.read_shards(object, &shards));
  for (const StoredShard& shard : shards) {
    for (const Extent& extent : shard.extents.extents) {
      VTKV_RETURN_IF_ERROR(add_extent(files, object, shard, extent, records, bytes));
    }
    for (const CompressedBlob& blob : shard.extents.blobs) {
      VTKV_RETURN_IF_ERROR(add_blob(files, object, shard, blob, records, bytes));
    }
  }
  return {};
}

Status add_omap(const StoreFiles& files, const StoredObject& object, Records* records) {
  const uint64_t nid = object.record.nid;
  std::string header;
  const Status status = files.database().get(omap_header_key(nid), &header);
  if (status.ok()) {
    records->emplace_back(ArchiveRecord::omap_header, std::move(header));
  } else if (!status.is_not_found()) {
    return status;
  }
  std::string body;
  const auto it = files.database().new_iterator(omap_key(nid, ""), omap_range_end(nid));
  for (it->seek_to_first(); it->valid(); it->next()) {
    vtkv::put_length_prefixed(&body, it->key().substr(kOmapPrefixBytes));
    vtkv::put_length_prefixed(&body, it->value());
    if (body.size() >= kOmapRecordBytes) {
      records->emplace_back(ArchiveRecord::omap_values, std::move(body));
      body.clear();
    }
  }
  if (!body.empty()) {
    records->emplace_back(ArchiveRecord::omap_values, std::move(body));
  }
  return it->status();
}

// All of an object, or why not.
Status read_object(const StoreFiles& files, const std::string& collection, const StoredObject& object, Records* records,
                   uint64_t* bytes) {
  if (!object.has_name || !object.decodable) {
    return files.may_hold_newer() && object.has_name && is_newer_onode(object.bytes)
               ? Status::unsupported("a newer program wrote its record; export with that one")
               : Status::corruption("its record is damaged");
  }
  std::string body;
  vtkv::put_length_prefixed(&body, object.key);
  vtkv::put_varint64(&body, object.record.size);
  body += collection;
  records->emplace_back(ArchiveRecord::object, std::move(body));
  if (object.record.test(OnodeRecord::has_hints)) {
    std::string hints;
    vtkv::put_varint64(&hints, object.record.expected_object_size);
    vtkv::put_varint64(&hints, object.record.expected_write_size);
    vtkv::put_varint32(&hints, object.record.alloc_hint_flags);
    records->emplace_back(ArchiveRecord::hints, std::move(hints));
  }
  for (const auto& [name, value] : object.record.attrs) {
    std::string attribute;
    vtkv::put_length_prefixed(&attribute, name);
    vtkv::put_length_prefixed(&attribute, std::string_view(value.c_str(), value.length()));
    records->emplace_back(ArchiveRecord::attribute, std::move(attribute));
  }
  VTKV_RETURN_IF_ERROR(add_data(files, object, records, bytes));
  if (object.record.test(OnodeRecord::has_omap)) {
    VTKV_RETURN_IF_ERROR(add_omap(files, object, records));
  }
  records->emplace_back(ArchiveRecord::object_end, "");
  return {};
}

// Why what the tree says of an object may not be the last that it said. "": it is.
std::string doubt_of(const StoreFiles& files, const StoredObject& object) {
  const vtkv::LostEntries* const lost = files.lost();
  const uint64_t nid = object.record.nid;
  if (lost == nullptr || lost->ranges().empty()) {
    return "";
  }
  if (lost->may_hold(object.key, false)) {
    return "it may have been changed since, or removed: its record may be among what cannot be read";
  }
  if (!object.record.test(OnodeRecord::shard_inline) && lost->may_hold_any(extent_key(nid, 0), extent_range_end(nid))) {
    constexpr uint64_t kShardBytes = uint64_t{kShardBlocks} * kBlockBytes;
    for (uint64_t shard = 0; shard * kShardBytes < object.record.size; ++shard) {
      if (lost->may_hold(extent_key(nid, static_cast<uint32_t>(shard)), true)) {
        return fmt::format("its data from {} on may be missing, or older: it may be among what cannot be read",
                           shard * kShardBytes);
      }
    }
  }
  if (object.record.test(OnodeRecord::has_omap) &&
      (lost->may_hold(omap_header_key(nid), false) || lost->may_hold_any(omap_key(nid, ""), omap_range_end(nid)))) {
    return "some of its omap may be missing, or older, or removed: it may be among what cannot be read";
  }
  return "";
}

std::string describe_key(std::string_view key) {
  uint64_t nid = 0;
  uint32_t number = 0;
  std::string_view rest;
  coll_t cid;
  if (decode_collection_key(key, &cid)) {
    return "collection " + cid.to_str();
  }
  if (decode_extent_key(key, &nid, &number)) {
    return fmt::format("the data of object number {}", nid);
  }
  if (decode_omap_header_key(key, &nid) || decode_omap_key(key, &nid, &rest) || decode_omap_row_key(key, &nid, &rest) ||
      decode_omap_tombstone_key(key, &nid, &rest) || decode_omap_floor_key(key, &nid)) {
    return fmt::format("the omap of object number {}", nid);
  }
  if (key.starts_with(key_prefix::object)) {
    return "object " + describe_object_key(key);
  }
  return key.starts_with(key_prefix::slot_reference) ? "what shares slots, which export does without"
         : key.starts_with(key_prefix::quarantined)  ? "what repair quarantined"
                                                     : "the cube's own";
}

std::string describe(const vtkv::LostEntries::Range& range) {
  constexpr std::string_view kConsequence =
      "What they said is missing or as it was before, and what they removed may be back; objects that this may "
      "concern are doubtful";
  if (range.of_any_key) {
    return fmt::format("entries of the tree are lost, which of them cannot be told: {}. {}", range.reason,
                       kConsequence);
  }
  return fmt::format("{} entries of the tree are lost, in its order from {} to {}: {}. {}", range.entries,
                     describe_key(range.first_key), describe_key(range.last_key), range.reason, kConsequence);
}

// Of one cube.
class Exporter {
 public:
  // `claims`: of the cubes in use. Those of an abandoned one are older, and wanted all the same.
  Exporter(const StoreFiles& files, const CollectionClaims& claims, ArchiveWriter& writer, TransferResult* result)
      : m_files(files),
        m_claims(files.is_in_use() ? claims.against(files.cube()) : Claims()),
        m_writer(writer),
        m_result(*result) {
    CollectionClaims own;
    own.read(files.database(), files.cube());
    m_own = own.of(files.cube());
  }

  // Objects that a move which was cut short has left: half of a copy, or the old one. The next mount removes them.
  // Where no record of their collection can be read, they are all there is, and doubtful.
  Status pass_over_unowned();
  Status export_collections(const std::string& only);
  // What no collection holds that could be read.
  Status export_the_rest();
  // Of what was asked for, what may be newer in another cube. To be exported behind what all cubes have, so that an
  // import keeps that: as doubtful, and of no collection.
  struct Doubtful {
    std::vector<KeyRange> outdated;  // another cube has a newer record
    std::vector<KeyRange> orphans;   // a move has left it, and no record of its collection was found
    bool empty() const { return outdated.empty() && orphans.empty(); }
  };
  const Doubtful& doubtful() const { return m_doubtful; }
  Status export_doubtful(const Doubtful& doubtful);
  // What repair quarantined is in no collection.
  Status name_quarantined();
  // Each cube has some of the omap of an object of the OSD's own (omap/object_omap.h).
  Status name_parts();

 private:
  using Claims = std::vector<CollectionClaims::Claim>;

  // What is left of it where others have the newer records.
  std::vector<KeyRange> unclaimed(std::vector<KeyRange> ranges) const;
  std::string doubt_of(const StoredObject& object) const;
  Status pass_over_claimed();
  Status begin_collection(const std::string& name, uint32_t bits);
  Status export_range(const KeyRange& range);
  Status write(const Records& records);
  Status note(std::string text);
  bool may_go_on(const Status& status) const;

  const StoreFiles& m_files;
  const Claims m_claims;        // of other cubes
  std::vector<KeyRange> m_own;  // that records of this one claim
  ArchiveWriter& m_writer;
  TransferResult& m_result;
  std::string m_collection;        // of the objects that are read, as a record's body
  std::vector<KeyRange> m_ranges;  // of the collections so far
  Doubtful m_doubtful;
  std::string m_doubt;  // of each object that is exported just now
  Status m_written;                // not ok: the archive is of no use
};

std::vector<KeyRange> Exporter::unclaimed(std::vector<KeyRange> ranges) const {
  for (const CollectionClaims::Claim& claim : m_claims) {
    ranges = without(std::move(ranges), {claim.keys});
  }
  return ranges;
}

std::string Exporter::doubt_of(const StoredObject& object) const {
  std::string doubt = swimstore::doubt_of(m_files, object);
  return doubt.empty() ? m_doubt : doubt;
}

Status Exporter::begin_collection(const std::string& name, uint32_t bits) {
  m_collection.clear();
  vtkv::put_length_prefixed(&m_collection, name);
  vtkv::put_varint32(&m_collection, bits);
  m_written = m_writer.write(ArchiveRecord::collection, m_collection);
  return m_written;
}

Status Exporter::write(const Records& records) {
  for (const auto& [kind, body] : records) {
    m_written = m_writer.write(kind, body);
    VTKV_RETURN_IF_ERROR(m_written);
  }
  return {};
}

// Told by export, and by import again.
Status Exporter::note(std::string text) {
  m_written = m_writer.write(ArchiveRecord::note, text);
  m_result.tell(std::move(text));
  return m_written;
}

Status Exporter::export_range(const KeyRange& range) {
  std::string last = "the first";
  const Status status = m_files.for_each_object(range.first, range.second, [this, &last](const StoredObject& object) {
    last = object.name();
    Records records;
    uint64_t bytes = 0;
    if (const Status status = read_object(m_files, m_collection, object, &records, &bytes); !status.ok()) {
      if (status.code() == Status::Code::unsupported && !m_files.missing_plugins().empty() && !m_files.salvages()) {
        return status;  // there is a remedy
      }
      return note(fmt::format("object {} was left out: {}", object.name(), status.message()));
    }
    if (std::string doubt = doubt_of(object); !doubt.empty()) {
      m_result.tell(fmt::format("object {} is doubtful: {}", object.name(), doubt));
      m_result.doubtful += 1;
      records.emplace(records.begin() + 1, ArchiveRecord::doubtful, std::move(doubt));
    }
    VTKV_RETURN_IF_ERROR(write(records));
    m_result.objects += 1;
    m_result.bytes += bytes;
    return Status();
  });
  return may_go_on(status)
             ? note(fmt::format("the objects behind {} were left out, as many as there are: {}. Export again, "
                                "to go on without what cannot be read any more",
                                last, status.message()))
             : status;
}

// What could be read when the store was opened may fail later.
bool Exporter::may_go_on(const Status& status) const { return !status.ok() && m_written.ok() && m_files.salvages(); }

Status Exporter::export_collections(const std::string& only) {
  const Status status = m_files.for_each(key_prefix::collection, [&](std::string_view key, std::string_view value) {
    coll_t cid;
    CollectionRecord record;
    const bool has_name = decode_collection_key(key, &cid);
    if (!has_name || !decode_collection(value, &record)) {
      return note(fmt::format("the record of {} is damaged; its objects are in the archive as those of no collection",
                              has_name ? "collection " + cid.to_str() : "a collection"));
    }
    const std::vector<KeyRange> ranges = object_key_ranges(cid, record.bits);
    m_ranges.insert(m_ranges.end(), ranges.begin(), ranges.end());
    if (!only.empty() && cid.to_str() != only) {
      return Status();
    }
    const std::vector<KeyRange> own = unclaimed(ranges);
    if (own != ranges) {
      const std::vector<KeyRange> outdated = without(ranges, own);
      m_doubtful.outdated.insert(m_doubtful.outdated.end(), outdated.begin(), outdated.end());
      VTKV_RETURN_IF_ERROR(
          note(fmt::format("{} of collection {} in cube {} are doubtful, and in the archive behind all "
                           "others: another cube has a newer record of where they lie",
                           own.empty() ? "the objects" : "objects", cid.to_str(), m_files.cube())));
    }
    if (own.empty()) {
      return Status();
    }
    if (m_files.lost() != nullptr && m_files.lost()->may_hold(key, false)) {
      VTKV_RETURN_IF_ERROR(
          note(fmt::format("collection {} may have been split, merged or removed since: its record may be "
                           "among what cannot be read",
                           cid.to_str())));
    }
    VTKV_RETURN_IF_ERROR(begin_collection(cid.to_str(), record.bits));
    m_result.collections += 1;
    for (const KeyRange& range : own) {
      VTKV_RETURN_IF_ERROR(export_range(range));
    }
    return Status();
  });
  return may_go_on(status)
             ? note(fmt::format("further collections cannot be read any more; their objects are in the archive "
                                "as those of no collection: {}",
                                status.message()))
             : status;
}

Status Exporter::pass_over_unowned() {
  const Status status = m_files.for_each(key_prefix::unowned, [&](std::string_view key, std::string_view value) {
    coll_t cid;
    UnownedRange unowned;
    if (!decode_unowned_range_key(key, &cid) || !decode_unowned_range(value, &unowned)) {
      return note(
          fmt::format("what a move that was cut short has left in cube {} cannot be told: of objects that are in "
                      "the archive twice, those of no collection may be the worse",
                      m_files.cube()));
    }
    const std::vector<KeyRange> ranges = without(object_key_ranges(cid, unowned.bits), m_own);
    if (ranges.empty()) {
      return Status();  // the mark is older than the record that came with its end
    }
    m_ranges.insert(m_ranges.end(), ranges.begin(), ranges.end());
    // Of an abandoned cube, also what was made anew in another one, empty.
    if (std::vector<KeyRange> orphans = unclaimed(ranges); !orphans.empty()) {
      orphans = without(std::move(orphans), m_doubtful.orphans);  // two marks may overlap
      m_doubtful.orphans.insert(m_doubtful.orphans.end(), orphans.begin(), orphans.end());
      return note(
          fmt::format("no cube that was asked has a record of collection {}, which may have been removed: what "
                      "a move that was cut short has left of it in cube {} is doubtful, and in the archive of "
                      "all collections behind all others",
                      cid.to_str(), m_files.cube()));
    }
    return note(
        fmt::format("objects of collection {} in cube {} are left out, which a move that was cut short has left: "
                    "the collection lies in another cube",
                    cid.to_str(), m_files.cube()));
  });
  return m_files.salvages() && m_written.ok() ? Status() : status;
}

Status Exporter::export_doubtful(const Doubtful& doubtful) {
  VTKV_RETURN_IF_ERROR(begin_collection("", 0));
  m_doubt = "another cube has a newer record of its collection";
  for (const KeyRange& range : doubtful.outdated) {
    VTKV_RETURN_IF_ERROR(export_range(range));
  }
  m_doubt = "a move that was cut short has left it, and no record of its collection was found";
  for (const KeyRange& range : doubtful.orphans) {
    VTKV_RETURN_IF_ERROR(export_range(range));
  }
  return {};
}

// Of a move whose mark is lost.
Status Exporter::pass_over_claimed() {
  for (const CollectionClaims::Claim& claim : m_claims) {
    const std::vector<KeyRange> unknown = without({claim.keys}, m_ranges);
    m_ranges.push_back(claim.keys);
    const bool any = std::any_of(unknown.begin(), unknown.end(), [this](const KeyRange& range) {
      const auto it = m_files.database().new_iterator(range.first, range.second);
      it->seek_to_first();
      return it->valid() || !it->status().ok();
    });
    if (any) {
      m_doubtful.outdated.insert(m_doubtful.outdated.end(), unknown.begin(), unknown.end());
      VTKV_RETURN_IF_ERROR(
          note(fmt::format("objects in cube {} are doubtful, and in the archive behind all others: "
                           "collection {}, which they are of, lies in cube {}",
                           m_files.cube(), claim.collection, claim.cube)));
    }
  }
  return {};
}

Status Exporter::export_the_rest() {
  VTKV_RETURN_IF_ERROR(pass_over_claimed());
  std::sort(m_ranges.begin(), m_ranges.end());
  m_ranges.emplace_back(std::string(1, key_prefix::object + 1), "");
  std::string lower(1, key_prefix::object);
  const uint64_t before = m_result.objects;
  VTKV_RETURN_IF_ERROR(begin_collection("", 0));
  for (const KeyRange& range : m_ranges) {
    if (lower < range.first) {
      VTKV_RETURN_IF_ERROR(export_range({lower, range.first}));
    }
    lower = std::max(lower, range.second);
  }
  if (m_result.objects > before) {
    m_result.omitted.push_back(
        fmt::format("{} objects are in no collection that could be read; import puts each where "
                    "its pool and hash belong",
                    m_result.objects - before));
  }
  return {};
}

Status Exporter::name_quarantined() {
  uint64_t entries = 0;
  const Status status = m_files.for_each(key_prefix::quarantined, [&entries](std::string_view key, std::string_view) {
    uint32_t number = 0;
    std::string_view entry;
    // How often slots are shared follows from the objects.
    const bool is_count = decode_quarantined_key(key, &number, &entry) && entry.front() == key_prefix::slot_reference;
    entries += is_count ? 0 : 1;
    return Status();
  });
  if (!status.ok() && !m_files.salvages()) {
    return status;
  }
  if (entries > 0 || !status.ok()) {
    m_result.omitted.push_back(
        fmt::format("{} entries that repair quarantined{} are in no archive: keep the store "
                    "until 'list --quarantined-entries' says that nobody wants them, or "
                    "put-back has put them back",
                    entries, status.ok() ? "" : ", and more that cannot be read,"));
  }
  return {};
}

Status Exporter::name_parts() {
  uint64_t rows = 0;
  const Status status = m_files.for_each(key_prefix::omap_row, [&rows](std::string_view, std::string_view) {
    ++rows;
    return Status();
  });
  if (!status.ok() && !m_files.salvages()) {
    return status;
  }
  if (rows > 0) {  // said here alone: whoever imports PGs misses nothing
    m_result.tell(
        fmt::format("{} omap keys of the OSD's own objects in cube {} are left out: the map of snapshots, which "
                    "scrubs of the PGs make anew",
                    rows, m_files.cube()));
  }
  return {};
}

}  // namespace

Status check_names_a_copy(const StoreFiles& files, const std::string& only) {
  if (only.empty() || only == coll_t::meta().to_str() || files.left_out().empty()) {
    return {};
  }
  return Status::invalid_argument(fmt::format(
      "cube {0} of {1} is abandoned: collection {2} may be empty where it lies now, and what it had may lie "
      "in cube {0} alone. Say which: --cube {0} exports what it had, another --cube what it has now",
      files.left_out().front(), files.path(), only));
}

Status export_objects(StoreFiles& files, const std::string& only, const std::string& name, std::ostream* out,
                      TransferResult* result) {
  ArchiveWriter writer(out, name, files.env()->random_u64());
  size_t noted = 0;  // of the files' notes
  const auto note = [&](const std::string& text) {
    result->omitted.push_back(text);
    return writer.write(ArchiveRecord::note, text);
  };
  const auto note_files = [&] {
    for (; noted < files.notes().size(); ++noted) {
      VTKV_RETURN_IF_ERROR(note(files.notes()[noted]));
    }
    return Status();
  };
  CollectionClaims claims;
  if (files.is_one_of_several_in_use()) {
    files.for_each_cube_in_use([&] { claims.read(files.database(), files.cube()); });
  }
  std::map<uint32_t, Exporter::Doubtful> doubtful;  // by cube
  VTKV_RETURN_IF_ERROR(files.for_each_cube([&] {
    VTKV_RETURN_IF_ERROR(note_files());
    if (files.lost() != nullptr) {
      for (const vtkv::LostEntries::Range& range : files.lost()->ranges()) {
        VTKV_RETURN_IF_ERROR(note(describe(range)));
      }
    }
    Exporter exporter(files, claims, writer, result);
    VTKV_RETURN_IF_ERROR(exporter.pass_over_unowned());
    const uint64_t before = result->collections;
    VTKV_RETURN_IF_ERROR(exporter.export_collections(only));
    if (only.empty()) {
      VTKV_RETURN_IF_ERROR(exporter.export_the_rest());
    }
    if (only.empty() || result->collections > before) {  // whose they are, not all of them tell
      VTKV_RETURN_IF_ERROR(exporter.name_quarantined());
    }
    Exporter::Doubtful left = exporter.doubtful();
    if (!only.empty()) {
      left.orphans.clear();  // whose they are nobody knows
    }
    if (!left.empty()) {
      doubtful[files.cube()] = std::move(left);
    }
    return only.empty() || only == coll_t::meta().to_str() ? exporter.name_parts() : Status();
  }));
  VTKV_RETURN_IF_ERROR(note_files());
  if (!doubtful.empty()) {  // what there is to note was noted
    VTKV_RETURN_IF_ERROR(files.for_each_cube([&] {
      const auto found = doubtful.find(files.cube());
      return found == doubtful.end() ? Status()
                                     : Exporter(files, claims, writer, result).export_doubtful(found->second);
    }));
  }
  if (!only.empty() && result->collections == 0 && doubtful.empty()) {
    return Status::not_found(
        fmt::format("{} has no collection {}{}; list --collections prints them", files.path(), only,
                    files.salvages() ? ", or its record is lost: without --collection its objects are saved" : ""));
  }
  return writer.end(result->objects);
}

}  // namespace swimstore
