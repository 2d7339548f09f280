// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/mem/entry_list.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace vtkv {
namespace {

// Key and sequence, in the list's order.
struct Order {
  bool operator()(const std::pair<std::string, SequenceNumber>& a,
                  const std::pair<std::string, SequenceNumber>& b) const {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  }
};
using Model = std::map<std::pair<std::string, SequenceNumber>, std::string, Order>;

std::vector<std::string> shuffled(std::vector<std::string> keys) {
  std::shuffle(keys.begin(), keys.end(), std::mt19937_64(3));
  return keys;
}

std::vector<std::string> ascending(size_t count, const std::string& prefix) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < count; ++i) {
    const std::string digits = std::to_string(i);
    keys.push_back(prefix + std::string(12 - digits.size(), '0') + digits);
  }
  return keys;
}

std::vector<std::string> reversed(std::vector<std::string> keys) {
  std::reverse(keys.begin(), keys.end());
  return keys;
}

// Keys that end in zeros, begin with one another, or differ in one of many bytes only.
std::vector<std::string> awkward(size_t count) {
  std::mt19937_64 random(11);
  std::vector<std::string> keys;
  for (size_t i = 0; i < count; ++i) {
    std::string key(random() % 40, random() % 2 ? '\0' : 'k');
    if (!key.empty()) {
      key[random() % key.size()] = static_cast<char>(random() % 3 * 127);
    }
    keys.push_back(key);
  }
  return keys;
}

// Several ascending runs at once, as the logs of placement groups are.
std::vector<std::string> interleaved(size_t count, size_t runs) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < count; ++i) {
    keys.push_back(ascending(i / runs + 1, "a long prefix of log " + std::to_string(i % runs) + " ").back());
  }
  return keys;
}

// Group after group, each between others. A node that a group fills comes to skip what its keys share; beside it they
// compare otherwise than behind it, so a search that mixes the two errs.
std::vector<std::string> grouped(size_t groups, size_t each) {
  std::vector<std::string> keys;
  for (const std::string& group : shuffled(ascending(groups, ""))) {
    for (std::string own : shuffled(ascending(each, ""))) {
      std::transform(own.begin(), own.end(), own.begin(), [](char digit) { return digit - '0' + 'a'; });
      keys.push_back(group.substr(6) + own);
    }
  }
  return keys;
}

// Made by each test for itself: a parameter is printed by every run of the program.
struct Keys {
  const char* name;
  std::vector<std::string> (*make)();
};

void PrintTo(const Keys& keys, std::ostream* out) { *out << keys.name; }

class EntryListTest : public testing::TestWithParam<Keys> {
 protected:
  void fill() {
    SequenceNumber sequence = 0;
    for (const std::string& key : keys) {
      const std::string value = std::to_string(++sequence);
      list.insert({key, sequence, EntryType::value, value});
      model[{key, sequence}] = value;
    }
  }

  void expect(const EntryList::Node* node, Model::const_iterator expected) {
    ASSERT_EQ(node != nullptr, expected != model.end());
    if (node) {
      const Entry entry = EntryList::entry_of(node);
      EXPECT_EQ(entry.key, expected->first.first);
      EXPECT_EQ(entry.sequence, expected->first.second);
      EXPECT_EQ(entry.value, expected->second);
    }
  }

  const std::vector<std::string> keys = GetParam().make();
  Arena arena;
  EntryList list{&arena};
  Model model;
};

TEST_P(EntryListTest, FindsEachEntryAndWalksBothWays) {
  fill();
  expect(list.last(), std::prev(model.end()));
  const EntryList::Node* node = list.first();
  const EntryList::Node* before = nullptr;
  for (auto expected = model.begin(); expected != model.end(); ++expected) {
    expect(node, expected);
    EXPECT_EQ(list.previous(node), before);
    const auto& [key, sequence] = expected->first;
    EXPECT_EQ(list.find(key, sequence), node);
    expect(list.find(key, UINT64_MAX), model.lower_bound({key, UINT64_MAX}));
    expect(list.find(key, sequence - 1), std::next(expected));
    expect(list.find(key + '\0', UINT64_MAX), model.lower_bound({key + '\0', UINT64_MAX}));
    before = node;
    node = EntryList::next(node);
  }
  EXPECT_EQ(node, nullptr);
}

TEST_P(EntryListTest, FindsAnEntryOnceItIsIn) {
  SequenceNumber sequence = 0;
  for (const std::string& key : keys) {
    list.insert({key, ++sequence, EntryType::value, {}});
    const EntryList::Node* node = list.find(key, sequence);
    ASSERT_NE(node, nullptr);
    ASSERT_EQ(EntryList::entry_of(node).key, key);
    ASSERT_EQ(EntryList::entry_of(node).sequence, sequence);
  }
}

