#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""usage: kvstore_tool_test.py CEPH_KVSTORE_TOOL VTKV_TOOL

Runs our ceph-kvstore-tool on vtkv stores, and on what is none.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

KVSTORE_TOOL = VTKV_TOOL = ""


class KvstoreTool(unittest.TestCase):
  def setUp(self):
    folder = tempfile.TemporaryDirectory(dir=".")
    self.addCleanup(folder.cleanup)
    self.base = pathlib.Path(folder.name).resolve()
    self.store = self.base / "store"
    subprocess.run([VTKV_TOOL, "create", self.store, "--log-segment-bytes", "262144"], check=True)

  def call(self, *words, store=None, kind="vtkv"):
    return subprocess.run([KVSTORE_TOOL, kind, store or self.store, *map(str, words)],
                          capture_output=True, text=True, timeout=120)

  def run_tool(self, *words, **where):
    done = self.call(*words, **where)
    self.assertEqual(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")
    return done.stdout

  def set(self, prefix, key, value):
    (self.base / "value").write_bytes(value)
    self.run_tool("set", prefix, key, "in", self.base / "value")

  def fill(self):
    self.set("paxos", "1", b"one")
    self.set("paxos", "2", b"two")
    self.set("osdmap", "%00%ff", b"\0binary\xff")

  def get(self, prefix, key):
    self.run_tool("get", prefix, key, "out", self.base / "out")
    return (self.base / "out").read_bytes()

  def test_set_get_list_rm(self):
    self.fill()
    self.assertEqual(self.run_tool("list"), "osdmap\t%00%ff\npaxos\t1\npaxos\t2\n")
    self.assertEqual(self.run_tool("list", "paxos"), "paxos\t1\npaxos\t2\n")
    self.assertEqual(self.get("osdmap", "%00%ff"), b"\0binary\xff")
    self.assertEqual(self.get("paxos", "2"), b"two")
    self.run_tool("rm", "paxos", "2")
    self.assertEqual(self.call("get", "paxos", "2").returncode, 1)
    self.assertIn("(paxos, 1) exists", self.run_tool("exists", "paxos", "1"))
    self.run_tool("rm-prefix", "paxos")
    self.assertEqual(self.run_tool("list"), "osdmap\t%00%ff\n")

  def test_sizes_and_statistics(self):
    self.fill()
    self.assertRegex(self.run_tool("get-size", "paxos", "1"), r"log - \d+\n(.*\n)*.*size 3 B")
    self.assertIn('"log_file_bytes"', self.run_tool("stats"))
    self.assertIn("total_value_size", self.run_tool("histogram"))

  def test_compact_keeps_everything(self):
    self.fill()
    before = self.run_tool("list-crc")
    for words in (["compact"], ["compact-prefix", "paxos"], ["compact-range", "paxos", "1", "2"]):
      self.run_tool(*words)
      self.assertEqual(self.run_tool("list-crc"), before)

  def test_copies_a_store(self):
    self.fill()
    self.run_tool("store-copy", self.base / "copy")
    self.assertEqual(self.run_tool("list-crc", store=self.base / "copy"), self.run_tool("list-crc"))

  def test_a_killed_copy_holds_whole_transactions_in_order(self):
    lines = [f"p\\x00{number:05d}\t{'v' * 500}{number}\n" for number in range(4000)]
    subprocess.run([VTKV_TOOL, "load", self.store], input="".join(lines), check=True, text=True,
                   stdout=subprocess.DEVNULL)
    copy = self.base / "copy"
    keys_per_transaction = 16
    copying = subprocess.Popen([KVSTORE_TOOL, "vtkv", self.store, "store-copy", copy,
                                str(keys_per_transaction)], stdout=subprocess.PIPE, text=True,
                               pipesize=4096)  # so that it cannot run ahead of who reads it to the end
    acknowledged = 0
    for line in copying.stdout:
      match = re.search(r"copied (\d+) keys so far", line)
      acknowledged = int(match.group(1)) if match else acknowledged
      if acknowledged >= 100:
        copying.kill()
        break
    copying.stdout.close()
    self.assertEqual(copying.wait(), -signal.SIGKILL)
    for folder in (self.store, copy):
      # The lock lives as long as the last request of the killed process.
      subprocess.run(["flock", "--wait", "60", folder / "lock", "true"], check=True)
    source = self.run_tool("list-crc").splitlines()
    copied = self.run_tool("list-crc", store=copy).splitlines()
    self.assertGreaterEqual(len(copied), acknowledged)
    self.assertLess(len(copied), len(source))
    self.assertEqual(len(copied) % keys_per_transaction, 0)
    self.assertEqual(copied, source[:len(copied)])

  def test_repair_of_a_whole_store(self):
    self.fill()
    self.assertIn("nothing to repair", self.run_tool("destructive-repair"))
    self.assertEqual(self.get("paxos", "1"), b"one")

  def test_wrong_directories(self):
    done = self.call("list", store=self.base / "none")
    self.assertEqual(done.returncode, 1)
    self.assertIn("there is no such directory", done.stderr)
    foreign = self.base / "foreign"
    foreign.mkdir()
    (foreign / "CURRENT").write_text("MANIFEST-000001\n")
    done = self.call("list", store=foreign)
    self.assertEqual(done.returncode, 1)
    self.assertIn("holds no database", done.stderr)
    self.assertEqual([p.name for p in foreign.iterdir()], ["CURRENT"])

  def test_types_it_does_not_have(self):
    reef_knows = os.environ.get("SWIM_RELEASE", "reef") == "reef"
    for kind, message in (("leveldb", "not built in" if reef_knows else "Unrecognized type"),
                          ("filestore", "Unrecognized type")):
      done = self.call("list", kind=kind)
      self.assertEqual(done.returncode, 1, done)
      self.assertIn(message, done.stderr)
    self.assertIn("vtkv", subprocess.run([KVSTORE_TOOL, "--help"], capture_output=True, text=True).stdout)


if __name__ == "__main__":
  if len(sys.argv) < 3:
    sys.exit(__doc__.splitlines()[0])
  KVSTORE_TOOL, VTKV_TOOL = (str(pathlib.Path(sys.argv.pop(1)).resolve()) for _ in range(2))
  unittest.main()
