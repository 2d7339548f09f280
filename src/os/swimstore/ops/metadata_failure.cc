// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/metadata_failure.h"

#include <cerrno>
#include <cstdlib>
#include <iostream>

#include <unistd.h>

#include <fmt/format.h>

#include "common/debug.h"
#include "include/ceph_assert.h"

#include "swimstore/ops/last_words.h"

#define dout_context m_cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore(" << m_path << ") "

namespace swimstore {

int MetadataFailure::report(const std::string& what, const vtkv::Status& status) const {
  if (m_handler) {
    m_handler(last_words(what, status));
  } else if (m_policy == Policy::end_process) {
    end_process(last_words(what, status));
  } else {
    derr << what << " cannot be read: " << status.to_string() << dendl;
  }
  return -EIO;
}

int MetadataFailure::report_iteration(const std::string& what, const vtkv::Status& status) const {
  if (m_handler || m_policy == Policy::end_process) {
    return report(what, status);
  }
  std::cerr << fmt::format(
                   "{} cannot be read to its end: {}; nothing that would hold a part of it goes on. "
                   "'ceph-swimstore-tool export {} --salvage --out FILE' saves what can be read",
                   what, status.message(), m_path)
            << std::endl;
  ::_exit(EXIT_FAILURE);
}

std::string MetadataFailure::last_words(const std::string& what, const vtkv::Status& status) const {
  return fmt::format(
      "metadata cannot be read, {}: {}. This OSD ends, so that its peers serve every object instead of "
      "it. {}",
      what, status.message(), remedy(m_path));
}

std::string MetadataFailure::remedy(const std::string& store_path) {
  return fmt::format(
      "Check the disk. Then, with the OSD stopped: 'ceph-swimstore-tool fsck {}' tells all that is "
      "damaged, and 'repair' fixes records that cannot be decoded. A damaged block of the tree comes "
      "back only from the peers: remove the OSD and make it anew, after 'export --salvage' if any PG "
      "has no other copy",
      store_path);
}

void MetadataFailure::end_process(const std::string& message) const {
  swimstore::last_words().lock();
  derr << "FATAL: " << message << dendl;
  ceph_abort_msg(message);
}

}  // namespace swimstore
