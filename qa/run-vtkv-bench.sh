#!/usr/bin/env bash
# Measures vtkv beside other engines on a loop device: `--help` tells the options. Sets up what is missing itself.

set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")

if ! command -v python3 >/dev/null; then
  [ "$(id -u)" -eq 0 ] || { echo "run-vtkv-bench: python3 is missing: install it, or run as root" >&2; exit 1; }
  apt-get install -y --no-install-recommends python3 >&2
fi
exec python3 "$here/bench/vtkv_bench.py" "$@"
