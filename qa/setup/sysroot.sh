#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes what the build and the tests run in: a Debian root with Ceph's packages,
# Ceph's source, and the tools. Resumes where it stopped.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../lib.sh
. ./mirror.sh
. ./packages.sh

usage() {
  cat <<USAGE
usage: qa/setup/sysroot.sh [WHAT...]

Makes, in SWIM_CACHE (now $SWIM_CACHE), what WHAT names:
  build      Debian 13 root, Ceph 18.2 packages and source, build tools and checkers (default)
  clang      build, and what clang needs besides for the fuzzer and coverage builds
  tentacle   root of Debian's next release with Ceph 20.2 packages and source, and build tools
  filestore  Debian 12 root with Ceph 16.2, the last one that has FileStore

Every step runs once and is kept; run again after a failure to go on from there.

environment:
  SWIM_CACHE   folder for roots, source and compiler cache (/var/cache/swimstore)
  SWIM_MIRROR  Debian mirror to use instead of the one this host's apt uses
USAGE
}

# --- the host ---------------------------------------------------------------

step_host_tools() {
  command -v apt-get >/dev/null ||
    { echo "set-up needs a Debian host (no apt-get here)"; return 1; }
  apt-get update
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    mmdebstrap util-linux debian-archive-keyring
}

# --- roots ------------------------------------------------------------------

# Programs run in the root, with the kernel's file systems and the cache folder in
# a private mount namespace, so that nothing stays mounted when this ends.
in_root() {
  local root=$1
  shift
  unshare --mount --propagation private bash -c '
    root=$1 cache=$2; shift 2
    mkdir -p "$root$cache" && mount --bind "$cache" "$root$cache"
    for fs in proc sys dev; do mount --rbind "/$fs" "$root/$fs"; done
    exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
      LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' in_root "$root" "$SWIM_CACHE" "$@"
}

# Nothing is marked trusted: signatures are checked with the archive's keyring.
step_base() {
  local suite=$1 root=$2 mirror options=() line
  mirror=$(debian_mirror)
  while IFS= read -r line; do
    [ -z "$line" ] || options+=("--aptopt=$line")
  done < <(apt_transport_options)
  rm -rf --one-file-system "$root"
  mmdebstrap --variant=apt --mode=root --components=main \
    --include=ca-certificates \
    --aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' \
    --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt=force-unsafe-io \
    "${options[@]}" "$suite" "$root" \
    "deb $mirror $suite main" "deb-src $mirror $suite main"
  # A mirror reached over https may have an authority that only the host knows.
  if [ -r /etc/ssl/certs/ca-certificates.crt ]; then
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  fi
  # No daemon starts because its package was installed.
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod 755 "$root/usr/sbin/policy-rc.d"
}

# An interrupted installation is completed first.
apt_in_root() {
  local root=$1
  shift
  in_root "$root" dpkg --configure -a
  in_root "$root" apt-get -o DPkg::Lock::Timeout=300 update
  in_root "$root" apt-get -o DPkg::Lock::Timeout=300 -y --no-install-recommends "$@"
  in_root "$root" apt-get clean
}

step_install() {
  local root=$1
  shift
  apt_in_root "$root" install "$@"
}

# --- Ceph's source -----------------------------------------------------------

# step_ceph_source ROOT VERSION FOLDER ARCHIVES
#
# The signed index names the files and their checksums; apt-helper checks them. The
# .dsc repeats what the index says, and not every mirror has it, so it is not asked
# for. ARCHIVES: "patched", with Debian's patches, because the packaged library has them;
# or "original", without, since not every mirror has them of Debian's next release.
step_ceph_source() {
  local root=$1 version=$2 ceph=$3 archives=$4 dir=/usr/src/ceph-source without='[.]dsc '
  [ "$archives" = patched ] || without='[.]dsc \|[.]debian[.]tar'
  rm -rf "$root$dir"
  mkdir -p "$root$dir/ceph"
  in_root "$root" sh -ec "cd $dir
    apt-get source --print-uris --only-source ceph=$version | tr -d \"'\" >list
    [ -s list ] || { echo 'Debian has another ceph than $version by now: remove $root, and run again'; exit 1; }
    grep ' SHA256:' list | grep -v '$without' | while read -r uri file size sum; do
      /usr/lib/apt/apt-helper download-file \"\$uri\" \"\$file\" \"\$sum\"
    done
    tar -xf ceph_*.orig.tar.* -C ceph --strip-components=1
    if [ $archives = patched ]; then
      tar -xf ceph_*.debian.tar.* -C ceph
      dpkg-source --before-build ceph
    fi"
  rm -rf "$ceph"
  mkdir -p "$ceph"
  mv "$root$dir/ceph" "$ceph/source"
  rm -rf "$root$dir"
  printf '%s\n' "$version" >"$ceph/version"
}

