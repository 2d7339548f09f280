// SPDX-License-Identifier: LGPL-2.1-or-later
// swimstore_bench: load at the ObjectStore interface, for any store type built in.

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
  std::string store, op, path, json;
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

constexpr std::pair<const char*, LoadOp> kOps[] = {{"write", LoadOp::write},
                                                   {"overwrite", LoadOp::overwrite},
                                                   {"append", LoadOp::append},
                                                   {"read", LoadOp::read},
                                                   {"omap", LoadOp::omap}};

po::options_description describe(Arguments* arguments) {
  po::options_description text(
      "swimstore_bench: load on an object store, without an OSD\n\n"
      "Makes a store in --path (a new, empty directory), runs one kind of operation on it and\n"
      "reports. What follows -- goes to Ceph's configuration, e.g. -- --swimstore_io_depth 64.\n\nOptions");
  auto add = text.add_options();
  LoadOptions& load = arguments->load;
  add("help,h", "show this");
  add("version", "print versions");
  add("store", po::value(&arguments->store)->default_value("swimstore"), "store type");
  add("op", po::value(&arguments->op)->default_value("write"),
      "write: new objects; overwrite, read: at random in existing ones; append; omap: keys of existing ones");
  add("size", bytes(&load.size_bytes, 4096, "4K"), "bytes per operation");
  add("depth", po::value(&load.depth)->default_value(16), "operations in flight");
  add("threads", po::value(&load.threads)->default_value(2), "submitting threads, each with a PG of its own");
  add("seconds", po::value(&load.seconds)->default_value(10), "how long");
  add("operations", po::value(&load.operations)->default_value(0), "end earlier, after so many; 0: do not");
  add("objects", po::value(&load.objects)->default_value(64), "existing objects per PG");
  add("object-size", bytes(&load.object_bytes, 4u << 20, "4M"), "their bytes");
  add("fragment", bytes(&load.fragment_bytes, 0, "0"),
      "overwrite existing objects in slices of so many bytes first, in random order; 0: leave them whole");
  add("path", po::value(&arguments->path)->required(), "directory for the store");
  add("json", po::value(&arguments->json), "write the result to this file");
  add("no-pg-log", "leave out what an OSD adds to each write (object info, PG log, PG info)");
  return text;
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
  const auto op =
      std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& one) { return arguments.op == one.first; });
  if (op == std::end(kOps)) {
    std::cerr << "swimstore_bench: --op must be write, overwrite, append, read or omap, not '" << arguments.op << "'\n";
    std::exit(2);
  }
  arguments.load.op = op->second;
  return arguments;
}

std::string to_json(const Arguments& arguments, const LoadResult& result) {
  const double iops = result.operations / result.seconds;
  const auto per_op = [&](uint64_t count, bool known) {
    return known && result.operations > 0 ? fmt::format("{:.3f}", static_cast<double>(count) / result.operations)
                                          : std::string("null");
  };
  const swimstore::MetadataCounters& metadata = result.metadata;
  return fmt::format(
      "{{\"results\": [{{\"store\": \"{}\", \"op\": \"{}\", \"size_bytes\": {}, \"depth\": {}, \"pg_log\": {}, "
      "\"seconds\": {:.3f}, \"operations\": {}, \"iops\": {:.1f}, \"mb_per_s\": {:.3f}, \"average_ms\": {:.4f}, "
      "\"p50_ms\": {:.4f}, \"p99_ms\": {:.4f}, \"max_ms\": {:.4f}, \"cv\": {:.4f}, \"device_bytes_per_op\": {}, "
      "\"device_flushes_per_op\": {}, \"metadata_bytes_per_op\": {}, \"log_bytes_per_op\": {}, "
      "\"flush_bytes_per_op\": {}, \"compaction_bytes_per_op\": {}, \"stored_bytes\": {}, \"allocated_bytes\": {}, "
      "\"allocated_most_bytes\": {}}}]}}\n",
      arguments.store, arguments.op, arguments.load.size_bytes, arguments.load.depth, arguments.load.pg_log,
      result.seconds, result.operations, iops, iops * arguments.load.size_bytes / 1e6, result.average_ms, result.p50_ms,
      result.p99_ms, result.max_ms, result.variation, per_op(result.device_written_bytes, result.device_known),
      per_op(result.device_flushes, result.device_known), per_op(metadata.total(), metadata.known),
      per_op(metadata.log_bytes, metadata.known), per_op(metadata.flush_bytes, metadata.known),
      per_op(metadata.compaction_bytes, metadata.known), result.stored_bytes, result.allocated_bytes,
      result.allocated_most_bytes);
}

int fail(const std::string& what, int r) {
  std::cerr << "swimstore_bench: " << what << ": " << cpp_strerror(r) << "\n";
  return 1;
}

int run(CephContext* cct, const Arguments& arguments) {
  const auto store = ObjectStore::create(cct, arguments.store, arguments.path);
  if (!store) {
    std::cerr << "swimstore_bench: no store type '" << arguments.store << "' is built in\n";
    return 2;
  }
  uuid_d fsid;
  fsid.generate_random();
  store->set_fsid(fsid);
  if (const int r = store->mkfs(); r < 0) {
    return fail("mkfs in " + arguments.path, r);
  }
  if (const int r = store->mount(); r < 0) {
    return fail("mount of " + arguments.path, r);
  }
  LoadResult result;
  const int r = swimstore::run_load(*store, arguments.path, arguments.load, &result);
  store->umount();
  if (r < 0) {
    return fail(arguments.op, r);
  }
  const std::string json = to_json(arguments, result);
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

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  std::error_code error;
  std::filesystem::create_directories(arguments.path, error);
  if (error || !std::filesystem::is_empty(arguments.path, error)) {
    const bool only_lost_and_found = !error &&
                                     std::distance(std::filesystem::directory_iterator(arguments.path), {}) == 1 &&
                                     std::filesystem::exists(arguments.path + "/lost+found");
    if (!only_lost_and_found) {
      std::cerr << "swimstore_bench: --path " << arguments.path << " must be a new or an empty directory\n";
      return 2;
    }
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
