// SPDX-License-Identifier: LGPL-2.1-or-later
// The file of zones that the tree's blocks lie in.
//
// Thread-safe. Shared by the tree and every run; a Pins object keeps zones from being reused.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vtkv/env.h"
#include "vtkv/zone/zone_map.h"

namespace vtkv {

class ZoneFile {
 public:
  // Keeps the zones of a run from being overwritten while it lives.
  class Pins {
   public:
    explicit Pins(std::shared_ptr<ZoneFile> file) : m_file(std::move(file)) {}
    Pins(Pins&&) = default;
    Pins& operator=(Pins&&) = delete;
    ~Pins();
    void add(uint64_t offset, uint64_t bytes);
    // Of many ranges: each zone once.
    void add_zones(std::vector<ZoneRange> ranges);

   private:
    std::shared_ptr<ZoneFile> m_file;
    std::vector<ZoneRange> m_ranges;
  };

  static Status create(Env* env, const std::string& path);
  static Status open(Env* env, const std::string& path, uint64_t zone_bytes, std::shared_ptr<ZoneFile>* file);

  File* file() { return m_file.get(); }
  ZoneMap& map() { return m_map; }
  const std::string& path() const { return m_file->path(); }

  // ZoneMap::acquire; reserves the host's space where there is none yet (Code::no_space).
  Status acquire(ZoneStream stream, uint64_t bytes_min, ZoneRange* range);
  // Gives the space of zones that will not be used soon back to the host, or of `all` that are free.
  void give_back_surplus(bool all = false);
  Status sync() { return m_file->sync(); }

  ZoneFile(std::unique_ptr<File> file, uint64_t zone_bytes, uint64_t zones)
      : m_file(std::move(file)), m_map(zone_bytes, zones) {}

 private:
  std::unique_ptr<File> m_file;
  ZoneMap m_map;
};

}  // namespace vtkv
