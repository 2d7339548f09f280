// SPDX-License-Identifier: LGPL-2.1-or-later
// A store that nobody has mounted, looked at through its files. Nothing on disk is changed: what a recovery
// would do to the tree is done in memory.
//
// Not thread-safe.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "swimstore/compression/blob_codec.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/format/container_header.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/format/onode_record.h"
#include "swimstore/format/superblock.h"
#include "vtkv/db.h"
#include "vtkv/salvage.h"

namespace swimstore {

// An object as the tree has it.
struct StoredObject {
  std::string key;        // in the tree
  ghobject_t oid;         // valid if has_name
  bool has_name = false;  // the key can be decoded
  bool decodable = false;  // so can the record
  OnodeRecord record;
  ExtentShard shard;  // with flag shard_inline
  std::string bytes;  // the record as it is

  std::string name() const;  // as ceph-objectstore-tool and the OSD's log print it; or the key in hex
};

struct StoredShard {
  uint32_t number = 0;
  ExtentShard extents;
};

class StoreFiles {
 public:
  // salvage: goes on without what reading objects can do without, and notes() says what that was.
  enum class Purpose { look, salvage };
  // `cube`: the only one that is to be looked at; none: all. Code::busy while somebody has the store mounted;
  // invalid_argument when there is no such cube.
  static vtkv::Status open(vtkv::Env* env, const std::string& path, std::optional<uint32_t> cube, Purpose purpose,
                           std::unique_ptr<StoreFiles>* files);

  const std::string& path() const { return m_path; }
  StoreDirectory& directory() { return *m_directory; }
  const std::vector<uint32_t>& cubes() const { return m_cubes; }  // those that are to be looked at
  const std::vector<uint32_t>& left_out() const { return m_left_out; }  // abandoned, and nobody named them
  uint32_t cube() const { return m_cube; }  // that what follows is of; at first, the first of them
  std::string database_path() const;  // of its log and tree
  vtkv::Env* env() const { return m_env.get(); }
  bool salvages() const { return m_purpose == Purpose::salvage; }
  const std::vector<std::string>& notes() const { return m_notes; }  // a sentence each
  const Superblock& superblock() const { return m_superblock; }
  // Is this copy (0 or 1) of the superblock whole by itself?
  bool is_copy_whole(unsigned copy) const;

  // Code::unsupported: there are features without which nobody may read.
  vtkv::Status check_features() const;
  // It has features that this program does not know, so that what cannot be decoded may be in a newer form.
  bool may_hold_newer() const;
  // Calls visit with each of cubes() open, in turn. In a salvage one that does not open is noted and passed over, but
  // for the last one when none did.
  vtkv::Status for_each_cube(const std::function<vtkv::Status()>& visit);
  // The same with each of the cubes in use that opens, whichever are to be looked at: for what need not be complete.
  void for_each_cube_in_use(const std::function<void()>& visit);
  bool is_in_use() const;  // not abandoned: cube()
  bool is_one_of_several_in_use() const;
  // Code::invalid_argument where several cubes are to be looked at.
  vtkv::Status check_only_cube() const;
  // REQUIRES, for all that follows: ok. It may fail where the other calls still work. Code::unsupported: there are
  // features without which nobody may read. Once is enough.
  vtkv::Status open_cube();
  // Both.
  vtkv::Status open_only_cube();
  vtkv::DB& database() const { return *m_database; }
  // Of the tree. Null: it is whole, or nothing would have opened.
  const vtkv::LostEntries* lost() const { return m_lost.get(); }
  const ContainerHeader& containers() const { return m_header; }
  vtkv::File& container(unsigned size_class) const { return *m_containers[size_class]; }

  // Calls visit for every entry of this kind (key_codec.h).
  vtkv::Status for_each(char prefix,
                        const std::function<vtkv::Status(std::string_view key, std::string_view value)>& visit) const;
  vtkv::Status for_each_object(const std::function<vtkv::Status(const StoredObject&)>& visit) const;
  // The same, of those whose keys lie in [lower, upper).
  vtkv::Status for_each_object(const std::string& lower, const std::string& upper,
                               const std::function<vtkv::Status(const StoredObject&)>& visit) const;
  // Code::not_found. `name` as StoredObject::name, or the object's own name, as it is or as the former has it, if there
  // is one such object only.
  vtkv::Status find_object(const std::string& name, StoredObject* object) const;
  // Code::corruption names the shard that cannot be decoded.
  vtkv::Status read_shards(const StoredObject& object, std::vector<StoredShard>* shards) const;
  // One block of a slot. `destination` is aligned.
  vtkv::Status read_block(SlotAddress slot, uint32_t block, char* destination) const;
  // "", or which compressor plugins are missing, and the remedy.
  const std::string& missing_plugins() const { return m_codec.missing(); }
  // What a compressed blob was made of. Code::unsupported without its plugin; corruption when a stored block does not
  // match its checksum.
  vtkv::Status read_blob(const CompressedBlob& blob, ceph::bufferlist* blocks) const;

 private:
  using Containers = std::array<std::unique_ptr<vtkv::File>, kSizeClasses>;
  // Of the log's last records some may have reached the disk and their data not: what was there before counts then.
  // What cannot be read is told when it is read.
  class ContainerData final : public vtkv::ExternalStore {
   public:
    explicit ContainerData(const Containers& containers) : m_containers(containers) {}
    vtkv::Status verify(const vtkv::ExternalWrite& write, bool* matches) override;
    void mark_damaged(const vtkv::ExternalWrite&) override {}
    vtkv::Status sync_all() override { return {}; }

   private:
    const Containers& m_containers;
  };

  StoreFiles(std::unique_ptr<vtkv::Env> env, Purpose purpose);
  vtkv::Status open_root(const std::string& path, std::optional<uint32_t> cube);
  // How many the superblock says, or, where there is none to be had, how many lie there.
  uint32_t count_cubes(bool has_superblock) const;
  void select(uint32_t cube);
  vtkv::Status read_superblock();
  // Of a store without a superblock, whose log and tree an interrupted move has left in two places: which one is used.
  // Code::failed: the one that metadata_path names cannot be opened at all.
  vtkv::Status choose_metadata();
  // Of the last record of each cube's log; none of a cube that does not open.
  std::vector<std::optional<uint64_t>> newest_sequences(const std::string& metadata_directory);
  vtkv::Status read_header();
  std::string cube_path() const;
  // The status as it is; ok after a note of it where it is to be done without, which what is merely newer never is.
  vtkv::Status do_without(const vtkv::Status& status);

  const std::unique_ptr<vtkv::Env> m_env;  // changes nothing
  const Purpose m_purpose;
  const BlobCodec m_codec;
  std::vector<std::string> m_notes;
  std::string m_path;
  std::unique_ptr<StoreDirectory> m_directory;
  std::vector<uint32_t> m_cubes;
  std::vector<uint32_t> m_left_out;
  std::vector<uint32_t> m_in_use;
  uint32_t m_cube = 0;
  std::unique_ptr<vtkv::FileLock> m_lock;
  std::string m_superblock_bytes;
  Superblock m_superblock;
  Containers m_containers;  // null: it was to be done without
  ContainerData m_data{m_containers};
  std::unique_ptr<vtkv::DB> m_database;
  std::unique_ptr<vtkv::LostEntries> m_lost;
  ContainerHeader m_header;
};

}  // namespace swimstore
