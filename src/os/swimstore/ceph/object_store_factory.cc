// SPDX-License-Identifier: LGPL-2.1-or-later
// ObjectStore's static parts for programs linked outside a full Ceph tree. Ceph's
// own ObjectStore.cc always drags in KStore, and with it RocksDB.

#include <cctype>
#include <string>

#include "common/debug.h"
#include "common/errno.h"
#include "common/safe_io.h"
#include "log/Log.h"
#include "os/ObjectStore.h"
#include "os/memstore/MemStore.h"
#include "swimstore/release.h"
#include "swimstore/swimstore.h"
#ifdef SWIM_WITH_BLUESTORE
#include "os/bluestore/BlueStore.h"
#include "os/kstore/KStore.h"
#endif

#define dout_context cct
#define dout_subsys SWIM_SUBSYS

namespace {

// A value of these small files: fsid, type, keyring and the like.
constexpr size_t meta_value_bytes_max = 4096;

} // namespace

std::unique_ptr<ObjectStore> ObjectStore::create(CephContext* cct, const std::string& type, const std::string& data) {
  if (type == "swimstore") {
    return std::make_unique<SwimStore>(cct, data);
  }
#ifdef SWIM_WITH_BLUESTORE
  if (type == "bluestore") {
    return std::make_unique<BlueStore>(cct, data);
  }
  if (type == "kstore" && cct->check_experimental_feature_enabled("kstore")) {
    return std::make_unique<KStore>(cct, data);
  }
#endif
  if (type == "memstore") {
    return std::make_unique<MemStore>(cct, data);
  }
  derr << "this program has no object store of type '" << type << "'; it was built with memstore, swimstore"
#ifdef SWIM_WITH_BLUESTORE
       << ", bluestore, kstore"
#endif
       << " (osd_objectstore, or the file 'type' in " << data << ")" << dendl;
  // The program exits next, and Ceph's log does not flush then.
  cct->_log->flush();
  return nullptr;
}

// The journal and the flags were FileStore's.
std::unique_ptr<ObjectStore> ObjectStore::create(CephContext* cct, const std::string& type, const std::string& data,
                                                 const std::string& journal, osflagbits_t flags) {
  return create(cct, type, data);
}

#if !SWIM_CEPH_ASKS_FOR_LIST_MAX
int ObjectStore::get_ideal_list_max() { return static_cast<int>(cct->_conf->osd_objectstore_ideal_list_max); }
#endif

int ObjectStore::probe_block_device_fsid(CephContext* cct, const std::string& path, uuid_d* fsid) {
#ifdef SWIM_WITH_BLUESTORE
  return BlueStore::get_block_device_fsid(cct, path, fsid);
#else
  // No store of this build lives on a bare device.
  return -EINVAL;
#endif
}

int ObjectStore::write_meta(const std::string& key, const std::string& value) {
  const std::string line = value + "\n";
  const int r = safe_write_file(path.c_str(), key.c_str(), line.data(), line.size(), 0600);
  return r < 0 ? r : 0;
}

int ObjectStore::read_meta(const std::string& key, std::string* value) {
  std::string text(meta_value_bytes_max, '\0');
  const int r = safe_read_file(path.c_str(), key.c_str(), text.data(), text.size());
  if (r <= 0) {
    return r;
  }
  text.resize(r);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.pop_back();
  }
  *value = std::move(text);
  return 0;
}
