// SPDX-License-Identifier: LGPL-2.1-or-later
// SwimStore's life: made, mounted, checked, unmounted.

#include <unistd.h>

#include <iostream>
#include <optional>

#include <fmt/format.h>

#include "common/code_environment.h"
#include "common/debug.h"
#include "global/global_context.h"
#include "log/Log.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/directory/store_layout.h"
#include "swimstore/isolation/damaged_cubes.h"
#include "swimstore/isolation/lost_groups.h"
#include "swimstore/move/collection_mover.h"
#include "swimstore/move/cube_division.h"
#include "swimstore/omap/part_sweeper.h"
#include "swimstore/ops/background_alert.h"
#include "swimstore/ops/last_words.h"
#include "swimstore/ops/perf_counters.h"
#include "swimstore/ops/settings.h"
#include "swimstore/swimstore.h"
#include "swimstore/swimstore_mounted.h"
#include "vtkv/util/host_remedy.h"

#define dout_context cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore(" << path << ") "

using swimstore::MetadataFailure;
using swimstore::Settings;
using swimstore::StoreDirectory;
using swimstore::StoreLayout;
using swimstore::Superblock;
using vtkv::Status;

namespace {

// Without it an OSD unmounts its store when it is stopped.
constexpr const char* kFastShutdown = "osd_fast_shutdown";

// Until the memory manager's first turn.
constexpr size_t kFirstCacheBytes = 64u << 20;

std::vector<swimstore::ManagedCache> managed_caches(swimstore::StoreContext& store) {
  swimstore::StoreCubes& cubes = store.cubes;
  return {
      {"onodes", "swimstore_cache_meta_ratio", [&cubes] { return cubes.onode_bytes(); },
       [&cubes](uint64_t bytes) { cubes.set_onode_capacity(bytes); }},
      {"tree", "swimstore_cache_kv_ratio", [&cubes] { return cubes.tree_bytes(); },
       [&cubes](uint64_t bytes) { cubes.set_tree_capacity(bytes); }},
      {"data", nullptr, [&cubes] { return cubes.data_bytes(); },
       [&cubes](uint64_t bytes) { cubes.set_data_capacity(bytes); }},
  };
}

// Where a mark cannot be written, the next mount uses the cube, and meets the damage again.
void mark_suspect(StoreDirectory directory, unsigned cubes, unsigned suspected, const std::string& reason) {
  for (unsigned cube = 1; cube < cubes; ++cube) {
    std::optional<swimstore::CubeMark> mark;
    if ((suspected == cube || suspected == MetadataFailure::kUnknownCube) &&
        directory.read_cube_mark(cube, &mark).ok() && !mark) {
      (void)directory.mark_cube(cube, {swimstore::CubeMark::State::suspect, reason});
    }
  }
}

}  // namespace

SwimStore::Mounted::Mounted(CephContext* cct, vtkv::Env* env, std::unique_ptr<vtkv::FileLock> held_lock,
                            std::unique_ptr<swimstore::CubeSet> opened_cubes, swimstore::CallbackThreads& callbacks,
                            PerfCounters& counters, swimstore::MetadataFailure metadata_failure,
                            const swimstore::Superblock& its_superblock)
    : lock(std::move(held_lock)),
      superblock(its_superblock),
      cubes(std::move(opened_cubes)),
      context(cct, env, *cubes, callbacks, counters, std::move(metadata_failure),
              superblock.features.incompat.contains(swimstore::kCompressionFeature), kFirstCacheBytes,
              kFirstCacheBytes),
      objects(context),
      omaps(context, objects),
      lister(context),
      pipeline(
          context,
          [this](swimstore::Collection& collection, unsigned to, swimstore::LackingRoom* lacking) {
            collection.lock.assert_held();
            mover.make_way(collection, to);
            return swimstore::CollectionMover(context, pipeline).move(collection, to, lacking);
          },
          [this](unsigned cube, const coll_t& cid, uint32_t bits) { return mover.make_way(cube, cid, bits); }),
      mover(context, pipeline),
      memory(cct, managed_caches(context)),
      commands(context, pipeline.throttle(), mover),
      fsck(context),
      verify(context),
      move_commands(cct, mover),
      defragment(context, pipeline) {}

