// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/omap/part_sweeper.h"

#include <utility>

#include "common/debug.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/format/omap_row.h"

#define dout_context store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.sweep "

namespace swimstore {

using vtkv::Status;

namespace {

constexpr size_t kTogetherMax = 1000;  // rows, or tombstones, that are waited for at once

std::unique_ptr<vtkv::Iterator> all_of(StoreCube& cube, char prefix) {
  return cube.database().new_iterator(std::string(1, prefix), std::string(1, static_cast<char>(prefix + 1)));
}

}  // namespace

Status PartSweeper::run() {
  VTKV_RETURN_IF_ERROR(end_floors());
  for (const auto& cube : m_store.cubes) {
    VTKV_RETURN_IF_ERROR(end_tombstones(*cube));
  }
  return {};
}

void PartSweeper::remove(StoreCube& cube, uint64_t nid, std::string_view key) {
  vtkv::WriteBatch& batch = m_batches[cube.number];
  batch.remove(omap_row_key(nid, key));
  batch.remove(omap_tombstone_key(nid, key));
  ++m_ended;
}

Status PartSweeper::write() {
  for (auto& [number, batch] : std::exchange(m_batches, {})) {
    VTKV_RETURN_IF_ERROR(m_store.cubes[number].database().write(std::move(batch)));
  }
  return {};
}

// ---- floors

Status PartSweeper::end_floors() {
  StoreCube& zero = m_store.cubes[0];
  const auto floors = all_of(zero, key_prefix::omap_floor);
  for (floors->seek_to_first(); floors->valid(); floors->next()) {
    uint64_t nid = 0, floor = 0;
    if (!decode_omap_floor_key(floors->key(), &nid) || !decode_omap_floor(floors->value(), &floor)) {
      continue;  // damaged: whoever reads that omap says so
    }
    bool all = false;
    VTKV_RETURN_IF_ERROR(end_rows_below(nid, floor, &all));
    VTKV_RETURN_IF_ERROR(write());
    if (all) {
      m_batches[0].remove(floors->key());
      VTKV_RETURN_IF_ERROR(write());
    }
  }
  return floors->status();
}

// Of an object that was removed, that is all of them.
Status PartSweeper::end_rows_below(uint64_t nid, uint64_t floor, bool* all) {
  *all = true;
  for (const auto& cube : m_store.cubes) {
    const auto rows = cube->database().new_iterator(omap_row_key(nid, ""), omap_row_range_end(nid));
    for (rows->seek_to_first(); rows->valid(); rows->next()) {
      OmapRow row;
      if (!decode_omap_row(rows->value(), &row)) {
        *all = false;
        continue;
      }
      if (row.write_id >= floor) {
        continue;
      }
      if (m_left == 0) {
        *all = false;
        return {};
      }
      --m_left;
      remove(*cube, nid, rows->key().substr(kOmapPrefixBytes));
      if (m_left % kTogetherMax == 0) {
        VTKV_RETURN_IF_ERROR(write());
      }
    }
    VTKV_RETURN_IF_ERROR(rows->status());
  }
  return {};
}

// ---- tombstones

Status PartSweeper::end_tombstones(StoreCube& cube) {
  std::vector<Tombstone> tombstones;
  const auto named = all_of(cube, key_prefix::omap_tombstone);
  for (named->seek_to_first(); named->valid() && m_left > 0; named->next(), --m_left) {
    uint64_t nid = 0;
    std::string_view key;
    if (decode_omap_tombstone_key(named->key(), &nid, &key)) {
      tombstones.push_back({&cube, nid, std::string(key)});
    }
    if (tombstones.size() == kTogetherMax) {
      VTKV_RETURN_IF_ERROR(end(std::exchange(tombstones, {})));
    }
  }
  VTKV_RETURN_IF_ERROR(named->status());
  return end(tombstones);
}

// First what they hide, in all cubes; and when that is durable, the tombstones.
Status PartSweeper::end(const std::vector<Tombstone>& tombstones) {
  std::vector<const Tombstone*> ending;
  for (const Tombstone& tombstone : tombstones) {
    bool ends = false;
    VTKV_RETURN_IF_ERROR(end_hidden(tombstone, &ends));
    if (ends) {
      ending.push_back(&tombstone);
    }
  }
  VTKV_RETURN_IF_ERROR(write());
  for (const Tombstone* const tombstone : ending) {
    remove(*tombstone->cube, tombstone->nid, tombstone->key);
  }
  return write();
}

Status PartSweeper::end_hidden(const Tombstone& tombstone, bool* ends) {
  const std::string row_key = omap_row_key(tombstone.nid, tombstone.key);
  uint64_t write_id = 0;
  std::map<unsigned, uint64_t> others;  // write ids, by cube
  for (const auto& cube : m_store.cubes) {
    std::string bytes;
    OmapRow row;
    const Status status = cube->database().get(row_key, &bytes);
    if (!status.ok() && !status.is_not_found()) {
      return status;
    }
    if (status.ok() && !decode_omap_row(bytes, &row)) {
      return {};  // damaged: it may be the newest
    }
    if (cube.get() != tombstone.cube) {
      if (status.ok()) {
        others[cube->number] = row.write_id;
      }
    } else if (status.is_not_found() || row.kind != OmapRow::Kind::tombstone) {
      // The key was set again, or the row has gone with another tombstone: only its second name is left.
      m_batches[cube->number].remove(omap_tombstone_key(tombstone.nid, tombstone.key));
      return {};
    } else {
      write_id = row.write_id;
    }
  }
  for (const auto& [number, other] : others) {
    if (other < write_id) {
      remove(m_store.cubes[number], tombstone.nid, tombstone.key);
    }
  }
  *ends = true;
  return {};
}

void sweep_omap_parts(StoreContext& store) {
  if (store.cubes.size() == 1) {
    return;
  }
  PartSweeper sweeper(store);
  const Status status = sweeper.run();
  if (!status.ok()) {
    derr << "omap rows that do not count any more are left: " << status.to_string() << dendl;
  } else if (sweeper.ended() > 0) {
    dout(1) << sweeper.ended() << " omap rows ended that did not count any more" << dendl;
  }
}

}  // namespace swimstore
