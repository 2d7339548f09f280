#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What clang says of our sources, beside compiling them.

format: the layout, as .clang-format has it (--fix: makes it so). thread-safety: do locks guard what their annotations
(src/os/vtkv/util/thread_annotations.h) say? tidy: what .clang-tidy asks for, and thread-safety at once. The last two
look at a source again when that, or a header that it includes, has changed since it passed, here or, where there is
ccache, in any build folder that shares its cache.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from typing import NamedTuple

import tidy

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ["src/os/vtkv/", "src/os/swimstore/"]
FILES_AT_A_TIME = 32

# Of the compiler's own words: where its output goes, and what makes no difference here or is gcc's.
WITH_A_VALUE = ("-o", "-MF", "-MT", "-MQ")
LEFT_OUT = ("-c", "-M", "-O", "-W", "-g", "-fsanitize", "-fno-sanitize", "-fprofile", "-fcoverage")
PRECOMPILED = "/cmake_pch.hxx"  # by gcc, whose result is not clang's

# Warnings about Ceph's headers and the like are others'. Templates that nobody uses are not parsed where only locks are
# looked at, which would not look at them either. Or clang precompiles the headers that gcc has, and a source takes a
# third of the time; not both: of what it has left unparsed there, clang cannot parse members that are called as one of
# its traits, as libstdc++'s __is_signed. tidy goes without, so that a source has to include what it uses. ccache keeps
# clang-tidy's results by its configuration, too, and by what the headers say, not by what the preprocessor leaves of
# them: comments may name a check (NOLINT).
RULES = """\
ninja_required_version = 1.5
switches = -Wno-everything -Wthread-safety -Werror
rule precompile
  command = clang++ $words $switches -fpch-instantiate-templates -x c++-header -MD -MF $out.d -MT $out -o $out $in && $
    clang++ $words -w -x c++-header -E -P -dD $in | sha256sum >$out.sum
  depfile = $out.d
  deps = gcc
rule thread-safety
  command = $launcher clang++ $words $parsing -fsyntax-only $switches -MD -MF $out.d -MT $out $in && touch $out
  depfile = $out.d
  deps = gcc
rule tidy
  command = env CCACHE_COMPILERTYPE=clang CCACHE_DEPEND=1 CCACHE_COMPILERCHECK='%compiler% --version' $
    CCACHE_EXTRAFILES=$tidy:$root/.clang-tidy $launcher $tidy $words -fsyntax-only $switches -MD -MF $out.d -MT $out $in && touch $out
  depfile = $out.d
  deps = gcc
"""
TIDY = CHECKOUT / "qa/clang_tidy_compiler.sh"

# What names a lock, or what one guards (src/os/vtkv/util/mutex.h, thread_annotations.h; SwimStore's shared_mutex.h).
LOCK = re.compile(r"\b(?:Mutex|SharedMutex|MutexLock|SharedLock|ExclusiveLock|(?:PT_)?GUARDED_BY|REQUIRES(?:_SHARED)?)\b")
# The members that a lock guards, and the functions that want it held.
GUARDED = re.compile(r"(\w+)\s+(?:PT_)?GUARDED_BY\(|(\w+)\([^;{}]*?\)[\s\w]*?\bREQUIRES(?:_SHARED)?\(")
OUR_INCLUDE = re.compile(r'^#include "((?:vtkv|swimstore)/[^"]+)"', re.MULTILINE)


class Words(NamedTuple):
  """What a command of compile_commands.json tells the compiler, but for its output."""
  words: str
  precompiled: str = ""  # the header that gcc has precompiled


def words_of(entry):
  words = iter(shlex.split(entry["command"]))
  kept, precompiled = [], ""
  for word in words:
    if word in WITH_A_VALUE:
      next(words)
    elif word == "-include":
      header = next(words)
      if header.endswith(PRECOMPILED):
        precompiled = header
      else:
        kept += [word, header]
    elif word.startswith("-") and not word.startswith(LEFT_OUT):
      # A folder may be a word of its own.
      kept += [word, next(words)] if word in ("-isystem", "-I", "-D") else [word]
  return Words(" ".join(map(shlex.quote, kept)), precompiled)


def sources(root, compile_commands, below=tuple(SOURCES)):
  """Of each of our sources: its words. One that is compiled twice is looked at once."""
  found = {}
  for entry in json.loads(compile_commands.read_text()):
    path = pathlib.Path(os.path.normpath(os.path.join(entry["directory"], entry["file"])))
    if path.is_relative_to(root) and str(path.relative_to(root)).startswith(below):
      found.setdefault(path, words_of(entry))
  return found


class Includes:
  """Which headers of ours the sources include."""

  def __init__(self, root):
    self._folder = root / "src/os"
    self._texts = {}

  def text(self, path):
    if path not in self._texts:
      self._texts[path] = path.read_text() if path.exists() else ""
    return self._texts[path]

  def direct(self, path):
    return {self._folder / name for name in OUR_INCLUDE.findall(self.text(path))}

  def all(self, path):
    """Also those that headers include."""
    found, left = set(), [path]
    while left:
      new = self.direct(left.pop()) - found
      found |= new
      left += new
    return found


