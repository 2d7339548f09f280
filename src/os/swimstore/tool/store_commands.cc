// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/tool/store_commands.h"

#include <bit>
#include <charconv>
#include <map>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "include/uuid.h"
#include "swimstore/container/container.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/format/allocation_page.h"
#include "swimstore/format/collection_record.h"
#include "swimstore/format/format_version.h"
#include "swimstore/fsck/reference_audit.h"
#include "swimstore/object/collection_list.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/tool/notation.h"
#include "vtkv/tool/output_file.h"
#include "vtkv/tree/manifest.h"
#include "vtkv/tree/manifest_format.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {

using vtkv::Report;
using vtkv::Status;

namespace {

struct ListedCollection {
  std::string name;
  CollectionRecord record;
  std::vector<ObjectRange> ranges;
  uint64_t objects = 0;
};

Status read_collections(const StoreFiles& files, std::vector<ListedCollection>* collections) {
  return files.for_each(key_prefix::collection, [&](std::string_view key, std::string_view value) {
    coll_t cid;
    ListedCollection one;
    if (!decode_collection_key(key, &cid) || !decode_collection(value, &one.record)) {
      return Status::corruption("a collection's record is damaged, or in a newer program's form: " +
                                vtkv::to_notation(key));
    }
    one.name = cid.to_str();
    one.ranges = object_ranges(cid, one.record.bits);
    collections->push_back(std::move(one));
    return Status();
  });
}

ListedCollection* owner_of(std::vector<ListedCollection>& collections, const StoredObject& object) {
  if (object.has_name) {
    for (ListedCollection& collection : collections) {
      for (const ObjectRange& range : collection.ranges) {
        if (range.begin <= object.oid && object.oid < range.end) {
          return &collection;
        }
      }
    }
  }
  return nullptr;
}

void report_features(const std::string& of, const vtkv::Features& features, Report& report) {
  report.field((of + "compat_features").c_str(), vtkv::to_text(features.compat));
  report.field((of + "ro_compat_features").c_str(), vtkv::to_text(features.ro_compat));
  report.field((of + "incompat_features").c_str(), vtkv::to_text(features.incompat));
}

// Slots of a class as of the newest checkpoint.
struct PageCounts {
  uint64_t owned = 0, primed = 0;
};

Status count_pages(const StoreFiles& files, std::array<PageCounts, kSizeClasses>* counts) {
  return files.for_each(kAllocationKeyPrefix, [&](std::string_view key, std::string_view value) {
    AllocationPage page;
    VTKV_RETURN_IF_ERROR(AllocationPage::decode(key, value, &page));
    for (uint32_t word = 0; word < kPageWords; ++word) {
      (*counts)[page.size_class].owned += std::popcount(page.owned[word]);
      (*counts)[page.size_class].primed += std::popcount(page.primed[word]);
    }
    return Status();
  });
}

}  // namespace

Status report_metadata_place(StoreFiles& files, Report& report) {
  const std::string& metadata = files.directory().metadata_directory();
  if (metadata.empty()) {
    return {};
  }
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(files.env()->file_system_info(metadata, &host));
  report.field("metadata_path", metadata);
  report.field("metadata_mount_point", host.mount_point);
  report.field("metadata_device", host.device);
  report.field("metadata_file_system", std::string(to_string(host.kind)));
  report.field("metadata_available_bytes", host.available_bytes);
  return {};
}

void report_database_formats(StoreFiles& files, const vtkv::Options& options, Report& report) {
  bool any = false, upgradable = false;
  for (const uint32_t cube : files.cubes()) {
    std::unique_ptr<vtkv::Manifest> manifest;
    vtkv::Checkpoint newest, older;
    const std::string database = files.directory().database_path(cube);
    if (!vtkv::Manifest::open(files.env(), database, &manifest, &newest, &older).ok()) {
      continue;
    }
    if (!any) {
      report.field("database_format_version", uint64_t{vtkv::kManifestVersion});
      report_features("database_", newest.features, report);
    }
    any = true;
    upgradable |= vtkv::is_upgradable(newest.features, options);
  }
  if (any) {
    report.field("database_upgradable", upgradable);
  }
}

