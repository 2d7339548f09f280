#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The test command: see usage().

set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
checkout=$(dirname "$here")
. "$here/lib.sh"
trap_signals

usage() {
  cat <<USAGE
usage: qa/run-make-check.sh [--preset NAME] [--release NAME] [--jobs N] [--tests REGEX] [--no-standalone]
       qa/run-make-check.sh --long [--jobs N]

Sets up what is missing, builds, and runs every test: unit tests, Ceph's object store
tests, the tidy checks, and the quick form of what qa/suites/quick lists (for Tentacle qa/suites/tentacle). The last
line counts: "N passed, N failed". Exits 1 if anything failed.

  --preset NAME     what to build: release (default), debug, asan, tsan
  --release NAME    of Ceph: reef (18.2, default) or tentacle (20.2: its own set-up and build)
  --jobs N          N compilations and 2 N tests at a time (default: the number of cores)
  --tests REGEX     only the tests whose name matches; implies --no-standalone
  --no-standalone   leave out what qa/suites/quick lists
  --long            in the place of all that, what qa/suites/long lists: scenarios that
                    take too long for each change, to be run before a release
  SWIM_CACHE        where set-up keeps its things (/var/cache/swimstore)
  SWIM_KEEP_IMAGES  set: keep the scenarios' devices, up to 24 GiB, for the next run
USAGE
}

preset=release
jobs=$(nproc)
tests=
standalone=true
long=false
while [ $# -gt 0 ]; do
  case $1 in
    --preset | --release | --jobs | --tests)
      [ $# -gt 1 ] || fail_usage "$1 needs a value"
      case $1 in
        --preset) preset=$2 ;;
        --release) use_release "$2" ;;
        --jobs) jobs=$2 ;;
        --tests)
          tests=$2
          standalone=false
          ;;
      esac
      shift
      ;;
    --no-standalone) standalone=false ;;
    --long) long=true ;;
    -h | --help)
      usage
      exit 0
      ;;
    *) fail_usage "unknown argument '$1'" ;;
  esac
  shift
done
use_release "${SWIM_RELEASE:-reef}"
case $SWIM_RELEASE:$preset in
  reef:release) build=$release_build suite=quick ;;
  tentacle:release) preset=$release_preset build=$release_build suite=tentacle ;;
  tentacle:*) fail_usage "--release tentacle has no preset but release" ;;
  reef:debug | reef:asan | reef:tsan) build=build-$preset suite=quick ;;
  *) fail_usage "there is no preset '$preset' to test: use release, debug, asan or tsan" ;;
esac
check_jobs "$jobs"
if $long; then
  [ "$build:$standalone" = build:true ] || fail_usage "--long takes no other option but --jobs, and Reef"
  suite=long
fi

# What the scenarios' devices take at a time, nine of 2 GiB, one of 6, and logs; less what was kept of them.
IMAGE_BYTES=$(((26 << 30) - $(kept_image_bytes)))
[ "$IMAGE_BYTES" -gt 0 ] || IMAGE_BYTES=0

cd "$checkout"

needs=(--setup "$release_set_up" --build "$build")
if $standalone; then
  needs+=(--loop --fuse --images "$IMAGE_BYTES")
fi
check_host "${needs[@]}"

say "set-up"
run "$here/setup/sysroot.sh" "$release_set_up"
export SWIM_NO_SETUP=1

say "build ($preset, $jobs jobs)"
if ! run "$here/enter.sh" cmake --preset "$preset" >"$build-configure.log" 2>&1; then
  cat "$build-configure.log"
  rm -f "$build-configure.log"
  count_failure "the configuration"
  finish
fi
mv "$build-configure.log" "$build/configure.log"
if ! run "$here/enter.sh" cmake --build "$build" -j "$jobs"; then
  count_failure "the build"
  finish
fi

filter=()
[ -z "$tests" ] || filter=(-R "$tests")
clang_later=false
if $standalone && [ $preset = release ] && ! $long; then  # the others have none of clang's checks
  clang_later=true
  filter+=(-LE clang)
fi
$long || run_ctest "$build" --timeout 900 "${filter[@]}"

# Where nothing is kept of them, clang's checks take both processors for minutes. Scenarios wait most of their time: so
# both at once, and what is checked gives way.
clang_results=$checkout/$build/clang-results.xml
check_with_clang() {
  renice -n 19 "$BASHPID" >/dev/null
  ctest_in "$build" "$clang_results" "$jobs" -L clang
}

# Scenarios wait for clusters most of their time: so three at once. What each says is shown when it ends.
declare -A running=()  # script by process
begin_scenario() {
  local log=$build/scenarios/${1##*/}.log
  say "$1 --quick, its log: $log"
  start "$checkout/$1" --quick >"$checkout/$log" 2>&1
  running[$started]=$1
}
end_scenario() {
  local process='' script log status=0
  wait -n -p process "${!running[@]}" || status=$?
  if [ -z "${process:-}" ]; then  # one that a signal ended, bash may not tell of in this way
    set -- "${!running[@]}"
    process=$1 status=0
    wait "$process" || status=$?
  fi
  script=${running[$process]}
  unset "running[$process]"
  log=$build/scenarios/${script##*/}.log
  cat "$log"
  if [ "$status" -eq 0 ]; then
    say "passed: $script --quick"
    count_pass
  else
    say "FAILED: $script --quick"
    count_failure "$script --quick (status $status)" "$log"
  fi
}
run_scenarios() {
  local script how most
  mkdir -p "$checkout/$build/scenarios"
  while read -r script how; do
    case $script in '' | '#'*) continue ;; esac
    most=1
    [ "$how" = alone ] || most=3
    while [ ${#running[@]} -ge $most ]; do end_scenario; done
    begin_scenario "$script"
    [ "$how" != alone ] || end_scenario
  done <"$here/suites/$suite"
  while [ ${#running[@]} -gt 0 ]; do end_scenario; done
}

if $standalone; then
  if $clang_later; then
    start check_with_clang >"$build/clang.log" 2>&1
    clang=$started
  fi
  # The scenarios are Python programs, on the host.
  need_python
  $long || share_images  # large ones are given back at once
  run_scenarios
  if $clang_later; then
    say "clang's checks, which ran beside the scenarios"
    wait "$clang" || true
    cat "$build/clang.log"
    count_tests "$clang_results"
  fi
fi
finish
