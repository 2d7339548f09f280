// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/small_file.h"

namespace vtkv {

namespace {

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) {
    return ".";
  }
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Status read_small_file(Env* env, const std::string& path, std::string* contents) {
  std::unique_ptr<File> file;
  VTKV_RETURN_IF_ERROR(env->open_file(path, {.read_only = true, .direct = false}, &file));
  uint64_t length = 0;
  VTKV_RETURN_IF_ERROR(file->size(&length));
  std::string bytes(length, '\0');
  VTKV_RETURN_IF_ERROR(file->read(0, bytes.size(), bytes.data()));
  *contents = std::move(bytes);
  return {};
}

Status replace_small_file(Env* env, const std::string& path, std::string_view contents) {
  const std::string fresh = path + ".new";
  std::unique_ptr<File> file;
  VTKV_RETURN_IF_ERROR(env->open_file(fresh, {.create = true, .direct = false}, &file));
  VTKV_RETURN_IF_ERROR(file->truncate(0));
  VTKV_RETURN_IF_ERROR(file->write(0, contents.data(), contents.size()));
  VTKV_RETURN_IF_ERROR(file->sync());
  VTKV_RETURN_IF_ERROR(env->rename_file(fresh, path));
  return env->sync_directory(directory_of(path));
}

}  // namespace vtkv
