#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# usage: ceph_configure.sh SOURCE BUILD, in the root, by sysroot.sh
#
# Configures Ceph, for acconfig.h, and generates the option tables. Nothing else is built: everything else that makes an
# OSD comes from the packages. The switches are those of the Debian package, where the source has its debian/rules; else
# those that decide what Ceph's headers look like, without the parts that an OSD does not need.

set -euo pipefail
source=$1
build=$2

# The switches as make sees them, without debhelper.
debian_switches() {
  make --no-print-directory -C "$source" -f debian/rules -f /dev/stdin \
    DEB_HOST_ARCH="$(dpkg --print-architecture)" \
    DEB_HOST_ARCH_BITS="$(dpkg-architecture -qDEB_HOST_ARCH_BITS)" \
    DEB_HOST_MULTIARCH="$(dpkg-architecture -qDEB_HOST_MULTIARCH)" \
    swim-switches <<'RULE' | grep '^-D'
swim-switches:
	@printf '%s\n' $(filter-out -DCMAKE_%_FLAGS_% %=,$(extraopts))
RULE
}

# Debian takes libraries from its own packages, and has taken their copies out of the archive.
own_switches() {
  printf '%s\n' -DCMAKE_BUILD_TYPE=RelWithDebInfo -DWITH_SYSTEM_BOOST=ON -DWITH_SYSTEM_LIBURING=ON \
    -DWITH_SYSTEM_PMDK=ON -DWITH_SYSTEM_UTF8PROC=ON -DWITH_SYSTEM_ROCKSDB=ON -DWITH_SYSTEM_ARROW=ON \
    -DWITH_SYSTEM_ZSTD=ON -DWITH_MGR_DASHBOARD_FRONTEND=OFF \
    -DWITH_SYSTEM_GTEST=ON -DWITH_FMT_HEADER_ONLY=OFF -DWITH_LTTNG=OFF -DWITH_BABELTRACE=OFF -DWITH_JAEGER=OFF \
    -DWITH_TESTS=OFF -DWITH_MGR=OFF -DWITH_RADOSGW=OFF -DWITH_CEPHFS=OFF -DWITH_LIBCEPHFS=OFF \
    -DWITH_CRIMSON=OFF -DWITH_SPDK=OFF -DWITH_RBD=OFF -DWITH_KRBD=OFF -DWITH_MANPAGE=OFF -DWITH_OPENLDAP=OFF -DWITH_FUSE=ON
}

if [ -e "$source/debian/rules" ]; then
  mapfile -t switches < <(debian_switches)
  [ "${#switches[@]}" -gt 10 ] ||
    { echo "no cmake switches found in $source/debian/rules"; exit 1; }
else
  mapfile -t switches < <(own_switches)
fi

multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
cmake -S "$source" -B "$build" -G Ninja \
  -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="lib/$multiarch" \
  -DCMAKE_INSTALL_LOCALSTATEDIR=/var -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
  -DCMAKE_CXX_FLAGS="-DFMT_DEPRECATED_OSTREAM -fpermissive" \
  "${switches[@]}"

# The headers made from the options' descriptions.
ninja -C "$build" -j "$(nproc)" legacy-option-headers
test -e "$build/include/acconfig.h"
