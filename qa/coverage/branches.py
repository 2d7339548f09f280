#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Branch coverage of the functions that a list names, from a clang build's profile: see --help.

A branch is one outcome of one condition in our source: `a && b` has four. A macro's conditions count once for
each location that uses it, so every VTKV_RETURN_IF_ERROR is two. Instances of a template, and copies of an inline
function, are one source: a branch is covered when any of them took it.

Not counted, but for their number: conditions of an assertion (ASSERTIONS), whose failure aborts, and constant
conditions, as the `while (false)` of a macro.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

ASSERTIONS = {"VTKV_ASSERT", "INVARIANT", "ceph_assert"}
CONSTANTS = ("true", "false", "0", "1")
EXPANSION = 1  # the kind of a region of llvm-cov's export

WORD = re.compile(r"\w+")

Location = collections.namedtuple("Location", "path line column")


class Wanted:
  """The list: files, and of some of them only certain functions."""

  def __init__(self, text):
    self.functions = {}
    for line in text.splitlines():
      words = line.split("#")[0].split()
      if words:
        self.functions[words[0]] = [re.compile(r"(?<!\w)" + re.escape(name) + r"\(") for name in words[1:]]

  def files(self):
    return list(self.functions)

  def wants(self, path, function):
    patterns = self.functions.get(path)
    if patterns is None:
      return False
    return not patterns or any(pattern.search(function) for pattern in patterns)

  def unused(self, seen):
    """Names in the list that no function has: renamed since, or misspelt. `seen`: pairs of path and function."""
    for path, patterns in self.functions.items():
      names = [function for file, function in seen if file == path]
      if not names:
        yield path
      for pattern in patterns:
        if not any(pattern.search(name) for name in names):
          yield f"{path}: {pattern.pattern[7:-2]}"


class Sources:
  """Lines of the files, by the names that the build gave them."""

  def __init__(self, checkout):
    self.checkout = pathlib.Path(checkout)
    self.lines = {}

  def path(self, name):
    """As in the list; None for what lies elsewhere."""
    name = pathlib.Path(name)
    if name.is_absolute():
      return str(name.relative_to(self.checkout)) if name.is_relative_to(self.checkout) else None
    return str(name)

  def text(self, name, first_line, first_column, last_line, last_column):
    lines = self.lines.get(name)
    if lines is None:
      file = self.checkout / name
      lines = self.lines[name] = file.read_text().splitlines() if file.is_file() else []
    if last_line > len(lines):
      return ""
    if first_line == last_line:
      return lines[first_line - 1][first_column - 1:last_column - 1]
    return " ".join([lines[first_line - 1][first_column - 1:]] +
                    [line.strip() for line in lines[first_line:last_line - 1]] +
                    [lines[last_line - 1][:last_column - 1].strip()])


def expansions(function):
  """By the file id of what a macro's use expands to: where that use stands."""
  return {expanded_id: (file_id, line, column)
          for line, column, _, _, _, file_id, expanded_id, kind in function["regions"] if kind == EXPANSION}


class Collector:
  def __init__(self, wanted, sources):
    self.wanted = wanted
    self.sources = sources
    self.counts = {}  # by location, and location in the macro, if any: true count, false count, text
    self.left_out = collections.Counter()
    self.left_out_places = set()
    self.seen = set()

  def add(self, function, name):
    """`name`: the function's, demangled."""
    paths = [self.sources.path(file) for file in function["filenames"]]
    uses = expansions(function)
    roots = {path for file_id, path in enumerate(paths) if path is not None and file_id not in uses}
    if not any(self.wanted.wants(path, name) for path in roots):
      return
    self.seen.update((path, name) for path in roots)
    same = collections.Counter()
    for branch in function["branches"]:
      same[tuple(branch[:4] + branch[6:7])] += 1
      self.add_branch(branch, paths, uses, name, same[tuple(branch[:4] + branch[6:7])])

  # `ordinal`: of those at the same location, which a macro of a system header may have many of.
  def add_branch(self, branch, paths, uses, name, ordinal):
    first_line, first_column, last_line, last_column, true_count, false_count, file_id = branch[:7]
    text = self.sources.text(paths[file_id] or "", first_line, first_column, last_line, last_column)
    inner = (paths[file_id], first_line, first_column)
    location = Location(*inner)
    words = {self.word_at(location)}
    while file_id in uses:  # out of the macros
      file_id, line, column = uses[file_id]
      location = Location(paths[file_id], line, column)
      words.add(self.word_at(location))
    if not self.wanted.wants(location.path, name):
      return
    why = "assertion" if words & ASSERTIONS else "constant" if text in CONSTANTS else None
    key = (location, inner, ordinal)
    if why:
      if key not in self.left_out_places:
        self.left_out_places.add(key)
        self.left_out[why] += 2
      return
    counts = self.counts.setdefault(key, [0, 0, text if location == Location(*inner) else self.word_at(location)])
    counts[0] += true_count
    counts[1] += false_count

  # Macros of system headers have no region of their own: their conditions lie at the macro's name.
  def word_at(self, location):
    line, column = location.line, location.column
    found = WORD.match(self.sources.text(location.path or "", line, column, line, column + 40))
    return found.group() if found else ""

  def table(self):
    """Of each file: branches, covered."""
    rows = {path: [0, 0] for path in self.wanted.files()}
    for (location, _, _), (true_count, false_count, _) in self.counts.items():
      rows[location.path][0] += 2
      rows[location.path][1] += (true_count > 0) + (false_count > 0)
    return rows

  def uncovered(self):
    """Location, the outcome that never was, and the condition."""
    for (location, _, _), (true_count, false_count, text) in sorted(self.counts.items(), key=lambda item: item[0]):
      if true_count == 0 and false_count == 0:
        yield location, "never evaluated", text
      elif true_count == 0 or false_count == 0:
        yield location, "never true" if true_count == 0 else "never false", text


