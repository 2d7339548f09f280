#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""usage: vtkv_bench_test.py VTKV_BENCH

What vtkv_bench says of engines and options that it does not know.
"""

import subprocess
import sys
import tempfile
import unittest

BENCH = ""


class Engines(unittest.TestCase):
  def refusal(self, engines):
    with tempfile.TemporaryDirectory() as folder:
      done = subprocess.run([BENCH, "--engines", engines, "--path", folder], capture_output=True, text=True, timeout=60)
    self.assertEqual(done.returncode, 2, done)
    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
    return done.stderr

  def test_the_old_name_of_an_option_is_refused_with_its_new_one(self):
    self.assertIn("option merging is called auto_compaction now", self.refusal("vtkv:merging=0"))
    self.assertIn("option scattered is called fragmented now", self.refusal("vtkv:scattered=4"))

  def test_an_unknown_option_is_refused_with_those_that_there_are(self):
    self.assertIn("vtkv has no option 'nonsense'; it has: auto_compaction", self.refusal("vtkv:nonsense=1"))
    self.assertIn("rocksdb has no option 'merging'", self.refusal("rocksdb:merging=0"))


if __name__ == "__main__":
  BENCH = sys.argv.pop(1)
  unittest.main()
