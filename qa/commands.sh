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

# run COMMAND...: runs it in a process group of its own. Ctrl-C, SIGTERM and SIGHUP end that whole group, wait for what
# it tidies up, and end this command too.
run() {
  local status=0
  set -m
  "$@" </dev/null 8>&- &  # 8: see share_images
  set +m
  wait $! || status=$?
  return "$status"
}

interrupted() {
  trap '' INT TERM HUP
  local group
  for group in $(jobs -p); do
    say "interrupted: waiting for the end of what runs"
    kill -TERM -- "-$group" 2>/dev/null || true
    while kill -0 -- "-$group" 2>/dev/null; do
      sleep 0.1
    done
  done
  echo "${0##*/}: interrupted" >&2
  exit 130
}
trap interrupted INT TERM HUP

# share_images: devices' images go from one lane to the next. The last of those who share them deletes them at its end,
# unless its caller wants to keep them.
images=$(realpath -m "${SWIM_CACHE:-/var/cache/swimstore}")/images
share_images() {
  [ -z "${SWIM_KEEP_IMAGES:-}" ] || return 0
  export SWIM_KEEP_IMAGES=1
  mkdir -p "$images"
  exec 8>"$images/lock"
  flock --shared 8
  trap '! flock --exclusive --nonblock 8 || rm -f "$images"/*.img' EXIT
}

# check_host OPTION...: ends the command where this machine lacks what qa/setup/check_host.sh looks for.
check_host() { "$here/setup/check_host.sh" "$@" || exit 1; }

# run_ctest BUILD ARGUMENT...: ctest there, with $jobs of them at a time; adds to $passed and $failed.
run_ctest() {
  local build=$1 results=$checkout/$1/test-results.xml tests_passed=0 tests_failed=1
  shift
  say "tests"
  rm -f "$results"
  run "$here/enter.sh" ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error \
    --output-junit "$results" "$@" || true
  if [ -e "$results" ]; then
    read -r tests_passed tests_failed < <("$here/enter.sh" python3 "$here/cmake/count_tests.py" "$results")
  else
    say "ctest wrote no results"
  fi
  passed=$((passed + tests_passed))
  failed=$((failed + tests_failed))
}

# Ends the command with its last line.
finish() {
  say "took $SECONDS s"
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
  exit
}
