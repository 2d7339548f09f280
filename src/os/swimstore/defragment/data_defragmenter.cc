// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/defragment/data_defragmenter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "common/debug.h"
#include "include/rados.h"

#include "swimstore/container/best_fit.h"
#include "swimstore/maintenance/own_transaction.h"
#include "swimstore/maintenance/promised_room.h"
#include "swimstore/object/block_reader.h"
#include "swimstore/transaction/slot_delta.h"
#include "swimstore/transaction/transaction_pipeline.h"
#include "vtkv/util/mutations.h"

#define dout_context m_store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.defragment "

namespace swimstore {

using vtkv::Status;

namespace {

constexpr uint64_t kPartBlocks = kSlotBytesMax / kBlockBytes;
constexpr size_t kReadPieces = 8;      // at once, with the collection's lock held
constexpr uint64_t kReadBlocks = 256;  // the same, or one piece
constexpr uint64_t kUnderWayBytesMax = kSlotBytesMax;
constexpr int kListedObjects = 256;      // at once
constexpr uint64_t kLookBytes = 16 << 10;  // what it costs to look at a part of an object, or to list some
constexpr uint64_t kReferenceBytes = 4 << 10;  // to look up who else refers to an extent
constexpr unsigned kUnplacedMax = 8;  // in a row

bool is_same(const MappedRun& a, const MappedRun& b) {
  return a.block == b.block && a.count == b.count && a.slot == b.slot && a.slot_block == b.slot_block &&
         a.crc32c == b.crc32c && a.blob == nullptr && b.blob == nullptr;
}

std::vector<uint32_t> checksums(const MappedRuns& runs) {
  std::vector<uint32_t> all;
  for (const MappedRun& run : runs) {
    all.insert(all.end(), run.crc32c.begin(), run.crc32c.end());
  }
  return all;
}

}  // namespace

DataDefragmenter::DataDefragmenter(StoreContext& store, TransactionPipeline& pipeline, DataDefragmentOptions options)
    : m_store(store),
      m_pipeline(pipeline),
      m_options(std::move(options)),
      m_account(OwnTransaction::new_account(store)),
      m_lister(store) {}

std::vector<DefragmentPass::Field> DataDefragmenter::fields() const {
  return {{"placement_groups", m_counts.groups},
          {"placement_groups_done", m_counts.groups_done},
          {"objects", m_counts.objects},
          {"fragmented_bytes", m_counts.fragmented_bytes},
          {"pieces", m_counts.pieces},
          {"moved_bytes", m_counts.moved_bytes},
          {"moved_pieces_before", m_counts.moved_pieces_before},
          {"moved_pieces_after", m_counts.moved_pieces_after},
          {"changed_ranges", m_counts.changed_ranges},
          {"unreadable_ranges", m_counts.unreadable_ranges},
          {"unplaced_ranges", m_counts.unplaced_ranges}};
}

double DataDefragmenter::progress() const {
  return m_weight_in_all > 0 ? (m_weight_before + m_weight * m_share_listed) / m_weight_in_all : 0;
}

// Each byte is read and written, each piece sought.
uint64_t DataDefragmenter::cost_of_found() const {
  return 2 * m_counts.fragmented_bytes + m_counts.pieces * kPieceBytes;
}

DefragmentPass::Outcome DataDefragmenter::step(uint64_t* cost) {
  *cost = 0;
  Status status;
  if (!m_ranges.empty()) {
    Move move = Move::not_now;
    status = move_next(cost, &move);
    if (status.ok() && move == Move::not_now) {
      return Outcome::not_now;
    }
    if (status.ok() && move != Move::under_way) {
      end_range(move);
    }
    if (m_unplaced_in_a_row >= kUnplacedMax) {
      m_error = fmt::format(
          "there is no room to put data together: {} bytes must stay free in the store and on its host "
          "beside what is moved (swimstore_reserve_size). What was moved stays so. Delete objects or "
          "enlarge the file system, and begin again",
          m_home->containers().statistics().reserve_target_bytes);
      return Outcome::failed;
    }
  } else {
    *cost = kLookBytes;
    status = m_oids.empty() ? list() : look(cost);
  }
  if (!status.ok()) {
    m_error = fmt::format(
        "metadata of {} cannot be read: {}. The OSD serves on, and ends when a client needs it: run "
        "'swimstore verify'",
        m_oids.empty() ? m_collection->cid.to_str() : "object " + m_oids.back().hobj.to_str(), status.to_string());
    return Outcome::failed;
  }
  if (m_ranges.empty() && m_is_last_part) {
    next_object();
  }
  return m_collection ? Outcome::more : Outcome::done;
}

// Of a group's objects, as their hashes are spread evenly: they are listed in the order of these, their bits reversed.
double DataDefragmenter::share_before(const Collection& collection, const ghobject_t& oid) {
  spg_t pgid;
  if (!collection.cid.is_pg(&pgid) ||
      oid.hobj.pool != static_cast<int64_t>(pgid.pool())) {  // temporary ones come first
    return 0;
  }
  const double range = std::exp2(32 - static_cast<int>(collection.record.bits));
  const double first = hobject_t::_reverse_bits(pgid.ps());
  return std::clamp((static_cast<double>(oid.hobj.get_bitwise_key()) - first) / range, 0.0, 1.0);
}

// Of all pools, or of one.
std::vector<CollectionRef> DataDefragmenter::groups(StoreContext& store, std::optional<int64_t> pool) {
  std::vector<CollectionRef> found = store.collections.all();  // ascending
  std::erase_if(found, [pool](const CollectionRef& collection) {
    return !collection->cid.is_pg() || (pool && pool_of(*collection) != *pool);
  });
  return found;
}

bool DataDefragmenter::has_pool(StoreContext& store, int64_t pool) { return !groups(store, pool).empty(); }

// Groups come and go meanwhile: they are counted anew. Each weighs what its pool holds, divided by the pool's groups.
void DataDefragmenter::next_collection() {
  const CollectionRef before = std::exchange(m_collection, nullptr);
  m_next = ghobject_t();
  m_counts.groups_done = 0;
  const std::vector<CollectionRef> all = groups(m_store, m_options.pool);
  m_counts.groups = all.size();
  std::map<int64_t, uint64_t> groups_of_pool;
  for (const CollectionRef& collection : all) {
    ++groups_of_pool[pool_of(*collection)];
  }
  const std::map<int64_t, PoolUsage> usage = m_store.cubes.set().pool_usage();
  m_weight = m_weight_before = m_weight_in_all = m_share_listed = 0;
  for (const CollectionRef& collection : all) {
    const int64_t pool = pool_of(*collection);
    const auto found = usage.find(pool);
    const double stored = found == usage.end() ? 0 : static_cast<double>(std::max<int64_t>(0, found->second.stored));
    const double weight = 1 + stored / static_cast<double>(groups_of_pool[pool]);
    m_weight_in_all += weight;
    if (before && !(before->cid < collection->cid)) {
      ++m_counts.groups_done;
      m_weight_before += weight;
    } else if (!m_collection) {
      m_collection = collection;
      m_weight = weight;
    }
  }
}

Status DataDefragmenter::list() {
  while (m_oids.empty()) {
    if (!m_collection || m_next == ghobject_t::get_max()) {
      next_collection();
    }
    if (!m_collection) {
      return {};
    }
    const Collection& collection = *m_collection;
    const SharedLock lock(collection.lock);
    if (!collection.exists) {
      m_next = ghobject_t::get_max();
      continue;
    }
    m_share_listed = share_before(collection, m_next);
    const Status status = m_lister.read(collection, m_next, ghobject_t::get_max(), kListedObjects, &m_oids, &m_next);
    if (!status.ok()) {
      m_oids.clear();
      return status;
    }
  }
  std::reverse(m_oids.begin(), m_oids.end());
  return {};
}

void DataDefragmenter::next_object() {
  m_oids.pop_back();
  m_first = 0;
  m_is_last_part = false;
}

// Where the collection was split the object may be another one's, which has a lock of its own.
Status DataDefragmenter::find(const Collection& collection, OnodeRef* onode) const {
  const ghobject_t& oid = m_oids.back();
  if (!collection.exists || !collection.contains(oid) || collection.is_being_copied()) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(m_store.home(collection).onodes.find(oid, onode, OnodeCache::Use::once));
  if (!(*onode)->exists) {
    onode->reset();
  }
  return {};
}

Status DataDefragmenter::look(uint64_t* cost) {
  const Collection& collection = *m_collection;
  const SharedLock lock(collection.lock);
  m_is_last_part = true;
  OnodeRef onode;
  VTKV_RETURN_IF_ERROR(find(collection, &onode));
  if (!onode) {
    return {};
  }
  m_counts.objects += m_first == 0 ? 1 : 0;
  const uint64_t blocks = blocks_for(onode->record.size);
  const uint64_t end = std::min(blocks, m_first + kPartBlocks);
  if (end <= m_first) {
    return {};
  }
  StoreCube* const home = &m_store.home(collection);
  m_unplaced_in_a_row = home == m_home ? m_unplaced_in_a_row : 0;  // another one may have room
  m_home = home;
  VTKV_RETURN_IF_ERROR(m_home->onodes.load_extents(*onode, static_cast<uint32_t>(m_first / kShardBlocks),
                                                   static_cast<uint32_t>((end - 1) / kShardBlocks)));
  std::vector<FragmentedRange> ranges;
  VTKV_RETURN_IF_ERROR(find_ranges(*m_home, *onode, m_first, end, &ranges, cost));
  for (const FragmentedRange& range : ranges) {
    if (!range.is_worth_it()) {
      continue;
    }
    m_counts.fragmented_bytes += range.bytes();
    m_counts.pieces += range.pieces;
    if (!m_options.only_measure) {
      m_ranges.push_back({.shape = range});
      onode->extents.resolve(range.first, range.count, &m_ranges.back().runs);
    }
  }
  std::reverse(m_ranges.begin(), m_ranges.end());
  m_is_last_part = end == blocks;
  m_first = end;
  return {};
}

// Who was ever cloned has extents that say so for good; the tree tells whether somebody refers to them still.
Status DataDefragmenter::find_ranges(StoreCube& home, Onode& onode, uint64_t first, uint64_t end,
                                     std::vector<FragmentedRange>* ranges, uint64_t* cost) const {
  RangeFinder finder;
  const SlotDelta nothing_changed;
  for (uint64_t number = first / kShardBlocks; number * kShardBlocks < end; ++number) {
    for (const Extent& extent : onode.extents.find_shard(static_cast<uint32_t>(number)).extents) {
      const uint64_t block = number * kShardBlocks + extent.block;
      if (block < first || block >= end) {
        continue;
      }
      bool is_own = !extent.shared;
      if (extent.shared) {
        *cost += kReferenceBytes;
        VTKV_RETURN_IF_ERROR(nothing_changed.has_one_reference(home.database(), extent.blocks(), &is_own));
      }
      if (is_own) {
        finder.add(block, extent);
      }
    }
  }
  *ranges = finder.finish();
  return {};
}

Status DataDefragmenter::find_unchanged(const Collection& collection, const MappedRuns& runs, OnodeRef* onode) const {
  VTKV_RETURN_IF_ERROR(find(collection, onode));
  const uint64_t first = runs.front().block, end = runs.back().block + runs.back().count;
  if (!*onode || &m_store.home(collection) != m_home || blocks_for((*onode)->record.size) < end) {
    onode->reset();
    return {};
  }
  // That of the object's end, too, which a change of its data looks at.
  const uint64_t last = blocks_for((*onode)->record.size) - 1;
  VTKV_RETURN_IF_ERROR(m_home->onodes.load_extents(**onode, static_cast<uint32_t>(first / kShardBlocks),
                                                   static_cast<uint32_t>((end - 1) / kShardBlocks)));
  VTKV_RETURN_IF_ERROR(m_home->onodes.load_extents(**onode, static_cast<uint32_t>(last / kShardBlocks),
                                                   static_cast<uint32_t>(last / kShardBlocks)));
  MappedRuns now;
  (*onode)->extents.resolve(first, end - first, &now);
  if (!std::equal(now.begin(), now.end(), runs.begin(), runs.end(), is_same) &&
      !vtkv::mutated(vtkv::Mutation::changed_object_defragmented)) {
    onode->reset();
  }
  return {};
}

Status DataDefragmenter::move_next(uint64_t* cost, Move* move) {
  const Range& range = m_ranges.back();
  if (m_next_run == 0 && !may_begin(range.shape.bytes(), move)) {
    return {};
  }
  if (m_next_run < range.runs.size()) {
    return read_chunk(range, cost, move);
  }
  if (m_options.between) {
    m_options.between();
  }
  *cost = range.shape.bytes();
  return write(range, move);
}

// *move: why not.
bool DataDefragmenter::may_begin(uint64_t bytes, Move* move) {
  const CommitThrottle& throttle = m_pipeline.throttle();
  const bool is_busy = throttle.limit_bytes() > 0 && throttle.taken_bytes() > 0 &&
                       throttle.taken_bytes() + bytes > throttle.limit_bytes();
  const bool is_enough =
      m_under_way_bytes > 0 && (m_written_to != m_home || m_under_way_bytes + bytes > kUnderWayBytesMax);
  if (is_busy || (is_enough && !is_durable())) {
    *move = Move::not_now;
    return false;
  }
  *move = Move::unplaced;
  return has_room(bytes);
}

bool DataDefragmenter::is_durable() {
  if (m_written_to->database().durable_sequence() < m_written) {
    return false;
  }
  m_under_way_bytes = 0;
  return true;
}

// It can wait, as clients' writes cannot: so it leaves as much free as the reserve is meant to have.
bool DataDefragmenter::has_room(uint64_t bytes) const {
  ContainerSet& containers = m_home->containers();
  return containers.has_room(most_slot_bytes(bytes) + containers.statistics().reserve_target_bytes, Urgency::usual);
}

Status DataDefragmenter::read_chunk(const Range& range, uint64_t* cost, Move* move) {
  MappedRuns chunk;
  uint64_t blocks = 0;
  do {
    blocks += range.runs[m_next_run].count;
    chunk.push_back(range.runs[m_next_run++]);
  } while (m_next_run < range.runs.size() && chunk.size() < kReadPieces &&
           blocks + range.runs[m_next_run].count <= kReadBlocks);
  *cost = blocks * kBlockBytes + chunk.size() * kPieceBytes;
  const Collection& collection = *m_collection;
  const SharedLock lock(collection.lock);
  OnodeRef onode;
  VTKV_RETURN_IF_ERROR(find_unchanged(collection, chunk, &onode));
  *move = Move::changed;
  if (onode) {
    BlockReader reader(m_store, *m_home);
    const int r = reader.read(*onode, chunk.front().block * kBlockBytes, blocks * kBlockBytes,
                              CEPH_OSD_OP_FLAG_FADVISE_DONTNEED, &m_data);
    *move = r < 0 ? Move::unreadable : Move::under_way;
    if (r < 0) {
      derr << "object " << m_oids.back() << ": blocks " << chunk.front().block << " to "
           << chunk.front().block + blocks - 1 << " cannot all be read, and stay where they are" << dendl;
    }
  }
  return {};
}

Status DataDefragmenter::write(const Range& range, Move* move) {
  const uint64_t first = range.shape.first, count = range.shape.count;
  const PromisedRoom room(m_home->containers(), most_slot_bytes(range.shape.bytes()), Urgency::usual);
  *move = Move::unplaced;
  if (!room) {
    return {};
  }
  const Collection& collection = *m_collection;
  const ExclusiveLock lock(collection.lock);
  OnodeRef onode;
  VTKV_RETURN_IF_ERROR(find_unchanged(collection, range.runs, &onode));
  std::vector<FragmentedRange> ranges;
  uint64_t ignored = 0;
  if (onode) {  // a clone may have been made of it
    VTKV_RETURN_IF_ERROR(find_ranges(*m_home, *onode, first, first + count, &ranges, &ignored));
  }
  const bool is_mutated = vtkv::mutated(vtkv::Mutation::changed_object_defragmented);
  if (!onode || ((ranges.size() != 1 || ranges.front() != range.shape) && !is_mutated)) {
    *move = Move::changed;
    return {};
  }
  OwnTransaction transaction(m_store, m_pipeline, *m_home, *m_account);
  transaction.planner().touch(onode, pool_of(collection));
  if (transaction.planner().data().copy_in(*onode, first, std::exchange(m_data, {}), {}) < 0) {
    return {};  // it has said why; nothing is changed
  }
  MappedRuns now;
  onode->extents.resolve(first, count, &now);
  if (checksums(now) != checksums(range.runs) && !is_mutated) {
    derr << "object " << m_oids.back() << ": what was read of blocks " << first << " to " << first + count - 1
         << " has changed in memory, and is not written: check this host's memory" << dendl;
    *move = Move::unreadable;
    return {};
  }
  VTKV_RETURN_IF_ERROR(find_ranges(*m_home, *onode, first, first + count, &ranges, &ignored));
  const uint64_t pieces = ranges.front().pieces;
  if (!range.shape.would_gain(pieces)) {
    *move = Move::no_gain;  // the transaction takes it back
    return {};
  }
  if (const int r = transaction.submit(); r < 0) {
    return Status::make(Status::Code::failed, "the move cannot be planned; the log says why", -r);
  }
  m_written_to = m_home;
  m_written = transaction.sequence();
  m_under_way_bytes += range.shape.bytes();
  m_counts.moved_pieces_after += pieces;
  *move = Move::made;
  return {};
}

void DataDefragmenter::end_range(Move move) {
  const FragmentedRange& shape = m_ranges.back().shape;
  m_unplaced_in_a_row = move == Move::unplaced ? m_unplaced_in_a_row + 1 : 0;
  switch (move) {
    case Move::made:
      m_counts.moved_bytes += shape.bytes();
      m_counts.moved_pieces_before += shape.pieces;
      break;
    case Move::changed:
      ++m_counts.changed_ranges;
      break;
    case Move::unreadable:
      ++m_counts.unreadable_ranges;
      break;
    default:
      ++m_counts.unplaced_ranges;
      break;
  }
  m_ranges.pop_back();
  m_data.clear();
  m_next_run = 0;
}

}  // namespace swimstore
