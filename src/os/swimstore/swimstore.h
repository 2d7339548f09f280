// SPDX-License-Identifier: LGPL-2.1-or-later
// SwimStore: an OSD's object store in files of an ordinary file system.
//
// This class wires the parts together: mkfs, mount, umount, and one forwarding line per call of
// ObjectStore. What the parts are and how they fit is in doc/architecture.md.
//
// Thread-safety: as ObjectStore demands; mkfs, mount, umount, fsck and their like are called alone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "os/ObjectStore.h"

#include "swimstore/collection/callback_threads.h"
#include "swimstore/release.h"
#include "vtkv/env.h"
#include "vtkv/status.h"

namespace swimstore {
class Collection;
class MetadataFailure;
class OmapIterator;
class StoreCounters;
struct CheckResult;
class CubeSet;
class StoreDirectory;
struct CubeOptions;
struct DefragmentCounts;
struct FsckOptions;
struct GroupMove;
struct GroupSize;
struct MetadataMove;
struct MoveLimits;
struct RepairOptions;
struct Repaired;
struct Settings;
struct StoreContext;
struct StoreLayout;
struct Superblock;
}  // namespace swimstore

class SwimStore : public ObjectStore {
 public:
  SwimStore(CephContext* cct, const std::string& path, vtkv::Env* env = vtkv::posix_env());
  ~SwimStore() override;

  // Called instead of ending the process when a cube cannot make anything durable any more. Nothing
  // queued from then on is acknowledged. For tests.
  void set_fatal_handler(std::function<void(const vtkv::Status&)> handler) { m_fatal_handler = std::move(handler); }

  // Called with the message when metadata cannot be read, instead of ending the process; the caller of the store gets
  // -EIO. For stores mounted from then on. For tests.
  void set_metadata_failure_handler(std::function<void(const std::string&)> handler) {
    m_metadata_failure_handler = std::move(handler);
  }

  // Changes what the cube is made and opened with. For tests: stores of a few KiB, rules broken on purpose.
  void set_cube_options_hook(std::function<void(swimstore::CubeOptions&)> hook) {
    m_cube_options_hook = std::move(hook);
  }

  std::string get_type() override { return "swimstore"; }

  // ---- life (swimstore_mount.cc) ----
  bool test_mount_in_use() override;
  int mkfs() override;
  int mount() override;
  int umount() override;
#if SWIM_CEPH_MOUNTS_TO_READ
  // A mount recovers, as BlueStore's does here, too.
  int mount_readonly() override { return mount(); }
  int umount_readonly() override { return umount(); }
#endif
  // The same, with the reason in words.
  vtkv::Status make();
  vtkv::Status try_mount();
  // Mounts for the tool's import, which alone takes a store whose last import was cut short. From here to end_import(),
  // durably, nobody else does: an OSD would take what is there for all there was. *again: one of this archive was cut
  // short before.
  vtkv::Status begin_import(const std::string& archive, bool* again);
  // *left: archives whose import was cut short earlier. REQUIRES: begun, and all that was queued is durable.
  vtkv::Status end_import(const std::string& archive, std::vector<std::string>* left);
  int mkjournal() override { return 0; }
  bool needs_journal() override { return false; }
  bool wants_journal() override { return false; }
  bool allows_journal() override { return false; }
  void set_fsid(uuid_d fsid) override { m_fsid = fsid; }
  uuid_d get_fsid() override { return m_fsid; }
  int write_meta(const std::string& key, const std::string& value) override;
  int read_meta(const std::string& key, std::string* value) override;