int SwimStore::fail(const char* what, const Status& status) const {
  derr << what << ": " << vtkv::with_host_remedy(status, path).message() << dendl;
  // The caller is likely to exit at once, and Ceph's log does not flush then: the reason would be lost.
  cct->_log->flush();
  return -status.error_number();
}

int SwimStore::write_meta(const std::string& key, const std::string& value) {
  const Status status = StoreDirectory(m_env, path).write_meta(key, value);
  return status.ok() ? 0 : fail("write_meta", status);
}

int SwimStore::read_meta(const std::string& key, std::string* value) {
  return -StoreDirectory(m_env, path).read_meta(key, value).error_number();
}

bool SwimStore::test_mount_in_use() {
  StoreDirectory directory(m_env, path);
  if (!directory.has_superblock()) {
    return false;
  }
  std::unique_ptr<vtkv::FileLock> lock;
  return directory.lock(&lock).code() == Status::Code::busy;
}

int SwimStore::mkfs() {
  const Status status = make();
  return status.ok() ? 0 : fail("mkfs", status);
}

Status SwimStore::make() {
  StoreDirectory directory(m_env, path);
  Settings settings;
  VTKV_RETURN_IF_ERROR(Settings::read(cct, &settings));
  VTKV_RETURN_IF_ERROR(check_surroundings());
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(directory.check_host(settings, &host));
  if (directory.has_superblock()) {
    return check_made(directory);
  }
  bool ignored = false;
  VTKV_RETURN_IF_ERROR(settings.choose_single_flush(host, &ignored));  // before anything is written
  std::unique_ptr<vtkv::FileLock> lock;
  VTKV_RETURN_IF_ERROR(directory.lock(&lock));
  if (directory.has_superblock()) {
    return check_made(directory);  // another mkfs came first
  }
  VTKV_RETURN_IF_ERROR(refuse_unsafe_host(directory, settings));
  VTKV_RETURN_IF_ERROR(choose_fsid(directory));
  VTKV_RETURN_IF_ERROR(directory.begin_mkfs());
  VTKV_RETURN_IF_ERROR(directory.write_meta("type", "swimstore"));
  VTKV_RETURN_IF_ERROR(directory.write_meta("fsid", m_fsid.to_string()));
  VTKV_RETURN_IF_ERROR(m_env->create_directory(directory.cubes_path()));
  Superblock superblock;
  superblock.cubes = swimstore::CubeSet::cubes_for(settings.cubes);
  superblock.features = swimstore::features_of(superblock.cubes);
  std::unique_ptr<vtkv::FileLock> metadata_lock;
  if (!settings.metadata_path.empty()) {
    std::string metadata = settings.metadata_path;
    vtkv::FileSystemInfo metadata_host;
    VTKV_RETURN_IF_ERROR(directory.take_metadata_directory(&metadata, &metadata_lock));
    VTKV_RETURN_IF_ERROR(directory.check_file_system(metadata, settings, &metadata_host));
    VTKV_RETURN_IF_ERROR(settings.choose_single_flush(metadata_host, &ignored));
    VTKV_RETURN_IF_ERROR(refuse_same_file_system(metadata, settings));
    VTKV_RETURN_IF_ERROR(refuse_unsafe_host(metadata + "/" + StoreDirectory::kLock, settings));
    VTKV_RETURN_IF_ERROR(directory.make_metadata_directory(metadata));
    superblock.features.incompat.insert(swimstore::kMetadataElsewhereFeature);
  }
  StoreLayout layout;
  VTKV_RETURN_IF_ERROR(find_layout(directory, settings, host, &layout));
  const swimstore::CubeOptions options = swimstore::CubeSet::layout(cube_options(settings, layout), superblock.cubes);
  VTKV_RETURN_IF_ERROR(swimstore::CubeSet::create(m_env, directory.cubes_path(), options, superblock.cubes));

  std::copy_n(m_fsid.bytes(), superblock.uuid.size(), superblock.uuid.begin());
  superblock.created_us = m_env->wall_clock_us();
  superblock.chunk_bytes = options.containers.chunk_bytes;
  superblock.geometry = options.database.geometry;
  for (unsigned cube = 1; cube < superblock.cubes; ++cube) {
    VTKV_RETURN_IF_ERROR(directory.end_cube_mark(cube));  // of a store that was here before
  }
  VTKV_RETURN_IF_ERROR(directory.end_adding_cubes());
  VTKV_RETURN_IF_ERROR(directory.forget_repair_and_import());
  VTKV_RETURN_IF_ERROR(directory.forget_other_metadata());
  VTKV_RETURN_IF_ERROR(directory.mark_databases(superblock.cubes));
  VTKV_RETURN_IF_ERROR(directory.end_mkfs(superblock));
  dout(1) << "made a store, fsid " << m_fsid << dendl;
  return {};
}

