#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What clang says of our sources, beside compiling them.

format: the layout, as .clang-format has it (--fix: makes it so). thread-safety: do locks guard what their annotations
(src/os/vtkv/util/thread_annotations.h) say? It looks at a source again when that, or a header that it includes, has
changed since it passed, here or, where there is ccache, in any build folder that shares its cache.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import tidy

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ["src/os/vtkv/", "src/os/swimstore/"]
FILES_AT_A_TIME = 32

# Of the compiler's own words: where its output goes, and what makes no difference here or is gcc's.
WITH_A_VALUE = ("-o", "-MF", "-MT", "-MQ")
LEFT_OUT = ("-c", "-M", "-O", "-W", "-g", "-fsanitize", "-fno-sanitize", "-fprofile", "-fcoverage")
PRECOMPILED = "/cmake_pch.hxx"  # by gcc; without it a source has to include what it uses

# Warnings about Ceph's headers and the like are others'.
RULES = """\
ninja_required_version = 1.5
rule thread-safety
  command = $launcher clang++ $words -fsyntax-only -Wno-everything -Wthread-safety -Werror -MD -MF $out.d -MT $out $in && touch $out
  depfile = $out.d
  deps = gcc
"""


# What names a lock, or what one guards (src/os/vtkv/util/mutex.h, thread_annotations.h; SwimStore's shared_mutex.h).
LOCK = re.compile(r"\b(?:Mutex|SharedMutex|MutexLock|SharedLock|ExclusiveLock|(?:PT_)?GUARDED_BY|REQUIRES(?:_SHARED)?)\b")
OUR_INCLUDE = re.compile(r'^#include "((?:vtkv|swimstore)/[^"]+)"', re.MULTILINE)


def words_of(entry):
  """What a command of compile_commands.json tells the compiler, but for its output."""
  words = iter(shlex.split(entry["command"]))
  kept = []
  for word in words:
    if word in WITH_A_VALUE:
      next(words)
    elif word == "-include":
      header = next(words)
      if not header.endswith(PRECOMPILED):
        kept += [word, header]
    elif word.startswith("-") and not word.startswith(LEFT_OUT):
      # A folder may be a word of its own.
      kept += [word, next(words)] if word in ("-isystem", "-I", "-D") else [word]
  return " ".join(map(shlex.quote, kept))


def sources(root, compile_commands, below=tuple(SOURCES)):
  """Of each of our sources: its words. One that is compiled twice is looked at once."""
  found = {}
  for entry in json.loads(compile_commands.read_text()):
    path = pathlib.Path(os.path.normpath(os.path.join(entry["directory"], entry["file"])))
    if path.is_relative_to(root) and str(path.relative_to(root)).startswith(below):
      found.setdefault(path, words_of(entry))
  return found


def has_locks(root, path):
  """Does a source that is no test name a lock, or a header of ours that it includes?"""
  text = path.read_text()
  headers = [root / "src/os" / name for name in OUR_INCLUDE.findall(text)]
  texts = [text, *(header.read_text() for header in headers if header.exists())]
  return not path.name.endswith("_test.cc") and any(map(LOCK.search, texts))


def escape(text):
  return text.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def edges(root, found):
  for path, words in sorted(found.items()):
    stamp = path.relative_to(root)
    words = words.replace("$", "$$")
    yield f"build {stamp}.checked: thread-safety {escape(str(path))}\n  words = {words}\n"


def run_thread_safety(root, compile_commands, below, locking, jobs):
  found = {path: words for path, words in sources(root, compile_commands, tuple(below)).items()
           if not locking or has_locks(root, path)}
  if not found:
    sys.exit(f"clang_checks.py: error: {compile_commands} compiles nothing below {' or '.join(below)}")
  # One for each choice of sources: two may run at a time.
  choice = "_".join(name.strip("/").replace("/", "-") for name in below)
  folder = compile_commands.resolve().parent / "clang_checks" / (choice + ("_locking" if locking else ""))
  folder.mkdir(parents=True, exist_ok=True)
  launcher = f"launcher = {shutil.which('ccache') or ''}\n"  # it keeps what has passed, also of -fsyntax-only
  (folder / "build.ninja").write_text(launcher + RULES + "".join(edges(root, found)))
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
  parser.add_argument("check", choices=("format", "thread-safety"))
  parser.add_argument("--root", type=pathlib.Path, default=CHECKOUT, help="the checkout (default: this one)")
  parser.add_argument("--compile-commands", type=pathlib.Path, metavar="FILE",
                      help="of a build folder (default: build/compile_commands.json)")
  parser.add_argument("--below", action="append", metavar="FOLDER", help="thread-safety: only sources of these folders")
  parser.add_argument("--locking", action="store_true",
                      help="thread-safety: no tests, and of the rest what names a lock, or includes a header of ours that does")
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
    status = run_thread_safety(root, compile_commands, args.below or SOURCES, args.locking, args.jobs)
  return 1 if status else 0


if __name__ == "__main__":
  sys.exit(main())
