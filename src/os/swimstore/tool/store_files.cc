// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/tool/store_files.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "global/global_context.h"

#include "swimstore/container/container.h"
#include "swimstore/cube/slot_check.h"
#include "swimstore/fsck/fsck.h"
#include "vtkv/env/read_only_env.h"
#include "vtkv/env/small_file.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {

using vtkv::Status;

std::string StoredObject::name() const { return describe_object_key(key); }

Status StoreFiles::open(vtkv::Env* env, const std::string& path, std::optional<uint32_t> cube, Purpose purpose,
                        std::unique_ptr<StoreFiles>* files) {
  std::unique_ptr<StoreFiles> opened(new StoreFiles(std::make_unique<vtkv::ReadOnlyEnv>(env), purpose));
  VTKV_RETURN_IF_ERROR(opened->open_root(path, cube));
  *files = std::move(opened);
  return {};
}

StoreFiles::StoreFiles(std::unique_ptr<vtkv::Env> env, Purpose purpose)
    : m_env(std::move(env)), m_purpose(purpose), m_codec(g_ceph_context) {}

Status StoreFiles::open_root(const std::string& path, std::optional<uint32_t> cube) {
  m_path = path;
  m_directory = std::make_unique<StoreDirectory>(m_env.get(), path);
  StoreDirectory& directory = *m_directory;
  if (!m_env->exists(path)) {
    return Status::not_found(path + ": there is no such directory");
  }
  const Status superblock = read_superblock();
  VTKV_RETURN_IF_ERROR(do_without(superblock));
  VTKV_RETURN_IF_ERROR(directory.lock(&m_lock));
  if (superblock.ok()) {  // an upgrade may have come before the lock
    VTKV_RETURN_IF_ERROR(do_without(read_superblock()));
  }
  for (const std::string& archive : directory.unfinished_imports()) {
    m_notes.push_back(
        fmt::format("the import of {} into {} did not come to its end: objects of its placement groups "
                    "may be missing",
                    archive, path));
  }
  Superblock readable;
  if (!superblock.ok() && !Superblock::read(m_env.get(), path, &readable).ok()) {
    VTKV_RETURN_IF_ERROR(choose_metadata());
  }
  const uint32_t cubes = count_cubes(superblock.ok());
  if (cube && *cube >= cubes) {
    return Status::invalid_argument(fmt::format("{} has no cube {}: it has {}, counted from 0", path, *cube, cubes));
  }
  for (uint32_t number = 0; number < cubes; ++number) {
    std::optional<CubeMark> mark;
    const Status marked = number == 0 ? Status() : directory.read_cube_mark(number, &mark);
    VTKV_RETURN_IF_ERROR(do_without(marked));
    const bool in_use = marked.ok() && !(mark && mark->state == CubeMark::State::abandoned);
    if (in_use) {
      m_in_use.push_back(number);
    }
    if (!cube && !in_use) {
      m_left_out.push_back(number);
      m_notes.push_back(
          fmt::format("cube {0} is left out, {1}. Its placement groups were made anew, empty, in other cubes, and "
                      "what Ceph has not filled since lies in cube {0} alone. --cube {0} looks at it all the same",
                      number, marked.ok() ? "it is abandoned" : "it may be abandoned: its mark cannot be read"));
    } else if (!cube || *cube == number) {
      m_cubes.push_back(number);
    }
  }
  m_cube = m_cubes.front();
  return {};
}

uint32_t StoreFiles::count_cubes(bool has_superblock) const {
  uint32_t cubes = m_superblock.cubes;
  while (!has_superblock && m_env->exists(m_directory->cube_path(cubes))) {
    ++cubes;
  }
  return cubes;
}

void StoreFiles::select(uint32_t cube) {
  m_cube = cube;
  m_database.reset();
  m_lost.reset();
  m_header = {};
  m_containers = {};
}

