// SPDX-License-Identifier: LGPL-2.1-or-later
// What the explorers' programs have in common: their options, one clear error, and a context for their stores.
//
// Not thread-safe.
#pragma once

#include <string>

#include <boost/program_options.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include "common/ceph_context.h"

namespace swimstore {

// Prints the error after the program's name; the exit status of bad options.
int complain(const std::string& text);
// False when the program is to end with *status: it showed its help or version, or complained.
bool parse_options(int argc, char** argv, const boost::program_options::options_description& text,
                   boost::program_options::variables_map* values, int* status);
// Of no cluster. Nothing is logged: each state mounts and checks a store, and would say so. Starts threads.
boost::intrusive_ptr<CephContext> new_context();

}  // namespace swimstore
