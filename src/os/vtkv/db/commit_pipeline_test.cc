#include "vtkv/db/commit_pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "vtkv/db.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

class Write final : public Submission {
 public:
  void durable(const Status& status) override { ended = status.ok(); }
  bool ended = false;
};

// Not by their addresses, which differ from one process to the next: a run of the simulator can be repeated.
TEST(CommitPipelineTest, DataIsWrittenInTheOrderInWhichItsFilesAppear) {
  SimEnv env({});
  Options options;
  options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 2, .zone_bytes = 64 << 10};
  ASSERT_TRUE(DB::create(&env, "/db", options).ok());
  std::unique_ptr<DB> db;
  ASSERT_TRUE(DB::open(&env, "/db", options, &db).ok());

  std::vector<std::unique_ptr<File>> files(8);
  for (size_t i = 0; i < files.size(); ++i) {
    ASSERT_TRUE(env.open_file("/" + std::to_string(i), {.create = true}, &files[i]).ok());
  }
  const std::vector<size_t> order{5, 2, 7, 0, 6, 1, 4, 3};
  AlignedBuffer buffer;
  buffer.append("data");
  buffer.pad();
  Write write;
  for (const size_t i : order) {
    write.data.push_back({.file = files[i].get(), .offset = 0, .buffers = {{buffer.data(), buffer.size()}}});
  }
  db->submit(&write);
  ASSERT_TRUE(db->wait_durable(write.last_sequence).ok());
  EXPECT_TRUE(write.ended);

  std::map<uint64_t, size_t> number_of;  // by inode
  std::vector<size_t> written;
  for (const SimOp& op : env.trace().ops) {
    if (op.kind == SimOp::Kind::create && op.path.size() == 2) {
      number_of[op.inode] = op.path[1] - '0';
    } else if (op.kind == SimOp::Kind::write && number_of.contains(op.inode)) {
      written.push_back(number_of[op.inode]);
    }
  }
  EXPECT_EQ(written, order);
}

}  // namespace
}  // namespace vtkv
