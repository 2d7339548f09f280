// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/forged_image.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "swimstore/container/container.h"
#include "swimstore/format/container_header.h"
#include "swimstore/format/superblock.h"
#include "vtkv/span/block_compression.h"
#include "vtkv/span/block_format.h"
#include "vtkv/testing/raw_log.h"
#include "vtkv/tree/manifest_format.h"
#include "vtkv/util/crc32c.h"
#include "vtkv/util/invariants.h"

namespace swimstore {

using vtkv::kLogBlockBytes;
using vtkv::record_header_t;

namespace {

// Where their checksums lie (superblock.cc, container_header.cc).
constexpr size_t kSuperblockCrc = 76;
constexpr size_t kContainerHeaderCrc = 136;

std::string read_file(vtkv::SimEnv& env, const std::string& path) {
  std::unique_ptr<vtkv::File> file;
  uint64_t bytes = 0;
  std::string contents;
  VTKV_ASSERT(env.open_file(path, {.read_only = true, .direct = false}, &file).ok() && file->size(&bytes).ok());
  contents.resize(bytes);
  VTKV_ASSERT(bytes == 0 || file->read(0, bytes, contents.data()).ok());
  return contents;
}

void write_file(vtkv::SimEnv& env, const std::string& path, uint64_t offset, std::string_view bytes) {
  std::unique_ptr<vtkv::File> file;
  VTKV_ASSERT(env.open_file(path, {.direct = false}, &file).ok());
  VTKV_ASSERT(file->write(offset, bytes.data(), bytes.size()).ok());
}

template <class T>
T load(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
void store(std::string* bytes, size_t offset, const T& value) {
  std::memcpy(bytes->data() + offset, &value, sizeof value);
}

void seal_manifest(std::string* bytes, size_t copy) {
  const auto length = load<uint32_t>(*bytes, copy + offsetof(vtkv::manifest_header_t, length));
  constexpr size_t kFrom = offsetof(vtkv::manifest_header_t, version);
  if (length > kFrom && length <= bytes->size() / 2) {
    store(bytes, copy + offsetof(vtkv::manifest_header_t, crc32c),
          vtkv::crc32c(bytes->data() + copy + kFrom, length - kFrom));
  }
}

}  // namespace

ForgedImage::ForgedImage(vtkv::SimEnv* env, std::string cube, const CubeOptions& options, std::string superblock,
                         uint64_t seed)
    : m_env(env), m_cube(std::move(cube)), m_options(options), m_superblock(std::move(superblock)), m_random(seed) {
  m_options.containers.maintenance = false;
}

std::string ForgedImage::forge() {
  constexpr std::string (ForgedImage::* kForgeries[])() = {
      &ForgedImage::forge_superblock,     &ForgedImage::forge_container_header,
      &ForgedImage::forge_container_size, &ForgedImage::forge_manifest,
      &ForgedImage::forge_segment_header, &ForgedImage::forge_record,
      &ForgedImage::forge_record,         &ForgedImage::forge_block,
      &ForgedImage::forge_block,          &ForgedImage::forge_entry,
      &ForgedImage::forge_entry,          &ForgedImage::forge_entry,
      &ForgedImage::forge_entry,          &ForgedImage::forge_note};
  return (this->*kForgeries[pick(std::size(kForgeries))])();
}

std::string ForgedImage::change(std::string* bytes, size_t begin, size_t end) {
  VTKV_ASSERT(begin < end && end <= bytes->size());
  const uint64_t edge = uint64_t{1} << pick(64);
  const uint64_t numbers[] = {
      0, 1, UINT64_MAX, UINT32_MAX, edge, edge - 1, edge + 1, m_random(), m_random() >> pick(64)};
  const uint64_t number = numbers[pick(std::size(numbers))];
  const uint64_t kind = pick(5);
  const size_t width = std::min<size_t>(kind == 2 ? 4 : kind == 3 ? 8 : 1, end - begin);
  size_t at = begin + pick(end - begin - width + 1);
  if (pick(4) != 0) {
    at = std::max(begin, at / width * width);  // most fields are aligned
  }
  const std::string before = bytes->substr(at, width);
  if (kind == 0) {
    (*bytes)[at] ^= static_cast<char>(1 << pick(8));
  } else if (kind == 4) {
    (*bytes)[at] = static_cast<char>((*bytes)[at] + (pick(2) == 0 ? 1 : -1));
  } else {
    std::memcpy(bytes->data() + at, &number, width);
  }
  return fmt::format("{} bytes at {} changed", width, at);
}

std::string ForgedImage::forge_superblock() {
  if (m_superblock.empty()) {
    return {};
  }
  std::string bytes = read_file(*m_env, m_superblock);
  std::string copy = bytes.substr(0, Superblock::kCopyBytes);
  const std::string what = pick(3) == 0 ? change(&copy, kSuperblockCrc + 4, 2 * kSuperblockCrc)  // its features
                                        : change(&copy, 8, kSuperblockCrc);
  store(&copy, kSuperblockCrc, Superblock::checksum(copy));
  bytes = copy + copy;
  write_file(*m_env, m_superblock, 0, bytes);
  return "superblock: " + what;
}

std::string ForgedImage::forge_container_header() {
  std::string bytes = read_file(*m_env, cube_path("containers/header"));
  const std::string what = change(&bytes, 8, kContainerHeaderCrc);
  store(&bytes, kContainerHeaderCrc, vtkv::crc32c(bytes.data(), kContainerHeaderCrc));
  write_file(*m_env, cube_path("containers/header"), 0, bytes);
  return "container header: " + what;
}

std::string ForgedImage::forge_container_size() {
  const std::string name = cube_path("containers/" + Container::file_name(static_cast<unsigned>(pick(kSizeClasses))));
  std::unique_ptr<vtkv::File> file;
  VTKV_ASSERT(m_env->open_file(name, {.direct = false}, &file).ok());
  uint64_t bytes = 0;
  VTKV_ASSERT(file->size(&bytes).ok());
  const uint64_t now = pick(2) == 0 ? pick(bytes + 1) : bytes + pick(64 << 20);
  VTKV_ASSERT(file->truncate(now).ok());
  return fmt::format("{}: {} bytes instead of {}", name, now, bytes);
}

std::string ForgedImage::forge_manifest() {
  std::string bytes = read_file(*m_env, cube_path("manifest"));
  std::string what;
  const uint64_t which = pick(3);  // one copy, the other, or both in the same way
  const uint64_t seed = m_random();
  for (size_t i = 0; i < 2; ++i) {
    const size_t copy = i * bytes.size() / 2;
    const auto length = load<uint32_t>(bytes, copy + offsetof(vtkv::manifest_header_t, length));
    if (which == 1 - i || length < sizeof(vtkv::manifest_header_t) || length > bytes.size() / 2) {
      continue;
    }
    m_random.seed(seed);
    what += " " + change(&bytes, copy + 12, copy + length);
    seal_manifest(&bytes, copy);
  }
  write_file(*m_env, cube_path("manifest"), 0, bytes);
  return "manifest:" + what;
}

std::vector<std::string> ForgedImage::segments() const {
  std::vector<std::string> paths;
  for (const std::string& name : m_env->files()) {
    if (name.starts_with(cube_path("log/")) && name.ends_with(".log")) {
      paths.push_back(name);
    }
  }
  return paths;
}

std::string ForgedImage::forge_segment_header() {
  const std::vector<std::string> paths = segments();
  const std::string& name = paths[pick(paths.size())];
  std::string bytes = read_file(*m_env, name).substr(0, kLogBlockBytes);
  const std::string what = change(&bytes, 8, offsetof(vtkv::segment_header_t, header_crc));
  auto header = load<vtkv::segment_header_t>(bytes, 0);
  seal(&header);
  store(&bytes, 0, header);
  write_file(*m_env, name, 0, bytes);
  return name + ", header: " + what;
}

std::vector<ForgedImage::Record> ForgedImage::records() const {
  std::vector<Record> found;
  for (const std::string& name : segments()) {
    const std::string bytes = read_file(*m_env, name);
    if (bytes.size() < sizeof(vtkv::segment_header_t)) {
      continue;
    }
    const vtkv::Uuid uuid = load<vtkv::segment_header_t>(bytes, 0).uuid;
    for (uint64_t at = kLogBlockBytes; at + kLogBlockBytes <= bytes.size(); at += kLogBlockBytes) {
      record_header_t header;
      if (decode_record_header({bytes.data() + at, kLogBlockBytes}, uuid, &header) &&
          header.padded_bytes() <= bytes.size() - at) {
        found.push_back({name, at, header});
      }
    }
  }
  return found;
}

std::string ForgedImage::forge_record() {
  const std::vector<Record> all = records();
  if (all.empty()) {
    return {};
  }
  const Record& record = all[pick(all.size())];
  std::string bytes = read_file(*m_env, record.path).substr(record.offset, record.header.padded_bytes());
  const bool in_header = record.header.body_bytes == 0 || pick(3) == 0;
  const size_t end = sizeof(record_header_t) + record.header.body_bytes;
  const std::string what =
      in_header ? change(&bytes, 4, offsetof(record_header_t, body_crc)) : change(&bytes, sizeof(record_header_t), end);
  auto header = load<record_header_t>(bytes, 0);
  if (sizeof(record_header_t) + header.body_bytes <= bytes.size()) {
    seal(&header, {bytes.data() + sizeof(record_header_t), header.body_bytes});
  }
  store(&bytes, 0, header);
  write_file(*m_env, record.path, record.offset, bytes);
  name_new_checksum(record.header.header_crc, header);
  return fmt::format("{}, record at {}: {}", record.path, record.offset, what);
}

void ForgedImage::name_new_checksum(uint32_t was, const record_header_t& record) {
  std::string manifest = read_file(*m_env, cube_path("manifest"));
  for (const size_t copy : {size_t{0}, manifest.size() / 2}) {
    const size_t at = copy + offsetof(vtkv::manifest_header_t, log_header_checksum);
    if (load<uint32_t>(manifest, at) == was) {
      store(&manifest, at, record.header_crc);
      seal_manifest(&manifest, copy);
    }
  }
  write_file(*m_env, cube_path("manifest"), 0, manifest);
  for (const Record& next : records()) {
    if (next.header.previous_crc != was || next.header.first_sequence <= record.first_sequence) {
      continue;
    }
    std::string bytes = read_file(*m_env, next.path).substr(next.offset, next.header.padded_bytes());
    record_header_t header = next.header;
    header.previous_crc = record.header_crc;
    seal(&header, {bytes.data() + sizeof(header), header.body_bytes});
    write_file(*m_env, next.path, next.offset, {reinterpret_cast<const char*>(&header), sizeof header});
    name_new_checksum(next.header.header_crc, header);
    return;
  }
}

// Of what is changed in compressed bytes, most is no compressed block any more. "" where there is no room for what
// becomes of it.
std::string ForgedImage::forge_below_compression(std::string* tree, size_t at) {
  auto header = load<vtkv::block_header_t>(*tree, at);
  std::unique_ptr<char[]> bytes;
  uint32_t length = 0;
  VTKV_ASSERT(vtkv::decompress_body({tree->data() + at + sizeof header, header.body_bytes}, &bytes, &length).ok());
  std::string plain(bytes.get(), length), stored;
  const std::string what = change(&plain, 0, plain.size());
  const size_t room = uint64_t{vtkv::units_of(sizeof header + header.body_bytes)} * vtkv::kUnitBytes - sizeof header;
  if (!vtkv::compress_body(plain, room, &stored)) {
    return {};
  }
  header.body_bytes = static_cast<uint32_t>(stored.size());
  store(tree, at, header);
  tree->replace(at + sizeof header, stored.size(), stored);
  return "below its compression " + what;
}

std::string ForgedImage::forge_block() {
  std::string tree = read_file(*m_env, cube_path("tree"));
  std::vector<size_t> blocks;
  for (size_t at = 0; at + vtkv::kUnitBytes <= tree.size(); at += vtkv::kUnitBytes) {
    const auto header = load<vtkv::block_header_t>(tree, at);
    const size_t bytes = sizeof(header) + uint64_t{header.body_bytes};
    if (header.magic == vtkv::kBlockMagic && bytes <= tree.size() - at &&
        header.crc32c == vtkv::crc32c(tree.data() + at + 4, bytes - 4)) {
      blocks.push_back(at);
    }
  }
  if (blocks.empty()) {
    return {};
  }
  const size_t at = blocks[pick(blocks.size())];
  const auto before = load<vtkv::block_header_t>(tree, at);
  std::string what;
  if (before.version == vtkv::kCompressedBlockVersion && pick(2) == 0) {
    what = forge_below_compression(&tree, at);
  }
  if (what.empty()) {
    what = change(&tree, at + 6, at + sizeof before + before.body_bytes);
  }
  const size_t bytes = sizeof before + uint64_t{load<vtkv::block_header_t>(tree, at).body_bytes};
  if (bytes <= tree.size() - at) {
    store(&tree, at, vtkv::crc32c(tree.data() + at + 4, bytes - 4));
  }
  write_file(*m_env, cube_path("tree"), 0, tree);
  return fmt::format("tree, block of kind {} at {}: {}", before.kind, at, what);
}

std::string ForgedImage::forge_entry() {
  std::unique_ptr<Cube> cube;
  VTKV_ASSERT(Cube::open(m_env, m_cube, m_options, &cube).ok());
  std::vector<std::pair<std::string, std::string>> entries;
  {
    const auto it = cube->database().new_iterator("", "");
    for (it->seek_to_first(); it->valid(); it->next()) {
      entries.emplace_back(it->key(), it->value());
    }
  }
  if (entries.empty()) {
    return {};
  }
  // Each kind as often as any other, however many there are of it.
  std::string kinds;
  for (const auto& [key, value] : entries) {
    if (kinds.find(key[0]) == std::string::npos) {
      kinds.push_back(key[0]);
    }
  }
  const char kind = kinds[pick(kinds.size())];
  std::erase_if(entries, [kind](const auto& entry) { return entry.first[0] != kind; });
  auto [key, value] = entries[pick(entries.size())];
  std::string what = "removed";
  vtkv::WriteBatch batch;
  const uint64_t how = pick(10);
  if (how == 0 || (how > 2 && value.empty())) {
    batch.remove(key);
  } else if (how <= 2) {
    what = "in the key, " + change(&key, 1, std::max<size_t>(key.size(), 2));
    batch.put(key, value);
  } else {
    what = "in the value, " + change(&value, 0, value.size());
    batch.put(key, value);
  }
  VTKV_ASSERT(cube->database().write(std::move(batch)).ok());
  return fmt::format("entry {}: {}", kind, what);
}

std::string ForgedImage::forge_note() {
  CubeDelta delta;
  for (auto* slots : {&delta.allocation.allocated, &delta.allocation.freed}) {
    for (uint64_t n = pick(3); n > 0; --n) {
      const auto size_class = static_cast<uint8_t>(pick(kSizeClasses));
      const auto levels = static_cast<uint8_t>(pick(kSizeClasses - size_class));
      const auto written = static_cast<uint32_t>(1 + pick(slot_blocks(size_class)));
      const auto first = static_cast<uint32_t>(pick(written));
      slots->push_back({{size_class, m_random() >> (8 + pick(56)), levels},
                        first,
                        static_cast<uint32_t>(1 + pick(written - first)),
                        written});
    }
  }
  delta.next_object_id = pick(2) == 0 ? 0 : m_random() >> pick(64);
  delta.pools[static_cast<int64_t>(m_random())] = {.allocated = INT64_MAX, .stored = INT64_MIN};
  std::string note = delta.encode();
  if (pick(3) == 0) {
    change(&note, 0, note.size());
  }
  vtkv::WriteBatch batch;
  batch.note(note);
  vtkv::ClosedLog(m_env, m_cube).append(vtkv::raw_record(batch));
  return fmt::format("a note of {} slots and {} more", delta.allocation.allocated.size(),
                     delta.allocation.freed.size());
}

}  // namespace swimstore
