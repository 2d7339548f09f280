// Checks that everything the store keeps agrees with everything else.
//
//   collections  every record can be read; no object belongs to two
//   objects      every key and record can be read; each lies in a collection; object ids are unique
//   extents      lie within the object, in slots that are owned, in the blocks that were written there
//   slots        every owned slot is referred to, every block without the shared flag exactly once, and
//                the reference count in the tree equals the references found
//   omap         every header and key belongs to an object that says it has omap
//   usage        the pools' sums equal what was counted
//   deep         every block of data is read and its checksum verified; so is every block of log and tree
//
// REQUIRES: nothing is queued while it runs. Findings go to the log, one sentence each. Reads only.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "swimstore/fsck/slot_census.h"
#include "swimstore/store/collection_list.h"
#include "swimstore/store/object_reader.h"
#include "swimstore/store/store_context.h"

namespace swimstore {

struct FsckOptions {
  bool deep = false;
};

class Fsck {
 public:
  Fsck(StoreContext& store, ObjectReader& reader, FsckOptions options)
      : m_store(store), m_reader(reader), m_options(options) {}

  // The number of errors found.
  int run();
  const std::vector<std::string>& findings() const { return m_findings; }

 private:
  struct Object {
    std::string key;
    uint64_t size = 0;
    uint8_t flags = 0;
    int64_t pool = 0;
  };
  using Objects = std::unordered_map<uint64_t, Object>;  // by nid

  void found(std::string sentence);
  template <typename Visit>
  void for_each(std::string_view lower, std::string_view upper, const char* what, const Visit& visit);

  void check_collections();
  void check_objects();
  void check_object(const std::string& key, std::string_view value);
  void check_extents();
  void check_chunk(const Object& object, uint32_t number, const ExtentChunk& chunk);
  void check_omap(char prefix);
  void check_slots();
  void check_usage();
  void check_data();
  void check_object_data(const Object& object);
  void check_database();
  bool lies_in_a_collection(const ghobject_t& oid) const;

  StoreContext& m_store;
  ObjectReader& m_reader;
  const FsckOptions m_options;
  std::vector<std::string> m_findings;
  size_t m_errors = 0;
  std::vector<ObjectRange> m_ranges;  // of all collections, ascending
  Objects m_objects;
  SlotCensus m_slots;
  std::map<int64_t, PoolUsage> m_usage;
};

// How a sentence names an object; bytes that are no object key are given in hex.
std::string describe_object_key(std::string_view key);

}  // namespace swimstore
