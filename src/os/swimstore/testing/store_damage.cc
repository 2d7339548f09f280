// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/store_damage.h"

#include <algorithm>
#include <regex>
#include <sstream>

#include <fmt/format.h>

#include "common/Formatter.h"
#include "swimstore/container/container.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/small_store.h"
#include "vtkv/testing/sim_image.h"

namespace swimstore {

using vtkv::kSimSector;
using vtkv::SimEnv;

namespace {

std::string read_file(SimEnv& env, const std::string& path) {
  std::unique_ptr<vtkv::File> file;
  uint64_t bytes = 0;
  std::string contents;
  if (env.open_file(path, {.read_only = true, .direct = false}, &file).ok() && file->size(&bytes).ok()) {
    contents.resize(bytes);
    ceph_assert(bytes == 0 || file->read(0, bytes, contents.data()).ok());
  }
  return contents;
}

uint64_t sector_count(const std::string& bytes) { return (bytes.size() + kSimSector - 1) / kSimSector; }

uint64_t other_sector(uint64_t sector, uint64_t sectors) {
  return sectors == 1 ? 0 : (sector + 1 + sector * 7 % (sectors - 1)) % sectors;
}

// What the file holds afterwards.
std::string damaged(const std::string& bytes, uint64_t sector, SectorDamage damage) {
  std::string now = bytes;
  const uint64_t begin = sector * kSimSector;
  const uint64_t length = std::min<uint64_t>(kSimSector, bytes.size() - begin);
  if (damage == SectorDamage::flipped) {
    now[begin + sector * 37 % length] ^= 0x10;
  } else if (damage == SectorDamage::zeroed) {
    std::fill_n(now.begin() + static_cast<ptrdiff_t>(begin), length, '\0');
  } else {
    const uint64_t other = other_sector(sector, sector_count(bytes)) * kSimSector;
    const uint64_t both = std::min<uint64_t>(length, bytes.size() - other);
    std::swap_ranges(now.begin() + static_cast<ptrdiff_t>(begin), now.begin() + static_cast<ptrdiff_t>(begin + both),
                     now.begin() + static_cast<ptrdiff_t>(other));
  }
  return now;
}

std::string name_of(const ghobject_t& oid) {
  std::ostringstream text;
  text << oid;
  return text.str();
}

// 0, -EIO, or what no object may give; *same: it holds what it should, as far as it can be read.
int read_and_compare(SwimStore& store, ObjectStore::CollectionHandle& collection, const ghobject_t& oid,
                     const ModelObject& expected, bool* same) {
  ceph::bufferlist data, header;
  std::map<std::string, ceph::bufferptr, std::less<>> attrs;
  std::map<std::string, ceph::bufferlist> omap;
  const int of_data = store.read(collection, oid, 0, 0, data);
  const int of_attrs = store.getattrs(collection, oid, attrs);
  const int of_omap = store.omap_get(collection, oid, &header, &omap);
  *same = of_data < 0 || data.to_str() == expected.data;
  if (of_attrs >= 0) {
    *same &= attrs.size() == expected.attrs.size();
    for (const auto& [name, value] : attrs) {
      const auto at = expected.attrs.find(name);
      *same &= at != expected.attrs.end() && at->second == std::string_view(value.c_str(), value.length());
    }
  }
  if (of_omap >= 0) {
    *same &= omap.size() == expected.omap.size() && header.to_str() == expected.omap_header;
    for (const auto& [key, value] : omap) {
      const auto at = expected.omap.find(key);
      *same &= at != expected.omap.end() && at->second == value.to_str();
    }
  }
  for (const int r : {of_data, of_attrs, of_omap}) {
    if (r < 0 && r != -EIO) {
      return r;
    }
  }
  return std::min({of_data, of_attrs, of_omap, 0});
}

}  // namespace

StoreDamage::StoreDamage(CephContext* cct, uint64_t seed, uint64_t sectors_max)
    : m_cct(cct), m_sectors_max(sectors_max), m_env({.seed = seed}) {
  StoreScript script(cct, &m_env, seed);
  ceph_assert(m_env.create_directory(StoreScript::kPath).ok());
  m_wrong = script.run(1);
  if (m_wrong.empty() && script.history().acknowledged + 1 != script.history().states.size()) {
    m_wrong = "the script did not come to its end";
  }
  m_state = script.history().states.back();
  if (m_wrong.empty()) {
    m_wrong = find_owners();
  }
  m_env.restart_trace();
}

std::string StoreDamage::find_owners() {
  const auto store = StoreScript::open_store(m_cct, &m_env);
  if (const int r = store->mount(); r < 0) {
    return fmt::format("mount failed: {}", r);
  }
  const std::regex extent(R"re("slot_bytes":(\d+),"slot_index":(\d+))re");
  for (const auto& [cid, objects] : m_state) {
    auto handle = store->open_collection(cid);
    for (const auto& [oid, object] : objects) {
      JSONFormatter formatter;
      store->dump_onode(handle, oid, "onode", &formatter);
      std::ostringstream text;
      formatter.flush(text);
      const std::string dump = text.str();
      for (std::sregex_iterator at(dump.begin(), dump.end(), extent), end; at != end; ++at) {
        SlotAddress slot;
        while (slot_bytes(slot.size_class) != std::stoull((*at)[1])) {
          ++slot.size_class;
        }
        slot.index = std::stoull((*at)[2]);
        m_owners[slot.packed()].insert(oid);
      }
    }
  }
  m_env.advance(std::chrono::seconds(2));
  store->umount();
  return {};
}

std::string StoreDamage::structure_of(const std::string& path) const {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (path.find("/log/") != std::string::npos) {
    return "log segments";
  }
  for (unsigned size_class = 0; size_class < kSizeClasses; ++size_class) {
    if (name == Container::file_name(size_class)) {
      return "slots";
    }
  }
  return path.find("/containers/") != std::string::npos && name != "reserve" ? "containers' header" : name;
}

StoreDamage::Objects StoreDamage::owners_of(const std::string& path, uint64_t sector) const {
  const std::string name = path.substr(path.rfind('/') + 1);
  for (uint8_t size_class = 0; size_class < kSizeClasses; ++size_class) {
    if (name == Container::file_name(size_class)) {
      const auto found = m_owners.find(SlotAddress{size_class, sector * kSimSector / slot_bytes(size_class)}.packed());
      return found == m_owners.end() ? Objects() : found->second;
    }
  }
  return {};
}

std::string StoreDamage::run() {
  if (!m_wrong.empty()) {
    return m_wrong;
  }
  for (const std::string& path : m_env.files()) {
    if (std::string wrong = damage_file(path); !wrong.empty()) {
      return wrong;
    }
  }
  return {};
}

std::string StoreDamage::damage_file(const std::string& path) {
  const std::string before = read_file(m_env, path);
  const uint64_t sectors = sector_count(before);
  const uint64_t stride = m_sectors_max == 0 ? 1 : (sectors + m_sectors_max - 1) / m_sectors_max;
  DamageTally& tally = m_tallies[structure_of(path)];
  for (uint64_t sector = 0; sector < sectors; sector += std::max<uint64_t>(stride, 1)) {
    ++tally.sectors;
    for (const SectorDamage damage : {SectorDamage::flipped, SectorDamage::zeroed, SectorDamage::exchanged}) {
      if (std::string wrong = look({path, sector, damage}, before, &tally); !wrong.empty()) {
        constexpr const char* kNames[] = {"flipped", "zeroed", "exchanged"};
        return fmt::format("{}, sector {} {}: {}", path, sector, kNames[static_cast<size_t>(damage)], wrong);
      }
    }
  }
  return {};
}

std::string StoreDamage::look(const DamagedSector& at, const std::string& before, DamageTally* tally) {
  const std::string now = damaged(before, at.sector, at.damage);
  if (now == before) {
    return {};
  }
  SimEnv env({.record = false}, m_env.trace().base, m_env.trace().next_inode);
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i] != before[i]) {
      env.flip_bits(at.path, i, static_cast<char>(now[i] ^ before[i]));
    }
  }
  ++tally->damages;
  const auto store = StoreScript::open_store(m_cct, &env);
  if (store->mount() < 0) {
    ++tally->outcomes[DamageTally::refused];
    return {};
  }
  bool listing_failed = false;
  Objects hit;
  std::string wrong = compare(*store, &listing_failed, &hit);
  const bool is_data = structure_of(at.path) == "slots";
  const bool writes = write_something(*store, &env);
  store->umount();
  if (is_data && wrong.empty()) {
    Objects allowed = owners_of(at.path, at.sector);
    if (at.damage == SectorDamage::exchanged) {
      allowed.merge(owners_of(at.path, other_sector(at.sector, sector_count(before))));
    }
    for (const ghobject_t& oid : hit) {
      wrong = allowed.contains(oid) ? wrong : name_of(oid) + " gives errors, but was not hit";
    }
    wrong = listing_failed ? "a listing fails for damaged data" : writes ? wrong : "damaged data refuses new objects";
  }
  const int errors = wrong.empty() ? store->fsck(true) : 0;
  const bool fails = listing_failed || !hit.empty() || !writes;
  if (wrong.empty() && fails && errors == 0) {
    wrong = "reads fail, and fsck finds nothing";
  }
  ++tally->outcomes[fails ? DamageTally::read_error : errors != 0 ? DamageTally::found_by_fsck : DamageTally::right];
  return wrong;
}

