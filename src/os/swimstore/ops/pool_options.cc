// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/pool_options.h"

#include <set>

#include <fmt/format.h>

#include "common/Checksummer.h"
#include "swimstore/format/size_class.h"

namespace swimstore {

namespace {

// The monitor takes any integer for the type.
std::string name_of_checksum(int64_t type) {
  return type > 0 && type < Checksummer::CSUM_MAX ? Checksummer::get_csum_type_string(type) : std::to_string(type);
}

}  // namespace

std::string describe_ignored(const pool_opts_t& options) {
  std::vector<std::string> ignored;
  std::string mode;
  if (options.get(pool_opts_t::COMPRESSION_MODE, &mode) && mode != "none") {
    ignored.push_back(fmt::format("compression_mode {} (nothing is compressed)", mode));
  }
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

}  // namespace swimstore
