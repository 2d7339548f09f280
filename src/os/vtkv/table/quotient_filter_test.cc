// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/table/quotient_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "vtkv/testing/format_page.h"
#include "vtkv/util/hash.h"

namespace vtkv {
namespace {

constexpr double kRate = 0.008;

uint64_t hash_of(uint64_t i) { return hash64("key" + std::to_string(i)); }

std::vector<uint64_t> hashes(uint64_t from, uint64_t to) {
  std::vector<uint64_t> all;
  for (uint64_t i = from; i < to; ++i) {
    all.push_back(hash_of(i));
  }
  return all;
}

QuotientFilter filter_of(std::vector<uint64_t> key_hashes, int bits) {
  return QuotientFilter::build(&key_hashes, bits);
}

std::multiset<uint64_t> contents(const QuotientFilter& filter) {
  std::multiset<uint64_t> all;
  for (QuotientFilter::Cursor cursor(filter); cursor.valid(); cursor.next()) {
    all.insert(cursor.fingerprint());
  }
  return all;
}

double wrong_answers(const QuotientFilter& filter, uint64_t strangers) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < strangers; ++i) {
    wrong += filter.may_contain(mix64(i + (uint64_t{1} << 40)));
  }
  return static_cast<double>(wrong) / static_cast<double>(strangers);
}

// Binomial: what `tries` may differ from the truth by, with one chance in millions that it does not.
double slack(double rate, uint64_t tries) { return 5.5 * std::sqrt(rate * (1 - rate) / static_cast<double>(tries)); }

// The groups of a filter of one group, made as the page says.
std::string group_words(std::vector<uint64_t> fingerprints, int remainder_bits) {
  std::vector<uint64_t> words(3 + remainder_bits);
  std::sort(fingerprints.begin(), fingerprints.end());
  uint64_t next = 0, before = 64;
  for (const uint64_t fingerprint : fingerprints) {
    const uint64_t quotient = fingerprint >> remainder_bits;
    const uint64_t slot = std::max(next, quotient);
    words[0] |= uint64_t{1} << quotient;
    words[1] |= uint64_t{quotient == before} << slot;
    words[2] |= uint64_t{slot != quotient} << slot;
    for (int bit = 0; bit < remainder_bits; ++bit) {
      const uint64_t at = slot * remainder_bits + bit;
      words[3 + at / 64] |= (fingerprint >> bit & 1) << at % 64;
    }
    before = quotient;
    next = slot + 1;
  }
  std::string bytes;
  for (const uint64_t word : words) {
    bytes += raw_bytes(word);
  }
  return bytes;
}

struct FilterExample {
  std::vector<uint64_t> fingerprints;
  int remainder_bits = 0;
};

TEST(QuotientFilter, FilterIsAsOnThePage) {
  const auto encode = [](const FilterExample& it) {
    std::vector<uint64_t> key_hashes;
    for (const uint64_t fingerprint : it.fingerprints) {
      key_hashes.push_back(fingerprint << (58 - it.remainder_bits));
    }
    return QuotientFilter::build(&key_hashes, 6 + it.remainder_bits).serialized();
  };
  const auto decode = [](const std::string& bytes, FilterExample* it) {
    QuotientFilter filter;
    const bool good = QuotientFilter::parse(bytes, &filter);
    const std::multiset<uint64_t> found = contents(filter);
    *it = {{found.begin(), found.end()}, filter.bits() - filter.quotient_bits()};
    return good;
  };
  FormatCheck<FilterExample> check("Filter", encode, decode);
  check.example("filter", {{2 << 4 | 0x5, 2 << 4 | 0xa, 63 << 4 | 0x1}, 4});
  check.derived("fingerprints", [](const FilterExample& it) { return PageValue(it.fingerprints.size()); });
  check.derived("groups", [](const FilterExample&) { return PageValue(1); });
  check.derived("q", [](const FilterExample&) { return PageValue(6); });
  check.derived("r", [](const FilterExample& it) { return PageValue(it.remainder_bits); });
  const FilterExample other{{7, 8, 9, 17 << 5, 17 << 5 | 3, 18 << 5 | 1, 62 << 5}, 5};
  check.part("group words", group_words(other.fingerprints, other.remainder_bits),
             [&](FilterExample& it) { it = other; });
  EXPECT_EQ(check.findings(), "");
}

