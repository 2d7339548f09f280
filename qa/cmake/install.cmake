# SPDX-License-Identifier: LGPL-2.1-or-later
# What the Debian package takes of the build (qa/debian): in a folder of their own, for three have names of Ceph's.

foreach(program vtkv-tool ceph-osd ceph-objectstore-tool ceph-swimstore-tool ceph-kvstore-tool)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION lib/ceph-swimstore)
  endif()
endforeach()
