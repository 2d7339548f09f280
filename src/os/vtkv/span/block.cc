// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/span/block.h"

#include <cstring>

#include "vtkv/span/block_compression.h"
#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace vtkv {

Status Block::parse(std::string_view bytes, const Identity& identity, std::shared_ptr<const Block>* result) {
  block_header_t header;
  if (bytes.size() < sizeof(header)) {
    return Status::corruption("it is shorter than a block header");
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kBlockMagic) {
    return Status::corruption("there is no block (wrong magic)");
  }
  if (header.body_bytes > bytes.size() - sizeof(header)) {
    return Status::corruption("the block's length reaches beyond its space");
  }
  const size_t covered = sizeof(header) - sizeof(header.crc32c) + header.body_bytes;
  if (crc32c(bytes.data() + sizeof(header.crc32c), covered) != header.crc32c) {
    return Status::corruption("the block's checksum does not match");
  }
  if (header.version != kBlockVersion && header.version != kCompressedBlockVersion) {
    return Status::unsupported("the block has format version " + std::to_string(header.version) +
                               ", this program knows versions up to " + std::to_string(kCompressedBlockVersion));
  }
  if (header.span_id != identity.span_id || header.unit != identity.unit ||
      header.kind != static_cast<uint8_t>(identity.kind)) {
    return Status::corruption("another block lies there");
  }
  auto block = std::make_shared<Block>();
  const std::string_view stored = bytes.substr(sizeof(header), header.body_bytes);
  if (header.version == kCompressedBlockVersion) {
    if (identity.kind != BlockKind::entries) {
      return Status::corruption("a block of a kind that is never compressed says that it is");
    }
    VTKV_RETURN_IF_ERROR(decompress_body(stored, &block->m_body, &block->m_body_bytes));
  } else {
    block->m_body = std::make_unique_for_overwrite<char[]>(stored.size());
    block->m_body_bytes = header.body_bytes;
    std::memcpy(block->m_body.get(), stored.data(), stored.size());
  }
  if (header.restarts > block->m_body_bytes / sizeof(uint32_t) || (header.entries > 0 && header.restarts == 0)) {
    return Status::corruption("the block's number of restarts is impossible");
  }
  block->m_entries = header.entries;
  block->m_restarts = header.restarts;
  for (uint32_t i = 0, previous = 0; i < header.restarts; ++i) {
    const uint32_t offset = block->restart_offset(i);
    if (offset >= block->entries_bytes()) {
      return Status::corruption("a restart of the block points behind its entries");
    }
    if (i == 0 ? offset != 0 : offset <= previous) {
      return Status::corruption("the restarts of the block do not ascend from its beginning");
    }
    previous = offset;
  }
  *result = std::move(block);
  return {};
}

uint32_t Block::restart_offset(uint32_t index) const {
  uint32_t offset;
  std::memcpy(&offset, m_body.get() + entries_bytes() + index * sizeof(offset), sizeof(offset));
  return offset;
}

void BlockIterator::reset(std::shared_ptr<const Block> block) {
  m_block = std::move(block);
  m_valid = false;
  m_status = {};
}

void BlockIterator::fail(const char* what) {
  m_valid = false;
  m_status = Status::corruption(what);
}

namespace {
// Most are of one byte, and a search decodes some thirty.
bool get_short_varint32(std::string_view* cursor, uint32_t* value) {
  if (cursor->empty() || (cursor->front() & 0x80) != 0) {
    return get_varint32(cursor, value);
  }
  *value = static_cast<uint8_t>(cursor->front());
  cursor->remove_prefix(1);
  return true;
}
}  // namespace

bool BlockIterator::decode_at(size_t offset) {
  m_valid = false;
  if (!m_block || offset >= m_block->entries_bytes()) {
    return false;
  }
  std::string_view rest = m_block->body().substr(offset, m_block->entries_bytes() - offset);
  uint32_t shared, unshared, value_bytes;
  uint8_t type = 0;
  bool good = get_short_varint32(&rest, &shared) && get_short_varint32(&rest, &unshared) && !rest.empty();
  if (good) {
    type = static_cast<uint8_t>(rest.front());
    rest.remove_prefix(1);
    good = get_varint64(&rest, &m_entry.sequence) && get_short_varint32(&rest, &value_bytes) &&
           shared <= m_key.size() && unshared <= rest.size() && value_bytes <= rest.size() - unshared;
  }
  if (!good) {
    fail("an entry of the block is malformed");
    return false;
  }
  if (type > static_cast<uint8_t>(EntryType::value_pointer)) {
    fail("an entry of the block has a type that this program does not know");
    return false;
  }
  m_key.resize(shared);
  m_key.append(rest.substr(0, unshared));
  m_entry.key = m_key;
  m_entry.type = static_cast<EntryType>(type);
  m_entry.value = rest.substr(unshared, value_bytes);
  m_offset = offset;
  m_next_offset = static_cast<size_t>(m_entry.value.data() + value_bytes - m_block->body().data());
  m_valid = true;
  return true;
}

void BlockIterator::go_to_restart(uint32_t index) {
  m_key.clear();  // a restart shares nothing: anything it claims to share is malformed
  decode_at(m_block->restart_offset(index));
}

void BlockIterator::seek_to_first() {
  m_valid = false;
  if (m_block && m_block->restarts() > 0) {
    go_to_restart(0);
  }
}

void BlockIterator::seek_to_last() {
  m_valid = false;
  if (!m_block || m_block->restarts() == 0) {
    return;
  }
  go_to_restart(m_block->restarts() - 1);
  while (m_valid && m_next_offset < m_block->entries_bytes()) {
    decode_at(m_next_offset);
  }
}

uint32_t BlockIterator::restart_before(std::string_view key, SequenceNumber at_most) {
  uint32_t low = 0, high = m_block->restarts() - 1;
  while (low < high) {
    const uint32_t middle = low + (high - low + 1) / 2;
    go_to_restart(middle);
    if (!m_valid) {
      return low;
    }
    if (entry_before(m_entry.key, m_entry.sequence, key, at_most)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

void BlockIterator::seek(std::string_view key, SequenceNumber at_most) {
  m_valid = false;
  if (!m_block || m_block->restarts() == 0) {
    return;
  }
  const uint32_t restart = restart_before(key, at_most);
  if (!m_status.ok()) {
    return;
  }
  go_to_restart(restart);
  while (m_valid && entry_before(m_entry.key, m_entry.sequence, key, at_most)) {
    decode_at(m_next_offset);
  }
}

void BlockIterator::seek_for_previous(std::string_view key, SequenceNumber at_most) {
  seek(key, at_most);
  if (!m_status.ok()) {
    return;
  }
  if (!m_valid) {
    seek_to_last();
  } else if (entry_before(key, at_most, m_entry.key, m_entry.sequence)) {
    previous();
    if (!m_valid && m_status.ok()) {
      seek_to_first();
    }
  }
}

void BlockIterator::next() { decode_at(m_next_offset); }

void BlockIterator::previous() {
  const size_t current = m_offset;
  m_valid = false;
  uint32_t low = 0, high = m_block->restarts();
  while (low < high) {  // the first restart at or behind the current entry
    const uint32_t middle = low + (high - low) / 2;
    if (m_block->restart_offset(middle) < current) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) {
    return;
  }
  go_to_restart(low - 1);
  while (m_valid && m_next_offset < current) {
    decode_at(m_next_offset);
  }
}

}  // namespace vtkv
