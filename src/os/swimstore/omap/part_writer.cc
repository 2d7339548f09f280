// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/omap/part_writer.h"

#include <optional>

#include "swimstore/format/key_codec.h"
#include "swimstore/format/omap_row.h"
#include "swimstore/omap/object_omap.h"
#include "vtkv/util/mutations.h"

namespace swimstore {

using vtkv::Mutation;
using vtkv::Status;

// What the batch so far does to the omap of one object, on top of what the cubes have: every row of it is newer.
class PartWriter::Overlay final : public vtkv::WriteBatch::Handler {
 public:
  Overlay(uint64_t nid, OmapContents* contents)
      : m_nid(nid), m_header_key(omap_header_key(nid)), m_floor_key(omap_floor_key(nid)), m_contents(contents) {}

  void put(std::string_view key, std::string_view value) override {
    OmapRow row;
    if (const auto user_key = mine(key); user_key && decode_omap_row(value, &row)) {
      if (row.kind == OmapRow::Kind::tombstone) {
        m_contents->values.erase(std::string(*user_key));
      } else {
        m_contents->values.insert_or_assign(std::string(*user_key), std::string(row.value));
      }
    } else if (key == m_header_key) {
      m_contents->header = value;
    } else if (key == m_floor_key) {
      m_contents->values.clear();
    }
  }
  void remove(std::string_view key) override {
    if (const auto user_key = mine(key)) {
      m_contents->values.erase(std::string(*user_key));
    } else if (key == m_header_key) {
      m_contents->header.reset();
    }
  }

 private:
  std::optional<std::string_view> mine(std::string_view key) const {
    uint64_t nid = 0;
    std::string_view user_key;
    if (decode_omap_row_key(key, &nid, &user_key) && nid == m_nid) {
      return user_key;
    }
    return std::nullopt;
  }

