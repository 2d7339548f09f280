#include "vtkv/db/ownership.h"

#include <vector>

namespace vtkv {

bool is_database_file(const std::string& name) {
  return name == "lock" || name == "log" || name == "tree" || name == "manifest" || name == "manifest.new";
}

Status check_sole_owner(Env* env, const std::string& directory) {
  std::vector<std::string> names;
  VTKV_RETURN_IF_ERROR(env->list_directory(directory, &names));
  for (const std::string& name : names) {
    std::vector<std::string> inside;
    const bool empty_directory = env->list_directory(directory + "/" + name, &inside).ok() && inside.empty();
    if (!is_database_file(name) && !empty_directory) {
      return Status::invalid_argument(directory + ": holds " + name +
                                      " beside a database, which is part of another program's store then: only that "
                                      "program may change it");
    }
  }
  return {};
}

}  // namespace vtkv
