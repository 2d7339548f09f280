// SPDX-License-Identifier: LGPL-2.1-or-later
// KeyValueDB's iterators on the engine's: one snapshot, between two bounds.
//
// An iterator made for a prefix never looks outside it, so that what was removed beyond its ends costs it
// nothing. Not thread-safe. To be destroyed before the store is closed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "kv/KeyValueDB.h"
#include "vtkv/ceph/fatal_reads.h"
#include "vtkv/ceph/key_space.h"
#include "vtkv/iterator.h"

namespace vtkv {

// An iterator of the engine that ends the process when it cannot read on: every move is checked. Moves return 0.
class CheckedIterator {
 public:
  CheckedIterator(std::unique_ptr<Iterator> iterator, const FatalReads& fatal)
      : m_iterator(std::move(iterator)), m_fatal(fatal) {}

  int seek_to_first();
  int seek_to_last();
  int seek(std::string_view target);
  int seek_for_previous(std::string_view target);
  int next();
  int previous();
  int check() const;
  const Iterator* operator->() const { return m_iterator.get(); }

 private:
  const std::unique_ptr<Iterator> m_iterator;
  const FatalReads& m_fatal;
  std::string m_position;  // where the last move began
};

class WholeSpaceIterator final : public KeyValueDB::WholeSpaceIteratorImpl {
 public:
  WholeSpaceIterator(std::unique_ptr<Iterator> iterator, const FatalReads& fatal)
      : m_iterator(std::move(iterator), fatal) {}

  int seek_to_first() override;
  int seek_to_first(const std::string& prefix) override;
  int seek_to_last() override;
  // Of what sorts up to the end of the prefix; that may be a key of an earlier prefix.
  int seek_to_last(const std::string& prefix) override;
  int upper_bound(const std::string& prefix, const std::string& after) override;
  int lower_bound(const std::string& prefix, const std::string& to) override;
  bool valid() override { return m_iterator->valid(); }
  int next() override;
  int prev() override;
  std::string key() override;
  std::pair<std::string, std::string> raw_key() override;
  // These, here and in PrefixIterator, override since Tentacle. The bytes last until the iterator is moved, or asked
  // again.
  std::string_view key_as_sv();
  std::pair<std::string_view, std::string_view> raw_key_as_sv();
  std::string_view value_as_sv();
  bool raw_key_is_prefixed(const std::string& prefix) override;
  ceph::buffer::list value() override;
  ceph::buffer::ptr value_as_ptr() override;
  int status() override;
  size_t key_size() override;  // as stored, prefix included
  size_t value_size() override;

 private:
  CheckedIterator m_iterator;
  std::string m_prefix;  // of raw_key_as_sv()
};

class PrefixIterator final : public KeyValueDB::IteratorImpl {
 public:
  // `iterator` is bounded by keys of the prefix.
  PrefixIterator(std::string prefix, std::unique_ptr<Iterator> iterator, const FatalReads& fatal)
      : m_prefix(std::move(prefix)), m_iterator(std::move(iterator), fatal) {}

  int seek_to_first() override;
  int seek_to_last() override;
  int upper_bound(const std::string& after) override;
  int lower_bound(const std::string& to) override;
  bool valid() override { return m_iterator->valid(); }
  int next() override;
  int prev() override;
  std::string key() override;
  std::pair<std::string, std::string> raw_key() override { return {m_prefix, key()}; }
  std::string_view key_as_sv();
  std::pair<std::string_view, std::string_view> raw_key_as_sv() { return {m_prefix, key_as_sv()}; }
  std::string_view value_as_sv();
  ceph::buffer::list value() override;
  ceph::buffer::ptr value_as_ptr() override;
  int status() override;

 private:
  const std::string m_prefix;
  CheckedIterator m_iterator;
};

}  // namespace vtkv
