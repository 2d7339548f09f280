#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# usage: in_scratch.sh PROGRAM [ARG...]
#
# Runs PROGRAM in an empty folder of its own below SWIM_SCRATCH (default: the
# folder of the program), and removes it when the program has succeeded.

set -eu
program=$(realpath "$1")
shift
scratch=${SWIM_SCRATCH:-$(dirname "$program")/../scratch}
mkdir -p "$scratch"
folder=$(mktemp -d "$(realpath "$scratch")/$(basename "$program").XXXXXX")
cd "$folder"
status=0
"$program" "$@" || status=$?
if [ "$status" -eq 0 ]; then
  cd /
  rm -rf "$folder"
else
  echo "in_scratch.sh: what it left behind is in $folder" >&2
fi
exit "$status"
