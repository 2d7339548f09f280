// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/table/quotient_filter.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "vtkv/util/coding.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/source_heap.h"

namespace vtkv {

namespace {

enum Plane { kOccupied = 0, kContinuation = 1, kShifted = 2, kRemainders = 3 };
constexpr uint64_t kSlotsPerGroup = 64;
constexpr size_t kHeaderBytes = 16;
constexpr uint64_t kNone = UINT64_MAX;
constexpr size_t kSpareGroups = 4;              // behind the table, before it has to be allocated anew
constexpr double kLoadMin = 0.375;
constexpr double kHeadroomLoadMin = 0.4;        // below it a further bit would cost more than 3.4 bytes per entry
constexpr uint64_t kTreeEntriesMin = 1 << 16;   // a smaller tree's filters are short of nothing
constexpr uint64_t kPaceEntries = 1 << 16;      // some milliseconds

uint64_t mask_of(int bits) { return (uint64_t{1} << bits) - 1; }

// Before the n-th of many.
bool ends_at(uint64_t n, const QuotientFilter::GoOn& go_on) { return n % kPaceEntries == 0 && go_on && !go_on(); }

// The number of the n-th set bit, counted from 1. REQUIRES: there are that many.
int select(uint64_t word, int n) {
  for (; n > 1; --n) {
    word &= word - 1;
  }
  return std::countr_zero(word);
}

// The number of entries may come from a disk, and be anything.
int quotient_bits_for(uint64_t entries, int least) {
  int bits = least;
  while (bits < 63 &&
         static_cast<double>(uint64_t{1} << bits) * QuotientFilter::kLoadMax < static_cast<double>(entries)) {
    ++bits;
  }
  return bits;
}

}  // namespace

// Writes fingerprints in ascending order from a slot on that is the first of a cluster or behind them all.
class QuotientFilter::Builder {
 public:
  Builder(QuotientFilter* filter, uint64_t first_slot)
      : m_filter(*filter),
        m_remainder_bits(filter->m_remainder_bits),
        m_mask(mask_of(filter->m_remainder_bits)),
        m_next(first_slot),
        m_slots(filter->slots()) {}

  void add(uint64_t fingerprint) {
    const uint64_t quotient = fingerprint >> m_remainder_bits;
    const uint64_t slot = std::max(m_next, quotient);
    if (slot >= m_slots) {
      add_group();
    }
    const uint64_t bit = uint64_t{1} << slot % kSlotsPerGroup;
    uint64_t* const group = m_filter.group(slot);
    m_filter.group(quotient)[kOccupied] |= uint64_t{1} << quotient % kSlotsPerGroup;
    group[kContinuation] |= quotient == m_quotient ? bit : 0;
    group[kShifted] |= slot != quotient ? bit : 0;
    m_filter.set_remainder(slot, fingerprint & m_mask);
    m_quotient = quotient;
    m_next = slot + 1;
  }

 private:
  void add_group() {
    const size_t words = m_filter.m_words.size() + m_filter.words_per_group();
    if (m_filter.m_words.capacity() < words) {  // never twice the table
      m_filter.m_words.reserve(words + m_slots / 1024 * m_filter.words_per_group());
    }
    m_filter.m_words.resize(words);
    m_slots += kSlotsPerGroup;
  }

  QuotientFilter& m_filter;
  const int m_remainder_bits;
  const uint64_t m_mask;
  uint64_t m_quotient = UINT64_MAX;
  uint64_t m_next;
  uint64_t m_slots;
};

// The slots from the start of a cluster to the next empty one, taken apart to be changed and written again:
// everything whose quotient lies among them lies there, and nothing else does.
struct QuotientFilter::Region {
  uint64_t first = 0;
  std::vector<uint64_t> fingerprints;

  Region(const QuotientFilter& filter, uint64_t quotient) : first(filter.cluster_start(quotient)) {
    const uint64_t slots = filter.slots();
    uint64_t current = first;
    for (uint64_t slot = first; slot < slots && !filter.empty_at(slot); ++slot) {
      if (!filter.bit(kContinuation, slot) && slot > first) {
        do {
          ++current;
        } while (!filter.bit(kOccupied, current));
      }
      fingerprints.push_back(current << filter.m_remainder_bits | filter.remainder_at(slot));
    }
  }