  // ---- checks, of a store that is not mounted (swimstore_check.cc) ----
  int fsck(bool deep) override;
  int repair(bool deep) override;
  int quick_fix() override;
  // Ok: the check was made. The store is recovered first, as by a mount; otherwise nothing is changed.
  vtkv::Status check(const swimstore::FsckOptions& options, swimstore::CheckResult* result);
  // Repairs one class of findings after the other, with a check in between. *result: what is left. From the first
  // change until it has come to its end the store is marked: it does not mount. The lock is held all the time.
  vtkv::Status repair(const swimstore::RepairOptions& options, std::vector<swimstore::Repaired>* changes,
                      swimstore::CheckResult* result);
  // Puts back what repair quarantined, where nothing else is now, and repairs what follows from it. What still cannot
  // be decoded stays where it is. *entries: how much that was; *left: how much stays quarantined.
  vtkv::Status put_back(uint64_t* entries, uint64_t* left, std::vector<swimstore::Repaired>* changes,
                        swimstore::CheckResult* result);
  // Makes a cube anew, empty, that a mount has abandoned: its placement groups lie in others since. Code::failed: it is
  // not abandoned, as cube 0 never is; or, unless `force`, a placement group's copy is not whole yet, and the cube may
  // have what no other has.
  vtkv::Status reset_cube(unsigned cube, bool force);
  // Removes for good what repair quarantined. *entries: how much that was.
  vtkv::Status forget_quarantined(uint64_t* entries);
  // Gives the store, and its cubes' databases, the newest format and all features that this program would make them
  // with: then older programs may refuse it. A mount never does. False in *changed: there was nothing to do.
  vtkv::Status upgrade(swimstore::Superblock* before, swimstore::Superblock* after, bool* changed);

  // ---- more cubes, of a store that is not mounted (swimstore_grow.cc) ----
  // From now on new placement groups are spread over so many cubes: a power of two, no less than it has. Those that are
  // there stay where they are. *had: how many there were; as many again: nothing to do. Code::no_space: the host has no
  // room for them. A process that ends in between loses nothing: call it again.
  vtkv::Status add_cubes(unsigned data_cubes, unsigned* had);

  // ---- log and tree on another file system, of a store that is not mounted (swimstore_metadata.cc) ----
  // Moves them to the directory `to`, which is made where it is missing, or, where that is empty, back into the store's
  // own. *bytes: what was copied; 0: they lay there. Code::no_space: they have no room there, and are where they were.
  // A process that ends in between loses nothing: call it again.
  vtkv::Status move_metadata(const std::string& to, uint64_t* bytes);

  // ---- placement groups between cubes, of a store that is not mounted (swimstore_move.cc) ----
  // Takes as long as the copy does. *move: what was done; nothing, where it lies there already. Code::no_space: it lies
  // where it was. Code::failed: see its message; it lies in one of the two, whole. A process that ends in between loses
  // nothing: the next mount removes what is there twice.
  vtkv::Status move_group(const coll_t& cid, unsigned cube, swimstore::GroupMove* move);
  // Moves what plan_balance() says, and calls `moved` after each one; with `only_plan` it calls, and moves nothing.
  // Code::no_space, or EEXIST: one or more had no room, or something was in their way; the others were moved.
  vtkv::Status balance_cubes(bool only_plan, const std::function<void(const swimstore::GroupMove&)>& moved);

  // The same of a store that is in use, by the caller's thread; `between` is called whenever clients come in. For
  // tests: an OSD's operator asks for it by the admin socket (admin/move_commands.h). See OnlineMove::run().
  vtkv::Status move_in_use(const coll_t& cid, unsigned cube, const swimstore::MoveLimits& limits,
                           const std::function<void()>& between);

