// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/sim_image.h"

#include <algorithm>
#include <cstring>

#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

bool is_aligned(uint64_t value) { return value % kSimBlock == 0; }

std::shared_ptr<SimChunk> copy_of(const SimBlock& block) {
  auto chunk = std::make_shared<SimChunk>();
  if (block.bytes != nullptr) {
    *chunk = *block.bytes;
  } else {
    chunk->fill(0);
  }
  return chunk;
}

std::string gather(const std::vector<iovec>& buffers) {
  std::string bytes;
  for (const iovec& buffer : buffers) {
    bytes.append(static_cast<const char*>(buffer.iov_base), buffer.iov_len);
  }
  return bytes;
}

bool all_zeros(const char* bytes, size_t length) {
  return length == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, length - 1) == 0);
}

}  // namespace

std::string sim_parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

SimData::SimData(uint64_t offset, const std::vector<iovec>& buffers) : m_offset(offset) { assign(gather(buffers)); }

void SimData::assign(std::string bytes) {
  m_length = bytes.size();
  m_blocks.clear();
  m_bytes.clear();
  if (!is_aligned(m_offset) || !is_aligned(m_length)) {
    m_bytes = std::move(bytes);
    return;
  }
  for (size_t at = 0; at < bytes.size(); at += kSimBlock) {
    std::shared_ptr<SimChunk> chunk;
    if (!all_zeros(bytes.data() + at, kSimBlock)) {
      chunk = std::make_shared<SimChunk>();
      std::memcpy(chunk->data(), bytes.data() + at, kSimBlock);
    }
    m_blocks.push_back(std::move(chunk));
  }
}

void SimData::copy(uint64_t from, size_t length, char* destination) const {
  VTKV_ASSERT(from + length <= m_length);
  if (!shares_blocks()) {
    std::memcpy(destination, m_bytes.data() + from, length);
    return;
  }
  while (length != 0) {
    const size_t within = from % kSimBlock;
    const size_t slice = std::min(length, kSimBlock - within);
    const auto& block = m_blocks[from / kSimBlock];
    if (block != nullptr) {
      std::memcpy(destination, block->data() + within, slice);
    } else {
      std::memset(destination, 0, slice);
    }
    from += slice;
    destination += slice;
    length -= slice;
  }
}

bool SimData::equals(const std::vector<iovec>& buffers) const {
  std::string mine(m_length, '\0');
  copy(0, mine.size(), mine.data());
  return mine == gather(buffers);
}

SimData SimData::moved(uint64_t offset) const {
  SimData result = *this;
  result.m_offset = offset;
  return result;
}

SimData SimData::with_flipped_bit(uint64_t bit) const {
  std::string bytes(m_length, '\0');
  copy(0, bytes.size(), bytes.data());
  bytes[bit / 8 % m_length] ^= static_cast<char>(1U << (bit % 8));
  SimData result;
  result.m_offset = m_offset;
  result.assign(std::move(bytes));
  return result;
}

uint64_t SimInode::missing_blocks(uint64_t offset, uint64_t length) const {
  const uint64_t first = offset / kSimBlock;
  const uint64_t end = length == 0 ? first : (offset + length + kSimBlock - 1) / kSimBlock;
  const uint64_t known = std::clamp<uint64_t>(m_blocks.size(), first, end);
  uint64_t missing = end - known;
  for (uint64_t i = first; i < known; ++i) {
    missing += m_blocks[i].space == SimSpace::hole ? 1 : 0;
  }
  return missing;
}

bool SimInode::is_primed(uint64_t offset, uint64_t length) const {
  if (offset + length > m_size) {
    return false;
  }
  for (uint64_t i = offset / kSimBlock; i * kSimBlock < offset + length; ++i) {
    if (m_blocks[i].space != SimSpace::primed) {
      return false;
    }
  }
  return true;
}

void SimInode::read(uint64_t offset, size_t length, char* destination) const {
  VTKV_ASSERT(offset + length <= m_size);
  while (length != 0) {
    const size_t within = offset % kSimBlock;
    const size_t slice = std::min(length, kSimBlock - within);
    const SimBlock& block = m_blocks[offset / kSimBlock];
    if (block.bytes != nullptr) {
      std::memcpy(destination, block.bytes->data() + within, slice);
    } else {
      std::memset(destination, 0, slice);
    }
    offset += slice;
    destination += slice;
    length -= slice;
  }
}

void SimInode::extend(uint64_t size) {
  if (size > m_size) {
    m_size = size;
    m_blocks.resize((size + kSimBlock - 1) / kSimBlock);
  }
}

void SimInode::set_space(SimBlock* block, SimSpace space) {
  m_allocated_blocks += block->space == SimSpace::hole && space != SimSpace::hole ? 1 : 0;
  m_allocated_blocks -= block->space != SimSpace::hole && space == SimSpace::hole ? 1 : 0;
  block->space = space;
}

void SimInode::write(const SimData& data, SimSpace space) {
  if (!data.shares_blocks()) {
    std::string bytes(data.length(), '\0');
    data.copy(0, bytes.size(), bytes.data());
    overwrite(data.offset(), bytes, space);
    return;
  }
  extend(data.end());
  for (size_t i = 0; i < data.length() / kSimBlock; ++i) {
    SimBlock& block = m_blocks[data.offset() / kSimBlock + i];
    block.bytes = data.block(i);
    set_space(&block, block.space == SimSpace::primed ? SimSpace::primed : space);
  }
}

