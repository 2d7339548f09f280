// SPDX-License-Identifier: LGPL-2.1-or-later
// The parts of a database in the simulator, put together as DbImpl does, without background workers: a test steps the
// part that it is about itself, and sees what each step does. Only the commit worker is there, and works when
// run_until_idle() or a wait lets it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "vtkv/db/compactor.h"
#include "vtkv/db/flusher.h"
#include "vtkv/db/log_maintenance.h"
#include "vtkv/db/write_path.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {

class DbPartsFixture : public testing::Test, private CommitObserver {
 protected:
  // A batch, and what became of it.
  struct Write final : Submission {
    void sequenced(SequenceNumber sequence) override { sequenced_at = sequence; }
    void durable(const Status& status) override {
      ended = true;
      result = status;
    }
    SequenceNumber sequenced_at = 0;
    bool ended = false;
    Status result;
  };

  DbPartsFixture() {
    m_options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 2, .zone_bytes = 64 << 10};
    m_options.memtable_bytes = 1 << 20;
    m_options.checkpoint_log_bytes = 64 << 20;
    m_options.block_cache_bytes = 0;
  }
  ~DbPartsFixture() override {
    if (m_pipeline) {
      m_workers->stop();
      m_env.clear_faults();
      m_pipeline->hurry(UINT64_MAX);
      m_env.run_until_idle();
      m_pipeline->stop();
    }
  }
  // When the test has chosen the options.
  void make() {
    const Uuid uuid{1, 2, 3};
    const LogPosition start{0, 1, 1, kLogBlockBytes, 0};
    ASSERT_TRUE(m_env.create_directory("/db").ok());
    ASSERT_TRUE(Tree::create(&m_env, "/db", m_options.geometry, uuid, start).ok());
    ASSERT_TRUE(Tree::open(&m_env, "/db", m_options, &m_tree).ok());
    m_pool = std::make_unique<SegmentPool>(&m_env, "/db/log", m_options.geometry, uuid);
    ASSERT_TRUE(m_pool->create().ok());
    m_states = std::make_unique<ReadStates>(m_tree.get());
    m_errors = std::make_unique<BackgroundErrors>(&m_env, nullptr);
    m_workers = std::make_unique<Workers>(&m_env);
    m_pipeline = std::make_unique<CommitPipeline>(&m_env, m_options, m_pool.get(), uuid, start, 0,
                                                  static_cast<CommitObserver*>(this));
    m_waiters = std::make_unique<Waiters>(&m_env, &m_pipeline->fatal_error());
    m_writes = std::make_unique<WritePath>(&m_env, m_options, m_tree.get(), m_states.get(), m_pipeline.get(),
                                           m_waiters.get(), m_workers.get());
    m_log = std::make_unique<LogMaintenance>(m_options, m_tree.get(), m_pool.get(), m_states.get(), m_pipeline.get(),
                                             m_errors.get(), m_workers.get());
    m_flusher = std::make_unique<Flusher>(m_tree.get(), m_states.get(), m_pipeline.get(), m_writes.get(), m_log.get(),
                                          m_errors.get(), m_workers.get(), m_waiters.get());
    m_compactor = std::make_unique<Compactor>(&m_env, m_tree.get(), m_states.get(), m_pipeline.get(), m_errors.get(),
                                              m_workers.get(), m_waiters.get());
    m_writes->begin(std::make_shared<MemTable>(), {}, 0, 0);
    m_pipeline->start();
  }
  // For what waits for a step of this worker. Ends it.
  template <typename Wait>
  Status with_worker(Workers::Role role, const Worker::Step& step, Wait wait) {
    m_workers->start({{role, "worker", 0, step}});
    const Status status = wait();
    m_workers->end({role});
    return status;
  }

  // Durable on return.
  void put(const std::string& key, const std::string& value = "value") {
    WriteBatch batch;
    batch.put(key, value);
    ASSERT_TRUE(m_writes->write(std::move(batch), {}).ok());
    m_env.run_until_idle();
  }
  // A run of what was put, and a checkpoint.
  void flush() {
    m_writes->close_memtable();
    m_env.run_until_idle();
    while (m_states->closed_count() > 0) {
      ASSERT_EQ(m_flusher->step().when, NextStep::When::now);
    }
  }
  // The newest entry of a key, in a memtable.
  Lookup look_up(const std::string& key) {
    std::string value;
    for (const auto& memtable : m_states->current()->memtables) {
      if (const Lookup found = memtable->get(key, m_states->visible(), &value); found != Lookup::absent) {
        return found;
      }
    }
    return Lookup::absent;
  }

  SimEnv m_env{{.record = false}};
  Options m_options;
  std::unique_ptr<Tree> m_tree;
  std::unique_ptr<SegmentPool> m_pool;
  std::unique_ptr<ReadStates> m_states;
  std::unique_ptr<BackgroundErrors> m_errors;
  std::unique_ptr<Workers> m_workers;
  std::unique_ptr<CommitPipeline> m_pipeline;
  std::unique_ptr<Waiters> m_waiters;
  std::unique_ptr<WritePath> m_writes;
  std::unique_ptr<LogMaintenance> m_log;
  std::unique_ptr<Flusher> m_flusher;
  std::unique_ptr<Compactor> m_compactor;

 private:
  void commit_advanced() override {
    m_workers->wake(Workers::Role::flush);
    m_writes->notify_room();
    m_waiters->notify();
  }
  std::chrono::microseconds throttle_delay() override { return {}; }
  bool memtables_are_crowded() override { return m_states->memtables_are_crowded(m_options.memtable_bytes); }
};

}  // namespace vtkv