  // ---- reports and knobs (swimstore_report.cc) ----
  objectstore_perf_stat_t get_cur_stats() override;
  void refresh_perf_counters() override;
  const PerfCounters* get_perf_counters() const override;
  void get_db_statistics(ceph::Formatter* formatter) override;
  int flush_cache(std::ostream* out = nullptr) override;
  void dump_perf_counters(ceph::Formatter* formatter) override;
  void dump_cache_stats(ceph::Formatter* formatter) override;
  void dump_cache_stats(std::ostream& out) override;
  int compact() override;
  // Puts data together as 'swimstore defragment' does (admin/online_defragment.h), of a store that is in use, by the
  // caller's thread, to its end; `between` is called where clients may come in between reading and writing. Else
  // Code::failed, with DataDefragmenter::error(), or why nothing becomes durable any more. For tests.
  vtkv::Status defragment_in_use(bool only_measure, const std::function<void()>& between,
                                 swimstore::DefragmentCounts* counts);
  int statfs(store_statfs_t* report, osd_alert_list_t* alerts = nullptr) override;
  int pool_statfs(uint64_t pool_id, store_statfs_t* report, bool* per_pool_omap) override;
  uint64_t estimate_objects_overhead(uint64_t num_objects) override;
  void collect_metadata(std::map<std::string, std::string>* metadata) override;
  int get_devices(std::set<std::string>* names) override;
  int get_numa_node(int* node, std::set<int>* nodes, std::set<std::string>* failed) override;
  bool is_rotational() override;
  bool is_journal_rotational() override;
  uint64_t get_min_alloc_size() const override;
  bool has_builtin_csum() const override { return true; }
  bool can_sort_nibblewise() override { return true; }
  bool is_sync_onreadable() const override { return true; }
  int validate_hobject_key(const hobject_t& object) const override;
  unsigned get_max_attr_name_length() override { return 256; }
#if SWIM_CEPH_ASKS_FOR_LIST_MAX
  int get_ideal_list_max() override { return 256; }
#endif
  void inject_data_error(const ghobject_t& oid) override;
  void inject_mdata_error(const ghobject_t& oid) override;

  // ---- collections and transactions ----
  CollectionHandle open_collection(const coll_t& cid) override;
  CollectionHandle create_new_collection(const coll_t& cid) override;
  void set_collection_commit_queue(const coll_t& cid, ContextQueue* commit_queue) override;
  int set_collection_opts(CollectionHandle& c, const pool_opts_t& opts) override;
  int list_collections(std::vector<coll_t>& collections) override;
  bool collection_exists(const coll_t& cid) override;
  int collection_empty(CollectionHandle& c, bool* empty) override;
  int collection_bits(CollectionHandle& c) override;
  int collection_list(CollectionHandle& c, const ghobject_t& start, const ghobject_t& end, int max,
                      std::vector<ghobject_t>* objects, ghobject_t* next) override;
  int queue_transactions(CollectionHandle& c, std::vector<Transaction>& transactions, TrackedOpRef op = TrackedOpRef(),
                         ThreadPool::TPHandle* handle = nullptr) override;

  // ---- objects ----
  bool exists(CollectionHandle& c, const ghobject_t& oid) override;
  int stat(CollectionHandle& c, const ghobject_t& oid, struct stat* st, bool allow_eio = false) override;
  int read(CollectionHandle& c, const ghobject_t& oid, uint64_t offset, size_t length, ceph::bufferlist& out,
           uint32_t op_flags = 0) override;
  int readv(CollectionHandle& c, const ghobject_t& oid, interval_set<uint64_t>& intervals, ceph::bufferlist& out,
            uint32_t op_flags = 0) override;
  using ObjectStore::fiemap;
  int fiemap(CollectionHandle& c, const ghobject_t& oid, uint64_t offset, size_t length,
             ceph::bufferlist& out) override;
  int fiemap(CollectionHandle& c, const ghobject_t& oid, uint64_t offset, size_t length,
             std::map<uint64_t, uint64_t>& extents) override;
  using ObjectStore::getattr;
  int getattr(CollectionHandle& c, const ghobject_t& oid, const char* name, ceph::bufferptr& value) override;
  using ObjectStore::getattrs;
  int getattrs(CollectionHandle& c, const ghobject_t& oid,
               std::map<std::string, ceph::bufferptr, std::less<>>& attrs) override;
  int dump_onode(CollectionHandle& c, const ghobject_t& oid, const std::string& section,
                 ceph::Formatter* formatter) override;

