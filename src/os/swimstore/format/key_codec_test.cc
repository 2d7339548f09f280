// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/key_codec.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace swimstore {
namespace {

// Texts that differ where an encoding may go wrong: prefixes, the escaped bytes, the highest byte.
const std::vector<std::string> kTexts = {
    "",         "a", "aa", "ab", std::string("a\0", 2), std::string("\0", 1), "\x01", "a\x01", "a\x02", "\xff",
    "\xff\xff", "=", "<",  ">",  std::string("\0\0", 2)};

template <typename Random>
const auto& pick(const auto& values, Random& random) {
  return values[random() % values.size()];
}

ghobject_t random_object(std::mt19937_64& random) {
  const std::vector<int64_t> pools = {INT64_MIN, -3, -2, -1, 0, 1, 255, 256, INT64_MAX - 1};
  const std::vector<uint32_t> hashes = {0, 1, 2, 0x80000000, 0xffffffff, 0x00ff00ff};
  const std::vector<uint64_t> snaps = {0, 1, 255, 256, CEPH_SNAPDIR, CEPH_NOSNAP};
  const std::vector<uint64_t> generations = {0, 1, ghobject_t::NO_GEN - 1, ghobject_t::NO_GEN};
  const std::vector<int8_t> shards = {-1, 0, 1, 127};
  const hobject_t hobj(object_t(pick(kTexts, random)), pick(kTexts, random), pick(snaps, random), pick(hashes, random),
                       pick(pools, random), pick(kTexts, random));
  ghobject_t oid(hobj, pick(generations, random), shard_id_t(pick(shards, random)));
  switch (random() % 50) {
    case 0:
      return ghobject_t::get_max();
    case 1:
      oid.hobj = hobject_t::get_max();
      return oid;
    default:
      return oid;
  }
}

TEST(KeyCodec, ObjectKeysSortAsObjectsDo) {
  std::mt19937_64 random(1);
  std::vector<ghobject_t> objects = {ghobject_t(), ghobject_t::get_max()};
  for (int i = 0; i < 1500; ++i) {
    objects.push_back(random_object(random));
  }
  std::vector<std::string> keys;
  for (const ghobject_t& oid : objects) {
    keys.push_back(object_key(oid));
  }
  for (size_t i = 0; i < objects.size(); ++i) {
    for (size_t j = 0; j < objects.size(); ++j) {
      ASSERT_EQ(objects[i] < objects[j], keys[i] < keys[j]) << objects[i] << " and " << objects[j];
      ASSERT_EQ(objects[i] == objects[j], keys[i] == keys[j]) << objects[i] << " and " << objects[j];
    }
  }
}

TEST(KeyCodec, ObjectKeysDecodeToWhatTheyEncode) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000; ++i) {
    const ghobject_t oid = random_object(random);
    ghobject_t decoded;
    ASSERT_TRUE(decode_object_key(object_key(oid), &decoded)) << oid;
    ASSERT_EQ(oid, decoded);
    ASSERT_EQ(oid.hobj.get_key(), decoded.hobj.get_key());
  }
}

TEST(KeyCodec, NoPrefixOfAnObjectKeyIsOne) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    const std::string key = object_key(random_object(random));
    ghobject_t decoded;
    for (size_t length = 0; length < key.size(); ++length) {
      ASSERT_FALSE(decode_object_key(key.substr(0, length), &decoded)) << length;
    }
    ASSERT_FALSE(decode_object_key(key + "x", &decoded));
  }
}

TEST(KeyCodec, MutatedObjectKeysDecodeToAnotherObjectOrToNone) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 20000; ++i) {
    std::string key = object_key(random_object(random));
    key[random() % key.size()] ^= static_cast<char>(1 << random() % 8);
    ghobject_t decoded;
    if (decode_object_key(key, &decoded)) {
      ASSERT_EQ(object_key(decoded), key);
    }
  }
}

