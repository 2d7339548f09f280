#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Whether this machine can do what is about to be asked of it: see usage().

set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
checkout=$(realpath "$here/../..")
SWIM_CACHE=$(realpath -m "${SWIM_CACHE:-/var/cache/swimstore}")

usage() {
  cat <<USAGE
usage: qa/setup/check_host.sh [--loop] [--fuse] [--setup NAME] [--build FOLDER] [--images BYTES]

Says in one line each what is missing on this machine, and what helps, before anything is
made. Exits 1 if anything is. Always: Debian on amd64, root, mounts.

  --loop           loop devices
  --fuse           FUSE
  --setup NAME     room for what qa/setup/sysroot.sh NAME makes, unless it is there
  --build FOLDER   room for a build there in the checkout, unless one is there
  --images BYTES   room for devices' images of this size in all
  SWIM_CACHE       where set-up and images go (/var/cache/swimstore)
USAGE
}

setup_gib() { case $1 in build | tentacle) echo 7 ;; clang) echo 8 ;; filestore) echo 2 ;; esac; }
build_gib() { case $1 in build | build-tentacle) echo 2 ;; *) echo 4 ;; esac; }
GIB=1073741824

missing=0
miss() {
  printf '%s\n' "$*" >&2
  missing=1
}

# The nearest folder above a path that is there: its file system will hold it.
existing() {
  local path=$1
  while [ ! -d "$path" ]; do path=$(dirname "$path"); done
  echo "$path"
}

declare -A needed=() folder_of=()
need_room() {
  local folder bytes=$2 file_system
  folder=$(existing "$1")
  file_system=$(stat --format=%d "$folder")
  folder_of[$file_system]=${folder_of[$file_system]:-$folder}
  needed[$file_system]=$((${needed[$file_system]:-0} + bytes))
}

check_room() {
  local file_system free
  for file_system in "${!needed[@]}"; do
    free=$(($(stat --file-system --format='%a * %S' "${folder_of[$file_system]}")))
    if [ "$free" -lt "${needed[$file_system]}" ]; then
      miss "${folder_of[$file_system]}: $((needed[$file_system] / GIB + 1)) GiB are needed and $((free / GIB)) are free:" \
        "free some, or set SWIM_CACHE to a folder on a larger disk"
    fi
  done
}

check_machine() {
  local ID='' VERSION_ID=''
  case $(uname -m) in
    x86_64) ;;
    *) miss "this machine is $(uname -m): SwimStore is built and tested on amd64 (x86_64) only, use such a machine" ;;
  esac
  if [ -r /etc/os-release ]; then
    . /etc/os-release
  fi
  case $ID:${VERSION_ID:-none} in
    debian:12 | debian:13) ;;
    debian:*) echo "note: this is Debian ${VERSION_ID:-without a number}; 12 and 13 are tested" >&2 ;;
    *) miss "this is ${PRETTY_NAME:-no known distribution}: use a host, or a privileged container, with Debian 12 or 13" ;;
  esac
}

check_loop() {
  local file device
  file=$(mktemp)
  truncate --size=1M "$file"
  if device=$(losetup --find --show "$file" 2>/dev/null); then
    losetup --detach "$device"
  else
    miss "no loop device can be attached: run 'modprobe loop'; a container needs --privileged -v /dev:/dev"
  fi
  rm -f "$file"
}

check_fuse() {
  if [ ! -c /dev/fuse ] || ! { : <>/dev/fuse; } 2>/dev/null; then
    miss "/dev/fuse cannot be opened: run 'modprobe fuse'; a container needs --privileged, or --device /dev/fuse"
  fi
}

loop=false
fuse=false
while [ $# -gt 0 ]; do
  case $1 in
    --loop) loop=true ;;
    --fuse) fuse=true ;;
    --setup)
      # sysroot.sh itself says whether something newer has to be made: that takes the place of what is old.
      [ -e "$SWIM_CACHE/stamps/$2.complete" ] || need_room "$SWIM_CACHE" $(($(setup_gib "$2") * GIB))
      shift
      ;;
    --build)
      [ -e "$checkout/$2/bin" ] || need_room "$checkout" $(($(build_gib "$2") * GIB))
      shift
      ;;
    --images)
      need_room "$SWIM_CACHE" "$2"
      shift
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      echo "check_host.sh: unknown argument '$1': see --help" >&2
      exit 2
      ;;
  esac
  shift
done

check_machine
if [ "$(id -u)" -ne 0 ]; then
  miss "loop devices and mounts need root: run it with sudo"
else
  if ! unshare --mount true 2>/dev/null; then
    miss "nothing may be mounted here: run the container with --privileged"
  elif $loop; then
    check_loop
  fi
  ! $fuse || check_fuse
fi
check_room
exit "$missing"
