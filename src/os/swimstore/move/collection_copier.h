// SPDX-License-Identifier: LGPL-2.1-or-later
// Copies all objects of a collection from one cube to another: onodes, data, omap.
//
// Blocks that objects share in the one, an object and its clones, they share in the other. Who shares has the same hash
// (ObjectWriter::clone_range), so objects are copied hash by hash, a collection's temporary objects with its others,
// and what was copied where is remembered for one hash at a time. (No OSD renames an object to another hash; whoever
// does parts it from those that it shares with.)
//
// A block that cannot be read is unreadable in the copy, too: the OSD repairs it from a replica, before or after.
//
// Transactions hold a few MiB each, and so do those that are under way. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "swimstore/maintenance/own_transaction.h"
#include "swimstore/object/block_reader.h"
#include "swimstore/object/store_context.h"

namespace swimstore {

// Who copies a collection that others use gives up its lock now and then. By default it is copied in one go.
class CopyPace {
 public:
  virtual ~CopyPace() = default;
  // Is it time for a pause, rather than for so many bytes more? Cheap.
  virtual bool is_enough(uint64_t) { return false; }
  // The collection's lock may be given up meanwhile, and is held again at the end. 0. -EAGAIN: something was changed of
  // the objects of this hash, so that no more of them is copied. Others end the copy.
  virtual int pause(uint32_t) { return 0; }
  // False: the objects of this hash are passed over.
  virtual bool wants(uint32_t) { return true; }
  // A block that cannot be read is unreadable in the copy, too; else the copy ends with -ENODATA.
  virtual bool takes_unreadable() const { return true; }
  // A part was taken of the room that `to` has promised.
  virtual void used(uint64_t) {}
};

// REQUIRES: who measures or copies holds the collection's lock, shared or alone.
class CollectionCopier {
 public:
  // Submitted and not yet durable, beside a transaction of some 4 MiB.
  static constexpr uint64_t kUnderWayBytesMax = 16u << 20;

  // In `to` nobody sees the copy: its range is marked as unowned there. `account`: a collection whose sequencer tells
  // when the copies are durable.
  CollectionCopier(StoreContext& store, TransactionPipeline& pipeline, Collection& collection, Collection& account,
                   StoreCube& from, StoreCube& to, CopyPace& pace);
  ~CollectionCopier();

  // What copy() takes of slots, at most. `metadata_bytes`, unless null: about what it takes of log and tree. Reads all
  // extents, and for that all omap. 0, or -EIO.
  int measure(uint64_t* slot_bytes, uint64_t* metadata_bytes = nullptr);
  // REQUIRES, of both: `to` has promised room. All is submitted, in order. 0, -ESHUTDOWN: nothing becomes durable any
  // more, or the error of a step.
  int copy();
  // The objects of these hashes once more: what `to` has of them goes. *done: how many hashes were dealt with.
  int copy_again(std::span<const uint32_t> hashes, size_t* done);

  uint64_t objects() const { return m_objects; }  // copied so far
  uint64_t bytes() const { return m_bytes; }  // of their blocks, written

 private:
  // A block, where the source has it. Whoever expects another checksum there wants another block.
  struct Block {
    uint64_t slot = 0;  // packed
    uint32_t number = UINT32_MAX;
    uint32_t crc32c = 0;
    bool is_unshared() const { return number == UINT32_MAX; }  // which one it is, is of no interest
    bool operator==(const Block&) const = default;
  };
  struct BlockHash {
    size_t operator()(const Block& block) const {
      return std::hash<uint64_t>()(block.slot * 0x9e3779b97f4a7c15 + block.number);
    }
  };
  // The same block, where the copy has it.
  struct Place {
    SlotAddress slot;
    uint32_t number = 0;
    uint32_t written = 0;
    uint32_t crc32c = 0;
  };
  // Neighbouring blocks of an object: none of them was copied before, or all were, to neighbouring places.
  struct Run {
    uint64_t first = 0;  // in the object
    std::vector<Block> shared;  // each of them
    std::vector<Place> places;  // each of them; empty: not copied before
    bool empty() const { return shared.empty(); }
    uint64_t end() const { return first + shared.size(); }
    // `place`: null: not copied before.
    bool continues_with(uint64_t block, const Block& source, const Place* place) const;
  };
  class Visitor;
  class Measure;
  class Copy;

  // Of a group of this name and so many bits.
  int for_each_object(const coll_t& cid, uint32_t bits, Visitor& visitor);
  // -ENOENT: it is not there any more.
  int visit(const ghobject_t& oid, Visitor& visitor);
  coll_t group_of_hash(uint32_t hash) const;
  // Calls visitor.run() for all blocks that are mapped as they are, ascending, and visitor.blob() for compressed ones.
  int for_each_run(Onode& source, Visitor& visitor);
  // All entries of the omap, as the tree has them.
  using EntryFunction = std::function<int(std::string_view key, std::string_view value)>;
  int for_each_entry(const Onode& source, const EntryFunction& function);
  struct CopiedBlob {
    CompressedBlob source, copy;
  };
  static Block first_block(const CompressedBlob& blob);
  // Null: its data was not copied before.
  const CopiedBlob* find_copied(const CompressedBlob& blob) const;
  const Place* find_copied(const Block& block) const;
  int end_run(Onode& source, Visitor& visitor, Run* run);

  StoreContext& m_store;
  TransactionPipeline& m_pipeline;
  Collection& m_collection;
  Collection& m_account;
  StoreCube& m_from;
  StoreCube& m_to;
  CopyPace& m_pace;
  std::optional<uint32_t> m_hash;  // under way
  std::unordered_map<Block, Place, BlockHash> m_copied;  // of one hash, those that may be shared
  std::unordered_map<Block, CopiedBlob, BlockHash> m_copied_blobs;  // the same, by their first stored blocks
  uint64_t m_objects = 0;
  uint64_t m_bytes = 0;
};

}  // namespace swimstore
