// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/cube_workload.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "swimstore/container/container.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"
#include "vtkv/util/hash.h"

namespace swimstore {

using vtkv::AlignedBuffer;
using vtkv::SequenceNumber;
using vtkv::Status;

namespace {

constexpr char kDirectory[] = "/cube";
constexpr char kLastKey[] = "last";
constexpr char kObjectPrefix = 'o';
constexpr int64_t kPool = 5;
constexpr size_t kObjects = 12;
constexpr uint32_t kBlocksMax = 12;

std::string text(const Status& status, const std::string& where) {
  return status.ok() ? "" : where + ": " + status.to_string();
}

// What version `version` of the object holds.
AlignedBuffer contents(const std::string& name, uint64_t version, uint32_t bytes) {
  AlignedBuffer buffer(bytes);
  buffer.resize(bytes);
  std::mt19937_64 random(vtkv::hash64(name, version));
  for (uint32_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(buffer.data() + at, &word, sizeof word);
  }
  return buffer;
}

}  // namespace

std::string CubeWorkload::encode(uint64_t version, const std::vector<Slice>& slices) {
  std::string value;
  vtkv::put_varint64(&value, version);
  vtkv::put_varint64(&value, slices.size());
  for (const Slice& slice : slices) {
    vtkv::put_varint64(&value, slice.slot.packed());
    vtkv::put_varint32(&value, slice.bytes);
    vtkv::put_varint32(&value, slice.written_bytes);
  }
  return value;
}

bool CubeWorkload::decode(std::string_view value, History::Object* object, std::vector<Slice>* slices) {
  uint64_t count = 0;
  if (!vtkv::get_varint64(&value, &object->version) || !vtkv::get_varint64(&value, &count)) {
    return false;
  }
  for (uint64_t i = 0; i < count; i++) {
    uint64_t packed = 0;
    Slice slice;
    if (!vtkv::get_varint64(&value, &packed) || !vtkv::get_varint32(&value, &slice.bytes) ||
        !vtkv::get_varint32(&value, &slice.written_bytes)) {
      return false;
    }
    slice.slot = SlotAddress::unpack(packed);
    object->bytes += slice.bytes;
    slices->push_back(slice);
  }
  return value.empty();
}

// Owns its data and itself.
class CubeWorkload::Transaction final : public CubeTransaction {
 public:
  Transaction(CubeWorkload* workload, uint64_t number) : number(number), m_workload(workload) {}
  const uint64_t number;
  std::map<std::string, std::vector<AllocatedSlot>> allocated;  // by object
  std::vector<AlignedBuffer> buffers;

 private:
  void committed(const Status& status) override {
    m_workload->m_env->mark(status.ok() ? number : kFailedMark);
    {
      vtkv::MutexLock lock(m_workload->m_lock);
      m_workload->m_unacknowledged--;
      if (!status.ok()) {
        m_workload->m_failure = text(status, "commit of " + std::to_string(number));
      }
      m_workload->m_signal->notify_all();
    }
    delete this;
  }

