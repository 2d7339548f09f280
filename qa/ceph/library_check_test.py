#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A program of ours on another libceph-common than the one it was built for: one line, and nothing else happens.

usage: library_check_test.py PROGRAM LIBRARY

The other library is a copy of the real one with its build ID, or its commit, changed.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM, LIBRARY = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def notes():
  return subprocess.run(["readelf", "--notes", LIBRARY], text=True, stdout=subprocess.PIPE, check=True).stdout


def run(library_dir=None, **environment):
  if library_dir:
    environment["LD_LIBRARY_PATH"] = str(library_dir)
  return subprocess.run([PROGRAM, "--version"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                        env=os.environ | environment, timeout=60)


class LibraryCheck(unittest.TestCase):
  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    self.build = re.search(r"Build ID: ([0-9a-f]+)", notes())[1]
    self.commit = re.search(r"\(([0-9a-f]{40})\)", run().stdout)[1]

  def other(self, old, new):
    """The library with these bytes changed, wherever they are."""
    data = LIBRARY.read_bytes()
    self.assertIn(old, data)
    self.assertEqual(len(old), len(new))
    (self.folder / LIBRARY.name).write_bytes(data.replace(old, new))
    return self.folder

  def refused(self, done):
    self.assertEqual((done.returncode, done.stdout), (1, ""))
    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
    self.assertIn(f"{self.folder}/{LIBRARY.name}", done.stderr)
    self.assertRegex(done.stderr, "built for that of librados2=.*: install that version.*or build SwimStore")

  def test_the_one_it_was_built_for_is_taken(self):
    done = run()
    self.assertEqual((done.returncode, done.stderr), (0, ""))
    self.assertIn("ceph version", done.stdout)

  def test_a_copy_of_it_is_too(self):
    done = run(self.other(b"", b""))
    self.assertEqual((done.returncode, done.stderr), (0, ""))

  def test_another_build_is_refused(self):
    build = bytes.fromhex(self.build)
    done = run(self.other(build, build[::-1]))
    self.refused(done)
    self.assertIn(build[::-1].hex()[:12], done.stderr)
    self.assertIn(self.build[:12], done.stderr)

  def test_another_build_runs_if_asked_for(self):
    build = bytes.fromhex(self.build)
    done = run(self.other(build, build[::-1]), SWIMSTORE_ANY_LIBRARY_BUILD="1")
    self.assertEqual((done.returncode, done.stderr), (0, ""))

  def test_only_1_asks_for_it(self):
    build = bytes.fromhex(self.build)
    folder = self.other(build, build[::-1])
    for value in ("", "0", "no", "11"):
      with self.subTest(value=value):
        self.refused(run(folder, SWIMSTORE_ANY_LIBRARY_BUILD=value))

  def test_another_release_is_refused_whatever_is_asked_for(self):
    commit = self.commit.encode()
    done = run(self.other(commit, commit[::-1]), SWIMSTORE_ANY_LIBRARY_BUILD="1")
    self.refused(done)
    self.assertIn(self.commit[::-1][:12], done.stderr)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
