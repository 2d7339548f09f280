// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/bench/arguments.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "vtkv/program_version.h"
#include "vtkv/tool/bench/gate.h"
#include "vtkv/tool/bench/runner.h"

namespace vtkv::bench {

namespace {

struct Texts {
  std::string engines = "vtkv,rocksdb", workloads = "fillrandom,overwrite,readrandom,readseq";
  std::string value_sizes = "1024", data = "256M", memory = "64M";
};

constexpr uint64_t kValueBytesMax = 1 << 20;
constexpr uint64_t kMemoryBytesMin = 4 << 20, kMemoryBytesMax = 64ull << 30;
constexpr uint64_t kDataBytesMin = 1 << 20, kDataBytesMax = 1ull << 40;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0, end; at <= text.size(); at = end + 1) {
    end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
  }
  return parts;
}

// "4096", "64K", "1M", "2G".
Status parse_size(const std::string& option, const std::string& text, uint64_t min, uint64_t max, uint64_t* bytes) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *bytes);
  const std::string unit(end, text.data() + text.size());
  const size_t power = unit.empty() ? 0 : std::string("KMGT").find(unit) + 1;
  const bool known = error == std::errc() && (unit.empty() || (unit.size() == 1 && power > 0));
  if (known && *bytes <= (UINT64_MAX >> (10 * power))) {
    *bytes <<= 10 * power;
    if (*bytes >= min && *bytes <= max) {
      return {};
    }
  }
  return Status::invalid_argument(
      fmt::format("{} {}: give a size from {} to {} bytes, like 4096, 64K or 1G", option, text, min, max));
}

Status fill_group(const Texts& texts, Group* group) {
  for (const std::string& text : split(texts.engines)) {
    EngineSpec spec;
    VTKV_RETURN_IF_ERROR(EngineSpec::parse(text, &spec));
    const Status status = check_engine(spec);
    if (status.code() == Status::Code::unsupported) {
      say(std::string(status.message()));
      continue;
    }
    VTKV_RETURN_IF_ERROR(status);
    group->engines.push_back(std::move(spec));
  }
  if (group->engines.empty()) {
    return Status::invalid_argument("--engines: none of them is in this build");
  }
  for (const std::string& name : split(texts.workloads)) {
    const WorkloadKind* kind = find_workload(name);
    if (!kind) {
      return Status::invalid_argument(fmt::format("--workloads: there is no workload '{}'; --help lists them", name));
    }
    group->workloads.push_back(kind);
  }
  for (const std::string& text : split(texts.value_sizes)) {
    VTKV_RETURN_IF_ERROR(parse_size("--value-sizes", text, 1, kValueBytesMax, &group->value_sizes.emplace_back()));
  }
  VTKV_RETURN_IF_ERROR(parse_size("--memory", texts.memory, kMemoryBytesMin, kMemoryBytesMax, &group->memory_bytes));
  return parse_size("--data", texts.data, kDataBytesMin, kDataBytesMax, &group->data_bytes);
}

Status check_output(const std::string& option, const std::string& file) {
  std::error_code ignored;
  const auto folder = std::filesystem::absolute(file, ignored).parent_path();
  return ::access(folder.c_str(), W_OK) == 0
             ? Status()
             : Status::invalid_argument(
                   fmt::format("{} {}: its directory does not exist or cannot be written", option, file));
}

Status check_path(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    return Status::invalid_argument(fmt::format("--path {}: no such directory; make it first", path));
  }
  if (!std::filesystem::is_empty(path, ignored) &&
      !(std::filesystem::directory_iterator(path)->path().filename() == "lost+found" &&
        std::next(std::filesystem::directory_iterator(path)) == std::filesystem::directory_iterator())) {
    return Status::invalid_argument(
        fmt::format("--path {}: not empty; the benchmark wants a directory of its own", path));
  }
  return {};
}

// A suite chooses all but its size: smaller ones try things out, and are not the gate.
Status fill_suite(const CLI::App& app, const Texts& texts, double seconds, const std::string& suite,
                  std::vector<Group>* groups) {
  for (const char* option : {"--engines", "--workloads", "--value-sizes", "--keys", "--threads", "--sync",
                             "--overwrites", "--rounds", "--seed"}) {
    if (app.count(option) > 0) {
      return Status::invalid_argument(fmt::format("{}: --suite {} chooses that itself", option, suite));
    }
  }
  *groups = suite == "gate" ? gate_groups() : quick_groups();
  for (Group& group : *groups) {
    if (app.count("--data") > 0) {
      VTKV_RETURN_IF_ERROR(parse_size("--data", texts.data, kDataBytesMin, kDataBytesMax, &group.data_bytes));
    }
    if (app.count("--memory") > 0) {
      VTKV_RETURN_IF_ERROR(parse_size("--memory", texts.memory, kMemoryBytesMin, kMemoryBytesMax, &group.memory_bytes));
    }
    group.load.seconds = seconds > 0 ? seconds : group.load.seconds;
  }
  return {};
}

