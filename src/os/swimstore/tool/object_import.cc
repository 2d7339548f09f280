// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <deque>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "common/Cond.h"
#include "common/errno.h"
#include "swimstore/format/collection_name.h"
#include "swimstore/object/collection_list.h"
#include "swimstore/tool/object_archive.h"
#include "swimstore/tool/object_transfer.h"
#include "vtkv/util/coding.h"

namespace swimstore {

using vtkv::Status;
using Transaction = ObjectStore::Transaction;

namespace {

constexpr uint64_t kBytesInFlightMax = 32u << 20;
constexpr uint64_t kObjectBytesEnd = 0xffffffff;  // no object is so large

std::string name_of(const ghobject_t& oid) {
  std::ostringstream name;
  name << oid;
  return name.str();
}

ceph::bufferlist to_bufferlist(std::string_view bytes) {
  ceph::bufferlist list;
  list.append(bytes.data(), bytes.size());
  return list;
}

class Importer {
 public:
  Importer(ObjectStore& store, ArchiveReader& reader, bool with_doubtful, TransferResult* result)
      : m_store(store), m_reader(reader), m_with_doubtful(with_doubtful), m_result(*result) {}

  Status run() {
    VTKV_RETURN_IF_ERROR(find_collections());
    for (;;) {
      ArchiveRecord kind;
      std::string body;
      if (const Status status = m_reader.read(&kind, &body); !status.ok()) {
        lose(status);
        if (m_reader.find_next()) {
          continue;
        }
        omit(fmt::format("{} ends without its last record: what lay behind is missing, too", m_reader.name()));
        return conclude();
      }
      if (kind == ArchiveRecord::end) {
        end(body);
        return conclude();
      }
      const Status status = apply(kind, body);
      if (status.code() == Status::Code::corruption) {
        lose(status);
      } else {
        VTKV_RETURN_IF_ERROR(status);
      }
    }
  }

 private:
  struct Target {
    coll_t cid;
    ObjectStore::CollectionHandle collection;
    std::vector<ObjectRange> ranges;

    bool holds(const ghobject_t& oid) const {
      return std::any_of(ranges.begin(), ranges.end(),
                         [&](const ObjectRange& range) { return range.begin <= oid && oid < range.end; });
    }
    bool overlaps(const Target& other) const {
      const auto begins_in = [](const Target& target) {
        return [&target](const ObjectRange& range) { return target.holds(range.begin); };
      };
      return std::any_of(ranges.begin(), ranges.end(), begins_in(other)) ||
             std::any_of(other.ranges.begin(), other.ranges.end(), begins_in(*this));
    }
  };

  Status malformed() const { return m_reader.damaged("is malformed"); }

  Status find_collections() {
    std::vector<coll_t> cids;
    if (const int r = m_store.list_collections(cids); r < 0) {
      return Status::from_errno(-r, "cannot list the collections");
    }
    for (const coll_t& cid : cids) {
      ObjectStore::CollectionHandle collection = m_store.open_collection(cid);
      const auto ranges = object_ranges(cid, static_cast<uint32_t>(m_store.collection_bits(collection)));
      m_targets.push_back({cid, std::move(collection), ranges});
    }
    return {};
  }

  // The store answers with an error, so nobody knows whether the object is there. The import goes on, and fails.
  void cannot_tell(const ghobject_t& oid, int r) {
    omit(fmt::format("object {} was left out: the store cannot say whether it is there: {}", name_of(oid),
                     cpp_strerror(r)));
    if (m_unclear.ok()) {
      m_unclear =
          Status::from_errno(-r, fmt::format("the store that is imported into cannot say whether it has object "
                                             "{}: run 'ceph-swimstore-tool repair PATH' on it, then import again",
                                             name_of(oid)));
    }
  }

  void omit(std::string what) {
    m_result.tell(std::move(what));
    m_incomplete = true;
  }

  // An OSD takes what is there for all there was.
  Status conclude() {
    VTKV_RETURN_IF_ERROR(wait_durable());
    if (!m_incomplete) {
      return {};
    }
    for (Target& target : m_targets) {
      spg_t pgid;
      struct stat st;
      if (!target.cid.is_pg(&pgid)) {
        continue;
      }
      const int r = m_store.stat(target.collection, pgid.make_pgmeta_oid(), &st);
      if (r != 0 && r != -ENOENT) {
        cannot_tell(pgid.make_pgmeta_oid(), r);
      }
      if (r == -ENOENT) {
        m_result.omitted.push_back(fmt::format(
            "PG {} lacks its own object, without which an OSD cannot load it and ends when it is to make it: before "
            "one starts on this store, {}'/usr/lib/ceph-swimstore/ceph-objectstore-tool --data-path PATH --op remove "
            "--pgid {} --force'. The OSD says then that it never had the PG: let it start only while the OSDs with the "
            "newest copies are up",
            target.cid.to_str(), m_left_doubtful ? "import again with --doubtful if it was left out for that, or " : "",
            target.cid.to_str()));
      }
    }
    m_result.omitted.push_back(
        "the PGs of what was left out are incomplete, and an OSD answers that such objects do not "
        "exist: remove these PGs from this store where others have them whole; otherwise 'ceph pg "
        "deep-scrub' and 'ceph pg repair' them before clients read");
    return m_unclear;
  }

