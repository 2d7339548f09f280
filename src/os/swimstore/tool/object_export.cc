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
// Between the last place that cannot be read and the next that can, so many halvings look for one before.
constexpr unsigned kHalvings = 5;

using Records = std::vector<std::pair<ArchiveRecord, std::string>>;

Status add_data(const StoreFiles& files, const StoredObject& object, Records* records, uint64_t* bytes) {
  std::vector<StoredChunk> chunks;
  VTKV_RETURN_IF_ERROR(files.read_chunks(object, &chunks));
  vtkv::AlignedBuffer buffer;
  buffer.resize(kBlockBytes);
  for (const StoredChunk& chunk : chunks) {
    for (const Extent& extent : chunk.extents.extents) {
      const uint64_t offset = (uint64_t{chunk.number} * kChunkBlocks + extent.block) * kBlockBytes;
      if (offset >= object.record.size) {
        continue;  // nobody could read it
      }
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
Status read_object(const StoreFiles& files, const std::string& collection, const StoredObject& object,
                   Records* records, uint64_t* bytes) {
  if (!object.has_name || !object.decodable) {
    return Status::corruption("its record is damaged");
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

// Objects lie in the tree by shard, pool and hash: these 13 bytes of a key, behind its prefix, as a number.
using Place = unsigned __int128;
constexpr size_t kPlaceBytes = 13;

Place place_of(std::string_view key) {
  Place place = 0;
  for (size_t i = 0; i < kPlaceBytes; ++i) {
    place = place << 8 | (i + 2 < key.size() ? static_cast<uint8_t>(key[i + 2]) : 0);
  }
  return place;
}

// At or before every key of this place; behind the last place, behind all objects.
std::string first_key_of(Place place) {
  if (place >> (8 * kPlaceBytes) != 0) {
    return std::string(1, key_prefix::object + 1);
  }
  std::string key(2 + kPlaceBytes, '\0');
  key[0] = key_prefix::object;
  for (size_t i = key.size(); i-- > 2; place >>= 8) {
    key[i] = static_cast<char>(place);
  }
  return key;
}

std::string describe(Place place) {
  const auto shard = static_cast<int>(place >> 96) - 0x80;
  const auto pool = static_cast<int64_t>(static_cast<uint64_t>(place >> 32) ^ uint64_t{1} << 63);
  const std::string of_shard = shard < 0 ? "" : fmt::format("shard {}, ", shard);
  return fmt::format("{}pool {}, hash {:08x}", of_shard, pool,
                     hobject_t::_reverse_bits(static_cast<uint32_t>(place)));
}

class Exporter {
 public:
  Exporter(const StoreFiles& files, ArchiveWriter& writer, TransferResult* result)
      : m_files(files), m_writer(writer), m_result(*result) {}

  Status export_collections(const std::string& only);
  // What no collection holds that could be read.
  Status export_the_rest();
  // What repair set aside is in no collection.
  Status name_lost();
  Status end();

 private:
  using KeyRange = std::pair<std::string, std::string>;  // without its end

  Status begin_collection(const std::string& name, uint32_t bits);
  Status export_range(const KeyRange& range);
  // Until the end, or until the tree cannot be read further.
  Status export_keys(const std::string& lower, const std::string& upper);
  Status write(const Records& records);
  bool can_read(Place place, const std::string& upper) const;
  // Behind a place at which the tree cannot be read, the next from which on it can, or the end.
  Place next_readable(Place unreadable, const std::string& upper) const;
  // A readable one in between, or `readable`.
  Place earlier(Place unreadable, Place readable, const std::string& upper, unsigned halvings) const;
  Place border(Place unreadable, Place readable, const std::string& upper) const;

  const StoreFiles& m_files;
  ArchiveWriter& m_writer;
  TransferResult& m_result;
  std::string m_collection;        // of the objects that are read, as a record's body
  std::vector<KeyRange> m_ranges;  // of the collections so far
  Place m_last = 0;
  Status m_failed;                 // to write, as opposed to reading
};

Status Exporter::begin_collection(const std::string& name, uint32_t bits) {
  m_collection.clear();
  vtkv::put_length_prefixed(&m_collection, name);
  vtkv::put_varint32(&m_collection, bits);
  return m_writer.write(ArchiveRecord::collection, m_collection);
}

Status Exporter::write(const Records& records) {
  for (const auto& [kind, body] : records) {
    m_failed = m_writer.write(kind, body);
    VTKV_RETURN_IF_ERROR(m_failed);
  }
  return {};
}

Status Exporter::export_keys(const std::string& lower, const std::string& upper) {
  return m_files.for_each_object(lower, upper, [this](const StoredObject& object) {
    m_last = place_of(object.key);
    Records records;
    uint64_t bytes = 0;
    if (const Status status = read_object(m_files, m_collection, object, &records, &bytes); !status.ok()) {
      m_result.omitted.push_back(fmt::format("object {} was left out: {}", object.name(), status.message()));
      return Status();
    }
    VTKV_RETURN_IF_ERROR(write(records));
    m_result.objects += 1;
    m_result.bytes += bytes;
    return Status();
  });
}

bool Exporter::can_read(Place place, const std::string& upper) const {
  const std::string lower = first_key_of(place);
  if (lower >= upper) {
    return true;
  }
  const auto it = m_files.database().new_iterator(lower, upper);
  it->seek_to_first();
  return it->status().ok();
}

Place Exporter::border(Place unreadable, Place readable, const std::string& upper) const {
  while (readable - unreadable > 1) {
    const Place middle = unreadable + (readable - unreadable) / 2;
    (can_read(middle, upper) ? readable : unreadable) = middle;
  }
  return readable;
}

Place Exporter::earlier(Place unreadable, Place readable, const std::string& upper, unsigned halvings) const {
  if (halvings == 0 || readable - unreadable <= 1) {
    return readable;
  }
  const Place middle = unreadable + (readable - unreadable) / 2;
  const Place end = can_read(middle, upper) ? middle : readable;
  const Place found = earlier(unreadable, middle, upper, halvings - 1);
  if (found != middle || end == middle) {
    return found;
  }
  return earlier(middle, end, upper, halvings - 1);
}

Place Exporter::next_readable(Place unreadable, const std::string& upper) const {
  Place last = unreadable;
  Place step = 1;
  while (!can_read(unreadable + step, upper)) {
    last = unreadable + step;
    step *= 2;
  }
  const Place found = border(last, unreadable + step, upper);
  return border(unreadable, earlier(unreadable, found, upper, kHalvings), upper);
}

Status Exporter::export_range(const KeyRange& range) {
  const std::string& upper = range.second;
  std::string lower = range.first;
  m_last = place_of(lower);
  for (;;) {
    const Status status = export_keys(lower, upper);
    if (status.ok() || !m_failed.ok() || !m_files.salvages()) {
      return status;
    }
    const Place next = next_readable(m_last, upper);
    const std::string next_key = first_key_of(next);
    const bool at_end = next_key >= upper;
    m_result.omitted.push_back(
        fmt::format("objects from {} on {} were left out, as many as there are (in the order of hashes with their "
                    "bits reversed): {}",
                    describe(m_last), at_end ? "to the end of their collection" : "up to " + describe(next - 1),
                    status.message()));
    if (at_end) {
      return {};
    }
    m_last = next;
    lower = next_key;
  }
}

Status Exporter::export_collections(const std::string& only) {
  const Status status =
      m_files.for_each(key_prefix::collection, [&](std::string_view key, std::string_view value) {
        coll_t cid;
        CollectionRecord record;
        const bool has_name = decode_collection_key(key, &cid);
        if (!has_name || !decode_collection(value, &record)) {
          m_result.omitted.push_back(fmt::format("the record of {} is damaged; its objects are in the archive as those "
                                                 "of no collection",
                                                 has_name ? "collection " + cid.to_str() : "a collection"));
          return Status();
        }
        const auto ranges = object_ranges(cid, record.bits);
        for (const ObjectRange& range : ranges) {
          m_ranges.emplace_back(object_key(range.begin), object_key(range.end));
        }
        if (!only.empty() && cid.to_str() != only) {
          return Status();
        }
        m_failed = begin_collection(cid.to_str(), record.bits);
        VTKV_RETURN_IF_ERROR(m_failed);
        m_result.collections += 1;
        for (size_t i = m_ranges.size() - ranges.size(); i < m_ranges.size(); ++i) {
          VTKV_RETURN_IF_ERROR(export_range(m_ranges[i]));
        }
        return Status();
      });
  if (!status.ok() && m_failed.ok() && m_files.salvages()) {
    m_result.omitted.push_back(fmt::format("further collections cannot be read; their objects are in the archive as "
                                           "those of no collection: {}",
                                           status.message()));
    return {};
  }
  return status;
}

Status Exporter::export_the_rest() {
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
    m_result.omitted.push_back(fmt::format("{} objects are in no collection that could be read; import puts each where "
                                           "its pool and hash belong",
                                           m_result.objects - before));
  }
  return {};
}

Status Exporter::name_lost() {
  uint64_t entries = 0;
  const Status status = m_files.for_each(key_prefix::lost, [&entries](std::string_view key, std::string_view) {
    uint32_t number = 0;
    std::string_view entry;
    // How often slots are shared follows from the objects.
    const bool is_count = decode_lost_key(key, &number, &entry) && entry.front() == key_prefix::slot_reference;
    entries += is_count ? 0 : 1;
    return Status();
  });
  if (!status.ok() && !m_files.salvages()) {
    return status;
  }
  if (entries > 0 || !status.ok()) {
    m_result.omitted.push_back(fmt::format("{} entries that repair set aside{} are in no archive: keep the store until "
                                           "'list --lost' says that nobody wants them, or put-back has put them back",
                                           entries, status.ok() ? "" : ", and more that cannot be read,"));
  }
  return {};
}

Status Exporter::end() { return m_writer.end(m_result.objects); }

}  // namespace

Status export_objects(StoreFiles& files, const std::string& only, const std::string& name, std::ostream* out,
                      TransferResult* result) {
  VTKV_RETURN_IF_ERROR(files.open_cube());
  result->omitted = files.notes();
  ArchiveWriter writer(out, name, files.env()->random_u64());
  Exporter exporter(files, writer, result);
  VTKV_RETURN_IF_ERROR(exporter.export_collections(only));
  if (only.empty()) {
    VTKV_RETURN_IF_ERROR(exporter.export_the_rest());
    VTKV_RETURN_IF_ERROR(exporter.name_lost());
  } else if (result->collections == 0) {
    return Status::not_found(fmt::format("{} has no collection {}; list --collections prints them", files.path(),
                                         only));
  }
  return exporter.end();
}

}  // namespace swimstore
