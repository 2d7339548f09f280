// SPDX-License-Identifier: LGPL-2.1-or-later
// What test_kv.cc names of RocksDB, for programs without it: enough to compile the cases that are about
// RocksDB alone. kv_test_params.cc registers none of those, and the rest leave at once for another engine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/errno.h"
#include "kv/KeyValueDB.h"

class RocksDBStore : public KeyValueDB {
 public:
  struct ColumnFamily {
    std::string name, options;
    size_t shard_cnt = 0;
    uint32_t hash_l = 0, hash_h = 0;
  };
  struct resharding_ctrl {
    bool unittest_fail_after_first_batch = false;
    bool unittest_fail_after_processing_column = false;
    bool unittest_fail_after_successful_processing = false;
  };
  static std::string combine_strings(const std::string&, const std::string&) {
    absent();
    return {};
  }
  static int split_key(std::string_view, std::string*, std::string*) { return absent(); }
  static bool parse_sharding_def(std::string_view, std::vector<ColumnFamily>&, const char**, std::string*) {
    return absent() == 0;
  }
  int reshard(const std::string&, const resharding_ctrl* = nullptr) { return absent(); }

 private:
  static int absent() { ceph_abort_msg("this program has no RocksDB"); }
};