  // ---- omap ----
  int omap_get(CollectionHandle& c, const ghobject_t& oid, ceph::bufferlist* header,
               std::map<std::string, ceph::bufferlist>* values) override;
  int omap_get_header(CollectionHandle& c, const ghobject_t& oid, ceph::bufferlist* header,
                      bool allow_eio = false) override;
  int omap_get_keys(CollectionHandle& c, const ghobject_t& oid, std::set<std::string>* keys) override;
  int omap_get_values(CollectionHandle& c, const ghobject_t& oid, const std::set<std::string>& keys,
                      std::map<std::string, ceph::bufferlist>* values) override;
  int omap_check_keys(CollectionHandle& c, const ghobject_t& oid, const std::set<std::string>& keys,
                      std::set<std::string>* found) override;
#if SWIM_CEPH_HAS_OMAP_ITERATOR
  ObjectMap::ObjectMapIterator get_omap_iterator(CollectionHandle& c, const ghobject_t& oid) override;
#endif
#if SWIM_CEPH_HAS_OMAP_ITERATE
  // Sees the omap as of the call, and holds no lock while it calls `visitor`.
  int omap_iterate(CollectionHandle& c, const ghobject_t& oid, omap_iter_seek_t start_from,
                   std::function<omap_iter_ret_t(std::string_view, std::string_view)> visitor) override;
#endif
  // What both are made of. Null, with -ENOENT or -EIO in *error, when there is none.
  std::unique_ptr<swimstore::OmapIterator> omap_iterator(CollectionHandle& c, const ghobject_t& oid,
                                                         int* error = nullptr);

 private:
  struct Mounted;

  // repair changes what a check only looks at; where this program may not write, a check opens to read.
  enum class Purpose { serve, repair, check };
  // ended: nothing is left that can be repaired. left_out: the cube does not open, and was not touched. cut_short: the
  // store, or the cube, does not open any more.
  enum class CubeRepair { ended, left_out, cut_short };

