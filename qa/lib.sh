# SPDX-License-Identifier: LGPL-2.1-or-later
# What the shell scripts of this folder share: messages, what runs and how a signal ends it, steps of the set-up that
# run once, devices' images, tests. Sourced, never run.

SWIM_CACHE=$(realpath -m "${SWIM_CACHE:-/var/cache/swimstore}")

# --- messages -----------------------------------------------------------------

say() { printf '[%s] %s\n' "$(date +%H:%M:%S)" "$*" >&2; }

die() {
  printf '%s: error: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

fail_usage() {
  printf '%s: error: %s: see --help\n' "${0##*/}" "$*" >&2
  exit 2
}

# --- Ceph's release -------------------------------------------------------------

# SWIM_RELEASE says for which release of Ceph is built, and in which it runs. use_release RELEASE sets it, and what is of
# that release: its root (of qa/enter.sh), set-up (of qa/setup/sysroot.sh), CMake preset, and where that builds.
use_release() {
  case $1 in
    reef) release_root=trixie release_set_up=build release_preset=release release_build=build ;;
    tentacle) release_root=forky release_set_up=tentacle release_preset=tentacle release_build=build-tentacle ;;
    *) fail_usage "--release, or SWIM_RELEASE, is '$1': use reef or tentacle" ;;
  esac
  export SWIM_RELEASE=$1
}
# For what knows of one release only.
reef_only() {
  [ "${SWIM_RELEASE:-reef}" = reef ] || die "this is for Reef only: unset SWIM_RELEASE, which is '$SWIM_RELEASE'"
}

check_jobs() {
  case $1 in '' | *[!0-9]* | 0) fail_usage "--jobs needs a number of at least 1, not '$1'" ;; esac
}

# --- what runs ----------------------------------------------------------------

# Each in a process group of its own. After trap_signals, Ctrl-C, SIGTERM and SIGHUP end those groups, wait for what
# they tidy up, and end this script too.
trap_signals() { trap interrupted INT TERM HUP; }

# What ended and was not reaped does not count: where the first process of a container reaps nothing, it stays for ever.
group_lives() {
  local group=$1 stat line
  for stat in /proc/[0-9]*/stat; do
    read -r line 2>/dev/null <"$stat" || continue
    # Behind the name, which may hold anything: state, parent, group.
    set -- ${line##*) }
    [[ $1 = [ZX] || $3 != "$group" ]] || return 0
  done
  return 1
}

interrupted() {
  trap '' INT TERM HUP
  local group begun
  for group in $(jobs -p); do
    say "interrupted: waiting for the end of what runs"
    kill -TERM -- "-$group" 2>/dev/null || true
    begun=$SECONDS
    while group_lives "$group"; do
      [ $((SECONDS - begun)) -lt 120 ] || kill -KILL -- "-$group" 2>/dev/null || true
      sleep 0.1
    done
  done
  printf '%s: interrupted; finished steps of a set-up are kept\n' "${0##*/}" >&2
  exit 130
}

# start COMMAND...: does not wait; its process is $started.
start() {
  set -m
  "$@" </dev/null 8>&- &  # 8: see share_images
  set +m
  started=$!
}

# run COMMAND...
run() {
  local status=0
  start "$@"
  wait "$started" || status=$?
  return "$status"
}

# --- set-up -------------------------------------------------------------------

STAMPS="$SWIM_CACHE/stamps"
LOGS="$SWIM_CACHE/log"

require_root() {
  [ "$(id -u)" -eq 0 ] ||
    die "set-up makes a chroot and mounts into it: run it as root (sudo $0)"
}

# check_host OPTION...: ends the script where this machine lacks what qa/setup/check_host.sh looks for.
check_host() { "$here/setup/check_host.sh" "$@" || exit 1; }

# For programs that run on the host.
need_python() {
  command -v python3 >/dev/null && return
  [ "$(id -u)" -eq 0 ] || die "python3 is missing: install it, or run as root"
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3; } >&2 ||
    die "python3 is missing and could not be installed: install it"
}

# One set-up at a time per cache folder. The lock ends with the process.
lock_set_up() {
  mkdir -p "$STAMPS" "$LOGS"
  exec 9>"$SWIM_CACHE/.set-up.lock"
  if ! flock -n 9; then
    say "another set-up is running in $SWIM_CACHE: waiting for it"
    flock 9
  fi
}

# The key of a step is what it does: the text of its function, and its inputs.
step_key() {
  local fn=$1
  shift
  { declare -f "$fn"; printf '%s\n' "$@"; } | sha256sum | cut -d' ' -f1
}

