#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""usage: swimstore_tool_test.py CEPH_SWIMSTORE_TOOL VTKV_TOOL

Runs ceph-swimstore-tool the way its manual says, on stores that it makes itself and damages in their files.
"""

import fcntl
import os
import pathlib
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
from store_archive import parse  # noqa: E402
from superblock import crc32c  # noqa: E402
from swimstore_tool_store import PG, SETTINGS, StoreTest, main, object_key  # noqa: E402


class SwimstoreTool(StoreTest):
  def test_a_reader_of_all_that_is_said_may_be_slow(self):
    """`2>&1 | less`: Ceph's log sets O_NONBLOCK on a pipe at standard error, which is standard output too here."""
    self.fill(keys=500)
    words = ["dump", "log", self.store, "--operations"]
    whole = self.run_tool(*words)
    ours, theirs = os.pipe()
    self.assertLess(fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, 4096), len(whole))
    with open(ours, encoding="utf-8") as said:
      process = subprocess.Popen([self.TOOL, *map(str, words)], stdout=theirs, stderr=theirs)
      os.close(theirs)
      time.sleep(1)
      self.assertEqual(said.read(), whole)
    self.assertEqual(process.wait(60), 0)

  def test_mkfs(self):
    fsid = self.json("info", self.store)["fsid"]
    self.assertEqual(self.json("mkfs", self.store)["fsid"], fsid)
    other = "11111111-2222-3333-4444-555555555555"
    self.assertIn("holds a store already", self.run_tool("mkfs", self.store, "--fsid", other, status=2))
    self.assertIn("is no UUID", self.run_tool("mkfs", self.store, "--fsid", "one", status=2))
    self.assertIn("not a directory", self.run_tool("mkfs", self.base / "missing", status=2))

  def test_what_is_imported_can_be_exported(self):
    self.fill()
    found = self.exported()
    self.assertEqual(found, parse(self.archive()))
    copy = self.new_store("copy")
    self.run_tool("import", copy, "--in", self.base / "out")
    self.assertEqual(self.exported(store=copy), found)

  def test_compressed_objects_are_exported_as_they_were(self):
    for algorithm in ("snappy", "zlib", "zstd", "lz4"):
      with self.subTest(algorithm):
        self.store = self.new_store(algorithm)
        self.fill_compressed(algorithm)
        self.assertEqual(self.exported(), parse(self.archive()))
        found = self.json("dump", "onode", self.store, "beta")
        blob = found["compressed_blobs"][0]
        self.assertEqual((blob["algorithm"], blob["bytes"]), (algorithm, 65536))
        slot = self.json("dump", "slot", self.store, blob["slot"])["references"]
        self.assertIn(("beta", True), {(row["object"].split(":")[4], row["matches"]) for row in slot if row["compressed"]})

  def test_without_compressor_plugins_nothing_is_taken_for_damage(self):
    self.fill_compressed("zstd")
    before = self.exported()
    missing = ["--set", f"plugin_dir={self.base}"]
    for words in (["fsck", "--deep", self.store], ["repair", "--deep", self.store],
                  ["import", self.store, "--in", self.base / "archive"]):
      self.assertIn(f"{self.store} has compressed data, of pool 1, and Ceph's compressor plugins cannot be loaded from "
                    f"{self.base}/compressor: snappy, zlib, zstd, lz4. Install the package ceph-common in the version of "
                    "this program, ", self.run_tool(*missing, *words, status=2))
    for words in ("fsck", "info", "list"):  # look at no data
      self.run_tool(*missing, words, self.store)
    out = self.base / "out"
    out.write_bytes(b"of an earlier one")
    self.assertIn("it is compressed by zstd; Ceph's compressor plugins cannot be loaded",
                  self.json_error(*missing, "export", self.store, "--out", out)["error"])
    self.assertEqual(out.read_bytes(), b"of an earlier one")
    self.assertIn("it is compressed by zstd; ",
                  self.run_tool(*missing, "export", "--salvage", self.store, "--out", out, status=1))
    self.assertEqual(self.exported(), before)
    self.put(self.names["alpha"], b"damaged")
    self.run_tool(*missing, "repair", "--deep", self.store, status=2)
    self.assertEqual(self.classes(1), {"object_undecodable"}, "nothing was changed")

  def fill_compressed(self, algorithm):
    (self.base / "archive").write_bytes(self.archive())
    self.run_tool("--set", "swimstore_compression_mode=force", "--set", f"swimstore_compression_algorithm={algorithm}",
                  "import", self.store, "--in", self.base / "archive")
    self.run_tool("fsck", "--deep", self.store)

  def test_import_leaves_what_is_there(self):
    self.fill()
    again = self.json("import", self.store, "--in", self.base / "archive", status=1)
    self.assertEqual((again["objects"], len(again["omitted"])), (0, 3))

  def test_import_goes_on_behind_damage(self):
    whole = self.archive()
    (self.base / "archive").write_bytes(b"x" + whole[1:])
    self.assertIn("no archive", self.run_tool("import", self.store, "--in", self.base / "archive", status=2))
    for damaged, message in ((whole[:3000] + b"x" + whole[3001:], "checksum"), (whole[:-20], "cut short")):
      (self.base / "archive").write_bytes(damaged)
      said = self.json("import", self.store, "--in", self.base / "archive", status=1)["omitted"]
      self.assertTrue(any(message in line["text"] for line in said), said)
      if message == "checksum":  # of alpha's data
        self.assertEqual(len(self.exported()), 2)
        self.assertIn("alpha", said[0]["text"])
    self.assertEqual(len(self.exported()), 3)
    self.assertEqual(self.classes(0), set())

  def test_lists(self):
    self.fill()
    objects = self.json("list", self.store)["objects"]
    self.assertEqual([(o["collection"], o["size"]) for o in objects],
                     [(PG, 5000), (PG, len(self.data["beta"])), (PG, 0)])
    self.assertEqual(self.json("list", self.store, "--collection", PG)["objects"], objects)
    self.assertEqual(self.json("list", self.store, "--collections")["collections"],
                     [{"collection": PG, "cube": 0, "bits": 0, "objects": 3}])
    self.assertIn("has no collection 9.9_head",
                  self.run_tool("list", self.store, "--collection", "9.9_head", status=2))
    self.assertIn("alpha", self.run_tool("list", self.store))
    self.assertEqual(self.json("info", self.store)["objects"], 3)

  def test_dumps(self):
    self.fill()
    self.assertTrue(self.json("dump", "superblock", self.store)["first_copy_whole"])
    self.assertEqual(len(self.json("dump", "container", self.store)["containers"]), 11)
    onode = self.json("dump", "onode", self.store, "alpha")
    self.assertEqual((onode["size"], onode["attributes"]), (5000, [{"attribute": "_", "value": "alpha"}]))
    self.assertEqual(self.json("dump", "onode", self.store, onode["object"]), onode)
    self.assertIn("has no object delta", self.run_tool("dump", "onode", self.store, "delta", status=2))
    slot = self.json("dump", "slot", self.store, onode["extents"][0]["slot"], "--out", self.base / "slot")
    self.assertEqual({(r["object"], r["matches"]) for r in slot["references"]}, {(onode["object"], True)})
    self.assertEqual((self.base / "slot").read_bytes()[:4096], self.data["alpha"][:4096])
    self.assertEqual((self.base / "slot").stat().st_mode & 0o777, 0o600)
    self.assertIn("names no slot", self.run_tool("dump", "slot", self.store, "5K/1", status=2))
    log = self.json("dump", "log", self.store, "--operations")
    self.assertTrue(any(o["operation"] == "external_write" for o in log["operations"]))

  def test_names_that_are_no_utf8(self):
    self.names = {name: object_key(name, number << 24) for number, name in enumerate((b"a\xff%", "ü".encode()), 1)}
    self.data = {name: name * 2000 for name in self.names}
    self.fill()
    objects = self.json("list", self.store)["objects"]
    self.assertIn("a%ff%25", objects[0]["object"])
    for number, (name, printed) in enumerate(((b"a\xff%", "a%ff%25"), ("ü".encode(), "%c3%bc"))):
      onode = self.json("dump", "onode", self.store, objects[number]["object"])
      self.assertEqual(onode["size"], len(name) * 2000)
      self.assertEqual(self.json("dump", "onode", self.store, os.fsdecode(name)), onode)
      self.assertEqual(self.json("dump", "onode", self.store, printed), onode)
      # The attribute is called as the object is.
      value = "".join(chr(byte) if byte < 0x7f else f"\\x{byte:02x}" for byte in name)
      self.assertIn({"attribute": value, "value": "x"}, onode["attributes"])
    for nonsense in ("%", "a%f", "%zz", "#1:80000000:::%"):
      self.assertIn("has no object", self.run_tool("dump", "onode", self.store, nonsense, status=2))
    self.assertIn(r"no object \xfe", self.json_error("dump", "onode", self.store, b"\xfe")["error"])

  def test_json_is_whole_whatever_happens(self):
    self.fill()
    self.assertIn("has no object delta", self.json_error("dump", "onode", self.store, "delta")["error"])
    self.assertIn("one of Ceph's options", self.json_error("--set", "nonsense=1", "info", self.store)["error"])
    self.assertIn("subcommand", self.json_error("fcsk", self.store)["error"])
    archive = self.base / "archive"
    archive.write_bytes(archive.read_bytes()[:-20])
    cut = self.json("import", self.store, "--in", archive, status=1)["omitted"]
    self.assertTrue(any("cut short" in line["text"] for line in cut), cut)
    containers = self.store / "cubes/0/containers"
    (containers / "64K").rename(containers / "other")
    cut = self.json_error("info", self.store)
    self.assertEqual(len(cut["fsid"]), 36)
    self.assertIn("64K", cut["error"])

  def test_an_export_that_fails_leaves_the_earlier_archive(self):
    self.fill()
    out = self.base / "out"
    self.run_tool("export", self.store, "--out", out)
    before = out.read_bytes()
    (self.store / "cubes/0/manifest").rename(self.base / "manifest")
    self.run_tool("export", self.store, "--out", out, status=2)
    self.assertEqual(out.read_bytes(), before)

  def test_looking_changes_nothing(self):
    self.fill()
    before = self.content()
    self.exported()
    for words in (["info"], ["list"], ["list", "--quarantined-entries"], ["dump", "superblock"], ["dump", "container"],
                  ["dump", "log"]):
      self.run_tool(*words, self.store)
    self.run_tool("dump", "onode", self.store, "beta")
    self.assertEqual(self.content(), before)

  def test_a_sound_store(self):
    self.fill()
    self.assertEqual(self.classes(0), set())
    self.assertEqual(self.classes(0, "--deep"), set())
    self.assertEqual(self.json("repair", self.store, "--deep")["repairs"], [])
    self.assertIn("has no cube 1", self.run_tool("fsck", self.store, "--cube", 1, status=2))

  def test_damaged_data_stays_and_is_named(self):
    self.fill()
    before = self.exported()
    slot = self.json("dump", "onode", self.store, "alpha")["extents"][0]["slot"]
    name, index = slot.split("/")
    with open(self.store / "cubes/0/containers" / name, "r+b") as container:
      container.seek(int(index) * int(name[:-1]) * 1024 + 100)
      container.write(b"damage")
    self.assertIn(False, [r["matches"] for r in self.json("dump", "slot", self.store, slot)["references"]])
    self.assertEqual(self.classes(0), set())
    self.assertEqual(self.classes(1, "--deep"), {"data_unreadable"})
    repaired = self.json("repair", self.store, "--deep", status=1)
    self.assertEqual((repaired["repairs"], repaired["errors"]), ([], 1))
    self.expect_unchanged_but(before, "alpha", status=1)

  def test_an_undecodable_object_is_quarantined(self):
    self.fill()
    before = self.exported()
    self.put(self.names["alpha"], b"damaged")
    self.assertEqual(self.classes(1), {"object_undecodable"})
    self.assertFalse(self.json("dump", "onode", self.store, "alpha")["decodable"])
    self.assertGreater(len(self.json("repair", self.store)["repairs"]), 0)
    self.assertEqual(self.classes(0, "--deep"), set())
    entries = self.json("list", self.store, "--quarantined-entries")["entries"]
    self.assertEqual([entry["value_bytes"] for entry in entries], [len(b"damaged")])
    self.expect_unchanged_but(before, "alpha", status=1)
    omitted = self.json("export", self.store, "--out", self.base / "out", status=1)["omitted"]
    self.assertIn("1 entries that repair quarantined", omitted[0]["text"])
    self.assertIn("give --force", self.run_tool("forget-quarantined-entries", self.store, status=2))
    forgotten = self.json("forget-quarantined-entries", self.store, "--force")
    self.assertEqual(forgotten["forgotten_entries"], 1)
    self.assertIn(f"ceph-swimstore-tool repair {self.store}", forgotten["next"])
    self.assertEqual(self.classes(1), {"slot_leaked"})
    self.run_tool("repair", self.store)
    self.assertEqual(self.classes(0), set())
    self.expect_unchanged_but(before, "alpha")

  def test_old_names_are_refused_with_the_new_ones(self):
    self.fill()
    self.assertIn("called --quarantined-entries now", self.run_tool("list", self.store, "--lost", status=2))
    said = self.run_tool("forget-lost", self.store, "--force", status=2)
    self.assertIn("called forget-quarantined-entries now", said)
    old = "swimstore_space_brake_time"  # tidy: allow the old name
    for words in (["info"], ["list"], ["export", "--out", self.base / "out"]):
      self.assertIn(f"option {old} is called swimstore_space_throttle_time now",
                    self.run_tool("--set", old + "=4", *words, self.store, status=2))

  def test_quarantine_is_said_of_entries_and_of_slots(self):
    said = " ".join((self.run_tool("--help") + self.run_tool("list", "--help")).split())
    self.assertEqual(said.count("entries of the tree that repair quarantined"), 3, said)
    self.fill()
    self.assertEqual(self.json("info", self.store)["quarantined_entries"], 0)
    self.assertEqual(self.json("list", self.store, "--quarantined-entries")["entries"], [])

  def test_what_was_quarantined_is_put_back(self):
    self.fill()
    before = self.exported()
    self.put(self.names["alpha"], b"damaged")
    self.run_tool("repair", self.store)
    done = self.json("put-back", self.store, status=1)
    self.assertEqual((done["entries_put_back"], done["entries_left"], done["quarantined_entries"]), (1, 0, 0))
    self.assertEqual(self.classes(1), {"object_undecodable"})
    self.expect_unchanged_but(before, "alpha", status=1)

  def test_what_no_other_osd_has_stays(self):
    self.fill()
    self.put(object_key("", 0), b"damaged")  # the PG's own record
    self.assertEqual(self.classes(1), {"only_copy_undecodable"})
    self.assertEqual(self.json("repair", self.store, status=1)["repairs"], [])
    self.assertEqual(len(self.json("repair", self.store, "--only-copies")["repairs"]), 1)
    self.assertEqual(self.classes(0), set())

  def test_orphans_are_quarantined(self):
    self.fill()
    before = self.exported()
    self.put(b"M" + struct.pack(">Q", 999) + b"key", b"value")
    self.put(b"H" + struct.pack(">Q", 999), b"header")
    self.put(b"E" + struct.pack(">QI", 999, 1), b"\1\0")
    self.assertEqual(self.classes(1), {"omap_orphaned", "extents_orphaned"})
    self.run_tool("repair", self.store)
    self.assertEqual(self.classes(0), set())
    self.assertEqual(len(self.json("list", self.store, "--quarantined-entries")["entries"]), 3)
    self.expect_unchanged_but(before, status=1)

  def test_a_wrong_reference_count_is_counted_anew(self):
    self.fill()
    before = self.exported()
    name, index = self.json("dump", "onode", self.store, "alpha")["extents"][0]["slot"].split("/")
    size_class = ("4K", "8K", "16K").index(name)
    self.put(b"S" + struct.pack(">Q", size_class << 56 | int(index)), b"\x63")
    self.assertEqual(self.classes(1), {"slot_count_wrong"})
    self.run_tool("repair", self.store)
    self.assertEqual(self.classes(0), set())
    self.expect_unchanged_but(before)

  def test_one_copy_of_the_superblock_is_enough(self):
    self.fill()
    with open(self.store / "superblock", "r+b") as superblock:
      superblock.seek(20)
      superblock.write(b"damage")
      superblock.flush()
      found = self.json("dump", "superblock", self.store)
      self.assertEqual((found["first_copy_whole"], found["second_copy_whole"]), (False, True))
      self.assertEqual(self.classes(0), set())
      superblock.seek(4096 + 20)
      superblock.write(b"damage")
    self.assertEqual(self.classes(1), {"store_does_not_open"})

  def write_superblock(self, version, features=b""):
    """With this version and these features, in both copies, under right checksums (format/superblock.h)."""
    copy = bytearray((self.store / "superblock").read_bytes()[:72]) + struct.pack("<I", len(features))
    copy[8:12] = struct.pack("<I", version)
    copy += struct.pack("<I", crc32c(bytes(copy) + features)) + features
    whole = bytes(copy).ljust(4096, b"\0") * 2
    (self.store / "superblock").write_bytes(whole)
    return whole

  @staticmethod
  def feature(kind, name):
    return bytes([("compat", "ro_compat", "incompat").index(kind), len(name)]) + name.encode()

  def test_a_store_of_an_older_program_waits_for_its_upgrade(self):
    self.fill()
    newest = (self.store / "superblock").read_bytes()
    info = self.json("info", self.store)
    features = "compressed_blobs, split_slots"
    self.assertEqual((info["format_version"], info["incompat_features"], info["upgradable"]), (3, features, False))
    older = self.write_superblock(2)
    self.assertEqual(self.classes(0, "--deep"), set())
    self.run_tool("import", self.store, "--in", self.base / "archive", status=1)  # all are there
    self.assertEqual((self.store / "superblock").read_bytes(), older)
    info = self.json("info", self.store)
    self.assertEqual((info["format_version"], info["incompat_features"], info["upgradable"]), (2, "split_slots", True))
    self.assertEqual(self.json("upgrade", self.store),
                     {"upgraded": True, "format_version_before": 2, "format_version": 3, "compat_features": "-",
                      "ro_compat_features": "-", "incompat_features": features, "upgradable": False,
                      "database_format_version": 3, "database_compat_features": "-", "database_ro_compat_features": "-",
                      "database_incompat_features": "compressed_blocks", "database_upgradable": False})
    self.assertEqual((self.store / "superblock").read_bytes(), newest)
    self.assertFalse(self.json("upgrade", self.store)["upgraded"])
    self.assertEqual(self.classes(0, "--deep"), set())
    self.write_superblock(3, self.feature("incompat", "split_slots"))  # of 0.5: nothing may be compressed
    self.assertTrue(self.json("info", self.store)["upgradable"])
    self.assertEqual(self.classes(0, "--deep"), set())
    self.assertTrue(self.json("upgrade", self.store)["upgraded"])
    self.assertEqual((self.store / "superblock").read_bytes(), newest)

  def test_databases_without_compressed_blocks_get_them_unless_declined(self):
    def database(*words):
      info = self.json("info", *words)
      return info["database_format_version"], info["database_incompat_features"], info["database_upgradable"]

    self.assertEqual(database(self.store), (3, "compressed_blocks", False))
    older, without = self.base / "older", ("--set", "swimstore_compress_metadata=false")
    older.mkdir()
    self.run_tool("mkfs", older, *without)
    self.assertEqual(database(older), (3, "-", True))
    self.assertEqual(database(older, *without), (3, "-", False))
    self.assertFalse(self.json("upgrade", older, *without)["upgraded"])
    self.assertTrue(self.json("upgrade", older)["upgraded"])
    self.assertEqual(database(older), (3, "compressed_blocks", False))

  def test_what_a_newer_program_added_is_named(self):
    self.fill()
    compressed, split = (self.feature("incompat", name) for name in ("compressed_blobs", "split_slots"))
    known = compressed + split
    archive, out = self.base / "archive", self.base / "out"
    changing = (["repair"], ["put-back"], ["forget-quarantined-entries", "--force"], ["upgrade"],
                ["import", "--in", archive])
    looking = (["info"], ["list"], ["list", "--collections"], ["dump", "container"], ["dump", "log"], ["fsck"], ["fsck", "--deep"],
               ["export", "--out", out])

    whole = self.write_superblock(3, self.feature("compat", "dots") + known)
    self.assertEqual(self.json("info", self.store)["compat_features"], "dots")
    for words in (*looking, ["repair"], ["upgrade"]):
      self.run_tool(*words, self.store)
    self.assertEqual((self.store / "superblock").read_bytes(), whole)

    self.write_superblock(3, self.feature("ro_compat", "lines") + known)
    before = self.content()
    for words in looking:
      self.run_tool(*words, self.store)
    for words in changing:
      self.assertIn("does not know: lines. ", self.json_error(*words, self.store)["error"])
    self.assertEqual(self.content(), before)

    self.write_superblock(3, compressed + self.feature("incompat", "planes") + split)
    before = self.content()
    for words in (*looking, *changing, ["export", "--salvage", "--out", out]):
      self.assertIn("cannot read without: planes; use that program", self.json_error(*words, self.store)["error"])
    self.assertEqual(self.json_error("info", self.store)["incompat_features"], "compressed_blobs, planes, split_slots")
    self.assertEqual(self.json("dump", "superblock", self.store)["incompat_features"], "compressed_blobs, planes, split_slots")
    self.assertEqual(self.content(), before)

    self.write_superblock(4, known)
    for words in (*looking, *changing, ["export", "--salvage", "--out", out]):
      self.assertIn("written in format version 4", self.json_error(*words, self.store)["error"])

  def try_export(self, *words):
    """Exit status, and the objects of the archive."""
    out = self.base / "tried"
    out.write_bytes(b"of an earlier one")
    out.chmod(0o644)
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    done = subprocess.run([self.TOOL, *settings, "export", self.store, "--out", out, *words], capture_output=True)
    self.assertIn(done.returncode, (0, 1, 2), done.stderr)
    if done.returncode < 2:
      self.assertEqual(out.stat().st_mode & 0o777, 0o600)
    return done.returncode, parse(out.read_bytes()) if done.returncode < 2 else {}

  def test_salvage_needs_neither_superblock_nor_header(self):
    self.fill()
    before = self.exported()
    for file, damage in (("superblock", b""), ("cubes/0/containers/header", b"x" * 4096)):
      (self.store / file).write_bytes(damage)
      self.run_tool("export", self.store, "--out", self.base / "out", status=2)
      self.assertEqual(self.try_export("--salvage"), (1, before))
    said = self.json("export", self.store, "--out", self.base / "out", "--salvage", status=1)["omitted"]
    self.assertEqual(["superblock" in said[0]["text"], "header" in said[1]["text"]], [True, True])
    (self.store / "cubes/0/containers/64K").unlink()
    status, saved = self.try_export("--salvage")
    self.assertEqual((status, {key: before[key] for key in saved}), (1, saved))
    self.assertIn(self.key_of("gamma"), saved)

  def test_salvage_goes_on_behind_a_damaged_block_of_the_tree(self):
    self.data = {}
    self.names = {f"object{number}": object_key(f"object{number}", number << 20) for number in range(1500)}
    self.fill()
    before = self.exported()
    self.assertEqual(len(before), len(self.names))
    tree = self.store / "cubes/0/tree"
    content = tree.read_bytes()
    used = [at for at in range(0, len(content), 4096) if content[at:at + 4096].strip(b"\0")]
    ended = behind = 0
    for at in used[::max(1, len(used) // 12)]:
      tree.write_bytes(content[:at + 40] + bytes([content[at + 40] ^ 16]) + content[at + 41:])
      if self.try_export()[0] == 2:
        ended += 1
        _, saved = self.try_export("--salvage")
        self.assertEqual({key: before[key] for key in saved}, saved)
        behind += len(saved) > len(before) / 2
    self.assertGreater(ended, 0)
    self.assertGreater(behind, 0)

  def test_of_very_many_objects_the_first_thousand_are_named(self):
    self.data = {}
    self.names = {f"object{number}": object_key(f"object{number}", number << 20) for number in range(1500)}
    self.fill()
    said = self.json("import", self.store, "--in", self.base / "archive", status=1)["omitted"]
    self.assertEqual(len(said), 1001)
    self.assertIn("and 500 more", said[-1]["text"])

  def test_a_store_whose_superblock_is_missing_is_not_made_anew(self):
    self.fill()
    superblock = (self.store / "superblock").read_bytes()
    before = self.exported()
    (self.store / "superblock").unlink()
    content = self.content()
    self.assertIn("do not run mkfs", self.run_tool("mkfs", self.store, status=2))
    self.assertIn("do not run mkfs", self.run_tool("info", self.store, status=2))
    self.assertEqual(self.classes(1), {"store_does_not_open"})
    self.assertEqual(self.content(), content)
    (self.store / "superblock").write_bytes(superblock)
    self.expect_unchanged_but(before)

  def test_a_repair_that_was_cut_short_keeps_the_store_from_serving(self):
    self.fill()
    (self.store / "repair_unfinished").write_text("")
    self.assertEqual(self.classes(1), {"repair_unfinished"})
    error = self.run_tool("import", self.store, "--in", self.base / "archive", status=2)
    self.assertIn(f"ceph-swimstore-tool repair {self.store}", error)
    self.run_tool("repair", self.store)
    self.assertEqual(self.classes(0), set())

  def test_an_import_that_was_cut_short_keeps_the_store_from_serving(self):
    self.fill()
    before = self.exported()
    mark = self.store / "import_unfinished"
    archive = self.base / "archive"
    mark.write_text(f"{archive}\n")
    self.assertIn(f"'ceph-swimstore-tool import {self.store} --in {archive}'", self.run_tool("balance", self.store, status=2))
    (self.base / "no_archive").write_text("not an archive")
    self.run_tool("import", self.store, "--in", self.base / "no_archive", status=2)
    (self.base / "other").write_bytes(archive.read_bytes())
    other = self.json("import", self.store, "--in", self.base / "other", status=1)  # all is there already
    self.assertTrue(mark.exists())
    self.assertIn(f"the import of {archive}: run it again", other["still_unfinished"])
    self.assertEqual(self.classes(1), {"import_unfinished"})
    half = self.json("export", self.store, "--out", self.base / "half", status=1)
    self.assertIn(f"the import of {archive} into {self.store} did not come to its end", str(half))
    self.run_tool("import", self.store, "--in", archive, status=1)
    self.assertFalse(mark.exists())
    self.run_tool("import", self.store, "--in", self.base / "no_archive", status=2)
    self.assertFalse(mark.exists())
    self.expect_unchanged_but(before)

  def test_an_import_is_not_over_while_another_one_is_not(self):
    (self.base / "archive").write_bytes(self.archive())
    (self.store / "import_unfinished").write_text("/another/archive\n")
    said = self.json("import", self.store, "--in", self.base / "archive", status=1)
    self.assertEqual(said["objects"], 3)
    self.assertIn("/another/archive", said["still_unfinished"])

  def test_configuration_comes_from_the_file_that_is_named_alone(self):
    conf = self.base / "conf"
    conf.write_text("[osd.7]\nswimstore_memtable_size = 1\n")
    tool = [self.TOOL, "--set", "swimstore_allow_unproven_file_system=true"]
    for status, osd in ((0, "6"), (2, "7")):
      (self.store / "whoami").write_text(osd + "\n")
      done = subprocess.run([*tool, "--conf", conf, "fsck", self.store], capture_output=True, text=True)
      self.assertEqual(done.returncode, status, done)
    self.assertIn("swimstore_memtable_size", done.stderr)
    for variables in ({"CEPH_CONF": str(conf)}, {"CEPH_ARGS": "--swimstore_memtable_size=1"}):
      done = subprocess.run([*tool, "fsck", self.store], capture_output=True, text=True, env=os.environ | variables)
      self.assertEqual(done.returncode, 0, done)
    missing = self.base / "missing"
    self.assertIn(f"cannot read --conf {missing}", self.run_tool("--conf", missing, "fsck", self.store, status=2))

  def test_a_store_whose_tree_is_damaged(self):
    self.fill()
    before = self.content()
    manifest = self.store / "cubes/0/manifest"
    manifest.write_bytes(b"\xff" * manifest.stat().st_size)
    self.assertEqual(self.classes(1), {"store_does_not_open"})
    self.assertEqual(self.json("repair", self.store, status=1)["repairs"], [])
    changed = {p for p, data in self.content().items() if before.get(p) != data}
    self.assertEqual(changed, {manifest})

  def test_a_store_in_use(self):
    self.fill()
    holder = subprocess.Popen(["flock", "--exclusive", self.store / "lock", "-c", "echo held; read x"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    self.assertEqual(holder.stdout.readline(), "held\n")
    for words in (["fsck"], ["repair"], ["info"], ["list"], ["dump", "log"], ["import", "--in", "/dev/null"]):
      self.assertIn("in use by another process", self.run_tool(*words, self.store, status=2))
    holder.communicate("\n")

  def test_wrong_usage(self):
    self.assertIn("--help", self.run_tool("fcsk", self.store, status=2))
    self.run_tool("fsck", status=2)
    self.run_tool("--format", "xml", "fsck", self.store, status=2)
    self.assertIn("one of Ceph's options", self.run_tool("--set", "nonsense=1", "info", self.store, status=2))
    self.assertIn("no such directory", self.run_tool("info", self.base / "missing", status=2))
    self.assertIn("Exit status", self.run_tool("--help"))


if __name__ == "__main__":
  main(__doc__.splitlines()[0])
