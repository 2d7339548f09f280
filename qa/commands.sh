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

# run_ctest BUILD ARGUMENT...: ctest there, with $jobs of them at a time; adds to $passed and $failed.
run_ctest() {
  local build=$1 results=$checkout/$1/test-results.xml tests_passed=0 tests_failed=1
  shift
  say "tests"
  rm -f "$results"
  "$here/enter.sh" ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error \
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
