// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/pool_options.h"

#include <charconv>
#include <set>

#include <fmt/format.h>

#include "common/Checksummer.h"
#include "common/debug.h"
#include "swimstore/format/size_class.h"

#define dout_context m_cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.pools "

namespace swimstore {

using vtkv::Status;

namespace {

// The monitor takes any integer for the type.
std::string name_of_checksum(int64_t type) {
  return type > 0 && type < Checksummer::CSUM_MAX ? Checksummer::get_csum_type_string(type) : std::to_string(type);
}

}  // namespace

std::string describe_ignored(const pool_opts_t& options) {
  std::vector<std::string> ignored;
  int64_t type = Checksummer::CSUM_CRC32C, least = kBlockBytes, most = kBlockBytes;
  options.get(pool_opts_t::CSUM_TYPE, &type);
  options.get(pool_opts_t::CSUM_MIN_BLOCK, &least);
  options.get(pool_opts_t::CSUM_MAX_BLOCK, &most);
  if (type != Checksummer::CSUM_CRC32C) {
    ignored.push_back(fmt::format("csum_type {} (it is crc32c)", name_of_checksum(type)));
  }
  if (least > static_cast<int64_t>(kBlockBytes)) {
    ignored.push_back(fmt::format("csum_min_block {} (a checksum is one of {} bytes)", least, kBlockBytes));
  }
  if (most < static_cast<int64_t>(kBlockBytes)) {
    ignored.push_back(fmt::format("csum_max_block {} (a checksum is one of {} bytes)", most, kBlockBytes));
  }
  return fmt::format("{}", fmt::join(ignored, ", "));
}

std::string IgnoredPoolOptions::note(int64_t pool, const pool_opts_t& options) {
  std::string text = describe_ignored(options);
  vtkv::MutexLock lock(m_mutex);
  std::string& known = m_texts[pool];
  if (text == known) {
    return {};
  }
  known = text;
  return text;
}

void IgnoredPoolOptions::add_alert(const std::string& path, const std::vector<coll_t>& collections,
                                   osd_alert_list_t* alerts) {
  std::set<int64_t> pools;
  for (const coll_t& cid : collections) {
    if (spg_t pgid; cid.is_pg(&pgid)) {
      pools.insert(pgid.pool());
    }
  }
  std::string texts;
  vtkv::MutexLock lock(m_mutex);
  std::erase_if(m_texts, [&](const auto& one) { return !pools.contains(one.first); });
  for (const auto& [pool, text] : m_texts) {
    if (!text.empty()) {
      texts += fmt::format("{}pool {}: {}", texts.empty() ? "" : "; ", pool, text);
    }
  }
  if (!texts.empty()) {
    alerts->emplace(
        "SWIMSTORE_POOL_OPTIONS",
        fmt::format("store at {} does not obey options of pools. {}. Remedy: 'ceph osd pool set POOL OPTION "
                    "unset', or keep these pools on OSDs of another store",
                    path, texts));
  }
}

// ---- relaxed pools

Status parse_relaxed_pools(const std::string& text, std::set<int64_t>* pools) {
  std::set<int64_t> parsed;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    if (*at == ',' || *at == ' ') {
      ++at;
      continue;
    }
    int64_t pool = 0;
    const auto [stop, error] = std::from_chars(at, end, pool);
    if (error != std::errc() || pool < 0 || (stop != end && *stop != ',' && *stop != ' ')) {
      return Status::invalid_argument(fmt::format(
          "option {} is '{}': give the numbers of pools with commas in between, as 'ceph osd pool ls detail' "
          "prints them",
          kRelaxedPoolsOption, text));
    }
    parsed.insert(pool);
    at = stop;
  }
  *pools = std::move(parsed);
  return {};
}

RelaxedPools::RelaxedPools(CephContext* cct)
    : m_cct(cct), m_watch(cct, kRelaxedPoolsOption, [this](const ConfigProxy& conf) {
        set(conf.get_val<std::string>(kRelaxedPoolsOption));
      }) {
  set(cct->_conf.get_val<std::string>(kRelaxedPoolsOption));
}

void RelaxedPools::set(const std::string& text) {
  std::set<int64_t> pools;
  if (const Status status = parse_relaxed_pools(text, &pools); !status.ok()) {
    derr << status.message() << "; the pools stay as they were" << dendl;
    return;
  }
  vtkv::MutexLock lock(m_mutex);
  m_any = !pools.empty();
  m_pools = std::move(pools);
}

bool RelaxedPools::contains(const coll_t& cid) const {
  spg_t pgid;
  if (!m_any || !cid.is_pg(&pgid) || pgid.shard != shard_id_t::NO_SHARD) {
    return false;
  }
  vtkv::MutexLock lock(m_mutex);
  return m_pools.contains(static_cast<int64_t>(pgid.pool()));
}

void RelaxedPools::add_alert(const std::string& path, const std::vector<coll_t>& collections,
                             osd_alert_list_t* alerts) const {
  std::set<int64_t> named, relaxed, strict;
  {
    vtkv::MutexLock lock(m_mutex);
    named = m_pools;
  }
  if (named.empty()) {
    return;
  }
  for (const coll_t& cid : collections) {
    if (spg_t pgid; cid.is_pg(&pgid) && named.contains(static_cast<int64_t>(pgid.pool()))) {
      (pgid.shard == shard_id_t::NO_SHARD ? relaxed : strict).insert(static_cast<int64_t>(pgid.pool()));
    }
  }
  std::string text;
  if (!relaxed.empty()) {
    text += fmt::format(" writes of pools {} are acknowledged before they are durable, and may be lost with the power;",
                        fmt::join(relaxed, ", "));
  }
  if (!strict.empty()) {
    text += fmt::format(" pools {} are erasure-coded and stay strict;", fmt::join(strict, ", "));
  }
  if (relaxed.empty() && strict.empty()) {
    text += " no placement group of these pools lies here;";
  }
  alerts->emplace("SWIMSTORE_RELAXED_POOLS", fmt::format("store at {}:{} option {} is {}", path, text,
                                                         kRelaxedPoolsOption, fmt::join(named, ",")));
}

}  // namespace swimstore
