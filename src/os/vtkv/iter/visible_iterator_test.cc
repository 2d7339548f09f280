// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/iter/visible_iterator.h"

#include <gtest/gtest.h>

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

// A memtable in the place of the tree, so that what is done with it can be counted.
class CountedVersion final : public Version {
 public:
  CountedVersion(const MemTable* table, Work* work) : m_table(*table), m_work(work) {}
  Status get(std::string_view key, SequenceNumber at_most, Lookup* result, std::string* value) const override {
    *result = m_table.get(key, at_most, value);
    return {};
  }
  std::unique_ptr<AscendingLookups> ascending_lookups() const override { return nullptr; }
  void new_iterators(std::string_view, std::string_view, std::vector<std::unique_ptr<EntryIterator>>* iterators,
                     std::vector<std::shared_ptr<const RangeTombstones>>* tombstones) const override {
    iterators->push_back(std::make_unique<CountingIterator>(m_table.new_iterator(), m_work));
    tombstones->push_back(nullptr);
  }

 private:
  const MemTable& m_table;
  Work* const m_work;
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
    state->version = std::make_shared<CountedVersion>(&m_table, &m_work);
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

}  // namespace
}  // namespace vtkv
