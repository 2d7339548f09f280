// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/ownership.h"

#include <vector>

namespace vtkv {

bool is_database_file(const std::string& name) {
  return name == "lock" || name == "log" || name == "tree" || name == "manifest" || name == "manifest.new" ||
         name == kUnfinishedName;
}

Status find_foreign_file(Env* env, const std::string& directory, std::string* name) {
  std::vector<std::string> names;
  VTKV_RETURN_IF_ERROR(env->list_directory(directory, &names));
  std::erase_if(names, is_database_file);
  for (std::string& foreign : names) {
    std::vector<std::string> inside;
    const Status status = env->list_directory(directory + "/" + foreign, &inside);
    if (!status.ok() && status.error_number() != ENOTDIR) {
      return status;
    }
    if (!status.ok() || !inside.empty()) {
      *name = std::move(foreign);
      return {};
    }
  }
  name->clear();
  return {};
}

Status check_sole_owner(Env* env, const std::string& directory) {
  std::string name;
  VTKV_RETURN_IF_ERROR(find_foreign_file(env, directory, &name));
  if (name.empty()) {
    return {};
  }
  return Status::invalid_argument(directory + ": holds " + name +
                                  " beside a database, which is part of another program's store then: only that "
                                  "program may change it");
}

}  // namespace vtkv
