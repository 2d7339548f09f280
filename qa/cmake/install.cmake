# SPDX-License-Identifier: LGPL-2.1-or-later
# What an OSD's host needs beside the packages: doc/swimstore-operations.rst says how it is used.

include(GNUInstallDirs)

foreach(program vtkv-tool ceph-osd ceph-objectstore-tool ceph-swimstore-tool ceph-kvstore-tool)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
if(SWIM_WITH_CEPH)
  # It names the prefix, which is known for certain only now: --prefix may give another one.
  install(CODE "
    configure_file(\"${CMAKE_SOURCE_DIR}/qa/ceph/ceph-osd.service.conf.in\" \"${CMAKE_BINARY_DIR}/ceph-osd.service.conf\" @ONLY)")
  install(FILES ${CMAKE_BINARY_DIR}/ceph-osd.service.conf DESTINATION ${CMAKE_INSTALL_DATADIR}/swimstore)
endif()
# Side by side as in the repository, so that their links hold.
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/swimstore)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/doc DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/swimstore)
