// SPDX-License-Identifier: LGPL-2.1-or-later
// swimstore_bench: load at the ObjectStore interface, for any store type built in.

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <fmt/format.h>
#include <boost/program_options.hpp>

#include "common/ceph_argparse.h"
#include "common/errno.h"
#include "common/strtol.h"
#include "global/global_init.h"
#include "swimstore/program_version.h"
#include "swimstore/tool/store_load.h"

namespace po = boost::program_options;
using swimstore::LoadOp;
using swimstore::LoadOptions;
using swimstore::LoadResult;

namespace {

struct Arguments {
  std::string store, op, path, json, acked;
  bool fsck = false;
  LoadOptions load;
  std::vector<std::string> for_ceph;
};

// A number of bytes as options take it: 4096, 4K, 4M.
struct Bytes {
  uint64_t count;
};

void validate(boost::any& value, const std::vector<std::string>& words, Bytes*, int) {
  const std::string& word = po::validators::get_single_string(words);
  std::string error;
  const uint64_t count = strict_iecstrtoll(word, &error);
  if (!error.empty()) {
    throw po::validation_error(po::validation_error::invalid_option_value, "", word);
  }
  value = Bytes{count};
}

po::typed_value<Bytes>* bytes(uint64_t* field, uint64_t preset, const char* shown) {
  return po::value<Bytes>()->default_value({preset}, shown)->notifier([field](const Bytes& given) {
    *field = given.count;
  });
}

constexpr std::pair<const char*, LoadOp> kOps[] = {
    {"write", LoadOp::write}, {"overwrite", LoadOp::overwrite}, {"append", LoadOp::append}, {"read", LoadOp::read},
    {"omap", LoadOp::omap},   {"list", LoadOp::list},           {"delete", LoadOp::remove}, {"check", LoadOp::check}};

po::options_description describe(Arguments* arguments) {
  po::options_description text(
      "swimstore_bench: load on an object store, without an OSD\n\n"
      "Makes a store in --path (a new, empty directory), runs one kind of operation on it and\n"
      "reports; the store stays. What follows -- goes to Ceph's configuration, e.g. -- --swimstore_io_depth "
      "64.\n\nOptions");
  auto add = text.add_options();
  LoadOptions& load = arguments->load;
  add("help,h", "show this");
  add("version", "print versions");
  add("store", po::value(&arguments->store)->default_value("swimstore"), "store type");
  add("op", po::value(&arguments->op)->default_value("write"),
      "write: new objects; overwrite, read: at random in existing ones; append; omap: keys of existing ones; "
      "list: of all objects, 300 at a time; delete: the oldest ones; check: that each has its content, the newest "
      "first; fsck: of the store, not mounted");
  add("size", bytes(&load.size_bytes, 4096, "4K"), "bytes per operation");
  add("depth", po::value(&load.depth)->default_value(16), "operations in flight");
  add("threads", po::value(&load.threads)->default_value(2), "submitting threads, each with a PG of its own");
  add("seconds", po::value(&load.seconds)->default_value(10), "how long");
  add("operations", po::value(&load.operations)->default_value(0), "end earlier, after so many; 0: do not");
  add("objects", po::value(&load.objects)->default_value(64), "existing objects per PG of a new store");
  add("object-size", bytes(&load.object_bytes, 4u << 20, "4M"), "their bytes; --op write makes objects of --size");
  add("fragment", bytes(&load.fragment_bytes, 0, "0"),
      "overwrite existing objects in slices of so many bytes first, in random order; 0: leave them whole");
  add("path", po::value(&arguments->path)->required(), "directory for the store");
  add("acked", po::value(&arguments->acked),
      "a file that says which objects the store has acknowledged; kept up to date. Where it exists, it is of the store "
      "in --path, which is used again with its objects and PGs; a first read and a first write are timed then");
  add("json", po::value(&arguments->json), "write the result to this file");
  add("no-pg-log", "leave out what an OSD adds to each write (object info, PG log, PG info)");
  return text;
}

// Exits on a bad one.
void choose_op(Arguments* arguments) {
  arguments->fsck = arguments->op == "fsck";
  const auto op =
      std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& one) { return arguments->op == one.first; });
  std::string error;
  if (op != std::end(kOps)) {
    arguments->load.op = op->second;
  } else if (!arguments->fsck) {
    error = fmt::format("must be write, overwrite, append, read, omap, list, delete, check or fsck, not '{}'",
                        arguments->op);
  }
  if (arguments->fsck && !arguments->load.existing) {
    error = "fsck: there is no store yet; name the --acked of one";
  } else if (op != std::end(kOps) && op->second == LoadOp::append && arguments->load.existing) {
    error = "append: makes objects of its own, so it needs a new store";
  }
  if (!error.empty()) {
    std::cerr << "swimstore_bench: --op " << error << "\n";
    std::exit(2);
  }
}