// The one that was asked for, the one in the file, or a random one.
Status SwimStore::choose_fsid(StoreDirectory& directory) {
  std::string text;
  const Status found = directory.read_meta("fsid", &text);
  VTKV_RETURN_IF_ERROR(found.is_not_found() ? Status() : found);
  if (found.ok()) {
    uuid_d fsid;
    if (!fsid.parse(text.c_str()) || (!m_fsid.is_zero() && fsid != m_fsid)) {
      return Status::invalid_argument(
          fmt::format("the file {}/fsid holds '{}', but the store is to be {}: remove the "
                      "file or correct --osd-uuid",
                      path, text, m_fsid.to_string()));
    }
    m_fsid = fsid;
  }
  if (m_fsid.is_zero()) {
    m_fsid.generate_random();
  }
  return {};
}

swimstore::CubeOptions SwimStore::cube_options(const Settings& settings, const StoreLayout& layout) {
  swimstore::CubeOptions options = settings.cube_options(layout.single_flush);
  options.metadata_directory = layout.metadata_directory;
  options.database.on_fatal = [this](const Status& status) { end_undurable(status); };
  const auto tell = [this](const std::string& where) {
    return [this, where](const vtkv::BackgroundError& error) { derr << swimstore::describe(error, where) << dendl; };
  };
  options.database.on_background_error = tell(layout.metadata_directory.empty() ? path : layout.metadata_directory);
  options.containers.on_background_error = tell(path);
  if (m_cube_options_hook) {
    m_cube_options_hook(options);
  }
  return options;
}

// mkfs of a store that is there already: fine when it is the one that was asked for.
Status SwimStore::check_made(StoreDirectory& directory) {
  Superblock superblock;
  VTKV_RETURN_IF_ERROR(directory.read_superblock(&superblock));
  const uuid_d fsid = superblock.fsid();
  if (!m_fsid.is_zero() && m_fsid != fsid) {
    return Status::make(Status::Code::invalid_argument,
                        fmt::format("{} holds a store already, with fsid {} and not {}: remove it first, or use "
                                    "another directory",
                                    path, fsid.to_string(), m_fsid.to_string()),
                        EEXIST);
  }
  m_fsid = fsid;
  dout(1) << "the store is there already, fsid " << m_fsid << dendl;
  return {};
}

Status SwimStore::check_identity(StoreDirectory& directory, const Superblock& superblock) {
  const uuid_d fsid = superblock.fsid();
  std::string text;
  const Status found = directory.read_meta("fsid", &text);
  if (!found.ok() && !found.is_not_found()) {
    return found;
  }
  uuid_d named;
  if (found.ok() && (!named.parse(text.c_str()) || named != fsid)) {
    return Status::invalid_argument(
        fmt::format("the file {}/fsid holds '{}', but the store's superblock says {}: "
                    "these are files of two stores",
                    path, text, fsid.to_string()));
  }
  if (!swimstore::CubeSet::is_valid_count(superblock.cubes)) {
    return Status::unsupported(
        fmt::format("{} has {} cubes, which this program makes no store of: use the newer program that made it", path,
                    superblock.cubes));
  }
  m_fsid = fsid;
  return {};
}

// One whole copy is enough, as long as there is one.
void SwimStore::renew_superblock(StoreDirectory& directory, const Superblock& superblock) {
  if (superblock.is_whole(m_env, path)) {
    return;
  }
  const Status status = directory.write_superblock(superblock);
  derr << "one of the superblock's two copies was damaged: "
       << (status.ok() ? "both were written anew" : status.to_string()) << dendl;
}

