#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# usage: check_version.sh CEPH_SOURCE LIBCEPH_COMMON
#
# The source's headers describe the library's memory: both must be the same
# version, Debian's patches included where the source has them. Prints
# PACKAGE=VERSION of the library.

set -eu
source=$1
library=$2
if [ -e "$source/debian/changelog" ]; then
  expected=$(dpkg-parsechangelog -l "$source/debian/changelog" -S Version)
  strip='s/+b[0-9]*$//'
else  # without Debian's patches
  expected=$(sed -n 2p "$source/src/.git_version")
  strip='s/[-+].*//'
fi
package=$(dpkg-query -S "$library" 2>/dev/null | head -n 1 | cut -d: -f1)
if [ -z "$package" ]; then
  echo "no installed package owns $library: install ceph-osd $expected" >&2
  exit 1
fi
version=$(dpkg-query -W -f '${Version}' "$package")
installed=$(printf '%s' "$version" | sed "$strip")
if [ "$installed" != "$expected" ]; then
  echo "the Ceph source in $source is version $expected, but the installed $package" \
    "is $installed: run qa/setup/sysroot.sh (of Tentacle: qa/setup/sysroot.sh tentacle), or point SWIM_CEPH_SOURCE at that version" >&2
  exit 1
fi
echo "$package=$version"
