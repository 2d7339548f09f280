#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every command and scenario of this folder starts, and says how it is used."""

import pathlib
import subprocess
import unittest

HERE = pathlib.Path(__file__).resolve().parent


class Help(unittest.TestCase):
  def test_each_command_says_how_it_is_used(self):
    scenarios = [path for path in HERE.glob("standalone/*.py") if "import scenario" in path.read_text()]
    commands = [HERE / "vstart.py", HERE / "inner_loop.py", HERE / "clang_checks.py", HERE / "build-deb.sh", *HERE.glob("run-*.sh"),
                *scenarios]
    self.assertGreater(len(commands), 20)
    for command in commands:
      with self.subTest(command=command.name):
        done = subprocess.run([command, "--help"], text=True, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("usage:", done.stdout)

  def test_the_inner_loop_of_what_is_not_there(self):
    done = subprocess.run([HERE / "inner_loop.py", "src/os/vtkv/no_such.cc"], text=True, capture_output=True, timeout=60)
    self.assertEqual(done.returncode, 2)
    self.assertIn("there is no src/os/vtkv/no_such.cc", done.stderr)


if __name__ == "__main__":
  unittest.main()
