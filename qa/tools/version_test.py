#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""usage: version_test.py PROGRAM

Asks a program for its --version and compares what it says with CMakeLists.txt and doc/changes.md.
"""

import pathlib
import re
import subprocess
import sys
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ""


def history():
  """Of each format in the page's table: its versions, and which of them are refused."""
  formats = {}
  for line in (CHECKOUT / "doc/changes.md").read_text().splitlines():
    cells = [cell.strip() for cell in line.split("|")]
    if len(cells) == 7 and cells[2].isdigit():
      formats.setdefault(cells[1], {})[int(cells[2])] = cells[5].startswith("refused")
  return formats


class Version(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    cls.done = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, timeout=60)

  def test_name_and_version_come_first(self):
    project = re.search(r"^project\(.* VERSION ([\d.]+) ", (CHECKOUT / "CMakeLists.txt").read_text(), re.M)[1]
    self.assertEqual((self.done.returncode, self.done.stderr), (0, ""))
    self.assertEqual(self.done.stdout.splitlines()[0], f"{pathlib.Path(PROGRAM).name} {project}")
    sections = re.findall(r"^## ([\d.]+)$", (CHECKOUT / "doc/changes.md").read_text(), re.M)
    self.assertEqual(sections[0], re.sub(r"\.0$", "", project))

  def test_the_page_has_the_same_formats(self):
    known = history()
    lines = self.done.stdout.splitlines()[1:]
    self.assertGreaterEqual(len(lines), 2)
    for line in lines:
      name, made, oldest, newest = re.fullmatch(r"([a-z ]+): makes (\d+), reads (\d+)(?: to (\d+))?", line).groups()
      read = {version for version, refused in known[name].items() if not refused}
      self.assertEqual(set(range(int(oldest), int(newest or oldest) + 1)), read, line)
      self.assertEqual(int(made), max(known[name]), line)

  def test_the_programs_of_the_store_know_its_formats_too(self):
    names = {line.split(":")[0] for line in self.done.stdout.splitlines()[1:]}
    engine = pathlib.Path(PROGRAM).name.startswith("vtkv")
    self.assertEqual(names, {"manifest", "log segment"} if engine else set(history()))


if __name__ == "__main__":
  PROGRAM = sys.argv.pop(1)
  unittest.main()
