#include "vtkv/tree/reducer.h"

#include <algorithm>

namespace vtkv {

size_t Reducer::stripe_of(SequenceNumber sequence) const {
  return std::lower_bound(m_snapshots.begin(), m_snapshots.end(), sequence) - m_snapshots.begin();
}

SequenceNumber Reducer::stripe_end(size_t stripe) const {
  return stripe < m_snapshots.size() ? m_snapshots[stripe] : UINT64_MAX;
}

bool Reducer::keep(const Entry& entry) {
  const bool kept = decide(entry);
  if (m_observer) {
    kept ? m_observer->kept(entry) : m_observer->dropped(entry);
  }
  return kept;
}

void Reducer::pass(std::string_view last_key) {
  m_any = true;
  m_key.assign(last_key);
  m_stripe = 0;
}

Reducer::Fate Reducer::fate_of(const BlockRange& blocks) const {
  if (m_removals.empty() || !m_removals.hides_any(blocks.first_key, blocks.last_key, blocks.smallest_sequence)) {
    return Fate::kept;
  }
  const size_t stripe = stripe_of(blocks.smallest_sequence);
  // Dead bytes of the log are counted by value pointer: those have to be read.
  if (stripe != stripe_of(blocks.greatest_sequence) || blocks.pointers > 0) {
    return Fate::mixed;
  }
  const std::string until =
      m_removals.covered_until(blocks.first_key, stripe_end(stripe), blocks.greatest_sequence);
  return until > blocks.last_key ? Fate::dropped : Fate::mixed;
}

bool Reducer::is_worth_reducing(const BlockRange& blocks) const {
  return blocks.doubtful > 0 && (m_older.empty() || blocks.doubtful >= blocks.entries / 4);
}

bool Reducer::decide(const Entry& entry) {
  const size_t stripe = stripe_of(entry.sequence);
  if (m_any && m_stripe == stripe && m_key == entry.key) {
    return false;
  }
  m_any = true;
  m_key.assign(entry.key);
  m_stripe = stripe;
  if (m_removals.covering(entry.key, stripe_end(stripe)) > entry.sequence) {
    return false;
  }
  return entry.type != EntryType::removal || m_older.may_hold(entry.key) ||
         (stripe > 0 && m_older.may_show(entry.key, m_snapshots[stripe - 1]));
}

std::shared_ptr<RangeRemovals> Reducer::reduced_removals() const {
  std::vector<RangeRemoval> reduced;
  m_removals.for_each_newest(m_snapshots, [&](std::string_view begin, std::string_view end,
                                              const std::vector<SequenceNumber>& sequences) {
    for (const SequenceNumber sequence : sequences) {
      if (stripe_of(sequence) > 0 || m_older.may_hold_any(begin, end)) {
        reduced.push_back({begin, end, sequence});
      }
    }
  });
  return std::make_shared<RangeRemovals>(std::move(reduced));
}

}  // namespace vtkv