TEST(QuotientFilter, AgreesWithAMultisetOfFingerprints) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    const int bits = 8 + random() % 14;
    // Few distinct keys: many equal fingerprints, long clusters, clusters that leave the table.
    const uint64_t distinct = 1 + random() % (seed % 2 ? 40 : 3000);
    const uint64_t squeeze = seed % 3 ? 0 : ~uint64_t{0} << 54;  // all at the very end of the table
    QuotientFilter filter(random() % 50, bits);
    ASSERT_TRUE(filter.active());
    std::multiset<uint64_t> model;
    for (int step = 0; step < 1500; ++step) {
      const uint64_t key_hash = hash_of(random() % distinct) | squeeze;
      const uint64_t fingerprint = key_hash >> (64 - bits);
      if (random() % 5 < 3) {
        if (filter.insert(key_hash)) {
          model.insert(fingerprint);
        } else {
          ASSERT_EQ(filter.quotient_bits(), bits - 1);
        }
      } else {
        const auto found = model.find(fingerprint);
        ASSERT_EQ(filter.remove(key_hash), found != model.end());
        if (found != model.end()) {
          model.erase(found);
        }
      }
      const uint64_t probe = hash_of(random() % (2 * distinct)) | squeeze;
      ASSERT_EQ(filter.may_contain(probe), model.contains(probe >> (64 - bits))) << "seed " << seed;
      ASSERT_EQ(filter.entries(), model.size());
      if (step % 100 == 0) {
        ASSERT_EQ(contents(filter), model) << "seed " << seed << " step " << step;
        QuotientFilter again;
        ASSERT_TRUE(QuotientFilter::parse(filter.serialized(), &again)) << "seed " << seed << " step " << step;
      }
    }
    filter.fit(bits);
    ASSERT_EQ(contents(filter), model);
    ASSERT_TRUE(filter.load() >= 0.374 || filter.quotient_bits() == 6);
  }
}

TEST(QuotientFilter, TheCursorGoesUpAndMissesNothing) {
  const auto keys = hashes(0, 20000);
  const QuotientFilter filter = filter_of(keys, 30);
  std::vector<uint64_t> expected, found;
  for (const uint64_t key : keys) {
    expected.push_back(key >> 34);
  }
  std::sort(expected.begin(), expected.end());
  for (QuotientFilter::Cursor cursor(filter); cursor.valid(); cursor.next()) {
    found.push_back(cursor.fingerprint());
  }
  EXPECT_EQ(found, expected);
}

TEST(QuotientFilter, EqualContentsHaveEqualBytesHoweverTheyCameAbout) {
  const auto keys = hashes(0, 700);
  QuotientFilter grown(1, 20);
  for (const uint64_t key : keys) {
    ASSERT_TRUE(grown.insert(key));
  }
  for (const uint64_t key : hashes(700, 760)) {
    ASSERT_TRUE(grown.insert(key));
  }
  for (const uint64_t key : hashes(700, 760)) {
    ASSERT_TRUE(grown.remove(key));
  }
  EXPECT_TRUE(grown.serialized() == filter_of(keys, 20).serialized());
}

