// SPDX-License-Identifier: LGPL-2.1-or-later
// Iterators of the key-value store against a sorted map: every direction, every bound, through reopening,
// flushes and compactions.

#include "vtkv/ceph/store_iterator.h"

#include <random>

#include "vtkv/ceph/store_fixture.h"

namespace vtkv {
namespace {

using Name = std::pair<std::string, std::string>;  // prefix, key
using Model = std::map<Name, std::string>;

class StoreIteratorTest : public VtkvStoreFixture {
 protected:
  void fill(const std::string& prefix, int from, int to) {
    auto transaction = m_store->get_transaction();
    for (int i = from; i < to; ++i) {
      transaction->set(prefix, number(i), list("v" + number(i)));
    }
    ASSERT_EQ(m_store->submit_transaction_sync(transaction), 0);
  }
  static std::string number(int i) {
    std::string digits = std::to_string(i);
    return std::string(5 - digits.size(), '0') + digits;
  }
  static std::string forward(KeyValueDB::Iterator iterator) {
    std::string all;
    for (; iterator->valid(); iterator->next()) {
      all += iterator->key() + " ";
    }
    EXPECT_EQ(iterator->status(), 0);
    return all;
  }
  static std::string backward(KeyValueDB::Iterator iterator) {
    std::string all;
    for (; iterator->valid(); iterator->prev()) {
      all += iterator->key() + " ";
    }
    EXPECT_EQ(iterator->status(), 0);
    return all;
  }
  KeyValueDB::Iterator bounded(std::optional<std::string> lower, std::optional<std::string> upper) {
    return m_store->get_iterator("p", 0, {std::move(lower), std::move(upper)});
  }
  uint64_t block_reads() {
    uint64_t hits = 0, misses = 0;
    EXPECT_TRUE(m_store->get_property("vtkv.block_cache_hits", &hits));
    EXPECT_TRUE(m_store->get_property("vtkv.block_cache_misses", &misses));
    return hits + misses;
  }
};

TEST_F(StoreIteratorTest, APrefixEndsWhereTheNextBegins) {
  create();
  for (const char* prefix : {"o", "p", "p\x01", "pa", "q"}) {
    fill(prefix, 1, 4);
  }
  for (int round = 0; round < 2; ++round) {
    auto iterator = m_store->get_iterator("p");
    EXPECT_EQ(iterator->seek_to_first(), 0);
    EXPECT_EQ(forward(iterator), "00001 00002 00003 ");
    EXPECT_EQ(iterator->seek_to_last(), 0);
    EXPECT_EQ(iterator->raw_key(), Name("p", "00003"));
    EXPECT_EQ(iterator->value().to_str(), "v00003");
    const ceph::buffer::ptr value = iterator->value_as_ptr();
    EXPECT_EQ(std::string(value.c_str(), value.length()), "v00003");
    EXPECT_EQ(backward(iterator), "00003 00002 00001 ");
    EXPECT_EQ(iterator->prev(), 0);  // ended: stays so
    EXPECT_FALSE(iterator->valid());
    m_store->compact();
  }
}

TEST_F(StoreIteratorTest, BoundsHoldInBothDirections) {
  create();
  fill("p", 0, 10);
  auto iterator = bounded("00003", "00006");
  iterator->seek_to_first();
  EXPECT_EQ(forward(iterator), "00003 00004 00005 ");
  iterator->seek_to_last();
  EXPECT_EQ(backward(iterator), "00005 00004 00003 ");
  iterator->lower_bound("00000");
  EXPECT_EQ(iterator->key(), "00003");
  iterator->lower_bound("00005");
  EXPECT_EQ(iterator->key(), "00005");
  iterator->lower_bound("00006");
  EXPECT_FALSE(iterator->valid());
  iterator->upper_bound("00002");
  EXPECT_EQ(iterator->key(), "00003");
  iterator->upper_bound("00003");
  EXPECT_EQ(iterator->key(), "00004");
  iterator->upper_bound("00005");
  EXPECT_FALSE(iterator->valid());
  auto from = bounded("00008", std::nullopt);
  from->seek_to_first();
  EXPECT_EQ(forward(from), "00008 00009 ");
  auto until = bounded(std::nullopt, "00002");
  until->seek_to_last();
  EXPECT_EQ(backward(until), "00001 00000 ");
  auto nothing = bounded("00006", "00003");
  nothing->seek_to_first();
  EXPECT_FALSE(nothing->valid());
  nothing->seek_to_last();
  EXPECT_FALSE(nothing->valid());
}

TEST_F(StoreIteratorTest, TurningAroundInTheMiddle) {
  create();
  fill("p", 0, 6);
  m_store->compact();
  fill("p", 3, 9);
  auto iterator = bounded("00001", "00008");
  iterator->lower_bound("00004");
  iterator->prev();
  EXPECT_EQ(iterator->key(), "00003");
  iterator->next();
  EXPECT_EQ(iterator->key(), "00004");
  iterator->next();
  iterator->prev();
  EXPECT_EQ(iterator->key(), "00004");
  iterator->upper_bound("00006");
  EXPECT_EQ(iterator->key(), "00007");
  iterator->next();
  EXPECT_FALSE(iterator->valid());
}

TEST_F(StoreIteratorTest, KeepsItsStateWhileRangesAreRemoved) {
  create();
  fill("p", 0, 6);
  m_store->compact();
  auto iterator = m_store->get_iterator("p");
  iterator->seek_to_first();
  iterator->next();
  auto transaction = m_store->get_transaction();
  transaction->rm_range_keys("p", "00000", "00004");
  transaction->set("p", "00002x", list("new"));
  ASSERT_EQ(m_store->submit_transaction_sync(transaction), 0);
  m_store->compact();
  transaction = m_store->get_transaction();
  transaction->rmkeys_by_prefix("p");
  ASSERT_EQ(m_store->submit_transaction_sync(transaction), 0);
  m_store->compact();
  EXPECT_EQ(forward(iterator), "00001 00002 00003 00004 00005 ");
  iterator->seek_to_last();
  EXPECT_EQ(backward(iterator), "00005 00004 00003 00002 00001 00000 ");
  auto later = m_store->get_iterator("p");
  later->seek_to_first();
  EXPECT_FALSE(later->valid());
}

// Ten thousand tombstones right behind, and right before, the prefix: a walk over the prefix reads the few
// blocks of the prefix, in either direction.
TEST_F(StoreIteratorTest, TombstonesElsewhereCostNothing) {
  create();
  for (const char* prefix : {"o", "p", "q"}) {
    fill(prefix, 0, *prefix == 'p' ? 10 : 5000);
  }
  m_store->compact();
  for (const char* prefix : {"o", "q"}) {
    auto transaction = m_store->get_transaction();
    for (int i = 0; i < 5000; ++i) {
      transaction->rmkey(prefix, number(i));
    }
    ASSERT_EQ(m_store->submit_transaction_sync(transaction), 0);
  }
  const uint64_t before = block_reads();
  auto iterator = m_store->get_iterator("p");
  iterator->seek_to_first();
  EXPECT_EQ(forward(iterator).size(), 10u * 6);
  iterator->seek_to_last();
  EXPECT_EQ(backward(iterator).size(), 10u * 6);
  EXPECT_LT(block_reads() - before, 30u);
}

// Ceph calls these since Tentacle.
TEST_F(StoreIteratorTest, ViewsAreOfWhatTheCopiesAreOf) {
  create();
  fill("a", 1, 2);
  fill("b", 2, 3);
  const auto of_prefix = m_store->get_iterator("b");
  auto& prefix = dynamic_cast<PrefixIterator&>(*of_prefix);
  prefix.seek_to_first();
  EXPECT_EQ(prefix.key_as_sv(), "00002");
  EXPECT_EQ(prefix.value_as_sv(), "v00002");
  EXPECT_EQ(Name(prefix.raw_key_as_sv()), Name("b", "00002"));
  const auto of_all = m_store->get_wholespace_iterator();
  auto& all = dynamic_cast<WholeSpaceIterator&>(*of_all);
  all.seek_to_first();
  EXPECT_EQ(Name(all.raw_key_as_sv()), Name("a", "00001"));
  all.next();
  EXPECT_EQ(all.key_as_sv(), "00002");
  EXPECT_EQ(all.value_as_sv(), "v00002");
  EXPECT_EQ(Name(all.raw_key_as_sv()), Name("b", "00002"));
}

TEST_F(StoreIteratorTest, EmptyPrefixIsEverything) {
  create();
  fill("a", 1, 2);
  fill("b", 2, 3);
  auto iterator = m_store->get_iterator("");
  iterator->seek_to_first();
  EXPECT_EQ(forward(iterator), "00001 00002 ");
  iterator->seek_to_last();
  EXPECT_EQ(iterator->raw_key(), Name("b", "00002"));
}

// --- against a model ----------------------------------------------------------------------------------------

class StoreModelTest : public StoreIteratorTest, public testing::WithParamInterface<int> {
 protected:
  static constexpr const char* kPrefixes[] = {"A", "AB", "B", "M", "\xff"};

