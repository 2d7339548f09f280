// The table of options, for programs linked with a packaged libceph-common.
//
// The library reads the global ceph_options through its GOT, so the definition in
// the executable is the one it uses: its own options, plus "swimstore" as an allowed
// osd_objectstore, plus SwimStore's options.

#include <string_view>
#include <vector>

#include "common/options.h"
#include "common/options/build_options.h"
#ifdef SWIM_HAVE_OPTIONS
#include "swimstore/ops/options.h"
#endif

namespace {

std::vector<Option> options_with_swimstore()
{
  std::vector<Option> options = build_options();
  for (auto& option : options) {
    if (std::string_view(option.name) == "osd_objectstore") {
      option.enum_allowed.push_back("swimstore");
    }
  }
#ifdef SWIM_HAVE_OPTIONS
  for (auto& option : swimstore::option_table()) {
    options.push_back(std::move(option));
  }
#endif
  return options;
}

} // namespace

extern const std::vector<Option> ceph_options;
const std::vector<Option> ceph_options = options_with_swimstore();
