# Shared by the commands of this folder: messages and what their arguments may be.
# Sourced, never run.

say() { printf '[%s] %s\n' "$(date +%H:%M:%S)" "$*"; }

fail_usage() {
  echo "${0##*/}: error: $1: see --help" >&2
  exit 2
}

check_jobs() {
  case $1 in '' | *[!0-9]* | 0) fail_usage "--jobs needs a number of at least 1, not '$1'" ;; esac
}
