// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/omap/omap_iterator.h"

#include "common/ceph_time.h"
#include "swimstore/ops/perf_counters.h"

namespace swimstore {

int OmapIterator::status() { return m_entries == nullptr || m_entries->status().ok() ? 0 : -EIO; }

int OmapIterator::moved() {
  const vtkv::Status status = m_entries->status();
  return status.ok() ? 0 : m_store.metadata_failure.met_by_iterator(m_cube, status, "the omap of object ", m_oid);
}

int OmapIterator::seek(const std::string& user_key, bool after) {
  if (m_entries == nullptr) {
    return 0;
  }
  const auto start = ceph::mono_clock::now();
  m_entries->seek(user_key);
  if (after && m_entries->valid() && m_entries->key() == user_key) {
    m_entries->next();
  }
  m_positioned = true;
  m_store.took(l_swimstore_omap_seek_latency, "omap seek", ceph::mono_clock::now() - start, m_oid);
  return moved();
}

void OmapIterator::ensure_positioned() {
  if (!m_positioned) {
    seek_to_first();
  }
}

int OmapIterator::seek_to_first() { return seek(std::string(), false); }

int OmapIterator::upper_bound(const std::string& after) { return seek(after, true); }

int OmapIterator::lower_bound(const std::string& to) { return seek(to, false); }

bool OmapIterator::valid() {
  ensure_positioned();
  return m_entries != nullptr && m_entries->valid();
}

int OmapIterator::next() {
  if (!valid()) {
    return status();
  }
  const auto start = ceph::mono_clock::now();
  m_entries->next();
  m_store.took(l_swimstore_omap_next_latency, "omap step", ceph::mono_clock::now() - start, m_oid);
  return moved();
}

std::string_view OmapIterator::key() {
  ensure_positioned();
  return m_entries->key();
}

std::string_view OmapIterator::value() {
  ensure_positioned();
  return m_entries->value();
}

}  // namespace swimstore
