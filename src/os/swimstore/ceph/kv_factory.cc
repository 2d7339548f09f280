// SPDX-License-Identifier: LGPL-2.1-or-later
// KeyValueDB's static parts. Ceph's own file always drags in RocksDB.

#include <map>
#include <string>

#include "common/debug.h"
#include "common/errno.h"
#include "kv/KeyValueDB.h"
#ifdef SWIM_WITH_BLUESTORE
#include "kv/RocksDBStore.h"
#endif
#include "vtkv/ceph/vtkv_store.h"

#define dout_context cct
#define dout_subsys SWIM_SUBSYS

KeyValueDB* KeyValueDB::create(CephContext* cct, const std::string& type, const std::string& dir,
                               std::map<std::string, std::string> options, void* p) {
  if (type == "vtkv") {
    return new VtkvStore(cct, dir, options);
  }
#ifdef SWIM_WITH_BLUESTORE
  if (type == "rocksdb") {
    return new RocksDBStore(cct, dir, options, p);
  }
#endif
  derr << "this program has no key-value store of type '" << type << "' for " << dir
       << ": use Ceph's packaged program for it" << dendl;
  return nullptr;
}

int KeyValueDB::test_init(const std::string& type, const std::string& dir) {
  if (type == "vtkv") {
    return 0;
  }
#ifdef SWIM_WITH_BLUESTORE
  if (type == "rocksdb") {
    return RocksDBStore::_test_init(dir);
  }
#endif
  return -EINVAL;
}