  std::string any_prefix() { return kPrefixes[m_random() % std::size(kPrefixes)]; }
  std::string any_key() {
    static const std::string alphabet(
        "\x00"
        "k\xff",
        3);
    std::string key;
    for (size_t bytes = m_random() % 4; key.size() < bytes;) {
      key.push_back(alphabet[m_random() % alphabet.size()]);
    }
    return key;
  }
  void remove_range(const std::string& prefix, const std::string& start, const std::string& end) {
    if (start < end) {
      m_model.erase(m_model.lower_bound({prefix, start}), m_model.lower_bound({prefix, end}));
    }
  }
  void merge(const Name& name, const std::string& operand) {
    const auto [at, fresh] = m_model.try_emplace(name, "new:" + operand);
    if (!fresh) {
      at->second += "," + operand;
    }
  }
  void one_operation(KeyValueDB::Transaction& transaction) {
    const std::string prefix = any_prefix(), key = any_key();
    const uint32_t choice = m_random() % 100;
    if (choice < 50) {
      const std::string value = std::to_string(m_random());
      transaction->set(prefix, key, list(value));
      m_model[{prefix, key}] = value;
    } else if (choice < 65) {
      transaction->merge("M", key, list(std::to_string(choice)));
      merge({"M", key}, std::to_string(choice));
    } else if (choice < 85) {
      transaction->rmkey(prefix, key);
      m_model.erase({prefix, key});
    } else if (choice < 96) {
      const std::string end = any_key();
      transaction->rm_range_keys(prefix, key, end);
      remove_range(prefix, key, end);
    } else {
      transaction->rmkeys_by_prefix(prefix);
      std::erase_if(m_model, [&](const auto& entry) { return entry.first.first == prefix; });
    }
  }
  void one_transaction() {
    auto transaction = m_store->get_transaction();
    for (uint32_t operations = 1 + m_random() % 8; operations > 0; --operations) {
      one_operation(transaction);
    }
    ASSERT_EQ(
        m_random() % 4 == 0 ? m_store->submit_transaction_sync(transaction) : m_store->submit_transaction(transaction),
        0);
  }
  // Names in the model from `at` on, forward and backward, must be what the iterator finds.
  template <typename It>
  void expect_at(It& iterator, Model::const_iterator at, Model::const_iterator end) {
    ASSERT_EQ(iterator->valid(), at != end);
    if (at != end) {
      ASSERT_EQ(iterator->raw_key(), at->first);
      ASSERT_EQ(iterator->value().to_str(), at->second);
    }
  }
  void check_whole_space() {
    auto iterator = m_store->get_wholespace_iterator();
    ASSERT_EQ(iterator->seek_to_first(), 0);
    for (auto at = m_model.begin();; ++at) {
      expect_at(iterator, at, m_model.end());
      if (at == m_model.end()) {
        break;
      }
      iterator->next();
    }
    ASSERT_EQ(iterator->seek_to_last(), 0);
    for (auto at = m_model.end(); at != m_model.begin();) {
      --at;
      expect_at(iterator, at, m_model.end());
      iterator->prev();
    }
    ASSERT_FALSE(iterator->valid());
    for (int i = 0; i < 10; ++i) {
      const Name name{any_prefix(), any_key()};
      iterator->lower_bound(name.first, name.second);
      expect_at(iterator, m_model.lower_bound(name), m_model.end());
      iterator->upper_bound(name.first, name.second);
      expect_at(iterator, m_model.upper_bound(name), m_model.end());
      iterator->seek_to_first(name.first);
      expect_at(iterator, m_model.lower_bound({name.first, ""}), m_model.end());
      iterator->seek_to_last(name.first);
      const auto behind = m_model.lower_bound({name.first + std::string(1, '\0'), ""});
      expect_at(iterator, behind == m_model.begin() ? m_model.end() : std::prev(behind), m_model.end());
    }
  }
  void check_prefix(const std::string& prefix) {
    Model part;
    const std::string lower = any_key(), upper = any_key();
    const bool has_lower = m_random() % 2, has_upper = m_random() % 2;
    for (const auto& [name, value] : m_model) {
      if (name.first == prefix && (!has_lower || name.second >= lower) && (!has_upper || name.second < upper)) {
        part.emplace(name, value);
      }
    }
    auto iterator = m_store->get_iterator(
        prefix, 0, {has_lower ? std::optional(lower) : std::nullopt, has_upper ? std::optional(upper) : std::nullopt});
    const Name to{prefix, any_key()};
    iterator->lower_bound(to.second);
    expect_at(iterator, part.lower_bound(to), part.end());
    iterator->upper_bound(to.second);
    expect_at(iterator, part.upper_bound(to), part.end());
    iterator->seek_to_first();
    for (auto at = part.begin(); at != part.end(); ++at, iterator->next()) {
      expect_at(iterator, at, part.end());
    }
    ASSERT_FALSE(iterator->valid());
    iterator->seek_to_last();
    for (auto at = part.rbegin(); at != part.rend(); ++at, iterator->prev()) {
      expect_at(iterator, std::prev(at.base()), part.end());
    }
    ASSERT_FALSE(iterator->valid());
  }

  std::mt19937 m_random{static_cast<uint32_t>(GetParam())};
  Model m_model;
};

TEST_P(StoreModelTest, Agrees) {
  create();
  for (int round = 0; round < 60 && !HasFatalFailure(); ++round) {
    for (int i = 0; i < 10; ++i) {
      one_transaction();
    }
    if (m_random() % 8 == 0) {
      m_store->compact();
    }
    if (m_random() % 12 == 0) {
      reopen();
    }
    check_whole_space();
    check_prefix(any_prefix());
    const Name name{any_prefix(), any_key()};
    const auto found = m_model.find(name);
    ASSERT_EQ(get(name.first, name.second), found == m_model.end() ? "none" : found->second);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, StoreModelTest, testing::Range(1, 6));

}  // namespace
}  // namespace vtkv
