// SPDX-License-Identifier: LGPL-2.1-or-later
// A store on a real file system on a recorded disk: what it does there is recorded, and what crashes leave of it is
// mounted, the file system first, and compared with what the store promised.
//
// Not thread-safe.
#pragma once

#include <string>

#include "include/common_fwd.h"

#include "swimstore/cube/cube.h"
#include "swimstore/testing/store_oracle.h"
#include "vtkv/testing/disk/disk_lab.h"

class SwimStore;

namespace swimstore {

struct RealStoreOptions {
  uint64_t seed = 1;
  unsigned transactions = 120;  // of a recording
  unsigned more = 6;            // after a crash
  unsigned in_flight_max = 4;   // queued before one waits for them
};

class RealStore {
 public:
  // Options of the context are set for small stores, and stay so.
  RealStore(CephContext* cct, vtkv::DiskLab* lab, const RealStoreOptions& options);

  // Makes a store on a new file system and works on it; *crashes: those from the first transaction on. "" or what
  // went wrong; so does check().
  std::string record(std::unique_ptr<vtkv::DiskCrashes>* crashes);
  // Opens what the crash left. When `second` is given, the store goes on working first, and *second is a store that
  // may crash again: anywhere in what was done since, from the replay of the file system's journal on.
  std::string check(const vtkv::DiskCrash& crash, std::unique_ptr<RealStore>* second,
                    std::unique_ptr<vtkv::DiskCrashes>* crashes);

 private:
  std::unique_ptr<SwimStore> open_store() const;
  vtkv::Status make_and_work(vtkv::DiskTrace* trace, uint64_t* begun);
  std::string open_and_compare(const std::vector<size_t>& acknowledged, RealStore* second);
  void work(SwimStore& store, uint64_t seed, unsigned transactions, uint64_t* begun);

  CephContext* const m_cct;
  vtkv::DiskLab* const m_lab;
  const RealStoreOptions m_options;
  StoreOracle m_oracle;
};

}  // namespace swimstore
