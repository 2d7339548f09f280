// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/read_only_env.h"

#include "vtkv/util/invariants.h"

namespace vtkv {

Status ReadOnlyEnv::refuse(std::string_view what, const std::string& path) {
  return Status::from_errno(EROFS, "cannot " + std::string(what) + " " + path + ", which was opened to be read");
}

Status ReadOnlyEnv::open_file(const std::string& path, const OpenOptions& options, std::unique_ptr<File>* file) {
  OpenOptions for_reading;
  for_reading.read_only = true;
  for_reading.direct = options.direct;
  return m_base->open_file(path, for_reading, file);
}

Status ReadOnlyEnv::lock_file(const std::string& path, std::unique_ptr<FileLock>* lock) {
  if (!m_base->exists(path)) {
    return Status();
  }
  const Status status = m_base->lock_file(path, lock);
  return status.error_number() == EROFS ? Status() : status;
}

std::unique_ptr<Worker> ReadOnlyEnv::start_worker(std::string, unsigned, Worker::Step) {
  VTKV_ASSERT(!"a database opened to be read starts no worker");
  return nullptr;
}

}  // namespace vtkv