// An OSD is a daemon; whatever else opens a store is a tool, which goes on where it can.
MetadataFailure SwimStore::metadata_failure(Purpose purpose, const Superblock& superblock) const {
  const bool serves_an_osd = purpose == Purpose::serve && g_code_env == CODE_ENVIRONMENT_DAEMON;
  MetadataFailure::Suspect suspect;
  if (purpose == Purpose::serve && superblock.cubes > 1) {
    suspect = [env = m_env, path = path, cubes = superblock.cubes](unsigned cube, const std::string& reason) {
      mark_suspect(StoreDirectory(env, path), cubes, cube, reason);
    };
  }
  return MetadataFailure(cct, path,
                         serves_an_osd ? MetadataFailure::Policy::end_process : MetadataFailure::Policy::give_error,
                         m_metadata_failure_handler, std::move(suspect));
}

// To be checked, the store is left as it is behind what recovery does, and opens with what would keep it from
// serving: the check says it. Without compressor plugins it opens where no data is read.
Status SwimStore::open(Purpose purpose) {
  ceph_assert(!m_mounted);
  Settings settings;
  VTKV_RETURN_IF_ERROR(Settings::read(cct, &settings));
  StoreDirectory directory(m_env, path);
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(directory.check_host(settings, &host));
  Superblock superblock;
  VTKV_RETURN_IF_ERROR(directory.read_superblock(&superblock));
  std::unique_ptr<vtkv::FileLock> lock;
  VTKV_RETURN_IF_ERROR(take_lock(directory, &lock));
  VTKV_RETURN_IF_ERROR(directory.read_superblock(&superblock));  // an upgrade may have come before the lock
  const Status may_write = superblock.features.check(path + "/superblock", swimstore::known_features(), true);
  VTKV_RETURN_IF_ERROR(purpose == Purpose::check
                           ? superblock.features.check(path + "/superblock", swimstore::known_features(), false)
                           : may_write);
  VTKV_RETURN_IF_ERROR(check_identity(directory, superblock));
  VTKV_RETURN_IF_ERROR(may_write.ok() ? settle_metadata_move(directory, superblock) : Status());
  if (purpose == Purpose::serve && directory.is_repair_unfinished()) {
    return Status::failed(
        fmt::format("a repair of {0} was begun and did not come to its end: what is stored may not "
                    "agree with itself. Run 'ceph-swimstore-tool repair {0}' again, until it says what is left. For a "
                    "cube N that does not open any more, write 'abandoned: ' and why into {0}/cube_N_failed before",
                    path));
  }
  const std::vector<std::string> archives = directory.unfinished_imports();
  if (purpose == Purpose::serve && !m_imports && !archives.empty()) {
    return Status::failed(
        fmt::format("the import of {1} into {0} was begun and did not come to its end: what is missing would pass for "
                    "removed. Run 'ceph-swimstore-tool import {0} --in {2}' again, or make the OSD anew",
                    path, fmt::join(archives, " and of "), fmt::join(archives, "', and with --in '")));
  }
  if (purpose == Purpose::serve) {
    VTKV_RETURN_IF_ERROR(refuse_to_osd(check_surroundings()));
    VTKV_RETURN_IF_ERROR(refuse_to_osd(refuse_unsafe_host(directory, settings)));
    VTKV_RETURN_IF_ERROR(directory.end_mkfs(superblock));
    VTKV_RETURN_IF_ERROR(settle_added_cubes(directory, superblock));
    renew_superblock(directory, superblock);
    const Status marked = directory.mark_databases(superblock.cubes);
    VTKV_RETURN_IF_ERROR(marked.is_no_space() ? Status() : marked);  // the next one does it
  }

  StoreLayout layout;
  VTKV_RETURN_IF_ERROR(find_layout(directory, settings, host, &layout));
  swimstore::CubeOptions options = options_of_cubes(settings, superblock, layout);
  options.containers.maintenance = purpose == Purpose::serve;
  swimstore::CubeSet::Opening opening{.cubes = superblock.cubes, .goes_on = true};
  VTKV_RETURN_IF_ERROR(swimstore::find_abandoned_cubes(directory, superblock.cubes, &opening.left_out));
  if (purpose == Purpose::serve) {
    VTKV_RETURN_IF_ERROR(swimstore::keep_abandoned_cubes(directory, opening.left_out));
  }
  std::unique_ptr<swimstore::CubeSet> cubes;
  Status opened = may_write;  // not where it has features that this program does not know
  if (opened.ok()) {
    opened = swimstore::CubeSet::open(m_env, directory.cubes_path(), options, opening, &cubes);
  }
  if (purpose == Purpose::check && opened.code() == Status::Code::unsupported) {
    opening.read_only = true;
    opened = swimstore::CubeSet::open(m_env, directory.cubes_path(), options, opening, &cubes);
  }
  VTKV_RETURN_IF_ERROR(opened);
  if (purpose == Purpose::serve && superblock.cubes > 1) {
    VTKV_RETURN_IF_ERROR(leave_out_damaged(directory, opening.left_out, *cubes));
  }

  auto mounted = std::make_unique<Mounted>(cct, m_env, std::move(lock), std::move(cubes), m_callbacks,
                                           *m_counters->get(), metadata_failure(purpose, superblock), superblock);
  VTKV_RETURN_IF_ERROR(purpose == Purpose::serve ? check_compressors(mounted->context) : Status());
  if (g_code_env != CODE_ENVIRONMENT_DAEMON) {
    mounted->context.no_room = [this](uint64_t bytes) { end_without_room(bytes); };
  }
  mounted->layout = layout;
  mounted->read_only = opening.read_only;
  mounted->abandoned = std::move(opening.left_out);
  if (purpose == Purpose::serve) {
    VTKV_RETURN_IF_ERROR(load_collections(*mounted));
  }
  mounted->memory.adjust();
  m_callbacks.start(settings.callback_threads);
  const auto consider_shutdown = [this](const ConfigProxy& conf) {
    if (!conf.get_val<bool>(kFastShutdown)) {
      m_callbacks.prefer_queues();
    }
  };
  mounted->fast_shutdown.emplace(cct, kFastShutdown, consider_shutdown);
  consider_shutdown(cct->_conf);
  m_mounted = std::move(mounted);
  return {};
}

