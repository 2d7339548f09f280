// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/quarantine_record.h"

#include <algorithm>
#include <cstring>

#include "swimstore/format/format_version.h"
#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr char kMagic[8] = {'S', 'W', 'I', 'M', 'Q', 'U', 'A', 'R'};
constexpr size_t kCrcOffset = QuarantineRecord::kBytes - 4;
constexpr size_t kHeaderBytes = 40;
static_assert(kHeaderBytes + 8 * QuarantineRecord::kSlotsMax <= kCrcOffset);

}  // namespace

std::string QuarantineRecord::encode() const {
  std::string bytes(kMagic, sizeof kMagic);
  vtkv::put_fixed32(&bytes, kQuarantineVersion);
  vtkv::put_fixed32(&bytes, static_cast<uint32_t>(slots.size()));
  bytes.append(reinterpret_cast<const char*>(uuid.data()), uuid.size());
  vtkv::put_fixed64(&bytes, epoch);
  for (const SlotAddress& slot : slots) {
    vtkv::put_fixed64(&bytes, slot.packed());
  }
  bytes.resize(kCrcOffset);
  vtkv::put_fixed32(&bytes, vtkv::crc32c(bytes));
  return bytes;
}

Status QuarantineRecord::decode(std::string_view name, std::string_view bytes, QuarantineRecord* record) {
  *record = {};
  const std::string file(name);
  if (bytes.size() != kBytes) {
    return Status::corruption(file + ": a copy has " + std::to_string(bytes.size()) + " bytes");
  }
  if (std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; })) {
    return {};
  }
  if (std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    return Status::corruption(file + ": not a list of quarantined slots");
  }
  std::string_view cursor = bytes.substr(sizeof kMagic);
  uint32_t version = 0, count = 0, crc = 0;
  vtkv::get_fixed32(&cursor, &version);
  std::string_view end = bytes.substr(kCrcOffset);
  vtkv::get_fixed32(&end, &crc);
  if (crc != vtkv::crc32c(bytes.data(), kCrcOffset)) {
    return Status::corruption(file + ": checksum mismatch");
  }
  VTKV_RETURN_IF_ERROR(check_version(file, version, kQuarantineVersion));
  vtkv::get_fixed32(&cursor, &count);
  std::memcpy(record->uuid.data(), cursor.data(), record->uuid.size());
  cursor.remove_prefix(record->uuid.size());
  vtkv::get_fixed64(&cursor, &record->epoch);
  bool possible = count <= kSlotsMax && record->epoch > 0 && record->epoch < UINT64_MAX;
  for (uint32_t i = 0; i < count && possible; i++) {
    uint64_t packed = 0;
    vtkv::get_fixed64(&cursor, &packed);
    record->slots.push_back(SlotAddress::unpack(packed));
    possible = record->slots.back().size_class < kSizeClasses;
  }
  if (!possible) {
    *record = {};
    return Status::corruption(file + ": a list that this program never writes");
  }
  return {};
}

}  // namespace swimstore