TEST(QuotientFilter, AMergeHoldsWhatItsInputsHold) {
  for (const int count : {1, 2, 3, 7}) {
    std::vector<QuotientFilter> filters;
    std::vector<const QuotientFilter*> inputs;
    std::vector<uint64_t> all;
    for (int i = 0; i < count; ++i) {
      // Of different sizes and fingerprints; each shares keys with the one before.
      const auto keys = hashes(i * 1000, i * 1000 + 1500 + i * 300);
      all.insert(all.end(), keys.begin(), keys.end());
      filters.push_back(filter_of(keys, 24 + i % 3));
    }
    for (const auto& filter : filters) {
      inputs.push_back(&filter);
    }
    QuotientFilter merged;
    ASSERT_TRUE(QuotientFilter::merge(inputs, kRate, &merged));
    EXPECT_TRUE(merged.serialized() == filter_of(all, 24).serialized());
    EXPECT_LE(merged.load(), QuotientFilter::kLoadMax);
  }
}

TEST(QuotientFilter, AKeyOfTwoInputsSurvivesOneDeletion) {
  const QuotientFilter a = filter_of(hashes(0, 100), 30), b = filter_of(hashes(50, 150), 30);
  QuotientFilter merged;
  ASSERT_TRUE(QuotientFilter::merge({&a, &b}, kRate, &merged));
  for (uint64_t i = 50; i < 100; ++i) {
    ASSERT_TRUE(merged.remove(hash_of(i)));
    ASSERT_TRUE(merged.may_contain(hash_of(i)));
  }
  EXPECT_EQ(contents(merged), contents(filter_of(hashes(0, 150), 30)));
  ASSERT_TRUE(merged.remove(hash_of(70)));
  EXPECT_FALSE(merged.may_contain(hash_of(70)));
}

TEST(QuotientFilter, FingerprintsThatAreTooShortAreNotMerged) {
  const uint64_t keys = 3000;
  const int enough = QuotientFilter::bits_needed(2 * keys, kRate);
  const QuotientFilter a = filter_of(hashes(0, keys), enough), b = filter_of(hashes(keys, 2 * keys), enough - 1);
  QuotientFilter merged;
  EXPECT_TRUE(QuotientFilter::merge({&a, &a}, kRate, &merged));
  EXPECT_FALSE(QuotientFilter::merge({&a, &b}, kRate, &merged));
  EXPECT_FALSE(merged.active());
  const QuotientFilter none;
  EXPECT_FALSE(QuotientFilter::merge({&a, &none}, kRate, &merged));
}

// The theory: of the 2^p fingerprints at most n are taken.
TEST(QuotientFilter, WrongAnswersAreThoseOfTheory) {
  constexpr uint64_t kStrangers = 400'000;
  for (const uint64_t keys : {3000u, 6000u, 48000u, 49152u, 50000u}) {
    for (int bits = QuotientFilter::bits_needed(keys, kRate); bits < 24; ++bits) {
      const double theory = 1 - std::exp(-static_cast<double>(keys) / static_cast<double>(1 << bits));
      const double found = wrong_answers(filter_of(hashes(0, keys), bits), kStrangers);
      EXPECT_LE(theory, kRate);
      EXPECT_NEAR(found, theory, slack(theory, kStrangers)) << keys << " keys, " << bits << " bits";
    }
  }
}