Status report_info(StoreFiles& files, const vtkv::Options& options, Report& report) {
  dump_superblock(files, report);
  report_database_formats(files, options, report);
  StoreDirectory& directory = files.directory();
  for (const char* name : {"type", "ready", "whoami", "ceph_fsid"}) {
    std::string value;
    if (directory.read_meta(name, &value).ok()) {
      report.field(name, value);
    }
  }
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(files.env()->file_system_info(files.path(), &host));
  report.field("host_file_system", std::string(to_string(host.kind)));
  report.field("host_available_bytes", host.available_bytes);
  VTKV_RETURN_IF_ERROR(report_metadata_place(files, report));
  uint64_t objects = 0, undecodable = 0, bytes = 0, collections = 0, quarantined = 0;
  vtkv::DBStatistics statistics;
  const auto count_into = [](uint64_t* count) {
    return [count](std::string_view, std::string_view) {
      ++*count;
      return Status();
    };
  };
  VTKV_RETURN_IF_ERROR(files.for_each_cube([&] {
    VTKV_RETURN_IF_ERROR(files.for_each_object([&](const StoredObject& object) {
      ++objects;
      undecodable += !object.decodable;
      bytes += object.record.size;
      return Status();
    }));
    VTKV_RETURN_IF_ERROR(files.for_each(key_prefix::collection, count_into(&collections)));
    VTKV_RETURN_IF_ERROR(files.for_each(key_prefix::quarantined, count_into(&quarantined)));
    statistics += files.database().statistics();
    return Status();
  }));
  report.field("collections", collections);
  report.field("objects", objects);
  report.field("undecodable_objects", undecodable);
  report.field("object_bytes", bytes);
  report.field("quarantined_entries", quarantined);
  report.field("last_sequence", statistics.last_sequence);
  report.field("log_file_bytes", statistics.log_file_bytes);
  report.field("tree_file_bytes", statistics.tree_file_bytes);
  return {};
}

Status list_collections(StoreFiles& files, Report& report) {
  report.begin_table("collections", true);
  const Status status = files.for_each_cube([&] {
    std::vector<ListedCollection> collections;
    VTKV_RETURN_IF_ERROR(read_collections(files, &collections));
    VTKV_RETURN_IF_ERROR(files.for_each_object([&](const StoredObject& object) {
      if (ListedCollection* const owner = owner_of(collections, object)) {
        ++owner->objects;
      }
      return Status();
    }));
    for (const ListedCollection& collection : collections) {
      report.row({{"collection", collection.name},
                  {"cube", uint64_t{files.cube()}},
                  {"bits", uint64_t{collection.record.bits}},
                  {"objects", collection.objects}});
    }
    return Status();
  });
  report.end_table();
  return status;
}

Status list_objects(StoreFiles& files, const std::string& name, Report& report) {
  bool found = name.empty();
  report.begin_table("objects", true);
  const Status status = files.for_each_cube([&] {
    std::vector<ListedCollection> collections;
    VTKV_RETURN_IF_ERROR(read_collections(files, &collections));
    found |= std::any_of(collections.begin(), collections.end(),
                         [&](const ListedCollection& one) { return one.name == name; });
    return files.for_each_object([&](const StoredObject& object) {
      const ListedCollection* const owner = owner_of(collections, object);
      if (name.empty() || (owner != nullptr && owner->name == name)) {
        report.row({{"collection", owner != nullptr ? owner->name : std::string("-")},
                    {"object", object.name()},
                    {"size", object.record.size},
                    {"id", object.record.nid},
                    {"decodable", object.has_name && object.decodable}});
      }
      return Status();
    });
  });
  report.end_table();
  VTKV_RETURN_IF_ERROR(status);
  return found ? Status()
               : Status::not_found(
                     fmt::format("{} has no collection {}; list --collections prints them", files.path(), name));
}

Status list_quarantined_entries(StoreFiles& files, Report& report) {
  report.begin_table("entries", true);
  const auto visit = [&](std::string_view key, std::string_view value) {
    uint32_t number = 0;
    std::string_view entry = key;
    const bool is_object = decode_quarantined_key(key, &number, &entry) && entry.front() == key_prefix::object;
    report.row({{"cube", uint64_t{files.cube()}},
                {"number", uint64_t{number}},
                {"key", vtkv::to_notation(entry)},
                {"object", is_object ? StoredObject{.key = std::string(entry)}.name() : std::string("-")},
                {"value_bytes", static_cast<uint64_t>(value.size())}});
    return Status();
  };
  const Status status = files.for_each_cube([&] { return files.for_each(key_prefix::quarantined, visit); });
  report.end_table();
  return status;
}

void dump_features(const Superblock& superblock, Report& report) {
  report.field("format_version", uint64_t{superblock.version});
  report_features("", superblock.features, report);
  report.field("upgradable", superblock.is_upgradable());
}

void dump_superblock(const StoreFiles& files, Report& report) {
  const Superblock& superblock = files.superblock();
  report.field("fsid", superblock.fsid().to_string());
  dump_features(superblock, report);
  report.field("cubes", uint64_t{superblock.cubes});
  report.field("created_us", superblock.created_us);
  report.field("chunk_bytes", superblock.chunk_bytes);
  report.field("log_segment_bytes", superblock.geometry.log_segment_bytes);
  report.field("initial_log_segments", uint64_t{superblock.geometry.initial_log_segments});
  report.field("zone_bytes", superblock.geometry.zone_bytes);
  report.field("block_bytes", uint64_t{superblock.geometry.block_bytes});
  report.field("first_copy_whole", files.is_copy_whole(0));
  report.field("second_copy_whole", files.is_copy_whole(1));
}

