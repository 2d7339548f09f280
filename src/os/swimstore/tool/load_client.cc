// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/tool/load_client.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "include/Context.h"

namespace swimstore {

using Clock = ceph::mono_clock;
using Transaction = ObjectStore::Transaction;

namespace {

constexpr int64_t kPool = 1;
constexpr size_t kPatternBytes = 8u << 20;  // kept in memory, for what is written
constexpr unsigned kPage = 4096;
// Sizes seen in an OSD's transactions.
constexpr size_t kObjectInfoBytes = 270;
constexpr size_t kSnapSetBytes = 35;
constexpr size_t kLogEntryBytes = 190;
constexpr size_t kFastInfoBytes = 186;
constexpr uint64_t kLogEntriesMax = 3000;
constexpr unsigned kTrimAtOnce = 10;
constexpr char kLogKeyPrefix[] = "0000000010.";
constexpr int kListAtOnce = 300;
constexpr uint64_t kPagesBetweenObjects = 97;  // in the pattern; odd, so that all its pages are begun at

double milliseconds_since(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

}  // namespace

LoadClient::LoadClient(ObjectStore& store, const LoadOptions& options, unsigned number, unsigned pg,
                       AckedObjects::Entry& objects, unsigned depth)
    : m_store(store),
      m_options(options),
      m_depth(depth),
      m_cid(spg_t(pg_t(pg, kPool))),
      m_pgmeta(spg_t(pg_t(pg, kPool)).make_pgmeta_oid()),
      m_random(pg + 1),
      m_pattern(ceph::buffer::create_page_aligned(kPatternBytes)),
      m_objects(objects) {
  for (size_t i = 0; i < kPatternBytes; i += sizeof(uint64_t)) {
    const uint64_t word = m_random();
    std::memcpy(m_pattern.c_str() + i, &word, sizeof word);
  }
  // In each run others; see any_object().
  m_random.seed(1 + number + (static_cast<uint64_t>(options.op) << 32) + (m_objects.end << 40));
  m_start = Clock::now();
}

ghobject_t LoadClient::object(uint64_t number) const {
  spg_t pg;
  m_cid.is_pg(&pg);
  // Hashes that differ in the high bits, which do not choose the PG.
  const uint32_t hash = pg.ps() | static_cast<uint32_t>(number * 2654435761u) << 8;
  return ghobject_t(hobject_t(object_t(fmt::format("bench_object_{:012}", number)), "", CEPH_NOSNAP, hash, kPool, ""));
}

uint64_t LoadClient::any_object() { return m_objects.first + m_random() % m_objects.count(); }

// Of an object, each of an operation's size.
uint64_t LoadClient::slices() const { return std::max<uint64_t>(1, m_options.object_bytes / m_options.size_bytes); }

// What the object has there, in every run: a part of the PG's pattern, which repeats itself.
ceph::bufferlist LoadClient::content(uint64_t number, uint64_t offset, uint64_t bytes) const {
  ceph::bufferlist out;
  uint64_t from = (number * kPagesBetweenObjects * kPage + offset) % kPatternBytes;
  while (bytes > 0) {
    const uint64_t slice = std::min(bytes, kPatternBytes - from);
    out.append(m_pattern, from, slice);
    bytes -= slice;
    from = 0;
  }
  return out;
}

// Half of it is the same in each operation: a store that compresses its metadata finds something, as in an OSD's.
ceph::bufferlist LoadClient::filler(size_t bytes) const {
  ceph::bufferlist out;
  const size_t same = bytes / 2;
  out.append(m_pattern.c_str(), same);
  out.append(m_pattern.c_str() + m_operations * sizeof(uint64_t) % (kPatternBytes - bytes), bytes - same);
  return out;
}

int LoadClient::prepare() {
  if (const int r = m_options.existing ? open_pg() : make_pg(); r < 0) {
    return r;
  }
  if (m_options.op != LoadOp::write && m_objects.count() == 0) {
    return -ENOENT;
  }
  m_next = m_options.op == LoadOp::remove ? m_objects.first : m_objects.end;
  return 0;
}

int LoadClient::open_pg() {
  m_collection = m_store.open_collection(m_cid);
  if (!m_collection) {
    return -ENOENT;
  }
  std::set<std::string> keys;
  if (const int r = m_store.omap_get_keys(m_collection, m_pgmeta, &keys); r < 0) {
    return r;
  }
  const std::string prefix = kLogKeyPrefix;
  for (auto key = keys.lower_bound(prefix); key != keys.end() && key->starts_with(prefix); ++key) {
    m_operations = std::stoull(key->substr(prefix.size())) + 1;
  }
  return 0;
}

int LoadClient::make_pg() {
  m_collection = m_store.create_new_collection(m_cid);
  Transaction create;
  create.create_collection(m_cid, 8);
  create.touch(m_cid, m_pgmeta);
  if (const int r = m_store.queue_transaction(m_collection, std::move(create)); r < 0) {
    return r;
  }
  if (m_options.op == LoadOp::write) {
    return 0;
  }
  const bool filled = m_options.op != LoadOp::append && m_options.op != LoadOp::omap;
  for (unsigned i = 0; i < m_options.objects; ++i) {
    Transaction fill;
    if (filled) {
      fill.write(m_cid, object(i), 0, m_options.object_bytes, content(i, 0, m_options.object_bytes));
    } else {
      fill.touch(m_cid, object(i));
    }
    submit(std::move(fill), &m_objects.end);
  }
  if (filled && m_options.fragment_bytes > 0) {
    fragment();
  }
  drain();
  return error();
}

// What a long random load leaves of the objects: neighbours in an object are no neighbours on disk.
void LoadClient::fragment() {
  const uint64_t slices = m_options.object_bytes / m_options.fragment_bytes;
  std::vector<uint64_t> order(m_options.objects * slices);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), m_random);
  for (const uint64_t nth : order) {
    Transaction txn;
    const uint64_t offset = nth % slices * m_options.fragment_bytes;
    txn.write(m_cid, object(nth / slices), offset, m_options.fragment_bytes,
              content(nth / slices, offset, m_options.fragment_bytes));
    submit(std::move(txn), nullptr);
  }
}