Status StoreFiles::for_each_cube(const std::function<Status()>& visit) {
  Status unopened;
  bool any = false;
  for (const uint32_t cube : m_cubes) {
    if (cube != m_cube) {
      select(cube);
    }
    const Status opened = open_cube();
    if (!opened.ok() && (!salvages() || opened.code() == Status::Code::unsupported)) {
      return opened;
    }
    if (!opened.ok()) {
      m_notes.push_back(fmt::format("cube {} is left out, it does not open: {}", cube, opened.message()));
      unopened = opened;
      continue;
    }
    any = true;
    VTKV_RETURN_IF_ERROR(visit());
  }
  return any ? Status() : unopened;
}

bool StoreFiles::is_in_use() const { return std::find(m_in_use.begin(), m_in_use.end(), m_cube) != m_in_use.end(); }

bool StoreFiles::is_one_of_several_in_use() const { return is_in_use() && m_in_use.size() > 1; }

void StoreFiles::for_each_cube_in_use(const std::function<void()>& visit) {
  const size_t notes = m_notes.size();
  for (const uint32_t cube : m_in_use) {
    select(cube);
    if (open_cube().ok()) {
      visit();
    }
  }
  m_notes.resize(notes);  // who is to look at a cube hears of it then
  select(m_cubes.front());
}

Status StoreFiles::do_without(const Status& status) {
  if (status.ok() || !salvages() || status.code() == Status::Code::unsupported) {
    return status;
  }
  m_notes.push_back(fmt::format("went on without this: {}", status.message()));
  return {};
}

Status StoreFiles::read_superblock() {
  VTKV_RETURN_IF_ERROR(m_directory->read_superblock(&m_superblock));
  return vtkv::read_small_file(m_env.get(), m_path + "/superblock", &m_superblock_bytes);
}

Status StoreFiles::check_features() const {
  return m_superblock.features.check(m_path + "/superblock", known_features(), /*to_write=*/false);
}

// What was written since the move is in one of them alone. Where nothing was, that which was moved from is whole.
Status StoreFiles::choose_metadata() {
  std::optional<MetadataMove> move;
  if (!m_directory->read_metadata_move(&move).ok() || !move) {
    return {};
  }
  const auto from = newest_sequences(move->from), to = newest_sequences(move->to);
  unsigned newer_from = 0, newer_to = 0, opened_from = 0, opened_to = 0;  // cubes
  for (size_t cube = 0; cube < from.size(); ++cube) {
    newer_from += from[cube] && to[cube] && *from[cube] > *to[cube];
    newer_to += from[cube] && to[cube] && *to[cube] > *from[cube];
    opened_from += from[cube].has_value();
    opened_to += to[cube].has_value();
  }
  std::string named;  // before anything is served from there; its file fsid goes last, when log and tree were removed
  if (m_directory->read_meta(StoreDirectory::kMetadataPath, &named).ok() && !m_directory->owns(named) &&
      ((named == move->to && opened_to == 0) || (named == move->from && opened_from == 0))) {
    return Status::failed(fmt::format(
        "{0} has no superblock, and no log and tree can be opened in {1}, which {0}/{2} names: mount its file "
        "system. If it is gone for good, move {2} away: then older ones are taken, of before a move",
        m_path, named, StoreDirectory::kMetadataPath));
  }
  const bool is_told = newer_from > 0 || newer_to > 0;
  const std::string& used = (is_told ? newer_to > newer_from : opened_to > opened_from) ? move->to : move->from;
  m_directory->set_metadata_directory(used);
  const auto describe = [&](const std::string& directory, unsigned opened) {
    return fmt::format("{} ({} of {} cubes open there)", directory.empty() ? m_directory->cubes_path() : directory,
                       opened, from.size());
  };
  m_notes.push_back(fmt::format("a move of log and tree was interrupted, from {} to {}: those in {} are taken, {}",
                                describe(move->from, opened_from), describe(move->to, opened_to),
                                used.empty() ? m_directory->cubes_path() : used,
                                is_told ? "which go on further" : "for the others go on no further"));
  return {};
}

std::vector<std::optional<uint64_t>> StoreFiles::newest_sequences(const std::string& metadata_directory) {
  m_directory->set_metadata_directory(metadata_directory);
  std::vector<std::optional<uint64_t>> sequences(count_cubes(false));
  for (uint32_t cube = 0; cube < sequences.size(); ++cube) {
    vtkv::SalvagedDb salvaged;
    if (vtkv::open_to_salvage(m_env.get(), m_directory->database_path(cube), &salvaged).ok()) {
      sequences[cube] = salvaged.db->durable_sequence();
    }
    salvaged.close();
  }
  return sequences;
}