step_is_done() {
  local stamp=$1 fn=$2
  shift 2
  [ -e "$STAMPS/$stamp" ] && [ "$(<"$STAMPS/$stamp")" = "$(step_key "$fn" "$@")" ]
}

# run_step STAMP WHAT FUNCTION [INPUT...]: runs FUNCTION INPUT... unless it has
# succeeded before with the same text and inputs. Its output goes to a log; a
# line with the elapsed time says that it is alive.
run_step() {
  local stamp=$1 what=$2 fn=$3
  shift 3
  if step_is_done "$stamp" "$fn" "$@"; then
    return 0
  fi
  local log="$LOGS/$stamp.log" start=$SECONDS job shown
  say "$what: started (log: $log)"
  rm -f "$STAMPS/$stamp"
  # The lock's descriptor stays here: nothing a step leaves behind may hold it.
  trap_signals
  set -m
  (set -euo pipefail; "$fn" "$@") >"$log" 2>&1 </dev/null 9>&- &
  job=$!
  set +m
  shown=$SECONDS
  while kill -0 "$job" 2>/dev/null; do
    sleep 0.2
    if [ $((SECONDS - shown)) -ge 10 ]; then
      say "$what: $((SECONDS - start)) s"
      shown=$SECONDS
    fi
  done
  if ! wait "$job"; then
    tail -n 15 "$log" >&2
    die "$what failed after $((SECONDS - start)) s: see $log, then run again (finished steps are kept)"
  fi
  trap - INT TERM HUP
  step_key "$fn" "$@" >"$STAMPS/$stamp.new"
  mv "$STAMPS/$stamp.new" "$STAMPS/$stamp"
  say "$what: done in $((SECONDS - start)) s"
}

# --- tests --------------------------------------------------------------------

# share_images: devices' images go from one scenario to the next. The last of those who share them deletes them at its
# end, unless its caller wants to keep them.
images=$SWIM_CACHE/images
kept_image_bytes() {
  { find "$images" -name '*.img' -printf '%b\n' 2>/dev/null || true; } |
    awk '{ sum += 512 * $1 } END { printf "%.0f\n", sum }'
}
share_images() {
  [ -z "${SWIM_KEEP_IMAGES:-}" ] || return 0
  export SWIM_KEEP_IMAGES=1
  mkdir -p "$images"
  exec 8>"$images/lock"
  flock --shared 8
  trap '! flock --exclusive --nonblock 8 || rm -f "$images"/*.img' EXIT
}

# ctest_in BUILD RESULTS JOBS ARGUMENT...: ctest there. What became of the tests is in the file RESULTS.
ctest_in() {
  local build=$1 results=$2 at_once=$3
  shift 3
  rm -f "$results"
  "$here/enter.sh" ctest --test-dir "$build" -j "$at_once" --output-on-failure --no-tests=error \
    --output-junit "$results" "$@"
}

passed=0
failed=0
failures=()  # a text for each: finish() tells of them once more

count_pass() { passed=$((passed + 1)); }

# count_failure NAME [LOG]: of the log, the checks that failed and the last lines are told at the end.
count_failure() {
  local shown=''
  failed=$((failed + 1))
  [ -z "${2:-}" ] || shown=$({ grep '^\[ *[0-9.]*\] FAIL ' "$2" | head -n 10; tail -n 15 "$2"; } | cut -c 1-400)
  failures+=("FAILED: $1${shown:+$'\n'$shown}")
}

# count_tests RESULTS
count_tests() {
  local told tests_passed tests_failed
  if [ ! -e "$1" ] || ! told=$("$here/enter.sh" python3 "$here/cmake/count_tests.py" "$1"); then
    count_failure "ctest: it wrote no results in $1"
    return
  fi
  read -r tests_passed tests_failed <<<"$told"
  passed=$((passed + tests_passed))
  failed=$((failed + tests_failed))
  [ "$tests_failed" -eq 0 ] || failures+=("${told#*$'\n'}")
}

# run_ctest BUILD ARGUMENT...: twice as many tests at a time as there are $jobs, since most wait for a disk or a clock.
run_ctest() {
  local build=$1 results=$checkout/$1/test-results.xml
  shift
  say "tests"
  run ctest_in "$build" "$results" $((2 * jobs)) "$@" || true
  count_tests "$results"
}

# Ends the script: who has only the end of what it said must find there what failed, and the last line counts.
finish() {
  say "took $SECONDS s"
  [ ${#failures[@]} -eq 0 ] || printf '%s\n' "${failures[@]}"
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
  exit
}
