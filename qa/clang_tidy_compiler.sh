#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# clang-tidy in the place of a compiler that checks a source and makes nothing, so that ccache keeps what has passed
# (clang_checks.py). Takes a compiler's words, the source last. Which headers it looked at is clang++'s to write (-MD).
[ "$1" != --version ] || exec clang-tidy --version
for source; do :; done
clang++ -Wno-unused-command-line-argument "$@" -E -o /dev/null || exit 1
said=$(clang-tidy --quiet "$source" -- "$@" 2>&1) && exit 0
printf '%s\n' "$said" | grep -v ' warnings\{0,1\} generated\.$'
exit 1
