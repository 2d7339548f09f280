#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of inner_loop.py: what it picks, what it refuses, and how it ends."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import inner_loop  # noqa: E402

TESTS = """\
TEST(Alone, Works) {}
TEST_F(WithAFixture, Works) {
  // TEST(Not, One) {}
}
TEST_P(Each, OfSeveral) {}
"""
FILTER = "Alone.Works:WithAFixture.Works:*/Each.OfSeveral/*:Each.OfSeveral/*"


class InnerLoop(unittest.TestCase):
  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.root = pathlib.Path(folder.name).resolve()

  def write(self, name, text=""):
    path = self.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path

  def program(self, name, script):
    path = self.write(name, "#!/bin/sh\n" + script)
    path.chmod(0o755)

  def loops(self, *names):
    return inner_loop.loops_of(self.root, [self.root / name for name in names])

  def assert_refused(self, words, *names):
    with self.assertRaises(inner_loop.UsageError) as caught:
      self.loops(*names)
    self.assertIn(words, str(caught.exception))

  def test_the_tests_of_a_source(self):
    self.write("src/os/vtkv/db/a_test.cc", TESTS)
    for name in ("src/os/vtkv/db/a.cc", "src/os/vtkv/db/a.h", "src/os/vtkv/db/a_test.cc"):
      if "_test" not in name:
        self.write(name)
      self.assertEqual(self.loops(name), [(name, "vtkv_tests", "vtkv", FILTER)])

  def test_the_program_of_a_source(self):
    for folder, program, limited_as in (("vtkv", "vtkv_tests", "vtkv"), ("vtkv/ceph", "vtkv_ceph_tests", "swimstore"),
                                        ("swimstore/object", "swimstore_tests", "swimstore")):
      name = f"src/os/{folder}/a_test.cc"
      self.write(name, TESTS)
      self.assertEqual(self.loops(name)[0][1:3], (program, limited_as))

  def test_the_source_of_middle_length(self):
    for name, length in (("a", 10), ("b", 30), ("c", 20), ("below/d", 1)):
      self.write(f"src/os/vtkv/db/{name}.cc", "x" * length)
      self.write(f"src/os/vtkv/db/{name}_test.cc", TESTS)
    self.write("src/os/vtkv/db/without_tests.cc", "x" * 25)
    self.assertEqual([loop.source for loop in self.loops("src/os/vtkv")],
                     ["src/os/vtkv/db/c.cc", "src/os/vtkv/db/below/d.cc"])
    self.assertEqual(self.loops(), self.loops("src/os/vtkv"))

  def test_what_is_no_source_with_tests(self):
    self.write("src/os/vtkv/db/a.cc")
    self.write("src/os/vtkv/db/b.txt")
    self.write("src/os/vtkv/db/c_test.cc", "int main() {}")
    self.write("src/os/other.cc")
    self.assert_refused("src/os/vtkv/x.cc", "src/os/vtkv/x.cc")
    self.assert_refused("no a_test.cc beside it", "src/os/vtkv/db/a.cc")
    self.assert_refused("neither a source nor a header", "src/os/vtkv/db/b.txt")
    self.assert_refused("c_test.cc has no tests", "src/os/vtkv/db/c_test.cc")
    self.assert_refused("is not below", "src/os/other.cc")
    self.assert_refused("is not below", "/dev/null")
    self.assert_refused("no source in this folder has tests", "src/os/vtkv/db")

  def run_with(self, limit_s, tests="echo '[  PASSED  ] 3 tests.'", ninja="exit 0"):
    """What one loop printed, and how many were bad."""
    self.write("src/os/vtkv/db/a_test.cc", TESTS)
    self.program("path/ninja", ninja)
    self.program("build/bin/vtkv_tests", tests)
    said = io.StringIO()
    path = f"{self.root}/path:/usr/bin:/bin"
    with contextlib.ExitStack() as meanwhile:
      meanwhile.enter_context(contextlib.redirect_stdout(said))
      meanwhile.enter_context(contextlib.redirect_stderr(io.StringIO()))
      meanwhile.enter_context(unittest.mock.patch.dict("os.environ", PATH=path))
      bad = inner_loop.run(self.root, self.root / "build", self.loops("src/os/vtkv/db/a_test.cc"),
                           {"vtkv": limit_s, "swimstore": 0})
    return said.getvalue(), bad

  def test_a_loop_within_its_limit(self):
    said, bad = self.run_with(100)
    self.assertEqual(bad, 0, said)
    self.assertRegex(said, r"a_test.cc( +\d+\.\d){6} +3\n")

  def test_a_loop_that_took_too_long(self):
    said, bad = self.run_with(0)
    self.assertEqual(bad, 1, said)
    self.assertIn("TOO LONG: more than 0 s of processor time", said)

  def test_processor_time_of_what_a_command_starts(self):
    busy = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"
    _, spent = inner_loop.spend(["sh", "-c", f"sh -c '{busy}'; exit 0"])
    self.assertGreater(spent.cpu_s, 0.05)

  def test_a_program_that_prints_any_byte(self):
    said, bad = self.run_with(100, tests=r"printf '\377\n[  PASSED  ] 1 test.\n'")
    self.assertEqual(bad, 0, said)

  def test_a_loop_that_fails(self):
    for said, bad in (self.run_with(100, tests="echo broken; exit 1"), self.run_with(100, tests="true"),
                      self.run_with(100, tests="echo '[  PASSED  ] 0 tests.'")):
      self.assertEqual(bad, 1, said)
      self.assertIn("FAILED", said)

  def test_a_build_that_fails(self):
    with self.assertRaises(inner_loop.Failed) as caught:
      self.run_with(100, ninja="echo no such header; exit 1")
    self.assertIn("no such header", str(caught.exception))


if __name__ == "__main__":
  unittest.main()
