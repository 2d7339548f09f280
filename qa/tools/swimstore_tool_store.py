# SPDX-License-Identifier: LGPL-2.1-or-later
"""What tests of ceph-swimstore-tool share: a small store, archives to fill it with, and the tool run on it."""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

from store_archive import begin, end, parse, prefixed, record, varint

SETTINGS = ["swimstore_log_segment_size=1M", "swimstore_log_segments=2", "swimstore_zone_size=64K",
            "swimstore_chunk_size=4M", "swimstore_memtable_size=256K", "swimstore_primed_ahead_size=64K",
            "swimstore_reserve_size=1M", "swimstore_allow_unproven_file_system=true"]
PG = "1.0_head"
NOSNAP, NOGEN = 2 ** 64 - 2, 2 ** 64 - 1


OF_PG = prefixed(PG.encode()) + varint(0)


def object_key(name, reversed_hash):
  """Of an object of pool 1, without shard, namespace and locator."""
  return (b"O\0\x7f" + struct.pack(">QI", 1 << 63 | 1, reversed_hash) + b"\0" + (name if isinstance(name, bytes) else name.encode()) + b"\0="
          + struct.pack(">QQ", NOSNAP, NOGEN))


class StoreTest(unittest.TestCase):
  TOOL = VTKV = ""  # set by main()

  def setUp(self):
    folder = tempfile.TemporaryDirectory(dir=".")
    self.addCleanup(folder.cleanup)
    self.base = pathlib.Path(folder.name).resolve()
    self.store = self.new_store("store")
    self.names = {name: object_key(name, number << 24) for number, name in
                  enumerate(("alpha", "beta", "gamma"), 1)}
    self.data = {"alpha": bytes(range(250)) * 20, "beta": bytes(7) + b"beta" * 70000}

  def new_store(self, name):
    path = self.base / name
    path.mkdir()
    self.run_tool("mkfs", path)
    return path

  def run_tool(self, *words, status=0):
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    done = subprocess.run([self.TOOL, *settings, *map(str, words)], capture_output=True, text=True)
    self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
    if status == 2:
      self.assertEqual(done.stdout, "")
      return done.stderr
    self.assertEqual(done.stderr, "")
    return done.stdout

  def json(self, *words, status=0):
    return json.loads(self.run_tool("--format", "json", *words, status=status))

  def json_error(self, *words, status=2):
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    done = subprocess.run([self.TOOL, *settings, "--format", "json", *words], capture_output=True)
    self.assertEqual(done.returncode, status, done)
    found = json.loads(done.stdout.decode())
    self.assertEqual(list(found)[-1], "error")
    return found

  def archive(self, keys=9):
    """alpha and beta with data, gamma with omap."""
    out = begin() + record(b"C", OF_PG)
    for name, key in self.names.items():
      data = self.data.get(name, b"")
      out += record(b"O", prefixed(key) + varint(len(data)))
      if isinstance(name, bytes):
        out += record(b"A", prefixed(name) + prefixed(b"x"))
      else:
        out += record(b"A", prefixed(b"_") + prefixed(name.encode()))
      if data:
        out += record(b"D", struct.pack("<Q", 0) + data)
      else:
        out += record(b"H", b"header")
        out += record(b"M", b"".join(prefixed(b"key%d" % n) + prefixed(b"value") for n in range(keys)))
      out += record(b"E", b"")
    return out + end(len(self.names))

  def fill(self, keys=9):
    (self.base / "archive").write_bytes(self.archive(keys))
    self.run_tool("import", self.store, "--in", self.base / "archive")
    self.run_tool("fsck", self.store)  # leaves a log whose every record is known to be durable

  def exported(self, status=0, store=None):
    self.run_tool("export", store or self.store, "--out", self.base / "out", status=status)
    return parse((self.base / "out").read_bytes())

  def content(self):
    return {p: p.read_bytes() for p in self.store.rglob("*") if p.is_file()}

  def classes(self, status, *words):
    found = self.json("fsck", self.store, *words, status=status)
    self.assertEqual(found["errors"], len(found["findings"]))
    return {finding["class"] for finding in found["findings"]}

  def put(self, key, value, cube=None):
    """An entry of the cube's tree, behind the store's back."""
    cube = cube or self.store / "cubes" / "0"
    (cube / "containers").rename(self.base / "containers")
    notation = ["".join(f"\\x{byte:02x}" for byte in text) for text in (key, value)]
    done = subprocess.run([self.VTKV, "put", cube, *notation], capture_output=True, text=True)
    self.assertEqual((done.returncode, done.stderr), (0, ""))
    (self.base / "containers").rename(cube / "containers")

  def key_of(self, name):
    """As parse() has it."""
    return prefixed(self.names[name]) + varint(len(self.data.get(name, b"")))

  def expect_unchanged_but(self, before, *names, status=0):
    gone = [self.key_of(name) for name in names]
    self.assertEqual(self.exported(status), {k: v for k, v in before.items() if k not in gone})


def main(usage):
  if len(sys.argv) < 3:
    sys.exit(usage)
  StoreTest.VTKV = str(pathlib.Path(sys.argv.pop(2)).resolve())
  StoreTest.TOOL = str(pathlib.Path(sys.argv.pop(1)).resolve())
  unittest.main()