  CubeWorkload* const m_workload;
};

CubeOptions CubeWorkload::small_options(bool single_flush) {
  CubeOptions options;
  options.database.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
  options.database.memtable_bytes = 8 << 10;
  options.database.single_flush = single_flush;
  options.containers.chunk_bytes = 32 << 10;
  options.containers.primed_class_max = 1;
  options.containers.primed_ahead_bytes = 32 << 10;
  options.containers.reserve_bytes = 512 << 10;
  options.containers.hole_bytes_min = 8 << 10;
  return options;
}

std::string CubeWorkload::container_path(unsigned size_class) {
  return std::string(kDirectory) + "/containers/" + Container::file_name(size_class);
}

std::string CubeWorkload::create(vtkv::SimEnv& env, const CubeOptions& options) {
  const Status status = Cube::create(&env, kDirectory, options);
  if (status.ok()) {
    return text(env.sync_directory("/"), "sync of /");
  }
  return text(status, "create");
}

std::string CubeWorkload::open(vtkv::SimEnv& env, const CubeOptions& options) {
  m_env = &env;
  m_signal = env.new_signal();
  return text(Cube::open(&env, kDirectory, options, &m_cube), "open");
}

CubeWorkload::~CubeWorkload() { m_cube.reset(); }

void CubeWorkload::wait_until_unacknowledged_is(uint64_t most) {
  vtkv::MutexLock lock(m_lock);
  m_signal->wait(lock, [this, most] { return m_unacknowledged <= most; });
}

std::string CubeWorkload::wait_for_all() {
  wait_until_unacknowledged_is(0);
  return m_failure;
}

void CubeWorkload::run(History& history, uint64_t seed, unsigned count, unsigned in_flight) {
  std::mt19937_64 random(seed);
  for (unsigned i = 0; i < count; i++) {
    submit_one(history, random);
    wait_until_unacknowledged_is(in_flight - 1);
    if (random() % 8 == 0) {
      m_env->advance(std::chrono::milliseconds(60));  // the timers of background workers
    }
  }
}

void CubeWorkload::submit_one(History& history, std::mt19937_64& random) {
  auto* transaction = new Transaction(this, history.states.size());
  std::map<std::string, History::Object> objects = history.states.back();
  // Long phases of growing and of shrinking, so that whole chunks become free.
  std::set<std::string> touched;  // each once
  const bool shrinking = history.states.size() / 40 % 2 == 1;
  bool has_space = true;
  for (uint64_t n = 1 + random() % 3; n > 0 && has_space; n--) {
    const std::string name = kObjectPrefix + std::to_string(random() % kObjects);
    const auto it = objects.find(name);
    if (!touched.insert(name).second) {
      continue;
    }
    if (it != objects.end() && random() % 8 < (shrinking ? 6 : 1)) {
      remove_object(*transaction, name);
      objects.erase(it);
      continue;
    }
    const auto bytes = static_cast<uint32_t>(1 + random() % (shrinking ? 2 : kBlocksMax)) * kBlockBytes;
    if (it != objects.end() && it->second.bytes > kBlockBytes && random() % 3 == 0) {
      cut_object(*transaction, name, random(), &it->second);
      continue;
    }
    const bool replaces = it != objects.end();
    has_space = m_cube->containers().allocate(bytes, &transaction->allocated[name]).ok();
    if (!this->has_space(transaction->allocated[name])) {
      vtkv::MutexLock lock(m_lock);
      m_failure = "a slot was handed out for which the host has no space";
    }
    if (has_space && replaces) {
      remove_object(*transaction, name);
    }
    objects[name] = {transaction->number, bytes};
  }
  if (!has_space) {
    for (const auto& [name, slots] : transaction->allocated) {
      m_cube->containers().abandon(slots);
    }
    delete transaction;
    history.refused++;
    return;
  }
  for (const auto& [name, object] : objects) {
    if (object.version != transaction->number) {
      continue;
    }
    const std::vector<AllocatedSlot>& slots = transaction->allocated[name];
    const AlignedBuffer& data = transaction->buffers.emplace_back(contents(name, object.version, object.bytes));
    std::vector<Slice> slices;
    uint32_t at = 0;
    for (const AllocatedSlot& slot : slots) {
      const char* from = data.data() + at;
      transaction->add_slot_write(m_cube->containers(), slot, 0, {{const_cast<char*>(from), slot.bytes}}, slot.bytes,
                                  vtkv::crc32c(from, slot.bytes));
      transaction->delta.allocation.allocated.push_back(slot.blocks());
      slices.push_back({slot.address, slot.bytes, slot.bytes});
      at += slot.bytes;
    }
    transaction->batch.put(name, encode(object.version, slices));
  }
  transaction->batch.put(kLastKey, std::to_string(transaction->number));
  int64_t stored = 0;
  for (const auto& [name, object] : objects) {
    stored += object.bytes;
  }
  for (const auto& [name, object] : history.states.back()) {
    stored -= object.bytes;
  }
  transaction->delta.pools[kPool].stored = stored;
  transaction->delta.next_object_id = m_cube->new_object_id() + 1;
  history.states.push_back(std::move(objects));
  {
    vtkv::MutexLock lock(m_lock);
    m_unacknowledged++;
  }
  m_cube->submit(transaction);
}

bool CubeWorkload::has_space(const std::vector<AllocatedSlot>& slots) {
  for (const AllocatedSlot& slot : slots) {
    vtkv::FileSpace space;
    const uint64_t begin = slot.address.byte_offset();
    if (!m_cube->containers().file(slot.address.container())->map_space(&space).ok() ||
        std::any_of(space.holes.begin(), space.holes.end(), [&](const vtkv::FileRange& hole) {
          return hole.offset < begin + slot.bytes && begin < hole.offset + hole.length;
        })) {
      return false;
    }
  }
  return true;
}

bool CubeWorkload::find(const std::string& name, History::Object* object, std::vector<Slice>* slices) {
  std::string value;
  return m_cube->database().get(name, &value).ok() && decode(value, object, slices);
}

void CubeWorkload::remove_object(Transaction& transaction, const std::string& name) {
  History::Object object;
  std::vector<Slice> slices;
  if (find(name, &object, &slices)) {
    for (const Slice& slice : slices) {
      transaction.delta.allocation.freed.push_back(slice.blocks());
    }
  }
  transaction.batch.remove(name);
}

void CubeWorkload::cut_object(Transaction& transaction, const std::string& name, uint64_t random,
                              History::Object* object) {
  History::Object stored;
  std::vector<Slice> slices;
  if (!find(name, &stored, &slices) || slices.back().bytes == kBlockBytes) {
    return;
  }
  Slice& last = slices.back();
  const auto left = static_cast<uint32_t>(1 + random % (last.bytes / kBlockBytes - 1));
  SlotBlocks freed = last.blocks();
  freed.first = left;
  freed.count -= left;
  transaction.delta.allocation.freed.push_back(freed);
  object->bytes -= last.bytes - left * kBlockBytes;
  last.bytes = left * kBlockBytes;
  transaction.batch.put(name, encode(object->version, slices));
}

std::string CubeWorkload::check(const History& history, uint64_t* found) {
  std::string last;
  Status status = m_cube->database().get(kLastKey, &last);
  if (!status.ok() && !status.is_not_found()) {
    return text(status, kLastKey);
  }
  *found = status.ok() ? std::stoull(last) : 0;
  if (*found >= history.states.size()) {
    return "transaction " + last + " was never submitted";
  }
  const auto& expected = history.states[*found];
  std::map<std::string, History::Object> left = expected;
  std::vector<Slice> slots;
  auto it = m_cube->database().new_iterator("o", "p");
  for (it->seek_to_first(); it->valid(); it->next()) {
    const std::string name(it->key());
    const auto object = left.find(name);
    if (object == left.end()) {
      return "object " + name + " should not be there after transaction " + last;
    }
    if (std::string wrong = check_object(name, it->value(), object->second, &slots); !wrong.empty()) {
      return wrong + " after transaction " + last;
    }
    left.erase(object);
  }
  if (!it->status().ok()) {
    return text(it->status(), "objects");
  }
  if (!left.empty()) {
    return "object " + left.begin()->first + " is missing after transaction " + last;
  }
  if (std::string wrong = check_slots(std::move(slots)); !wrong.empty()) {
    return wrong;
  }
  return check_counters(expected);
}

std::string CubeWorkload::check_object(const std::string& name, std::string_view value, const History::Object& expected,
                                       std::vector<Slice>* all_slices) {
  History::Object object;
  std::vector<Slice> slices;
  if (!decode(value, &object, &slices) || object != expected) {
    return "object " + name + " is version " + std::to_string(object.version) + " of " + std::to_string(object.bytes) +
           " bytes, not " + std::to_string(expected.version) + " of " + std::to_string(expected.bytes);
  }
  // What was cut off lay at its end.
  const AlignedBuffer wanted = contents(name, object.version, object.bytes);
  uint32_t at = 0;
  for (const Slice& slice : slices) {
    all_slices->push_back(slice);
    if (is_damaged(slice)) {
      if (object.version > m_damaged_up_to) {
        return "object " + name + ", written since, counts as damaged";
      }
      at += slice.bytes;
      continue;
    }
    AlignedBuffer is(slice.bytes);
    is.resize(slice.bytes);
    const Status status =
        m_cube->containers().file(slice.slot.container())->read(slice.slot.byte_offset(), slice.bytes, is.data());
    if (!status.ok()) {
      return text(status, "object " + name);
    }
    if (std::memcmp(is.data(), wanted.data() + at, slice.bytes) != 0) {
      return "object " + name + ": wrong bytes in slot " + std::to_string(slice.slot.index) + " of class " +
             std::to_string(slice.slot.size_class) + ", split " + std::to_string(slice.slot.split_levels) + " times";
    }
    at += slice.bytes;
  }
  return "";
}

bool CubeWorkload::is_damaged(const Slice& slice) const {
  for (uint32_t block = 0; block < slice.bytes / kBlockBytes; block++) {
    if (m_cube->is_damaged(slice.slot, block)) {
      return true;
    }
  }
  return false;
}

std::string CubeWorkload::check_slots(std::vector<Slice> slices) {
  uint64_t owned_bytes = 0;
  std::set<std::pair<SlotAddress, uint32_t>> blocks;  // of whole slots
  for (const Slice& slice : slices) {
    const bool is_split = slice.slot.split_levels > 0 || slice.bytes < slice.written_bytes;
    owned_bytes += is_split ? slice.bytes : slot_bytes(slice.slot.size_class);
    if (!m_cube->containers().is_owned(slice.blocks())) {
      return "a slot of an object is not owned";
    }
    for (uint32_t block = 0; block < slice.bytes / kBlockBytes; block++) {
      if (!blocks.emplace(slice.slot.whole(), slice.slot.first_block() + block).second) {
        return "a slot has two owners";
      }
    }
  }
  const ContainerStatistics statistics = m_cube->containers().statistics();
  if (statistics.owned_bytes != owned_bytes) {
    return std::to_string(statistics.owned_bytes) + " bytes are owned, objects account for " +
           std::to_string(owned_bytes);
  }
  for (const auto& it : statistics.classes) {
    if (it.owned + it.free + it.waiting + it.reserved != it.slots) {
      return "free, owned, waiting and reserved slots do not add up";
    }
  }
  return "";
}

std::string CubeWorkload::check_counters(const std::map<std::string, History::Object>& objects) {
  int64_t stored = 0;
  for (const auto& [name, object] : objects) {
    stored += object.bytes;
  }
  const auto pools = m_cube->pool_usage();
  const auto pool = pools.find(kPool);
  const int64_t counted = pool == pools.end() ? 0 : pool->second.stored;
  return counted == stored ? ""
                           : "the pool counts " + std::to_string(counted) + " bytes stored, objects account for " +
                                 std::to_string(stored);
}

}  // namespace swimstore
