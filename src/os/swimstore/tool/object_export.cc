#include <algorithm>

#include <fmt/format.h>

#include "swimstore/format/collection_record.h"
#include "swimstore/store/collection_list.h"
#include "swimstore/tool/object_archive.h"
#include "swimstore/tool/object_transfer.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr size_t kOmapRecordBytes = 1u << 20;
// What import puts into one record of the log.
constexpr uint64_t kOmapBytesMax = 16u << 20;

using Records = std::vector<std::pair<ArchiveRecord, std::string>>;

Status add_data(const StoreFiles& files, const StoredObject& object, Records* records, uint64_t* bytes) {
  std::vector<StoredChunk> chunks;
  VTKV_RETURN_IF_ERROR(files.read_chunks(object, &chunks));
  vtkv::AlignedBuffer buffer;
  buffer.resize(kBlockBytes);
  for (const StoredChunk& chunk : chunks) {
    for (const Extent& extent : chunk.extents.extents) {
      const uint64_t offset = (uint64_t{chunk.number} * kChunkBlocks + extent.block) * kBlockBytes;
      std::string body;
      vtkv::put_fixed64(&body, offset);
      for (uint32_t i = 0; i < extent.count; ++i) {
        VTKV_RETURN_IF_ERROR(files.read_block(extent.slot, extent.slot_block + i, buffer.data()));
        if (vtkv::crc32c(buffer.data(), kBlockBytes) != chunk.extents.crc32c[extent.block + i]) {
          return Status::corruption(fmt::format("the block at {} does not match its checksum",
                                                offset + uint64_t{i} * kBlockBytes));
        }
        const uint64_t at = offset + uint64_t{i} * kBlockBytes;
        if (at < object.record.size) {
          body.append(buffer.data(), std::min<uint64_t>(kBlockBytes, object.record.size - at));
        }
      }
      *bytes += body.size() - sizeof(uint64_t);
      records->emplace_back(ArchiveRecord::data, std::move(body));
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
  uint64_t bytes = 0;
  const auto it = files.database().new_iterator(omap_key(nid, ""), omap_range_end(nid));
  for (it->seek_to_first(); it->valid(); it->next()) {
    vtkv::put_length_prefixed(&body, it->key().substr(kOmapPrefixBytes));
    vtkv::put_length_prefixed(&body, it->value());
    bytes += it->key().size() + it->value().size();
    if (body.size() >= kOmapRecordBytes) {
      records->emplace_back(ArchiveRecord::omap_values, std::move(body));
      body.clear();
    }
  }
  if (!body.empty()) {
    records->emplace_back(ArchiveRecord::omap_values, std::move(body));
  }
  if (bytes > kOmapBytesMax) {
    return Status::unsupported(fmt::format("its omap has {} bytes, more than import can put whole: use "
                                           "ceph-objectstore-tool",
                                           bytes));
  }
  return it->status();
}

// All of an object, or why not.
Status read_object(const StoreFiles& files, const StoredObject& object, Records* records, uint64_t* bytes) {
  if (!object.has_name || !object.decodable) {
    return Status::corruption("its record is damaged");
  }
  std::string body;
  vtkv::put_length_prefixed(&body, object.key);
  vtkv::put_varint64(&body, object.record.size);
  records->emplace_back(ArchiveRecord::object, std::move(body));
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

class Exporter {
 public:
  Exporter(const StoreFiles& files, ArchiveWriter& writer, TransferResult* result)
      : m_files(files), m_writer(writer), m_result(*result) {}

  Status export_range(const ObjectRange& range);

 private:
  // Until the end, or until the tree cannot be read further.
  Status export_keys(const std::string& lower, const std::string& upper);
  bool can_read(const std::string& lower, const std::string& upper) const;
  // Behind a hash at which the tree cannot be read, the next from which on it can: near it first.
  uint64_t next_readable(const ObjectRange& range, uint64_t hash, uint64_t end) const;

  const StoreFiles& m_files;
  ArchiveWriter& m_writer;
  TransferResult& m_result;
  uint64_t m_last_hash = 0;
};

// In the order of the keys: bits reversed.
uint64_t hash_of(const ghobject_t& oid) { return oid.hobj.get_bitwise_key_u32(); }

std::string first_key_of(const ObjectRange& range, uint64_t hash) {
  ghobject_t oid = range.begin;
  oid.hobj.set_bitwise_key_u32(static_cast<uint32_t>(hash));
  return object_key(oid);
}

Status Exporter::export_keys(const std::string& lower, const std::string& upper) {
  return m_files.for_each_object(lower, upper, [this](const StoredObject& object) {
    m_last_hash = object.has_name ? hash_of(object.oid) : m_last_hash;
    Records records;
    uint64_t bytes = 0;
    if (const Status status = read_object(m_files, object, &records, &bytes); !status.ok()) {
      m_result.omitted.push_back(fmt::format("object {} was left out: {}", object.name(), status.message()));
      return Status();
    }
    for (const auto& [kind, body] : records) {
      m_writer.write(kind, body);
    }
    m_result.objects += 1;
    m_result.bytes += bytes;
    return Status();
  });
}

bool Exporter::can_read(const std::string& lower, const std::string& upper) const {
  const auto it = m_files.database().new_iterator(lower, upper);
  it->seek_to_first();
  return it->status().ok();
}

uint64_t Exporter::next_readable(const ObjectRange& range, uint64_t hash, uint64_t end) const {
  const std::string upper = object_key(range.end);
  const auto readable = [&](uint64_t at) { return at >= end || can_read(first_key_of(range, at), upper); };
  uint64_t unreadable = hash;
  uint64_t step = 1;
  while (!readable(hash + step)) {
    unreadable = hash + step;
    step *= 2;
  }
  uint64_t found = std::min(hash + step, end);
  while (found - unreadable > 1) {
    const uint64_t middle = unreadable + (found - unreadable) / 2;
    (readable(middle) ? found : unreadable) = middle;
  }
  return found;
}

Status Exporter::export_range(const ObjectRange& range) {
  const std::string upper = object_key(range.end);
  std::string lower = object_key(range.begin);
  const bool to_the_last_hash = range.end.hobj.pool != range.begin.hobj.pool || range.end.is_max();
  const uint64_t end = to_the_last_hash ? uint64_t{1} << 32 : hash_of(range.end);
  m_last_hash = hash_of(range.begin);
  for (;;) {
    const Status status = export_keys(lower, upper);
    if (status.ok() || !m_files.salvages()) {
      return status;
    }
    const uint64_t next = next_readable(range, m_last_hash, end);
    m_result.omitted.push_back(fmt::format("objects of pool {} with hashes, bits reversed, from {:08x} to {:08x} were "
                                           "left out, as many as there are: {}",
                                           range.begin.hobj.pool, m_last_hash, next - 1, status.message()));
    if (next >= end) {
      return {};
    }
    m_last_hash = next;
    lower = first_key_of(range, next);
  }
}

}  // namespace

Status export_objects(StoreFiles& files, const std::string& only, std::ostream* out, TransferResult* result) {
  VTKV_RETURN_IF_ERROR(files.open_cube());
  result->omitted = files.notes();
  ArchiveWriter writer(out);
  Exporter exporter(files, writer, result);
  const Status status = files.for_each(key_prefix::collection, [&](std::string_view key, std::string_view value) {
    coll_t cid;
    CollectionRecord record;
    if (!decode_collection_key(key, &cid) || !decode_collection(value, &record)) {
      result->omitted.push_back("a collection whose record is damaged was left out");
      return Status();
    }
    if (!only.empty() && cid.to_str() != only) {
      return Status();
    }
    std::string body;
    vtkv::put_length_prefixed(&body, cid.to_str());
    vtkv::put_varint32(&body, record.bits);
    writer.write(ArchiveRecord::collection, body);
    result->collections += 1;
    for (const ObjectRange& range : object_ranges(cid, record.bits)) {
      VTKV_RETURN_IF_ERROR(exporter.export_range(range));
    }
    return Status();
  });
  if (!status.ok() && files.salvages()) {
    result->omitted.push_back(fmt::format("further collections were left out: {}", status.message()));
  } else {
    VTKV_RETURN_IF_ERROR(status);
  }
  if (!only.empty() && result->collections == 0) {
    return Status::not_found(fmt::format("{} has no collection {}; list --collections prints them", files.path(),
                                         only));
  }
  std::string body;
  vtkv::put_fixed64(&body, result->objects);
  writer.write(ArchiveRecord::end, body);
  return {};
}

}  // namespace swimstore
