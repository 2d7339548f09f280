#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""usage: vtkv_example_test.py VTKV_EXAMPLE

The first minute that README.md promises: the example prints what the page says, and the page shows its own lines.
"""

import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

import page_commands

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = (CHECKOUT / "README.md").read_text()
SOURCE = CHECKOUT / "src/os/vtkv/examples/vtkv_example.cc"
EXAMPLE = ""


class VtkvExample(unittest.TestCase):
  def setUp(self):
    folder = tempfile.TemporaryDirectory(dir=".")
    self.addCleanup(folder.cleanup)
    self.database = pathlib.Path(folder.name) / "fruit"

  def run_example(self, *words):
    return subprocess.run([EXAMPLE, *words], capture_output=True, text=True, timeout=60)

  def test_it_prints_what_the_page_says(self):
    shown = [command for block in page_commands.blocks("README.md", PAGE) for command in page_commands.commands(block)
             if command.text.split()[0].endswith("/vtkv_example")]
    self.assertEqual(len(shown), 1, shown)
    done = self.run_example(self.database)
    self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", shown[0].printed))

  def test_the_page_shows_lines_of_the_example(self):
    shown = [block.text for block in page_commands.blocks("README.md", PAGE) if block.kind == "cpp"]
    self.assertEqual(len(shown), 1, shown)
    self.assertIn(textwrap.indent(shown[0], "  "), SOURCE.read_text())

  def test_it_leaves_a_database_alone_that_is_there(self):
    self.run_example(self.database)
    done = self.run_example(self.database)
    self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done.stderr)
    self.assertIn("holds a database already", done.stderr)

  def test_without_a_directory_it_says_how_it_is_called(self):
    done = self.run_example()
    self.assertEqual((done.returncode, done.stdout), (2, ""))
    self.assertIn("usage:", done.stderr)


if __name__ == "__main__":
  if len(sys.argv) < 2:
    sys.exit(__doc__.splitlines()[0])
  EXAMPLE = pathlib.Path(sys.argv.pop(1)).resolve()
  unittest.main()
