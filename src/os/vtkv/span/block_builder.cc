// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/span/block_builder.h"

#include <algorithm>
#include <cstring>

#include "vtkv/span/block_compression.h"
#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {
constexpr uint32_t kEntriesPerRestart = 16;
constexpr size_t kEntryHeaderBytesMax = 3 * 5 + 1 + 10;
}  // namespace

void BlockHandle::encode(std::string* out) const {
  put_varint32(out, span);
  put_varint32(out, unit);
  put_varint32(out, units);
}

bool BlockHandle::decode(std::string_view* in) {
  return get_varint32(in, &span) && get_varint32(in, &unit) && get_varint32(in, &units);
}

void BlockBuilder::add(const Entry& entry) {
  VTKV_ASSERT(!m_closed);
  size_t shared = 0;
  if (m_entries % kEntriesPerRestart == 0) {
    m_restarts.push_back(static_cast<uint32_t>(m_body.size()));
  } else {
    const size_t limit = std::min(m_last_key.size(), entry.key.size());
    shared = std::mismatch(entry.key.begin(), entry.key.begin() + limit, m_last_key.begin()).first - entry.key.begin();
  }
  put_varint32(&m_body, static_cast<uint32_t>(shared));
  put_varint32(&m_body, static_cast<uint32_t>(entry.key.size() - shared));
  m_body.push_back(static_cast<char>(entry.type));
  put_varint64(&m_body, entry.sequence);
  put_varint32(&m_body, static_cast<uint32_t>(entry.value.size()));
  m_body.append(entry.key.substr(shared));
  m_body.append(entry.value);
  m_last_key.assign(entry.key);
  ++m_entries;
}

size_t BlockBuilder::bytes_with(const Entry& entry) const {
  return bytes() + sizeof(uint32_t) + kEntryHeaderBytesMax + entry.key.size() + entry.value.size();
}

void BlockBuilder::close() {
  if (!m_closed) {
    VTKV_ASSERT(bytes() <= kBlockBytesMax);
    m_body.append(reinterpret_cast<const char*>(m_restarts.data()), m_restarts.size() * sizeof(uint32_t));
    m_closed = true;
  }
}

double BlockBuilder::compress() {
  VTKV_ASSERT(m_kind == BlockKind::entries && !m_compressed);
  close();
  if (!compress_body(m_body, m_body.size(), &m_scratch)) {
    return 1;
  }
  const size_t plain = bytes();
  const size_t compressed = sizeof(block_header_t) + m_scratch.size();
  if (units_of(compressed) < units_of(plain)) {
    m_body.swap(m_scratch);
    m_compressed = true;
  }
  return static_cast<double>(plain) / static_cast<double>(compressed);
}

void BlockBuilder::finish(uint64_t span_id, uint32_t unit, std::string* out) {
  close();
  block_header_t header{};
  header.magic = kBlockMagic;
  header.version = m_compressed ? kCompressedBlockVersion : kBlockVersion;
  header.kind = static_cast<uint8_t>(m_kind);
  header.span_id = span_id;
  header.unit = unit;
  header.body_bytes = static_cast<uint32_t>(m_body.size());
  header.entries = m_entries;
  header.restarts = static_cast<uint32_t>(m_restarts.size());

  const size_t start = out->size();
  out->append(reinterpret_cast<const char*>(&header), sizeof(header));
  out->append(m_body);
  const uint32_t crc = crc32c(out->data() + start + sizeof(crc), out->size() - start - sizeof(crc));
  std::memcpy(out->data() + start, &crc, sizeof(crc));
  out->resize(start + static_cast<size_t>(units_of(out->size() - start)) * kUnitBytes);

  m_body.clear();
  m_last_key.clear();
  m_restarts.clear();
  m_entries = 0;
  m_closed = m_compressed = false;
}

}  // namespace vtkv
