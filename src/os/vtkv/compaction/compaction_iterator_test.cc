// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/compaction/compaction_iterator.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

class FixedOlder final : public CompactionIterator::Older {
 public:
  explicit FixedOlder(bool holds, bool shows = true) : m_holds(holds), m_shows(shows) {}
  bool may_hold(std::string_view) const override { return m_holds; }
  bool may_hold_any(std::string_view, std::string_view) const override { return m_holds; }
  bool may_show(std::string_view, SequenceNumber) const override { return m_shows; }
  bool empty() const override { return !m_holds; }

 private:
  const bool m_holds;
  const bool m_shows;
};

class CompactionIteratorTest : public testing::Test {
 protected:
  // "k7 k3- m5": put of k at 7, tombstone of k at 3, put of m at 5; what is kept, in the same notation.
  std::string compact(const std::string& entries) {
    const FixedOlder older(m_older_holds, m_shows);
    CompactionIterator compaction_iterator(&m_snapshots, &m_tombstones, &older);
    std::string kept;
    for (size_t at = 0; at < entries.size();) {
      size_t end = entries.find(' ', at);
      end = end == std::string::npos ? entries.size() : end;
      const std::string item = entries.substr(at, end - at);
      const bool tombstone = item.back() == '-';
      const Entry entry{std::string_view(item).substr(0, 1), std::stoull(item.substr(1)),
                        tombstone ? EntryType::tombstone : EntryType::value, ""};
      if (compaction_iterator.keep(entry)) {
        kept += (kept.empty() ? "" : " ") + item;
      }
      at = end + 1;
    }
    return kept;
  }
  std::string tombstones() {
    const FixedOlder older(m_older_holds, m_shows);
    std::string text;
    CompactionIterator(&m_snapshots, &m_tombstones, &older)
        .tombstones_left()
        ->for_each_newest(m_snapshots, [&](std::string_view begin, std::string_view end,
                                           const std::vector<SequenceNumber>& sequences) {
          text += (text.empty() ? "" : " ") + std::string(begin) + "-" + std::string(end);
          for (const SequenceNumber s : sequences) {
            text += ":" + std::to_string(s);
          }
        });
    return text;
  }

  std::vector<SequenceNumber> m_snapshots;
  RangeTombstones m_tombstones;
  bool m_older_holds = true;
  bool m_shows = true;
};

TEST_F(CompactionIteratorTest, WithoutSnapshotsTheNewestVersionStays) {
  EXPECT_EQ(compact("k7 k5 k3- m4 m2"), "k7 m4");
}

TEST_F(CompactionIteratorTest, EverySnapshotKeepsItsVersion) {
  m_snapshots = {3, 5};
  EXPECT_EQ(compact("k9 k7 k5 k4 k3 k2"), "k9 k5 k3");
}

TEST_F(CompactionIteratorTest, ATombstoneStaysWhileSomethingOlderMayHoldTheKey) {
  EXPECT_EQ(compact("k7- k3"), "k7-");
  m_older_holds = false;
  EXPECT_EQ(compact("k7- k3"), "");
}

TEST_F(CompactionIteratorTest, ATombstoneStaysAboveAVersionThatASnapshotKeeps) {
  m_older_holds = false;
  m_snapshots = {5};
  EXPECT_EQ(compact("k7- k3"), "k7- k3");
  EXPECT_EQ(compact("k5- k3"), "");
}

TEST_F(CompactionIteratorTest, ATombstoneGoesWhenTheSnapshotBelowSeesNothingThatItRemoves) {
  m_snapshots = {5};
  m_shows = false;
  EXPECT_EQ(compact("k7- k6"), "k7-");
  m_older_holds = false;
  EXPECT_EQ(compact("k7- k6"), "");
}

TEST_F(CompactionIteratorTest, ARangeTombstoneDropsWhatItHidesFromEveryReader) {
  m_tombstones.add(6, "a", "m");
  EXPECT_EQ(compact("k7 k5 l5 m5"), "k7 m5");
}

TEST_F(CompactionIteratorTest, ARangeTombstoneSparesWhatASnapshotBelowItSees) {
  m_tombstones.add(6, "a", "m");
  m_snapshots = {5};
  EXPECT_EQ(compact("k5 k4"), "k5");
  m_snapshots = {6};
  EXPECT_EQ(compact("k5 k4"), "");
}

TEST_F(CompactionIteratorTest, APutAtTheSequenceOfARangeTombstoneStays) {
  m_tombstones.add(6, "a", "m");
  EXPECT_EQ(compact("k6"), "k6");
}

TEST_F(CompactionIteratorTest, OfOneSequenceTheFirstStays) { EXPECT_EQ(compact("k6 k6"), "k6"); }

TEST_F(CompactionIteratorTest, RangeTombstonesKeepTheNewestOfEachStripe) {
  m_tombstones.add(3, "a", "m");
  m_tombstones.add(4, "a", "m");
  m_tombstones.add(8, "a", "m");
  m_tombstones.add(9, "a", "m");
  m_snapshots = {5};
  EXPECT_EQ(tombstones(), "a-m:9:4");
  m_older_holds = false;
  EXPECT_EQ(tombstones(), "a-m:9");
  m_snapshots.clear();
  EXPECT_EQ(tombstones(), "");
}

class CountDrops final : public EntryObserver {
 public:
  void dropped(const Entry& entry) override { text += std::string(entry.key) + std::to_string(entry.sequence) + " "; }
  std::string text;
};

TEST_F(CompactionIteratorTest, WhatIsDroppedIsToldOf) {
  const FixedOlder older(true);
  CountDrops drops;
  m_tombstones.add(9, "m", "n");
  CompactionIterator compaction_iterator(&m_snapshots, &m_tombstones, &older, &drops);
  for (const char* item : {"k7", "k5", "m4"}) {
    (void)compaction_iterator.keep({std::string_view(item, 1), std::stoull(item + 1), EntryType::value_pointer, "p"});
  }
  (void)compaction_iterator.keep({"m", 3, EntryType::value, "v"});
  EXPECT_EQ(drops.text, "k5 m4 m3 ");
}

}  // namespace
}  // namespace vtkv
