#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes the Debian package: see usage().

set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
checkout=$(dirname "$here")
. "$here/lib.sh"
trap_signals

usage() {
  cat <<USAGE
usage: qa/build-deb.sh [--release NAME] [--jobs N] [--lintian]

Sets up what is missing, builds the programs, and makes the package ceph-osd-swimstore of
them, in build/deb (for Tentacle in build-tentacle/deb). Its last line is the package's
path. It can be installed beside that version of Ceph's packages which the set-up has
installed, and no other.

  --release NAME  of Ceph: reef (18.2, default) or tentacle (20.2)
  --jobs N        parallel compilations (default: the number of cores)
  --lintian       also asks lintian, which is installed for that and forgotten again
  SWIM_CACHE      where set-up keeps its things (/var/cache/swimstore)
USAGE
}

jobs=$(nproc)
lintian=false
while [ $# -gt 0 ]; do
  case $1 in
    --release | --jobs)
      [ $# -gt 1 ] || fail_usage "$1 needs a value"
      case $1 in
        --release) use_release "$2" ;;
        --jobs) jobs=$2 ;;
      esac
      shift
      ;;
    --lintian) lintian=true ;;
    -h | --help)
      usage
      exit 0
      ;;
    *) fail_usage "unknown argument '$1'" ;;
  esac
  shift
done
use_release "${SWIM_RELEASE:-reef}"
check_jobs "$jobs"

PROGRAMS=(ceph-osd ceph-objectstore-tool ceph-kvstore-tool ceph-swimstore-tool vtkv-tool)
OUT=$checkout/$release_build/deb

# logged COMMAND...: what it says is shown only if it fails.
logged() {
  if ! run "$@" >"$OUT/log" 2>&1; then
    tail -n 20 "$OUT/log" >&2
    die "$* failed: see $OUT/log"
  fi
}

# What is newer sorts behind, of our source and, for one commit, of Ceph's packages. Where something is not committed, the
# time is that of this build.
version_of_source() {
  local project time
  project=$(sed -n 's/^project(swimstore VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
  # No pipe: git would end by SIGPIPE where there is much to tell, and a dirty tree pass for a clean one.
  if [ -n "$(git -c 'safe.directory=*' status --porcelain 2>/dev/null)" ] ||
    ! time=$(TZ=UTC git -c 'safe.directory=*' log -1 --date=format-local:%Y%m%d%H%M%S --format=%cd.%h 2>/dev/null); then
    time=$(date -u +%Y%m%d%H%M%S)
  fi
  echo "$project+$time"
}

changelog() {
  cat <<CHANGELOG
ceph-osd-swimstore ($1) $release_root; urgency=medium

  * Built for Ceph's packages $2.
    /usr/share/doc/ceph-osd-swimstore/doc/changes.md tells what changed.

 -- $(sed -n 's/^Maintainer: //p' "$here/debian/control")  $(date -uR)
CHANGELOG
}

stage() {
  rm -rf "$OUT"
  mkdir -p "$OUT/source"
  cp -r README.md doc qa/debian "$OUT/source"
  cp -r src/os/swimstore/monitoring "$OUT/source"
  # The plug-in for ceph-volume.
  [ ! -d src/os/swimstore/deploy ] || cp -r src/os/swimstore/deploy "$OUT/source"
}

ask_lintian() {
  "$here/enter.sh" --scratch bash -c "set -e
    apt-get update && apt-get install -y --no-install-recommends lintian
    lintian --allow-root --tag-display-limit 0 --fail-on error,warning $1"
}

cd "$checkout"
check_host --setup "$release_set_up" --build "$release_build"
say "programs"
run "$here/enter.sh" cmake --preset "$release_preset" >/dev/null
export SWIM_NO_SETUP=1
run "$here/enter.sh" ninja -C "$release_build" -j "$jobs" "${PROGRAMS[@]}" >&2
say "package"
stage
ceph_version=$("$here/enter.sh" dpkg-query -W -f '${Version}' librados2)
version=$(version_of_source)+${ceph_version//-/.}
changelog "$version" "$ceph_version" >"$OUT/source/debian/changelog"
logged "$here/enter.sh" env -C "$OUT/source" dpkg-buildpackage -b -us -uc
package=$OUT/ceph-osd-swimstore_${version}_amd64.deb
[ -e "$package" ] || die "there is no $package: see $OUT/log"
if $lintian; then
  say "lintian"
  run ask_lintian "$package" >&2
fi
say "took $SECONDS s"
echo "${package#"$checkout/"}"
