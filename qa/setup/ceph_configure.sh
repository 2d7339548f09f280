#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# usage: ceph_configure.sh SOURCE BUILD, in the root, by sysroot.sh
#
# Configures Ceph the way its Debian package does (the switches are read from
# debian/rules), for acconfig.h, and generates the option tables. Nothing else is
# built: everything else that makes an OSD comes from the packages.

set -euo pipefail
source=$1
build=$2

# The switches as make sees them, without debhelper.
switches=$(cd "$source" && make --no-print-directory -f debian/rules -f /dev/stdin \
  DEB_HOST_ARCH="$(dpkg --print-architecture)" \
  DEB_HOST_ARCH_BITS="$(dpkg-architecture -qDEB_HOST_ARCH_BITS)" \
  DEB_HOST_MULTIARCH="$(dpkg-architecture -qDEB_HOST_MULTIARCH)" \
  swim-switches <<'RULE'
swim-switches:
	@printf '%s\n' $(filter-out -DCMAKE_%_FLAGS_% %=,$(extraopts))
RULE
)
mapfile -t switches < <(printf '%s\n' "$switches" | grep '^-D')
[ "${#switches[@]}" -gt 10 ] ||
  { echo "no cmake switches found in $source/debian/rules"; exit 1; }

multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
cmake -S "$source" -B "$build" -G Ninja \
  -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="lib/$multiarch" \
  -DCMAKE_INSTALL_LOCALSTATEDIR=/var -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
  -DCMAKE_CXX_FLAGS="-DFMT_DEPRECATED_OSTREAM -fpermissive" \
  "${switches[@]}"

# The headers made from the options' descriptions.
ninja -C "$build" -j "$(nproc)" legacy-option-headers
test -e "$build/include/acconfig.h"
