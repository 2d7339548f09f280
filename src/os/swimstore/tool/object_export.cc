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

Status export_range(const StoreFiles& files, const ObjectRange& range, ArchiveWriter& writer,
                    TransferResult* result) {
  return files.for_each_object(object_key(range.begin), object_key(range.end), [&](const StoredObject& object) {
    Records records;
    uint64_t bytes = 0;
    if (const Status status = read_object(files, object, &records, &bytes); !status.ok()) {
      result->omitted.push_back(fmt::format("object {} was left out: {}", object.name(), status.message()));
      return Status();
    }
    for (const auto& [kind, body] : records) {
      writer.write(kind, body);
    }
    result->objects += 1;
    result->bytes += bytes;
    return Status();
  });
}

}  // namespace

Status export_objects(StoreFiles& files, const std::string& only, std::ostream* out, TransferResult* result) {
  VTKV_RETURN_IF_ERROR(files.open_cube());
  ArchiveWriter writer(out);
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
      VTKV_RETURN_IF_ERROR(export_range(files, range, writer, result));
    }
    return Status();
  });
  VTKV_RETURN_IF_ERROR(status);
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
