#include "swimstore/ops/last_words.h"

namespace swimstore {

std::mutex& last_words() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace swimstore
