// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/omap_row.h"

#include "swimstore/format/note_record.h"
#include "vtkv/util/coding.h"

namespace swimstore {

void encode_omap_row(const OmapRow& row, std::string* out) {
  vtkv::put_fixed8(out, kOmapRowVersion);
  vtkv::put_fixed8(out, static_cast<uint8_t>(row.kind));
  vtkv::put_varint64(out, row.write_id);
  out->append(row.value);
}

bool decode_omap_row(std::string_view bytes, OmapRow* row) {
  uint8_t version = 0, kind = 0;
  if (!vtkv::get_fixed8(&bytes, &version) || version != kOmapRowVersion || !vtkv::get_fixed8(&bytes, &kind) ||
      !vtkv::get_varint64(&bytes, &row->write_id) || row->write_id > kObjectIdMax) {
    return false;
  }
  row->kind = static_cast<OmapRow::Kind>(kind);
  row->value = bytes;
  return row->kind == OmapRow::Kind::value || (row->kind == OmapRow::Kind::tombstone && bytes.empty());
}

std::string encode_omap_floor(uint64_t write_id) {
  std::string out(1, static_cast<char>(kOmapFloorVersion));
  vtkv::put_varint64(&out, write_id);
  return out;
}

bool decode_omap_floor(std::string_view bytes, uint64_t* write_id) {
  uint8_t version = 0;
  return vtkv::get_fixed8(&bytes, &version) && version == kOmapFloorVersion && vtkv::get_varint64(&bytes, write_id) &&
         bytes.empty() && *write_id <= kObjectIdMax;
}

}  // namespace swimstore
