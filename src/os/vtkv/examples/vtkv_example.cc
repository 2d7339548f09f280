// SPDX-License-Identifier: LGPL-2.1-or-later
// First steps with vtkv: make a database, write a batch, read it back, read the past, walk in key order.
//
//   vtkv_example DIRECTORY     a folder that is empty, or not there yet

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "vtkv/db.h"

using namespace vtkv;

static Status first_steps(const std::string& directory) {
  Options options;
  options.geometry.log_segment_bytes = 1 << 20;  // four of these are written beforehand; the default is 64 MiB
  VTKV_RETURN_IF_ERROR(DB::create(posix_env(), directory, options));

  std::unique_ptr<DB> db;
  VTKV_RETURN_IF_ERROR(DB::open(posix_env(), directory, options, &db));

  WriteBatch fruit;
  fruit.put("pear", "green");
  fruit.put("plum", "blue");
  VTKV_RETURN_IF_ERROR(db->write(std::move(fruit)));  // both keys or neither; on the disk when it returns

  const Snapshot* spring = db->take_snapshot();
  WriteBatch autumn;
  autumn.put("pear", "yellow");
  autumn.remove("plum");
  VTKV_RETURN_IF_ERROR(db->write(std::move(autumn)));

  std::string now, then;
  VTKV_RETURN_IF_ERROR(db->get("pear", &now));
  VTKV_RETURN_IF_ERROR(db->get("pear", &then, spring));
  std::printf("pear: %s, was %s\n", now.c_str(), then.c_str());

  std::unique_ptr<Iterator> keys = db->new_iterator("a", "z", spring);  // from "a" on, up to but not including "z"
  for (keys->seek_to_first(); keys->valid(); keys->next()) {
    std::printf("in spring: %.*s %.*s\n", int(keys->key().size()), keys->key().data(), int(keys->value().size()),
                keys->value().data());
  }
  VTKV_RETURN_IF_ERROR(keys->status());

  keys.reset();
  db->release_snapshot(spring);
  return Status();  // db goes out of scope: that closes it
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: vtkv_example DIRECTORY\n");
    return 2;
  }
  const Status status = first_steps(argv[1]);
  if (!status.ok()) {
    std::fprintf(stderr, "vtkv_example: %s\n", status.to_string().c_str());
    return 1;
  }
  return 0;
}
