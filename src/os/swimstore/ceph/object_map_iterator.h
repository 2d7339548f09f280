// SPDX-License-Identifier: LGPL-2.1-or-later
// An omap's iterator as Reef's ObjectStore hands it out.
//
// Not thread-safe; as short-lived as the one it holds.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "include/buffer.h"
#include "os/ObjectMap.h"
#include "swimstore/omap/omap_iterator.h"

namespace swimstore {

class ObjectMapIterator final : public ObjectMap::ObjectMapIteratorImpl {
 public:
  // `iterator` is there.
  explicit ObjectMapIterator(std::unique_ptr<OmapIterator> iterator) : m_iterator(std::move(iterator)) {}

  int seek_to_first() override { return m_iterator->seek_to_first(); }
  int upper_bound(const std::string& after) override { return m_iterator->upper_bound(after); }
  int lower_bound(const std::string& to) override { return m_iterator->lower_bound(to); }
  bool valid() override { return m_iterator->valid(); }
  int next() override { return m_iterator->next(); }
  int status() override { return m_iterator->status(); }
  std::string key() override { return std::string(m_iterator->key()); }
  ceph::bufferlist value() override {
    const std::string_view bytes = m_iterator->value();
    ceph::bufferlist out;
    out.append(bytes.data(), bytes.size());
    return out;
  }

 private:
  const std::unique_ptr<OmapIterator> m_iterator;
};

}  // namespace swimstore