Status dump_containers(StoreFiles& files, Report& report) {
  VTKV_RETURN_IF_ERROR(files.open_only_cube());
  std::array<PageCounts, kSizeClasses> counts{};
  VTKV_RETURN_IF_ERROR(count_pages(files, &counts));
  report.field("chunk_bytes", files.containers().chunk_bytes);
  report.begin_table("containers", true);
  for (unsigned size_class = 0; size_class < kSizeClasses; ++size_class) {
    uint64_t bytes = 0;
    VTKV_RETURN_IF_ERROR(files.container(size_class).size(&bytes));
    report.row({{"container", Container::file_name(size_class)},
                {"file_bytes", bytes},
                {"slots", bytes / slot_bytes(size_class)},
                {"owned_at_checkpoint", counts[size_class].owned},
                {"primed_at_checkpoint", counts[size_class].primed},
                {"primed_at_creation", files.containers().primed_slots[size_class]}});
  }
  report.end_table();
  return {};
}

// ---- slots

namespace {

bool parse_slot(const std::string& text, SlotAddress* slot) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) {
    return false;
  }
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, slot->index);
  if (error != std::errc() || stop != end || slot->index >> 56 != 0) {
    return false;
  }
  for (unsigned size_class = 0; size_class < kSizeClasses; ++size_class) {
    if (text.substr(0, slash) == Container::file_name(size_class)) {
      slot->size_class = static_cast<uint8_t>(size_class);
      return true;
    }
  }
  return false;
}

// Rows for the extents of one object, and of its compressed blobs, that lie in the slot.
void report_referrers(const StoredObject& object, const std::vector<StoredShard>& shards, SlotAddress slot,
                      const char* bytes, Report& report) {
  for (const StoredShard& shard : shards) {
    const auto report_extent = [&](const Extent& extent, const uint32_t* crc32cs, const CompressedBlob* blob) {
      for (uint32_t i = 0; extent.slot.whole() == slot && i < extent.count; ++i) {
        const uint32_t crc32c = crc32cs[extent.block + i];
        const uint32_t block = extent.slot.first_block() + extent.slot_block + i;
        const uint32_t in_shard = blob != nullptr ? blob->block : extent.block + i;
        report.row({{"slot_block", uint64_t{block}},
                    {"object", object.name()},
                    {"offset", (uint64_t{shard.number} * kShardBlocks + in_shard) * kBlockBytes},
                    {"compressed", blob != nullptr},
                    {"shared", extent.shared},
                    {"crc32c", fmt::format("{:08x}", crc32c)},
                    {"matches", vtkv::crc32c(bytes + uint64_t{block} * kBlockBytes, kBlockBytes) == crc32c}});
      }
    };
    for (const Extent& extent : shard.extents.extents) {
      report_extent(extent, shard.extents.crc32c.data(), nullptr);
    }
    for (const CompressedBlob& blob : shard.extents.blobs) {
      for (const Extent& extent : blob.extents) {
        report_extent(extent, blob.crc32c.data(), &blob);
      }
    }
  }
}

}  // namespace

Status dump_slot(StoreFiles& files, const std::string& text, const std::string& out, Report& report) {
  SlotAddress slot;
  if (!parse_slot(text, &slot)) {
    return Status::invalid_argument(
        fmt::format("'{}' names no slot: give a container and a number, as in 64K/17", text));
  }
  VTKV_RETURN_IF_ERROR(files.open_only_cube());
  vtkv::AlignedBuffer buffer;
  buffer.resize(slot_bytes(slot.size_class));
  VTKV_RETURN_IF_ERROR(files.container(slot.size_class).read(slot.byte_offset(), buffer.size(), buffer.data()));
  report.field("slot", describe_slot(slot));
  report.field("file_offset", slot.byte_offset());
  report.begin_table("references", true);
  const Status status = files.for_each_object([&](const StoredObject& object) {
    std::vector<StoredShard> shards;
    if (object.decodable && files.read_shards(object, &shards).ok()) {
      report_referrers(object, shards, slot, buffer.data(), report);
    }
    return Status();
  });
  report.end_table();
  VTKV_RETURN_IF_ERROR(status);
  return out.empty() ? Status() : vtkv::write_output_file(out, {buffer.data(), buffer.size()});
}

// ---- onodes

