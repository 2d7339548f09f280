// SPDX-License-Identifier: LGPL-2.1-or-later
// The image of a store that somebody forged: some bytes of one structure are changed, and the checksums made right
// afterwards, all the way to those that name them. Nothing but the fields themselves tells.
//
// Not thread-safe.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "swimstore/cube/cube.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/wal/log_format.h"

namespace swimstore {

class ForgedImage {
 public:
  // `cube`: the directory of one that is not open, with what it is opened with; the host records nothing. Changes are
  // durable at once. `superblock`: the file of the store that it is in; empty: it is in none.
  ForgedImage(vtkv::SimEnv* env, std::string cube, const CubeOptions& options, std::string superblock, uint64_t seed);
  // One change of one structure. Returns what it was; "" when there was nothing of the kind that was chosen.
  std::string forge();

 private:
  struct Record {
    std::string path;
    uint64_t offset = 0;
    vtkv::record_header_t header;
  };

  std::string cube_path(const std::string& name) const { return m_cube + "/" + name; }
  uint64_t pick(uint64_t below) { return m_random() % below; }
  // Changes something in [begin, end); returns how.
  std::string change(std::string* bytes, size_t begin, size_t end);

  std::string forge_superblock();
  std::string forge_container_header();
  std::string forge_container_size();
  std::string forge_manifest();
  std::string forge_segment_header();
  std::string forge_record();
  std::string forge_block();
  std::string forge_below_compression(std::string* tree, size_t at);
  std::string forge_entry();
  std::string forge_note();

  std::vector<std::string> segments() const;
  std::vector<Record> records() const;
  // Whoever names the record's old checksum names the new one.
  void name_new_checksum(uint32_t was, const vtkv::record_header_t& record);

  vtkv::SimEnv* const m_env;
  const std::string m_cube;
  CubeOptions m_options;
  const std::string m_superblock;
  std::mt19937_64 m_random;
};

}  // namespace swimstore
