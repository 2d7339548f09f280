// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/object/object_reader.h"

#include "common/Formatter.h"

namespace swimstore {

int ObjectReader::find(Collection& collection, const ghobject_t& oid, OnodeRef* onode) {
  if (!collection.exists || !collection.contains(oid)) {
    return -ENOENT;
  }
  const vtkv::Status status = m_store.home(collection).onodes.find(oid, onode);
  if (!status.ok()) {
    return m_store.metadata_failure.met(m_store.home(collection).number, status, "object ", oid);
  }
  return (*onode)->exists ? 0 : -ENOENT;
}

int ObjectReader::find_for_metadata(Collection& collection, const ghobject_t& oid, OnodeRef* onode) {
  const int r = find(collection, oid, onode);
  return r == 0 && m_store.injected.has_metadata_error(oid) ? -EIO : r;
}

bool ObjectReader::exists(Collection& collection, const ghobject_t& oid) {
  SharedLock lock(collection.lock);
  OnodeRef onode;
  return find(collection, oid, &onode) == 0;
}

int ObjectReader::stat(Collection& collection, const ghobject_t& oid, struct stat* st) {
  SharedLock lock(collection.lock);
  OnodeRef onode;
  const int r = find_for_metadata(collection, oid, &onode);
  if (r < 0) {
    return r;
  }
  st->st_size = onode->record.size;
  st->st_blksize = kBlockBytes;
  st->st_blocks = blocks_for(onode->record.size);
  st->st_nlink = 1;
  return 0;
}

int ObjectReader::read(Collection& collection, const ghobject_t& oid, uint64_t offset, size_t length,
                       ceph::bufferlist& out, uint32_t op_flags) {
  const uint64_t began_us = m_store.env->now_us();
  out.clear();
  SharedLock lock(collection.lock);
  OnodeRef onode;
  int r = find(collection, oid, &onode);
  if (r < 0) {
    return r;
  }
  const uint64_t size = onode->record.size;
  if (offset == 0 && length == 0) {
    length = size;
  }
  if (offset < size) {
    BlockReader blocks(m_store, m_store.home(collection));
    r = blocks.read(*onode, offset, std::min<uint64_t>(length, size - offset), op_flags, &out);
  }
  return end_read(oid, r, began_us, out);
}

int ObjectReader::end_read(const ghobject_t& oid, int r, uint64_t began_us, const ceph::bufferlist& out) {
  m_store.took(l_swimstore_read_latency, "read", std::chrono::microseconds(m_store.env->now_us() - began_us), oid);
  if (r == -E2BIG) {
    return r;  // no error of the disk, after which the OSD would repair the object
  }
  if (r < 0 || m_store.injected.has_data_error(oid) || m_store.injected.fails_at_random(oid)) {
    m_store.counters.inc(l_swimstore_read_errors);
    return -EIO;
  }
  m_store.counters.inc(l_swimstore_read_bytes, out.length());
  return out.length();
}

int ObjectReader::readv(Collection& collection, const ghobject_t& oid, interval_set<uint64_t>& intervals,
                        ceph::bufferlist& out, uint32_t op_flags) {
  const uint64_t began_us = m_store.env->now_us();
  out.clear();
  SharedLock lock(collection.lock);
  OnodeRef onode;
  int r = find(collection, oid, &onode);
  if (r < 0) {
    return r;
  }
  interval_set<uint64_t> within;
  if (onode->record.size > 0) {
    within.insert(0, onode->record.size);
    intervals.intersection_of(within);
  } else {
    intervals.clear();
  }
  std::vector<ByteRange> ranges;
  ranges.reserve(intervals.num_intervals());
  for (const auto& [offset, length] : intervals) {
    ranges.push_back({offset, length});
  }
  BlockReader blocks(m_store, m_store.home(collection));
  r = blocks.read(*onode, ranges, op_flags, &out);
  return end_read(oid, r, began_us, out);
}

int ObjectReader::fiemap(Collection& collection, const ghobject_t& oid, uint64_t offset, size_t length,
                         std::map<uint64_t, uint64_t>* extents) {
  SharedLock lock(collection.lock);
  OnodeRef onode;
  const int r = find(collection, oid, &onode);
  if (r < 0) {
    return r;
  }
  const uint64_t size = onode->record.size;
  if (offset >= size || length == 0) {
    return 0;
  }
  const uint64_t end = offset + std::min<uint64_t>(length, size - offset);
  const uint64_t first = block_of(offset);
  const uint64_t last = block_of(end - 1);
  const vtkv::Status status = m_store.home(collection)
                                  .onodes.load_extents(*onode, static_cast<uint32_t>(first / kShardBlocks),
                                                       static_cast<uint32_t>(last / kShardBlocks));
  if (!status.ok()) {
    return m_store.metadata_failure.met(m_store.home(collection).number, status, "the extents of object ", oid);
  }
  MappedRuns runs;
  onode->extents.resolve(first, last - first + 1, &runs);
  uint64_t* length_before = nullptr;
  uint64_t end_before = 0;
  for (const MappedRun& run : runs) {
    const uint64_t from = std::max(offset, run.block * kBlockBytes);
    const uint64_t to = std::min(end, (run.block + run.count) * kBlockBytes);
    if (length_before != nullptr && end_before == from) {
      *length_before += to - from;
    } else {
      length_before = &extents->emplace(from, to - from).first->second;
    }
    end_before = to;
  }
  return 0;
}

int ObjectReader::getattr(Collection& collection, const ghobject_t& oid, std::string_view name,
                          ceph::bufferptr& value) {
  SharedLock lock(collection.lock);
  OnodeRef onode;
  const int r = find_for_metadata(collection, oid, &onode);
  if (r < 0) {
    return r;
  }
  const auto found = onode->record.attrs.find(name);
  if (found == onode->record.attrs.end()) {
    return -ENODATA;
  }
  value = found->second;
  return 0;
}

int ObjectReader::getattrs(Collection& collection, const ghobject_t& oid,
                           std::map<std::string, ceph::bufferptr, std::less<>>& attrs) {
  SharedLock lock(collection.lock);
  OnodeRef onode;
  const int r = find_for_metadata(collection, oid, &onode);
  if (r == 0) {
    attrs = onode->record.attrs;
  }
  return r;
}

int ObjectReader::dump_onode(Collection& collection, const ghobject_t& oid, const std::string& section,
                             ceph::Formatter* formatter) {
  SharedLock lock(collection.lock);
  OnodeRef onode;
  int r = find(collection, oid, &onode);
  if (r < 0) {
    return r;
  }
  const OnodeRecord& record = onode->record;
  if (const auto status = m_store.home(collection).onodes.load_all_extents(*onode); !status.ok()) {
    return m_store.metadata_failure.met(m_store.home(collection).number, status, "the extents of object ", oid);
  }
  MappedRuns runs;
  onode->extents.resolve(0, blocks_for(record.size), &runs);
  formatter->open_object_section(section.c_str());
  formatter->dump_unsigned("nid", record.nid);
  formatter->dump_unsigned("size", record.size);
  formatter->dump_bool("has_omap", record.test(OnodeRecord::has_omap));
  formatter->dump_unsigned("expected_object_size", record.expected_object_size);
  formatter->dump_unsigned("expected_write_size", record.expected_write_size);
  formatter->dump_unsigned("alloc_hint_flags", record.alloc_hint_flags);
  formatter->open_object_section("attrs");
  for (const auto& [name, value] : record.attrs) {
    formatter->dump_unsigned(name.c_str(), value.length());
  }
  formatter->close_section();
  formatter->open_array_section("extents");
  for (const MappedRun& run : runs) {
    formatter->open_object_section("extent");
    formatter->dump_unsigned("offset", run.block * kBlockBytes);
    formatter->dump_unsigned("length", run.count * kBlockBytes);
    if (run.blob) {
      formatter->dump_string("compressed", Compressor::get_comp_alg_name(run.blob->algorithm));
      formatter->dump_unsigned("compressed_bytes", run.blob->bytes);
      formatter->dump_unsigned("compressed_blocks", run.blob->count);
      formatter->close_section();
      continue;
    }
    formatter->dump_unsigned("slot_bytes", slot_bytes(run.slot.container()));
    formatter->dump_unsigned("slot_index", run.slot.whole().index);
    formatter->dump_unsigned("slot_offset", (run.slot.first_block() + run.slot_block) * kBlockBytes);
    formatter->close_section();
  }
  formatter->close_section();
  formatter->close_section();
  return 0;
}

}  // namespace swimstore
