#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Measures vtkv beside other engines on a loop device: `--help` tells the options. Sets up what is missing itself.

set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$here/lib.sh"
need_python
exec python3 "$here/bench/vtkv_bench.py" "$@"
