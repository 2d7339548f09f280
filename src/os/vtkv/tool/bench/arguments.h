// SPDX-License-Identifier: LGPL-2.1-or-later
// The command line of vtkv_bench.
#pragma once

#include <string>
#include <vector>

#include "vtkv/tool/bench/suite.h"

namespace vtkv::bench {

struct Arguments {
  std::vector<Group> groups;
  std::string suite;  // "gate", "quick" or empty
  std::string path, json, plot;
};

// False: the program ends now with *exit_code; help or one error was printed.
bool parse_arguments(int argc, char** argv, Arguments* arguments, int* exit_code);

}  // namespace vtkv::bench
