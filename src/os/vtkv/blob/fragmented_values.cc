// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/blob/fragmented_values.h"

namespace vtkv {

void FragmentedValues::add(std::string_view key, std::string_view value) {
  m_bytes.append(key).append(value);
  m_lengths.push_back({key.size(), value.size()});
  if (m_lengths.size() >= kValuesMost) {
    relocate();
  }
}

void FragmentedValues::relocate() {
  if (!m_lengths.empty() && m_lengths.size() >= m_values_min) {
    std::vector<Relocation> values;
    std::string_view rest = m_bytes;
    for (const Lengths& lengths : m_lengths) {
      values.push_back({rest.substr(0, lengths.key_bytes), rest.substr(lengths.key_bytes, lengths.value_bytes), {}});
      rest.remove_prefix(lengths.key_bytes + lengths.value_bytes);
    }
    Relocated relocated;
    (void)m_relocator->relocate(values, m_checked, &relocated);  // they may stay where they are
  }
  m_bytes.clear();
  m_lengths.clear();
}

}  // namespace vtkv
