// The user's view of a read state at one sequence: what is visible, with the values that stayed in the log.
#pragma once

#include <memory>
#include <string>

#include "vtkv/iter/visible_iterator.h"
#include "vtkv/iterator.h"
#include "vtkv/vlog/value_reader.h"

namespace vtkv {

class DbIterator final : public Iterator {
 public:
  DbIterator(std::shared_ptr<const ReadState> state, const ValueReader* values, std::string_view lower,
             std::string_view upper, SequenceNumber sequence)
      : m_visible(std::move(state), lower, upper, sequence), m_values(values) {}

  bool valid() const override { return m_visible.valid() && m_status.ok(); }
  void seek_to_first() override;
  void seek_to_last() override;
  void seek(std::string_view target) override;
  void seek_for_previous(std::string_view target) override;
  void next() override;
  void previous() override;
  std::string_view key() const override { return m_visible.key(); }
  std::string_view value() const override { return m_followed ? std::string_view(m_value) : m_visible.value(); }
  Status status() const override { return m_status.ok() ? m_visible.status() : m_status; }

 private:
  void follow();

  VisibleIterator m_visible;
  const ValueReader* const m_values;
  bool m_followed = false;  // the value is m_value
  std::string m_value;
  Status m_status;
};

}  // namespace vtkv
