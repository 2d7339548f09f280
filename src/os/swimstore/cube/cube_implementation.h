// SPDX-License-Identifier: LGPL-2.1-or-later
// Wires one database and one set of containers together; see cube.h.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "swimstore/cube/cube.h"
#include "swimstore/cube/cube_counters.h"
#include "swimstore/cube/damage_list.h"
#include "swimstore/cube/idle_committer.h"

namespace swimstore {

class CubeImplementation final : public Cube, private vtkv::ExternalStore, private vtkv::CheckpointParticipant {
 public:
  CubeImplementation(vtkv::Env* env, std::string directory, const CubeOptions& options, bool read_only);
  ~CubeImplementation() override;
  vtkv::Status open();

  void submit(CubeTransaction* transaction) override;
  vtkv::DB& database() override { return *m_database; }
  ContainerSet& containers() override { return *m_containers; }
  uint64_t new_object_id() override { return m_counters.new_object_id(); }
  std::map<int64_t, PoolUsage> pool_usage() const override { return m_counters.pool_usage(); }
  std::vector<vtkv::BackgroundError> background_errors() const override;
  bool is_damaged(SlotAddress slot, uint32_t block) const override { return m_damage.contains(slot, block); }

  // Under the database's write lock, in sequence order.
  void apply(vtkv::SequenceNumber sequence, const CubeDelta& delta);

 private:
  // ExternalStore
  vtkv::Status verify(const vtkv::ExternalWrite& write, bool* matches) override;
  void mark_damaged(const vtkv::ExternalWrite& write) override { m_damage.add(write); }
  vtkv::Status sync_all() override { return m_containers->sync_all(); }
  // CheckpointParticipant
  vtkv::Status load(const TreeReader& tree) override;
  vtkv::Status replay(vtkv::SequenceNumber last_sequence, std::string_view encoded) override;
  void collect(vtkv::SequenceNumber as_of, std::vector<vtkv::CheckpointEntry>* entries) override;
  void checkpoint_durable(vtkv::SequenceNumber as_of) override { m_containers->checkpoint_durable(as_of); }

  const std::unique_ptr<vtkv::Env> m_read_only_env;  // null: it may be written to
  vtkv::Env* const m_env;
  const std::string m_directory;
  CubeOptions m_options;  // changed by open() alone
  CubeCounters m_counters;
  DamageList m_damage;
  // Made by open(). Destroyed in the order of ~CubeImplementation: nothing below calls what is gone.
  std::unique_ptr<ContainerSet> m_containers;
  std::unique_ptr<vtkv::DB> m_database;
  std::unique_ptr<IdleCommitter> m_idle_committer;
};

}  // namespace swimstore
