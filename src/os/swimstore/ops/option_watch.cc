// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/option_watch.h"

#include "common/config.h"

namespace swimstore {

OptionWatch::OptionWatch(CephContext* cct, const char* option, std::function<void(const ConfigProxy&)> changed)
    : m_cct(cct), m_options{option, nullptr}, m_changed(std::move(changed)) {
  m_cct->_conf.add_observer(this);
}

OptionWatch::~OptionWatch() { m_cct->_conf.remove_observer(this); }

void OptionWatch::handle_conf_change(const ConfigProxy& conf, const std::set<std::string>&) { m_changed(conf); }

}  // namespace swimstore