// What mkfs has settled comes from the superblock.
swimstore::CubeOptions SwimStore::options_of_cubes(Settings settings, const Superblock& superblock,
                                                   const StoreLayout& layout) {
  settings.geometry = superblock.geometry;
  settings.chunk_bytes = superblock.chunk_bytes;
  return cube_options(settings, layout);
}

Status SwimStore::leave_out_damaged(StoreDirectory& directory, const swimstore::MissingCubes& abandoned,
                                    swimstore::CubeSet& cubes) {
  swimstore::MissingCubes damaged;
  {
    swimstore::StoreContext probe(cct, m_env, cubes, m_callbacks, *m_counters->get(),
                                  MetadataFailure(cct, path, MetadataFailure::Policy::give_error, {}), false,
                                  kFirstCacheBytes, kFirstCacheBytes);
    swimstore::DamagedCubes found(probe, directory, abandoned);
    VTKV_RETURN_IF_ERROR(found.find());
    if (found.damaged().empty()) {
      return {};
    }
    const bool is_tool = g_code_env != CODE_ENVIRONMENT_DAEMON;
    if (is_tool || cct->_conf.get_val<std::string>("swimstore_mount_damaged_cubes") != "incomplete") {
      return found.refusal(is_tool);
    }
    VTKV_RETURN_IF_ERROR(check_compressors(probe));  // a cube is abandoned for ever: not where the mount is refused
    VTKV_RETURN_IF_ERROR(found.abandon());
    damaged = found.damaged();
  }
  for (const auto& [cube, why] : damaged) {
    if (cubes.has(cube)) {
      cubes.remove(cube, why);
    }
  }
  return {};
}

