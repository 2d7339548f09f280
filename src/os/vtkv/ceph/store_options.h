// SPDX-License-Identifier: LGPL-2.1-or-later
// The options of a KeyValueDB as text, "memtable_bytes=64M,block_cache_bytes=256M", for the engine.
#pragma once

#include <map>
#include <string>

#include "vtkv/options.h"

namespace vtkv {

// What a key-value store beside other files starts from: log segments smaller than the engine's own.
Options default_store_options();

// Sizes take the suffixes K, M, G (powers of 1024). Code::invalid_argument names the option and what it takes;
// *options is then unchanged. The geometry counts when a store is created; an existing one keeps its own.
Status apply_store_options(const std::map<std::string, std::string>& values, Options* options);
// "key=value", separated by commas, semicolons or blanks.
Status apply_store_options(const std::string& text, Options* options);

}  // namespace vtkv
