// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/iter/visible_iterator.h"

#include <gtest/gtest.h>

#include <functional>

#include "vtkv/span/block_builder.h"

namespace vtkv {
namespace {

// How much a reader asks of a source.
struct Work {
  uint64_t moves = 0;
};

class CountingIterator final : public EntryIterator {
 public:
  CountingIterator(std::unique_ptr<EntryIterator> inner, Work* work) : m_inner(std::move(inner)), m_work(*work) {}
  bool valid() const override { return m_inner->valid(); }
  void seek_to_first() override {
    move([this] { m_inner->seek_to_first(); });
  }
  void seek_to_last() override {
    move([this] { m_inner->seek_to_last(); });
  }
  void seek(std::string_view key, SequenceNumber at_most) override {
    move([&] { m_inner->seek(key, at_most); });
  }
  void next() override {
    move([this] { m_inner->next(); });
  }
  void previous() override {
    move([this] { m_inner->previous(); });
  }
  const Entry& entry() const override { return m_inner->entry(); }
  Status status() const override { return m_inner->status(); }

 private:
  template <typename Move>
  void move(const Move& move) {
    ++m_work.moves;
    move();
  }

  const std::unique_ptr<EntryIterator> m_inner;
  Work& m_work;
};

// One source in the place of the tree.
class OneSource final : public Version {
 public:
  explicit OneSource(std::function<std::unique_ptr<EntryIterator>()> make) : m_make(std::move(make)) {}
  Status get(std::string_view, SequenceNumber, Lookup*, std::string*) const override { return {}; }
  std::unique_ptr<AscendingLookups> ascending_lookups() const override { return nullptr; }
  void new_iterators(std::string_view, std::string_view, std::vector<std::unique_ptr<EntryIterator>>* iterators,
                     std::vector<std::shared_ptr<const RangeTombstones>>* tombstones) const override {
    iterators->push_back(m_make());
    tombstones->push_back(nullptr);
  }

 private:
  const std::function<std::unique_ptr<EntryIterator>()> m_make;
};

class HotKeyTest : public testing::Test {
 protected:
  static constexpr SequenceNumber kVersions = 10'000;
  static constexpr uint64_t kMovesMost = 100;

  HotKeyTest() {
    m_table.put(1, "a", "before");
    for (SequenceNumber sequence = 2; sequence < kVersions; ++sequence) {
      m_table.put(sequence, "hot", std::to_string(sequence));
    }
    m_table.put(kVersions, "z", "behind");
  }
  VisibleIterator iterator_at(SequenceNumber sequence) {
    auto state = std::make_shared<ReadState>();
    state->version = std::make_shared<OneSource>(
        [this] { return std::make_unique<CountingIterator>(m_table.new_iterator(), &m_work); });
    return VisibleIterator(std::move(state), "", "zz", sequence);
  }

  MemTable m_table;
  Work m_work;
};

TEST_F(HotKeyTest, BackwardItCostsNoMoreThanAFewVersions) {
  for (const SequenceNumber sequence : {kVersions, kVersions / 2, SequenceNumber{3}, SequenceNumber{2}}) {
    m_work = {};
    VisibleIterator iterator = iterator_at(sequence);
    iterator.seek_for_previous("hot");
    ASSERT_TRUE(iterator.valid());
    EXPECT_EQ(iterator.key(), "hot");
    EXPECT_EQ(iterator.value(), std::to_string(std::min(sequence, kVersions - 1)));
    iterator.previous();
    ASSERT_TRUE(iterator.valid());
    EXPECT_EQ(iterator.value(), "before");
    iterator.next();
    ASSERT_TRUE(iterator.valid());
    EXPECT_EQ(iterator.value(), std::to_string(std::min(sequence, kVersions - 1)));
    EXPECT_LT(m_work.moves, kMovesMost) << sequence;
  }
}

TEST_F(HotKeyTest, BackwardOneThatIsTooNewIsNotThere) {
  VisibleIterator iterator = iterator_at(1);
  iterator.seek_to_last();
  ASSERT_TRUE(iterator.valid());
  EXPECT_EQ(iterator.value(), "before");
  EXPECT_LT(m_work.moves, kMovesMost);
}

TEST_F(HotKeyTest, ForwardAnOldReaderCostsNoMoreThanAFewVersions) {
  for (const SequenceNumber sequence : {SequenceNumber{2}, SequenceNumber{1}}) {
    m_work = {};
    VisibleIterator iterator = iterator_at(sequence);
    iterator.seek_to_first();
    ASSERT_TRUE(iterator.valid());
    EXPECT_EQ(iterator.value(), "before");
    iterator.next();
    ASSERT_EQ(iterator.valid(), sequence == 2);
    EXPECT_LT(m_work.moves, kMovesMost) << sequence;
  }
}

TEST_F(HotKeyTest, BackwardATombstoneAsTheNewestHidesIt) {
  m_table.remove(kVersions + 1, "hot");
  VisibleIterator iterator = iterator_at(kVersions + 1);
  iterator.seek_to_last();
  EXPECT_EQ(iterator.key(), "z");
  iterator.previous();
  ASSERT_TRUE(iterator.valid());
  EXPECT_EQ(iterator.key(), "a");
  EXPECT_LT(m_work.moves, kMovesMost);
}

// A block whose entries its writer, or who wrote over it, put in another order; above it a range tombstone.
class DisorderTest : public testing::Test {
 protected:
  static constexpr int kStepsMost = 100;
  using Keys = std::vector<std::string>;

