// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/cube/cube_set.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <functional>
#include <set>
#include <thread>

#include "swimstore/container/space_reserve.h"
#include "vtkv/env/sync_failures.h"
#include "vtkv/env/workers.h"
#include "vtkv/util/invariants.h"

namespace swimstore {

using vtkv::Status;

bool is_damage(const Status& status) {
  const bool is_unreadable = status.code() == Status::Code::io_error && status.error_number() == EIO;
  return is_unreadable || status.is_corruption() || status.is_not_found();
}

namespace {

// Below these a share is too small to work with, whatever the total.
constexpr uint64_t kMemtableBytesMin = 1u << 20;
constexpr uint64_t kSegmentBytesMin = 4u << 20;

// Shares are no smaller than what serves; a total that is, is left alone.
uint64_t share(uint64_t total, unsigned of, uint64_t least) { return std::max(total / of, std::min(total, least)); }

// Where the reserve's file lies: that of a store with one cube, too.
std::string reserve_directory(const std::string& directory) {
  return Cube::containers_directory(CubeSet::cube_path(directory, 0));
}

}  // namespace

bool CubeSet::is_valid_count(unsigned cubes) {
  const unsigned data = data_cubes(cubes);
  return cubes > 0 && data <= kDataCubesMax && std::has_single_bit(data) && cubes == cubes_for(data);
}

std::string CubeSet::cube_path(const std::string& directory, unsigned cube) {
  return directory + "/" + std::to_string(cube);
}

CubeOptions CubeSet::layout(const CubeOptions& total, unsigned cubes) {
  CubeOptions options = total;
  const unsigned data = data_cubes(cubes);
  uint64_t& segment_bytes = options.database.geometry.log_segment_bytes;
  segment_bytes = share(segment_bytes, data, kSegmentBytesMin) / kBlockBytes * kBlockBytes;
  uint64_t& chunk_bytes = options.containers.chunk_bytes;
  chunk_bytes = std::bit_floor(share(chunk_bytes, data, kSlotBytesMax));
  return options;
}

namespace {

// Of cube `number`, whose total is given.
CubeOptions with_place(CubeOptions options, unsigned number) {
  if (!options.metadata_directory.empty()) {
    options.metadata_directory = CubeSet::cube_path(options.metadata_directory, number);
  }
  return options;
}

// Null: log and tree lie with the containers, and share their reserve.
Status open_metadata_reserve(vtkv::Env* env, const CubeOptions& options, unsigned cubes,
                             std::shared_ptr<SpaceReserve>* reserve) {
  if (options.metadata_directory.empty()) {
    return {};
  }
  *reserve = std::make_shared<SpaceReserve>();
  return (*reserve)->open(env, options.metadata_directory, options.containers.reserve_bytes, cubes);
}

// Names in both directories become durable.
Status sync_directories(vtkv::Env* env, const std::string& directory, const CubeOptions& options) {
  VTKV_RETURN_IF_ERROR(options.metadata_directory.empty() ? Status() : env->sync_directory(options.metadata_directory));
  return env->sync_directory(directory);
}

CubeOptions with_shares(const CubeOptions& total, unsigned cubes, std::shared_ptr<SpaceReserve> reserve) {
  CubeOptions options = total;
  const unsigned data = CubeSet::data_cubes(cubes);
  options.database.memtable_bytes = share(total.database.memtable_bytes, data, kMemtableBytesMin);
  options.containers.primed_ahead_bytes = total.containers.primed_ahead_bytes / data;
  options.containers.reserve = std::move(reserve);
  return options;
}

}  // namespace

// Cube 0 comes first, and the reserve with it.
Status CubeSet::create(vtkv::Env* env, const std::string& directory, const CubeOptions& options, unsigned cubes) {
  std::shared_ptr<SpaceReserve> metadata_reserve;
  VTKV_RETURN_IF_ERROR(open_metadata_reserve(env, options, cubes, &metadata_reserve));
  VTKV_RETURN_IF_ERROR(metadata_reserve ? metadata_reserve->settle() : Status());
  VTKV_RETURN_IF_ERROR(Cube::create(env, cube_path(directory, 0), with_place(with_shares(options, cubes, nullptr), 0)));
  if (cubes == 1) {
    return sync_directories(env, directory, options);
  }
  const auto reserve = std::make_shared<SpaceReserve>();
  VTKV_RETURN_IF_ERROR(reserve->open(env, reserve_directory(directory), options.containers.reserve_bytes, cubes));
  for (unsigned cube = 1; cube < cubes; ++cube) {
    VTKV_RETURN_IF_ERROR(
        Cube::create(env, cube_path(directory, cube), with_place(with_shares(options, cubes, reserve), cube)));
  }
  return sync_directories(env, directory, options);
}

Status CubeSet::create_one(vtkv::Env* env, const std::string& directory, const CubeOptions& options, unsigned cubes,
                           unsigned cube) {
  const auto reserve = std::make_shared<SpaceReserve>();
  VTKV_RETURN_IF_ERROR(reserve->open(env, reserve_directory(directory), options.containers.reserve_bytes, cubes));
  VTKV_RETURN_IF_ERROR(
      Cube::create(env, cube_path(directory, cube), with_place(with_shares(options, cubes, reserve), cube)));
  return sync_directories(env, directory, options);
}

namespace {

// Calls for 0 to count - 1, at once on as many threads as there are processors: on the caller's alone where there is
// one, as in the simulator.
void for_each_at_once(unsigned processors, unsigned count, const std::function<void(unsigned)>& call) {
  std::atomic<unsigned> next{0};
  const auto take_turns = [&] {
    for (unsigned turn = next++; turn < count; turn = next++) {
      call(turn);
    }
  };
  std::vector<std::thread> others;
  while (others.size() + 1 < std::min(processors, count)) {
    others.emplace_back(take_turns);
  }
  take_turns();
  for (std::thread& other : others) {
    other.join();
  }
}

// What is read may have failed for a moment only. A failed sync is not tried again: the next recovery would build on
// what that sync has lost.
Status open_cube(vtkv::Env* env, const std::string& path, const CubeOptions& options, const CubeSet::Opening& opening,
                 const vtkv::SyncWatch& syncs, std::unique_ptr<Cube>* cube) {
  const auto open = opening.read_only ? Cube::open_read_only : Cube::open;
  Status status = open(env, path, options, cube);
  if (status.code() == Status::Code::io_error && opening.goes_on && syncs.check().ok()) {
    status = open(env, path, options, cube);
  }
  return status;
}

}  // namespace

CubeSet::~CubeSet() {
  for (const auto& cube : m_cubes) {
    cube->database().stop_background();
  }
}

Status CubeSet::open(vtkv::Env* env, const std::string& directory, const CubeOptions& total, const Opening& opening,
                     std::unique_ptr<CubeSet>* opened) {
  const auto reserve = std::make_shared<SpaceReserve>();
  VTKV_RETURN_IF_ERROR(reserve->open(env, reserve_directory(directory), total.containers.reserve_bytes, opening.cubes));
  CubeOptions options = with_shares(total, opening.cubes, reserve);
  options.object_ids = std::make_shared<ObjectIds>();
  std::unique_ptr<CubeSet> set(new CubeSet);
  VTKV_RETURN_IF_ERROR(open_metadata_reserve(env, total, opening.cubes, &options.containers.metadata_reserve));
  if (opening.cubes > 1) {
    // A small compaction goes ahead of a large one in its cube; so it does not wait for that of another.
    set->m_threads = std::make_unique<vtkv::SharedThreads>(env, std::set<std::string>{vtkv::kCompactionWorkerName});
    env = set->m_threads.get();
  }
  set->m_missing = opening.left_out;
  const vtkv::SyncWatch syncs;
  std::vector<std::unique_ptr<Cube>> cubes(opening.cubes);
  std::vector<Status> statuses(opening.cubes);
  for_each_at_once(env->processors(), opening.cubes, [&](unsigned number) {
    if (!opening.left_out.contains(number)) {
      CubeOptions own = with_place(options, number);
      own.containers.on_short_of_space = [&set = *set, number](uint64_t metadata_bytes) {
        set.give_space_back(number, metadata_bytes);
      };
      statuses[number] = open_cube(env, cube_path(directory, number), own, opening, syncs, &cubes[number]);
    }
  });
  for (std::unique_ptr<Cube>& cube : cubes) {
    set->m_by_number.push_back(cube.get());
    if (cube) {
      set->m_cubes.push_back(std::move(cube));
    }
  }
  for (unsigned number = 0; number < opening.cubes; ++number) {
    const Status& status = statuses[number];
    if (!status.ok() && (number == 0 || !opening.goes_on || !is_damage(status))) {
      return status;
    }
    if (!status.ok()) {
      set->m_missing.emplace(number, status.message());
    }
  }
  // One that failed in a cube may have lost what another recovered meanwhile.
  VTKV_RETURN_IF_ERROR(syncs.check());
  set->m_all_open = true;
  *opened = std::move(set);
  return {};
}

void CubeSet::remove(unsigned cube, std::string why) {
  VTKV_ASSERT(cube != 0 && has(cube));
  std::erase_if(m_cubes, [gone = m_by_number[cube]](const auto& one) { return one.get() == gone; });
  m_by_number[cube] = nullptr;
  m_missing.emplace(cube, std::move(why));
}

// Asked for by transactions alone, of which there are none while cubes come or go.
void CubeSet::give_space_back(unsigned wanted_by, uint64_t metadata_bytes) {
  for (unsigned cube = 0; m_all_open && cube < size(); ++cube) {
    if (cube != wanted_by && has(cube)) {
      m_by_number[cube]->containers().give_space_back(metadata_bytes);
    }
  }
}

bool CubeSet::is_upgradable() const {
  return std::any_of(m_cubes.begin(), m_cubes.end(), [](const auto& cube) { return cube->database().is_upgradable(); });
}

bool CubeSet::may_compress_blocks() const { return m_by_number.front()->database().may_compress_blocks(); }

vtkv::DBStatistics CubeSet::database_statistics() const {
  vtkv::DBStatistics sum;
  for (const auto& cube : m_cubes) {
    sum += cube->database().statistics();
  }
  return sum;
}

ContainerStatistics CubeSet::container_statistics() const {
  ContainerStatistics sum = m_cubes.front()->containers().statistics();
  for (size_t cube = 1; cube < m_cubes.size(); ++cube) {
    sum += m_cubes[cube]->containers().statistics();
  }
  return sum;
}

FreePieces CubeSet::free_pieces() const {
  FreePieces sum;
  for (const auto& cube : m_cubes) {
    sum += cube->containers().free_pieces();
  }
  return sum;
}

std::map<int64_t, PoolUsage> CubeSet::pool_usage() const {
  std::map<int64_t, PoolUsage> sum;
  for (const auto& cube : m_cubes) {
    for (const auto& [pool, usage] : cube->pool_usage()) {
      sum[pool] += usage;
    }
  }
  return sum;
}

CubeErrors CubeSet::background_errors() const {
  CubeErrors errors;
  for (const auto& cube : m_cubes) {
    cube->add_background_errors(&errors);
  }
  return errors;
}

std::vector<SlotAddress> CubeSet::quarantined() const {
  std::vector<SlotAddress> slots;
  for (const auto& cube : m_cubes) {
    const std::vector<SlotAddress> more = cube->containers().quarantined();
    slots.insert(slots.end(), more.begin(), more.end());
  }
  return slots;
}

Status CubeSet::flush() {
  for (const auto& cube : m_cubes) {
    VTKV_RETURN_IF_ERROR(cube->database().flush());
  }
  return {};
}

Status CubeSet::compact() {
  for (const auto& cube : m_cubes) {
    VTKV_RETURN_IF_ERROR(cube->database().compact());
  }
  return {};
}

}  // namespace swimstore