// Eight flushes merged pairwise, with fingerprints as a tree would choose them, then trimmed and grown.
TEST(QuotientFilter, TheRateHoldsAfterEveryMergeAndGrowth) {
  constexpr uint64_t kStrangers = 200'000;
  const uint64_t each = 40'000;
  const int bits = QuotientFilter::fingerprint_bits(8 * each, kRate);
  std::vector<QuotientFilter> filters;
  for (uint64_t i = 0; i < 8; ++i) {
    filters.push_back(filter_of(hashes(i * each, (i + 1) * each), bits));
  }
  const auto check = [&](const QuotientFilter& filter) {
    const double theory = static_cast<double>(filter.entries()) / std::exp2(filter.bits());
    EXPECT_LE(theory, kRate);
    EXPECT_NEAR(wrong_answers(filter, kStrangers), theory, slack(theory, kStrangers));
    EXPECT_LE(filter.load(), QuotientFilter::kLoadMax);
  };
  while (filters.size() > 1) {
    std::vector<QuotientFilter> next;
    for (size_t i = 0; i < filters.size(); i += 2) {
      check(filters[i]);
      QuotientFilter merged;
      ASSERT_TRUE(QuotientFilter::merge({&filters[i], &filters[i + 1]}, kRate, &merged));
      check(merged);
      next.push_back(std::move(merged));
    }
    filters = std::move(next);
  }
  QuotientFilter& all = filters.front();
  for (uint64_t i = 0; i < 8 * each; ++i) {
    ASSERT_TRUE(all.may_contain(hash_of(i)));
    if (i % 4 != 0) {
      ASSERT_TRUE(all.remove(hash_of(i)));
    }
  }
  all.fit(bits);
  check(all);
  EXPECT_GE(all.load(), 0.375);
  for (uint64_t i = 1; i < 8 * each; i += 4) {  // moves a bit into the quotient, and changes no answer
    ASSERT_TRUE(all.insert(hash_of(i)));
  }
  check(all);
}

TEST(QuotientFilter, MemoryStaysWithinItsBounds) {
  for (uint64_t keys = 1 << 16; keys < 1 << 21; keys += keys / 16) {
    const int bits = QuotientFilter::fingerprint_bits(keys, kRate);
    const QuotientFilter filter(keys, bits);
    const double per_key = static_cast<double>(filter.memory_bytes()) / static_cast<double>(keys);
    EXPECT_LE(per_key, 3.4) << keys;
    const double load = static_cast<double>(keys) / static_cast<double>(uint64_t{1} << filter.quotient_bits());
    EXPECT_LE(per_key * load / 0.75, 2.0) << keys;
  }
}

TEST(QuotientFilter, SurvivesBeingStored) {
  for (const uint64_t keys : {0u, 1u, 100u, 5000u}) {
    const QuotientFilter filter = filter_of(hashes(0, keys), 26);
    QuotientFilter again;
    ASSERT_TRUE(QuotientFilter::parse(filter.serialized(), &again));
    EXPECT_TRUE(again.serialized() == filter.serialized());
    EXPECT_EQ(again.entries(), keys);
    EXPECT_EQ(again.may_contain(hash_of(1)), keys > 1);
  }
}

TEST(QuotientFilter, WithoutFingerprintsItSaysMay) {
  QuotientFilter none;
  EXPECT_TRUE(none.may_contain(1));
  EXPECT_TRUE(none.insert(1));
  EXPECT_TRUE(none.remove(2));
  none.fit(10);
  EXPECT_EQ(none.serialized(), "");
  QuotientFilter again;
  ASSERT_TRUE(QuotientFilter::parse("", &again));
  EXPECT_TRUE(again.may_contain(1));
  EXPECT_FALSE(QuotientFilter(1000, 10).active());
  EXPECT_FALSE(QuotientFilter(1000, 64).active());
}