namespace {

Status dump_object(const StoreFiles& files, const StoredObject& object, Report& report) {
  report.field("object", object.name());
  report.field("key", vtkv::to_notation(object.key));
  report.field("decodable", object.decodable);
  if (!object.decodable) {
    report.field("record", vtkv::to_notation(object.bytes));
    return {};
  }
  const OnodeRecord& record = object.record;
  report.field("id", record.nid);
  report.field("size", record.size);
  report.field("has_omap", record.test(OnodeRecord::has_omap));
  report.field("inline", record.test(OnodeRecord::shard_inline));
  report.begin_table("attributes", true);
  for (const auto& [attribute, value] : record.attrs) {
    report.row({{"attribute", vtkv::to_notation(attribute)},
                {"value", vtkv::to_notation(std::string_view(value.c_str(), value.length()))}});
  }
  report.end_table();
  std::vector<StoredShard> shards;
  VTKV_RETURN_IF_ERROR(files.read_shards(object, &shards));
  const auto slot_name = [](const Extent& extent) {
    return fmt::format("{}/{}", Container::file_name(extent.slot.container()), extent.slot.whole().index);
  };
  report.begin_table("extents", true);
  for (const StoredShard& shard : shards) {
    for (const Extent& extent : shard.extents.extents) {
      report.row({{"offset", (uint64_t{shard.number} * kShardBlocks + extent.block) * kBlockBytes},
                  {"bytes", uint64_t{extent.count} * kBlockBytes},
                  {"slot", slot_name(extent)},
                  {"slot_block", uint64_t{extent.slot.first_block() + extent.slot_block}},
                  {"written_blocks", uint64_t{extent.slot_written_blocks}},
                  {"shared", extent.shared}});
    }
  }
  report.end_table();
  report.begin_table("compressed_blobs", true);
  for (const StoredShard& shard : shards) {
    for (const CompressedBlob& blob : shard.extents.blobs) {
      for (const Extent& extent : blob.extents) {
        report.row({{"offset", (uint64_t{shard.number} * kShardBlocks + blob.block) * kBlockBytes},
                    {"bytes", uint64_t{blob.count} * kBlockBytes},
                    {"live_blocks", fmt::format("{:04x}", blob.live)},
                    {"algorithm", Compressor::get_comp_alg_name(blob.algorithm)},
                    {"compressed_bytes", uint64_t{blob.bytes}},
                    {"stored_blocks", fmt::format("{}+{}", extent.block, extent.count)},
                    {"slot", slot_name(extent)},
                    {"slot_block", uint64_t{extent.slot.first_block() + extent.slot_block}},
                    {"shared", extent.shared}});
      }
    }
  }
  report.end_table();
  return {};
}

}  // namespace

Status dump_onode(StoreFiles& files, const std::string& name, Report& report) {
  bool found = false;
  VTKV_RETURN_IF_ERROR(files.for_each_cube([&] {
    StoredObject object;
    const Status status = files.find_object(name, &object);
    if (status.is_not_found()) {
      return Status();
    }
    if (status.ok() && std::exchange(found, true)) {
      return Status::invalid_argument(fmt::format("objects in several cubes are called {}: give --cube too", name));
    }
    return status.ok() ? dump_object(files, object, report) : status;
  }));
  return found ? Status()
               : Status::not_found(fmt::format("{} has no object {}; list prints their names", files.path(), name));
}

// ---- checks

void report_repairs(const std::vector<Repaired>& changes, Report& report) {
  report.begin_table("repairs", true);
  for (const Repaired& change : changes) {
    report.row({{"class", std::string(to_string(change.kind))}, {"text", change.text}});
  }
  report.end_table();
}

void report_findings(const CheckResult& result, Report& report) {
  report.field("objects", result.objects);
  report.field("slots", result.slots);
  report.field("errors", result.errors);
  report.field("errors_not_listed", result.errors - result.findings.size());
  report.field("passes", uint64_t{result.passes});
  report.field("memory_bytes", result.memory_bytes);
  report.field("unclear", result.unclear);
  report.field("quarantined_entries", result.quarantined_entries);
  if (!result.quarantined_slots.empty()) {
    report.begin_table("quarantined_slots", true);
    for (const SlotAddress& slot : result.quarantined_slots) {
      report.row({{"slot_bytes", uint64_t{slot_bytes(slot.size_class)}}, {"slot_index", slot.index}});
    }
    report.end_table();
  }
  report.begin_table("findings", true);
  for (const Finding& finding : result.findings) {
    const std::string_view repair = repair_of(finding.kind);
    report.row({{"class", std::string(to_string(finding.kind))},
                {"cube", uint64_t{finding.cube}},
                {"object", finding.object.empty() ? std::string("-") : finding.object},
                {"offset", finding.offset ? std::to_string(*finding.offset) : std::string("-")},
                {"repair", repair.empty() ? std::string("-") : std::string(repair)},
                {"text", finding.text}});
  }
  report.end_table();
}

}  // namespace swimstore
