// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/explorer_program.h"

#include <errno.h>

#include <iostream>

#include "global/global_init.h"
#include "swimstore/program_version.h"

namespace swimstore {

namespace po = boost::program_options;

int complain(const std::string& text) {
  std::cerr << program_invocation_short_name << ": error: " << text << "\n";
  return 2;
}

bool parse_options(int argc, char** argv, const po::options_description& text, po::variables_map* values, int* status) {
  try {
    po::store(po::parse_command_line(argc, argv, text), *values);
    po::notify(*values);
  } catch (const po::error& error) {
    *status = complain(std::string(error.what()) + " (see --help)");
    return false;
  }
  *status = 0;
  if (values->count("help")) {
    std::cout << text;
  } else if (values->count("version")) {
    std::cout << version_text(program_invocation_short_name) << "\n";
  } else {
    return true;
  }
  return false;
}

boost::intrusive_ptr<CephContext> new_context() {
  std::vector<const char*> none;
  const auto cct = global_init(nullptr, none, CEPH_ENTITY_TYPE_OSD, CODE_ENVIRONMENT_UTILITY_NODOUT,
                               CINIT_FLAG_NO_DEFAULT_CONFIG_FILE);
  common_init_finish(cct.get());
  cct->_conf._clear_safe_to_start_threads();
  return cct;
}

}  // namespace swimstore