step_build_dep() {
  local root=$1 version=$2
  apt_in_root "$root" build-dep --only-source "ceph=$version"
}

# Only for acconfig.h and the generated option headers: nothing is built here.
step_ceph_configure() {
  local root=$1 ceph=$2 script=$3
  rm -rf "$ceph/build"
  printf '%s\n' "$script" >"$ceph/configure.sh"
  in_root "$root" bash "$ceph/configure.sh" "$ceph/source" "$ceph/build"
}

make_base() {
  if ! command -v mmdebstrap >/dev/null || ! command -v unshare >/dev/null; then
    rm -f "$STAMPS/host-tools"
    run_step host-tools "tools on this host" step_host_tools
  fi
  local suite=$1 root=$SWIM_CACHE/$1
  # A new root knows nothing of what was installed in the old one.
  if ! step_is_done "$suite-base" step_base "$suite" "$root" || [ ! -d "$root/usr" ]; then
    rm -f "$STAMPS/$suite"-*
    case $suite in
      trixie) rm -f "$STAMPS"/{build,clang}.complete ;;
      forky) rm -f "$STAMPS/tentacle.complete" ;;
      bookworm) rm -f "$STAMPS/filestore.complete" ;;
    esac
  fi
  run_step "$suite-base" "Debian $suite root" step_base "$suite" "$root"
}

# make_ceph SUITE FOLDER ARCHIVES: a release of Ceph as this Debian has it, and what builds with it.
make_ceph() {
  local suite=$1 root=$SWIM_CACHE/$1 ceph=$2 archives=$3 version
  make_base "$suite"
  run_step "$suite-tools" "build tools" step_install "$root" "${TOOL_PACKAGES[@]}"
  run_step "$suite-ceph" "Ceph packages" step_install "$root" "${CEPH_PACKAGES[@]}"
  run_step "$suite-clients" "users' programs" step_install "$root" "${CLIENT_PACKAGES[@]}"
  version=$(in_root "$root" dpkg-query -W -f '${Version}' ceph-osd)
  version=${version%+b[0-9]*}
  [ -e "$ceph/source/src/ceph_osd.cc" ] || rm -f "$STAMPS/$suite-ceph-source"
  run_step "$suite-ceph-source" "Ceph source $version" step_ceph_source "$root" "$version" "$ceph" "$archives"
  # A new source has no build folder.
  [ -e "$ceph/build/include/acconfig.h" ] || rm -f "$STAMPS/$suite-ceph-configure"
  run_step "$suite-build-dep" "Ceph build dependencies" step_build_dep "$root" "$version"
  run_step "$suite-ceph-configure" "Ceph configuration" step_ceph_configure \
    "$root" "$ceph" "$(<ceph_configure.sh)"
}

make_build() {
  make_ceph trixie "$SWIM_CACHE/ceph" patched
  run_step trixie-checkers "source checkers" step_install "$SWIM_CACHE/trixie" "${CHECKER_PACKAGES[@]}"
}

make_tentacle() {
  make_ceph forky "$SWIM_CACHE/ceph-tentacle" original
}

make_clang() {
  make_build
  run_step trixie-clang "clang" step_install "$SWIM_CACHE/trixie" "${CLANG_PACKAGES[@]}"
}

make_filestore() {
  make_base bookworm
  run_step bookworm-ceph "Ceph 16.2 packages" step_install \
    "$SWIM_CACHE/bookworm" "${FILESTORE_PACKAGES[@]}"
}

# What a user may have removed to save space is made again.
products_exist() {
  case $1 in
    build | clang) ceph_exists trixie ceph ;;
    tentacle) ceph_exists forky ceph-tentacle ;;
    filestore) [ -d "$SWIM_CACHE/bookworm/usr" ] ;;
  esac
}
ceph_exists() {
  [ -d "$SWIM_CACHE/$1/usr" ] && [ -e "$SWIM_CACHE/$2/build/include/acconfig.h" ] &&
    [ -e "$SWIM_CACHE/$2/source/src/ceph_osd.cc" ]
}

main() {
  local what
  case " $* " in *' --help '* | *' -h '*) usage; exit 0 ;; esac
  [ $# -gt 0 ] || set -- build
  for what in "$@"; do
    case $what in
      build | clang | tentacle | filestore) ;;
      *) die "there is nothing called '$what' to set up: use build, clang, tentacle or filestore (--help says more)" ;;
    esac
  done
  require_root
  # The usual case, and quick: these scripts have already done all this.
  local scripts
  scripts=$(cat ./*.sh | sha256sum | cut -d' ' -f1)
  for what in "$@"; do
    if [ "$(cat "$STAMPS/$what.complete" 2>/dev/null)" != "$scripts" ] ||
      ! products_exist "$what"; then
      ./check_host.sh --setup "$what" || exit 1
      lock_set_up
      "make_$what"
      echo "$scripts" >"$STAMPS/$what.complete"
    fi
  done
}

main "$@"