// What a reader saw stays found, in order, while the writer changes and splits the nodes that lead there.
TEST_P(EntryListTest, ReadersFindWhatIsInBesideTheWriter) {
  constexpr size_t kNewest = 16;
  std::atomic<size_t> in{0};
  std::atomic<bool> wrong{false};
  const auto read = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    while (in < keys.size() && !wrong) {
      const size_t seen = in;
      if (seen == 0) {
        continue;
      }
      const size_t i = seen - 1 - random() % std::min(seen, kNewest);
      const EntryList::Node* node = list.find(keys[i], i + 1);
      if (!node || EntryList::entry_of(node).key != keys[i] || EntryList::entry_of(node).sequence != i + 1) {
        wrong = true;
        continue;
      }
      const EntryList::Node* previous = list.previous(node);
      if (previous && EntryList::entry_of(previous).key > keys[i]) {
        wrong = true;
      }
    }
  };
  std::thread first(read, 1), second(read, 2);
  for (size_t i = 0; i < keys.size(); ++i) {
    list.insert({keys[i], i + 1, EntryType::value, {}});
    in = i + 1;
  }
  first.join();
  second.join();
  EXPECT_FALSE(wrong);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EntryListTest,
                         testing::Values(Keys{"Shuffled", [] { return shuffled(ascending(20000, "")); }},
                                         Keys{"Ascending", [] { return ascending(5000, "prefix"); }},
                                         Keys{"Descending", [] { return reversed(ascending(5000, "")); }},
                                         Keys{"Awkward", [] { return awkward(5000); }},
                                         Keys{"Interleaved", [] { return interleaved(6000, 7); }},
                                         Keys{"Grouped", [] { return grouped(12000, 24); }},
                                         Keys{"OneKey", [] { return std::vector<std::string>(300, "the same key"); }}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(EntryList, VersionsOfAKeyComeInAnyOrder) {
  std::vector<std::pair<std::string, SequenceNumber>> versions;
  for (const std::string& key : ascending(20, "key")) {
    for (SequenceNumber sequence = 1; sequence <= 100; ++sequence) {
      versions.emplace_back(key, sequence);
    }
  }
  std::mt19937_64 random(1);
  for (const size_t sorted : {versions.size(), versions.size() / 2, size_t{0}}) {
    std::stable_sort(versions.begin(), versions.end(),
                     [](const auto& a, const auto& b) { return a.second < b.second; });
    std::shuffle(versions.begin() + static_cast<ptrdiff_t>(sorted), versions.end(), random);
    Arena arena;
    EntryList list(&arena);
    std::set<std::pair<std::string, SequenceNumber>, Order> in;
    for (const auto& [key, sequence] : versions) {
      list.insert({key, sequence, EntryType::value, {}});
      in.emplace(key, sequence);
      const EntryList::Node* const newest = list.find(key, UINT64_MAX >> 8);
      ASSERT_NE(newest, nullptr);
      EXPECT_EQ(EntryList::entry_of(newest).sequence, in.lower_bound({key, UINT64_MAX})->second);
    }
    const EntryList::Node* node = list.first();
    const EntryList::Node* before = nullptr;
    for (const auto& [key, sequence] : in) {
      ASSERT_NE(node, nullptr);
      EXPECT_EQ(EntryList::entry_of(node).key, key);
      EXPECT_EQ(EntryList::entry_of(node).sequence, sequence);
      EXPECT_EQ(list.find(key, sequence), node);
      EXPECT_EQ(list.previous(node), before);
      before = node;
      node = EntryList::next(node);
    }
    EXPECT_EQ(node, nullptr);
  }
}

TEST(EntryList, WhatIsWrittenOverAndOverTakesHardlyMoreThanItsEntries) {
  Arena arena;
  EntryList list(&arena);
  constexpr size_t kVersions = 20000;
  for (SequenceNumber sequence = 1; sequence <= kVersions; ++sequence) {
    list.insert({"a key", sequence, EntryType::value, {}});
  }
  EXPECT_LT(arena.memory_bytes() / kVersions, 48u) << "32 are the entry's";
}

TEST(EntryList, TakesLessThanFiftyBytesForAnEntrysLinks) {
  for (const auto& keys : {shuffled(ascending(20000, "")), ascending(20000, ""), reversed(ascending(20000, ""))}) {
    Arena arena;
    EntryList list(&arena);
    for (const std::string& key : keys) {
      list.insert({key, 1, EntryType::value, {}});
    }
    const size_t own = keys.size() * 40;  // the entries themselves
    EXPECT_LT(arena.memory_bytes(), own + keys.size() * 50);
  }
}

// Needs the processor's single steps, and a signal handler that may look at what the program was in the middle of.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

// What a reader looks for after every instruction of the writer.
const EntryList* g_list = nullptr;
std::vector<std::pair<std::string, const EntryList::Node*>> g_in;  // keys at sequence 1, and what is found
uint64_t g_instructions = 0;
bool g_wrong = false;

void look_at_all(int) {
  ++g_instructions;
  for (const auto& [key, node] : g_in) {
    g_wrong |= g_list->find(key, 1) != node;
  }
}

void start_single_steps() {
  asm volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "memory", "cc");
}
void stop_single_steps() {
  asm volatile("lea -128(%%rsp), %%rsp; pushfq; andq $-0x101, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
                   : "memory", "cc");
}

// Whose keys a reader looks for all the while: those of nodes that the writer fills, splits and comes to shorten.
[[noreturn]] void insert_step_by_step() {
  constexpr size_t kWatched = 40;
  alarm(60);
  struct sigaction action = {};
  action.sa_handler = look_at_all;
  sigaction(SIGTRAP, &action, nullptr);
  Arena arena;
  EntryList list(&arena);
  g_list = &list;
  for (const std::string& key : grouped(5, 24)) {
    start_single_steps();
    list.insert({key, 1, EntryType::value, {}});
    stop_single_steps();
    g_in.emplace_back(key, list.find(key, 1));
    if (g_in.size() > kWatched) {
      g_in.erase(g_in.begin());
    }
  }
  _exit(g_wrong ? 1 : g_instructions < 20000 ? 2 : 0);
}

// Stopped anywhere, the writer keeps no reader waiting, and none finds anything but what is in.
TEST(EntryListDeathTest, ReadersEndWhereverTheWriterStands) {
  EXPECT_EXIT(insert_step_by_step(), testing::ExitedWithCode(0), "");
}

#endif

}  // namespace
}  // namespace vtkv
