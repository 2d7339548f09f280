#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes the seeds of the fuzz targets anew, with the encoders of the programs in build/bin.
# Files in qa/fuzz/corpus that are not called seed_* were found by a fuzzer, and stay.

set -euo pipefail
checkout=$(dirname "$(dirname "$(dirname "$(realpath "${BASH_SOURCE[0]}")")")")

case "${1:-}" in
  '') ;;
  *)
    echo "usage: qa/fuzz/make_corpus.sh  (after a build of vtkv_tests and swimstore_tests)" >&2
    exit 2
    ;;
esac
cd "$checkout"
export SWIM_WRITE_CORPUS=1
for program in vtkv_tests swimstore_tests; do
  qa/enter.sh "build/bin/$program" --gtest_filter='*FuzzCorpusTest.KeptSeeds*'
done
