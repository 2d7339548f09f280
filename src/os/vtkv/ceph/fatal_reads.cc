// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/ceph/fatal_reads.h"

#include "common/ceph_context.h"
#include "common/debug.h"
#include "vtkv/util/host_remedy.h"

#define dout_context cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "vtkv(" << m_directory << ") "

namespace vtkv {

void FatalReads::end(std::string_view what, const Status& status) const {
  const std::string of_host = host_remedy(status.error_number(), m_directory);
  const std::string text =
      "cannot read " + std::string(what) + ": " + std::string(status.message()) +
      ". To go on as if it were not there would lose data, so the process ends. Remedy: " +
      (of_host.empty()
           ? "look for errors of the disk in the kernel's log; 'repair' says what else is damaged; restore " +
                 m_directory + " from a copy, or remove this daemon and make it anew from its peers"
           : of_host);
  derr << text << dendl;
  ceph_abort_msg(text);
}

}  // namespace vtkv
