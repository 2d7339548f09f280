// SPDX-License-Identifier: LGPL-2.1-or-later
// Says of a key that a run certainly does not hold it, or that it may: the quotient filter of Bender et
// al. ("Don't Thrash: How to Cache Your Hash on Flash", VLDB 2012), as the VT-tree (FAST '13, 3.3) uses it:
// filters of several runs become the filter of their merge without any key being read.
//
// A key's fingerprint is the first p = q + r bits of its hash64: q of them, the quotient, say where in a
// table of 2^q slots it belongs; the other r, the remainder, are stored. The filter is a multiset of
// fingerprints, one per entry of its run, so that a key that two merged runs hold survives the deletion of
// one of the two.
//
// What decides about errors is p alone: n fingerprints of p bits wrongly say "may" to n / 2^p of all keys.
// Moving a bit from remainder to quotient doubles the table and changes no answer; merging adds up the
// errors. So p has to suffice for the greatest run that the fingerprints can get into: fingerprint_bits().
// A longer fingerprint can be cut, a shorter one cannot be made longer without its key: then merge() says
// no, and the filters that are too short must be built again from their keys.
//
// Layout: groups of 64 slots, 3 + r words of 64 bits each: the occupied, continuation and shifted bits of the
// slots (as the paper defines them), then the remainders, r bits each. The table does not wrap around: a last
// cluster that leaves the 2^q slots goes on in groups behind them. Remainders of one quotient are in ascending
// order, so equal multisets with equal p and q have equal bytes.
//
// Memory: (3 + r) / 8 bytes per slot, loads from 0.375 to 0.75. At a rate of 0.008: 1.67 or 1.83 bytes per
// entry at load 0.75, at most 3.33 at the lowest load, for a run that is not far smaller than the tree.
//
// Immutable or owned by one thread while it changes; const functions are thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace vtkv {

class QuotientFilter {
 public:
  static constexpr double kLoadMax = 0.75;
  static constexpr int kQuotientBitsMax = 36;  // of a table: 5 * 10^10 entries

  // The least p that keeps `keys` fingerprints below `rate` wrong answers.
  static int bits_needed(uint64_t keys, double rate);
  // The p to give to new filters while the tree holds that many entries: enough for all of them in one run,
  // with a bit of headroom for growth where the memory bound above has room for it.
  static int fingerprint_bits(uint64_t tree_entries, double rate);

  QuotientFilter() = default;  // says "may" to everything, whatever is done to it
  // Empty, sized for `expected` entries. Inactive for p out of range: see kBitsMax.
  QuotientFilter(uint64_t expected, int bits);
  // Asked now and then by what takes long; false: it ends.
  using GoOn = std::function<bool()>;

  // Of these hashes; puts them in order.
  static QuotientFilter build(std::vector<uint64_t>* key_hashes, int bits);
  // Everything that the inputs hold, with the shortest of their fingerprints, sized for the sum; linear, written
  // from front to back. False, and an inactive filter, when an input is inactive, the fingerprints are
  // shorter than bits_needed(sum, rate), the sum is too large for a table of 2^`quotient_bits_max` slots, or `go_on`
  // says so.
  [[nodiscard]] static bool merge(const std::vector<const QuotientFilter*>& inputs, double rate, QuotientFilter* result,
                                  int quotient_bits_max = kQuotientBitsMax, const GoOn& go_on = {});

  bool active() const { return !m_words.empty(); }
  uint64_t entries() const { return m_entries; }
  int bits() const { return m_quotient_bits + m_remainder_bits; }
  int quotient_bits() const { return m_quotient_bits; }
  double load() const { return static_cast<double>(m_entries) / (uint64_t{1} << m_quotient_bits); }
  size_t memory_bytes() const { return m_words.capacity() * sizeof(uint64_t); }

  bool may_contain(uint64_t key_hash) const;
  // Grows the table beyond load 0.75. False: the fingerprint is too short for a larger table, nothing was
  // inserted, and the filter has to be built again from keys.
  [[nodiscard]] bool insert(uint64_t key_hash);
  // One entry of this key. REQUIRES: the run had one (another key's fingerprint would go in its place).
  // False: there was no such fingerprint.
  bool remove(uint64_t key_hash);
  // After many deletions: halves the table, by moving bits back to the remainders, while its load is below
  // 0.375, and cuts fingerprints to `bits` when they are longer. Unchanged when `go_on` says so.
  void fit(int bits, const GoOn& go_on = {});

  // The fingerprints in ascending order. The filter outlives the cursor and does not change.
  class Cursor {
   public:
    explicit Cursor(const QuotientFilter& filter);
    bool valid() const { return m_slot < m_slots; }
    uint64_t fingerprint() const { return m_fingerprint; }
    void next();

   private:
    void settle();

    const QuotientFilter* m_filter;
    uint64_t m_slots;
    uint64_t m_slot = 0;
    uint64_t m_quotient = 0;
    uint64_t m_fingerprint = 0;
  };

  // Its bytes on disk: doc/on_disk_format.md, "Filter". Nothing at all for an inactive filter.
  std::string serialized() const;
  // False when no filter has these bytes. Every bit is checked: nothing is assumed of them.
  [[nodiscard]] static bool parse(std::string_view bytes, QuotientFilter* filter);

 private:
  static constexpr int kQuotientBitsMin = 6;  // one group
  static constexpr int kBitsMax = 60;

  class Builder;
  struct Region;

  uint64_t slots() const;
  size_t words_per_group() const { return 3 + m_remainder_bits; }
  const uint64_t* group(uint64_t slot) const { return m_words.data() + slot / 64 * words_per_group(); }
  uint64_t* group(uint64_t slot) { return m_words.data() + slot / 64 * words_per_group(); }
  bool bit(int plane, uint64_t slot) const { return group(slot)[plane] >> slot % 64 & 1; }
  bool empty_at(uint64_t slot) const;
  // The first quotient with a run, from this one on; UINT64_MAX: there is none.
  uint64_t next_occupied(uint64_t from) const;
  uint64_t remainder_in(const uint64_t* words, uint64_t n) const;
  uint64_t remainder_at(uint64_t slot) const;
  void set_remainder(uint64_t slot, uint64_t remainder);
  uint64_t fingerprint_of(uint64_t key_hash) const { return key_hash >> (64 - bits()); }
  uint64_t cluster_start(uint64_t slot) const;
  uint64_t run_start(uint64_t quotient) const;
  // An empty table.
  void make_table(int quotient_bits, int bits);
  void reshape(int quotient_bits, int bits, const GoOn& go_on = {});
  bool is_well_formed() const;

  int m_quotient_bits = 0;
  int m_remainder_bits = 0;
  uint64_t m_entries = 0;
  std::vector<uint64_t> m_words;
};

}  // namespace vtkv
