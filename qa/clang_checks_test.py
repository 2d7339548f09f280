#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of clang_checks.py: each check finds its fault, and is silent without it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import clang_checks  # noqa: E402

SOURCE = """\
#include "vtkv/counter.h"

int vtkv::Counter::value() {
  %s
  return m_value;
}
"""
HEADER = """\
#include "vtkv/util/mutex.h"

namespace vtkv {

class Counter {
 public:
  int value();

 private:
  Mutex m_lock;
  int m_value GUARDED_BY(m_lock) = 0;
};

}  // namespace vtkv
"""


class ClangChecks(unittest.TestCase):
  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.root = pathlib.Path(folder.name).resolve()
    self.write(".clang-format", (clang_checks.CHECKOUT / ".clang-format").read_text())
    for name in ("src/os/vtkv/util/mutex.h", "src/os/vtkv/util/thread_annotations.h"):
      self.write(name, (clang_checks.CHECKOUT / name).read_text())
    self.source = self.write("src/os/vtkv/counter.cc", SOURCE % "MutexLock lock(m_lock);")
    self.write("src/os/vtkv/counter.h", HEADER)
    self.environment = dict(os.environ, CCACHE_DIR=str(self.root / "ccache"), CCACHE_BASEDIR=str(self.root))
    command = f"g++ -I{self.root}/src/os -O2 -Wall -fno-builtin-malloc -std=gnu++20 -o counter.o -c {self.source}"
    self.write("build/compile_commands.json",
               json.dumps([{"directory": str(self.root / "build"), "command": command, "file": str(self.source)}]))

  def write(self, name, text):
    path = self.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path

  def check(self, *words):
    done = subprocess.run([sys.executable, clang_checks.__file__, "--root", self.root, *words], capture_output=True,
                          text=True, env=self.environment)
    return done.returncode, done.stdout + done.stderr

  def assert_fault(self, words, *checks):
    status, said = self.check(*checks)
    self.assertEqual(status, 1, said)
    self.assertIn(words, said)

  def assert_none(self, *checks):
    self.assertEqual(self.check(*checks)[0], 0, self.check(*checks)[1])

  def test_a_member_without_its_lock(self):
    self.assert_none("thread-safety")
    self.source.write_text(SOURCE % "")
    self.assert_fault("requires holding mutex 'm_lock'", "thread-safety")
    self.assert_fault("requires holding mutex 'm_lock'", "thread-safety")  # it has not passed

  def test_a_header_that_has_changed(self):
    self.assert_none("thread-safety")
    self.write("src/os/vtkv/counter.h", HEADER.replace("GUARDED_BY(m_lock)", "GUARDED_BY(m_other)").replace(
        "Mutex m_lock;", "Mutex m_lock, m_other;"))
    self.assert_fault("requires holding mutex 'm_other'", "thread-safety")

  @unittest.skipUnless(shutil.which("ccache"), "no ccache")
  def test_what_has_passed_is_kept_for_other_build_folders(self):
    def hits():
      said = subprocess.run(["ccache", "--print-stats"], env=self.environment, check=True, capture_output=True, text=True)
      return int(dict(line.split("\t") for line in said.stdout.splitlines())["direct_cache_hit"])

    self.assert_none("thread-safety")
    self.assertEqual(hits(), 0)
    shutil.rmtree(self.root / "build/clang_checks")
    self.assert_none("thread-safety")
    self.assertEqual(hits(), 1)
    self.source.write_text(SOURCE % "")
    for _ in range(2):  # a fault is not kept
      shutil.rmtree(self.root / "build/clang_checks")
      self.assert_fault("requires holding mutex 'm_lock'", "thread-safety")

  def test_sources_with_locks(self):
    for name, text, has in (("of_its_own.cc", "static vtkv::Mutex lock;\n", True),
                            ("of_a_header.cc", '#include "vtkv/counter.h"\n', True),
                            ("none.cc", '#include "vtkv/util/plain.h"\n#include <mutex>\n// Mutexes\n', False),
                            ("a_test.cc", "static vtkv::Mutex lock;\n", False)):
      path = self.write(f"src/os/vtkv/{name}", text)
      self.assertEqual(clang_checks.has_locks(self.root, path), has, name)
    self.assert_none("thread-safety", "--locking")
    self.source.write_text(SOURCE % "")
    self.assert_fault("requires holding mutex 'm_lock'", "thread-safety", "--locking")

  def test_a_layout_of_its_own(self):
    self.assert_none("format")
    self.source.write_text(SOURCE % "MutexLock   lock( m_lock );")
    self.assert_fault("counter.cc:4", "format")
    self.assert_none("format", "--fix")
    self.assertEqual(self.source.read_text(), SOURCE % "MutexLock lock(m_lock);")

  def test_the_words_of_a_command(self):
    command = ("ccache /usr/bin/c++ -DA='\"b c\"' -isystem /x -O2 -g1 -Wall -MD -MF a.d -include /b/cmake_pch.hxx "
               "-include /y/b.h -o a.o -c /y/a.cc -I/z")
    self.assertEqual(clang_checks.words_of({"command": command}), "'-DA=\"b c\"' -isystem /x -include /y/b.h -I/z")

  def test_without_a_build(self):
    (self.root / "build/compile_commands.json").unlink()
    self.assert_fault("run cmake first", "thread-safety")


if __name__ == "__main__":
  unittest.main()