  // REQUIRES: fingerprints are those found above.
  void clear(QuotientFilter* filter) const {
    for (uint64_t slot = first; slot < first + fingerprints.size(); ++slot) {
      const uint64_t others = ~(uint64_t{1} << slot % kSlotsPerGroup);
      uint64_t* const group = filter->group(slot);
      group[kOccupied] &= others;
      group[kContinuation] &= others;
      group[kShifted] &= others;
      filter->set_remainder(slot, 0);
    }
  }

  void write(QuotientFilter* filter) const {
    Builder builder(filter, first);
    for (const uint64_t fingerprint : fingerprints) {
      builder.add(fingerprint);
    }
  }
};

int QuotientFilter::bits_needed(uint64_t keys, double rate) {
  const double wanted = static_cast<double>(std::max<uint64_t>(keys, 1)) / std::clamp(rate, 1e-6, 1.0);
  return std::max(static_cast<int>(std::ceil(std::log2(wanted))), quotient_bits_for(keys, kQuotientBitsMin) + 1);
}

int QuotientFilter::fingerprint_bits(uint64_t tree_entries, double rate) {
  const uint64_t entries = std::max(tree_entries, kTreeEntriesMin);
  const double load =
      static_cast<double>(entries) / static_cast<double>(uint64_t{1} << quotient_bits_for(entries, kQuotientBitsMin));
  return bits_needed(entries, rate) + (load < kHeadroomLoadMin ? 0 : 1);
}

QuotientFilter::QuotientFilter(uint64_t expected, int bits) {
  const int quotient_bits = quotient_bits_for(expected, kQuotientBitsMin);
  if (quotient_bits > kQuotientBitsMax || bits <= quotient_bits || bits > kBitsMax) {
    return;
  }
  make_table(quotient_bits, bits);
}

void QuotientFilter::make_table(int quotient_bits, int bits) {
  m_quotient_bits = quotient_bits;
  m_remainder_bits = bits - quotient_bits;
  const size_t groups = (uint64_t{1} << quotient_bits) / kSlotsPerGroup;
  m_words.reserve((groups + std::min(groups / 8, kSpareGroups)) * words_per_group());
  m_words.resize(groups * words_per_group());
}

QuotientFilter QuotientFilter::build(std::vector<uint64_t>* key_hashes, int bits) {
  QuotientFilter filter(key_hashes->size(), bits);
  if (!filter.active()) {
    return filter;
  }
  std::sort(key_hashes->begin(), key_hashes->end());
  Builder builder(&filter, 0);
  for (const uint64_t key_hash : *key_hashes) {
    builder.add(filter.fingerprint_of(key_hash));
  }
  filter.m_entries = key_hashes->size();
  return filter;
}

uint64_t QuotientFilter::slots() const { return m_words.size() / words_per_group() * kSlotsPerGroup; }

bool QuotientFilter::empty_at(uint64_t slot) const {
  const uint64_t* const words = group(slot);
  return ((words[kOccupied] | words[kContinuation] | words[kShifted]) >> slot % kSlotsPerGroup & 1) == 0;
}

uint64_t QuotientFilter::next_occupied(uint64_t from) const {
  for (const uint64_t all = slots(); from < all; from = (from | 63) + 1) {
    if (const uint64_t word = group(from)[kOccupied] >> from % kSlotsPerGroup; word != 0) {
      return from + std::countr_zero(word);
    }
  }
  return kNone;
}

// Of the n-th slot of a group of these words.
uint64_t QuotientFilter::remainder_in(const uint64_t* words, uint64_t n) const {
  const uint64_t bit = n * m_remainder_bits;
  const uint64_t* const word = words + kRemainders + bit / 64;
  uint64_t value = word[0] >> bit % 64;
  if (bit % 64 + m_remainder_bits > 64) {
    value |= word[1] << (64 - bit % 64);
  }
  return value & mask_of(m_remainder_bits);
}

uint64_t QuotientFilter::remainder_at(uint64_t slot) const { return remainder_in(group(slot), slot % kSlotsPerGroup); }

void QuotientFilter::set_remainder(uint64_t slot, uint64_t remainder) {
  const uint64_t bit = slot % kSlotsPerGroup * m_remainder_bits;
  const uint64_t mask = mask_of(m_remainder_bits);
  uint64_t* const word = group(slot) + kRemainders + bit / 64;
  word[0] = (word[0] & ~(mask << bit % 64)) | remainder << bit % 64;
  if (bit % 64 + m_remainder_bits > 64) {
    word[1] = (word[1] & ~(mask >> (64 - bit % 64))) | remainder >> (64 - bit % 64);
  }
}

// Of the cluster that the slot is part of; the slot itself when it is empty.
uint64_t QuotientFilter::cluster_start(uint64_t slot) const {
  uint64_t word = ~group(slot)[kShifted] & (~uint64_t{0} >> (63 - slot % kSlotsPerGroup));
  while (word == 0) {
    slot -= slot % kSlotsPerGroup + 1;  // slot 0 is never shifted
    word = ~group(slot)[kShifted];
  }
  return slot - slot % kSlotsPerGroup + 63 - std::countl_zero(word);
}

// REQUIRES: the quotient is occupied.
uint64_t QuotientFilter::run_start(uint64_t quotient) const {
  const uint64_t first = cluster_start(quotient);
  // The n-th occupied quotient of a cluster has its n-th run.
  int runs = 0;
  uint64_t from = first;
  for (; from / kSlotsPerGroup < quotient / kSlotsPerGroup; from = (from | 63) + 1) {
    runs += std::popcount(group(from)[kOccupied] >> from % kSlotsPerGroup);
  }
  const uint64_t up_to = ~uint64_t{0} >> (63 - quotient % kSlotsPerGroup);
  runs += std::popcount((group(from)[kOccupied] & up_to) >> from % kSlotsPerGroup);
  for (uint64_t slot = first;; slot = (slot | 63) + 1) {
    const uint64_t starts = ~group(slot)[kContinuation] >> slot % kSlotsPerGroup << slot % kSlotsPerGroup;
    const int here = std::popcount(starts);
    if (runs <= here) {
      return slot - slot % kSlotsPerGroup + select(starts, runs);
    }
    runs -= here;
  }
}

bool QuotientFilter::may_contain(uint64_t key_hash) const {
  if (!active()) {
    return true;
  }
  const uint64_t fingerprint = fingerprint_of(key_hash);
  const uint64_t quotient = fingerprint >> m_remainder_bits;
  if (!bit(kOccupied, quotient)) {
    return false;
  }
  const uint64_t wanted = fingerprint & mask_of(m_remainder_bits);
  const uint64_t all = slots();
  uint64_t slot = run_start(quotient);
  do {
    const uint64_t remainder = remainder_at(slot);
    if (remainder >= wanted) {
      return remainder == wanted;
    }
    ++slot;
  } while (slot < all && bit(kContinuation, slot));
  return false;
}

bool QuotientFilter::insert(uint64_t key_hash) {
  if (!active()) {
    return true;
  }
  if (static_cast<double>(m_entries + 1) > kLoadMax * static_cast<double>(uint64_t{1} << m_quotient_bits)) {
    if (m_remainder_bits == 1 || m_quotient_bits == kQuotientBitsMax) {
      return false;
    }
    reshape(m_quotient_bits + 1, bits());
  }
  const uint64_t fingerprint = fingerprint_of(key_hash);
  Region region(*this, fingerprint >> m_remainder_bits);
  region.clear(this);
  auto& all = region.fingerprints;
  all.insert(std::upper_bound(all.begin(), all.end(), fingerprint), fingerprint);
  region.write(this);
  ++m_entries;
  return true;
}

bool QuotientFilter::remove(uint64_t key_hash) {
  if (!active()) {
    return true;
  }
  const uint64_t fingerprint = fingerprint_of(key_hash);
  const uint64_t quotient = fingerprint >> m_remainder_bits;
  if (!bit(kOccupied, quotient)) {
    return false;
  }
  Region region(*this, quotient);
  auto& all = region.fingerprints;
  const auto found = std::lower_bound(all.begin(), all.end(), fingerprint);
  if (found == all.end() || *found != fingerprint) {
    return false;
  }
  region.clear(this);
  all.erase(found);
  region.write(this);
  --m_entries;
  while (slots() > uint64_t{1} << m_quotient_bits &&
         std::all_of(m_words.end() - words_per_group(), m_words.end(), [](uint64_t word) { return word == 0; })) {
    m_words.resize(m_words.size() - words_per_group());
  }
  return true;
}

void QuotientFilter::reshape(int quotient_bits, int bits, const GoOn& go_on) {
  QuotientFilter other;
  other.make_table(quotient_bits, bits);
  Builder builder(&other, 0);
  const int cut = this->bits() - bits;
  uint64_t added = 0;
  for (Cursor cursor(*this); cursor.valid(); cursor.next()) {
    if (ends_at(added++, go_on)) {
      return;
    }
    builder.add(cursor.fingerprint() >> cut);
  }
  other.m_entries = m_entries;
  *this = std::move(other);
}

void QuotientFilter::fit(int bits, const GoOn& go_on) {
  if (!active()) {
    return;
  }
  int quotient_bits = m_quotient_bits;
  if (load() < kLoadMin) {
    quotient_bits = quotient_bits_for(m_entries, kQuotientBitsMin);
  }
  bits = std::clamp(bits, quotient_bits + 1, this->bits());
  if (quotient_bits != m_quotient_bits || bits != this->bits()) {
    reshape(quotient_bits, bits, go_on);
  }
}

bool QuotientFilter::merge(const std::vector<const QuotientFilter*>& inputs, double rate, QuotientFilter* result,
                           int quotient_bits_max, const GoOn& go_on) {
  *result = QuotientFilter();
  uint64_t entries = 0;
  int bits = kBitsMax;
  for (const QuotientFilter* input : inputs) {
    if (!input->active()) {
      return false;
    }
    entries += input->m_entries;
    bits = std::min(bits, input->bits());
  }
  if (inputs.empty() || bits < bits_needed(entries, rate) ||
      quotient_bits_for(entries, kQuotientBitsMin) > quotient_bits_max) {
    return false;
  }
  QuotientFilter merged(entries, bits);
  VTKV_ASSERT(merged.active());
  struct Source {
    uint64_t fingerprint;  // its least that is left
    int cut;
    Cursor cursor;
  };
  std::vector<Source> sources;
  for (const QuotientFilter* input : inputs) {
    Cursor cursor(*input);
    if (cursor.valid()) {
      const int cut = input->bits() - bits;
      sources.push_back({cursor.fingerprint() >> cut, cut, cursor});
    }
  }
  SourceHeap heap([&sources](size_t a, size_t b) {
    const uint64_t left = sources[a].fingerprint, right = sources[b].fingerprint;
    return left != right ? left < right : a < b;
  });
  for (size_t i = 0; i < sources.size(); ++i) {
    heap.add(i);
  }
  heap.order();
  Builder builder(&merged, 0);
  for (uint64_t added = 0; !heap.empty(); ++added) {
    if (ends_at(added, go_on)) {
      return false;
    }
    Source& source = sources[heap.front()];
    builder.add(source.fingerprint);
    source.cursor.next();
    if (source.cursor.valid()) {
      source.fingerprint = source.cursor.fingerprint() >> source.cut;
    }
    heap.front_moved(source.cursor.valid());
  }
  merged.m_entries = entries;
  *result = std::move(merged);
  return true;
}

QuotientFilter::Cursor::Cursor(const QuotientFilter& filter)
    : m_filter(&filter), m_slots(filter.active() ? filter.slots() : 0) {
  settle();
}

void QuotientFilter::Cursor::next() {
  ++m_slot;
  settle();
}

// Goes on to the next slot that is not empty and finds out what is there.
void QuotientFilter::Cursor::settle() {
  const uint64_t* words;
  for (;; m_slot = (m_slot | 63) + 1) {
    if (m_slot >= m_slots) {
      return;
    }
    words = m_filter->group(m_slot);
    const uint64_t used = (words[kOccupied] | words[kContinuation] | words[kShifted]) >> m_slot % kSlotsPerGroup;
    if (used != 0) {
      m_slot += std::countr_zero(used);
      break;
    }
  }
  const uint64_t offset = m_slot % kSlotsPerGroup;
  if ((words[kShifted] >> offset & 1) == 0) {
    m_quotient = m_slot;
  } else if ((words[kContinuation] >> offset & 1) == 0) {
    m_quotient = m_filter->next_occupied(m_quotient + 1);
  }
  m_fingerprint = m_quotient << m_filter->m_remainder_bits | m_filter->remainder_at(m_slot);
}

std::string QuotientFilter::serialized() const {
  std::string out;
  if (!active()) {
    return out;
  }
  out.reserve(kHeaderBytes + m_words.size() * sizeof(uint64_t));
  put_fixed64(&out, m_entries);
  put_fixed32(&out, static_cast<uint32_t>(slots() / kSlotsPerGroup));
  put_fixed8(&out, static_cast<uint8_t>(m_quotient_bits));
  put_fixed8(&out, static_cast<uint8_t>(m_remainder_bits));
  put_fixed16(&out, 0);
  out.append(reinterpret_cast<const char*>(m_words.data()), m_words.size() * sizeof(uint64_t));
  return out;
}

bool QuotientFilter::parse(std::string_view bytes, QuotientFilter* filter) {
  *filter = QuotientFilter();
  if (bytes.empty()) {
    return true;
  }
  uint64_t entries;
  uint32_t groups;
  uint8_t quotient_bits, remainder_bits;
  uint16_t zeros;
  if (!get_fixed64(&bytes, &entries) || !get_fixed32(&bytes, &groups) || !get_fixed8(&bytes, &quotient_bits) ||
      !get_fixed8(&bytes, &remainder_bits) || !get_fixed16(&bytes, &zeros) || zeros != 0 ||
      quotient_bits < kQuotientBitsMin || quotient_bits > kQuotientBitsMax || remainder_bits < 1 ||
      quotient_bits + remainder_bits > kBitsMax) {
    return false;
  }
  QuotientFilter read;
  read.m_entries = entries;
  read.m_quotient_bits = quotient_bits;
  read.m_remainder_bits = remainder_bits;
  if (groups < (uint64_t{1} << quotient_bits) / kSlotsPerGroup ||
      bytes.size() != groups * read.words_per_group() * sizeof(uint64_t)) {
    return false;
  }
  read.m_words.resize(bytes.size() / sizeof(uint64_t));
  bytes.copy(reinterpret_cast<char*>(read.m_words.data()), bytes.size());
  if (!read.is_well_formed()) {
    return false;
  }
  *filter = std::move(read);
  return true;
}

// Is this what Builder would have written for these fingerprints? Everything else in this file relies on it. Asked of
// every filter when a database is opened: most of it is done for 64 slots at a time.
bool QuotientFilter::is_well_formed() const {
  const uint64_t quotients = uint64_t{1} << m_quotient_bits;
  const uint64_t all = slots();
  uint64_t next_quotient = 0;  // not before this one the next run's
  uint64_t entries = 0;
  uint64_t behind_used = 0;  // 1 where the slot before is used
  uint64_t last_remainder = 0;
  for (uint64_t first = 0; first < all; first += kSlotsPerGroup) {
    const uint64_t* const words = group(first);
    const uint64_t continued = words[kContinuation], shifted = words[kShifted];
    const uint64_t used = words[kOccupied] | continued | shifted;
    if ((shifted & ~(used << 1 | behind_used)) != 0 || (continued & ~shifted) != 0) {
      return false;
    }
    behind_used = used >> (kSlotsPerGroup - 1);
    entries += std::popcount(used);
    for (uint64_t starts = used & ~continued; starts != 0; starts &= starts - 1) {
      const int n = std::countr_zero(starts);
      const uint64_t slot = first + n, quotient = next_occupied(next_quotient);
      const bool is_shifted = (shifted >> n & 1) != 0;
      if (quotient > slot || quotient >= quotients || is_shifted == (quotient == slot)) {
        return false;
      }
      next_quotient = quotient + 1;
    }
    uint64_t descends = 0, not_zero = 0;  // bit n: of slot first + n
    for (uint64_t n = 0; n < kSlotsPerGroup; ++n) {
      const uint64_t remainder = remainder_in(words, n);
      descends |= uint64_t{remainder < last_remainder} << n;
      not_zero |= uint64_t{remainder != 0} << n;
      last_remainder = remainder;
    }
    if ((descends & continued) != 0 || (not_zero & ~used) != 0) {
      return false;
    }
  }
  if (next_occupied(next_quotient) != kNone) {
    return false;  // a quotient without a run, or none of the table's
  }
  const bool last_group_is_needed = all == quotients || std::any_of(m_words.end() - words_per_group(), m_words.end(),
                                                                    [](uint64_t word) { return word != 0; });
  return entries == m_entries && last_group_is_needed;
}

}  // namespace vtkv