def with_locks(root, paths):
  """Of these sources those that locks matter to.

  They name one, or what one guards, or include a header that does. A header that only other headers include is looked
  at in one of the sources that it gets to.
  """
  includes = Includes(root)
  reached = {path: {header for header in includes.all(path) if LOCK.search(includes.text(header))} for path in paths}
  guarded = {header: {name for pair in GUARDED.findall(includes.text(header)) for name in pair if name}
             for headers in reached.values() for header in headers}

  def matters(path):
    words = set(re.findall(r"\w+", includes.text(path)))
    return (LOCK.search(includes.text(path)) or reached[path] & includes.direct(path) or
            any(guarded[header] & words for header in reached[path]))

  chosen = set(filter(matters, paths))
  looked_at = set().union(*(reached[path] for path in chosen))
  for path in sorted(paths):
    if reached[path] - looked_at:
      chosen.add(path)
      looked_at |= reached[path]
  return chosen


def escape(text):
  return text.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def edges(root, check, found):
  precompiled = {}
  for path, told in sorted(found.items()):
    stamp = path.relative_to(root)
    words = told.words.replace("$", "$$")
    uses, parsing = " | $root/.clang-tidy $tidy" if check == "tidy" else "", "-fdelayed-template-parsing"
    if check == "thread-safety" and told.precompiled:
      if told not in precompiled:
        precompiled[told] = f"{len(precompiled)}.pch"
        yield f"build {precompiled[told]}: precompile {escape(told.precompiled)}\n  words = {words}\n"
      uses = f" | {precompiled[told]}"
      parsing = f"-include-pch {precompiled[told]}"
    yield f"build {stamp}.checked: {check} {escape(str(path))}{uses}\n  words = {words}\n  parsing = {parsing}\n"


def is_test(path):
  return path.name.endswith("_test.cc")


def run_over_sources(root, check, compile_commands, below, not_below, which, jobs):
  found = {path: words for path, words in sources(root, compile_commands, tuple(below)).items()
           if not str(path.relative_to(root)).startswith(tuple(not_below))}
  chosen = {path for path in found if which == "all" or is_test(path) == (which == "tests")}
  if which == "locking":
    chosen = with_locks(root, chosen)
  if not chosen:
    sys.exit(f"clang_checks.py: error: {compile_commands} compiles nothing of that kind below {' or '.join(below)}")
  # One for each choice of sources: two may run at a time.
  choice = hashlib.sha256("\0".join([check, which, *below, "", *not_below]).encode()).hexdigest()[:16]
  folder = compile_commands.resolve().parent / "clang_checks" / choice
  folder.mkdir(parents=True, exist_ok=True)
  variables = {"launcher": shutil.which("ccache") or "",  # it keeps what has passed, also of -fsyntax-only
               "tidy": TIDY, "root": root}
  (folder / "build.ninja").write_text("".join([
    *(f"{name} = {value}\n" for name, value in variables.items()), RULES,
    *edges(root, check, {path: found[path] for path in chosen})]))
  return subprocess.run(["ninja", "-C", folder, "--quiet", "-k0", f"-j{jobs}"]).returncode


def run_format(root, jobs, fix):
  names = tidy.Tree(root).matching("*.cc", "*.h")
  parts = [names[i:i + FILES_AT_A_TIME] for i in range(0, len(names), FILES_AT_A_TIME)]
  words = ["clang-format", "-i"] if fix else ["clang-format", "--dry-run", "-Werror"]
  with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
    return max(pool.map(lambda part: subprocess.run([*words, *part], cwd=root).returncode, parts), default=0)


def main():
  what, _, how = __doc__.partition("\n\n")
  parser = argparse.ArgumentParser(description=what, epilog=how)
  parser.add_argument("check", choices=("format", "thread-safety", "tidy"))
  parser.add_argument("below", nargs="*", default=SOURCES, metavar="PATH",
                      help="thread-safety, tidy: only these sources, or those of these folders")
  parser.add_argument("--not-below", action="append", default=[], metavar="PATH", help="but not these")
  parser.add_argument("--root", type=pathlib.Path, default=CHECKOUT, help="the checkout (default: this one)")
  parser.add_argument("--compile-commands", type=pathlib.Path, metavar="FILE",
                      help="of a build folder (default: build/compile_commands.json)")
  parser.add_argument("--which", choices=("all", "product", "tests", "locking"), default="all",
                      help="thread-safety, tidy: tests (x_test.cc), all others, or of these those that name a lock or "
                           "what one guards, or include a header that does")
  parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="at a time (default: the number of cores)")
  parser.add_argument("--fix", action="store_true", help="format: change the files")
  args = parser.parse_args()
  root = args.root.resolve()
  if args.check == "format":
    status = run_format(root, args.jobs, args.fix)
  else:
    compile_commands = args.compile_commands or root / "build/compile_commands.json"
    if not compile_commands.exists():
      sys.exit(f"clang_checks.py: error: there is no {compile_commands}: run cmake first")
    status = run_over_sources(root, args.check, compile_commands, args.below, args.not_below, args.which, args.jobs)
  return 1 if status else 0


if __name__ == "__main__":
  sys.exit(main())