std::string epilogue() {
  std::string text =
      "Engines; NAME:OPTION=VALUE sets an option of one, and several settings of one may run together:\n";
  for (const EngineKind& kind : engine_kinds()) {
    text += fmt::format("  {:<10} {}{}\n", kind.name, kind.what, kind.open ? "" : " (not in this build)");
    for (const std::string_view option : kind.options) {
      text += fmt::format("  {:<10}   {}\n", "", option);
    }
  }
  text +=
      "\nWorkloads run in the order given; one that needs a full database gets one made by fillrandom, not measured:\n";
  for (const WorkloadKind& kind : workload_kinds()) {
    text += fmt::format("  {:<20} {}\n", kind.name, kind.help);
  }
  return text + "\nKeys have 16 bytes. doc/vtkv_bench.md says what is measured and how the peers are set.";
}

}  // namespace

bool parse_arguments(int argc, char** argv, Arguments* arguments, int* exit_code) {
  Texts texts;
  Group group;
  double seconds = 0;
  CLI::App app("Measures vtkv beside RocksDB, BlobDB, LevelDB and LMDB with the same durability, memory and bytes.",
               "vtkv_bench");
  app.footer(epilogue);
  app.set_version_flag("--version", version_text("vtkv_bench", format_support()), "print versions and exit");
  app.add_option("--path", arguments->path, "an empty directory, best on a loop device of its own")->required();
  app.add_option(
         "--suite", arguments->suite,
         "gate: the figures that decide, with PASS or FAIL; quick: a minute's smoke. Of the options below only --data, "
         "--memory and --seconds go with it, to try it out smaller")
      ->check(CLI::IsMember({"gate", "quick"}));
  app.add_option("--engines", texts.engines, "comma-separated")->capture_default_str();
  app.add_option("--workloads", texts.workloads, "comma-separated")->capture_default_str();
  app.add_option("--value-sizes", texts.value_sizes, "comma-separated, in bytes")->capture_default_str();
  app.add_option("--data", texts.data, "keys and values in a full database")->capture_default_str();
  app.add_option("--keys", group.keys, "instead of --data: so many keys")->check(CLI::Range(1000ull, 1ull << 40));
  app.add_option("--memory", texts.memory, "half for memtables, half for caches")->capture_default_str();
  app.add_option("--threads", group.load.threads, "clients")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_flag("--sync", group.sync, "a write returns when it is durable");
  app.add_option("--seconds", seconds, "of workloads without a natural end (default 10), and of overwrite")
      ->check(CLI::Range(0.1, 86400.0));
  app.add_option("--overwrites", group.load.overwrites, "overwrite: times the number of keys")
      ->check(CLI::Range(0.001, 1000.0))
      ->capture_default_str();
  app.add_option("--rounds", group.rounds, "interleaved; medians are reported")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seed", group.load.seed, "of all random choices")->capture_default_str();
  app.add_option("--json", arguments->json, "write the results there");
  app.add_option("--plot", arguments->plot, "draw them there, as PNG");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    *exit_code = app.exit(success);
    return false;
  } catch (const CLI::Error& error) {
    std::fprintf(stderr, "vtkv_bench: error: %s (--help says more)\n", error.what());
    *exit_code = 2;
    return false;
  }
  group.load.by_time = seconds > 0;
  group.load.seconds = seconds > 0 ? seconds : group.load.seconds;
  Status status = check_path(arguments->path);
  for (const auto& [option, file] : {std::pair("--json", &arguments->json), std::pair("--plot", &arguments->plot)}) {
    if (status.ok() && !file->empty()) {
      status = check_output(option, *file);
    }
  }
  if (status.ok() && arguments->suite.empty()) {
    status = fill_group(texts, &group);
    arguments->groups = {group};
  } else if (status.ok()) {
    status = fill_suite(app, texts, seconds, arguments->suite, &arguments->groups);
  }
  if (!status.ok()) {
    std::fprintf(stderr, "vtkv_bench: error: %s\n", std::string(status.message()).c_str());
    *exit_code = 2;
  }
  return status.ok();
}

}  // namespace vtkv::bench