bool StoreFiles::may_hold_newer() const {
  return !m_superblock.features.check("", known_features(), /*to_write=*/true).ok();
}

Status StoreFiles::read_header() {
  const std::string path = cube_path() + "/containers/header";
  std::string bytes;
  VTKV_RETURN_IF_ERROR(vtkv::read_small_file(m_env.get(), path, &bytes));
  return ContainerHeader::decode(path, bytes, &m_header);
}

std::string StoreFiles::cube_path() const { return m_directory->cube_path(m_cube); }

std::string StoreFiles::database_path() const { return m_directory->database_path(m_cube); }

bool StoreFiles::is_copy_whole(unsigned copy) const {
  const std::string one = m_superblock_bytes.substr(copy * Superblock::kCopyBytes, Superblock::kCopyBytes);
  Superblock ignored;
  return Superblock::decode("superblock", one + one, &ignored).ok();
}

Status StoreFiles::ContainerData::verify(const vtkv::ExternalWrite& write, bool* matches) {
  *matches = false;
  if (write.container >= kSizeClasses) {
    return {};
  }
  vtkv::File* const file = m_containers[write.container].get();
  uint64_t bytes = 0;
  if (file == nullptr || !file->size(&bytes).ok() ||
      write.slot * slot_bytes(write.container) + write.offset + write.length > bytes) {
    return Status::from_errno(EIO, "the container is missing, or was cut short");  // who reads the object says so
  }
  return check_slot(*file, write, matches);
}

Status StoreFiles::open_only_cube() {
  VTKV_RETURN_IF_ERROR(check_only_cube());
  return open_cube();
}

Status StoreFiles::check_only_cube() const {
  return m_cubes.size() == 1 ? Status()
                             : Status::invalid_argument(fmt::format("{} has cubes {} to {}: say which one with --cube",
                                                                    m_path, m_cubes.front(), m_cubes.back()));
}

Status StoreFiles::open_cube() {
  if (m_database) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(check_features());
  VTKV_RETURN_IF_ERROR(do_without(read_header()));
  for (unsigned size_class = 0; size_class < kSizeClasses; ++size_class) {
    const std::string path = cube_path() + "/containers/" + Container::file_name(size_class);
    VTKV_RETURN_IF_ERROR(do_without(m_env->open_file(path, {.read_only = true}, &m_containers[size_class])));
  }
  if (!salvages()) {
    vtkv::Options options;
    options.external_store = &m_data;
    return vtkv::DB::open_read_only(m_env.get(), database_path(), options, &m_database);
  }
  vtkv::SalvagedDb salvaged;
  VTKV_RETURN_IF_ERROR(vtkv::open_to_salvage(m_env.get(), database_path(), &salvaged, &m_data));
  m_database = std::move(salvaged.db);
  m_lost = std::move(salvaged.lost);
  m_notes.insert(m_notes.end(), salvaged.notes.begin(), salvaged.notes.end());
  return {};
}

Status StoreFiles::for_each(char prefix,
                            const std::function<Status(std::string_view key, std::string_view value)>& visit) const {
  const auto it = m_database->new_iterator(std::string(1, prefix), std::string(1, static_cast<char>(prefix + 1)));
  for (it->seek_to_first(); it->valid(); it->next()) {
    VTKV_RETURN_IF_ERROR(visit(it->key(), it->value()));
  }
  return it->status();
}

namespace {

StoredObject to_object(std::string_view key, std::string_view value) {
  StoredObject object;
  object.key = key;
  object.bytes = value;
  object.has_name = decode_object_key(key, &object.oid);
  object.decodable = decode_onode(value, &object.record, &object.shard);
  return object;
}

}  // namespace

Status StoreFiles::for_each_object(const std::function<Status(const StoredObject&)>& visit) const {
  return for_each_object(std::string(1, key_prefix::object), std::string(1, key_prefix::object + 1), visit);
}