  const uint64_t m_nid;
  const std::string m_header_key, m_floor_key;
  OmapContents* m_contents;
};

int PartWriter::failed(const Onode& onode, const Status& status) {
  return m_txn.store.metadata_failure.met(MetadataFailure::kUnknownCube, status, "the omap of object ", onode.oid);
}

uint64_t PartWriter::write_id() {
  if (m_write_id == 0) {
    m_write_id = m_txn.new_object_id();
  }
  return m_write_id;
}

// A row of an object that a crash takes back would be nobody's, and was promised all the same. All that cube 0 did to
// the object was submitted, under its collection's lock. Once for each object while the store is mounted, so it may
// wait here.
Status PartWriter::make_sure_it_lasts(const Onode& onode) {
  StoreContext& store = m_txn.store;
  if (m_txn.home.number == 0 || store.parts_in_doubt.is_durable(onode.record.nid)) {
    return {};
  }
  vtkv::DB& database = store.cubes[0].database();
  VTKV_RETURN_IF_ERROR(database.wait_durable(database.statistics().last_sequence));
  store.parts_in_doubt.object_durable(onode.record.nid);
  return {};
}

void PartWriter::put_value(const Onode& onode, std::string_view key, std::string_view value) {
  std::string row;
  encode_omap_row({OmapRow::Kind::value, write_id(), value}, &row);
  m_txn.batch.put(omap_row_key(onode.record.nid, key), row);
}

// A row that is a tombstone is named a second time, so that the sweeper finds it without looking at all rows.
void PartWriter::put_tombstone(uint64_t nid, std::string_view key) {
  std::string row;
  encode_omap_row({OmapRow::Kind::tombstone, write_id(), {}}, &row);
  m_txn.batch.put(omap_row_key(nid, key), row);
  m_txn.batch.put(omap_tombstone_key(nid, key), {});
}

int PartWriter::set(const Onode& onode, const ceph::bufferlist& encoded) {
  if (const Status status = make_sure_it_lasts(onode); !status.ok()) {
    return failed(onode, status);
  }
  m_written.insert(onode.record.nid);
  OmapArguments arguments(encoded);
  for (std::string_view key, value; arguments.next(&key, &value);) {
    put_value(onode, key, value);
  }
  return 0;
}

Status PartWriter::is_elsewhere(const std::string& row_key, bool* elsewhere) {
  *elsewhere = m_txn.store.parts_in_doubt.is_removed_elsewhere(m_txn.home.number, row_key) &&
               !mutated(Mutation::tombstone_left_out);
  for (const auto& cube : m_txn.store.cubes) {
    if (*elsewhere) {
      return {};
    }
    if (cube->number != m_txn.home.number) {
      std::string value;
      const Status status = cube->database().get(row_key, &value);
      if (!status.ok() && !status.is_not_found()) {
        return status;
      }
      *elsewhere = status.ok();
    }
  }
  return {};
}

Status PartWriter::remove_key(uint64_t nid, std::string_view key) {
  std::string row_key = omap_row_key(nid, key);
  bool elsewhere = false;
  VTKV_RETURN_IF_ERROR(is_elsewhere(row_key, &elsewhere));
  if (elsewhere) {
    put_tombstone(nid, key);
  } else {
    m_txn.batch.remove(row_key);
    m_txn.removed_rows.push_back(std::move(row_key));
  }
  return {};
}

int PartWriter::remove(const Onode& onode, const ceph::bufferlist& encoded) {
  Status status = make_sure_it_lasts(onode);
  m_written.insert(onode.record.nid);
  OmapArguments arguments(encoded);
  for (std::string_view key; status.ok() && arguments.next(&key);) {
    status = remove_key(onode.record.nid, key);
  }
  return status.ok() ? 0 : failed(onode, status);
}

// Those of rows of any cube, of rows that may come back, and of those that the transaction has written itself.
Status PartWriter::keys_in_range(uint64_t nid, std::string_view first, std::string_view last,
                                 std::set<std::string>* keys) {
  const std::string begin = omap_row_key(nid, first), end = omap_row_key(nid, last);
  std::set<std::string> row_keys;
  m_txn.store.parts_in_doubt.list_removed(begin, end, &row_keys);
  for (const std::string& key : row_keys) {
    keys->insert(key.substr(kOmapPrefixBytes));
  }
  for (const auto& cube : m_txn.store.cubes) {
    const auto rows = cube->database().new_iterator(begin, end);
    for (rows->seek_to_first(); rows->valid(); rows->next()) {
      keys->emplace(rows->key().substr(kOmapPrefixBytes));
    }
    VTKV_RETURN_IF_ERROR(rows->status());
  }
  OmapContents own;
  Overlay overlay(nid, &own);
  if (m_written.contains(nid)) {
    VTKV_RETURN_IF_ERROR(m_txn.batch.iterate(overlay));
  }
  for (auto at = own.values.lower_bound(std::string(first)); at != own.values.end() && at->first < last; ++at) {
    keys->insert(at->first);
  }
  return {};
}

// One by one: no range tombstone of this cube hides a row of another.
int PartWriter::remove_range(const Onode& onode, std::string_view first, std::string_view last) {
  if (first >= last) {
    return 0;
  }
  const uint64_t nid = onode.record.nid;
  std::set<std::string> keys;
  Status status = keys_in_range(nid, first, last, &keys);
  m_written.insert(nid);
  for (const std::string& key : keys) {
    if (status.ok()) {
      status = remove_key(nid, key);
    }
  }
  return status.ok() ? 0 : failed(onode, status);
}

void PartWriter::set_header(const Onode& onode, const ceph::bufferlist& header) {
  m_written.insert(onode.record.nid);
  m_txn.batch.put(omap_header_key(onode.record.nid), header.to_str());
}

Status PartWriter::find_rows(uint64_t nid, bool* here, bool* elsewhere) {
  const std::string begin = omap_row_key(nid, ""), end = omap_row_range_end(nid);
  std::set<std::string> in_doubt;
  m_txn.store.parts_in_doubt.list_removed(begin, end, &in_doubt);
  *here = m_written.contains(nid);
  *elsewhere = !in_doubt.empty();
  for (const auto& cube : m_txn.store.cubes) {
    const auto rows = cube->database().new_iterator(begin, end);
    rows->seek_to_first();
    VTKV_RETURN_IF_ERROR(rows->status());
    *(cube->number == m_txn.home.number ? here : elsewhere) |= rows->valid();
  }
  return {};
}

int PartWriter::clear(const Onode& onode) {
  const uint64_t nid = onode.record.nid;
  bool here = false, elsewhere = false;
  if (const Status status = find_rows(nid, &here, &elsewhere); !status.ok()) {
    return failed(onode, status);
  }
  m_txn.batch.remove(omap_header_key(nid));
  if (here || elsewhere) {
    m_written.insert(nid);
    m_write_id = m_txn.new_object_id();  // above that of what the transaction has written so far
    m_txn.batch.put(omap_floor_key(nid), encode_omap_floor(m_write_id));
  }
  return 0;
}

int PartWriter::end(const Onode& onode) {
  const uint64_t nid = onode.record.nid;
  bool here = false, elsewhere = false;
  if (const Status status = find_rows(nid, &here, &elsewhere); !status.ok()) {
    return failed(onode, status);
  }
  m_txn.store.parts_in_doubt.object_changes(nid);
  vtkv::WriteBatch& batch = m_txn.batch;
  batch.remove(omap_header_key(nid));
  if (here) {
    batch.remove_range(omap_row_key(nid, ""), omap_row_range_end(nid));
    batch.remove_range(omap_tombstone_key(nid, ""), omap_tombstone_range_end(nid));
  }
  if (elsewhere) {
    m_write_id = m_txn.new_object_id();
    batch.put(omap_floor_key(nid), encode_omap_floor(m_write_id));
  } else if (here) {
    batch.remove(omap_floor_key(nid));  // without rows the sweeper ends it
  }
  return 0;
}

Status PartWriter::read(const Onode& source, OmapContents* contents) {
  VTKV_RETURN_IF_ERROR(ObjectOmap(m_txn.store, m_txn.home, source).read(contents));
  Overlay overlay(source.record.nid, contents);
  return m_written.contains(source.record.nid) ? m_txn.batch.iterate(overlay) : Status();
}

int PartWriter::clone(const Onode& source, const Onode& target) {
  OmapContents contents;
  if (const Status status = read(source, &contents); !status.ok()) {
    return failed(source, status);
  }
  m_written.insert(target.record.nid);
  if (contents.header) {
    m_txn.batch.put(omap_header_key(target.record.nid), *contents.header);
  }
  for (const auto& [key, value] : contents.values) {
    put_value(target, key, value);
  }
  return 0;
}

}  // namespace swimstore