// Exits on --help and on bad arguments.
Arguments parse(int argc, char** argv) {
  Arguments arguments;
  const po::options_description text = describe(&arguments);
  const auto separator =
      std::find_if(argv, argv + argc, [](const char* word) { return std::string_view(word) == "--"; });
  arguments.for_ceph.assign(separator == argv + argc ? separator : separator + 1, argv + argc);
  try {
    po::variables_map values;
    po::store(po::parse_command_line(static_cast<int>(separator - argv), argv, text), values);
    if (values.count("help")) {
      std::cout << text;
      std::exit(0);
    }
    if (values.count("version")) {
      std::cout << swimstore::version_text("swimstore_bench") << "\n";
      std::exit(0);
    }
    po::notify(values);
    arguments.load.pg_log = !values.count("no-pg-log");
  } catch (const po::error& error) {
    std::cerr << "swimstore_bench: " << error.what() << " (see --help)\n";
    std::exit(2);
  }
  const LoadOptions& load = arguments.load;
  if (load.size_bytes == 0 || load.size_bytes > (64u << 20) || load.depth == 0 || load.depth > 4096 ||
      load.threads == 0 || load.threads > 64 || !(load.seconds > 0) || load.objects == 0 ||
      load.object_bytes < load.size_bytes || load.object_bytes > (64u << 20) ||
      (load.fragment_bytes > 0 && load.fragment_bytes < 512) || load.fragment_bytes > load.object_bytes) {
    std::cerr << "swimstore_bench: size must be 1 to 64 MiB, depth 1 to 4096, threads 1 to 64, seconds above 0, "
                 "objects above 0, object-size from size to 64 MiB, fragment 0 or from 512 to object-size\n";
    std::exit(2);
  }
  arguments.load.existing = !arguments.acked.empty() && std::filesystem::exists(arguments.acked);
  choose_op(&arguments);
  return arguments;
}

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// What a run has beside its load.
struct Durations {
  double mount_s = 0, umount_s = 0;
};

std::string to_json(const Arguments& arguments, const LoadResult& result, const Durations& durations) {
  const double iops = result.operations / result.seconds;
  const auto number = [](double value, bool known) {
    return known ? fmt::format("{:.3f}", value) : std::string("null");
  };
  const auto per_op = [&](double count, bool known) {
    return number(count / result.operations, known && result.operations > 0);
  };
  const swimstore::MetadataCounters& metadata = result.metadata;
  return fmt::format(
      "{{\"results\": [{{\"store\": \"{}\", \"op\": \"{}\", \"size_bytes\": {}, \"depth\": {}, \"pg_log\": {}, "
      "\"seconds\": {:.3f}, \"operations\": {}, \"iops\": {:.1f}, \"mb_per_s\": {:.3f}, \"average_ms\": {:.4f}, "
      "\"p50_ms\": {:.4f}, \"p99_ms\": {:.4f}, \"max_ms\": {:.4f}, \"cv\": {:.4f}, \"device_bytes_per_op\": {}, "
      "\"device_flushes_per_op\": {}, \"metadata_bytes_per_op\": {}, \"log_bytes_per_op\": {}, "
      "\"flush_bytes_per_op\": {}, \"compaction_bytes_per_op\": {}, \"stored_bytes\": {}, \"allocated_bytes\": {}, "
      "\"allocated_most_bytes\": {}, \"processor_us_per_op\": {}, \"resident_bytes\": {}, \"mount_seconds\": {:.4f}, "
      "\"umount_seconds\": {:.4f}, \"first_read_ms\": {}, \"first_write_ms\": {}, \"listed_objects\": {}, "
      "\"wrong_objects\": {}}}]}}\n",
      arguments.store, arguments.op, arguments.load.size_bytes, arguments.load.depth, arguments.load.pg_log,
      result.seconds, result.operations, iops, iops * arguments.load.size_bytes / 1e6, result.average_ms, result.p50_ms,
      result.p99_ms, result.max_ms, result.variation, per_op(result.device_written_bytes, result.device_known),
      per_op(result.device_flushes, result.device_known), per_op(metadata.total(), metadata.known),
      per_op(metadata.log_bytes, metadata.known), per_op(metadata.flush_bytes, metadata.known),
      per_op(metadata.compaction_bytes, metadata.known), result.stored_bytes, result.allocated_bytes,
      result.allocated_most_bytes, per_op(result.processor_seconds * 1e6, true), result.resident_bytes,
      durations.mount_s, durations.umount_s, number(result.first_read_ms, arguments.load.existing),
      number(result.first_write_ms, arguments.load.existing), result.listed_objects, result.wrong_objects);
}

int fail(const std::string& what, int r) {
  std::cerr << "swimstore_bench: " << what << ": " << cpp_strerror(r) << "\n";
  return 1;
}

// Prints it, and writes it to --json.
int tell(const Arguments& arguments, const std::string& json) {
  std::cout << json;
  if (!arguments.json.empty()) {
    std::ofstream out(arguments.json);
    out << json;
    if (!out.flush()) {
      std::cerr << "swimstore_bench: cannot write " << arguments.json << "\n";
      return 1;
    }
  }
  return 0;
}

