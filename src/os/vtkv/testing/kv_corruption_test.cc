// SPDX-License-Identifier: LGPL-2.1-or-later
// Every sector of a small database flipped, zeroed and exchanged with another: what is read is right, or an error.
//
// A damaged record at the very end of the log cannot be told from one that never arrived, so the database is idle
// when it is closed: its last record says that everything before it is durable, and holds nothing itself.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/testing/kv_workload.h"

namespace vtkv {
namespace {

enum class Damage { flipped, zeroed, swapped };
enum Outcome : size_t { right, refused, read_error, found_by_verify, kOutcomes };

struct Tally {
  uint64_t sectors = 0;
  std::array<uint64_t, kOutcomes> outcomes{};
};

std::string structure_of(const std::string& path) {
  return path.find("/log/") != std::string::npos ? "log segments" : path == "/slots" ? "the user's slots" : path;
}

std::string read_file(SimEnv& env, const std::string& path) {
  std::unique_ptr<File> file;
  uint64_t bytes = 0;
  EXPECT_TRUE(env.open_file(path, OpenOptions(), &file).ok());
  EXPECT_TRUE(file->size(&bytes).ok());
  AlignedBuffer buffer(bytes);
  EXPECT_TRUE(file->read(0, bytes, buffer.data()).ok());
  return {buffer.data(), bytes};
}

// What the sector holds afterwards; the same as before when there is nothing to damage.
std::string damaged(const std::string& bytes, uint64_t sector, Damage damage) {
  std::string now = bytes.substr(sector * kSimSector, kSimSector);
  if (damage == Damage::flipped) {
    now[sector * 37 % now.size()] ^= 0x10;
  } else if (damage == Damage::zeroed) {
    now.assign(now.size(), '\0');
  } else {
    const uint64_t sectors = bytes.size() / kSimSector;
    now = bytes.substr((sector + 1 + sector * 7 % (sectors - 1)) % sectors * kSimSector, kSimSector);
  }
  return now;
}

class KvCorruptionTest : public testing::Test {
 protected:
  void make(uint64_t seed) {
    m_env = std::make_unique<SimEnv>(SimOptions{.seed = seed});
    ASSERT_TRUE(KvWorkload::create(m_env.get(), {}).ok());
    KvWorkload workload(m_env.get(), {}, {});
    ASSERT_EQ(workload.open(0), "");
    workload.run(60, seed);
    ASSERT_TRUE(workload.database().wait_durable(workload.database().statistics().last_sequence).ok());
    workload.database().advance_reuse_horizon();
    m_env->run_until_idle();
    m_history = workload.history();
    workload.close();
    m_env->restart_trace();
  }

  // Opens the database as it is with that sector instead of its own.
  std::string look(const std::string& path, const std::string& before, uint64_t sector, const std::string& now) {
    SimEnv env({}, m_env->trace().base, m_env->trace().next_inode);
    for (size_t i = 0; i < now.size(); ++i) {
      const uint64_t offset = sector * kSimSector + i;
      if (now[i] != before[offset]) {
        env.flip_bits(path, offset, static_cast<char>(now[i] ^ before[offset]));
      }
    }
    KvWorkload workload(&env, {}, m_history);
    return workload.open(m_history.size());
  }

  void damage_all(const std::string& path, Tally* tally) {
    const std::string before = read_file(*m_env, path);
    for (uint64_t sector = 0; sector < before.size() / kSimSector; ++sector) {
      ++tally->sectors;
      for (const Damage damage : {Damage::flipped, Damage::zeroed, Damage::swapped}) {
        const std::string now = damaged(before, sector, damage);
        if (before.compare(sector * kSimSector, kSimSector, now) != 0) {
          judge(path, sector, look(path, before, sector, now), tally);
        }
      }
    }
  }

  void judge(const std::string& path, uint64_t sector, const std::string& text, Tally* tally) {
    const bool of_the_user = path == "/slots" && text.starts_with("slot ");
    const Outcome outcome = text.empty()                                  ? right
                            : text.starts_with("open: ")                  ? refused
                            : text.starts_with("read: ")                  ? read_error
                            : text.starts_with("verify: ") || of_the_user ? found_by_verify
                                                                          : kOutcomes;
    ASSERT_NE(outcome, kOutcomes) << "wrong data: " << path << ", sector " << sector << ": " << text;
    // One who is refused can tell what to restore.
    EXPECT_TRUE(outcome != refused || text.find("/db") != std::string::npos || text.find("/slots") != std::string::npos)
        << path << ", sector " << sector << ": " << text;
    ++tally->outcomes[outcome];
  }

  std::unique_ptr<SimEnv> m_env;
  KvHistory m_history;
};

TEST_F(KvCorruptionTest, NoSectorGivesWrongData) {
  std::map<std::string, Tally> tallies;
  for (const uint64_t seed : {1, 2, 3}) {
    make(seed);
    for (const std::string& path : m_env->files()) {
      damage_all(path, &tallies[structure_of(path)]);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
  std::printf("%-20s %8s %8s %8s %8s %8s\n", "structure", "sectors", "right", "refused", "error", "verify");
  for (const auto& [structure, tally] : tallies) {
    std::printf("%-20s %8lu", structure.c_str(), tally.sectors);
    for (const uint64_t count : tally.outcomes) {
      std::printf(" %8lu", count);
    }
    std::printf("\n");
  }
  EXPECT_GT(tallies["/db/manifest"].outcomes[right], 0u);  // the other of its two copies serves
  EXPECT_GT(tallies["log segments"].outcomes[refused], 0u);
  EXPECT_GT(tallies["/db/tree"].outcomes[read_error] + tallies["/db/tree"].outcomes[refused], 0u);
}

}  // namespace
}  // namespace vtkv
