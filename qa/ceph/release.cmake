# SPDX-License-Identifier: LGPL-2.1-or-later
# Which release of Ceph this is built for: ceph_release, which is ${reef} or ${tentacle}.

if(NOT EXISTS ${SWIM_CEPH_SOURCE}/src/ceph_osd.cc)
  message(FATAL_ERROR "SWIM_WITH_CEPH is on, but SWIM_CEPH_SOURCE "
    "('${SWIM_CEPH_SOURCE}') holds no Ceph source. Run cmake through qa/enter.sh, "
    "which provides it, or set -DSWIM_WITH_CEPH=OFF to build vtkv alone.")
endif()
if(NOT EXISTS ${SWIM_CEPH_BUILD}/include/acconfig.h)
  message(FATAL_ERROR "SWIM_CEPH_BUILD ('${SWIM_CEPH_BUILD}') is not a configured "
    "build folder of Ceph. Run qa/setup/sysroot.sh, which makes one (of Tentacle: qa/setup/sysroot.sh tentacle).")
endif()

set(reef 18)
set(tentacle 20)
foreach(header ceph_ver.h ceph_release.h)  # Reef has it in the first, later ones in the second
  set(header ${SWIM_CEPH_BUILD}/src/include/${header})
  if(EXISTS ${header})
    file(STRINGS ${header} line REGEX "define CEPH_RELEASE [0-9]+")
    string(REGEX MATCH "[0-9]+" found "${line}")
    if(found)
      set(ceph_release ${found})
    endif()
  endif()
endforeach()
if(NOT ceph_release EQUAL reef AND NOT ceph_release EQUAL tentacle)
  message(FATAL_ERROR "The Ceph source in ${SWIM_CEPH_SOURCE} is of release '${ceph_release}': set SWIM_CEPH_SOURCE and "
    "SWIM_CEPH_BUILD to one of Reef (${reef}) or Tentacle (${tentacle}).")
endif()
if(NOT ceph_release EQUAL SWIM_CEPH_RELEASE)
  message(FATAL_ERROR "This build is for release ${SWIM_CEPH_RELEASE} of Ceph, but the source in ${SWIM_CEPH_SOURCE} is of "
    "release ${ceph_release}: set SWIM_RELEASE to reef or tentacle, as the preset is, and remove ${CMAKE_BINARY_DIR}.")
endif()

# Tentacle's headers take its own fmt and no later one: all is compiled with that then, for two in one program would be
# one to the linker.
if(ceph_release EQUAL tentacle)
  add_library(fmt::fmt INTERFACE IMPORTED)
  target_include_directories(fmt::fmt INTERFACE ${SWIM_CEPH_SOURCE}/src/fmt/include)
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
endif()