int make_store(ObjectStore& store, const std::string& path) {
  uuid_d fsid;
  fsid.generate_random();
  store.set_fsid(fsid);
  const int r = store.mkfs();
  return r < 0 ? fail("mkfs in " + path, r) : 0;
}

int check_store(ObjectStore& store, const Arguments& arguments) {
  const auto began = std::chrono::steady_clock::now();
  const int errors = store.fsck(false);
  const double took_s = seconds_since(began);
  if (errors < 0) {
    return fail("fsck of " + arguments.path, errors);
  }
  const int r =
      tell(arguments, fmt::format("{{\"results\": [{{\"store\": \"{}\", \"op\": \"fsck\", \"seconds\": {:.3f}, "
                                  "\"errors\": {}}}]}}\n",
                                  arguments.store, took_s, errors));
  return errors > 0 ? 1 : r;
}

int load_store(ObjectStore& store, const Arguments& arguments, swimstore::AckedObjects* acked) {
  LoadResult result;
  Durations durations;
  const auto mount_began = std::chrono::steady_clock::now();
  if (const int r = store.mount(); r < 0) {
    return fail("mount of " + arguments.path, r);
  }
  durations.mount_s = seconds_since(mount_began);
  const int r = swimstore::run_load(store, arguments.path, arguments.load, *acked, &result);
  const auto umount_began = std::chrono::steady_clock::now();
  store.umount();
  durations.umount_s = seconds_since(umount_began);
  if (r < 0) {
    return fail(arguments.op, r);
  }
  const int told = tell(arguments, to_json(arguments, result, durations));
  if (result.wrong_objects > 0) {
    std::cerr << "swimstore_bench: " << result.wrong_objects << " objects are not there or have other content, such as "
              << result.first_wrong << "\n";
    return 1;
  }
  return told;
}

// Makes it, or takes from it what is known of the store that is there.
int open_acked(Arguments* arguments, swimstore::AckedObjects* acked) {
  LoadOptions& load = arguments->load;
  if (!load.existing) {
    const uint64_t object_bytes = load.op == LoadOp::write ? load.size_bytes : load.object_bytes;
    const int r = acked->create(arguments->acked, swimstore::pgs_of(load), object_bytes);
    return r < 0 ? fail("the file of acknowledged objects " + arguments->acked +
                            " (of at most 256 PGs: --threads, of reads --depth)",
                        r)
                 : 0;
  }
  if (const int r = acked->open(arguments->acked); r < 0) {
    return fail("the file of acknowledged objects " + arguments->acked, r);
  }
  load.object_bytes = acked->object_bytes();
  const bool fits = load.op == LoadOp::write  ? load.size_bytes == load.object_bytes
                    : load.op == LoadOp::omap ? true
                                              : load.size_bytes <= load.object_bytes;
  if (!fits) {
    std::cerr << "swimstore_bench: --size " << load.size_bytes << ": the objects of " << arguments->acked << " have "
              << load.object_bytes << " bytes\n";
    return 2;
  }
  return 0;
}

int run(CephContext* cct, Arguments arguments) {
  const auto store = ObjectStore::create(cct, arguments.store, arguments.path);
  if (!store) {
    std::cerr << "swimstore_bench: no store type '" << arguments.store << "' is built in\n";
    return 2;
  }
  swimstore::AckedObjects acked;
  if (const int r = open_acked(&arguments, &acked); r != 0) {
    return r;
  }
  if (!arguments.load.existing) {
    if (const int r = make_store(*store, arguments.path); r != 0) {
      std::error_code ignored;
      std::filesystem::remove(arguments.acked, ignored);  // it would say that there is one
      return r;
    }
  }
  return arguments.fsck ? check_store(*store, arguments) : load_store(*store, arguments, &acked);
}

// Made, if it is not there.
bool is_free(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    return false;
  }
  return std::filesystem::is_empty(path, error) ||
         (!error && std::distance(std::filesystem::directory_iterator(path), {}) == 1 &&
          std::filesystem::exists(path + "/lost+found"));
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  if (!arguments.load.existing && !is_free(arguments.path)) {
    std::cerr << "swimstore_bench: --path " << arguments.path << " must be a new or an empty directory"
              << (arguments.acked.empty() ? "" : ", since there is no " + arguments.acked) << "\n";
    return 2;
  }
  std::vector<const char*> for_ceph;
  for (const std::string& word : arguments.for_ceph) {
    for_ceph.push_back(word.c_str());
  }
  const auto cct =
      global_init(nullptr, for_ceph, CEPH_ENTITY_TYPE_OSD, CODE_ENVIRONMENT_UTILITY, CINIT_FLAG_NO_DEFAULT_CONFIG_FILE);
  common_init_finish(cct.get());
  return run(cct.get(), arguments);
}