std::string StoreDamage::compare(SwimStore& store, bool* listing_failed, Objects* hit) const {
  for (const auto& [cid, objects] : m_state) {
    auto handle = store.open_collection(cid);
    if (!handle) {
      return fmt::format("collection {} is gone", cid.to_str());
    }
    std::vector<ghobject_t> listed;
    ghobject_t next;
    const int r = store.collection_list(handle, ghobject_t(), ghobject_t::get_max(), INT_MAX, &listed, &next);
    *listing_failed |= r == -EIO;
    if (r < 0 && r != -EIO) {
      return fmt::format("the listing fails with {}", r);
    }
    if (r == 0 && listed.size() != objects.size()) {
      return fmt::format("{} objects are listed instead of {}", listed.size(), objects.size());
    }
    for (const auto& [oid, object] : objects) {
      bool same = false;
      const int found = read_and_compare(store, handle, oid, object, &same);
      if (found != 0 && found != -EIO) {
        return fmt::format("{} gives error {}", name_of(oid), found);
      }
      if (!same) {
        return name_of(oid) + " holds wrong data";
      }
      if (found != 0) {
        hit->insert(oid);
      }
    }
  }
  return {};
}

// A new object, committed; false: an error.
bool StoreDamage::write_something(SwimStore& store, SimEnv* env) const {
  const coll_t cid = m_state.begin()->first;
  StepwiseCommits commits(env);
  auto handle = store.open_collection(cid);
  store.set_collection_commit_queue(cid, commits.queue());
  ObjectStore::Transaction txn;
  ceph::bufferlist data;
  data.append(std::string(5000, 'n'));
  txn.write(cid, ghobject_t(hobject_t(object_t("new"), "", CEPH_NOSNAP, 0, 1, "")), 0, data.length(), data);
  bool committed = false;
  txn.register_on_commit(new LambdaContext([&committed](int) { committed = true; }));
  try {
    store.queue_transaction(handle, std::move(txn));
  } catch (int) {
    return false;
  }
  env->run_until_idle();
  return committed;
}

std::string StoreDamage::table() const {
  std::string text = fmt::format("{:<20} {:>8} {:>8} {:>10} {:>14} {:>10} {:>8}\n", "structure", "sectors", "damages",
                                 "no trace", "fsck finds it", "read error", "refused");
  for (const auto& [structure, tally] : m_tallies) {
    text += fmt::format("{:<20} {:>8} {:>8} {:>10} {:>14} {:>10} {:>8}\n", structure, tally.sectors, tally.damages,
                        tally.outcomes[DamageTally::right], tally.outcomes[DamageTally::found_by_fsck],
                        tally.outcomes[DamageTally::read_error], tally.outcomes[DamageTally::refused]);
  }
  return text;
}

}  // namespace swimstore
