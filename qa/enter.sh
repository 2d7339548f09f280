#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs a command in the sysroot: see usage().

set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
checkout=$(dirname "$here")
. "$here/lib.sh"

usage() {
  cat <<USAGE
usage: qa/enter.sh [--root trixie|forky|bookworm] [--scratch] [--bind DIR]... COMMAND [ARG...]

Runs COMMAND in the sysroot (made first if it is not there), as root, in the
current directory, or in the checkout if that one does not exist inside. The
checkout, SWIM_CACHE and /tmp are at the same paths inside as outside, with
everything mounted below them; --bind adds a folder, for example one that an OSD's
store is mounted in. The environment passes through.

What the command mounts is private to it and goes away with it, and no mount of the host
is changed. What the host mounts or unmounts meanwhile, the command sees where the mount
that holds it is shared (findmnt -o TARGET,PROPAGATION), as all are under systemd; the
scripts here make a shared mount of each folder that they mount something in.

  --root forky      Ceph 20.2 (Tentacle); trixie has Ceph 18.2 (Reef)
  --root bookworm   Ceph 16.2, the last release with FileStore
  --scratch         whatever the command changes in the root is forgotten at its end
  SWIM_CACHE        folder of the sysroots (/var/cache/swimstore)
  SWIM_RELEASE      reef (default) or tentacle: which root it is where --root names none
  SWIM_NO_SETUP=1   do not check whether the set-up is complete
USAGE
}

root_name=
scratch=
binds=()
while [ $# -gt 0 ]; do
  case $1 in
    --root)
      [ -n "${2:-}" ] || die "--root needs a name: trixie, forky or bookworm"
      root_name=$2
      shift 2
      ;;
    --scratch)
      scratch=1
      shift
      ;;
    --bind)
      [ $# -gt 1 ] && [ -d "$2" ] || die "--bind needs an existing folder, not '${2:-}'"
      binds+=("$(realpath "$2")")
      shift 2
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    --)
      shift
      break
      ;;
    -*) die "unknown option '$1': see --help" ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || die "no command given: see --help"

if [ -z "$root_name" ]; then
  use_release "${SWIM_RELEASE:-reef}"
  root_name=$release_root
fi
case $root_name in
  trixie) what=build ceph=ceph ;;
  forky) what=tentacle ceph=ceph-tentacle ;;
  bookworm) what=filestore ceph=ceph ;;
  *) die "there is no root called '$root_name': use trixie, forky or bookworm" ;;
esac
require_root
if [ -z "${SWIM_NO_SETUP:-}" ]; then
  "$here/setup/sysroot.sh" "$what"
fi
root=$SWIM_CACHE/$root_name
[ -d "$root/usr" ] || die "there is no sysroot in $root: run qa/setup/sysroot.sh $what"

# The cache comes first: the roots lie in it, and nothing is mounted in them yet.
binds=("$SWIM_CACHE" "$checkout" /tmp "${binds[@]}")
directory=$checkout
for dir in "${binds[@]}"; do
  case $PWD/ in "$dir"/*) directory=$PWD ;; esac
done

export SWIM_CACHE
export SWIM_CEPH_SOURCE=${SWIM_CEPH_SOURCE:-$SWIM_CACHE/$ceph/source}
export SWIM_CEPH_BUILD=${SWIM_CEPH_BUILD:-$SWIM_CACHE/$ceph/build}
export CCACHE_DIR=${CCACHE_DIR:-$SWIM_CACHE/ccache}
# Checkouts in different places share what they have compiled.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$checkout}
export CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-2G}
# What a precompiled header needs to be kept, and what is compiled with it; no source here looks at the time.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=true
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LANG=C.UTF-8
unset LD_PRELOAD LD_LIBRARY_PATH LC_ALL LANGUAGE
mkdir -p "$CCACHE_DIR"

exec unshare --mount --propagation slave bash -c '
  root=$1 scratch=$2 directory=$3 count=$4
  shift 4
  if [ -n "$scratch" ]; then
    # What is changed is kept in memory. The kernel has the name of the mount for whoever asks where it is.
    over=$root/mnt
    mount -t tmpfs swim-scratch "$over" && mkdir "$over"/{changed,work,root} &&
      mount -t overlay -o "lowerdir=$root,upperdir=$over/changed,workdir=$over/work" swim-scratch "$over/root" || exit 125
    root=$over/root
  fi
  for ((; count > 0; --count)); do
    mkdir -p "$root$1" && mount --rbind "$1" "$root$1" || exit 125
    mount --make-rslave "$root$1"
    shift
  done
  for fs in /proc /sys /dev; do
    mount --rbind "$fs" "$root$fs" && mount --make-rslave "$root$fs" || exit 125
  done
  for file in /etc/resolv.conf /etc/hosts; do
    if [ -e "$file" ]; then
      [ -e "$root$file" ] || : >"$root$file"
      mount --bind "$(realpath "$file")" "$root$file" || exit 125
    fi
  done
  exec chroot "$root" /usr/bin/env -C "$directory" -- "$@"' \
  enter "$root" "$scratch" "$directory" "${#binds[@]}" "${binds[@]}" "$@"
