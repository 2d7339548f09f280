// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/table/filter_builder.h"

#include <utility>

namespace vtkv {

void FilterBuilder::take_collected() {
  constexpr double kAnyRate = 1.0;  // the caller chose the bits
  QuotientFilter collected = QuotientFilter::build(&m_key_hashes, m_bits);
  m_key_hashes.clear();
  QuotientFilter both;
  if (!m_any) {
    both = std::move(collected);
  } else if (!QuotientFilter::merge({&m_filter, &collected}, kAnyRate, &both, QuotientFilter::kQuotientBitsMax,
                                    m_go_on)) {
    m_bits = 0;
  }
  m_filter = std::move(both);
  m_any = true;
}

QuotientFilter FilterBuilder::finish() {
  if (!m_key_hashes.empty()) {
    take_collected();
  }
  return std::move(m_filter);
}

}  // namespace vtkv