// Whatever parse() lets through can be used without reading outside, and is what its fingerprints make.
TEST(QuotientFilter, HostileBytesAreRefusedOrHarmless) {
  std::mt19937_64 random(7);
  std::vector<uint64_t> at_the_end;  // of a table of 128 slots: the cluster goes on behind it
  for (uint64_t i = 0; i < 90; ++i) {
    at_the_end.push_back(~(random() >> 4));
  }
  const std::string good[] = {filter_of(hashes(0, 90), 14).serialized(), filter_of(hashes(0, 380), 10).serialized(),
                              filter_of(at_the_end, 14).serialized()};
  ASSERT_GT(good[2].size(), good[0].size());
  int refused = 0;
  for (int i = 0; i < 30000; ++i) {
    std::string bytes = good[i % std::size(good)];
    for (uint64_t n = 1 + random() % 3; n > 0; --n) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    }
    if (random() % 8 == 0) {
      bytes.resize(random() % (bytes.size() + 40));
    }
    QuotientFilter filter;
    if (!QuotientFilter::parse(bytes, &filter)) {
      ++refused;
      continue;
    }
    if (!filter.active()) {
      continue;
    }
    std::vector<uint64_t> fingerprints;
    for (QuotientFilter::Cursor cursor(filter); cursor.valid(); cursor.next()) {
      fingerprints.push_back(cursor.fingerprint() << (64 - filter.bits()));
    }
    ASSERT_EQ(fingerprints.size(), filter.entries());
    for (uint64_t probe = 0; probe < 256; ++probe) {
      (void)filter.may_contain(probe << 56 | random() >> 8);
    }
    if (filter_of(fingerprints, filter.bits()).quotient_bits() == filter.quotient_bits()) {
      ASSERT_TRUE(filter_of(fingerprints, filter.bits()).serialized() == bytes);
    }
  }
  EXPECT_GT(refused, 22000);
}

TEST(QuotientFilter, EveryLengthIsChecked) {
  const std::string good = filter_of(hashes(0, 90), 14).serialized();
  QuotientFilter filter;
  for (size_t length = 1; length < good.size(); ++length) {
    ASSERT_FALSE(QuotientFilter::parse(std::string_view(good).substr(0, length), &filter)) << length;
  }
  EXPECT_FALSE(QuotientFilter::parse(good + std::string(1, '\0'), &filter));
  EXPECT_TRUE(QuotientFilter::parse(good, &filter));
}

TEST(QuotientFilter, MergeRefusesMoreThanATableHolds) {
  const QuotientFilter a = filter_of(hashes(0, 100), 40), b = filter_of(hashes(100, 300), 40);
  QuotientFilter merged;
  ASSERT_TRUE(QuotientFilter::merge({&a, &b}, 1, &merged, 9));  // 300 in 512 slots
  EXPECT_EQ(merged.entries(), 300u);
  EXPECT_FALSE(QuotientFilter::merge({&a, &b}, 1, &merged, 8));
  EXPECT_FALSE(merged.active());
}

TEST(QuotientFilter, MergingAndFittingEndWhenTheyAreTold) {
  const QuotientFilter a = filter_of(hashes(0, 200'000), 40), b = filter_of(hashes(200'000, 400'000), 40);
  int left = 0;
  const auto go_on = [&left] { return left-- > 0; };
  QuotientFilter merged;
  for (const int calls : {0, 3}) {
    left = calls;
    EXPECT_FALSE(QuotientFilter::merge({&a, &b}, 1, &merged, QuotientFilter::kQuotientBitsMax, go_on));
    EXPECT_FALSE(merged.active());
  }
  left = 100;
  ASSERT_TRUE(QuotientFilter::merge({&a, &b}, 1, &merged, QuotientFilter::kQuotientBitsMax, go_on));
  const auto whole = contents(merged);
  left = 3;
  merged.fit(30, go_on);
  EXPECT_EQ(merged.bits(), 40);
  EXPECT_TRUE(contents(merged) == whole);
  left = 100;
  merged.fit(30, go_on);
  EXPECT_EQ(merged.bits(), 30);
}

TEST(QuotientFilter, BitsForAnyNumberOfEntriesAreFound) {
  const uint64_t most = uint64_t{3} << 34;  // 0.75 * 2^36
  EXPECT_EQ(QuotientFilter::bits_needed(most, 1), QuotientFilter::kQuotientBitsMax + 1);
  for (const uint64_t entries : {most + 1, uint64_t{1} << 62, uint64_t{7} << 61, UINT64_MAX}) {
    EXPECT_GT(QuotientFilter::bits_needed(entries, 1), QuotientFilter::kQuotientBitsMax + 1);
    EXPECT_FALSE(QuotientFilter(entries, 50).active());
  }
}

}  // namespace
}  // namespace vtkv
