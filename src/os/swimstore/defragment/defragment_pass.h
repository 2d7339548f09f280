// SPDX-License-Identifier: LGPL-2.1-or-later
// What 'swimstore defragment' carries out, one at a time: a pass over the data of objects (data_defragmenter.h), or
// over the trees that hold the metadata (metadata_defragmenter.h).
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace swimstore {

class DefragmentPass {
 public:
  // To be called again: more, at once; not_now, in some milliseconds; later, in a fifth of a second, for others work.
  enum class Outcome { more, not_now, later, done, failed };
  struct Field {
    const char* name;  // as in the command's status
    uint64_t value;
  };

  virtual ~DefragmentPass() = default;

  // Does a little. *cost: what that was worth, in bytes.
  virtual Outcome step(uint64_t* cost) = 0;
  // Found and done until now: always the same fields.
  virtual std::vector<Field> fields() const = 0;
  // How much of the pass is done, from 0 to 1, estimated.
  virtual double progress() const = 0;
  // What it costs, in bytes, to move what was found.
  virtual uint64_t cost_of_found() const = 0;
  // Why it failed, and what to do, as one sentence.
  virtual const std::string& error() const = 0;
};

}  // namespace swimstore
