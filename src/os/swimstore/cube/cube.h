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
#include "swimstore/format/note_record.h"
#include "vtkv/db.h"

namespace swimstore {

struct CubeOptions {
  vtkv::Options database;
  ContainerOptions containers;
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
  friend class CubeImplementation;
  // A slot that this transaction is the first to write since it was punched or grown.
  struct FirstFill {
    SlotAddress slot;
    uint32_t bytes = 0;  // written so far; the slot is primed when all of it was
    uint32_t end = 0;    // of the write that reaches furthest
  };

  void sequenced(vtkv::SequenceNumber sequence) final;
  void durable(const vtkv::Status& status) final;  // cube bookkeeping, then committed()
  std::string data_failed(vtkv::File* file, uint64_t offset, const std::vector<iovec>& buffers) final;
  // Fills the short rest of slots written for the first time with zeros, so that they are primed.
  void pad_first_fills(ContainerSet& containers);

  class CubeImplementation* m_cube = nullptr;
  std::vector<FirstFill> m_first_fills;
};

class Cube {
 public:
  static vtkv::Status create(vtkv::Env* env, const std::string& directory, const CubeOptions& options);
  static vtkv::Status open(vtkv::Env* env, const std::string& directory, const CubeOptions& options,
                           std::unique_ptr<Cube>* cube);
  virtual ~Cube() = default;

  // Encodes the delta into the batch and submits. Visible at once; committed() comes in order.
  virtual void submit(CubeTransaction* transaction) = 0;
  virtual vtkv::DB& database() = 0;
  virtual ContainerSet& containers() = 0;
  // Reserves a fresh object id (never reused; durable with the transaction whose delta carries it).
  virtual uint64_t new_object_id() = 0;
  virtual std::map<int64_t, PoolUsage> pool_usage() const = 0;
  // Of the database and of the containers: what fails at present, and is tried again.
  virtual std::vector<vtkv::BackgroundError> background_errors() const = 0;
  // Blocks whose read failed while the log was checked; reads of them give -EIO until overwritten.
  virtual bool is_damaged(SlotAddress slot, uint32_t block) const = 0;
};

}  // namespace swimstore
