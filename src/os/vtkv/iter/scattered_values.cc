#include "vtkv/iter/scattered_values.h"

namespace vtkv {

void ScatteredValues::add(std::string_view key, std::string_view value) {
  m_bytes.append(key).append(value);
  m_places.push_back({key.size(), value.size()});
  if (m_places.size() >= kValuesMost) {
    put_together();
  }
}

void ScatteredValues::put_together() {
  if (!m_places.empty() && m_places.size() >= m_values_min) {
    std::vector<Relocation> values;
    std::string_view rest = m_bytes;
    for (const Place& place : m_places) {
      values.push_back({rest.substr(0, place.key_bytes), rest.substr(place.key_bytes, place.value_bytes), {}});
      rest.remove_prefix(place.key_bytes + place.value_bytes);
    }
    m_host->put_together(values, m_checked);
  }
  m_bytes.clear();
  m_places.clear();
}

}  // namespace vtkv
