// SPDX-License-Identifier: LGPL-2.1-or-later
// The table of options, for programs linked with a packaged libceph-common.
//
// The library reads the global ceph_options through its GOT, so the storage that the
// executable defines under that name is the one it uses: the library's own initializer
// fills it, before any of the executable's run, and its own finalizer destroys it. Here
// it only gains "swimstore" as an allowed osd_objectstore, and SwimStore's options. A
// second vector of that name would be constructed over the first and destroyed twice.

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "common/options.h"
#include "swimstore/ops/options.h"

alignas(std::vector<Option>) std::byte option_table_storage[sizeof(std::vector<Option>)] asm("ceph_options");

namespace {

bool add_swimstore() {
  auto& options = *reinterpret_cast<std::vector<Option>*>(option_table_storage);
  bool known = false;
  for (auto& option : options) {
    if (std::string_view(option.name) == "osd_objectstore") {
      option.enum_allowed.push_back("swimstore");
      known = true;
    }
  }
  if (!known) {
    // Nothing can be logged yet: there is no configuration.
    std::fputs(
        "libceph-common does not use this program's table of options: it is another "
        "release than the one this program was built for\n",
        stderr);
    std::abort();
  }
  for (auto& option : swimstore::option_table()) {
    options.push_back(std::move(option));
  }
  return true;
}

[[maybe_unused]] const bool added = add_swimstore();

} // namespace