TEST(KeyCodec, GoldenObjectKey) {
  const hobject_t hobj(object_t("rbd"), "", CEPH_NOSNAP, 0x12345678, 3, "ns");
  const std::string expected(
      "O\x00\x7f"                          // object, not max, no shard (-1)
      "\x80\x00\x00\x00\x00\x00\x00\x03"   // pool 3
      "\x1e\x6a\x2c\x48"                   // hash, bits reversed
      "ns\x00rbd\x00="                     // namespace, effective key, the name is the same
      "\xff\xff\xff\xff\xff\xff\xff\xfe"   // no snap
      "\xff\xff\xff\xff\xff\xff\xff\xff",  // no generation
      39);
  EXPECT_EQ(object_key(ghobject_t(hobj)), expected);
}

TEST(KeyCodec, KeysUnderANidStayWithinItsRange) {
  for (const uint64_t nid : {uint64_t{1}, uint64_t{255}, uint64_t{256}, UINT64_MAX - 1}) {
    for (const std::string& text : kTexts) {
      EXPECT_LE(omap_key(nid, ""), omap_key(nid, text));
      EXPECT_LT(omap_key(nid, text), omap_range_end(nid));
      uint64_t found_nid = 0;
      std::string_view user_key;
      const std::string key = omap_key(nid, text);
      ASSERT_TRUE(decode_omap_key(key, &found_nid, &user_key));
      EXPECT_EQ(found_nid, nid);
      EXPECT_EQ(user_key, text);
    }
    EXPECT_LT(extent_key(nid, UINT32_MAX), extent_range_end(nid));
    EXPECT_LT(extent_key(nid, 255), extent_key(nid, 256));
  }
}

TEST(KeyCodec, CollectionKeysKeepTheirNames) {
  for (const coll_t& cid : {coll_t(), coll_t(spg_t(pg_t(0x1f, 7), shard_id_t(2))), coll_t(spg_t(pg_t(3, 9)))}) {
    coll_t decoded;
    ASSERT_TRUE(decode_collection_key(collection_key(cid), &decoded));
    EXPECT_EQ(decoded, cid);
  }
  coll_t decoded;
  EXPECT_FALSE(decode_collection_key("Cno such thing", &decoded));
  EXPECT_FALSE(decode_collection_key("C01.0_head", &decoded));  // Ceph's own parser aborts: found by the fuzz corpus
  EXPECT_FALSE(decode_collection_key("C1.0_TEMP_TEMP", &decoded));
  EXPECT_FALSE(decode_collection_key("", &decoded));
}

TEST(KeyCodec, SlotReferencesKeepSlotAndGroup) {
  const SlotAddress slot{10, 0x00123456789abcde};
  SlotAddress decoded;
  uint32_t group = 0;
  ASSERT_TRUE(decode_slot_reference_key(slot_reference_key(slot, 15), &decoded, &group));
  EXPECT_EQ(decoded, slot);
  EXPECT_EQ(group, 15u);
  EXPECT_FALSE(decode_slot_reference_key(slot_reference_key(slot, 16), &decoded, &group));     // past its end
  EXPECT_FALSE(decode_slot_reference_key(slot_reference_key({11, 1}, 0), &decoded, &group));   // no such class
  EXPECT_FALSE(decode_slot_reference_key(slot_reference_key({8, 1, 3}, 0), &decoded, &group));  // of no container
}

}  // namespace
TEST(KeyCodecTest, AQuarantinedKeyHoldsTheKeyItHad) {
  const std::string key = omap_key(7, "user");
  uint32_t number = 0;
  std::string_view found;
  const std::string quarantined = quarantined_key(3, key);
  ASSERT_TRUE(decode_quarantined_key(quarantined, &number, &found));
  EXPECT_EQ(3u, number);
  EXPECT_EQ(key, found);
  EXPECT_EQ(std::string("L\0\0\0\3M", 6), quarantined.substr(0, 6));
  EXPECT_FALSE(decode_quarantined_key(std::string_view("L\0\0\0\3", 5), &number, &found));
  EXPECT_FALSE(decode_quarantined_key(key, &number, &found));
}

}  // namespace swimstore
