// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/iter/read_states.h"

#include <chrono>
#include <future>

#include "vtkv/testing/tree_fixture.h"

namespace vtkv {
namespace {

class ReadStatesTest : public TreeFixture {};

// That may take long, and every reader takes the lock.
TEST_F(ReadStatesTest, AFlushedMemtableEndsWithoutTheLock) {
  make();
  ReadStates states(m_tree.get());
  std::future<void> reader;
  bool was_read = false;
  std::shared_ptr<MemTable> first(new MemTable, [&](MemTable* memtable) {
    delete memtable;
    reader = std::async(std::launch::async, [&] { (void)states.current(); });
    was_read = reader.wait_for(std::chrono::seconds(5)) == std::future_status::ready;
  });
  const MemTable* const flushed = first.get();
  states.begin(first, {}, 0);
  states.switch_memtable(std::move(first), 0, std::make_shared<MemTable>());
  states.install_version(flushed);
  ASSERT_TRUE(reader.valid()) << "the flushed memtable lives on";
  EXPECT_TRUE(was_read);
}

}  // namespace
}  // namespace vtkv