int LoadClient::first_io(LoadResult* result) {
  const uint64_t number = any_object();
  const ceph::bufferlist data = content(number, 0, m_options.size_bytes);
  const auto began = Clock::now();
  m_collection = m_store.open_collection(m_cid);
  ceph::bufferlist out;
  const int r = m_collection ? m_store.read(m_collection, object(number), 0, m_options.size_bytes, out) : -ENOENT;
  result->first_read_ms = milliseconds_since(began);
  if (r < 0) {
    return r;
  }
  const auto write_began = Clock::now();
  Transaction txn;
  txn.write(m_cid, object(number), 0, m_options.size_bytes, data);
  submit(std::move(txn), nullptr);
  drain();
  result->first_write_ms = milliseconds_since(write_began);
  return error();
}

// False: there is nothing left to do.
bool LoadClient::add_operation(Transaction* txn) {
  const uint64_t size = m_options.size_bytes;
  const LoadOp op = m_options.op;
  if (op == LoadOp::remove && m_next == m_objects.end) {
    return false;
  }
  const uint64_t number = op == LoadOp::write || op == LoadOp::remove ? m_next++
                          : op == LoadOp::append                      ? m_operations % m_options.objects
                                                                      : any_object();
  const ghobject_t oid = object(number);
  if (op == LoadOp::remove) {
    txn->remove(m_cid, oid);
  } else if (op == LoadOp::omap) {
    std::map<std::string, ceph::bufferlist> values;
    values[fmt::format("key_{:08}", m_random() % 100000)] = content(number, 0, size);
    txn->omap_setkeys(m_cid, oid, values);
  } else {
    const uint64_t offset = op == LoadOp::write       ? 0
                            : op == LoadOp::overwrite ? m_random() % slices() * size
                                                      : m_operations / m_options.objects % slices() * size;
    txn->write(m_cid, oid, offset, size, content(number, offset, size));
  }
  if (m_options.pg_log) {
    add_pg_log(oid, txn);
  }
  return true;
}

LoadClient::Count* LoadClient::changed_count() {
  return m_options.op == LoadOp::write ? &m_objects.end : m_options.op == LoadOp::remove ? &m_objects.first : nullptr;
}

void LoadClient::add_pg_log(const ghobject_t& oid, Transaction* txn) {
  if (m_options.op != LoadOp::remove) {
    std::map<std::string, ceph::bufferlist, std::less<>> attrs;
    attrs["_"] = filler(kObjectInfoBytes);
    attrs["snapset"] = filler(kSnapSetBytes);
    txn->setattrs(m_cid, oid, attrs);
  }
  const auto log_key = [](uint64_t version) { return fmt::format("{}{:020}", kLogKeyPrefix, version); };
  std::map<std::string, ceph::bufferlist> values;
  values[log_key(m_operations)] = filler(kLogEntryBytes);
  values["_fastinfo"] = filler(kFastInfoBytes);
  txn->omap_setkeys(m_cid, m_pgmeta, values);
  if (m_operations > kLogEntriesMax && m_operations % kTrimAtOnce == 0) {
    std::set<std::string> trimmed;
    for (unsigned i = 0; i < kTrimAtOnce; ++i) {
      trimmed.insert(log_key(m_operations - kLogEntriesMax - i));
    }
    txn->omap_rmkeys(m_cid, m_pgmeta, trimmed);
  }
}

