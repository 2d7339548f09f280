// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/cube/cube.h"

#include <algorithm>

#include "swimstore/container/space_reserve.h"
#include "swimstore/cube/idle_committer.h"
#include "swimstore/cube/slot_check.h"
#include "swimstore/format/allocation_page.h"
#include "swimstore/format/split_slot.h"
#include "vtkv/env/read_only_env.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"

namespace swimstore {

using vtkv::Mutation;
using vtkv::SequenceNumber;
using vtkv::Status;

namespace {

// Finds the notes of a recovered batch and replays them.
class NoteReader final : public vtkv::WriteBatch::Handler {
 public:
  NoteReader(ContainerSet& containers, CubeCounters& counters) : m_containers(containers), m_counters(counters) {}
  const Status& status() const { return m_status; }

  void note(std::string_view bytes) override {
    if (!m_status.ok()) {
      return;
    }
    CubeDelta delta;
    m_status = CubeDelta::decode(bytes, &delta);
    if (m_status.ok()) {
      m_status = m_containers.replay(delta.allocation);
    }
    if (m_status.ok()) {
      m_counters.apply(delta);
    }
  }

 private:
  ContainerSet& m_containers;
  CubeCounters& m_counters;
  Status m_status;
};

CubeOptions with_object_ids(CubeOptions options) {
  if (!options.object_ids) {
    options.object_ids = std::make_shared<ObjectIds>();
  }
  return options;
}

// Calls visit(key, value) for every entry whose key starts with `prefix`.
template <class Visit>
Status visit_prefix(const vtkv::CheckpointParticipant::TreeReader& tree, char prefix, Visit visit) {
  const std::string lower(1, prefix);
  const std::string upper(1, static_cast<char>(prefix + 1));
  const std::unique_ptr<vtkv::Iterator> it = tree(lower, upper);
  for (it->seek_to_first(); it->valid(); it->next()) {
    VTKV_RETURN_IF_ERROR(visit(it->key(), it->value()));
  }
  return it->status();
}

}  // namespace

// The database first: it wants an empty directory. The header of the containers is written last of all, and
// the store's superblock after it, so that a creation cut short is told from a cube.
Status Cube::create(vtkv::Env* env, const std::string& directory, const CubeOptions& options) {
  VTKV_RETURN_IF_ERROR(vtkv::DB::create(env, database_directory(directory, options), options.database));
  VTKV_RETURN_IF_ERROR(env->create_directory(directory));  // where the database is elsewhere
  VTKV_RETURN_IF_ERROR(ContainerSet::create(env, containers_directory(directory), options.containers));
  return env->sync_directory(directory);
}

Status Cube::open(vtkv::Env* env, const std::string& directory, const CubeOptions& options,
                  std::unique_ptr<Cube>* cube) {
  std::unique_ptr<Cube> opened(new Cube(env, directory, options, /*read_only=*/false));
  VTKV_RETURN_IF_ERROR(opened->open_parts());
  *cube = std::move(opened);
  return {};
}

Status Cube::open_read_only(vtkv::Env* env, const std::string& directory, const CubeOptions& options,
                            std::unique_ptr<Cube>* cube) {
  std::unique_ptr<Cube> opened(new Cube(env, directory, options, /*read_only=*/true));
  VTKV_RETURN_IF_ERROR(opened->open_parts());
  *cube = std::move(opened);
  return {};
}

Cube::Cube(vtkv::Env* env, std::string directory, const CubeOptions& options, bool read_only)
    : m_read_only_env(read_only ? std::make_unique<vtkv::ReadOnlyEnv>(env) : nullptr),
      m_env(read_only ? m_read_only_env.get() : env),
      m_directory(std::move(directory)),
      m_options(with_object_ids(options)),
      m_counters(*m_options.object_ids) {
  m_options.containers.maintenance &= !read_only;
  m_options.containers.read_only = read_only;
  m_options.database.single_flush |= mutated(Mutation::single_flush_everywhere);
}

Cube::~Cube() {
  m_idle_committer.reset();
  // Waits for what was submitted, whose callbacks use the containers, whose worker may still ask for a checkpoint.
  if (m_containers) {
    m_containers->stop();
  }
  m_database.reset();
  m_containers.reset();
}

Status Cube::open_parts() {
  VTKV_RETURN_IF_ERROR(
      ContainerSet::open(m_env, containers_directory(m_directory), m_options.containers, &m_containers));
  vtkv::Options& options = m_options.database;
  options.value_separation_bytes = 0;  // the data is in the containers already; what is here is short metadata
  options.external_store = this;
  options.participant = this;
  options.on_reuse_horizon = [this, next = options.on_reuse_horizon](SequenceNumber horizon) {
    m_containers->set_reuse_horizon(horizon);
    if (next) {
      next(horizon);
    }
  };
  options.data_elsewhere = !m_options.metadata_directory.empty();
  // What containers give back is no room for a log on another file system.
  options.make_room = [this, reserve = m_options.containers.metadata_reserve] {
    bool gave = false;
    return reserve ? reserve->give_slice(&gave).ok() && gave : m_containers->make_room();
  };
  const auto open_database = m_read_only_env ? vtkv::DB::open_read_only : vtkv::DB::open;
  VTKV_RETURN_IF_ERROR(open_database(m_env, database_directory(m_directory, m_options), options, &m_database));
  if (!mutated(Mutation::damage_mark_kept)) {
    m_damage.keep_only([this](const SlotBlocks& blocks) { return m_containers->is_owned(blocks); });
  }
  if (m_read_only_env) {
    return m_containers->finish_recovery();
  }
  m_containers->set_checkpoint_request([this] { m_database->request_checkpoint(); });
  m_idle_committer = std::make_unique<IdleCommitter>(m_env, *m_containers, *m_database);
  return m_containers->finish_recovery();
}

void Cube::add_background_errors(CubeErrors* errors) const {
  std::ranges::copy(m_database->background_errors(), std::back_inserter(errors->of_databases));
  std::ranges::copy(m_containers->background_errors(), std::back_inserter(errors->of_containers));
}

Status Cube::database_room(uint64_t* bytes) const {
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(m_env->file_system_info(database_directory(m_directory, m_options), &host));
  const auto& metadata_reserve = m_options.containers.metadata_reserve;
  const uint64_t reserve =
      metadata_reserve ? metadata_reserve->target_bytes() : m_containers->statistics().reserve_target_bytes;
  *bytes = host.available_bytes - std::min(host.available_bytes, reserve);
  return {};
}

void Cube::submit(CubeTransaction* transaction) {
  VTKV_ASSERT(transaction->m_cube == nullptr);  // each goes once
  transaction->m_cube = this;
  if (m_options.database.single_flush && !transaction->m_first_fills.empty()) {
    transaction->pad_first_fills(*m_containers);
  }
  if (!transaction->delta.empty()) {
    transaction->batch.note(transaction->delta.encode());
  }
  m_database->submit(transaction);
}

void Cube::apply(SequenceNumber sequence, const CubeDelta& delta) {
  m_containers->apply(sequence, delta.allocation);
  m_counters.apply(delta);
  m_damage.apply(delta.allocation);
  m_idle_committer->note_activity();
}

Status Cube::verify(const vtkv::ExternalWrite& write, bool* matches) {
  *matches = false;
  if (write.container >= kSizeClasses) {
    return {};
  }
  return check_slot(*m_containers->file(write.container), write, matches);
}

Status Cube::load(const TreeReader& tree) {
  VTKV_RETURN_IF_ERROR(m_containers->begin_recovery());
  VTKV_RETURN_IF_ERROR(visit_prefix(tree, kAllocationKeyPrefix, [this](std::string_view key, std::string_view value) {
    return m_containers->load_page(key, value);
  }));
  VTKV_RETURN_IF_ERROR(visit_prefix(tree, kSplitSlotKeyPrefix, [this](std::string_view key, std::string_view value) {
    return m_containers->load_split_slot(key, value);
  }));
  return visit_prefix(tree, kCounterKeyPrefix,
                      [this](std::string_view key, std::string_view value) { return m_counters.load(key, value); });
}

Status Cube::replay(SequenceNumber, std::string_view encoded) {
  NoteReader reader(*m_containers, m_counters);
  VTKV_RETURN_IF_ERROR(vtkv::WriteBatch::iterate(encoded, reader));
  return reader.status();
}

void Cube::collect(SequenceNumber as_of, std::vector<vtkv::CheckpointEntry>* entries) {
  m_containers->collect_pages(as_of, entries);
  m_counters.collect(entries);
}

}  // namespace swimstore
