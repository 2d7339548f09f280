// SPDX-License-Identifier: LGPL-2.1-or-later
// Forged images of a cube (testing/forged_image.h): every one is refused with a reason, or opens and can be read,
// written, flushed, checked and opened again. Nothing aborts, whatever the fields say.
//
// SWIM_FORGED_IMAGES: how many (default 1,500); SWIM_FORGED_FIRST: the first one. A case is decided by its number.

#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "swimstore/testing/cube_workload.h"
#include "swimstore/testing/forged_image.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {
namespace {

using vtkv::SimEnv;
using vtkv::Status;

constexpr char kCube[] = "/cube";

uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

class Change final : public CubeTransaction {
 public:
  bool done = false;

 private:
  void committed(const Status&) override { done = true; }
};

// Takes slots and gives others back, as far as the cube lets it.
void change_something(Cube& cube, SimEnv* env) {
  vtkv::AlignedBuffer data(64 << 10);
  data.resize(64 << 10);
  std::fill_n(data.data(), data.size(), 'c');
  for (uint32_t blocks = 1; blocks <= 16; blocks *= 2) {
    Change change;
    std::vector<AllocatedSlot> slots;
    if (cube.containers().allocate(uint64_t{blocks} * kBlockBytes, &slots).ok()) {
      for (const AllocatedSlot& slot : slots) {
        change.add_slot_write(cube.containers(), slot, 0, {{data.data(), slot.bytes}}, slot.bytes,
                              vtkv::crc32c(data.data(), slot.bytes));
        change.delta.allocation.allocated.push_back(slot.blocks());
      }
    }
    for (uint8_t size_class = 0; size_class < kSizeClasses; ++size_class) {
      std::vector<SlotBlocks> owned;
      bool split = false;
      if (cube.containers().next_owned(size_class, 0, &owned, &split)) {
        change.delta.allocation.freed.insert(change.delta.allocation.freed.end(), owned.begin(), owned.end());
      }
    }
    change.delta.next_object_id = cube.new_object_id() + 1;
    change.batch.put("o1", "changed");
    change.batch.remove_range("o5", "o7");
    cube.submit(&change);
    for (int second = 0; second < 60 && !change.done; ++second) {
      env->advance(std::chrono::seconds(1));
    }
    ASSERT_TRUE(change.done);
  }
}

void use(Cube& cube, SimEnv* env) {
  const auto read_all = [&cube] {
    const auto it = cube.database().new_iterator("", std::string(16, '\xff'));
    for (it->seek_to_first(); it->valid(); it->next()) {
    }
    for (it->seek_to_last(); it->valid(); it->previous()) {
    }
    std::string value;
    (void)cube.database().get("o3", &value);
  };
  read_all();
  change_something(cube, env);
  (void)cube.database().flush();
  env->advance(std::chrono::seconds(1));
  (void)cube.database().compact();
  read_all();
  std::vector<std::string> findings;
  cube.database().verify(&findings);
  (void)cube.pool_usage();
  (void)cube.containers().statistics();
}

// A cube with runs in its tree, and records behind them.
std::unique_ptr<SimEnv> some_cube(uint64_t seed) {
  auto env = std::make_unique<SimEnv>(vtkv::SimOptions{.seed = seed});
  env->set_capacity(64 << 20);
  const CubeOptions options = CubeWorkload::small_options(true);
  EXPECT_EQ(CubeWorkload::create(*env, options), "");
  CubeWorkload workload;
  EXPECT_EQ(workload.open(*env, options), "");
  History history;
  workload.run(history, seed, 100, 2);
  EXPECT_EQ(workload.wait_for_all(), "");
  env->run_until_idle();
  return env;
}

TEST(CubeForgery, EndsInAnErrorOrInACube) {
  const uint64_t first = number_from_environment("SWIM_FORGED_FIRST", 1);
  const uint64_t cases = number_from_environment("SWIM_FORGED_IMAGES", 1500);
  const auto base = some_cube(1);
  base->restart_trace();
  const CubeOptions options = CubeWorkload::small_options(true);
  uint64_t opened = 0, refused = 0, again = 0;
  for (uint64_t number = first; number < first + cases; ++number) {
    SimEnv env({.seed = number, .capacity_bytes = 64 << 20, .record = false}, base->trace().base,
               base->trace().next_inode);
    const std::string what = ForgedImage(&env, kCube, options, "", number).forge();
    SCOPED_TRACE(std::to_string(number) + ": " + what);
    if (std::getenv("SWIM_FORGED_VERBOSE")) {
      std::fprintf(stderr, "%" PRIu64 ": %s\n", number, what.c_str());
    }
    bool ended = false;
    CubeOptions own = options;
    own.database.on_fatal = [&ended](const Status&) { ended = true; };
    std::unique_ptr<Cube> cube;
    const Status status = Cube::open(&env, kCube, own, &cube);
    ++(status.ok() ? opened : refused);
    EXPECT_TRUE(status.ok() || !status.message().empty());
    if (status.ok()) {
      use(*cube, &env);
      cube.reset();
      again += Cube::open(&env, kCube, own, &cube).ok();
      cube.reset();
    }
  }
  std::printf("%" PRIu64 " opened, %" PRIu64 " of them again, %" PRIu64 " refused\n", opened, again, refused);
  if (cases >= 500) {  // a scenario in which nothing happens shows nothing
    EXPECT_GT(opened, cases / 5);
    EXPECT_GT(refused, cases / 20);
  }
}

}  // namespace
}  // namespace swimstore