  std::shared_ptr<const Block> block_of(const Keys& keys) {
    BlockBuilder builder(BlockKind::entries);
    for (const std::string& key : keys) {
      builder.add({key, 1, EntryType::value, ""});
    }
    std::string bytes;
    builder.finish(1, 0, &bytes);
    std::shared_ptr<const Block> block;
    EXPECT_TRUE(Block::parse(bytes, {BlockKind::entries, 1, 0}, &block).ok());
    return block;
  }
  // What is shown of it until it ends; its status.
  Status walk(const Keys& keys, std::string_view begin, std::string_view end, bool forward, Keys* shown) {
    auto state = std::make_shared<ReadState>();
    state->memtables.push_back(std::make_shared<MemTable>());
    state->memtables[0]->remove_range(2, begin, end);
    state->version =
        std::make_shared<OneSource>([block = block_of(keys)] { return std::make_unique<BlockIterator>(block); });
    VisibleIterator iterator(std::move(state), "", "zz", 2);
    for (forward ? iterator.seek_to_first() : iterator.seek_to_last(); iterator.valid() && shown->size() < kStepsMost;
         forward ? iterator.next() : iterator.previous()) {
      shown->emplace_back(iterator.key());
    }
    return iterator.status();
  }
};

TEST_F(DisorderTest, ForwardItEndsWhereAKeyComesTooLate) {
  Keys shown;
  const Status status = walk({"m", "a", "z"}, "a", "b", true, &shown);
  EXPECT_EQ(shown, Keys{"m"});
  EXPECT_TRUE(status.is_corruption());
  EXPECT_EQ(status.message(), "entries are out of order: 'a' follows 'm'");
}

// A search that begins behind the first 16 finds the second z, and so comes to n again.
TEST_F(DisorderTest, BackwardItEndsWhereAKeyComesTooEarly) {
  Keys keys(14, "a");
  keys.insert(keys.end(), {"y", "z", "m", "n", "z"});
  Keys shown;
  const Status status = walk(keys, "y", "z1", false, &shown);
  EXPECT_EQ(shown, Keys{"n"});
  EXPECT_TRUE(status.is_corruption());
  EXPECT_EQ(status.message(), "entries are out of order: 'z' precedes 'm'");
}

// While a memtable is searched its writer goes on.
class WrittenMeanwhile final : public EntryIterator {
 public:
  explicit WrittenMeanwhile(MemTable* table) : m_table(*table), m_inner(table->new_iterator()) {}
  bool valid() const override { return m_inner->valid(); }
  void seek_to_first() override { m_inner->seek_to_first(); }
  void seek_to_last() override { m_inner->seek_to_last(); }
  void seek(std::string_view key, SequenceNumber at_most) override {
    m_inner->seek(key, at_most);
    m_table.put(m_table.last_sequence() + 1, std::string(key) + "0", "");
  }
  void next() override { m_inner->next(); }
  void previous() override { m_inner->previous(); }
  const Entry& entry() const override { return m_inner->entry(); }
  Status status() const override { return m_inner->status(); }

 private:
  MemTable& m_table;
  const std::unique_ptr<EntryIterator> m_inner;
};

TEST(VisibleIteratorTest, BackwardItPassesOverWhatWasPutBehindWhereItBegins) {
  for (const bool any_behind : {false, true}) {
    MemTable table;
    table.put(1, "a", "1");
    table.put(2, "b", "2");
    if (any_behind) {
      table.put(3, "x", "3");
    }
    auto state = std::make_shared<ReadState>();
    state->version = std::make_shared<OneSource>([&] { return std::make_unique<WrittenMeanwhile>(&table); });
    VisibleIterator iterator(std::move(state), "", "k", 3);
    std::string shown;
    for (iterator.seek_to_last(); iterator.valid(); iterator.previous()) {
      shown += iterator.key();
    }
    EXPECT_EQ(shown, "ba");
    EXPECT_TRUE(iterator.status().ok());
  }
}

}  // namespace
}  // namespace vtkv
