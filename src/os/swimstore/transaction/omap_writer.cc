// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/omap_writer.h"

#include "include/encoding.h"

namespace swimstore {

namespace {

uint32_t take_length(ceph::bufferlist::const_iterator& cursor) {
  ceph_le32 length;
  cursor.copy(sizeof(length), reinterpret_cast<char*>(&length));
  return length;
}

// The next bytes, in place when they are contiguous, else copied to *scratch.
std::string_view take(ceph::bufferlist::const_iterator& cursor, uint32_t length, std::string* scratch) {
  const char* bytes = nullptr;
  auto after = cursor;
  if (length > 0 && after.get_ptr_and_advance(length, &bytes) == length) {
    cursor = after;
    return {bytes, length};
  }
  scratch->resize(length);
  cursor.copy(length, scratch->data());
  return *scratch;
}

}  // namespace

// What the batch so far does to the omap of one object, on top of what the tree has.
class OmapWriter::Overlay final : public vtkv::WriteBatch::Handler {
 public:
  Overlay(uint64_t nid, Contents* contents) : m_nid(nid), m_header_key(omap_header_key(nid)), m_contents(contents) {}

  void put(std::string_view key, std::string_view value) override {
    if (const auto user_key = mine(key)) {
      m_contents->values.insert_or_assign(std::string(*user_key), std::string(value));
    } else if (key == m_header_key) {
      m_contents->header = value;
    }
  }
  void remove(std::string_view key) override {
    if (const auto user_key = mine(key)) {
      m_contents->values.erase(std::string(*user_key));
    } else if (key == m_header_key) {
      m_contents->header.reset();
    }
  }
  void remove_range(std::string_view begin, std::string_view end) override {
    std::erase_if(m_contents->values, [&](const auto& entry) {
      const std::string key = omap_key(m_nid, entry.first);
      return begin <= key && key < end;
    });
  }

 private:
  std::optional<std::string_view> mine(std::string_view key) const {
    uint64_t nid = 0;
    std::string_view user_key;
    if (decode_omap_key(key, &nid, &user_key) && nid == m_nid) {
      return user_key;
    }
    return std::nullopt;
  }

  const uint64_t m_nid;
  const std::string m_header_key;
  Contents* m_contents;
};

void OmapWriter::touch(Onode& onode) {
  onode.record.set(OnodeRecord::has_omap, true);
  m_touched.insert(onode.record.nid);
}

void OmapWriter::set(Onode& onode, const ceph::bufferlist& encoded) {
  touch(onode);
  auto cursor = encoded.cbegin();
  std::string key = omap_key(onode.record.nid, "");
  std::string key_scratch, value_scratch;
  for (uint32_t left = take_length(cursor); left > 0; --left) {
    key.resize(kOmapPrefixBytes);
    key.append(take(cursor, take_length(cursor), &key_scratch));
    m_plan.batch().put(key, take(cursor, take_length(cursor), &value_scratch));
  }
}

void OmapWriter::set_header(Onode& onode, const ceph::bufferlist& header) {
  touch(onode);
  m_plan.batch().put(omap_header_key(onode.record.nid), header.to_str());
}

void OmapWriter::remove(Onode& onode, const ceph::bufferlist& encoded) {
  if (!onode.has_omap()) {
    return;
  }
  touch(onode);
  auto cursor = encoded.cbegin();
  std::string key = omap_key(onode.record.nid, "");
  std::string scratch;
  for (uint32_t left = take_length(cursor); left > 0; --left) {
    key.resize(kOmapPrefixBytes);
    key.append(take(cursor, take_length(cursor), &scratch));
    m_plan.batch().remove(key);
  }
}

void OmapWriter::remove_range(Onode& onode, std::string_view first, std::string_view last) {
  if (!onode.has_omap()) {
    return;
  }
  touch(onode);
  m_plan.batch().remove_range(omap_key(onode.record.nid, first), omap_key(onode.record.nid, last));
}

void OmapWriter::clear(Onode& onode) {
  if (!onode.has_omap()) {
    return;
  }
  touch(onode);
  onode.record.set(OnodeRecord::has_omap, false);
  m_plan.batch().remove(omap_header_key(onode.record.nid));
  m_plan.batch().remove_range(omap_key(onode.record.nid, ""), omap_range_end(onode.record.nid));
}

int OmapWriter::read(const Onode& source, Contents* contents) {
  const uint64_t nid = source.record.nid;
  std::string header;
  vtkv::Status status = m_plan.database().get(omap_header_key(nid), &header);
  if (status.ok()) {
    contents->header = std::move(header);
  } else if (status.is_not_found()) {
    status = {};
  }
  const auto iterator = m_plan.database().new_iterator(omap_key(nid, ""), omap_range_end(nid));
  for (iterator->seek_to_first(); status.ok() && iterator->valid(); iterator->next()) {
    contents->values.emplace(iterator->key().substr(kOmapPrefixBytes), iterator->value());
  }
  if (status.ok()) {
    status = iterator->status();
  }
  if (status.ok() && m_touched.contains(nid)) {
    Overlay overlay(nid, contents);
    status = m_plan.batch().iterate(overlay);
  }
  if (!status.ok()) {
    return m_plan.store.metadata_failure.met(status, "the omap of object ", source.oid);
  }
  return 0;
}

int OmapWriter::clone(const Onode& source, Onode& target) {
  if (!source.has_omap()) {
    return 0;
  }
  Contents contents;
  const int r = read(source, &contents);
  if (r < 0) {
    return r;
  }
  touch(target);
  if (contents.header) {
    m_plan.batch().put(omap_header_key(target.record.nid), *contents.header);
  }
  for (const auto& [key, value] : contents.values) {
    m_plan.batch().put(omap_key(target.record.nid, key), value);
  }
  return 0;
}

}  // namespace swimstore
