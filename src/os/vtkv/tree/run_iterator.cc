#include "vtkv/tree/run_iterator.h"

#include <algorithm>

namespace vtkv {

bool RunIterator::check(const BlockIterator& part) {
  if (m_status.ok() && !part.status().ok()) {
    m_status = Status::corruption("run " + std::to_string(m_descriptor.run_id) + " of " +
                                  m_reader.file().path() + ": " + std::string(part.status().message()));
  }
  return m_status.ok();
}

bool RunIterator::load_index_block(size_t root) {
  m_index.reset(nullptr);
  m_block.reset(nullptr);
  if (root >= m_descriptor.index.size()) {
    return false;
  }
  m_root = root;
  const BlockHandle& handle = m_descriptor.index[root].block;
  std::shared_ptr<const Block> block;
  const Span& span = m_descriptor.spans[handle.span];
  m_status = m_use_ahead ? m_reader.read_uncached(span, handle.unit, handle.units, BlockKind::index, &block)
                         : m_reader.read(span, handle.unit, handle.units, BlockKind::index, &block);
  if (!m_status.ok()) {
    return false;
  }
  m_index.reset(std::move(block));
  return true;
}

bool RunIterator::load_block() {
  m_block.reset(nullptr);
  if (!check(m_index) || !m_index.valid()) {
    return false;
  }
  BlockHandle handle;
  std::string_view encoded = m_index.entry().value;
  if (!handle.decode(&encoded) || !encoded.empty() || !is_inside(handle, m_descriptor.spans)) {
    m_status = Status::corruption("run " + std::to_string(m_descriptor.run_id) + " of " +
                                  m_reader.file().path() + ": an index entry is malformed");
    return false;
  }
  const Span& span = m_descriptor.spans[handle.span];
  std::shared_ptr<const Block> block;
  m_status = m_use_ahead ? m_ahead.read(span, handle.unit, handle.units, BlockKind::entries, &block)
                         : m_reader.read(span, handle.unit, handle.units, BlockKind::entries, &block);
  if (!m_status.ok()) {
    return false;
  }
  m_block.reset(std::move(block));
  return true;
}

bool RunIterator::next_block() {
  m_index.next();
  while (check(m_index) && !m_index.valid()) {
    if (!load_index_block(m_root + 1)) {
      return false;
    }
    m_index.seek_to_first();
  }
  if (!load_block()) {
    return false;
  }
  m_block.seek_to_first();
  return check(m_block) && m_block.valid();
}

bool RunIterator::previous_block() {
  m_index.previous();
  while (check(m_index) && !m_index.valid()) {
    if (m_root == 0 || !load_index_block(m_root - 1)) {
      m_block.reset(nullptr);
      return false;
    }
    m_index.seek_to_last();
  }
  if (!load_block()) {
    return false;
  }
  m_block.seek_to_last();
  return check(m_block) && m_block.valid();
}

void RunIterator::seek_to_first() {
  m_status = {};
  if (load_index_block(0)) {
    m_index.seek_to_first();
    if (load_block()) {
      m_block.seek_to_first();
      check(m_block);
    }
  }
}

void RunIterator::seek_to_last() {
  m_status = {};
  if (!m_descriptor.index.empty() && load_index_block(m_descriptor.index.size() - 1)) {
    m_index.seek_to_last();
    if (load_block()) {
      m_block.seek_to_last();
      check(m_block);
    }
  }
}

// Loads the last block whose first entry is at or before (key, at_most); the first block when none is.
bool RunIterator::seek_index(std::string_view key, SequenceNumber at_most) {
  m_status = {};
  const auto behind = std::partition_point(
      m_descriptor.index.begin(), m_descriptor.index.end(),
      [&](const IndexRoot& root) { return !entry_before(key, at_most, root.key, root.sequence); });
  const size_t root = behind == m_descriptor.index.begin() ? 0 : behind - m_descriptor.index.begin() - 1;
  if (!load_index_block(root)) {
    return false;
  }
  m_index.seek_for_previous(key, at_most);
  if (!load_block()) {
    return false;
  }
  m_block.seek(key, at_most);
  return check(m_block);
}

void RunIterator::seek(std::string_view key, SequenceNumber at_most) {
  if (seek_index(key, at_most) && !m_block.valid()) {
    next_block();
  }
}

void RunIterator::seek_key(std::string_view key, SequenceNumber at_most) {
  if (!seek_index(key, at_most) || m_block.valid()) {
    return;
  }
  m_index.next();
  if (!check(m_index)) {
    return;
  }
  if (m_index.valid()) {
    if (m_index.entry().key == key && load_block()) {
      m_block.seek_to_first();
      check(m_block);
    }
  } else if (m_root + 1 < m_descriptor.index.size() && m_descriptor.index[m_root + 1].key == key) {
    if (load_index_block(m_root + 1)) {
      m_index.seek_to_first();
      if (load_block()) {
        m_block.seek_to_first();
        check(m_block);
      }
    }
  }
}

void RunIterator::next() {
  m_block.next();
  if (check(m_block) && !m_block.valid()) {
    next_block();
  }
}

void RunIterator::previous() {
  m_block.previous();
  if (check(m_block) && !m_block.valid()) {
    previous_block();
  }
}

}  // namespace vtkv
