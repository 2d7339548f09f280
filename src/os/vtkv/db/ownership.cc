#include "vtkv/db/ownership.h"

#include <vector>

namespace vtkv {

bool is_database_file(const std::string& name) {
  return name == "lock" || name == "log" || name == "tree" || name == "manifest" || name == "manifest.new";
}

bool is_empty_directory(Env* env, const std::string& path) {
  std::vector<std::string> names;
  return env->list_directory(path, &names).ok() && names.empty();
}

Status check_sole_owner(Env* env, const std::string& directory) {
  std::vector<std::string> names;
  VTKV_RETURN_IF_ERROR(env->list_directory(directory, &names));
  for (const std::string& name : names) {
    if (!is_database_file(name) && !is_empty_directory(env, directory + "/" + name)) {
      return Status::invalid_argument(directory + ": holds " + name +
                                      " beside a database, which is part of another program's store then: only that "
                                      "program may change it");
    }
  }
  return {};
}

}  // namespace vtkv
