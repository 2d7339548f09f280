#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The branch coverage of log recovery, replay and fsck: see usage().

set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
checkout=$(dirname "$here")
. "$here/lib.sh"
trap_signals

usage() {
  cat <<USAGE
usage: qa/run-coverage.sh [--jobs N] [--minimum PERCENT] [--report]

Builds vtkv_tests and swimstore_tests with clang, counting branches (preset
coverage), runs them, and prints for each file in qa/coverage/recovery_files how many
of its branches were taken, then those that were not. Exits 1 if a test failed, or
if fewer than PERCENT of all were taken.

  --jobs N           parallel compilations (default: the number of cores)
  --minimum PERCENT  default 95
  --report           print the table of the last run again: nothing is built or run
  SWIM_CACHE         where set-up keeps its things (/var/cache/swimstore)
USAGE
}

jobs=$(nproc)
minimum=95
report=false
while [ $# -gt 0 ]; do
  case $1 in
    --jobs | --minimum)
      [ $# -gt 1 ] || fail_usage "$1 needs a value"
      case $1 in
        --jobs) jobs=$2 ;;
        --minimum) minimum=$2 ;;
      esac
      shift
      ;;
    --report) report=true ;;
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
case $minimum in '' | *[!0-9.]*) fail_usage "--minimum needs a percentage, not '$minimum'" ;; esac

cd "$checkout"
build=build-coverage
profiles=$build/profiles
failed=0

# Left out: threads, random workloads and the benchmarks' parts, which say nothing here, and the long search for a crash
# state that notices each mutation (LogRecoveryTest shows what those of recovery do).
vtkv_filter='-Workload*:BenchResult*:Distribution*:KeySpace*:*Threads*:KvMutationTest*'
swimstore_filter='-StoreModelTest*:*Notices*'

# A process for each of a program's suites, so that one that aborts fails alone.
run_tests() {
  local program=$1 filter=$2 suite failed=0
  mkdir -p "$profiles" "$build/scratch"
  while IFS= read -r suite; do
    if ! (cd "$build/scratch" && LLVM_PROFILE_FILE="$checkout/$profiles/$program-%p.profraw" \
      "$here/enter.sh" "$checkout/$build/bin/$program" --gtest_brief=1 \
      --gtest_filter="$suite*:$filter" </dev/null >"$checkout/$build/scratch/log" 2>&1); then
      cat "$build/scratch/log"
      say "FAILED: $program, $suite"
      failed=1
    fi
  done < <(LLVM_PROFILE_FILE=/dev/null "$here/enter.sh" "$checkout/$build/bin/$program" --gtest_list_tests --gtest_filter="$filter" |
    sed -n 's/^\([A-Za-z][^ ]*\.\).*/\1/p')
  return "$failed"
}

if ! $report; then
  check_host --setup clang --build "$build"
  say "set-up"
  run "$here/setup/sysroot.sh" clang
fi
export SWIM_NO_SETUP=1
if ! $report; then
  say "build ($jobs jobs)"
  run "$here/enter.sh" cmake --preset coverage >/dev/null
  run "$here/enter.sh" cmake --build "$build" -j "$jobs" --target vtkv_tests swimstore_tests
  say "tests"
  rm -rf "$profiles"
  run run_tests vtkv_tests "$vtkv_filter" || failed=1
  run run_tests swimstore_tests "$swimstore_filter" || failed=1
  "$here/enter.sh" sh -c "llvm-profdata merge -sparse $profiles/*.profraw -o $profiles/merged"
  rm -f "$profiles"/*.profraw
fi
[ -e "$profiles/merged" ] || fail_usage "there is no run to report of"
"$here/enter.sh" python3 "$here/coverage/branches.py" --build "$build" --profile "$profiles/merged" \
  --list "$here/coverage/recovery_files" --minimum "$minimum" || failed=1
exit "$failed"