// Without a plugin its data looks damaged, and a write, a move or the OSD's repair would take it for that.
Status SwimStore::check_compressors(swimstore::StoreContext& store) const {
  const std::string& missing = store.compression.codec().missing();
  if (missing.empty()) {
    return {};
  }
  for (const auto& [pool, usage] : store.cubes.set().pool_usage()) {
    if (usage.has_compressed()) {
      return Status::unsupported(
          fmt::format("{} has compressed data, of pool {}, and {}; nothing was changed", path, pool, missing));
    }
  }
  return {};
}

// And ends what a crash, or the loss of a cube, left undone.
Status SwimStore::load_collections(Mounted& mounted) {
  swimstore::StoreContext& store = mounted.context;
  std::vector<swimstore::OutdatedRecord> outdated;
  for (const auto& cube : store.cubes) {
    VTKV_RETURN_IF_ERROR(store.collections.load(cube->database(), cube->number, store.cubes.size(), &outdated));
  }
  VTKV_RETURN_IF_ERROR(swimstore::check_witnessed_homes(store));
  if (store.cubes.size() > 1) {
    const bool had_one = mounted.superblock.features.ro_compat.contains(swimstore::kGroupsInCube0Feature);
    VTKV_RETURN_IF_ERROR(swimstore::CubeDivision(store).run(had_one));
  }
  const bool has_witnesses = mounted.superblock.features.ro_compat.contains(swimstore::kWitnessFeature);
  VTKV_RETURN_IF_ERROR(has_witnesses ? swimstore::witness_homes(store, outdated) : Status());
  VTKV_RETURN_IF_ERROR(swimstore::CollectionMover(store, mounted.pipeline).finish_interrupted(outdated));
  swimstore::sweep_omap_parts(store);
  const swimstore::MissingCubes& missing = store.cubes.set().missing();
  if (has_witnesses) {
    std::vector<swimstore::LostGroup> lost;
    if (!missing.empty()) {
      VTKV_RETURN_IF_ERROR(swimstore::find_lost_groups(store, missing, &lost));
    }
    VTKV_RETURN_IF_ERROR(swimstore::find_groups_without_info(store, &lost));
    // Their witnesses say that they lay in a cube that is gone, until it is durable that they lie elsewhere.
    const Status made = swimstore::make_anew(store, mounted.pipeline, lost);
    mounted.pipeline.drain();  // else they would outlive a mount that is refused
    VTKV_RETURN_IF_ERROR(made);
    store.keeps_witnesses = true;
    VTKV_RETURN_IF_ERROR(swimstore::settle_witnesses(store));
  } else if (!missing.empty()) {
    return Status::failed(
        fmt::format("cube {} is marked as abandoned, and the store does not know which placement groups "
                    "lay there: remove the OSD and make it anew",
                    missing.begin()->first));
  }
  return {};
}

Status SwimStore::take_lock(StoreDirectory& directory, std::unique_ptr<vtkv::FileLock>* lock) {
  return m_held_lock ? Status() : directory.lock(lock);
}

int SwimStore::mount() {
  StoreDirectory directory(m_env, path);  // where a repair or an import is unfinished, try_mount() says how it ends
  if (cct->_conf.get_val<bool>("swimstore_fsck_on_mount") && !directory.is_unfinished()) {
    const bool deep = cct->_conf.get_val<bool>("swimstore_fsck_on_mount_deep");
    const int errors = fsck(deep);
    if (errors != 0) {
      return errors < 0 ? errors
                        : fail("mount",
                               Status::failed(fmt::format(
                                   "refused, the check of {0} that swimstore_fsck_on_mount asks for found {1} errors: "
                                   "'ceph-swimstore-tool fsck {0}{2}' names them, 'repair {0}{2}' fixes what can be "
                                   "fixed{3}",
                                   path, errors, deep ? " --deep" : "",
                                   deep ? ". For data that cannot be read start the OSD without "
                                          "swimstore_fsck_on_mount_deep, and run 'ceph pg repair'"
                                        : "")));
    }
  }
  const Status status = try_mount();
  // A missing file is damage, too. Without a superblock, and where the host refuses something, the remedy is another.
  if ((status.is_corruption() || status.is_not_found() || status.code() == Status::Code::io_error) &&
      vtkv::host_remedy(status.error_number(), path).empty() && directory.has_superblock()) {
    return fail("mount", status.with_message(fmt::format("{}. {}", status.message(), MetadataFailure::remedy(path))));
  }
  return status.ok() ? 0 : fail("mount", status);
}

