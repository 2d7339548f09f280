// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/compression/compression.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "include/rados.h"

namespace swimstore {

namespace {

constexpr const char* kOptions[] = {"swimstore_compression_mode", "swimstore_compression_algorithm",
                                    "swimstore_compression_required_ratio", "swimstore_compression_max_blob_size",
                                    "swimstore_compression_min_blob_size"};

bool is_asked_for(const CompressionChoice& choice) { return choice.mode != "none" && choice.algorithm != "none"; }

// A word that Ceph does not know compresses nothing.
bool applies(const std::string& mode, uint32_t hints) {
  switch (Compressor::get_comp_mode_type(mode).value_or(Compressor::COMP_NONE)) {
    case Compressor::COMP_NONE:
      return false;
    case Compressor::COMP_PASSIVE:
      return hints & CEPH_OSD_ALLOC_HINT_FLAG_COMPRESSIBLE;
    case Compressor::COMP_AGGRESSIVE:
      return !(hints & CEPH_OSD_ALLOC_HINT_FLAG_INCOMPRESSIBLE);
    case Compressor::COMP_FORCE:
      return true;
  }
  return false;
}

// Read in sequence, and what was written stays.
bool is_for_large_blobs(uint32_t hints) {
  return (hints & CEPH_OSD_ALLOC_HINT_FLAG_SEQUENTIAL_READ) &&
         (hints & (CEPH_OSD_ALLOC_HINT_FLAG_IMMUTABLE | CEPH_OSD_ALLOC_HINT_FLAG_APPEND_ONLY)) &&
         !(hints & (CEPH_OSD_ALLOC_HINT_FLAG_RANDOM_READ | CEPH_OSD_ALLOC_HINT_FLAG_RANDOM_WRITE));
}

int number_of(const std::string& algorithm) {
  return Compressor::get_comp_alg_type(algorithm).value_or(Compressor::COMP_ALG_NONE);
}

template <typename T>
void take(const pool_opts_t& options, pool_opts_t::key_t key, std::optional<T>* to) {
  // Ceph keeps strings, doubles and signed integers.
  using Kept = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  if (Kept value{}; options.get(key, &value)) {
    *to = static_cast<T>(value);
  }
}

}  // namespace

Compression::Compression(CephContext* cct, bool supported) : m_supported(supported), m_codec(cct) {
  read_options(cct->_conf);
  for (const char* option : kOptions) {
    m_watches.push_back(
        std::make_unique<OptionWatch>(cct, option, [this](const ConfigProxy& conf) { read_options(conf); }));
  }
}

void Compression::read_options(const ConfigProxy& conf) {
  CompressionChoice choice;
  choice.mode = conf.get_val<std::string>("swimstore_compression_mode");
  choice.algorithm = conf.get_val<std::string>("swimstore_compression_algorithm");
  choice.required_ratio = conf.get_val<double>("swimstore_compression_required_ratio");
  choice.blob_bytes_max = conf.get_val<Option::size_t>("swimstore_compression_max_blob_size");
  choice.blob_bytes_min = conf.get_val<Option::size_t>("swimstore_compression_min_blob_size");
  vtkv::MutexLock lock(m_mutex);
  m_default = std::move(choice);
  decide_any();
}

void Compression::set_pool(int64_t pool, const pool_opts_t& options) {
  PoolChoice choice;
  take(options, pool_opts_t::COMPRESSION_MODE, &choice.mode);
  take(options, pool_opts_t::COMPRESSION_ALGORITHM, &choice.algorithm);
  take(options, pool_opts_t::COMPRESSION_REQUIRED_RATIO, &choice.required_ratio);
  take(options, pool_opts_t::COMPRESSION_MAX_BLOB_SIZE, &choice.blob_bytes_max);
  take(options, pool_opts_t::COMPRESSION_MIN_BLOB_SIZE, &choice.blob_bytes_min);
  if (choice.algorithm == "") {
    choice.algorithm.reset();
  }
  vtkv::MutexLock lock(m_mutex);
  m_pools[pool] = std::move(choice);
  decide_any();
}

CompressionChoice Compression::of_pool(int64_t pool) const {
  CompressionChoice whole = m_default;
  if (const auto found = m_pools.find(pool); found != m_pools.end()) {
    const PoolChoice& choice = found->second;
    whole.mode = choice.mode.value_or(whole.mode);
    whole.algorithm = choice.algorithm.value_or(whole.algorithm);
    whole.required_ratio = choice.required_ratio.value_or(whole.required_ratio);
    whole.blob_bytes_max = choice.blob_bytes_max.value_or(whole.blob_bytes_max);
    whole.blob_bytes_min = choice.blob_bytes_min.value_or(whole.blob_bytes_min);
  }
  return whole;
}

void Compression::decide_any() {
  bool any = is_asked_for(m_default);
  for (const auto& [pool, _] : m_pools) {
    any |= is_asked_for(of_pool(pool));
  }
  m_any = any && m_supported && m_codec.missing().empty();
}

std::optional<WriteCompression> Compression::of_write(int64_t pool, uint32_t hints) const {
  if (!m_any.load(std::memory_order_relaxed)) {
    return {};
  }
  vtkv::MutexLock lock(m_mutex);
  const CompressionChoice choice = of_pool(pool);
  const int algorithm = number_of(choice.algorithm);
  if (!applies(choice.mode, hints) || !m_codec.has(algorithm)) {
    return {};
  }
  const uint64_t bytes = is_for_large_blobs(hints) ? choice.blob_bytes_max : choice.blob_bytes_min;
  const uint64_t blocks = bytes == 0 ? kShardBlocks : std::clamp<uint64_t>(bytes / kBlockBytes, 2, kShardBlocks);
  return WriteCompression{algorithm, choice.required_ratio, static_cast<uint32_t>(blocks)};
}

void Compression::add_alert(const std::string& path, const std::vector<coll_t>& collections,
                            osd_alert_list_t* alerts) const {
  const bool is_impossible = !m_supported || !m_codec.missing().empty();
  std::set<int64_t> pools, refused;
  std::set<std::string> algorithms;
  for (const coll_t& cid : collections) {
    if (spg_t pgid; cid.is_pg(&pgid)) {
      pools.insert(static_cast<int64_t>(pgid.pool()));
    }
  }
  {
    vtkv::MutexLock lock(m_mutex);
    for (const int64_t pool : pools) {
      const CompressionChoice choice = of_pool(pool);
      if (is_asked_for(choice) && (is_impossible || !m_codec.has(number_of(choice.algorithm)))) {
        refused.insert(pool);
        algorithms.insert(choice.algorithm);
      }
    }
  }
  if (refused.empty()) {
    return;
  }
  std::string why;
  if (!m_supported) {
    why = fmt::format(
        "the store at {0} was made by a version before 0.6. Stop the OSD, run 'ceph-swimstore-tool upgrade {0}' and "
        "start it again",
        path);
  } else if (is_impossible) {
    why = m_codec.missing() + ", and restart the OSD";
  } else {
    why = fmt::format("the store at {} cannot compress by {}. Choose snappy, zlib, zstd or lz4", path,
                      fmt::join(algorithms, ", "));
  }
  alerts->emplace(
      "SWIMSTORE_NO_COMPRESSION",
      fmt::format("pools that ask for compression, and are stored without: {}; {}", fmt::join(refused, ", "), why));
}

}  // namespace swimstore
