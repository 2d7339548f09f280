// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/iter/merging_iterator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "vtkv/mem/memtable.h"

namespace vtkv {
namespace {

struct Version {
  std::string key;
  SequenceNumber sequence;
  size_t source;
  std::string value;  // says which put it was

  bool is(const Entry& entry) const { return entry.key == key && entry.sequence == sequence && entry.value == value; }
};

bool comes_before(const Version& a, const Version& b) {
  return a.key != b.key ? a.key < b.key : a.sequence != b.sequence ? a.sequence > b.sequence : a.source < b.source;
}

// Memtables that hold few keys, many versions of each, and the same (key, sequence) again and again.
class TiesTest : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    const size_t sources = 1 + m_random() % 5;
    std::vector<std::unique_ptr<EntryIterator>> iterators;
    for (size_t source = 0; source < sources; ++source) {
      m_tables.push_back(std::make_unique<MemTable>());
      fill(source);
      iterators.push_back(m_tables.back()->new_iterator());
    }
    std::stable_sort(m_all.begin(), m_all.end(), comes_before);
    m_merged = std::make_unique<MergingIterator>(std::move(iterators));
  }

  void fill(size_t source) {
    MemTable& table = *m_tables.back();
    SequenceNumber sequence = 1;
    for (size_t put = m_random() % 12; put > 0; --put) {
      sequence += m_random() % 2;
      table.put(sequence, random_key(), std::to_string(source) + "." + std::to_string(put));
    }
    const auto own = table.new_iterator();
    for (own->seek_to_first(); own->valid(); own->next()) {
      const Entry& entry = own->entry();
      m_all.push_back({std::string(entry.key), entry.sequence, source, std::string(entry.value)});
    }
  }

  std::string random_key() { return std::string(1, static_cast<char>('a' + m_random() % 3)); }

  // The first one at or behind (key, at_most).
  size_t position_of(const std::string& key, SequenceNumber at_most) const {
    return std::partition_point(m_all.begin(), m_all.end(),
                                [&](const Version& version) {
                                  return version.key < key || (version.key == key && version.sequence > at_most);
                                }) -
           m_all.begin();
  }

  void expect_at(size_t position) {
    const bool there = position < m_all.size();
    ASSERT_EQ(m_merged->valid(), there);
    ASSERT_TRUE(m_merged->status().ok());
    if (there) {
      ASSERT_TRUE(m_all[position].is(m_merged->entry()))
          << m_merged->entry().key << " " << m_merged->entry().sequence << " " << m_merged->entry().value
          << " in place of " << m_all[position].key << " " << m_all[position].sequence << " " << m_all[position].value;
    }
  }

  std::mt19937_64 m_random{GetParam()};
  std::vector<std::unique_ptr<MemTable>> m_tables;
  std::vector<Version> m_all;  // in the order of comes_before()
  std::unique_ptr<MergingIterator> m_merged;
};

TEST_P(TiesTest, NewerSourcesComeFirstForwardAndLastBackward) {
  m_merged->seek_to_first();
  for (size_t position = 0; position <= m_all.size(); ++position) {
    ASSERT_NO_FATAL_FAILURE(expect_at(position));
    if (position < m_all.size()) {
      m_merged->next();
    }
  }
  m_merged->seek_to_last();
  for (size_t position = m_all.size(); position-- > 0;) {
    ASSERT_NO_FATAL_FAILURE(expect_at(position));
    m_merged->previous();
  }
  ASSERT_FALSE(m_merged->valid());
}

TEST_P(TiesTest, TurnsAroundWithoutMissingOrRepeatingAny) {
  constexpr size_t kNowhere = SIZE_MAX;
  size_t position = kNowhere;
  for (int step = 0; step < 200; ++step) {
    const std::string key = random_key();
    const size_t what = m_random() % 8;
    if (position < m_all.size() && what < 6) {
      const bool forward = what < 3;
      forward ? m_merged->next() : m_merged->previous();
      position = forward ? position + 1 : position - 1;  // before the first one: nowhere
    } else if (what == 7) {
      m_merged->seek_before(key);
      position = position_of(key, UINT64_MAX) - 1;
    } else {
      const SequenceNumber at_most = m_random() % 6;
      m_merged->seek(key, at_most);
      position = position_of(key, at_most);
    }
    ASSERT_NO_FATAL_FAILURE(expect_at(position)) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TiesTest, testing::Range<uint64_t>(0, 200));

}  // namespace
}  // namespace vtkv
