// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/collection_name.h"

#include <string>

namespace swimstore {

bool decode_collection_name(std::string_view name, coll_t* cid) {
  if (name == coll_t::meta().to_str()) {
    *cid = coll_t::meta();
    return true;
  }
  spg_t pg;
  if (!pg.parse(std::string(name.substr(0, name.find('_'))))) {
    return false;
  }
  for (const coll_t& found : {coll_t(pg), coll_t(pg).get_temp()}) {
    if (found.to_str() == name) {
      *cid = found;
      return true;
    }
  }
  return false;
}

}  // namespace swimstore
