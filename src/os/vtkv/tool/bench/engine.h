// SPDX-License-Identifier: LGPL-2.1-or-later
// What the benchmark asks of a key-value engine. One implementation per engine; peers stand behind the
// same door as vtkv, so that a workload cannot tell whom it measures.
//
// Thread-safety: reads and writes of an Engine from any thread; open, settle and close from one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vtkv/status.h"

namespace vtkv::bench {

// The same for all engines of a run.
struct EngineSettings {
  std::string path;          // a directory of the engine's own
  size_t memory_bytes = 0;   // half for memtables, half for cached blocks, indexes and filters
  size_t value_bytes = 0;    // what the workload will mostly write
  uint64_t data_bytes = 0;   // live keys and values, about
  bool sync = false;         // a write returns when it is durable
  unsigned threads = 1;
  std::map<std::string, std::string> options;  // of this engine alone: "name:option=value"
};

struct KeyValue {
  std::string_view key, value;
};

// An ordered view; starts invalid: seek first. Keys and values stay valid until the next move.
class Scan {
 public:
  virtual ~Scan() = default;
  virtual void seek_to_first() = 0;
  virtual void seek_to_last() = 0;
  virtual void seek(std::string_view target) = 0;
  virtual bool valid() const = 0;
  virtual void next() = 0;
  virtual void previous() = 0;
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
  virtual Status status() const = 0;
};

enum class ScanLength { few, whole };  // a hint: engines may read ahead for a long one

struct EngineReport {
  uint64_t delays = 0;  // times that the engine slowed or stopped writers for its background work
  uint64_t delay_us = 0;
  std::optional<uint64_t> log_waits;  // times that a writer was faster than the log's device
  uint64_t primed_bytes = 0;      // written once so that later writes need no metadata
  uint64_t log_bytes = 0, flush_bytes = 0, compaction_bytes = 0, gc_bytes = 0;  // where the engine tells
  std::optional<uint64_t> filter_bytes;  // of all runs
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual Status put(std::string_view key, std::string_view value) = 0;
  virtual Status put_many(const std::vector<KeyValue>& entries) = 0;  // as one batch
  virtual Status remove(std::string_view key) = 0;
  // Removes [begin, end) with the best means the engine has.
  virtual Status remove_range(std::string_view begin, std::string_view end) = 0;
  // Code::not_found when absent.
  virtual Status get(std::string_view key, std::string* value) = 0;
  virtual std::unique_ptr<Scan> new_scan(std::string_view lower, std::string_view upper, ScanLength length) = 0;

  // Everything written is on disk, and what the engine would do in the background is done.
  virtual Status settle() = 0;
  // Gives back all space that dead values take; Code::unsupported where there is no such thing.
  virtual Status collect_garbage() { return Status::unsupported("no garbage collection"); }
  virtual Status defragment() { return Status::unsupported("no defragmentation"); }
  virtual EngineReport report() = 0;
};

// "vtkv", "rocksdb:universal=1": an engine's name and options of its own. The whole text labels the results,
// so that two settings of one engine can be compared in one run.
struct EngineSpec {
  std::string label, name;
  std::map<std::string, std::string> options;

  static Status parse(std::string_view text, EngineSpec* spec);
};

// Every engine this source knows, and what became of it in this build.
struct EngineKind {
  std::string_view name;
  std::string_view what;
  std::vector<std::string_view> options;
  // Null: its library was absent at build time.
  Status (*open)(const EngineSettings&, std::unique_ptr<Engine>*);
};
const std::vector<EngineKind>& engine_kinds();
// Code::invalid_argument for a name or option nobody has, Code::unsupported for an absent library.
Status check_engine(const EngineSpec& spec);
// Opens the database in settings.path, made when missing.
Status open_engine(const EngineSpec& spec, EngineSettings settings, std::unique_ptr<Engine>* engine);

// An option's value, or `otherwise` when it was not given. Code::invalid_argument names what is no number.
Status number_option(const EngineSettings& settings, const std::string& name, double otherwise, double* value);

// Waits until the device below `path` was written nothing for half a second: for engines that cannot be asked
// whether their background work is done. At most a minute.
void wait_until_quiet(const std::string& path);

// The factories; each is defined when its library was found.
Status open_vtkv(const EngineSettings& settings, std::unique_ptr<Engine>* engine);
Status open_rocksdb(const EngineSettings& settings, std::unique_ptr<Engine>* engine);
Status open_blobdb(const EngineSettings& settings, std::unique_ptr<Engine>* engine);
Status open_leveldb(const EngineSettings& settings, std::unique_ptr<Engine>* engine);
Status open_lmdb(const EngineSettings& settings, std::unique_ptr<Engine>* engine);

}  // namespace vtkv::bench
