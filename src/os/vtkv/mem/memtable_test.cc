// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/mem/memtable.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <random>
#include <thread>

#include "vtkv/mem/memtable_inserter.h"

namespace vtkv {
namespace {

std::string read(const MemTable& table, std::string_view key, SequenceNumber at_most) {
  std::string value;
  switch (table.get(key, at_most, &value)) {
    case Lookup::absent:
      return "(absent)";
    case Lookup::removed:
      return "(removed)";
    case Lookup::pointer:
      return "(pointer)";
    case Lookup::found:
      break;
  }
  return value;
}

TEST(MemTable, StartsEmpty) {
  MemTable table;
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.last_sequence(), 0u);
  EXPECT_EQ(read(table, "a", 9), "(absent)");
  auto iterator = table.new_iterator();
  iterator->seek_to_first();
  EXPECT_FALSE(iterator->valid());
  iterator->seek_to_last();
  EXPECT_FALSE(iterator->valid());
}

TEST(MemTable, EverySequenceSeesItsOwnPast) {
  MemTable table;
  table.put(1, "a", "one");
  table.put(3, "a", "three");
  table.remove(5, "a");
  table.put(7, "a", "seven");
  EXPECT_EQ(read(table, "a", 0), "(absent)");
  EXPECT_EQ(read(table, "a", 2), "one");
  EXPECT_EQ(read(table, "a", 3), "three");
  EXPECT_EQ(read(table, "a", 6), "(removed)");
  EXPECT_EQ(read(table, "a", 9), "seven");
  EXPECT_EQ(table.last_sequence(), 7u);
}

TEST(MemTable, ARangeTombstoneHidesOlderEntriesOnly) {
  MemTable table;
  table.put(1, "b", "old");
  table.remove_range(2, "a", "c");
  table.put(3, "b", "new");
  EXPECT_EQ(read(table, "b", 1), "old");
  EXPECT_EQ(read(table, "b", 2), "(removed)");
  EXPECT_EQ(read(table, "b", 3), "new");
  EXPECT_EQ(read(table, "a", 3), "(removed)");
  EXPECT_EQ(read(table, "c", 3), "(absent)");
}

TEST(MemTable, OfTwoEntriesOfOneSequenceTheLaterInsertedWins) {
  MemTable table;
  table.put(4, "k", "first");
  table.put(4, "k", "second");
  EXPECT_EQ(read(table, "k", 4), "second");
  auto iterator = table.new_iterator();
  iterator->seek_to_last();
  EXPECT_EQ(iterator->entry().value, "first");
  iterator->previous();
  EXPECT_EQ(iterator->entry().value, "second");
  iterator->previous();
  EXPECT_FALSE(iterator->valid());
}

TEST(MemTable, TakesEmptyAndBigKeysAndValues) {
  MemTable table;
  const std::string big(300000, 'x');
  table.put(1, "", "empty key");
  table.put(2, big, "");
  table.put(3, "v", big);
  EXPECT_EQ(read(table, "", 9), "empty key");
  EXPECT_EQ(read(table, big, 9), "");
  EXPECT_EQ(read(table, "v", 9), big);
  EXPECT_GT(table.memory_bytes(), 600000u);
}

TEST(MemTable, IteratesInOrderBothWays) {
  MemTable table;
  std::multimap<std::pair<std::string, int64_t>, int> model;
  std::mt19937_64 random(7);
  for (SequenceNumber s = 1; s <= 2000; ++s) {
    const std::string key = std::to_string(random() % 500);
    table.put(s, key, "");
    model.emplace(std::make_pair(key, -static_cast<int64_t>(s)), 0);
  }
  auto iterator = table.new_iterator();
  iterator->seek_to_first();
  for (const auto& [k, unused] : model) {
    ASSERT_TRUE(iterator->valid());
    EXPECT_EQ(iterator->entry().key, k.first);
    EXPECT_EQ(iterator->entry().sequence, static_cast<SequenceNumber>(-k.second));
    iterator->next();
  }
  EXPECT_FALSE(iterator->valid());
  iterator->seek_to_last();
  for (auto it = model.rbegin(); it != model.rend(); ++it) {
    ASSERT_TRUE(iterator->valid());
    EXPECT_EQ(iterator->entry().key, it->first.first);
    iterator->previous();
  }
  EXPECT_FALSE(iterator->valid());
  for (int i = 0; i < 500; ++i) {
    const std::string key = std::to_string(random() % 600);
    const SequenceNumber at_most = random() % 2100;
    iterator->seek(key, at_most);
    const auto expected = model.lower_bound({key, -static_cast<int64_t>(at_most)});
    ASSERT_EQ(iterator->valid(), expected != model.end());
    if (iterator->valid()) {
      EXPECT_EQ(iterator->entry().key, expected->first.first);
    }
  }
}

TEST(MemTable, ReadersRunBesideTheWriter) {
  MemTable table;
  std::atomic<SequenceNumber> visible{0};
  constexpr SequenceNumber kLast = 60000;
  std::atomic<bool> wrong{false};
  const auto reader = [&] {
    std::mt19937_64 random(1);
    while (visible.load() < kLast) {
      const SequenceNumber at_most = visible.load();
      if (at_most == 0) {
        continue;
      }
      const SequenceNumber s = 1 + random() % at_most;
      const std::string key = std::to_string(s % 1000);
      std::string value;
      // The newest sequence <= at_most that wrote this key.
      const SequenceNumber newest = at_most - (at_most - s) % 1000;
      if (table.get(key, at_most, &value) != Lookup::found || value != std::to_string(newest)) {
        wrong = true;
      }
    }
  };
  std::thread first(reader), second(reader);
  for (SequenceNumber s = 1; s <= kLast; ++s) {
    table.put(s, std::to_string(s % 1000), std::to_string(s));
    visible.store(s);
  }
  first.join();
  second.join();
  EXPECT_FALSE(wrong);
}

TEST(MemTable, ALoggedValueReadsAsItselfAndIsFlushedAsAPointer) {
  MemTable table;
  LogAddress* address = table.new_address();
  table.put(1, "a", "short");
  table.put_logged(2, "b", "long", address, 7);
  EXPECT_EQ(read(table, "b", 9), "long");
  *address = {3, 4, 4096};
  auto iterator = table.new_flush_iterator();
  iterator->seek_to_first();
  EXPECT_EQ(iterator->entry().type, EntryType::value);
  iterator->next();
  ASSERT_EQ(iterator->entry().type, EntryType::value_pointer);
  ValuePointer pointer;
  ASSERT_TRUE(pointer.decode(iterator->entry().value));
  EXPECT_EQ(pointer, (ValuePointer{3, 4, 4096 + 7, 4, value_checksum("b", "long")}));
  iterator->next();
  EXPECT_FALSE(iterator->valid());
}

// Puts what a batch holds into a memtable, and compares what that took with what was said before.
void expect_within_growth(const WriteBatch& batch, MemTable* table, SequenceNumber* last, size_t threshold) {
  const size_t before = table->memory_bytes();
  const size_t most = table->growth_most(batch, 0);
  MemTableInserter inserter(table, *last + 1, batch.encoded(), threshold);
  ASSERT_TRUE(batch.iterate(inserter).ok());
  *last += batch.sequence_count();
  EXPECT_LE(table->memory_bytes(), before + most);
}

TEST(MemTable, TakesNoMoreThanItSaysBefore) {
  std::mt19937_64 random(7);
  for (const size_t threshold : {size_t{0}, size_t{1}}) {
    for (const size_t value_bytes : {0, 1, 200, 5000, 32700, 33000, 200000}) {
      for (const bool ascends : {false, true}) {
        MemTable table;
        SequenceNumber last = 0;
        for (int batch_number = 0; batch_number < 20; ++batch_number) {
          WriteBatch batch;
          const size_t operations = std::min<size_t>(20000, 1 + (random() % (1 << 20)) / (value_bytes + 10));
          for (size_t i = 0; i < operations; ++i) {
            char key[32];
            std::snprintf(key, sizeof(key), "%020lu", ascends ? last + i : static_cast<uint64_t>(random()));
            i % 5 == 4 ? batch.remove(key) : batch.put(key, std::string(value_bytes, 'v'));
          }
          expect_within_growth(batch, &table, &last, threshold);
        }
      }
    }
  }
}

TEST(MemTable, TakesNoMoreForRangesThanItSaysBefore) {
  std::mt19937_64 random(7);
  for (const int ranges_most : {1, 50, 3000}) {
    MemTable table;
    SequenceNumber last = 0;
    for (int batch_number = 0; batch_number < 3000 / ranges_most + 10; ++batch_number) {
      WriteBatch batch;
      for (int i = 0; i < ranges_most; ++i) {
        const std::string begin = std::to_string(1000000 + random() % 1000000);
        const std::string end = i % 3 == 0 ? std::to_string(1000000 + random() % 1000000) : begin + "x";
        batch.remove_range(std::min(begin, end), std::max(begin, end));
      }
      expect_within_growth(batch, &table, &last, 0);
    }
  }
}

}  // namespace
}  // namespace vtkv
