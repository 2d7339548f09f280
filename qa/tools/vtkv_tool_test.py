#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""usage: vtkv_tool_test.py VTKV_TOOL

Runs vtkv-tool the way its manual says, on databases that it makes itself.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = ""


class VtkvTool(unittest.TestCase):
  def setUp(self):
    folder = tempfile.TemporaryDirectory(dir=".")
    self.addCleanup(folder.cleanup)
    self.base = pathlib.Path(folder.name).resolve()
    self.db = self.base / "db"

  def run_tool(self, *words, status=0):
    done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True)
    self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
    if status != 0:
      self.assertEqual(done.stderr.count("\n"), 1 if status != 2 else done.stderr.count("\n"))
      return done.stderr
    self.assertEqual(done.stderr, "")
    return done.stdout

  def json(self, *words, status=0):
    done = subprocess.run([TOOL, "--json", *map(str, words)], capture_output=True)
    self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout.decode())

  def create(self, *more):
    self.run_tool("create", self.db, "--log-segment-bytes", 65536, "--zone-bytes", 65536, *more)

  def fill(self):
    """In the tree: k0 to k4; in the log only: k0 changed, k1 removed, a binary key."""
    self.create()
    for number in range(5):
      self.run_tool("put", self.db, f"k{number}", f"value {number}")
    self.run_tool("compact", self.db)
    self.run_tool("put", self.db, "k0", "new")
    self.run_tool("remove", self.db, "k1")
    self.run_tool("put", self.db, r"z\x00\xff\\", r"\x01")

  def content(self):
    return {p: p.read_bytes() for p in self.db.rglob("*") if p.is_file()}

  def test_lists_and_scans(self):
    self.fill()
    self.assertEqual(self.run_tool("list", self.db).splitlines(),
                     ["k0", "k2", "k3", "k4", r"z\x00\xff\\"])
    self.assertEqual(self.run_tool("scan", self.db, "--from", "k2", "--to", "k4"),
                     "k2\tvalue 2\nk3\tvalue 3\n")
    self.assertEqual(self.run_tool("list", self.db, "--reverse", "--limit", 2).splitlines(),
                     [r"z\x00\xff\\", "k4"])
    self.assertEqual(self.json("scan", self.db, "--limit", 1),
                     {"entries": [{"key": "k0", "value": "new"}]})
    self.assertEqual(self.json("list", self.db, "--from", "zz"), {"keys": []})

  def test_gets(self):
    self.fill()
    self.assertEqual(self.run_tool("get", self.db, "k2"), "value 2\n")
    self.assertEqual(self.run_tool("get", self.db, r"z\x00\xff\\"), "\\x01\n")
    self.run_tool("get", self.db, r"z\x00\xff\\", "--out", self.base / "value")
    self.assertEqual((self.base / "value").stat().st_mode & 0o777, 0o600)
    self.assertEqual((self.base / "value").read_bytes(), b"\x01")
    self.assertIn("no key k1", self.run_tool("get", self.db, "k1", status=1))

  def test_json_is_whole_whatever_happens(self):
    self.fill()
    self.assertIn("no key k1", self.json("get", self.db, "k1", status=1)["error"])
    self.assertIn("hexadecimal", self.json("get", self.db, r"\xzz", status=2)["error"])
    self.assertIn("subcommand", self.json("lsit", self.db, status=2)["error"])
    name = os.fsencode(self.base) + b"/\xff\xc3\xbc"
    self.assertIn(r"/\xffü: there is no such directory", self.json("list", os.fsdecode(name), status=3)["error"])
    # A block that is read after others were printed.
    self.run_tool("create", self.base / "large", "--zone-bytes", 65536, "--no-compression")
    entries = "".join(f"key{n:05}\t{'v' * 100}\n" for n in range(2000))
    subprocess.run([TOOL, "load", self.base / "large"], input=entries, text=True, check=True, capture_output=True)
    self.run_tool("compact", self.base / "large")
    tree = self.base / "large/tree"
    content = tree.read_bytes()
    at = content.index(b"v" * 100, len(content) // 2)
    tree.write_bytes(content[:at] + b"x" + content[at + 1:])
    cut = self.json("scan", self.base / "large", status=3)
    self.assertEqual(list(cut), ["entries", "error"])
    self.assertEqual(cut["entries"][0]["key"], "key00000")
    self.assertLess(len(cut["entries"]), 2000)
    self.assertIn("tree", cut["error"])

  def test_loads_what_it_scanned(self):
    self.fill()
    scanned = self.run_tool("scan", self.db)
    copy = self.base / "copy"
    self.run_tool("create", copy)
    done = subprocess.run([TOOL, "load", copy], input=scanned, capture_output=True, text=True)
    self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "loaded: 5\n", ""))
    self.assertEqual(self.run_tool("scan", copy), scanned)
    for text, message in (("a\t1\nb\n", "line 2: there is no tab"), ("a\t\\x1\n", "line 1: "),
                          ("a\t1\npear\thalf of wh", "line 2: it does not end with a line break")):
      done = subprocess.run([TOOL, "load", copy], input=text, capture_output=True, text=True)
      self.assertEqual(done.returncode, 2)
      self.assertIn(message, done.stderr)
    self.assertEqual(self.run_tool("get", copy, "a"), "1\n")
    self.assertNotIn("half", self.run_tool("scan", copy))

  def test_stats(self):
    self.fill()
    stats = self.json("stats", self.db)
    self.assertEqual((stats["runs"], stats["levels"], stats["zone_bytes"]), (1, 1, 65536))
    self.assertGreater(stats["last_sequence"], stats["checkpoint_sequence"])
    self.assertIn(f"uuid: {stats['uuid']}\n", self.run_tool("stats", self.db))

  def test_dumps_the_log(self):
    self.fill()
    log = self.json("dump", "log", self.db, "--operations")
    self.assertIn("needed", {segment["state"] for segment in log["segments"]})
    replay = [record for record in log["records"] if record["state"] == "replay"]
    self.assertEqual(sum(not record["recovery"] for record in replay), 3)
    first = replay[0]["first_sequence"]
    operations = [(o["operation"], o["key"], o["value"]) for o in log["operations"]
                  if o["sequence"] >= first and o["operation"] != "note"]
    self.assertEqual(operations, [("put", "k0", "new"), ("remove", "k1", ""),
                                  ("put", r"z\x00\xff\\", r"\x01")])
    self.assertNotIn("operations", self.json("dump", "log", self.db))

  def test_dumps_the_tree(self):
    self.fill()
    runs = self.json("dump", "run", self.db, "--entries")
    run = runs["runs"][0]
    self.assertEqual((run["entries"], run["smallest_key"], run["greatest_key"]), (5, "k0", "k4"))
    self.assertEqual([(e["key"], e["value"]) for e in runs["entries"]],
                     [(f"k{n}", f"value {n}") for n in range(5)])
    self.assertEqual(self.json("dump", "run", self.db, "--run", run["run"])["runs"], [run])
    self.assertIn("has no run 999", self.run_tool("dump", "run", self.db, "--run", 999, status=3))
    zones = self.json("dump", "zone", self.db)["zones"]
    self.assertEqual(sum(zone["live_bytes"] for zone in zones), run["bytes"])
    filters = self.json("dump", "filter", self.db)["filters"]
    self.assertEqual([(f["run"], f["entries"]) for f in filters], [(run["run"], 5)])
    self.assertEqual(filters[0]["load"], 5 / 2 ** filters[0]["quotient_bits"])
    self.assertLess(filters[0]["false_positive_rate"], 0.009)

  def test_collects_garbage(self):
    self.fill()
    before = self.run_tool("scan", self.db)
    for words in (["gc", self.db], ["gc", self.db, "--full"]):
      change = self.json(*words)
      self.assertLessEqual(change["log_live_bytes_after"], change["log_file_bytes_after"])
      self.assertEqual(self.run_tool("scan", self.db), before)

  def test_defragments(self):
    self.create("--no-compression")  # all values look alike
    # Stitching leaves the zones of what was overwritten half empty.
    for wanted in (lambda key: True, lambda key: key // 150 % 2 == 0):
      lines = "".join(f"k{key:04}\t{'x' * 500}\n" for key in range(8000) if wanted(key))
      self.assertEqual(subprocess.run([TOOL, "load", self.db], input=lines, text=True).returncode, 0)
      self.run_tool("compact", self.db)
    before = self.run_tool("scan", self.db)
    change = self.json("defragment", self.db, "--gain", 0.1, "--bytes-per-second", 0)
    self.assertGreater(change["moved_bytes"], 0)
    self.assertLess(change["zones_in_use_after"], 0.9 * change["zones_in_use_before"])
    self.assertLessEqual(change["zones_after"], change["zones_before"])
    self.assertEqual(self.run_tool("scan", self.db), before)
    self.assertEqual(self.json("verify", self.db), {"damaged": False, "findings": []})
    self.assertIn("moved_bytes: ", self.run_tool("defragment", self.db))
    self.run_tool("defragment", self.db, "--gain", -1, status=2)

  def test_an_upgrade_lets_it_be_compressed(self):
    self.run_tool("create", self.db, "--no-compression")
    stats = self.json("stats", self.db)
    self.assertEqual((stats["format_version"], stats["incompat_features"]), (3, "-"))
    lines = "".join(f"key {number:06}\tvalue {'v' * 100}\n" for number in range(2000))

    def load():
      subprocess.run([TOOL, "load", self.db], input=lines, text=True, check=True, stdout=subprocess.DEVNULL)
    load()
    plain = self.json("compact", self.db)["tree_live_bytes_after"]
    self.assertTrue(self.json("upgrade", self.db)["upgraded"])
    self.assertEqual(self.json("stats", self.db)["incompat_features"], "compressed_blocks")
    self.assertFalse(self.json("upgrade", self.db)["upgraded"])
    load()
    self.assertLess(self.json("compact", self.db)["tree_live_bytes_after"], plain / 2)
    self.assertEqual(len(self.run_tool("list", self.db).splitlines()), 2000)

  def test_looking_changes_nothing(self):
    self.fill()
    before = self.content()
    for words in (["list"], ["scan"], ["stats"], ["verify"]):
      self.run_tool(*words, self.db)
    self.run_tool("get", self.db, "k2")
    for what in ("log", "zone", "run", "filter"):
      self.run_tool("dump", what, self.db)
    self.assertEqual(self.content(), before)

  def test_verify_finds_damage(self):
    self.fill()
    self.assertEqual(self.json("verify", self.db), {"damaged": False, "findings": []})
    block = self.json("dump", "zone", self.db)["zones"]
    self.assertTrue(block)
    tree = self.db / "tree"
    whole = tree.read_bytes()
    for offset in range(60, len(whole), 4096):  # the first blocks may be of no run any more
      tree.write_bytes(whole[:offset] + b"damage" + whole[offset + 6:])
      done = subprocess.run([TOOL, "--json", "verify", str(self.db)], capture_output=True)
      if done.returncode == 1 and b"findings" in done.stdout:
        break
    found = self.json("verify", self.db, status=1)
    self.assertTrue(found["damaged"])
    self.assertGreater(len(found["findings"]), 0)

  def test_damage_at_opening_is_an_answer_too(self):
    self.fill()
    (self.db / "manifest").write_bytes(b"\xff" * (self.db / "manifest").stat().st_size)
    self.assertIn("no valid checkpoint", self.run_tool("verify", self.db, status=1))
    self.assertIn("no valid checkpoint", self.run_tool("list", self.db, status=3))

  def test_wrong_directories(self):
    self.assertIn("no such directory", self.run_tool("list", self.db, status=3))
    self.db.mkdir()
    (self.db / "CURRENT").write_text("MANIFEST-000001\n")
    for words in (["list"], ["stats"], ["dump", "log"], ["compact"], ["verify"]):
      self.assertIn("no database" if words[0] not in ("stats", "dump") else "no vtkv database",
                    self.run_tool(*words, self.db, status=3))
    self.assertIn("not empty (CURRENT)", self.run_tool("create", self.db, status=3))
    self.assertEqual([p.name for p in self.db.iterdir()], ["CURRENT"])

  def test_a_database_inside_a_larger_store_is_only_read(self):
    self.fill()
    (self.db / "containers").mkdir()
    (self.db / "containers" / "header").write_text("x")
    for words in (["compact", self.db], ["put", self.db, "k", "v"]):
      self.assertIn("only that program may change it", self.run_tool(*words, status=3))
    self.assertEqual(self.run_tool("get", self.db, "k2"), "value 2\n")

  def test_wrong_usage(self):
    self.fill()
    self.assertIn("two hexadecimal digits", self.run_tool("get", self.db, r"\xzz", status=2))
    self.assertIn("--help", self.run_tool("lsit", self.db, status=2))
    self.run_tool("list", status=2)
    self.run_tool("list", self.db, "--limit", "many", status=2)
    self.run_tool("dump", self.db, status=2)
    self.assertIn("Exit status", self.run_tool("--help"))
    self.assertIn("--operations", self.run_tool("dump", "log", "--help"))

  def test_a_database_in_use(self):
    self.create()
    holder = subprocess.Popen(["flock", "--exclusive", self.db / "lock", "-c", "echo held; read x"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    self.assertEqual(holder.stdout.readline(), "held\n")
    for words in (["list"], ["dump", "log"], ["compact"]):
      self.assertIn("another process has it open", self.run_tool(*words, self.db, status=3))
    holder.communicate("\n")


if __name__ == "__main__":
  if len(sys.argv) < 2:
    sys.exit(__doc__.splitlines()[0])
  TOOL = str(pathlib.Path(sys.argv.pop(1)).resolve())
  unittest.main()
