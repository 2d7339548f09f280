// SPDX-License-Identifier: LGPL-2.1-or-later
// All cubes of a store. Each has a log, a tree and containers of its own; they share the host's free space, the
// reserve, the object ids, threads and flushes, and what a store may take of memory and of space ahead of need is
// divided among them.
//
// A store has one cube, or 1 + 2^k of them: cube 0 then holds the OSD's own collection, the others placement groups. Of
// a store that had one cube, cube 0 holds groups, too, until they are moved.
// No transaction spans cubes, so each commits and recovers by itself. One that holds placement groups may be missing,
// and the others are used all the same.
//
// Threads: every method may be called from any thread, but for remove().
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "swimstore/cube/cube.h"
#include "vtkv/env/shared_threads.h"

namespace swimstore {

// And why. Cube 0 is never among them.
using MissingCubes = std::map<unsigned, std::string>;

// Is this what a damaged cube says of itself? Not what a newer program wrote, nor what memory or space were short for.
bool is_damage(const vtkv::Status& status);

class CubeSet {
 public:
  static constexpr unsigned kDataCubesMax = 64;
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
  // Makes one of them anew. REQUIRES: its directory, if there is one, holds no files.
  static vtkv::Status create_one(vtkv::Env* env, const std::string& directory, const CubeOptions& options,
                                 unsigned cubes, unsigned cube);
  struct Opening {
    unsigned cubes = 1;
    bool read_only = false;
    MissingCubes left_out{};  // not to be opened
    bool goes_on = false;  // without those, but for cube 0, that are damaged; else the first one decides
  };
  // `total`: of the store, but for what layout() has settled. Whatever `goes_on` says: what a newer program wrote is
  // refused.
  static vtkv::Status open(vtkv::Env* env, const std::string& directory, const CubeOptions& total,
                           const Opening& opening, std::unique_ptr<CubeSet>* opened);
  ~CubeSet();
  CubeSet(const CubeSet&) = delete;
  CubeSet& operator=(const CubeSet&) = delete;

  // Missing ones, too.
  unsigned size() const { return static_cast<unsigned>(m_by_number.size()); }
  bool has(unsigned cube) const { return m_by_number[cube] != nullptr; }
  // REQUIRES: has(cube).
  Cube& operator[](unsigned cube) { return *m_by_number[cube]; }
  const Cube& operator[](unsigned cube) const { return *m_by_number[cube]; }
  const MissingCubes& missing() const { return m_missing; }
  // Closes it: from now on it is missing. REQUIRES: it is not cube 0, and nobody uses the set meanwhile.
  void remove(unsigned cube, std::string why);

  // Over all cubes; sequences, the greatest of any.
  vtkv::DBStatistics database_statistics() const;
  // Over all cubes; what the host can give, and the reserve, once.
  ContainerStatistics container_statistics() const;
  bool is_upgradable() const;  // a database of them is (vtkv/db.h)
  bool may_compress_blocks() const;  // the database of cube 0 may: new ones are made like it
  FreePieces free_pieces() const;  // see ContainerSet
  std::map<int64_t, PoolUsage> pool_usage() const;
  CubeErrors background_errors() const;
  std::vector<SlotAddress> quarantined() const;
  // Of one after the other, the first error.
  vtkv::Status flush();
  vtkv::Status compact();

 private:
  CubeSet() = default;
  // The host has no room for one: what is free in the others may become the host's again.
  void give_space_back(unsigned wanted_by, uint64_t metadata_bytes);

  std::unique_ptr<vtkv::SharedThreads> m_threads;  // null: of one cube, which has its own
  std::vector<std::unique_ptr<Cube>> m_cubes;  // without those that are missing
  std::vector<Cube*> m_by_number;  // null: missing
  MissingCubes m_missing;
  std::atomic<bool> m_all_open{false};
};

}  // namespace swimstore
