#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "common/Cond.h"
#include "swimstore/store/collection_list.h"
#include "swimstore/tool/object_archive.h"
#include "swimstore/tool/object_transfer.h"
#include "vtkv/util/coding.h"

namespace swimstore {

using vtkv::Status;
using Transaction = ObjectStore::Transaction;

namespace {

constexpr uint64_t kBytesInFlightMax = 32u << 20;
constexpr uint64_t kObjectBytesEnd = 0xffffffff;  // no object is so large

ceph::bufferlist to_bufferlist(std::string_view bytes) {
  ceph::bufferlist list;
  list.append(bytes.data(), bytes.size());
  return list;
}

class Importer {
 public:
  Importer(ObjectStore& store, ArchiveReader& reader, TransferResult* result)
      : m_store(store), m_reader(reader), m_result(*result) {}

  Status run() {
    for (;;) {
      ArchiveRecord kind;
      std::string body;
      VTKV_RETURN_IF_ERROR(m_reader.read(&kind, &body));
      if (kind == ArchiveRecord::end) {
        return wait_durable();
      }
      VTKV_RETURN_IF_ERROR(apply(kind, body));
    }
  }

 private:
  Status malformed() const { return m_reader.damaged("is malformed"); }

  Status apply(ArchiveRecord kind, std::string_view body) {
    if (kind == ArchiveRecord::collection) {
      return begin_collection(body);
    }
    if (kind == ArchiveRecord::object) {
      return begin_object(body);
    }
    if (!m_in_object) {
      return malformed();
    }
    std::string_view key, value;
    uint64_t offset = 0;
    switch (kind) {
      case ArchiveRecord::attribute: {
        if (!vtkv::get_length_prefixed(&body, &key) || !vtkv::get_length_prefixed(&body, &value)) {
          return malformed();
        }
        auto list = to_bufferlist(value);
        m_transaction.setattr(m_cid, m_oid, std::string(key), list);
        return {};
      }
      case ArchiveRecord::data:
        if (!vtkv::get_fixed64(&body, &offset) || offset > m_size || body.size() > m_size - offset) {
          return malformed();
        }
        m_transaction.write(m_cid, m_oid, offset, body.size(), to_bufferlist(body));
        m_bytes += body.size();
        return {};
      case ArchiveRecord::omap_header:
        m_transaction.omap_setheader(m_cid, m_oid, to_bufferlist(body));
        return {};
      case ArchiveRecord::omap_values: {
        std::map<std::string, ceph::bufferlist> values;
        while (!body.empty()) {
          if (!vtkv::get_length_prefixed(&body, &key) || !vtkv::get_length_prefixed(&body, &value)) {
            return malformed();
          }
          values[std::string(key)] = to_bufferlist(value);
        }
        m_transaction.omap_setkeys(m_cid, m_oid, values);
        return {};
      }
      case ArchiveRecord::object_end:
        return end_object();
      default:
        return m_reader.damaged("is of a kind that this program does not know");
    }
  }

  Status begin_collection(std::string_view body) {
    std::string_view name;
    uint32_t bits = 0;
    if (m_in_object || !vtkv::get_length_prefixed(&body, &name) || !vtkv::get_varint32(&body, &bits) || bits > 32 ||
        !m_cid.parse(std::string(name))) {
      return malformed();
    }
    VTKV_RETURN_IF_ERROR(wait_durable());
    m_ranges = object_ranges(m_cid, bits);
    m_collection = m_store.open_collection(m_cid);
    if (!m_collection) {
      m_collection = m_store.create_new_collection(m_cid);
      Transaction create;
      create.create_collection(m_cid, static_cast<int>(bits));
      m_store.queue_transaction(m_collection, std::move(create));
      ++m_result.collections;
    } else if (m_store.collection_bits(m_collection) != static_cast<int>(bits)) {
      return Status::invalid_argument(
          fmt::format("collection {} has {} bits in the archive and {} in the store: it was split or merged since",
                      m_cid.to_str(), bits, m_store.collection_bits(m_collection)));
    }
    return {};
  }

  Status begin_object(std::string_view body) {
    std::string_view key;
    if (m_in_object || !m_collection || !vtkv::get_length_prefixed(&body, &key) ||
        !vtkv::get_varint64(&body, &m_size) || !decode_object_key(key, &m_oid) || m_size >= kObjectBytesEnd) {
      return malformed();
    }
    if (std::none_of(m_ranges.begin(), m_ranges.end(),
                     [this](const ObjectRange& range) { return range.begin <= m_oid && m_oid < range.end; })) {
      return m_reader.damaged("is an object of another collection");
    }
    m_in_object = true;
    m_bytes = 0;
    m_transaction = Transaction();
    m_transaction.touch(m_cid, m_oid);
    m_transaction.truncate(m_cid, m_oid, m_size);
    return {};
  }

  Status end_object() {
    m_in_object = false;
    struct stat st;
    if (const int r = m_store.stat(m_collection, m_oid, &st); r != -ENOENT) {
      std::ostringstream name;
      name << m_oid;
      m_result.omitted.push_back(fmt::format("object {} is there already and was left as it is", name.str()));
      return {};
    }
    m_bytes_in_flight += m_bytes + m_transaction.get_num_bytes();
    m_store.queue_transaction(m_collection, std::move(m_transaction));
    m_transaction = Transaction();
    ++m_result.objects;
    m_result.bytes += m_bytes;
    return m_bytes_in_flight > kBytesInFlightMax ? wait_durable() : Status();
  }

  // Everything queued so far, all of it on one collection.
  Status wait_durable() {
    m_bytes_in_flight = 0;
    if (m_collection) {
      C_SaferCond durable;
      Transaction last;
      last.nop();
      last.register_on_commit(&durable);
      m_store.queue_transaction(m_collection, std::move(last));
      durable.wait();
    }
    return {};
  }

  ObjectStore& m_store;
  ArchiveReader& m_reader;
  TransferResult& m_result;
  coll_t m_cid;
  ObjectStore::CollectionHandle m_collection;
  std::vector<ObjectRange> m_ranges;  // of the collection
  ghobject_t m_oid;
  uint64_t m_size = 0;
  uint64_t m_bytes = 0;  // of this object
  uint64_t m_bytes_in_flight = 0;
  bool m_in_object = false;
  Transaction m_transaction;
};

}  // namespace

Status import_objects(ObjectStore& store, const std::string& name, std::istream* in, TransferResult* result) {
  ArchiveReader reader(in, name);
  VTKV_RETURN_IF_ERROR(reader.open());
  return Importer(store, reader, result).run();
}

}  // namespace swimstore
