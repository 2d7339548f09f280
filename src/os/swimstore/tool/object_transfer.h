// SPDX-License-Identifier: LGPL-2.1-or-later
// Objects out of a store into an archive (object_archive.h), and back into a store.
//
// Export reads the files of a store that is not mounted and need not mount, and changes nothing. An object that
// cannot be read whole is left out and named; one that may not be what it last was, because a part of the tree is lost,
// is marked as doubtful. Import adds: an object that is there already stays as it is.
// An object is imported by one transaction: whole or not at all. Behind a damaged record import goes on, and names it.
#pragma once

#include <istream>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "os/ObjectStore.h"
#include "swimstore/tool/store_files.h"

namespace swimstore {

struct TransferResult {
  uint64_t collections = 0;
  uint64_t objects = 0;
  uint64_t doubtful = 0;  // of them
  uint64_t bytes = 0;  // of data
  std::vector<std::string> omitted;  // one sentence per object, or of what else was not as it should be
  uint64_t untold = 0;  // sentences about objects that are not among these

  static constexpr size_t kToldMax = 1000;
  // Of one object: of very many, the first are told.
  void tell(std::string text) {
    if (omitted.size() < kToldMax) {
      omitted.push_back(std::move(text));
    } else {
      ++untold;
    }
  }
};

// Code::invalid_argument: an export of this one collection (of all when it is empty) could be of an empty copy, made
// anew for one that lies in an abandoned cube, and nobody has said which of the two is wanted.
vtkv::Status check_names_a_copy(const StoreFiles& files, const std::string& collection);
// `name`: the archive's, for messages. Of one collection, when it is named. Code::not_found when there is none of that
// name; no_space, io_error when the archive cannot be written.
vtkv::Status export_objects(StoreFiles& files, const std::string& collection, const std::string& name,
                            std::ostream* out, TransferResult* result);
// Collections that are missing are made. Waits until all is durable. After an error, what was imported so far stays.
// `with_doubtful`: also objects that the archive calls doubtful; otherwise they are left out, and named.
vtkv::Status import_objects(ObjectStore& store, const std::string& name, std::istream* in, bool with_doubtful,
                            TransferResult* result);

}  // namespace swimstore
