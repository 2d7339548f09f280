#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of check_symbols.py: on nm's text, and on a real program and library."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import check_symbols  # noqa: E402


class StrongSymbols(unittest.TestCase):
  def test_takes_functions_and_data_and_leaves_weak_ones(self):
    text = ("0000000000001000 T function\n0000000000002000 B data\n"
            "0000000000003000 W inline_function\n0000000000004000 V vtable\n"
            "0000000000005000 t local\n")
    self.assertEqual(check_symbols.strong_symbols(text), {"function", "data"})

  def test_takes_a_versioned_name_without_its_version(self):
    self.assertEqual(check_symbols.strong_symbols("0000000000001000 T name@@V1\n"), {"name"})

  def test_the_meant_override_is_no_clash(self):
    self.assertEqual(check_symbols.clashes({"ceph_options", "a"}, {"ceph_options", "b"}), set())

  def test_any_other_is(self):
    self.assertEqual(check_symbols.clashes({"a", "b"}, {"b", "c"}), {"b"})


class RealProgram(unittest.TestCase):
  def setUp(self):
    self.folder = tempfile.TemporaryDirectory()
    self.addCleanup(self.folder.cleanup)
    self.path = pathlib.Path(self.folder.name)

  def build(self, name, text, *switches):
    source = self.path / f"{name}.cc"
    source.write_text(text)
    subprocess.run(["c++", "-o", self.path / name, source, *switches], check=True)
    return str(self.path / name)

  def check(self, program, library):
    return subprocess.run([sys.executable, HERE / "check_symbols.py", program, library],
                          capture_output=True, text=True)

  def test_refuses_a_second_copy_and_names_it(self):
    library = self.build("library.so", "int singleton() { return 1; }", "-shared", "-fPIC")
    program = self.build("program", "int singleton() { return 2; }\nint main() {}", "-rdynamic")
    done = self.check(program, library)
    self.assertEqual(done.returncode, 1)
    self.assertIn("singleton()", done.stderr)

  def test_accepts_data_that_the_linker_put_into_the_program(self):
    library = self.build("library.so", "int table[4] = {1};", "-shared", "-fPIC")
    program = self.build("program", "extern int table[4];\nint main() { return table[1]; }",
                         "-fno-pic", "-no-pie", "-rdynamic", library)
    self.assertIn("table", check_symbols.defined_in(program, False))
    self.assertEqual(self.check(program, library).returncode, 0)

  def test_accepts_a_program_of_its_own(self):
    library = self.build("library.so", "int singleton() { return 1; }", "-shared", "-fPIC")
    program = self.build("program", "int other() { return 2; }\nint main() {}", "-rdynamic")
    self.assertEqual(self.check(program, library).returncode, 0)


if __name__ == "__main__":
  unittest.main()
