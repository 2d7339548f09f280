#include "swimstore/format/note_record.h"

#include "swimstore/format/format_version.h"
#include "swimstore/format/zigzag.h"
#include "vtkv/util/coding.h"

namespace swimstore {

using vtkv::Status;

namespace {

void put_slots(std::string* to, const std::vector<SlotAddress>& slots) {
  vtkv::put_varint64(to, slots.size());
  uint64_t before = 0;
  for (const SlotAddress& slot : slots) {
    vtkv::put_fixed8(to, slot.size_class);
    put_signed(to, static_cast<int64_t>(slot.index - before));
    before = slot.index;
  }
}

bool get_slots(std::string_view* cursor, std::vector<SlotAddress>* slots) {
  uint64_t count = 0;
  if (!vtkv::get_varint64(cursor, &count) || count > cursor->size() / 2) {
    return false;  // a slot takes two bytes at least
  }
  slots->reserve(count);
  uint64_t before = 0;
  for (uint64_t i = 0; i < count; i++) {
    SlotAddress slot;
    int64_t difference = 0;
    if (!vtkv::get_fixed8(cursor, &slot.size_class) || !get_signed(cursor, &difference)) {
      return false;
    }
    slot.index = before + static_cast<uint64_t>(difference);
    if (slot.size_class >= kSizeClasses || slot.index >> 56 != 0) {
      return false;
    }
    before = slot.index;
    slots->push_back(slot);
  }
  return true;
}

bool get_pools(std::string_view* cursor, std::map<int64_t, PoolUsage>* pools) {
  uint64_t count = 0;
  if (!vtkv::get_varint64(cursor, &count)) {
    return false;
  }
  for (uint64_t i = 0; i < count; i++) {
    int64_t id = 0;
    PoolUsage usage;
    if (!get_signed(cursor, &id) || !get_signed(cursor, &usage.allocated) || !get_signed(cursor, &usage.stored) ||
        !get_signed(cursor, &usage.omap) || !get_signed(cursor, &usage.objects) ||
        !pools->emplace(id, usage).second) {
      return false;
    }
  }
  return true;
}

int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

}  // namespace

// Wraps instead of overflowing: the terms may come from a hostile disk.
PoolUsage& PoolUsage::operator+=(const PoolUsage& other) {
  allocated = wrapping_add(allocated, other.allocated);
  stored = wrapping_add(stored, other.stored);
  omap = wrapping_add(omap, other.omap);
  objects = wrapping_add(objects, other.objects);
  return *this;
}

std::string CubeDelta::encode() const {
  std::string bytes;
  bytes.reserve(16 + 6 * (allocation.allocated.size() + allocation.freed.size()) + 24 * pools.size());
  vtkv::put_fixed8(&bytes, kNoteVersion);
  vtkv::put_varint64(&bytes, next_object_id);
  put_slots(&bytes, allocation.allocated);
  put_slots(&bytes, allocation.freed);
  vtkv::put_varint64(&bytes, pools.size());
  for (const auto& [id, usage] : pools) {
    for (int64_t value : {id, usage.allocated, usage.stored, usage.omap, usage.objects}) {
      put_signed(&bytes, value);
    }
  }
  return bytes;
}

Status CubeDelta::decode(std::string_view bytes, CubeDelta* delta) {
  *delta = CubeDelta{};
  uint8_t version = 0;
  if (!vtkv::get_fixed8(&bytes, &version)) {
    return Status::corruption("a note in the log is empty");
  }
  VTKV_RETURN_IF_ERROR(check_version("a note in the log", version, kNoteVersion));
  if (!vtkv::get_varint64(&bytes, &delta->next_object_id) || !get_slots(&bytes, &delta->allocation.allocated) ||
      !get_slots(&bytes, &delta->allocation.freed) || !get_pools(&bytes, &delta->pools) || !bytes.empty()) {
    *delta = CubeDelta{};
    return Status::corruption("a note in the log is malformed");
  }
  return {};
}

}  // namespace swimstore