Status StoreFiles::for_each_object(const std::string& lower, const std::string& upper,
                                   const std::function<Status(const StoredObject&)>& visit) const {
  const auto it = m_database->new_iterator(lower, upper);
  for (it->seek_to_first(); it->valid(); it->next()) {
    VTKV_RETURN_IF_ERROR(visit(to_object(it->key(), it->value())));
  }
  return it->status();
}

namespace {

// Undoes what Ceph does to names when it prints them: %HH for a byte that is no printable ASCII, or %, : or /. False:
// there is a % in the text that it would not print.
bool decode_printed(std::string_view text, std::string* name) {
  name->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = static_cast<unsigned char>(text[i]);
    if (byte == '%') {
      const char* const begin = text.data() + i + 1;
      if (text.size() - i < 3 || std::from_chars(begin, begin + 2, byte, 16).ptr != begin + 2) {
        return false;
      }
      i += 2;
    }
    name->push_back(static_cast<char>(byte));
  }
  return true;
}

}  // namespace

Status StoreFiles::find_object(const std::string& name, StoredObject* object) const {
  ghobject_t oid;
  std::string value, decoded;
  const bool can_be_decoded = decode_printed(name, &decoded);
  if (can_be_decoded && oid.parse(name)) {
    const Status status = m_database->get(object_key(oid), &value);
    if (!status.is_not_found()) {
      VTKV_RETURN_IF_ERROR(status);
      *object = to_object(object_key(oid), value);
      return {};
    }
  }
  unsigned found = 0;
  VTKV_RETURN_IF_ERROR(for_each_object([&](const StoredObject& one) {
    const std::string& own_name = one.oid.hobj.oid.name;
    if (one.name() == name || (one.has_name && (own_name == name || (can_be_decoded && own_name == decoded)))) {
      *object = one;
      ++found;
    }
    return Status();
  }));
  if (found == 0) {
    return Status::not_found(fmt::format("{} has no object {}; list prints their names", m_path, name));
  }
  return found == 1 ? Status()
                    : Status::invalid_argument(fmt::format("{} objects are called {}: give the whole name, as list "
                                                           "prints it",
                                                           found, name));
}

Status StoreFiles::read_shards(const StoredObject& object, std::vector<StoredShard>* shards) const {
  if (object.record.test(OnodeRecord::shard_inline)) {
    shards->push_back({0, object.shard});
    return {};
  }
  const uint64_t nid = object.record.nid;
  const auto it = m_database->new_iterator(extent_key(nid, 0), extent_range_end(nid));
  for (it->seek_to_first(); it->valid(); it->next()) {
    StoredShard shard;
    uint64_t ignored = 0;
    if (!decode_extent_key(it->key(), &ignored, &shard.number) || !decode_extent_shard(it->value(), &shard.extents)) {
      return Status::corruption(
          fmt::format("extent shard {} of object {} cannot be decoded", shard.number, object.name()));
    }
    shards->push_back(std::move(shard));
  }
  return it->status();
}

Status StoreFiles::read_block(SlotAddress slot, uint32_t block, char* destination) const {
  vtkv::File* const container = m_containers[slot.container()].get();
  if (container == nullptr) {
    return Status::corruption(fmt::format("container {} cannot be read", Container::file_name(slot.container())));
  }
  return container->read(slot.byte_offset() + uint64_t{block} * kBlockBytes, kBlockBytes, destination);
}

Status StoreFiles::read_blob(const CompressedBlob& blob, ceph::bufferlist* blocks) const {
  ceph::bufferptr stored(ceph::buffer::create_page_aligned(uint64_t{blob.stored_blocks()} * kBlockBytes));
  for (const Extent& extent : blob.extents) {
    for (uint32_t i = extent.block; i < uint32_t{extent.block} + extent.count; ++i) {
      char* const to = stored.c_str() + uint64_t{i} * kBlockBytes;
      VTKV_RETURN_IF_ERROR(read_block(extent.slot, extent.slot_block + (i - extent.block), to));
      if (vtkv::crc32c(to, kBlockBytes) != blob.crc32c[i]) {
        return Status::corruption("a block of a compressed blob does not match its checksum");
      }
    }
  }
  return m_codec.decompress(blob, stored, blocks);
}

}  // namespace swimstore
