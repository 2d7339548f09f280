#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The names in doc/swimstore-and-bluestore.md: each is one of SwimStore's or BlueStore's, and each of theirs is there.

BlueStore's are those of the release of Ceph that is built for, but for names that are marked as of another one.

usage: bluestore_table_test.py CEPH_SWIMSTORE_TOOL
"""

import fnmatch
import re
import subprocess
import sys
import unittest

import store_names

PAGE = store_names.CHECKOUT / "doc/swimstore-and-bluestore.md"


def quoted():
  """What stands in backquotes, in one line each, without arguments and what is of another release: `name` (20.2)."""
  source = store_names.ceph_source()
  release = store_names.ceph_release(source) if source else ""
  marked = re.findall(r"`([^`]+)`(?: \((\d+\.\d+)\))?", PAGE.read_text())
  return {re.sub(r"( [A-Z]+)+$", "", " ".join(words.split())) for words, only_of in marked if only_of in ("", release)}


def behind(program):
  return {words.removeprefix(f"{program} ") for words in quoted() if words.startswith(f"{program} ")}


def usage_of(program):
  return subprocess.run([program, "--help"], text=True, capture_output=True, timeout=60, check=True).stdout


class OfSwimStore(unittest.TestCase):
  def check(self, named, there, at_least):
    self.assertGreaterEqual(len(there), at_least)
    self.assertEqual(named, there)

  def test_options(self):
    self.check({name for name in quoted() if re.fullmatch(r"swimstore_\w+", name)}, store_names.options(), 35)

  def test_alerts(self):
    self.check({name for name in quoted() if name.startswith("SWIMSTORE_")}, store_names.alerts(), 13)

  def test_admin_commands(self):
    self.check({words for words in quoted() if words.startswith("swimstore ")}, store_names.admin_commands(), 11)

  def test_tool_commands(self):
    self.check(behind("ceph-swimstore-tool"), store_names.tool_commands(usage_of(TOOL)), 15)

  def test_volume_commands(self):
    self.check(behind("ceph-volume swimstore"), store_names.volume_commands(), 7)


class OfBlueStore(unittest.TestCase):
  def setUp(self):
    self.source = store_names.ceph_source()
    if not self.source:
      self.skipTest("Ceph's source is not there")

  def test_options(self):
    there = store_names.bluestore_options(self.source)
    self.assertGreater(len(there), 150)
    patterns = {name for name in quoted() if re.match(r"(bluestore|bluefs)_", name)}
    for pattern in patterns:
      self.assertTrue(fnmatch.filter(there, pattern), f"{pattern}: no option of BlueStore")
    unnamed = {name for name in there if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)}
    self.assertEqual(unnamed, set())

  def test_pool_options(self):
    named = {name for name in quoted() if re.match(r"(compression|csum)_", name)}
    self.assertEqual(named, store_names.pool_options(self.source))

  def test_alerts(self):
    there = store_names.bluestore_alerts(self.source)
    self.assertGreater(len(there), 5)
    self.assertEqual({name for name in quoted() if re.match(r"(BLUESTORE|BLUEFS)_", name)}, there)

  def test_admin_commands(self):
    there = store_names.bluestore_admin_commands(self.source)
    self.assertGreater(len(there), 6)
    self.assertEqual({words for words in quoted() if re.match(r"(bluestore|bluefs) ", words)}, there)

  def test_tool_commands(self):
    there = store_names.bluestore_tool_commands(usage_of("ceph-bluestore-tool"))
    self.assertGreater(len(there), 20)
    self.assertEqual(behind("ceph-bluestore-tool"), there)

  def test_volume_commands(self):
    for kind in ("lvm", "raw"):
      there = store_names.ceph_volume_commands(self.source, kind)
      self.assertGreater(len(there), 2)
      self.assertEqual(behind(f"ceph-volume {kind}"), there)


if __name__ == "__main__":
  if len(sys.argv) < 2:
    sys.exit(__doc__)
  TOOL = sys.argv.pop(1)
  unittest.main()