def percent(covered, branches):
  return 100.0 * covered / branches if branches else 100.0


def report(collector, sources, minimum, out=sys.stdout):
  """Prints everything; is the minimum reached?"""
  rows = collector.table()
  width = max(map(len, rows)) if rows else 0
  for path, (branches, covered) in rows.items():
    print(f"{path:{width}}  {branches:5}  {covered:5}  {percent(covered, branches):6.1f} %", file=out)
  branches = sum(row[0] for row in rows.values())
  covered = sum(row[1] for row in rows.values())
  reached = percent(covered, branches)
  print(f"{'all':{width}}  {branches:5}  {covered:5}  {reached:6.1f} %", file=out)
  for why, count in sorted(collector.left_out.items()):
    print(f"left out: {count} branches of conditions of the kind '{why}'", file=out)
  print("\nnot covered:", file=out)
  for location, what, text in collector.uncovered():
    line = sources.text(location.path, location.line, 1, location.line, 1000).strip()
    print(f"{location.path}:{location.line}: {what}: {text}  [{line}]", file=out)
  return reached >= minimum


def demangle(tool, names):
  # A function of internal linkage has its file before its name.
  bare = [re.split(r"[;:]", name)[-1] for name in names]
  run = subprocess.run([tool], input="\n".join(bare), capture_output=True, text=True, check=True)
  return dict(zip(names, run.stdout.splitlines()))


def export(tool, profile, objects):
  command = [tool, "export", "--skip-expansions", f"--instr-profile={profile}", objects[0]]
  for name in objects[1:]:
    command += ["--object", name]
  return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def objects_of(build, files):
  """The object files of these sources. Of a header: of the sources beside it."""
  found = []
  for name in files:
    pattern = f"CMakeFiles/*.dir/{name}.o"
    if not name.endswith(".h"):
      found += sorted(str(path) for path in pathlib.Path(build).glob(pattern))
  return found


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--build", required=True, help="the folder of the build")
  parser.add_argument("--profile", required=True, help="what llvm-profdata merged")
  parser.add_argument("--list", required=True, help="the files and functions that count")
  parser.add_argument("--minimum", type=float, default=95.0, help="in percent (%(default)s): exits 1 below it")
  arguments = parser.parse_args()

  wanted = Wanted(pathlib.Path(arguments.list).read_text())
  sources = Sources(pathlib.Path(__file__).resolve().parent.parent.parent)
  collector = Collector(wanted, sources)
  objects = objects_of(arguments.build, wanted.files())
  if not objects:
    sys.exit(f"branches.py: error: {arguments.build} holds no object of the listed files: build it first")
  functions = export("llvm-cov", arguments.profile, objects)["data"][0]["functions"]
  names = demangle("llvm-cxxfilt", [function["name"] for function in functions])
  for function in functions:
    collector.add(function, names[function["name"]])
  unused = list(wanted.unused(collector.seen))
  for name in unused:
    print(f"branches.py: error: {arguments.list} names what the build does not have: {name}", file=sys.stderr)
  if not report(collector, sources, arguments.minimum) or unused:
    sys.exit(1)


if __name__ == "__main__":
  main()
