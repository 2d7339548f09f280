// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/mem/logged_bytes.h"

#include <gtest/gtest.h>

#include "vtkv/mem/memtable.h"

namespace vtkv {
namespace {

class Bytes final : public LoggedBytes {
 public:
  std::string bytes = "xlong";
  bool freed = false;

 private:
  void free_bytes() override {
    bytes.assign(bytes.size(), '#');
    freed = true;
  }
};

TEST(LoggedBytes, AreNotReleasedUnderAReader) {
  Bytes bytes;
  ASSERT_TRUE(bytes.pin());
  EXPECT_FALSE(bytes.release());
  bytes.unpin();
  EXPECT_TRUE(bytes.release());
  EXPECT_TRUE(bytes.freed);
  EXPECT_FALSE(bytes.pin());
}

class SharedValueTest : public testing::Test {
 protected:
  SharedValueTest() {
    bytes->last_sequence = 1;
    table.put_shared(1, "k", std::string_view(bytes->bytes).substr(1), bytes.get(), 1);
    table.keep(bytes, 100);
    bytes->address = {3, 4, 4096};
  }
  std::shared_ptr<Bytes> bytes = std::make_shared<Bytes>();
  MemTable table;
  std::string value;
};

TEST_F(SharedValueTest, IsReadFromTheBytes) {
  EXPECT_EQ(table.kept_bytes(), 100u);
  EXPECT_EQ(table.get("k", 9, &value), Lookup::found);
  EXPECT_EQ(value, "long");
}

TEST_F(SharedValueTest, IsKeptUntilDurableAndWithinTheBudget) {
  table.release_kept(0, 0);
  table.release_kept(1, 100);
  EXPECT_FALSE(bytes->freed);
  table.release_kept(1, 99);
  EXPECT_TRUE(bytes->freed);
  EXPECT_EQ(table.kept_bytes(), 0u);
}

TEST_F(SharedValueTest, IsAPointerOnceReleased) {
  table.release_kept(1, 0);
  ASSERT_EQ(table.get("k", 9, &value), Lookup::pointer);
  ValuePointer pointer;
  ASSERT_TRUE(pointer.decode(value));
  EXPECT_EQ(pointer, (ValuePointer{3, 4, 4097, 4, value_checksum("k", "long")}));
}

TEST_F(SharedValueTest, AnIteratorKeepsTheValueItStandsOn) {
  auto iterator = table.new_iterator();
  iterator->seek_to_first();
  table.release_kept(1, 0);
  EXPECT_EQ(iterator->entry().value, "long");
  iterator->seek_to_first();
  table.release_kept(1, 0);
  EXPECT_FALSE(bytes->freed);
  iterator.reset();
  table.release_kept(1, 0);
  EXPECT_TRUE(bytes->freed);
}

}  // namespace
}  // namespace vtkv
