// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/compaction/compaction_iterator.h"

#include <algorithm>

namespace vtkv {

size_t CompactionIterator::stripe_of(SequenceNumber sequence) const {
  return std::lower_bound(m_snapshots.begin(), m_snapshots.end(), sequence) - m_snapshots.begin();
}

SequenceNumber CompactionIterator::stripe_end(size_t stripe) const {
  return stripe < m_snapshots.size() ? m_snapshots[stripe] : UINT64_MAX;
}

bool CompactionIterator::keep(const Entry& entry) {
  const bool kept = decide(entry);
  if (m_observer) {
    kept ? m_observer->kept(entry) : m_observer->dropped(entry);
  }
  return kept;
}

void CompactionIterator::pass(std::string_view last_key) {
  m_any = true;
  m_key.assign(last_key);
  m_stripe = 0;
}

CompactionIterator::Fate CompactionIterator::fate_of(const BlockRange& blocks) const {
  if (m_tombstones.empty() || !m_tombstones.hides_any(blocks.first_key, blocks.last_key, blocks.smallest_sequence)) {
    return Fate::kept;
  }
  const size_t stripe = stripe_of(blocks.smallest_sequence);
  // Dead bytes of the log are counted by value pointer: those have to be read.
  if (stripe != stripe_of(blocks.greatest_sequence) || blocks.pointers > 0) {
    return Fate::mixed;
  }
  const std::string until = m_tombstones.covered_until(blocks.first_key, stripe_end(stripe), blocks.greatest_sequence);
  return until > blocks.last_key ? Fate::dropped : Fate::mixed;
}

bool CompactionIterator::is_worth_reading(const BlockRange& blocks) const {
  return blocks.doubtful > 0 && (m_older.empty() || blocks.doubtful >= blocks.entries / 4);
}

bool CompactionIterator::decide(const Entry& entry) {
  const size_t stripe = stripe_of(entry.sequence);
  if (m_any && m_stripe == stripe && m_key == entry.key) {
    return false;
  }
  m_any = true;
  m_key.assign(entry.key);
  m_stripe = stripe;
  if (m_tombstones.covering(entry.key, stripe_end(stripe)) > entry.sequence) {
    return false;
  }
  return entry.type != EntryType::tombstone || m_older.may_hold(entry.key) ||
         (stripe > 0 && m_older.may_show(entry.key, m_snapshots[stripe - 1]));
}

std::shared_ptr<RangeTombstones> CompactionIterator::tombstones_left() const {
  std::vector<RangeTombstone> left;
  m_tombstones.for_each_newest(
      m_snapshots, [&](std::string_view begin, std::string_view end, const std::vector<SequenceNumber>& sequences) {
        for (const SequenceNumber sequence : sequences) {
          if (stripe_of(sequence) > 0 || m_older.may_hold_any(begin, end)) {
            left.push_back({begin, end, sequence});
          }
        }
      });
  return std::make_shared<RangeTombstones>(std::move(left));
}

}  // namespace vtkv