void LoadClient::submit(Transaction&& txn, Count* changed) {
  {
    vtkv::MutexLock lock(m_mutex);
    m_changed.wait(lock, [this]() REQUIRES(m_mutex) { return m_in_flight < m_depth; });
    ++m_in_flight;
  }
  const auto began = Clock::now();
  txn.register_on_commit(new LambdaContext([this, began, changed](int r) { finished(began, r, changed); }));
  if (const int r = m_store.queue_transaction(m_collection, std::move(txn)); r < 0) {
    vtkv::MutexLock lock(m_mutex);
    m_outcome.error = r;
  }
}

// Commits of a PG come in the order of its transactions, so counting is enough.
void LoadClient::finished(Clock::time_point began, int r, Count* changed) {
  const auto now = Clock::now();
  vtkv::MutexLock lock(m_mutex);
  note(began, now, r);
  if (r >= 0 && changed != nullptr) {
    ++*changed;
  }
  --m_in_flight;
  m_changed.notify_one();
}

void LoadClient::note(Clock::time_point began, Clock::time_point now, int r) {
  if (r < 0) {
    m_outcome.error = r;
  }
  m_outcome.latencies_ms.push_back(std::chrono::duration<float, std::milli>(now - began).count());
  const size_t second = now < m_start ? 0 : std::chrono::duration_cast<std::chrono::seconds>(now - m_start).count();
  std::vector<uint32_t>& done = m_outcome.done_in_second;
  if (done.size() <= second) {
    done.resize(second + 1);
  }
  ++done[second];
}

void LoadClient::read_one() {
  const auto began = Clock::now();
  const uint64_t size = m_options.size_bytes;
  ceph::bufferlist out;
  const ghobject_t oid = object(any_object());
  const uint64_t offset = m_random() % slices() * size;
  int r = m_store.read(m_collection, oid, offset, size, out, CEPH_OSD_OP_FLAG_FADVISE_RANDOM);
  if (r >= 0 && out.length() < size) {
    r = -ENODATA;
  }
  const auto now = Clock::now();
  vtkv::MutexLock lock(m_mutex);
  note(began, now, r);
}

// False: that was the last.
bool LoadClient::list_some() {
  const auto began = Clock::now();
  std::vector<ghobject_t> found;
  ghobject_t next;
  const int r = m_store.collection_list(m_collection, m_listed_to, ghobject_t::get_max(), kListAtOnce, &found, &next);
  const auto now = Clock::now();
  m_listed_to = next;
  vtkv::MutexLock lock(m_mutex);
  m_outcome.listed_objects +=
      std::count_if(found.begin(), found.end(), [](const ghobject_t& one) { return !one.is_pgmeta(); });
  note(began, now, r);
  return !next.is_max();
}

// False: that was the last.
bool LoadClient::check_one() {
  const auto began = Clock::now();
  const uint64_t number = --m_next;
  ceph::bufferlist out;
  const int r = m_store.read(m_collection, object(number), 0, m_options.object_bytes + 1, out);
  const bool right = r >= 0 && out.contents_equal(content(number, 0, m_options.object_bytes));
  const auto now = Clock::now();
  vtkv::MutexLock lock(m_mutex);
  if (!right && m_outcome.wrong_objects++ == 0) {
    m_outcome.first_wrong = object(number).hobj.oid.name;
  }
  note(began, now, 0);
  return number > m_objects.first;
}

// False: there is nothing left to do.
bool LoadClient::step() {
  switch (m_options.op) {
    case LoadOp::read:
      read_one();
      return true;
    case LoadOp::list:
      return list_some();
    case LoadOp::check:
      return check_one();
    default:
      Transaction txn;
      if (!add_operation(&txn)) {
        return false;
      }
      submit(std::move(txn), changed_count());
      return true;
  }
}

void LoadClient::run(Clock::time_point end, uint64_t operations) {
  {
    vtkv::MutexLock lock(m_mutex);
    m_outcome.latencies_ms.clear();
    m_outcome.done_in_second.clear();
    m_start = Clock::now();
  }
  for (uint64_t left = operations; Clock::now() < end && left > 0 && error() == 0; ++m_operations, --left) {
    if (!step()) {
      break;
    }
  }
  drain();
}

void LoadClient::drain() {
  vtkv::MutexLock lock(m_mutex);
  m_changed.wait(lock, [this]() REQUIRES(m_mutex) { return m_in_flight == 0; });
}

uint64_t LoadClient::own_bytes() const {
  vtkv::MutexLock lock(m_mutex);
  return kPatternBytes + m_outcome.latencies_ms.capacity() * sizeof(float);
}

int LoadClient::error() const {
  vtkv::MutexLock lock(m_mutex);
  return m_outcome.error;
}

LoadClient::Outcome LoadClient::take_outcome() {
  vtkv::MutexLock lock(m_mutex);
  return std::exchange(m_outcome, {});
}

}  // namespace swimstore
