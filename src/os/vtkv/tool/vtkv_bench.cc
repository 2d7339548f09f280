// SPDX-License-Identifier: LGPL-2.1-or-later
// vtkv_bench: vtkv beside other key-value engines. --help lists engines, workloads and options.

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "vtkv/tool/bench/arguments.h"
#include "vtkv/tool/bench/gate.h"
#include "vtkv/tool/bench/runner.h"

namespace {

using namespace vtkv;
using namespace vtkv::bench;

// The script stands in the checkout; the program in its build folder.
Status draw(const std::string& json, const std::string& picture) {
  const std::string script = std::filesystem::path(VTKV_BENCH_SOURCE_DIR) / "qa/bench/plot_vtkv.py";
  const pid_t child = ::fork();
  if (child == 0) {
    ::execlp("python3", "python3", script.c_str(), json.c_str(), picture.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) {
    return Status::failed(
        fmt::format("--plot: {} failed; it needs python3 with matplotlib, as the sysroot has", script));
  }
  return {};
}

Status run(const Arguments& arguments, bool* passed) {
  const auto start = std::chrono::steady_clock::now();
  // Also when nobody asked for it: the plot is drawn from it.
  const std::string json = !arguments.json.empty()   ? arguments.json
                           : !arguments.plot.empty() ? arguments.plot + ".json"
                                                     : std::string();
  Status write_status;
  std::vector<Result> results;
  const Status status = run_groups(
      arguments.groups, arguments.path,
      [&](const std::vector<Result>& so_far) {
        if (!json.empty()) {
          write_status = write_text(json, to_json(merge_rounds(so_far)));
        }
      },
      &results);
  results = merge_rounds(results);
  std::fputs(to_table(results).c_str(), stdout);
  std::fflush(stdout);
  VTKV_RETURN_IF_ERROR(status);
  VTKV_RETURN_IF_ERROR(write_status);
  if (arguments.suite == "gate") {
    std::printf("\n%s", gate_verdict(results, arguments.path, passed).c_str());
  }
  say(fmt::format("took {:.0f} s", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()));
  return arguments.plot.empty() ? Status() : draw(json, arguments.plot);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  int exit_code = 0;
  if (!parse_arguments(argc, argv, &arguments, &exit_code)) {
    return exit_code;
  }
  bool passed = true;
  const Status status = run(arguments, &passed);
  if (!status.ok()) {
    std::fprintf(stderr, "vtkv_bench: error: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return passed ? 0 : 3;
}
