// SPDX-License-Identifier: LGPL-2.1-or-later
// A VtkvStore in a directory of its own, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "global/global_context.h"
#include "vtkv/ceph/vtkv_store.h"

namespace vtkv {

// Joins operands with commas; "new:" before the first.
class JoiningOperator final : public KeyValueDB::MergeOperator {
 public:
  void merge_nonexistent(const char* right, size_t right_bytes, std::string* merged) override {
    *merged = "new:" + std::string(right, right_bytes);
  }
  void merge(const char* left, size_t left_bytes, const char* right, size_t right_bytes, std::string* merged) override {
    *merged = std::string(left, left_bytes) + "," + std::string(right, right_bytes);
  }
  const char* name() const override { return "join"; }
};

class VtkvStoreFixture : public testing::Test {
 protected:
  // Small enough that a test meets flushes, compactions and recycled segments.
  static constexpr const char* kSmall =
      "memtable_bytes=32K,log_segment_bytes=256K,initial_log_segments=2,zone_bytes=256K,block_cache_bytes=4M";

  VtkvStoreFixture() {
    // tidy: allow it to a test's fixture
    m_base = std::filesystem::current_path() / "vtkv_store_test.XXXXXX";
    EXPECT_NE(::mkdtemp(m_base.data()), nullptr);
    m_directory = m_base + "/kv";
  }
  ~VtkvStoreFixture() override {
    m_store.reset();
    // tidy: allow it to a test's fixture
    std::filesystem::remove_all(m_base);
  }

  std::unique_ptr<VtkvStore> make(const std::string& directory, const std::string& options = kSmall) {
    auto store = std::make_unique<VtkvStore>(g_ceph_context, directory, std::map<std::string, std::string>());
    EXPECT_EQ(store->init(options), 0);
    EXPECT_EQ(store->set_merge_operator("M", std::make_shared<JoiningOperator>()), 0);
    return store;
  }
  void create() { start(&KeyValueDB::create_and_open); }
  void reopen() { start(&KeyValueDB::open); }
  void start(int (KeyValueDB::*open)(std::ostream&, const std::string&)) {
    m_store.reset();
    m_store = make(m_directory);
    std::ostringstream out;
    ASSERT_EQ((m_store.get()->*open)(out, ""), 0) << out.str();
  }

  // Blocks of entries among it; what the open store knows already stays right.
  void damage_tree() {
    // tidy: allow it to a test's fixture
    const uint64_t bytes = std::filesystem::file_size(m_directory + "/tree");
    // tidy: allow it to a test's fixture
    std::fstream tree(m_directory + "/tree", std::ios::in | std::ios::out | std::ios::binary);
    for (uint64_t unit = 0; unit < bytes; unit += 4096) {
      tree.seekp(static_cast<std::streamoff>(unit + 60));
      tree.write("damage", 6);
    }
  }

  static ceph::buffer::list list(const std::string& bytes) {
    ceph::buffer::list result;
    result.append(bytes);
    return result;
  }
  void set(const std::string& prefix, const std::string& key, const std::string& value) {
    auto transaction = m_store->get_transaction();
    transaction->set(prefix, key, list(value));
    ASSERT_EQ(m_store->submit_transaction_sync(transaction), 0);
  }
  std::string get(const std::string& prefix, const std::string& key) { return get(*m_store, prefix, key); }
  static std::string get(KeyValueDB& store, const std::string& prefix, const std::string& key) {
    ceph::buffer::list value;
    const int r = store.get(prefix, key, &value);
    return r == 0 ? value.to_str() : r == -ENOENT ? "none" : "error " + std::to_string(r);
  }

  std::string m_base;
  std::string m_directory;
  std::unique_ptr<VtkvStore> m_store;
};

}  // namespace vtkv
