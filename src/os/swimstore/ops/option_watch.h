// SPDX-License-Identifier: LGPL-2.1-or-later
// Tells when one of some options was changed at run time.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "common/ceph_context.h"
#include "common/config_obs.h"
#include "swimstore/release.h"

namespace swimstore {

class OptionWatch final : private md_config_obs_t {
 public:
  // `changed` is called on the thread that changes the option, with the configuration locked: short, and nothing that
  // reads an option but by the value it is given. Not before the first change.
  OptionWatch(CephContext* cct, const char* option, std::function<void(const ConfigProxy&)> changed);
  ~OptionWatch() override;
  OptionWatch(const OptionWatch&) = delete;
  OptionWatch& operator=(const OptionWatch&) = delete;

 private:
#if SWIM_CEPH_OBSERVERS_NAME_STRINGS
  std::vector<std::string> get_tracked_keys() const noexcept override { return {m_options[0]}; }
#else
  const char** get_tracked_conf_keys() const override { return const_cast<const char**>(m_options); }
#endif
  void handle_conf_change(const ConfigProxy& conf, const std::set<std::string>& changed) override;

  CephContext* const m_cct;
  const char* const m_options[2];  // the last: nullptr
  const std::function<void(const ConfigProxy&)> m_changed;
};

}  // namespace swimstore
