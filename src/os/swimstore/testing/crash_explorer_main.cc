// swimstore_crash_explorer: crash states of a whole store, for as long as it is given time.

#include <iostream>

#include <boost/program_options.hpp>

#include "common/ceph_time.h"
#include "global/global_init.h"
#include "swimstore/testing/store_explorer.h"

namespace po = boost::program_options;

int main(int argc, char** argv) {
  uint64_t seed = 0;
  double seconds = 0;
  swimstore::ExplorerOptions options;
  po::options_description text("swimstore_crash_explorer: crash states of a store in a simulated host\n\nOptions");
  text.add_options()("help,h", "show this")("seed", po::value(&seed)->default_value(1), "first seed")(
      "seconds", po::value(&seconds)->default_value(60), "start no new seed after that")(
      "states", po::value(&options.states_max)->default_value(2000), "states per seed, at most")(
      "transactions", po::value(&options.transactions)->default_value(24), "transactions per seed");
  try {
    po::variables_map values;
    po::store(po::parse_command_line(argc, argv, text), values);
    if (values.count("help")) {
      std::cout << text;
      return 0;
    }
    po::notify(values);
  } catch (const po::error& error) {
    std::cerr << "swimstore_crash_explorer: " << error.what() << " (see --help)\n";
    return 2;
  }
  std::vector<const char*> none;
  const auto cct = global_init(nullptr, none, CEPH_ENTITY_TYPE_OSD, CODE_ENVIRONMENT_UTILITY,
                               CINIT_FLAG_NO_DEFAULT_CONFIG_FILE);
  common_init_finish(cct.get());
  cct->_conf._clear_safe_to_start_threads();

  constexpr vtkv::SimProfile kProfiles[] = {vtkv::SimProfile::ext4, vtkv::SimProfile::xfs, vtkv::SimProfile::btrfs,
                                            vtkv::SimProfile::weakest};
  const auto start = ceph::mono_clock::now();
  size_t states = 0, nested = 0, failures = 0;
  while (std::chrono::duration<double>(ceph::mono_clock::now() - start).count() < seconds) {
    options.seed = seed;
    options.profile = kProfiles[seed % std::size(kProfiles)];
    const auto result = swimstore::StoreExplorer(cct.get(), options).run();
    states += result.states;
    nested += result.nested_states;
    failures += result.failures.size();
    for (const std::string& failure : result.failures) {
      std::cout << "FAILED: " << failure << "\n";
    }
    ++seed;
  }
  std::cout << states << " states, " << nested << " nested, " << failures << " failures, next seed " << seed << "\n";
  return failures == 0 ? 0 : 1;
}
