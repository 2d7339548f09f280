// SPDX-License-Identifier: LGPL-2.1-or-later
// Damages a small store, one sector of one file at a time, and looks at what becomes of it.
//
// Allowed: right data; an error of an object whose data lay there, or, when it was metadata, of any of the cube; a
// store that is refused with a reason. Never: wrong data, an abort, an error of an object that was not hit, an error
// that a deep fsck does not find. (The sectors of free space are looked at as well.)
//
// Not thread-safe.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "swimstore/format/size_class.h"
#include "swimstore/testing/store_script.h"

namespace swimstore {

enum class SectorDamage { flipped, zeroed, exchanged };

struct DamageTally {
  // Of the damages: no trace; right data, and fsck finds it; an error of some reads (fsck finds it, too); refused.
  enum Outcome : size_t { right, found_by_fsck, read_error, refused, kOutcomes };
  uint64_t sectors = 0, damages = 0;
  std::array<uint64_t, kOutcomes> outcomes{};
};

class StoreDamage {
 public:
  // Makes the store. `sectors_max`: at most so many, evenly spread, of each file; 0: all.
  StoreDamage(CephContext* cct, uint64_t seed, uint64_t sectors_max);

  // Goes through all files; "" or the first outcome that is not allowed.
  std::string run();
  const std::map<std::string, DamageTally>& tallies() const { return m_tallies; }  // by structure
  std::string table() const;

 private:
  using Objects = std::set<ghobject_t>;
  struct DamagedSector {
    std::string path;
    uint64_t sector = 0;
    SectorDamage damage = SectorDamage::flipped;
  };

  std::string find_owners();
  std::string structure_of(const std::string& path) const;
  std::string damage_file(const std::string& path);
  std::string look(const DamagedSector& at, const std::string& before, DamageTally* tally);
  // Reads everything; *hit: the objects that gave errors.
  std::string compare(SwimStore& store, bool* listing_failed, Objects* hit) const;
  Objects owners_of(const std::string& path, uint64_t sector) const;
  bool write_something(SwimStore& store, vtkv::SimEnv* env) const;

  CephContext* const m_cct;
  const uint64_t m_sectors_max;
  vtkv::SimEnv m_env;
  std::string m_wrong;  // of the making
  ModelState m_state;
  std::map<uint64_t, Objects> m_owners;  // by packed slot address
  std::map<std::string, DamageTally> m_tallies;
};

}  // namespace swimstore
