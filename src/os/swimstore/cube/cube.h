// SPDX-License-Identifier: LGPL-2.1-or-later
// One isolated partition of the store: a vtkv database (its log is the intent log, its tree the metadata) and
// the containers that hold the data. A cube fails and recovers alone.
//
// What the store above keeps in the tree is its own (format/key_codec.h); the cube itself owns the key
// prefixes of allocation pages ('A') and counters ('N'), which it writes at every checkpoint and rebuilds
// from the log's notes, so that no transaction pays for them.
//
// Threads: every method may be called from any thread, except where said.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "swimstore/container/container_set.h"
#include "swimstore/cube/cube_counters.h"
#include "swimstore/cube/cube_errors.h"
#include "swimstore/cube/damage_list.h"
#include "swimstore/format/note_record.h"
#include "vtkv/db.h"

namespace swimstore {

class Cube;
class IdleCommitter;

struct CubeOptions {
  vtkv::Options database;
  ContainerOptions containers;
  std::shared_ptr<ObjectIds> object_ids;  // of all cubes of a store; null: of this one alone
  // On another file system than the cube: its log and its tree; of a CubeSet, those of cube N in N there. Empty: they
  // lie in the cube's directory.
  std::string metadata_directory;
};

// One transaction on its way through a cube. The store derives from it; the cube fills in the rest.
class CubeTransaction : public vtkv::Submission {
 public:
  // One slot write: bytes go to the start of the slot at `offset` in it. Writes of one transaction to one slot
  // do not overlap.
  // REQUIRES: data aligned to kIoAlignment, stays valid until data_written().
  void add_slot_write(ContainerSet& containers, const AllocatedSlot& slot, uint32_t offset, std::vector<iovec> buffers,
                      uint32_t length, uint32_t crc32c);
  CubeDelta delta;

 protected:
  virtual void committed(const vtkv::Status& status) = 0;

 private:
  friend class Cube;
  // A slot that this transaction is the first to write since it was punched or grown.
  struct FirstFill {
    SlotAddress slot;
    uint32_t bytes = 0;  // written so far; the slot is primed when all of it was
    uint32_t end = 0;  // of the write that reaches furthest
  };

  void sequenced(vtkv::SequenceNumber sequence) final;
  void durable(const vtkv::Status& status) final;  // cube bookkeeping, then committed()
  std::string data_failed(vtkv::File* file, uint64_t offset, const std::vector<iovec>& buffers) final;
  // Fills the short rest of slots written for the first time with zeros, so that they are primed.
  void pad_first_fills(ContainerSet& containers);

  Cube* m_cube = nullptr;
  std::vector<FirstFill> m_first_fills;
};

class Cube final : private vtkv::ExternalStore, private vtkv::CheckpointParticipant {
 public:
  static vtkv::Status create(vtkv::Env* env, const std::string& directory, const CubeOptions& options);
  static vtkv::Status open(vtkv::Env* env, const std::string& directory, const CubeOptions& options,
                           std::unique_ptr<Cube>* cube);
  // Of a cube in `directory`.
  static std::string containers_directory(const std::string& directory) { return directory + "/containers"; }
  // To be looked at: what a recovery would do to it is done in memory. Nothing on disk is changed; nothing may be
  // submitted.
  static vtkv::Status open_read_only(vtkv::Env* env, const std::string& directory, const CubeOptions& options,
                                     std::unique_ptr<Cube>* cube);
  ~Cube() override;
  Cube(const Cube&) = delete;
  Cube& operator=(const Cube&) = delete;

  // Encodes the delta into the batch and submits. Visible at once; committed() comes in order.
  void submit(CubeTransaction* transaction);
  vtkv::DB& database() { return *m_database; }
  ContainerSet& containers() { return *m_containers; }
  uint64_t log_segment_bytes() const { return m_options.database.geometry.log_segment_bytes; }
  // That the file system of log and tree has free, less what a reserve is meant to have there.
  vtkv::Status database_room(uint64_t* bytes) const;
  // Takes a fresh object id (durable with the transaction whose delta carries it; one that is lost with a crash may be
  // given again).
  uint64_t new_object_id() { return m_options.object_ids->take(); }
  std::map<int64_t, PoolUsage> pool_usage() const { return m_counters.pool_usage(); }
  // Of the database and of the containers: what fails at present, and is tried again.
  void add_background_errors(CubeErrors* errors) const;
  // Blocks whose read failed while the log was checked; reads of them give -EIO until overwritten.
  bool is_damaged(SlotAddress slot, uint32_t block) const { return m_damage.contains(slot, block); }

 private:
  friend class CubeTransaction;
  Cube(vtkv::Env* env, std::string directory, const CubeOptions& options, bool read_only);
  static const std::string& database_directory(const std::string& directory, const CubeOptions& options) {
    return options.metadata_directory.empty() ? directory : options.metadata_directory;
  }
  vtkv::Status open_parts();
  // Under the database's write lock, in sequence order.
  void apply(vtkv::SequenceNumber sequence, const CubeDelta& delta);
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
  CubeOptions m_options;  // changed by the constructor and open_parts() alone
  CubeCounters m_counters;  // uses object ids of m_options
  DamageList m_damage;
  // Made by open_parts(). Destroyed in the order of ~Cube: nothing below calls what is gone.
  std::unique_ptr<ContainerSet> m_containers;
  std::unique_ptr<vtkv::DB> m_database;
  std::unique_ptr<IdleCommitter> m_idle_committer;
};

}  // namespace swimstore
