#!/usr/bin/env bash
# Ceph's own standalone tests against this OSD: `--help` tells the options. Sets up what is missing itself.

set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")

if ! command -v python3 >/dev/null; then
  [ "$(id -u)" -eq 0 ] || { echo "run-ceph-standalone: python3 is missing: install it, or run as root" >&2; exit 1; }
  apt-get install -y --no-install-recommends python3 >&2
fi
exec python3 "$here/ceph/standalone.py" "$@"
