// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/metadata_failure.h"

#include <cerrno>
#include <cstdlib>
#include <iostream>

#include <unistd.h>

#include <fmt/format.h>

#include "common/debug.h"
#include "include/ceph_assert.h"

#include "swimstore/cube/cube_set.h"
#include "swimstore/ops/last_words.h"
#include "vtkv/util/host_remedy.h"

#define dout_context m_cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore(" << m_path << ") "

namespace swimstore {

int MetadataFailure::report(unsigned cube, const std::string& what, const vtkv::Status& status) const {
  if (m_handler) {
    suspect(cube, what, status);
    m_handler(last_words(cube, what, status));
  } else if (m_policy == Policy::end_process) {
    end_process(cube, what, status);
  } else {
    derr << what << " cannot be read: " << status.to_string() << dendl;
  }
  return -EIO;
}

int MetadataFailure::report_iteration(unsigned cube, const std::string& what, const vtkv::Status& status) const {
  if (m_handler || m_policy == Policy::end_process) {
    return report(cube, what, status);
  }
  std::cerr << fmt::format(
                   "{} cannot be read to its end: {}; nothing that would hold a part of it goes on. "
                   "'ceph-swimstore-tool export {} --salvage --out FILE' saves what can be read",
                   what, status.message(), m_path)
            << std::endl;
  ::_exit(EXIT_FAILURE);
}

// Without cube 0 there is no OSD: nothing can be served in its stead. And what keeps the store from writing, as a sync
// that failed, is no damage.
void MetadataFailure::suspect(unsigned cube, const std::string& what, const vtkv::Status& status) const {
  if (m_suspect && cube != 0 && is_damage(status)) {
    m_suspect(cube, fmt::format("metadata could not be read, {}: {}", what, status.message()));
  }
}

std::string MetadataFailure::last_words(unsigned cube, const std::string& what, const vtkv::Status& status) const {
  const bool is_one_of_several = m_suspect && cube != 0 && is_damage(status);
  const std::string of_host = vtkv::host_remedy(status.error_number(), m_path);
  return fmt::format(
      "metadata cannot be read, {}: {}. This OSD ends, so that its peers serve every object instead of "
      "it. {}{}",
      what, status.message(), of_host.empty() ? remedy(m_path) : "Remedy: " + of_host,
      is_one_of_several ? ". Or, with swimstore_mount_damaged_cubes=incomplete in ceph.conf, it serves its other "
                          "cubes when it is started"
                        : "");
}

std::string MetadataFailure::remedy(const std::string& store_path) {
  return fmt::format(
      "Check the disk. Then, with the OSD stopped: 'ceph-swimstore-tool fsck {}' tells all that is "
      "damaged, and 'repair' fixes records that cannot be decoded. A damaged block of the tree comes "
      "back only from the peers: remove the OSD and make it anew, after 'export --salvage' if any PG "
      "has no other copy",
      store_path);
}

// The message first: a disk that hangs keeps nobody from hearing of it.
void MetadataFailure::end_process(unsigned cube, const std::string& what, const vtkv::Status& status) const {
  swimstore::last_words().lock();
  const std::string message = last_words(cube, what, status);
  derr << "FATAL: " << message << dendl;
  suspect(cube, what, status);
  ceph_abort_msg(message);
}

}  // namespace swimstore