Status SwimStore::begin_import(const std::string& archive, bool* again) {
  m_imports = true;
  const Status status = try_mount();
  m_imports = false;
  return status.ok() ? StoreDirectory(m_env, path).begin_import(archive, again) : status;
}

Status SwimStore::end_import(const std::string& archive, std::vector<std::string>* left) {
  StoreDirectory directory(m_env, path);
  const Status ended = directory.end_import(archive);
  *left = directory.unfinished_imports();
  return ended;
}

Status SwimStore::try_mount() {
  VTKV_RETURN_IF_ERROR(open(Purpose::serve));
  if (cct->_conf.get_val<bool>("swimstore_cache_autotune")) {
    m_mounted->memory.start(m_env);
  }
  m_mounted->defragment.allow(is_rotational());
  tell_of_the_host();
  dout(1) << "mounted, fsid " << m_fsid << (m_mounted->layout.single_flush ? ", one flush" : ", a flush per file")
          << " per commit group"
          << (m_mounted->layout.metadata_directory.empty() ? "" : " and file system, log and tree in ")
          << m_mounted->layout.metadata_directory << dendl;
  return {};
}

void SwimStore::close() {
  m_mounted->mover.stop();
  m_mounted->defragment.end();
  m_mounted->verify.end();
  uint64_t begun = 0;
  do {
    begun = m_mounted->pipeline.begun();
    m_mounted->pipeline.drain();
    m_callbacks.wait();
  } while (m_mounted->pipeline.begun() != begun);  // a callback may have queued a transaction
  m_callbacks.stop();
  m_mounted.reset();
}

int SwimStore::umount() {
  ceph_assert(m_mounted);
  close();
  dout(1) << "unmounted" << dendl;
  if (cct->_conf.get_val<bool>("swimstore_fsck_on_umount")) {
    const int errors = fsck(cct->_conf.get_val<bool>("swimstore_fsck_on_umount_deep"));
    if (errors != 0) {
      return errors < 0 ? errors : fail("umount", Status::failed(fmt::format("fsck found {} errors", errors)));
    }
  }
  return 0;
}

void SwimStore::end_undurable(const Status& status) {
  const bool is_osd = g_code_env == CODE_ENVIRONMENT_DAEMON;
  const std::string of_host = vtkv::host_remedy(status.error_number(), path);
  end_process(status, fmt::format("{}: nothing can be made durable any more{}. Remedy: {}, then {} again",
                                  status.to_string(), is_osd ? "; this OSD ends, its peers take over" : "",
                                  of_host.empty() ? "check the disk" : of_host, is_osd ? "start it" : "run this"));
}

// Beside a tool nobody makes room.
void SwimStore::end_without_room(uint64_t bytes) {
  const std::string text = fmt::format(
      "no room for {} bytes more: what was being written is not complete. Enlarge the store, or free space on its "
      "file system, or on that of log and tree; then run this again, before an OSD starts on it",
      bytes);
  end_process(Status::make(Status::Code::no_space, text, ENOSPC), text);
}

// An OSD leaves a crash report, whose message 'ceph crash info' shows; a tool ends with one line, for its log may go
// nowhere.
void SwimStore::end_process(const Status& status, const std::string& text) {
  if (m_fatal_handler) {
    derr << "FATAL: " << text << dendl;
    m_fatal_handler(status);
    return;
  }
  swimstore::last_words().lock();
  derr << "FATAL: " << text << dendl;
  if (g_code_env == CODE_ENVIRONMENT_DAEMON) {
    if (status.error_number() != 0) {  // the report says that it was the disk, and no core is dumped for that
      constexpr int kWrite = 2;
      ceph::global::note_io_error_event(nullptr, path.c_str(), -status.error_number(), kWrite, 0, 0);
    }
    ceph_abort_msg(text);
  }
  cct->_log->flush();
  if (!cct->_conf->err_to_stderr) {
    std::cerr << path << ": " << text << std::endl;
  }
  constexpr int kNotCarriedOut = 2;  // as the tool's manual says
  ::_exit(kNotCarriedOut);
}
