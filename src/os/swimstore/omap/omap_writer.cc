// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/omap/omap_writer.h"

#include "swimstore/omap/object_omap.h"

namespace swimstore {

// What the batch so far does to the omap of one object, on top of what the tree has.
class OmapWriter::Overlay final : public vtkv::WriteBatch::Handler {
 public:
  Overlay(uint64_t nid, OmapContents* contents)
      : m_nid(nid), m_header_key(omap_header_key(nid)), m_contents(contents) {}

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
  OmapContents* m_contents;
};

void OmapWriter::touch(Onode& onode) {
  onode.record.set(OnodeRecord::has_omap, true);
  m_touched.insert(onode.record.nid);
}

int OmapWriter::set(Onode& onode, const ceph::bufferlist& encoded) {
  if (onode.has_omap_in_parts()) {
    return m_parts.set(onode, encoded);
  }
  touch(onode);
  OmapArguments arguments(encoded);
  std::string entry = omap_key(onode.record.nid, "");
  for (std::string_view key, value; arguments.next(&key, &value);) {
    entry.resize(kOmapPrefixBytes);
    entry.append(key);
    m_txn.batch.put(entry, value);
  }
  return 0;
}

void OmapWriter::set_header(Onode& onode, const ceph::bufferlist& header) {
  if (onode.has_omap_in_parts()) {
    m_parts.set_header(onode, header);
    return;
  }
  touch(onode);
  m_txn.batch.put(omap_header_key(onode.record.nid), header.to_str());
}

int OmapWriter::remove(Onode& onode, const ceph::bufferlist& encoded) {
  if (onode.has_omap_in_parts()) {
    return m_parts.remove(onode, encoded);
  }
  if (!onode.has_omap()) {
    return 0;
  }
  touch(onode);
  OmapArguments arguments(encoded);
  std::string entry = omap_key(onode.record.nid, "");
  for (std::string_view key; arguments.next(&key);) {
    entry.resize(kOmapPrefixBytes);
    entry.append(key);
    m_txn.batch.remove(entry);
  }
  return 0;
}

int OmapWriter::remove_range(Onode& onode, std::string_view first, std::string_view last) {
  if (onode.has_omap_in_parts()) {
    return m_parts.remove_range(onode, first, last);
  }
  if (!onode.has_omap()) {
    return 0;
  }
  touch(onode);
  m_txn.batch.remove_range(omap_key(onode.record.nid, first), omap_key(onode.record.nid, last));
  return 0;
}

int OmapWriter::clear(Onode& onode) {
  if (onode.has_omap_in_parts()) {
    return m_parts.clear(onode);
  }
  if (!onode.has_omap()) {
    return 0;
  }
  touch(onode);
  onode.record.set(OnodeRecord::has_omap, false);
  m_txn.batch.remove(omap_header_key(onode.record.nid));
  m_txn.batch.remove_range(omap_key(onode.record.nid, ""), omap_range_end(onode.record.nid));
  return 0;
}

int OmapWriter::end(Onode& onode) { return onode.has_omap_in_parts() ? m_parts.end(onode) : clear(onode); }

int OmapWriter::read(const Onode& source, OmapContents* contents) {
  vtkv::Status status = ObjectOmap(m_txn.store, m_txn.home, source).read(contents);
  if (status.ok() && m_touched.contains(source.record.nid)) {
    Overlay overlay(source.record.nid, contents);
    status = m_txn.batch.iterate(overlay);
  }
  if (!status.ok()) {
    return m_txn.store.metadata_failure.met(m_txn.home.number, status, "the omap of object ", source.oid);
  }
  return 0;
}

int OmapWriter::clone(const Onode& source, Onode& target) {
  if (source.has_omap_in_parts()) {
    return m_parts.clone(source, target);
  }
  if (!source.has_omap()) {
    return 0;
  }
  OmapContents contents;
  const int r = read(source, &contents);
  if (r < 0) {
    return r;
  }
  touch(target);
  if (contents.header) {
    m_txn.batch.put(omap_header_key(target.record.nid), *contents.header);
  }
  for (const auto& [key, value] : contents.values) {
    m_txn.batch.put(omap_key(target.record.nid, key), value);
  }
  return 0;
}

}  // namespace swimstore
