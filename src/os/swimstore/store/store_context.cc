#include "swimstore/store/store_context.h"

namespace swimstore {

void InjectedErrors::add_data_error(const ghobject_t& oid) {
  std::lock_guard lock(m_mutex);
  m_data.insert(oid);
  m_any = true;
}

void InjectedErrors::add_metadata_error(const ghobject_t& oid) {
  std::lock_guard lock(m_mutex);
  m_metadata.insert(oid);
  m_any = true;
}

bool InjectedErrors::has_data_error(const ghobject_t& oid) const {
  if (!m_any) {
    return false;
  }
  std::lock_guard lock(m_mutex);
  return m_data.contains(oid);
}

bool InjectedErrors::has_metadata_error(const ghobject_t& oid) const {
  if (!m_any) {
    return false;
  }
  std::lock_guard lock(m_mutex);
  return m_metadata.contains(oid);
}

void InjectedErrors::forget(const ghobject_t& oid) {
  if (!m_any) {
    return;
  }
  std::lock_guard lock(m_mutex);
  m_data.erase(oid);
  m_metadata.erase(oid);
  m_any = !m_data.empty() || !m_metadata.empty();
}

}  // namespace swimstore
