// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/omap/object_omap.h"

#include <utility>

#include "swimstore/format/key_codec.h"

namespace swimstore {

using vtkv::Status;

Status get_omap_floor(StoreContext& store, uint64_t nid, uint64_t* floor) {
  std::string value;
  *floor = 0;
  const Status status = store.cubes[0].database().get(omap_floor_key(nid), &value);
  if (status.is_not_found()) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(status);
  return decode_omap_floor(value, floor) ? Status() : Status::corruption("its floor is damaged");
}

Status ObjectOmap::get_header(std::string* header) { return m_home.database().get(omap_header_key(m_nid), header); }

Status ObjectOmap::get(std::string_view key, std::string* value) {
  return m_in_parts ? get_newest(key, value) : m_home.database().get(omap_key(m_nid, key), value);
}

Status ObjectOmap::get_newest(std::string_view key, std::string* value) {
  const std::string row_key = omap_row_key(m_nid, key);
  OmapRow newest{.kind = OmapRow::Kind::tombstone};
  for (const auto& cube : m_store.cubes) {
    std::string bytes;
    OmapRow row;
    const Status status = cube->database().get(row_key, &bytes);
    if (status.is_not_found()) {
      continue;
    }
    VTKV_RETURN_IF_ERROR(status);
    if (!decode_omap_row(bytes, &row)) {
      return Status::corruption("a row of it is damaged");
    }
    if (row.write_id > newest.write_id) {
      newest = {row.kind, row.write_id, {}};
      *value = row.value;
    }
  }
  uint64_t floor = 0;
  if (newest.kind == OmapRow::Kind::value) {
    VTKV_RETURN_IF_ERROR(get_omap_floor(m_store, m_nid, &floor));
  }
  return newest.kind == OmapRow::Kind::value && newest.write_id >= floor ? Status() : Status::not_found("");
}

std::unique_ptr<OmapCursor> ObjectOmap::new_cursor() {
  if (!m_in_parts) {
    return std::make_unique<PlainCursor>(m_nid,
                                         m_home.database().new_iterator(omap_key(m_nid, ""), omap_range_end(m_nid)));
  }
  uint64_t floor = 0;
  const Status status = get_omap_floor(m_store, m_nid, &floor);
  std::vector<std::unique_ptr<vtkv::Iterator>> parts;
  for (const auto& cube : m_store.cubes) {
    parts.push_back(cube->database().new_iterator(omap_row_key(m_nid, ""), omap_row_range_end(m_nid)));
  }
  return std::make_unique<PartCursor>(m_nid, std::move(parts), floor, status);
}

Status ObjectOmap::read(OmapContents* contents) {
  std::string header;
  const Status status = get_header(&header);
  if (status.ok()) {
    contents->header = std::move(header);
  } else if (!status.is_not_found()) {
    return status;
  }
  const auto cursor = new_cursor();
  for (cursor->seek(""); cursor->valid(); cursor->next()) {
    contents->values.emplace_hint(contents->values.end(), cursor->key(), cursor->value());
  }
  return cursor->status();
}

}  // namespace swimstore
