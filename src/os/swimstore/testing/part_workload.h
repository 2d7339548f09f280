// SPDX-License-Identifier: LGPL-2.1-or-later
// A seeded history of changes to the omap of one object of the OSD's own collection, made by transactions of several
// placement groups and of that collection, as snapshots make them; and what it comes to.
//
// Every transaction also counts, in an object of the collection that it is queued on: so it can be told afterwards
// which transactions are left.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "os/ObjectStore.h"

class SwimStore;

namespace swimstore {

struct PartStep {
  enum class Kind : uint8_t { set, remove, remove_range, clear, make_anew };
  struct Operation {
    Kind kind = Kind::set;
    std::string key, last, value;
  };

  unsigned by = 0;  // 0: the OSD's own collection; else the group of that cube
  std::vector<Operation> operations;
};

class PartWorkload {
 public:
  static constexpr unsigned kGroups = 4;  // of as many cubes, in a store that has 4 for groups
  using Omap = std::map<std::string, std::string>;

  explicit PartWorkload(uint64_t seed, unsigned keys = 5) : m_random(seed), m_keys(keys) {}

  static coll_t collection(unsigned by);
  static ghobject_t object();              // whose omap it is
  static ghobject_t counter(unsigned by);  // what counts
  // What makes the collection, and what there is in it. The group's collection may exist.
  static ObjectStore::Transaction setup(unsigned by);
  // Handles of all collections, made or opened.
  static std::vector<ObjectStore::CollectionHandle> open(SwimStore& store);

  PartStep next();
  // The number is what it counts.
  static ObjectStore::Transaction transaction(const PartStep& step, uint64_t number);
  static void apply(const PartStep& step, Omap* omap);

  // The number that the last of this collection's transactions which is left has counted; 0: none is.
  static uint64_t count(SwimStore& store, unsigned by, ObjectStore::CollectionHandle& collection);
  // By each way to read it; *wrong: one sentence, when they do not agree.
  static Omap read(SwimStore& store, ObjectStore::CollectionHandle& own, std::string* wrong);

 private:
  std::string any_key() { return "key_" + std::to_string(m_random() % m_keys); }

  std::mt19937_64 m_random;
  const unsigned m_keys;
};

std::string to_string(const PartWorkload::Omap& omap);

}  // namespace swimstore
