// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/counter_record.h"

#include "swimstore/format/format_version.h"
#include "vtkv/util/coding.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr uint64_t kSign = uint64_t{1} << 63;

Status malformed() { return Status::corruption("a counter in the tree is malformed"); }

}  // namespace

std::string Counters::next_object_id_key() { return {kCounterKeyPrefix, 'I'}; }

std::string Counters::next_object_id_value() const {
  std::string value;
  vtkv::put_fixed8(&value, kCounterVersionOldest);
  vtkv::put_varint64(&value, next_object_id);
  return value;
}

std::string Counters::pool_key(int64_t pool) {
  std::string key = {kCounterKeyPrefix, 'P'};
  vtkv::put_ordered64(&key, static_cast<uint64_t>(pool) ^ kSign);
  return key;
}

std::string Counters::pool_value(const PoolUsage& usage) {
  std::string value;
  vtkv::put_fixed8(&value, usage.has_compressed() ? kCounterVersion : kCounterVersionOldest);
  usage.encode(usage.has_compressed(), &value);
  return value;
}

Status Counters::load(std::string_view key, std::string_view value) {
  uint8_t version = 0;
  if (key.size() < 2 || !vtkv::get_fixed8(&value, &version)) {
    return malformed();
  }
  VTKV_RETURN_IF_ERROR(check_version("a counter in the tree", version, kCounterVersion, kCounterVersionOldest));
  if (key == next_object_id_key()) {
    return vtkv::get_varint64(&value, &next_object_id) && value.empty() && next_object_id <= kObjectIdMax ? Status{}
                                                                                                          : malformed();
  }
  uint64_t pool = 0;
  PoolUsage usage;
  if (key[0] != kCounterKeyPrefix || key[1] != 'P') {
    return malformed();
  }
  key.remove_prefix(2);
  if (!vtkv::get_ordered64(&key, &pool) || !key.empty() || !usage.decode(&value, version == kCounterVersion) ||
      !value.empty()) {
    return malformed();
  }
  pools[static_cast<int64_t>(pool ^ kSign)] = usage;
  return {};
}

}  // namespace swimstore
