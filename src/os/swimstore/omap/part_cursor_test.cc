// SPDX-License-Identifier: LGPL-2.1-or-later
// The merge of an omap's parts, over databases in a simulated host.

#include "swimstore/omap/part_cursor.h"

#include <map>
#include <optional>
#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "swimstore/format/key_codec.h"
#include "vtkv/db.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {
namespace {

constexpr uint64_t kNid = 42;
constexpr unsigned kParts = 3;

class PartCursorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    vtkv::Options options;
    options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
    for (unsigned part = 0; part < kParts; ++part) {
      const std::string path = "/" + std::to_string(part);
      ASSERT_TRUE(vtkv::DB::create(&m_env, path, options).ok());
      ASSERT_TRUE(vtkv::DB::open(&m_env, path, options, &m_parts[part]).ok());
    }
    put(0, omap_row_key(kNid - 1, "zz"), row(OmapRow::Kind::value, 1, "of a neighbour"));
    put(0, omap_row_key(kNid + 1, ""), row(OmapRow::Kind::value, 1, "of a neighbour"));
  }

  static std::string row(OmapRow::Kind kind, uint64_t write_id, std::string_view value) {
    std::string bytes;
    encode_omap_row({kind, write_id, value}, &bytes);
    return bytes;
  }
  void put(unsigned part, const std::string& key, const std::string& value) {
    vtkv::WriteBatch batch;
    batch.put(key, value);
    ASSERT_TRUE(m_parts[part]->write(std::move(batch)).ok());
  }
  void value(unsigned part, const std::string& key, uint64_t write_id, std::string_view value) {
    put(part, omap_row_key(kNid, key), row(OmapRow::Kind::value, write_id, value));
  }
  void tombstone(unsigned part, const std::string& key, uint64_t write_id) {
    put(part, omap_row_key(kNid, key), row(OmapRow::Kind::tombstone, write_id, {}));
  }

  std::unique_ptr<PartCursor> cursor(uint64_t floor = 0) {
    std::vector<std::unique_ptr<vtkv::Iterator>> parts;
    for (const auto& part : m_parts) {
      parts.push_back(part->new_iterator(omap_row_key(kNid, ""), omap_row_range_end(kNid)));
    }
    return std::make_unique<PartCursor>(kNid, std::move(parts), floor, vtkv::Status());
  }
  // "a=1 b=2"
  static std::string rest(PartCursor& at) {
    std::string text;
    for (; at.valid(); at.next()) {
      text += (text.empty() ? "" : " ") + std::string(at.key()) + "=" + std::string(at.value());
    }
    return text;
  }
  std::string all(uint64_t floor = 0) {
    const auto at = cursor(floor);
    at->seek("");
    return rest(*at);
  }

  vtkv::SimEnv m_env{{.record = false}};
  std::unique_ptr<vtkv::DB> m_parts[kParts];
};

TEST_F(PartCursorTest, KeysOfAllPartsComeInOrder) {
  EXPECT_EQ(all(), "");
  value(2, "a", 3, "1");
  value(0, "b", 2, "2");
  value(1, "c", 4, "");
  value(0, "", 5, "empty");
  EXPECT_EQ(all(), "=empty a=1 b=2 c=");
}

TEST_F(PartCursorTest, TheRowThatWasWrittenLastCounts) {
  value(0, "a", 9, "new");
  value(1, "a", 3, "old");
  value(1, "b", 4, "old");
  value(2, "b", 5, "new");
  EXPECT_EQ(all(), "a=new b=new");
}

TEST_F(PartCursorTest, ATombstoneHidesOlderRowsAndNoNewerOne) {
  value(0, "a", 3, "gone");
  tombstone(1, "a", 4);
  value(1, "b", 8, "set again");
  tombstone(0, "b", 7);
  value(2, "b", 6, "gone");
  tombstone(2, "c", 5);
  EXPECT_EQ(all(), "b=set again");
}

TEST_F(PartCursorTest, RowsBelowTheFloorDoNotCount) {
  value(0, "a", 3, "cleared");
  value(1, "b", 5, "with the clearing");
  value(2, "c", 6, "later");
  value(0, "d", 7, "later");
  tombstone(1, "d", 4);
  EXPECT_EQ(all(5), "b=with the clearing c=later d=later");
}

TEST_F(PartCursorTest, ASeekFindsTheKeyOrTheNextOne) {
  value(0, "b", 1, "1");
  value(1, "d", 2, "2");
  tombstone(2, "c", 3);
  value(1, "c", 2, "gone");
  const auto at = cursor();
  EXPECT_FALSE(at->valid());
  const std::pair<const char*, const char*> kSeeks[] = {
      {"a", "b=1 d=2"}, {"b", "b=1 d=2"}, {"ba", "d=2"}, {"c", "d=2"}, {"d", "d=2"}, {"da", ""}, {"", "b=1 d=2"}};
  for (const auto& [key, expected] : kSeeks) {
    at->seek(key);
    EXPECT_EQ(rest(*at), expected) << key;
  }
}

TEST_F(PartCursorTest, ItSeesWhatThereWasWhenItWasMade) {
  value(0, "a", 1, "then");
  const auto at = cursor();
  value(1, "a", 2, "now");
  value(1, "b", 3, "now");
  at->seek("");
  EXPECT_EQ(rest(*at), "a=then");
}

TEST_F(PartCursorTest, ADamagedRowIsAnErrorAndNoEnd) {
  value(0, "a", 1, "1");
  put(1, omap_row_key(kNid, "b"), "damaged");
  value(0, "b", 2, "2");
  const auto at = cursor();
  at->seek("");
  EXPECT_EQ(rest(*at), "a=1");
  EXPECT_TRUE(at->status().is_corruption());
  at->seek("c");
  EXPECT_FALSE(at->valid());
}

// Any rows, and any walk through them.
TEST_F(PartCursorTest, GivesWhatAModelGives) {
  std::mt19937_64 random(7);
  const auto any_key = [&random] { return std::string(1, static_cast<char>('a' + random() % 12)); };
  std::map<std::string, std::optional<std::string>> newest;
  constexpr uint64_t kFloor = 60;
  for (uint64_t write_id = 1; write_id <= 200; ++write_id) {
    const std::string key = any_key();
    const unsigned part = random() % kParts;
    const bool removes = random() % 3 == 0;
    removes ? tombstone(part, key, write_id) : value(part, key, write_id, std::to_string(write_id));
    newest[key] = removes || write_id < kFloor ? std::nullopt : std::optional(std::to_string(write_id));
  }
  std::map<std::string, std::string> model;
  for (const auto& [key, value] : newest) {
    if (value) {
      model[key] = *value;
    }
  }
  const auto at = cursor(kFloor);
  for (int walk = 0; walk < 300; ++walk) {
    const std::string key = any_key();
    auto expected = model.lower_bound(key);
    at->seek(key);
    for (uint64_t steps = random() % 4; steps > 0 && at->valid() && expected != model.end(); --steps) {
      at->next();
      ++expected;
    }
    ASSERT_EQ(at->valid(), expected != model.end());
    if (at->valid()) {
      ASSERT_EQ(at->key(), expected->first);
      ASSERT_EQ(at->value(), expected->second);
    }
  }
}

}  // namespace
}  // namespace swimstore
