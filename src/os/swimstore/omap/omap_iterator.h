// SPDX-License-Identifier: LGPL-2.1-or-later
// Walks one object's omap in key order, as it was when the iterator was made.
//
// Not thread-safe. Pins parts of the tree: keep it short-lived, and never beyond umount.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/hobject.h"

#include "swimstore/object/store_context.h"
#include "swimstore/omap/part_cursor.h"

namespace swimstore {

class OmapIterator final {
 public:
  // entries null: the object has no omap.
  // `cube`: as ObjectOmap::cube().
  OmapIterator(StoreContext& store, const ghobject_t& oid, unsigned cube, std::unique_ptr<OmapCursor> entries)
      : m_store(store), m_oid(oid), m_cube(cube), m_entries(std::move(entries)) {}

  // These return 0, or -EIO when the tree could not be read. Those who use an iterator ask valid() alone, and would
  // take that for the end: see MetadataFailure::met_by_iterator().
  int seek_to_first();
  int upper_bound(const std::string& after);
  int lower_bound(const std::string& to);
  int next();
  int status();

  // A new iterator stands at the first entry.
  bool valid();
  // REQUIRES: valid(). The bytes last until the iterator is moved.
  std::string_view key();
  std::string_view value();

 private:
  int seek(const std::string& user_key, bool after);
  int moved();
  void ensure_positioned();

  StoreContext& m_store;
  const ghobject_t m_oid;
  const unsigned m_cube;
  const std::unique_ptr<OmapCursor> m_entries;
  bool m_positioned = false;
};

}  // namespace swimstore
