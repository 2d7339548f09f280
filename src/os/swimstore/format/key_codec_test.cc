// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/key_codec.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "vtkv/testing/format_page.h"

namespace swimstore {
namespace {

using vtkv::FormatCheck;
using vtkv::PageValue;

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

bool decode_object(const std::string& key, ghobject_t* oid) { return decode_object_key(key, oid); }

// The greatest hobject_t has no pool of its own; this is what stands in its place.
int64_t pool_of(const ghobject_t& oid) { return oid.hobj.is_max() ? INT64_MAX : oid.hobj.pool; }

TEST(KeyCodec, ObjectNameIsAsOnThePage) {
  FormatCheck<ghobject_t> check("Object name", object_key, decode_object);
  const hobject_t hobj(object_t("rbd"), "l\1c", 5, 0x12345678, 3, "ns");
  ghobject_t of_greatest;
  of_greatest.hobj = hobject_t::get_max();
  check.example("object name with a locator", ghobject_t(hobj, 7, shard_id_t(2)));
  check.example("object name", ghobject_t(hobject_t(object_t("a"), "", CEPH_NOSNAP, 1, 1, "")));
  check.example("greatest hobject_t", of_greatest);
  check.example("greatest object name", ghobject_t::get_max());
  check.constant("prefix", std::string(1, key_prefix::object));
  check.derived("greatest", [](const ghobject_t& oid) { return PageValue(oid.max ? 1 : 0); });
  check.field("shard", -1, [](ghobject_t& it) -> auto& { return it.shard_id.id; });
  check.field(
      "pool", -0x1122334455667788, [](ghobject_t& it) { return PageValue(pool_of(it)); },
      [](ghobject_t& it, const PageValue& value) { it.hobj.pool = static_cast<int64_t>(*value.number); });
  check.field(
      "hash", 0x22334455, [](ghobject_t& it) { return PageValue(it.hobj.get_hash()); },
      [](ghobject_t& it, const PageValue& value) { it.hobj.set_hash(static_cast<uint32_t>(*value.number)); });
  check.field("namespace", std::string("n\0\1s", 4), [](ghobject_t& it) -> auto& { return it.hobj.nspace; });
  check.field(
      "effective key", "zz", [](ghobject_t& it) { return PageValue(it.hobj.get_effective_key()); },
      [](ghobject_t& it, const PageValue& value) { it.hobj.set_key(*value.bytes); });
  check.derived("relation", [](const ghobject_t& it) {
    const int order = it.hobj.oid.name.compare(it.hobj.get_effective_key());
    return PageValue(order == 0 ? "=" : order < 0 ? "<" : ">");
  });
  check.names(
      "relation",
      {{"the name is the effective key", "="}, {"the name sorts before it", "<"}, {"the name sorts behind it", ">"}});
  check.field("name", "a", [](ghobject_t& it) -> auto& { return it.hobj.oid.name; });
  check.field("snap", 0x1122334455667788, [](ghobject_t& it) -> auto& { return it.hobj.snap.val; });
  check.field("generation", 0x1122334455667788, &ghobject_t::generation);
  EXPECT_EQ(check.findings(), "");
}

// What the other keys are made of; each has no use for some of it.
struct KeyFields {
  uint64_t nid = 0;
  uint32_t number = 0;
  std::string rest;
  SlotAddress slot;
};

TEST(KeyCodec, KeyOfACollectionIsAsOnThePage) {
  FormatCheck<coll_t> check("Key of a collection", collection_key,
                            [](const std::string& key, coll_t* cid) { return decode_collection_key(key, cid); });
  check.example("key of a collection", coll_t(spg_t(pg_t(0x1f, 2))));
  check.constant("prefix", std::string(1, key_prefix::collection));
  check.part("name", "7.3s2_head", [](coll_t& it) { it = coll_t(spg_t(pg_t(3, 7), shard_id_t(2))); });
  EXPECT_EQ(check.findings(), "");
}

TEST(KeyCodec, KeyOfAnUnownedRangeIsAsOnThePage) {
  FormatCheck<coll_t> check("Key of an unowned range", unowned_range_key,
                            [](const std::string& key, coll_t* cid) { return decode_unowned_range_key(key, cid); });
  check.example("key of an unowned range", coll_t(spg_t(pg_t(0x1f, 2))));
  check.constant("prefix", std::string(1, key_prefix::unowned));
  check.part("name", "7.3s2_head", [](coll_t& it) { it = coll_t(spg_t(pg_t(3, 7), shard_id_t(2))); });
  EXPECT_EQ(check.findings(), "");
}

TEST(KeyCodec, KeyOfAWitnessIsAsOnThePage) {
  struct Fields {
    coll_t cid;
    std::string item;
  };
  FormatCheck<Fields> check(
      "Key of a witness", [](const Fields& it) { return witness_key(it.cid, it.item); },
      [](const std::string& key, Fields* it) {
        std::string_view item;
        const bool is_one = decode_witness_key(key, &it->cid, &item);
        it->item = item;
        return is_one;
      });
  check.example("key of a witness", {.cid = coll_t(spg_t(pg_t(0x1f, 2))), .item = "_info"});
  check.constant("prefix", std::string(1, key_prefix::witness));
  check.part("name", "7.3s2_head", [](Fields& it) { it.cid = coll_t(spg_t(pg_t(3, 7), shard_id_t(2))); });
  check.constant("end", uint8_t{0});
  check.part("item", "", [](Fields& it) { it.item = ""; });
  EXPECT_EQ(check.findings(), "");
}

TEST(KeyCodec, KeyOfAnExtentShardIsAsOnThePage) {
  FormatCheck<KeyFields> check(
      "Key of an extent shard", [](const KeyFields& it) { return extent_key(it.nid, it.number); },
      [](const std::string& key, KeyFields* it) { return decode_extent_key(key, &it->nid, &it->number); });
  check.example("key of an extent shard", {.nid = 0x0102, .number = 3});
  check.constant("prefix", std::string(1, key_prefix::extent));
  check.field("nid", 0x1122334455667788, &KeyFields::nid);
  check.field("shard number", 0x11223344, &KeyFields::number);
  EXPECT_EQ(check.findings(), "");
}

TEST(KeyCodec, KeyOfAnOmapHeaderIsAsOnThePage) {
  FormatCheck<KeyFields> check(
      "Key of an omap header", [](const KeyFields& it) { return omap_header_key(it.nid); },
      [](const std::string& key, KeyFields* it) { return decode_omap_header_key(key, &it->nid); });
  check.example("key of an omap header", {.nid = 0x0102});
  check.constant("prefix", std::string(1, key_prefix::omap_header));
  check.field("nid", 0x1122334455667788, &KeyFields::nid);
  EXPECT_EQ(check.findings(), "");
}

// Of a user's key below an object's id.
std::string check_user_key(const char* section, const char* example, char prefix,
                           std::string (*encode)(uint64_t, std::string_view),
                           bool (*decode)(std::string_view, uint64_t*, std::string_view*)) {
  FormatCheck<KeyFields> check(
      section, [encode](const KeyFields& it) { return encode(it.nid, it.rest); },
      [decode](const std::string& key, KeyFields* it) {
        std::string_view rest;
        const bool good = decode(key, &it->nid, &rest);
        it->rest = rest;
        return good;
      });
  check.example(example, {.nid = 0x0102, .rest = "user"});
  check.constant("prefix", std::string(1, prefix));
  check.field("nid", 0x1122334455667788, &KeyFields::nid);
  check.field("key", std::string("\0\1", 2), &KeyFields::rest);
  return check.findings();
}

TEST(KeyCodec, KeyOfAnOmapValueIsAsOnThePage) {
  EXPECT_EQ(check_user_key("Key of an omap value", "key of an omap value", key_prefix::omap, omap_key, decode_omap_key),
            "");
}

TEST(KeyCodec, KeyOfARowIsAsOnThePage) {
  EXPECT_EQ(check_user_key("Key of a row", "key of a row", key_prefix::omap_row, omap_row_key, decode_omap_row_key),
            "");
}

TEST(KeyCodec, KeyOfATombstoneIsAsOnThePage) {
  EXPECT_EQ(check_user_key("Key of a tombstone", "key of a tombstone", key_prefix::omap_tombstone, omap_tombstone_key,
                           decode_omap_tombstone_key),
            "");
}

TEST(KeyCodec, KeyOfAFloorIsAsOnThePage) {
  FormatCheck<KeyFields> check(
      "Key of a floor", [](const KeyFields& it) { return omap_floor_key(it.nid); },
      [](const std::string& key, KeyFields* it) { return decode_omap_floor_key(key, &it->nid); });
  check.example("key of a floor", {.nid = 0x0102});
  check.constant("prefix", std::string(1, key_prefix::omap_floor));
  check.field("nid", 0x1122334455667788, &KeyFields::nid);
  EXPECT_EQ(check.findings(), "");
}

TEST(KeyCodec, KeyOfAQuarantinedEntryIsAsOnThePage) {
  FormatCheck<KeyFields> check(
      "Key of a quarantined entry", [](const KeyFields& it) { return quarantined_key(it.number, it.rest); },
      [](const std::string& key, KeyFields* it) {
        std::string_view rest;
        const bool good = decode_quarantined_key(key, &it->number, &rest);
        it->rest = rest;
        return good;
      });
  check.example("key of a quarantined entry", {.number = 0x0102, .rest = "Cx"});
  check.constant("prefix", std::string(1, key_prefix::quarantined));
  check.field("number", 0x11223344, &KeyFields::number);
  check.field("key", omap_key(7, "user"), &KeyFields::rest);
  EXPECT_EQ(check.findings(), "");
}

TEST(KeyCodec, KeyOfSlotReferencesIsAsOnThePage) {
  FormatCheck<KeyFields> check(
      "Key of slot references", [](const KeyFields& it) { return slot_reference_key(it.slot, it.number); },
      [](const std::string& key, KeyFields* it) { return decode_slot_reference_key(key, &it->slot, &it->number); });
  check.example("key of slot references", {.number = 1, .slot = {8, 0x0102, 2}});
  check.constant("prefix", std::string(1, key_prefix::slot_reference));
  check.field("levels split", 1, [](KeyFields& it) -> auto& { return it.slot.split_levels; });
  check.field("size class", 7, [](KeyFields& it) -> auto& { return it.slot.size_class; });
  check.field("slot index", 0x33445566778899, [](KeyFields& it) -> auto& { return it.slot.index; });
  check.field("group", 3, &KeyFields::number);
  EXPECT_EQ(check.findings(), "");
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
      EXPECT_LE(omap_row_key(nid, ""), omap_row_key(nid, text));
      EXPECT_LT(omap_row_key(nid, text), omap_row_range_end(nid));
      EXPECT_EQ(omap_row_key(nid, text).size(), kOmapPrefixBytes + text.size());
      EXPECT_LT(omap_tombstone_key(nid, text), omap_tombstone_range_end(nid));
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
