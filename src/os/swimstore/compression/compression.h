// SPDX-License-Identifier: LGPL-2.1-or-later
// Which data is compressed: what is asked for per OSD and per pool. Options and their meanings are BlueStore's, so that
// operators need to learn nothing new; but no blob is larger than an extent shard.
//
// Thread-safe. Takes no lock while no option and no pool has asked for it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "osd/osd_types.h"

#include "swimstore/compression/blob_codec.h"
#include "swimstore/ops/option_watch.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

// What is asked for.
struct CompressionChoice {
  std::string mode = "none";
  std::string algorithm = "snappy";
  double required_ratio = 0.875;  // blocks after compression to those before, at most
  // What is compressed together, at most: of objects that are read in sequence and only appended to or never changed,
  // the greater; of others the smaller. 0: kShardBytes.
  uint64_t blob_bytes_max = 0;
  uint64_t blob_bytes_min = 0;
};

// How one write is compressed.
struct WriteCompression {
  int algorithm = 0;
  double required_ratio = 0;
  uint32_t blob_blocks = 0;  // compressed together, at most; 2 to kShardBlocks
};

class Compression {
 public:
  // `supported`: the store's format has compressed blobs; else nothing is compressed.
  Compression(CephContext* cct, bool supported);

  // What is set of a pool goes before the OSD's options.
  void set_pool(int64_t pool, const pool_opts_t& options);
  // nullopt: a write to an object of this pool with these hints, CEPH_OSD_ALLOC_HINT_FLAG_*, is not compressed.
  std::optional<WriteCompression> of_write(int64_t pool, uint32_t hints) const;
  const BlobCodec& codec() const { return m_codec; }
  // SWIMSTORE_NO_COMPRESSION: compression is asked for and cannot be had, for pools of which there is a collection.
  void add_alert(const std::string& path, const std::vector<coll_t>& collections, osd_alert_list_t* alerts) const;

 private:
  // What is set; what is not set is the OSD's.
  struct PoolChoice {
    std::optional<std::string> mode, algorithm;
    std::optional<double> required_ratio;
    std::optional<uint64_t> blob_bytes_max, blob_bytes_min;
  };
  void read_options(const ConfigProxy& conf);
  CompressionChoice of_pool(int64_t pool) const REQUIRES(m_mutex);
  void decide_any() REQUIRES(m_mutex);

  const bool m_supported;
  const BlobCodec m_codec;
  std::atomic<bool> m_any{false};  // somebody asks for it, and can have it; changed under m_mutex
  mutable vtkv::Mutex m_mutex;
  CompressionChoice m_default GUARDED_BY(m_mutex);
  std::map<int64_t, PoolChoice> m_pools GUARDED_BY(m_mutex);
  std::vector<std::unique_ptr<OptionWatch>> m_watches;
};

}  // namespace swimstore