  swimstore::CubeOptions cube_options(const swimstore::Settings& settings, const swimstore::StoreLayout& layout);
  void throw_away(std::vector<Transaction>& transactions);
  vtkv::Status choose_fsid(swimstore::StoreDirectory& directory);
  vtkv::Status check_made(swimstore::StoreDirectory& directory);
  vtkv::Status check_identity(swimstore::StoreDirectory& directory, const swimstore::Superblock& superblock);
  void renew_superblock(swimstore::StoreDirectory& directory, const swimstore::Superblock& superblock);
  swimstore::MetadataFailure metadata_failure(Purpose purpose, const swimstore::Superblock& superblock) const;
  vtkv::Status open(Purpose purpose);
  swimstore::CubeOptions options_of_cubes(swimstore::Settings settings, const swimstore::Superblock& superblock,
                                          const swimstore::StoreLayout& layout);
  vtkv::Status leave_out_damaged(swimstore::StoreDirectory& directory, const std::map<unsigned, std::string>& abandoned,
                                 swimstore::CubeSet& cubes);
  // For an open store.
  vtkv::Status check_all_open(const char* why) const;
  vtkv::Status check_compressors(swimstore::StoreContext& store) const;
  vtkv::Status load_collections(Mounted& mounted);
  void close();
  vtkv::Status take_lock(swimstore::StoreDirectory& directory, std::unique_ptr<vtkv::FileLock>* lock);
  // Takes the lock for as long as `work` runs, whatever that opens and closes.
  vtkv::Status hold_lock(const std::function<vtkv::Status(swimstore::StoreDirectory&)>& work);
  vtkv::Status repair_all(const swimstore::FsckOptions& options, swimstore::StoreDirectory& directory,
                          std::vector<swimstore::Repaired>* changes);
  vtkv::Status repair_cube(unsigned number, const swimstore::FsckOptions& options, swimstore::StoreDirectory& directory,
                           std::vector<swimstore::Repaired>* changes, unsigned* cubes, CubeRepair* outcome);
  swimstore::CubeOptions options_of_new_cubes(swimstore::Settings settings, const swimstore::Superblock& superblock,
                                              unsigned cubes);
  vtkv::Status check_before_adding(unsigned cubes, swimstore::CubeOptions* options);
  vtkv::Status make_new_cubes(swimstore::StoreDirectory& directory, const swimstore::CubeOptions& options,
                              unsigned first, unsigned cubes);
  vtkv::Status settle_added_cubes(swimstore::StoreDirectory& directory, const swimstore::Superblock& superblock);
  vtkv::Status measure_group(swimstore::Collection& group, swimstore::GroupSize* size);
  vtkv::Status move_measured(swimstore::Collection& group, const swimstore::GroupMove& move);
  void add_missing(std::optional<uint32_t> asked, swimstore::CheckResult* result);
  // `host`: of the store's directory.
  vtkv::Status find_layout(swimstore::StoreDirectory& directory, const swimstore::Settings& settings,
                           vtkv::FileSystemInfo host, swimstore::StoreLayout* layout) const;
  vtkv::Status consider_obstacles(const std::string& directory, vtkv::FileSystemInfo* host) const;
  // Which is known to lose what was synced. REQUIRES: the directory is locked.
  vtkv::Status refuse_unsafe_host(const swimstore::StoreDirectory& directory,
                                  const swimstore::Settings& settings) const;
  // `file`: a regular one.
  vtkv::Status refuse_unsafe_host(const std::string& file, const swimstore::Settings& settings) const;
  // What may lose acknowledged writes with the power, as sentences. For an open store.
  std::vector<std::string> host_dangers() const;
  void tell_of_the_host();
  vtkv::Status check_surroundings() const;
  // A tool goes on, with a line in the log: it may be here to save what there is.
  vtkv::Status refuse_to_osd(const vtkv::Status& refused) const;
  vtkv::Status check_all_whole() const;
  vtkv::Status end_interrupted_move(swimstore::StoreDirectory& directory, const swimstore::Superblock& superblock);
  vtkv::Status settle_metadata_move(swimstore::StoreDirectory& directory, const swimstore::Superblock& superblock);
  // `metadata_directory`: empty is fine.
  vtkv::Status refuse_same_file_system(const std::string& metadata_directory,
                                       const swimstore::Settings& settings) const;
  vtkv::Status check_and_copy_metadata(swimstore::StoreDirectory& directory, const swimstore::MetadataMove& move,
                                       const swimstore::Superblock& superblock, uint64_t* bytes);
  vtkv::Status switch_metadata(swimstore::StoreDirectory& directory, const swimstore::MetadataMove& move,
                               swimstore::Superblock superblock);
  void end_undurable(const vtkv::Status& status);
  void end_without_room(uint64_t bytes);
  void end_process(const vtkv::Status& status, const std::string& text);
  int fail(const char* what, const vtkv::Status& status) const;

  vtkv::Env* const m_env;
  uuid_d m_fsid;
  bool m_imports = false;  // during the mount of begin_import()
  std::function<void(const vtkv::Status&)> m_fatal_handler;
  std::function<void(const std::string&)> m_metadata_failure_handler;
  std::function<void(swimstore::CubeOptions&)> m_cube_options_hook;
  std::unique_ptr<swimstore::StoreCounters> m_counters;
  swimstore::CallbackThreads m_callbacks;
  std::unique_ptr<vtkv::FileLock> m_held_lock;  // of hold_lock()
  std::unique_ptr<Mounted> m_mounted;

  // For get_cur_stats.
  PerfCounters::avg_tracker<uint64_t> m_commit_latency_ns;
};
