#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Times the inner loop: a source has been edited; compile it, link its test program, run its tests.

SOURCE is a file with its tests beside it (x.cc, x.h or x_test.cc: the tests of x_test.cc), or a folder: of that and each
one below it the source of middle length that has tests. Without any, all folders of src/os. It takes what the build
folder needs, so run it where ninja runs:

  qa/enter.sh qa/inner_loop.py src/os/vtkv/db/db_open.cc
  qa/inner_loop.py --build build-vtkv src/os/vtkv

The build is brought up to date first. Then each source gets a new time stamp, and what takes it is compiled anew, past
the compiler cache. Exits 1 where a loop took more processor time than --vtkv-max or --swimstore-max, or failed.
"""

import argparse
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time
import typing

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
# The first that fits: sources below a folder, the program with their tests, whose limit.
PROGRAMS = (("src/os/vtkv/ceph/", "vtkv_ceph_tests", "swimstore"), ("src/os/vtkv/", "vtkv_tests", "vtkv"),
            ("src/os/swimstore/", "swimstore_tests", "swimstore"))
TEST = re.compile(r"^TEST(_[FP])?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
PASSED = re.compile(r"^\[  PASSED  \] (\d+) tests?\.", re.MULTILINE)


class UsageError(Exception):
  pass


class Failed(Exception):
  pass


class Loop(typing.NamedTuple):
  source: str  # below the checkout
  program: str
  limited_as: str
  test_filter: str


class Spent(typing.NamedTuple):
  cpu_s: float
  wall_s: float


def test_of(path):
  """The file with a source's tests."""
  return path if path.name.endswith("_test.cc") else path.with_name(path.stem + "_test.cc")


def filter_of(text):
  """What makes a test program run the tests of this file, and no others."""
  patterns = []
  for kind, suite, name in TEST.findall(text):
    # Of a parameterized suite: instantiated with a name before it, or with an empty one.
    patterns += [f"*/{suite}.{name}/*", f"{suite}.{name}/*"] if kind == "_P" else [f"{suite}.{name}"]
  return ":".join(patterns)


def typical(folder):
  """Of the folder and of each one below it: the source of middle length that has tests."""
  for place in sorted({path.parent for path in folder.rglob("*_test.cc")}):
    sources = [path for path in place.glob("*.cc") if path != test_of(path) and test_of(path).exists()]
    if sources:
      yield sorted(sources, key=lambda path: (path.stat().st_size, path.name))[len(sources) // 2]


def loop_of(root, path):
  name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
  for folder, program, limited_as in PROGRAMS:
    if name.startswith(folder):
      break
  else:
    raise UsageError(f"{name} is not below src/os/vtkv or src/os/swimstore")
  if path.suffix not in (".cc", ".h"):
    raise UsageError(f"{name} is neither a source nor a header")
  if not test_of(path).exists():
    raise UsageError(f"{name} has no tests of its own: there is no {test_of(path).name} beside it")
  test_filter = filter_of(test_of(path).read_text())
  if not test_filter:
    raise UsageError(f"{test_of(path).name} has no tests")
  return Loop(name, program, limited_as, test_filter)


def loops_of(root, names):
  found = []
  for name in names or [root / "src/os"]:
    path = pathlib.Path(name).resolve()
    if path.is_dir():
      sources = list(typical(path))
      if not sources:
        raise UsageError(f"{name}: no source in this folder has tests")
    elif path.exists():
      sources = [path]
    else:
      raise UsageError(f"there is no {name}")
    found += [loop_of(root, source) for source in sources]
  return found


def spend(command, **options):
  """What the command and all that it starts take."""
  before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
  done = subprocess.run(command, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                        stdin=subprocess.DEVNULL, **options)
  after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
  if done.returncode != 0:
    raise Failed(f"{' '.join(map(str, command[:2]))} failed:\n{done.stdout}")
  return done.stdout, Spent(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ended - begun)


def run_loop(root, build, loop):
  """What building took, what testing took, and how many tests passed."""
  os.utime(root / loop.source)
  _, built = spend(["ninja", "-C", build, loop.program], env=dict(os.environ, CCACHE_RECACHE="1"))
  with tempfile.TemporaryDirectory() as scratch:
    said, tested = spend([build / "bin" / loop.program, f"--gtest_filter={loop.test_filter}"], cwd=scratch)
  passed = PASSED.search(said)
  if not passed or passed.group(1) == "0":
    raise Failed(f"{loop.program} has none of the tests of {loop.source}")
  return built, tested, int(passed.group(1))


def run(root, build, loops, limits):
  """Prints a line per loop; how many failed or took too long."""
  for program in sorted({loop.program for loop in loops}):
    print(f"bringing {program} up to date", file=sys.stderr)
    spend(["ninja", "-C", build, program])
  width = max(len(loop.source) for loop in loops)
  print(f"{'':{width}}  {'build':^13}  {'tests':^13}  {'both':^13}")
  print(f"{'seconds':{width}}" + f"  {'cpu':>6} {'wall':>6}" * 3 + "  passed")
  bad = 0
  for loop in loops:
    try:
      built, tested, passed = run_loop(root, build, loop)
    except Failed as failure:
      print(f"{loop.source:{width}}  FAILED: {failure}", flush=True)
      bad += 1
      continue
    both = Spent(built.cpu_s + tested.cpu_s, built.wall_s + tested.wall_s)
    limit_s = limits[loop.limited_as]
    too_long = both.cpu_s > limit_s
    bad += too_long
    print(f"{loop.source:{width}}" + "".join(f"  {spent.cpu_s:6.1f} {spent.wall_s:6.1f}" for spent in (built, tested, both)) +
          f"  {passed:6}" + (f"  TOO LONG: more than {limit_s:g} s of processor time" if too_long else ""), flush=True)
  return bad


def main():
  what, _, how = __doc__.partition("\n\n")
  parser = argparse.ArgumentParser(description=what, epilog=how, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("sources", nargs="*", metavar="SOURCE", help="files or folders (default: src/os)")
  parser.add_argument("--build", type=pathlib.Path, default=CHECKOUT / "build", metavar="FOLDER",
                      help="where it is built (default: build)")
  parser.add_argument("--vtkv-max", type=float, default=30, metavar="SECONDS",
                      help="of processor time, for a source of the engine (default: %(default)s)")
  parser.add_argument("--swimstore-max", type=float, default=60, metavar="SECONDS",
                      help="for one that takes Ceph's headers (default: %(default)s)")
  args = parser.parse_args()
  try:
    loops = loops_of(CHECKOUT, args.sources)
    if not (args.build / "build.ninja").exists():
      raise UsageError(f"nothing is built in {args.build}: run cmake first")
  except UsageError as error:
    parser.error(str(error))
  try:
    bad = run(CHECKOUT, args.build.resolve(), loops, {"vtkv": args.vtkv_max, "swimstore": args.swimstore_max})
  except Failed as failure:
    sys.exit(f"inner_loop.py: error: {failure}")
  return 1 if bad else 0


if __name__ == "__main__":
  sys.exit(main())
