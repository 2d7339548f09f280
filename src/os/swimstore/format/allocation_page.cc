// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/allocation_page.h"

#include "swimstore/format/format_version.h"
#include "vtkv/util/coding.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr size_t kKeyBytes = 6;
constexpr size_t kValueHeaderBytes = 4;

Status malformed(std::string_view what) {
  return Status::corruption("an allocation page in the tree is malformed: " + std::string(what));
}

}  // namespace

std::string AllocationPage::encode_key() const {
  std::string key;
  key.push_back(kAllocationKeyPrefix);
  vtkv::put_fixed8(&key, size_class);
  vtkv::put_ordered32(&key, number);
  return key;
}

std::string AllocationPage::encode_value() const {
  const uint32_t words = (slots + 63) / 64;
  std::string value;
  value.reserve(kValueHeaderBytes + 16 * words);
  vtkv::put_fixed8(&value, kAllocationPageVersion);
  vtkv::put_fixed8(&value, 0);
  vtkv::put_fixed16(&value, static_cast<uint16_t>(slots));
  for (const auto* bitmap : {&owned, &primed}) {
    for (uint32_t word = 0; word < words; word++) {
      vtkv::put_fixed64(&value, (*bitmap)[word]);
    }
  }
  return value;
}

Status AllocationPage::decode(std::string_view key, std::string_view value, AllocationPage* page) {
  *page = AllocationPage{};
  if (key.size() != kKeyBytes || key[0] != kAllocationKeyPrefix) {
    return malformed("its key");
  }
  key.remove_prefix(1);
  vtkv::get_fixed8(&key, &page->size_class);
  vtkv::get_ordered32(&key, &page->number);
  if (page->size_class >= kSizeClasses) {
    return malformed("its size class");
  }
  uint8_t version = 0;
  uint8_t zero = 0;
  uint16_t slots = 0;
  if (!vtkv::get_fixed8(&value, &version)) {
    return malformed("it is empty");
  }
  VTKV_RETURN_IF_ERROR(check_version("an allocation page in the tree", version, kAllocationPageVersion));
  if (!vtkv::get_fixed8(&value, &zero) || zero != 0 || !vtkv::get_fixed16(&value, &slots) || slots == 0 ||
      slots > kPageSlots) {
    return malformed("its number of slots");
  }
  page->slots = slots;
  const uint32_t words = (page->slots + 63) / 64;
  if (value.size() != 16 * words) {
    return malformed("its length");
  }
  const uint64_t past_the_end = slots % 64 == 0 ? 0 : ~uint64_t{0} << (slots % 64);
  for (auto* bitmap : {&page->owned, &page->primed}) {
    for (uint32_t word = 0; word < words; word++) {
      vtkv::get_fixed64(&value, &(*bitmap)[word]);
    }
    if (((*bitmap)[words - 1] & past_the_end) != 0) {
      return malformed("a bit past its last slot");
    }
  }
  return {};
}

}  // namespace swimstore
