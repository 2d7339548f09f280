// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/uuid.h"

#include <cstring>

namespace vtkv {

Uuid new_uuid(Env* env) {
  const uint64_t random[] = {env->random_u64(), env->random_u64()};
  Uuid uuid;
  static_assert(sizeof random == sizeof uuid);
  std::memcpy(uuid.data(), random, sizeof random);
  uuid[6] = static_cast<uint8_t>((uuid[6] & 0x0f) | 0x40);  // version 4, variant 1 (RFC 9562)
  uuid[8] = static_cast<uint8_t>((uuid[8] & 0x3f) | 0x80);
  return uuid;
}

}  // namespace vtkv
