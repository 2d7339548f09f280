// SPDX-License-Identifier: LGPL-2.1-or-later
// Walks through an omap in key order: the one interface of both ways to keep it, and the merge of one in parts.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "swimstore/format/omap_row.h"
#include "vtkv/iterator.h"

namespace swimstore {

// Starts invalid. What key() and value() give stays valid until the next move.
class OmapCursor {
 public:
  virtual ~OmapCursor() = default;
  virtual bool valid() const = 0;
  virtual void seek(std::string_view key) = 0;  // first key >= it; "": the first
  virtual void next() = 0;                      // REQUIRES: valid()
  virtual std::string_view key() const = 0;     // the user's. REQUIRES: valid()
  virtual std::string_view value() const = 0;   // REQUIRES: valid()
  // Not ok when it stopped because of an error; then valid() is false.
  virtual vtkv::Status status() const = 0;
};

// Of one that lies under the prefix M.
class PlainCursor final : public OmapCursor {
 public:
  PlainCursor(uint64_t nid, std::unique_ptr<vtkv::Iterator> entries) : m_nid(nid), m_entries(std::move(entries)) {}

  bool valid() const override { return m_entries->valid(); }
  void seek(std::string_view key) override;
  void next() override { m_entries->next(); }
  std::string_view key() const override;
  std::string_view value() const override { return m_entries->value(); }
  vtkv::Status status() const override { return m_entries->status(); }

 private:
  const uint64_t m_nid;
  const std::unique_ptr<vtkv::Iterator> m_entries;
};

// Of each key the newest row of all parts, if it holds a value and is not below the floor. A move costs a comparison
// with each part, and a step in those that stand at the same key: keys are nearly always in one part alone.
class PartCursor final : public OmapCursor {
 public:
  // `parts`: an iterator over the rows of the object, of each cube. `status`: not ok, and there is nothing to be seen.
  PartCursor(uint64_t nid, std::vector<std::unique_ptr<vtkv::Iterator>> parts, uint64_t floor, vtkv::Status status)
      : m_nid(nid), m_parts(std::move(parts)), m_floor(floor), m_status(std::move(status)) {}

  bool valid() const override { return m_valid; }
  void seek(std::string_view key) override;
  void next() override;
  std::string_view key() const override;
  std::string_view value() const override { return m_newest.value; }
  vtkv::Status status() const override { return m_status; }

 private:
  // From where the parts stand, on to the next key that there is.
  void settle();
  // Finds the parts with the least key, and the newest row among them; false at the end, and after an error.
  bool find_newest();
  void step();

  const uint64_t m_nid;
  const std::vector<std::unique_ptr<vtkv::Iterator>> m_parts;
  const uint64_t m_floor;
  vtkv::Status m_status;
  bool m_valid = false;
  std::vector<vtkv::Iterator*> m_at_key;  // those that stand at the least key
  OmapRow m_newest;  // of these; its value lies in one of them
};

}  // namespace swimstore
