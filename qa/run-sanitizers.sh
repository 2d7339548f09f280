#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The tests under sanitizers: see usage().

set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
checkout=$(dirname "$here")
. "$here/lib.sh"
trap_signals

usage() {
  cat <<USAGE
usage: qa/run-sanitizers.sh [--thread] [--jobs N] [--time SECONDS] [PROGRAM]...

Builds each PROGRAM with AddressSanitizer and UBSan in our own code (preset asan) and
runs its tests, each in a process of its own; a report, or a leak, fails the test. The
last line counts: "N passed, N failed". Exits 1 if anything failed.

  PROGRAM          vtkv_tests, vtkv_ceph_tests, swimstore_tests, ceph_test_objectstore
                   or swimstore_crash_explorer (default: all of them)
  --thread         with ThreadSanitizer (preset tsan) instead, and without what runs for long
                   and has one thread: the crash explorer, if it is not named, and tests of
                   crashes, failures and damage in the simulator; qa/tsan.supp has the false
                   alarms
  --jobs N         N compilations and 2 N tests at a time (default: the number of cores)
  --time SECONDS   of the crash explorer, for each of its stacks on each of four kinds of
                   file system (default 25)
  SWIM_CACHE       where set-up keeps its things (/var/cache/swimstore)
USAGE
}

preset=asan
jobs=$(nproc)
time=25
programs=()
while [ $# -gt 0 ]; do
  case $1 in
    --thread) preset=tsan ;;
    --jobs | --time)
      [ $# -gt 1 ] || fail_usage "$1 needs a value"
      case $1 in
        --jobs) jobs=$2 ;;
        --time) time=$2 ;;
      esac
      shift
      ;;
    vtkv_tests | vtkv_ceph_tests | swimstore_tests | ceph_test_objectstore | swimstore_crash_explorer)
      programs+=("$1")
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *) fail_usage "unknown argument '$1'" ;;
  esac
  shift
done
reef_only
check_jobs "$jobs"
case $time in '' | *[!0-9]* | 0) fail_usage "--time needs a number of seconds, not '$time'" ;; esac
if [ ${#programs[@]} -eq 0 ]; then
  programs=(vtkv_tests vtkv_ceph_tests swimstore_tests ceph_test_objectstore)
  [ $preset = tsan ] || programs+=(swimstore_crash_explorer)
fi

cd "$checkout"
build=build-$preset
check_host --setup build --build "$build"
say "set-up"
run "$here/setup/sysroot.sh" build
export SWIM_NO_SETUP=1
say "build ($jobs jobs)"
if ! run "$here/enter.sh" cmake --preset "$preset" >/dev/null ||
  ! run "$here/enter.sh" cmake --build "$build" -j "$jobs" --target "${programs[@]}"; then
  count_failure "the build"
  finish
fi

export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=suppressions=$here/tsan.supp:second_deadlock_stack=1

explore() {
  local stack profile
  for stack in vtkv cube store two-file-systems compressed cubes; do
    for profile in ext4 xfs btrfs weakest; do
      say "crash explorer: $stack, $profile"
      if run "$here/enter.sh" "$build/bin/swimstore_crash_explorer" --stack "$stack" --profile "$profile" --time "$time"; then
        count_pass
      else
        count_failure "crash explorer: $stack, $profile"
      fi
    done
  done
}

# Names of tests begin with these. Left out: the long searches for a crash state that tells of a broken rule, which
# judge the tests, and stores other than ours.
prefixes=
left_out='KvMutationTest|Notices|^store_test:ObjectStore/'
[ $preset = asan ] || left_out+='|Crash|Fault|Fuzz|Corruption|Damage|Repair|LogTrace|ModelTest'
for program in "${programs[@]}"; do
  case $program in
    swimstore_crash_explorer) explore ;;
    ceph_test_objectstore) prefixes+='|store_test' ;;
    *) prefixes+="|$program" ;;
  esac
done
[ -z "$prefixes" ] || run_ctest "$build" -R "^(${prefixes#|}):" -E "$left_out"
finish
