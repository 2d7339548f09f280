// SPDX-License-Identifier: LGPL-2.1-or-later
// A decoder of what a disk may hold, as the fuzzer sees it: any bytes in, no harm out.
//
// The same entry points serve libFuzzer (fuzz_main.cc, with the preset "fuzz") and, in every build, the tests that
// go through the kept corpus in qa/fuzz/corpus and through small changes of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vtkv {

struct FuzzTarget {
  const char* name;
  // Aborts when the decoder breaks its contract: when what it accepted cannot be encoded and decoded again.
  void (*run)(std::string_view bytes);
  // What the encoder makes, from which a fuzzer starts.
  std::vector<std::string> (*seeds)();
};

// Ends the process with the sentence.
[[noreturn]] void fuzz_violation(const char* sentence);
// The field's bytes as this number; nothing where they do not lie inside.
void patch32(std::string* bytes, size_t offset, uint32_t value);

// "" or what differs between the kept files "seed_*" of a target and what its encoder makes now; with `write`,
// they are made anew.
std::string check_seeds(const FuzzTarget& target, const std::string& corpus, bool write);
// Runs the target on every kept file, and `changes` times on one that was changed in some bytes; how many in all.
uint64_t replay_corpus(const FuzzTarget& target, const std::string& corpus, uint64_t changes, uint64_t seed);

// For libFuzzer's entry points: the program's first argument names the target.
const FuzzTarget* choose_target(std::span<const FuzzTarget> targets, int* argc, char*** argv);

}  // namespace vtkv
