// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tree/manifest.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "vtkv/env/read_retries.h"
#include "vtkv/tree/manifest_format.h"
#include "vtkv/util/crc32c.h"
#include "vtkv/util/invariants.h"
#include "vtkv/wal/log_format.h"

namespace vtkv {

namespace {

constexpr size_t kCrcStart = offsetof(manifest_header_t, version);
constexpr uint64_t kCopyBytesMin = 16 << 10;
constexpr uint64_t kFeatureBytesMax = 4016;  // or there were no room for runs
constexpr uint64_t kCopyBytesMax = 1 << 20;

uint64_t copy_bytes_for(const Geometry& geometry) {
  return std::clamp(geometry.zone_bytes / kIoAlignment * kIoAlignment, kCopyBytesMin, kCopyBytesMax);
}

// What cannot be read is taken for torn, and goes with the next write: so it is read more than once.
// Code::not_found: none was written there.
Status read_copy(File* file, uint64_t offset, uint64_t copy_bytes, Checkpoint* checkpoint) {
  AlignedBuffer buffer(copy_bytes);
  return read_with_retries([&] {
    VTKV_RETURN_IF_ERROR(file->read(offset, copy_bytes, buffer.data()));
    const Status decoded = Checkpoint::decode({buffer.data(), copy_bytes}, checkpoint);
    const bool is_empty = std::all_of(buffer.data(), buffer.data() + copy_bytes, [](char byte) { return byte == 0; });
    return is_empty ? Status::not_found(std::string(decoded.message())) : decoded;
  });
}

Status write_copy(File* file, uint64_t copy_bytes, const Checkpoint& checkpoint) {
  const std::string bytes = checkpoint.encode();
  VTKV_ASSERT(bytes.size() <= copy_bytes);
  AlignedBuffer buffer;
  buffer.append(bytes);
  buffer.pad();
  VTKV_RETURN_IF_ERROR(file->write(checkpoint.epoch % 2 * copy_bytes, buffer.data(), buffer.size()));
  return file->sync();
}

std::string manifest_path(const std::string& directory) { return directory + "/manifest"; }

bool counts_can_go_on(const Checkpoint& checkpoint) {
  const auto can = [](uint64_t count) { return count <= kCountMax; };
  return can(checkpoint.epoch) && can(checkpoint.position.sequence) && can(checkpoint.position.epoch) &&
         can(checkpoint.position.end_offset) && can(checkpoint.next_run_id) &&
         std::all_of(checkpoint.runs.begin(), checkpoint.runs.end(),
                     [&](const RunLocation& run) { return can(run.run_id) && can(run.span.offset); }) &&
         std::all_of(checkpoint.segments.begin(), checkpoint.segments.end(), [&](const SegmentValues& values) {
           return can(values.epoch) && can(values.entries) && can(values.bytes) && can(values.end);
         });
}

// Each run once, and none that a later one could be taken for; the parts of a sorted run stand together.
bool run_ids_are_sound(const Checkpoint& checkpoint) {
  std::set<uint64_t> ids, sorted_runs;
  const RunLocation* before = nullptr;
  return std::all_of(checkpoint.runs.begin(), checkpoint.runs.end(), [&](const RunLocation& run) {
    const bool goes_on = before && before->sorted_run_id == run.sorted_run_id && before->level == run.level;
    before = &run;
    return run.run_id < checkpoint.next_run_id && run.sorted_run_id < checkpoint.next_run_id &&
           ids.insert(run.run_id).second && (goes_on || sorted_runs.insert(run.sorted_run_id).second);
  });
}

}  // namespace

bool follows(const Checkpoint& before, const Checkpoint& next) {
  const auto place = [](const LogPosition& position) { return std::pair(position.epoch, position.end_offset); };
  return next.uuid == before.uuid && next.next_run_id >= before.next_run_id &&
         next.position.sequence >= before.position.sequence && place(next.position) >= place(before.position);
}

Status check_geometry(const Geometry& geometry) {
  const auto aligned = [](uint64_t bytes) { return bytes > 0 && bytes % kIoAlignment == 0; };
  if (!aligned(geometry.zone_bytes) || geometry.zone_bytes > 1ull << 40) {
    return Status::invalid_argument("zone_bytes is " + std::to_string(geometry.zone_bytes) +
                                    ": use a multiple of 4096 up to 1 TiB");
  }
  if (!aligned(geometry.log_segment_bytes) || geometry.log_segment_bytes > 1ull << 40) {
    return Status::invalid_argument("log_segment_bytes is " + std::to_string(geometry.log_segment_bytes) +
                                    ": use a multiple of 4096 up to 1 TiB");
  }
  if (!aligned(geometry.block_bytes) || geometry.block_bytes > 1u << 20) {
    return Status::invalid_argument("block_bytes is " + std::to_string(geometry.block_bytes) +
                                    ": use a multiple of 4096 up to 1 MiB");
  }
  if (geometry.initial_log_segments < 2 || geometry.initial_log_segments > 1u << 20) {
    return Status::invalid_argument("initial_log_segments is " + std::to_string(geometry.initial_log_segments) +
                                    ": use 2 or more");
  }
  return {};
}

const Features& known_features() {
  static const Features features{.compat = {}, .ro_compat = {}, .incompat = {kCompressedBlocksFeature}};
  return features;
}

Features features_of(const Options& options) {
  Features features;
  if (options.compress_blocks) {
    features.incompat.insert(kCompressedBlocksFeature);
  }
  return features;
}

bool is_upgradable(const Features& features, const Options& options) {
  Features upgraded = features;
  upgraded.add(features_of(options));
  return upgraded != features;
}

std::string Checkpoint::encode() const {
  manifest_header_t header{};
  std::memcpy(header.magic, kManifestMagic, sizeof(header.magic));
  header.version = kManifestVersion;
  header.epoch = epoch;
  std::memcpy(header.uuid, uuid.data(), sizeof(header.uuid));
  header.runs = static_cast<uint32_t>(runs.size());
  header.segments = static_cast<uint32_t>(segments.size());
  header.block_bytes = geometry.block_bytes;
  header.log_segment_bytes = geometry.log_segment_bytes;
  header.zone_bytes = geometry.zone_bytes;
  header.initial_log_segments = geometry.initial_log_segments;
  header.log_header_checksum = position.header_checksum;
  header.log_sequence = position.sequence;
  header.log_segment_id = position.segment_id;
  header.log_epoch = position.epoch;
  header.log_end_offset = position.end_offset;
  header.next_run_id = next_run_id;
  const std::string encoded_features = features.encode();
  header.feature_bytes = static_cast<uint32_t>(encoded_features.size());
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  for (const RunLocation& run : runs) {
    manifest_run_t record{};
    record.run_id = run.run_id;
    record.span_id = run.span.id;
    record.offset = run.span.offset;
    record.units = run.span.units;
    record.level = run.level;
    record.sorted_run_id = run.sorted_run_id;
    bytes.append(reinterpret_cast<const char*>(&record), sizeof(record));
  }
  for (const SegmentValues& values : segments) {
    const manifest_segment_t record{values.segment_id, values.epoch, values.entries, values.bytes, values.end};
    bytes.append(reinterpret_cast<const char*>(&record), sizeof(record));
  }
  bytes += encoded_features;
  const uint32_t length = static_cast<uint32_t>(bytes.size());
  std::memcpy(bytes.data() + offsetof(manifest_header_t, length), &length, sizeof(length));
  const uint32_t crc = crc32c(bytes.data() + kCrcStart, bytes.size() - kCrcStart);
  std::memcpy(bytes.data() + offsetof(manifest_header_t, crc32c), &crc, sizeof(crc));
  return bytes;
}

Status Checkpoint::decode(std::string_view copy, Checkpoint* checkpoint) {
  *checkpoint = {};
  manifest_header_t header;
  if (copy.size() < sizeof(header)) {
    return Status::corruption("it is too short");
  }
  std::memcpy(&header, copy.data(), sizeof(header));
  if (std::memcmp(header.magic, kManifestMagic, sizeof(header.magic)) != 0) {
    return Status::corruption("it does not begin with a manifest's magic");
  }
  if (header.length < sizeof(header) || header.length > copy.size()) {
    return Status::corruption("it is longer than its space");
  }
  if (crc32c(copy.data() + kCrcStart, header.length - kCrcStart) != header.crc32c) {
    return Status::corruption("its checksum does not match");
  }
  if (header.version != kManifestVersion) {
    return Status::unsupported("it has format version " + std::to_string(header.version) +
                               ", this program knows version " + std::to_string(kManifestVersion));
  }
  const uint64_t feature_bytes = header.feature_bytes;
  if (feature_bytes > kFeatureBytesMax) {
    return Status::corruption("it has features that no program writes");
  }
  const uint64_t runs_bytes = header.runs * uint64_t{sizeof(manifest_run_t)};
  const uint64_t records_bytes = runs_bytes + header.segments * uint64_t{sizeof(manifest_segment_t)};
  if (header.length - sizeof(header) != records_bytes + feature_bytes) {
    return Status::corruption("its number of runs and segments contradicts its length");
  }
  if (!Features::decode(copy.substr(sizeof(header) + records_bytes, feature_bytes), &checkpoint->features)) {
    return Status::corruption("it has features that no program writes");
  }
  checkpoint->epoch = header.epoch;
  std::memcpy(checkpoint->uuid.data(), header.uuid, sizeof(header.uuid));
  checkpoint->geometry.block_bytes = header.block_bytes;
  checkpoint->geometry.log_segment_bytes = header.log_segment_bytes;
  checkpoint->geometry.zone_bytes = header.zone_bytes;
  checkpoint->geometry.initial_log_segments = header.initial_log_segments;
  checkpoint->position = {header.log_sequence, header.log_segment_id, header.log_epoch, header.log_end_offset,
                          header.log_header_checksum};
  checkpoint->next_run_id = header.next_run_id;
  for (uint32_t i = 0; i < header.runs; ++i) {
    manifest_run_t record;
    std::memcpy(&record, copy.data() + sizeof(header) + i * sizeof(record), sizeof(record));
    checkpoint->runs.push_back(
        {record.run_id, record.level, {record.span_id, record.offset, record.units}, 0, record.sorted_run_id});
  }
  for (uint32_t i = 0; i < header.segments; ++i) {
    manifest_segment_t record;
    std::memcpy(&record, copy.data() + sizeof(header) + runs_bytes + i * sizeof(record), sizeof(record));
    checkpoint->segments.push_back({record.segment_id, record.epoch, record.entries, record.bytes, record.end, 0});
  }
  if (checkpoint->epoch == 0 || !check_geometry(checkpoint->geometry).ok() || !counts_can_go_on(*checkpoint) ||
      !run_ids_are_sound(*checkpoint)) {
    return Status::corruption("it holds impossible values");
  }
  return {};
}

Status Manifest::create(Env* env, const std::string& directory, const Checkpoint& first) {
  const std::string path = manifest_path(directory);
  const std::string draft = path + ".new";
  const uint64_t copy_bytes = copy_bytes_for(first.geometry);
  std::unique_ptr<File> file;
  OpenOptions options;
  options.create = true;
  VTKV_RETURN_IF_ERROR(env->open_file(draft, options, &file));
  VTKV_RETURN_IF_ERROR(file->truncate(0));  // of an earlier attempt that did not finish
  VTKV_RETURN_IF_ERROR(file->write_zeros(0, 2 * copy_bytes));
  VTKV_RETURN_IF_ERROR(write_copy(file.get(), copy_bytes, first));
  file.reset();
  VTKV_RETURN_IF_ERROR(env->rename_file(draft, path));
  return env->sync_directory(directory);
}

Status Manifest::open(Env* env, const std::string& directory, std::unique_ptr<Manifest>* manifest, Checkpoint* newest,
                      Checkpoint* older) {
  const std::string path = manifest_path(directory);
  std::unique_ptr<File> file;
  VTKV_RETURN_IF_ERROR(env->open_file(path, {}, &file));
  uint64_t bytes = 0;
  VTKV_RETURN_IF_ERROR(file->size(&bytes));
  if (bytes < 2 * kCopyBytesMin || bytes > 2 * kCopyBytesMax || bytes % (2 * kIoAlignment) != 0) {
    return Status::corruption(path + " has an impossible size of " + std::to_string(bytes) +
                              " bytes: restore the database, or give it up and make a new one");
  }
  const uint64_t copy_bytes = bytes / 2;
  Checkpoint copies[2];
  Status states[2];
  for (int i = 0; i < 2; ++i) {
    // Copy by copy: an unreadable sector in one must not hide the other.
    states[i] = read_copy(file.get(), i * copy_bytes, copy_bytes, &copies[i]);
    if (states[i].ok() && copies[i].epoch % 2 != static_cast<uint64_t>(i)) {
      states[i] = Status::corruption("the other copy's checkpoint lies in it");
    }
    if (states[i].code() == Status::Code::unsupported) {
      return Status::unsupported(
          path + ": " + std::string(states[i].message()) +
          ": open the database with the program that wrote it; to go on with another one, export "
          "it there and import it here");
    }
  }
  if (!states[0].ok() && !states[1].ok()) {
    return Status::corruption(path + " holds no valid checkpoint (first copy: " + std::string(states[0].message()) +
                              "; second copy: " + std::string(states[1].message()) +
                              "): restore the database, or give it up and make a new one");
  }
  // Their epochs differ: one is even, one odd.
  const int first = states[0].ok() && (!states[1].ok() || copies[0].epoch > copies[1].epoch) ? 0 : 1;
  if (states[0].ok() && states[1].ok() && !follows(copies[1 - first], copies[first])) {
    return Status::corruption(path +
                              ": its two checkpoints contradict each other: restore the database, or give it "
                              "up and make a new one");
  }
  *newest = std::move(copies[first]);
  *older = states[1 - first].ok() ? std::move(copies[1 - first]) : Checkpoint();
  *manifest = std::unique_ptr<Manifest>(new Manifest(std::move(file), copy_bytes));
  if (!states[1 - first].ok() && !states[1 - first].is_not_found()) {
    (*manifest)->m_torn_offset = static_cast<uint64_t>(1 - first) * copy_bytes;
  }
  return {};
}

Status Manifest::clear_torn() {
  if (!m_torn_offset) {
    return {};
  }
  AlignedBuffer zeros(m_copy_bytes);
  std::memset(zeros.data(), 0, m_copy_bytes);
  VTKV_RETURN_IF_ERROR(m_file->write(*m_torn_offset, zeros.data(), m_copy_bytes));
  VTKV_RETURN_IF_ERROR(m_file->sync());
  m_torn_offset.reset();
  return {};
}

Status Manifest::write(const Checkpoint& checkpoint) { return write_copy(m_file.get(), m_copy_bytes, checkpoint); }

void Manifest::verify(const Checkpoint& checkpoint, std::vector<std::string>* findings) {
  Checkpoint found;
  Status status = read_copy(m_file.get(), checkpoint.epoch % 2 * m_copy_bytes, m_copy_bytes, &found);
  if (status.ok() && found.epoch != checkpoint.epoch) {
    status = Status::corruption("it holds checkpoint " + std::to_string(found.epoch));
  }
  if (!status.ok()) {
    findings->push_back(path() + ", copy of checkpoint " + std::to_string(checkpoint.epoch) + ": " +
                        std::string(status.message()));
  }
}

}  // namespace vtkv