void SimInode::write_torn(const SimData& data, SimSpace space, size_t granule, const std::vector<bool>& fragments) {
  std::string bytes;
  for (size_t i = 0; i < fragments.size() && i * granule < data.length(); ++i) {
    if (fragments[i]) {
      bytes.resize(std::min<uint64_t>(granule, data.length() - i * granule));
      data.copy(i * granule, bytes.size(), bytes.data());
      overwrite(data.offset() + i * granule, bytes, space);
    }
  }
}

void SimInode::overwrite(uint64_t offset, std::string_view bytes, SimSpace space) {
  extend(offset + bytes.size());
  while (!bytes.empty()) {
    const size_t within = offset % kSimBlock;
    const size_t slice = std::min(bytes.size(), kSimBlock - within);
    SimBlock& block = m_blocks[offset / kSimBlock];
    const std::shared_ptr<SimChunk> chunk = copy_of(block);
    std::memcpy(chunk->data() + within, bytes.data(), slice);
    block.bytes = chunk;
    set_space(&block, block.space == SimSpace::primed ? SimSpace::primed : space);
    offset += slice;
    bytes.remove_prefix(slice);
  }
}

// Zeros what of the range is not a whole block.
void SimInode::zero_edges(uint64_t offset, uint64_t length, SimSpace space) {
  const uint64_t end = offset + length;
  const uint64_t first_end = std::min(end, (offset + kSimBlock - 1) / kSimBlock * kSimBlock);
  const uint64_t last_begin = std::max(first_end, end / kSimBlock * kSimBlock);
  if (first_end > offset) {
    overwrite(offset, std::string(first_end - offset, '\0'), space);
  }
  if (end > last_begin) {
    overwrite(last_begin, std::string(end - last_begin, '\0'), space);
  }
}

void SimInode::write_zeros(uint64_t offset, uint64_t length, SimSpace space) {
  extend(offset + length);
  zero_edges(offset, length, space);
  for (uint64_t i = (offset + kSimBlock - 1) / kSimBlock; (i + 1) * kSimBlock <= offset + length; ++i) {
    m_blocks[i].bytes.reset();
    set_space(&m_blocks[i], m_blocks[i].space == SimSpace::primed ? SimSpace::primed : space);
  }
}

void SimInode::allocate(uint64_t offset, uint64_t length) {
  extend(offset + length);
  for (uint64_t i = offset / kSimBlock; i * kSimBlock < offset + length; ++i) {
    if (m_blocks[i].space == SimSpace::hole) {
      set_space(&m_blocks[i], SimSpace::reserved);
    }
  }
}

void SimInode::punch_hole(uint64_t offset, uint64_t length) {
  const uint64_t end = std::min(offset + length, static_cast<uint64_t>(m_blocks.size()) * kSimBlock);
  if (offset >= std::min(end, m_size)) {
    return;
  }
  zero_edges(offset, std::min(end, m_size) - offset, SimSpace::written);
  for (uint64_t i = (offset + kSimBlock - 1) / kSimBlock; (i + 1) * kSimBlock <= end; ++i) {
    m_blocks[i].bytes.reset();
    set_space(&m_blocks[i], SimSpace::hole);
  }
}

void SimInode::truncate(uint64_t size) {
  if (size >= m_size) {
    extend(size);
    return;
  }
  const uint64_t kept = (size + kSimBlock - 1) / kSimBlock;
  for (uint64_t i = kept; i < m_blocks.size(); ++i) {
    set_space(&m_blocks[i], SimSpace::hole);
  }
  m_blocks.resize(kept);
  m_size = size;
  if (!is_aligned(size) && m_blocks.back().bytes != nullptr) {
    const std::shared_ptr<SimChunk> chunk = copy_of(m_blocks.back());
    std::fill(chunk->begin() + static_cast<ptrdiff_t>(size % kSimBlock), chunk->end(), '\0');
    m_blocks.back().bytes = chunk;
  }
}

void SimInode::prime(uint64_t offset, uint64_t length) {
  const uint64_t end = std::min(offset + length, m_size);
  for (uint64_t i = offset / kSimBlock; i * kSimBlock < end; ++i) {
    if (m_blocks[i].space == SimSpace::written) {
      m_blocks[i].space = SimSpace::primed;
    }
  }
}

void SimInode::flip_bits(uint64_t offset, char mask) {
  VTKV_ASSERT(offset < m_size);
  SimBlock& block = m_blocks[offset / kSimBlock];
  const std::shared_ptr<SimChunk> chunk = copy_of(block);
  (*chunk)[offset % kSimBlock] ^= mask;
  block.bytes = chunk;
}

SimInode& SimImage::change(uint64_t id) {
  std::shared_ptr<SimInode>& inode = inodes[id];
  if (inode == nullptr) {
    inode = std::make_shared<SimInode>();
  } else if (inode.use_count() > 1) {
    inode = std::make_shared<SimInode>(*inode);
  }
  return *inode;
}

uint64_t SimImage::allocated_bytes() const {
  uint64_t blocks = 0;
  for (const auto& [name, id] : names) {
    blocks += inodes.at(id)->allocated_blocks();
  }
  return blocks * kSimBlock;
}

void SimImage::drop_unreachable() {
  // In sorted order a parent comes before its children.
  std::erase_if(directories,
                [this](const std::string& path) { return path != "/" && !directories.contains(sim_parent_of(path)); });
  std::erase_if(names, [this](const auto& name) { return !directories.contains(sim_parent_of(name.first)); });
  std::set<uint64_t> named;
  for (const auto& [name, id] : names) {
    named.insert(id);
  }
  std::erase_if(inodes, [&named](const auto& inode) { return !named.contains(inode.first); });
}

}  // namespace vtkv