  // A record is damaged, and with it the object that it belongs to.
  void lose(const Status& status) {
    const std::string what = m_in_object ? fmt::format("object {} was left out", name_of(m_oid))
                             : m_passing ? std::string("it belongs to an object that was left out")
                                         : std::string("if it began an object, that was left out");
    omit(fmt::format("{}: {}", status.message(), what));
    m_in_object = false;
    m_passing = true;
  }

  void end(std::string_view body) {
    uint64_t objects = 0;
    if (!vtkv::get_fixed64(&body, &objects) || objects != m_whole) {
      omit(fmt::format("{} was written with {} objects, and {} of them are whole", m_reader.name(), objects, m_whole));
    }
  }

  Status apply(ArchiveRecord kind, std::string_view body) {
    if (kind == ArchiveRecord::collection) {
      return begin_collection(body);
    }
    if (kind == ArchiveRecord::object) {
      return begin_object(body);
    }
    if (kind == ArchiveRecord::note) {
      omit(fmt::format("the archive says: {}", body));
      return {};
    }
    if (m_passing) {
      return {};
    }
    if (!m_in_object) {
      return malformed();
    }
    std::string_view key, value;
    uint64_t offset = 0;
    switch (kind) {
      case ArchiveRecord::doubtful:
        omit(fmt::format("object {} {}: {}", name_of(m_oid),
                         m_with_doubtful ? "is doubtful" : "was left out, since it is doubtful (--doubtful adds it)",
                         body));
        m_is_doubtful = true;
        if (!m_with_doubtful) {
          m_left_doubtful = true;
          ++m_whole;
          m_in_object = false;
          m_passing = true;
        }
        return {};
      case ArchiveRecord::hints: {
        uint64_t object_bytes = 0, write_bytes = 0;
        uint32_t flags = 0;
        if (!vtkv::get_varint64(&body, &object_bytes) || !vtkv::get_varint64(&body, &write_bytes) ||
            !vtkv::get_varint32(&body, &flags)) {
          return malformed();
        }
        m_transaction.set_alloc_hint(m_target->cid, m_oid, object_bytes, write_bytes, flags);
        return {};
      }
      case ArchiveRecord::attribute: {
        if (!vtkv::get_length_prefixed(&body, &key) || !vtkv::get_length_prefixed(&body, &value)) {
          return malformed();
        }
        auto list = to_bufferlist(value);
        m_transaction.setattr(m_target->cid, m_oid, std::string(key), list);
        return {};
      }
      case ArchiveRecord::data:
        if (!vtkv::get_fixed64(&body, &offset)) {
          return malformed();
        }
        if (body.empty()) {  // version 1 has such ones, beyond the object's end
          return {};
        }
        if (offset > m_size || body.size() > m_size - offset) {
          return malformed();
        }
        m_transaction.write(m_target->cid, m_oid, offset, body.size(), to_bufferlist(body));
        m_bytes += body.size();
        return {};
      case ArchiveRecord::omap_header:
        m_transaction.omap_setheader(m_target->cid, m_oid, to_bufferlist(body));
        return {};
      case ArchiveRecord::omap_values: {
        std::map<std::string, ceph::bufferlist> values;
        while (!body.empty()) {
          if (!vtkv::get_length_prefixed(&body, &key) || !vtkv::get_length_prefixed(&body, &value)) {
            return malformed();
          }
          values[std::string(key)] = to_bufferlist(value);
        }
        m_transaction.omap_setkeys(m_target->cid, m_oid, values);
        return {};
      }
      case ArchiveRecord::object_end:
        return end_object();
      default:
        return m_reader.damaged("is of a kind that this program does not know");
    }
  }

  // None for objects that were in none.
  struct Named {
    std::optional<coll_t> cid;
    uint32_t bits = 0;
  };
  static bool get_collection(std::string_view* body, Named* named) {
    std::string_view name;
    if (!vtkv::get_length_prefixed(body, &name) || !vtkv::get_varint32(body, &named->bits) || named->bits > 32) {
      return false;
    }
    return name.empty() || decode_collection_name(name, &named->cid.emplace());
  }

