// SPDX-License-Identifier: LGPL-2.1-or-later
// swimstore_fuzz TARGET: libFuzzer on one of the store's decoders.

#include "swimstore/testing/fuzz/store_fuzz_targets.h"

namespace {

const vtkv::FuzzTarget* chosen;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  chosen = vtkv::choose_target(swimstore::store_fuzz_targets(), argc, argv);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
