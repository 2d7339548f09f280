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
#pragma once

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
WORD_SOURCE = """\
#include "vtkv/word.h"

int vtkv::size_of(Word word) {
  // It is the caller's no more.
  %s
}
"""
WORD_HEADER = """\
#include <utility>

namespace vtkv {

struct Word {
  Word() = default;
  Word(Word&& other) noexcept : size(std::exchange(other.size, 0)) {}
  int size = 1;
};

int size_of(Word word);
inline int again(Word word) {
  // Likewise.
  %s
}

}  // namespace vtkv
"""
SOUND = "return word.size;"
MISTAKE = "const Word other = std::move(word); return other.size + word.size;"
LET_PASS = "  // NOLINT(bugprone-use-after-move)"


class ClangChecks(unittest.TestCase):
  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.root = pathlib.Path(folder.name).resolve()
    for name in (".clang-format", ".clang-tidy"):
      self.write(name, (clang_checks.CHECKOUT / name).read_text())
    for name in ("src/os/vtkv/util/mutex.h", "src/os/vtkv/util/thread_annotations.h"):
      self.write(name, (clang_checks.CHECKOUT / name).read_text())
    self.source = self.write("src/os/vtkv/counter.cc", SOURCE % "MutexLock lock(m_lock);")
    self.write("src/os/vtkv/counter.h", HEADER)
    self.environment = dict(os.environ, CCACHE_DIR=str(self.root / "ccache"), CCACHE_BASEDIR=str(self.root),
                            CCACHE_SLOPPINESS="pch_defines,time_macros", CCACHE_PCH_EXTSUM="true")
    self.word = self.write("src/os/vtkv/word.cc", WORD_SOURCE % SOUND)
    self.word_header = self.write("src/os/vtkv/word.h", WORD_HEADER % SOUND)
    command = f"g++ -I{self.root}/src/os -O2 -Wall -fno-builtin-malloc -std=gnu++20 -o x.o -c"
    self.write("build/compile_commands.json",
               json.dumps([{"directory": str(self.root / "build"), "command": f"{command} {source}", "file": str(source)}
                           for source in (self.source, self.word)]))

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
    status, said = self.check(*checks)
    self.assertEqual(status, 0, said)
    self.assertEqual(said, "")

  def forget_build(self):
    shutil.rmtree(self.root / "build/clang_checks", ignore_errors=True)

  def hits(self):
    said = subprocess.run(["ccache", "--print-stats"], env=self.environment, check=True, capture_output=True, text=True)
    return int(dict(line.split("\t") for line in said.stdout.splitlines())["direct_cache_hit"])

  def test_a_member_without_its_lock(self):
    self.assert_none("thread-safety")
    self.source.write_text(SOURCE % "")
    self.assert_fault("requires holding mutex 'm_lock'", "thread-safety")
    self.assert_fault("requires holding mutex 'm_lock'", "thread-safety")  # it has not passed

  @unittest.skipUnless(shutil.which("ccache"), "no ccache")
  def test_headers_that_are_precompiled(self):
    """By clang, once for all sources with the same words; and anew when what they include has changed."""
    header = self.write("build/cmake_pch.hxx", "#include <vtkv/counter.h>\n")
    commands = self.root / "build/compile_commands.json"
    commands.write_text(commands.read_text().replace(" -o x.o", f" -include {header} -o x.o"))
    self.assert_none("thread-safety")
    self.assertEqual(len(list(self.root.glob("build/clang_checks/*/*.pch"))), 1)
    self.source.write_text((SOURCE % "").replace('#include "vtkv/counter.h"\n', ""))
    self.assert_fault("requires holding mutex 'm_lock'", "thread-safety")
    self.assert_fault("undeclared identifier 'vtkv'", "tidy", "src/os/vtkv/counter.cc")
    self.source.write_text(SOURCE % "MutexLock lock(m_lock);")
    self.assert_none("thread-safety")
    self.forget_build()
    hits = self.hits()
    self.assert_none("thread-safety")
    self.assertEqual(self.hits(), hits + 2)
    self.change_guard()
    for _ in range(2):
      self.assert_fault("requires holding mutex 'm_other'", "thread-safety")
      self.forget_build()

  def change_guard(self):
    self.write("src/os/vtkv/counter.h", HEADER.replace("GUARDED_BY(m_lock)", "GUARDED_BY(m_other)").replace(
        "Mutex m_lock;", "Mutex m_lock, m_other;"))

  def test_a_header_that_has_changed(self):
    self.assert_none("thread-safety")
    self.change_guard()
    self.assert_fault("requires holding mutex 'm_other'", "thread-safety")

  @unittest.skipUnless(shutil.which("ccache"), "no ccache")
  def test_what_has_passed_is_kept_for_other_build_folders(self):
    for check, source, sound, wrong, fault in (
        ("thread-safety", self.source, SOURCE % "MutexLock lock(m_lock);", SOURCE % "", "requires holding mutex 'm_lock'"),
        ("tidy", self.word, WORD_SOURCE % SOUND, WORD_SOURCE % MISTAKE, "bugprone-use-after-move")):
      with self.subTest(check=check):
        hits = self.hits()
        self.assert_none(check, source.relative_to(self.root))
        self.assertEqual(self.hits(), hits)
        self.forget_build()
        self.assert_none(check, source.relative_to(self.root))
        self.assertEqual(self.hits(), hits + 1)
        source.write_text(wrong)
        for _ in range(2):  # a fault is not kept
          self.forget_build()
          self.assert_fault(fault, check)
        source.write_text(sound)

  def tidy_finds(self, mistake):
    self.assert_fault("bugprone-use-after-move", "tidy", "src/os/vtkv/word.cc") if mistake else self.assert_none(
      "tidy", "src/os/vtkv/word.cc")

  def test_a_mistake_that_compiles(self):
    self.tidy_finds(False)
    self.word.write_text(WORD_SOURCE % MISTAKE)
    self.tidy_finds(True)
    self.tidy_finds(True)  # it has not passed
    self.word.write_text(WORD_SOURCE % (MISTAKE + LET_PASS))
    self.tidy_finds(False)

  def test_a_mistake_in_a_header(self):
    self.word_header.write_text(WORD_HEADER % (MISTAKE + LET_PASS))
    self.tidy_finds(False)
    self.word_header.write_text(WORD_HEADER % MISTAKE)
    self.forget_build()
    self.tidy_finds(True)  # for ccache, too, comments count

  def test_other_wishes(self):
    wishes = self.root / ".clang-tidy"
    all_of_them = wishes.read_text()
    wishes.write_text(all_of_them.replace("bugprone-*,", ""))
    self.word.write_text(WORD_SOURCE % MISTAKE)
    self.tidy_finds(False)
    wishes.write_text(all_of_them)
    self.tidy_finds(True)
    self.forget_build()
    self.tidy_finds(True)  # ccache knows of them, too

  def test_tidy_looks_at_locks(self):
    self.source.write_text(SOURCE % "")
    self.assert_fault("requires holding mutex 'm_lock'", "tidy", "src/os/vtkv/counter.cc")

  def test_sources_with_locks(self):
    self.write("src/os/vtkv/deep.h", '#include "vtkv/counter.h"\n')
    self.write("src/os/vtkv/only_deep.h", "static vtkv::Mutex another;\n")
    self.write("src/os/vtkv/to_it.h", '#include "vtkv/only_deep.h"\n')
    sources = {}
    for name, text, has in (("of_its_own.cc", "static vtkv::Mutex lock;\n", True),
                            ("of_a_header.cc", '#include "vtkv/counter.h"\n', True),
                            ("what_is_guarded.cc", '#include "vtkv/deep.h"\nint x() { return counter.m_value; }\n', True),
                            ("needs_none.cc", '#include "vtkv/deep.h"\nint x() { return counter.value(); }\n', False),
                            ("a_header_of_no_other.cc", '#include "vtkv/to_it.h"\n', True),
                            ("none.cc", '#include "vtkv/util/plain.h"\n#include <mutex>\n// Mutexes\n', False)):
      sources[self.write(f"src/os/vtkv/{name}", text)] = has
    chosen = clang_checks.with_locks(self.root, set(sources))
    self.assertEqual({path.name for path in chosen}, {path.name for path, has in sources.items() if has})
    self.assert_none("thread-safety", "--which", "locking")
    self.source.write_text(SOURCE % "")
    self.assert_fault("requires holding mutex 'm_lock'", "thread-safety", "--which", "locking")

  def test_only_some_sources(self):
    self.source.write_text(SOURCE % "")
    self.assert_fault("compiles nothing of that kind", "thread-safety", "--which", "tests")
    self.assert_fault("compiles nothing of that kind", "thread-safety", "src/os/swimstore/")
    self.assert_fault("requires holding mutex 'm_lock'", "thread-safety", "--which", "product", "src/os/vtkv/counter.cc")

  def test_a_layout_of_its_own(self):
    self.assert_none("format")
    self.source.write_text(SOURCE % "MutexLock   lock( m_lock );")
    self.assert_fault("counter.cc:4", "format")
    self.assert_none("format", "--fix")
    self.assertEqual(self.source.read_text(), SOURCE % "MutexLock lock(m_lock);")

  def test_the_words_of_a_command(self):
    command = ("ccache /usr/bin/c++ -DA='\"b c\"' -isystem /x -O2 -g1 -Wall -MD -MF a.d -include /b/cmake_pch.hxx "
               "-include /y/b.h -o a.o -c /y/a.cc -I/z")
    self.assertEqual(clang_checks.words_of({"command": command}),
                     ("'-DA=\"b c\"' -isystem /x -include /y/b.h -I/z", "/b/cmake_pch.hxx"))

  def test_without_a_build(self):
    (self.root / "build/compile_commands.json").unlink()
    self.assert_fault("run cmake first", "thread-safety")


if __name__ == "__main__":
  unittest.main()
