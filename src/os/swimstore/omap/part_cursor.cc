// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/omap/part_cursor.h"

#include "swimstore/format/key_codec.h"

namespace swimstore {

void PlainCursor::seek(std::string_view key) { m_entries->seek(omap_key(m_nid, key)); }

std::string_view PlainCursor::key() const { return m_entries->key().substr(kOmapPrefixBytes); }

void PartCursor::seek(std::string_view key) {
  const std::string target = omap_row_key(m_nid, key);
  for (const auto& part : m_parts) {
    part->seek(target);
  }
  settle();
}

void PartCursor::next() {
  step();
  settle();
}

std::string_view PartCursor::key() const { return m_at_key.front()->key().substr(kOmapPrefixBytes); }

void PartCursor::step() {
  for (vtkv::Iterator* const part : m_at_key) {
    part->next();
  }
}

void PartCursor::settle() {
  while ((m_valid = find_newest())) {
    if (m_newest.kind == OmapRow::Kind::value && m_newest.write_id >= m_floor) {
      return;
    }
    step();
  }
}

bool PartCursor::find_newest() {
  m_at_key.clear();
  for (const auto& part : m_parts) {
    if (!part->valid()) {
      // A part that cannot be read to its end may hold the newest row of any key behind it.
      m_status = m_status.ok() ? part->status() : m_status;
      continue;
    }
    const int order = m_at_key.empty() ? -1 : part->key().compare(m_at_key.front()->key());
    if (order < 0) {
      m_at_key.clear();
    }
    if (order <= 0) {
      m_at_key.push_back(part.get());
    }
  }
  m_newest = {};
  for (const vtkv::Iterator* const part : m_at_key) {
    OmapRow row;
    if (!decode_omap_row(part->value(), &row)) {
      m_status = vtkv::Status::corruption("a row of it is damaged");
    } else if (row.write_id >= m_newest.write_id) {
      m_newest = row;
    }
  }
  return m_status.ok() && !m_at_key.empty();
}

}  // namespace swimstore
