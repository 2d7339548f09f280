// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/isolation/collection_claims.h"

#include <algorithm>

#include "swimstore/format/collection_record.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/object/collection_list.h"

namespace swimstore {

std::vector<KeyRange> object_key_ranges(const coll_t& cid, uint32_t bits) {
  std::vector<KeyRange> ranges;
  for (const ObjectRange& range : object_ranges(cid, bits)) {
    ranges.emplace_back(object_key(range.begin), object_key(range.end));
  }
  return ranges;
}

namespace {

std::vector<KeyRange> without_one(const std::vector<KeyRange>& ranges, const KeyRange& taken) {
  std::vector<KeyRange> left;
  const auto add = [&left](const std::string& first, const std::string& end) {
    if (first < end) {
      left.emplace_back(first, end);
    }
  };
  for (const auto& [first, end] : ranges) {
    add(first, std::min(end, taken.first));
    add(std::max(first, taken.second), end);
  }
  return left;
}

}  // namespace

std::vector<KeyRange> without(std::vector<KeyRange> ranges, const std::vector<KeyRange>& taken) {
  for (const KeyRange& range : taken) {
    ranges = without_one(ranges, range);
  }
  return ranges;
}

std::vector<KeyRange> CollectionClaims::of(uint32_t cube) const {
  std::vector<KeyRange> own;
  for (const Claim& claim : m_claims) {
    if (claim.cube == cube) {
      own.push_back(claim.keys);
    }
  }
  return own;
}

void CollectionClaims::read(vtkv::DB& database, uint32_t cube) {
  const auto it = database.new_iterator(std::string(1, key_prefix::collection),
                                        std::string(1, static_cast<char>(key_prefix::collection + 1)));
  for (it->seek_to_first(); it->valid(); it->next()) {
    coll_t cid;
    CollectionRecord record;
    if (decode_collection_key(it->key(), &cid) && decode_collection(it->value(), &record)) {
      for (KeyRange& keys : object_key_ranges(cid, record.bits)) {
        m_claims.push_back({std::move(keys), cube, record.generation, cid.to_str()});
      }
    }
  }
}

std::vector<CollectionClaims::Claim> CollectionClaims::against(uint32_t cube) const {
  std::vector<Claim> against;
  for (const Claim& other : m_claims) {
    if (other.cube == cube) {
      continue;
    }
    std::vector<KeyRange> parts{other.keys};
    for (const Claim& own : m_claims) {
      if (own.cube == cube && own.generation >= other.generation) {
        parts = without_one(parts, own.keys);
      }
    }
    for (KeyRange& keys : parts) {
      against.push_back({std::move(keys), other.cube, other.generation, other.collection});
    }
  }
  return against;
}

}  // namespace swimstore
