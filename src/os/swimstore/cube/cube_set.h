// SPDX-License-Identifier: LGPL-2.1-or-later
// All cubes of a store. Each has a log, a tree and containers of its own; they share the host's free space, the reserve
// and the object ids, and what a store may take of memory and of space ahead of need is divided among them.
//
// A store has one cube, or 1 + 2^k of them: cube 0 then holds the OSD's own collection, the others placement groups.
// No transaction spans cubes, so each commits and recovers by itself.
//
// Threads: every method may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "swimstore/cube/cube.h"

namespace swimstore {

class CubeSet {
 public:
  // Cubes that placement groups are spread over.
  static unsigned data_cubes(unsigned cubes) { return cubes == 1 ? 1 : cubes - 1; }
  // A store whose groups are spread over so many has how many in all?
  static unsigned cubes_for(unsigned data_cubes) { return data_cubes == 1 ? 1 : data_cubes + 1; }
  // Can a store have so many?
  static bool is_valid_count(unsigned cubes);
  static std::string cube_path(const std::string& directory, unsigned cube);

  // What each of so many cubes is made with, of what the store is to have in all.
  static CubeOptions layout(const CubeOptions& total, unsigned cubes);
  // Makes cubes 0 to count - 1 in `directory`, which exists. REQUIRES: options are a layout() for that many.
  static vtkv::Status create(vtkv::Env* env, const std::string& directory, const CubeOptions& options, unsigned cubes);
  // Opens all. `total`: of the store, but for what layout() has settled. The first one that does not open decides.
  static vtkv::Status open(vtkv::Env* env, const std::string& directory, const CubeOptions& total, unsigned cubes,
                           bool read_only, std::unique_ptr<CubeSet>* opened);
  CubeSet(const CubeSet&) = delete;
  CubeSet& operator=(const CubeSet&) = delete;

  unsigned size() const { return static_cast<unsigned>(m_cubes.size()); }
  Cube& operator[](unsigned cube) { return *m_cubes[cube]; }
  const Cube& operator[](unsigned cube) const { return *m_cubes[cube]; }

  // Over all cubes; sequences, the greatest of any.
  vtkv::DBStatistics database_statistics() const;
  // Over all cubes; what the host can give, and the reserve, once.
  ContainerStatistics container_statistics() const;
  std::map<int64_t, PoolUsage> pool_usage() const;
  std::vector<vtkv::BackgroundError> background_errors() const;
  std::vector<SlotAddress> quarantined() const;
  // Of one after the other, the first error.
  vtkv::Status flush();
  vtkv::Status compact();

 private:
  CubeSet() = default;
  // The host has no room for one: what is free in the others may become the host's again.
  void give_space_back(unsigned wanted_by);

  std::vector<std::unique_ptr<Cube>> m_cubes;
  std::atomic<bool> m_all_open{false};
};

}  // namespace swimstore
