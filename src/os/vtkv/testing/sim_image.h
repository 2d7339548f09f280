// SPDX-License-Identifier: LGPL-2.1-or-later
// What is on the simulated disk: directories, names, files' bytes, and how settled each block is.
//
// Copying an image shares its files; a file is copied when it is first changed, its blocks never. So a
// crash state costs what it changes, not what it holds. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sys/uio.h>

namespace vtkv {

inline constexpr size_t kSimBlock = 4096;
inline constexpr size_t kSimSector = 512;

using SimChunk = std::array<char, kSimBlock>;

// hole: no space. reserved: space, never written; reads as zeros. written: written, but the file system
// does not know durably that it was. primed: written and known as such; overwriting it changes no metadata.
enum class SimSpace : uint8_t { hole, reserved, written, primed };

struct SimBlock {
  std::shared_ptr<const SimChunk> bytes;  // none: zeros
  SimSpace space = SimSpace::hole;
};

// The bytes of one write. Whole blocks are shared between the trace and every image they land in.
class SimData {
 public:
  SimData() = default;
  SimData(uint64_t offset, const std::vector<iovec>& buffers);

  uint64_t offset() const { return m_offset; }
  uint64_t length() const { return m_length; }
  uint64_t end() const { return m_offset + m_length; }
  bool equals(const std::vector<iovec>& buffers) const;
  // Bytes [from, from + length) of the write.
  void copy(uint64_t from, size_t length, char* destination) const;

  // Whole and aligned: block i can be shared.
  bool shares_blocks() const { return m_bytes.empty(); }
  const std::shared_ptr<const SimChunk>& block(size_t index) const { return m_blocks[index]; }

  // The write as a faulty disk performs it.
  SimData moved(uint64_t offset) const;
  SimData with_flipped_bit(uint64_t bit) const;

 private:
  void assign(std::string bytes);

  uint64_t m_offset = 0;
  uint64_t m_length = 0;
  std::vector<std::shared_ptr<const SimChunk>> m_blocks;
  std::string m_bytes;  // of a write that is not made of whole blocks
};

class SimInode {
 public:
  uint64_t size() const { return m_size; }
  uint64_t allocated_blocks() const { return m_allocated_blocks; }
  const std::vector<SimBlock>& blocks() const { return m_blocks; }
  // Blocks of the range that have no space yet.
  uint64_t missing_blocks(uint64_t offset, uint64_t length) const;
  // The whole range is primed, and inside the size.
  bool is_primed(uint64_t offset, uint64_t length) const;

  // The range is inside the size.
  void read(uint64_t offset, size_t length, char* destination) const;
  // Blocks that are primed stay so; others become `space`.
  void write(const SimData& data, SimSpace space);
  // Only the fragments that landed: fragments[i] covers `granule` bytes of the write.
  void write_torn(const SimData& data, SimSpace space, size_t granule, const std::vector<bool>& fragments);
  void write_zeros(uint64_t offset, uint64_t length, SimSpace space);
  void allocate(uint64_t offset, uint64_t length);
  void punch_hole(uint64_t offset, uint64_t length);
  void truncate(uint64_t size);
  // written becomes primed.
  void prime(uint64_t offset, uint64_t length);
  void flip_bits(uint64_t offset, char mask);

 private:
  void extend(uint64_t size);
  void set_space(SimBlock* block, SimSpace space);
  void overwrite(uint64_t offset, std::string_view bytes, SimSpace space);
  void zero_edges(uint64_t offset, uint64_t length, SimSpace space);

  uint64_t m_size = 0;
  uint64_t m_allocated_blocks = 0;
  std::vector<SimBlock> m_blocks;
};

class SimImage {
 public:
  SimImage() { directories.insert("/"); }

  const SimInode& inode(uint64_t id) const { return *inodes.at(id); }
  // For changing: makes it when it is not there, and takes it away from other images that share it.
  SimInode& change(uint64_t id);
  uint64_t allocated_bytes() const;
  // Drops names in directories that do not exist, and files without a name.
  void drop_unreachable();

  std::set<std::string> directories;
  std::map<std::string, uint64_t> names;
  std::map<uint64_t, std::shared_ptr<SimInode>> inodes;
};

// "/a/b" of "/a/b/c"; "/" of "/a".
std::string sim_parent_of(const std::string& path);

}  // namespace vtkv