  Status begin_collection(std::string_view body) {
    Named named;
    if (m_in_object || !get_collection(&body, &named)) {
      return malformed();
    }
    m_passing = false;
    return make_collection(named);
  }

  Status make_collection(const Named& named) {
    if (!named.cid) {
      return {};
    }
    const coll_t& cid = *named.cid;
    const Target made{cid, nullptr, object_ranges(cid, named.bits)};
    // Where it was split or merged since, its objects go where they belong now.
    if (std::any_of(m_targets.begin(), m_targets.end(),
                    [&](const Target& one) { return one.cid == cid || one.overlaps(made); })) {
      return {};
    }
    VTKV_RETURN_IF_ERROR(wait_durable());
    m_targets.push_back(made);
    m_collection = m_targets.back().collection = m_store.create_new_collection(cid);
    Transaction create;
    create.create_collection(cid, static_cast<int>(named.bits));
    m_store.queue_transaction(m_collection, std::move(create));
    ++m_result.collections;
    return {};
  }

  const Target* target_of(const ghobject_t& oid) const {
    const auto target =
        std::find_if(m_targets.begin(), m_targets.end(), [&](const Target& one) { return one.holds(oid); });
    return target == m_targets.end() ? nullptr : &*target;
  }

  Status begin_object(std::string_view body) {
    std::string_view key;
    Named named;
    if (m_in_object || !vtkv::get_length_prefixed(&body, &key) || !vtkv::get_varint64(&body, &m_size) ||
        !decode_object_key(key, &m_oid) || m_size >= kObjectBytesEnd ||
        (!body.empty() && !get_collection(&body, &named))) {
      return malformed();
    }
    m_passing = false;
    m_in_object = true;
    m_is_doubtful = false;
    m_bytes = 0;
    m_transaction = Transaction();
    m_target = target_of(m_oid);
    if (m_target == nullptr) {  // the collection's own record may be what is damaged
      VTKV_RETURN_IF_ERROR(make_collection(named));
      m_target = target_of(m_oid);
    }
    if (m_target == nullptr) {
      ++m_whole;
      m_in_object = false;
      m_passing = true;
      omit(fmt::format("object {} was left out: no collection of the store has its pool and hash", name_of(m_oid)));
      return {};
    }
    if (m_collection != m_target->collection) {
      VTKV_RETURN_IF_ERROR(wait_durable());
    }
    m_collection = m_target->collection;
    m_transaction.touch(m_target->cid, m_oid);
    m_transaction.truncate(m_target->cid, m_oid, m_size);
    return {};
  }

  Status end_object() {
    ++m_whole;
    m_in_object = false;
    struct stat st;
    const int r = m_store.stat(m_collection, m_oid, &st);
    if (r == 0) {
      m_result.tell(fmt::format("object {} is there already and was left as it is", name_of(m_oid)));
      return {};
    }
    if (r != -ENOENT) {
      cannot_tell(m_oid, r);
      return {};
    }
    m_bytes_in_flight += m_bytes + m_transaction.get_num_bytes();
    m_store.queue_transaction(m_collection, std::move(m_transaction));
    m_transaction = Transaction();
    ++m_result.objects;
    m_result.doubtful += m_is_doubtful ? 1 : 0;
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
  const bool m_with_doubtful;
  TransferResult& m_result;
  std::deque<Target> m_targets;  // every collection of the store
  const Target* m_target = nullptr;  // of the object
  ObjectStore::CollectionHandle m_collection;
  ghobject_t m_oid;
  uint64_t m_size = 0;
  uint64_t m_bytes = 0;  // of this object
  uint64_t m_bytes_in_flight = 0;
  uint64_t m_whole = 0;  // objects in the archive
  bool m_incomplete = false;  // something was left out
  Status m_unclear;           // not ok: the store could not say whether it has something
  bool m_in_object = false;
  bool m_is_doubtful = false;
  bool m_left_doubtful = false;  // an object was left out for that
  bool m_passing = false;  // behind a damaged record, until the next object begins
  Transaction m_transaction;
};

}  // namespace

Status import_objects(ObjectStore& store, const std::string& name, std::istream* in, bool with_doubtful,
                      TransferResult* result) {
  ArchiveReader reader(in, name);
  std::string note;
  VTKV_RETURN_IF_ERROR(reader.open(&note));
  if (!note.empty()) {
    result->omitted.push_back(note);
  }
  return Importer(store, reader, with_doubtful, result).run();
}

}  // namespace swimstore
