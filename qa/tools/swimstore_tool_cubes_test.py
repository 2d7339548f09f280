#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""usage: swimstore_tool_cubes_test.py CEPH_SWIMSTORE_TOOL VTKV_TOOL

What ceph-swimstore-tool does with the cubes of a store: more of them, and placement groups that go from one to another.
"""

import struct

from store_archive import begin, end, prefixed, record, varint
from swimstore_tool_store import NOGEN, PG, StoreTest, main, object_key


class SwimstoreToolCubes(StoreTest):
  def homes(self, store):
    return {one["collection"]: one["cube"] for one in self.json("list", store, "--collections")["collections"]}

  def new_groups(self):
    """A store with cubes, and four groups in it."""
    store = self.base / "cubes"
    store.mkdir()
    self.run_tool("--set", "swimstore_cubes=4", "mkfs", store)
    groups = [f"1.{number}_head" for number in range(4)]
    records = b"".join(record(b"C", prefixed(group.encode()) + varint(2)) for group in groups)
    (self.base / "groups").write_bytes(begin() + records + end(0))
    self.run_tool("import", store, "--in", self.base / "groups")
    return store, groups

  def test_what_lies_in_the_way_of_a_group_is_kept(self):
    store, groups = self.new_groups()
    target = self.homes(store)[groups[1]] % 4 + 1
    self.put(object_key("stray", 0x9 << 28), b"value", store / "cubes" / str(target))
    for _ in range(2):  # there is a mount in between
      self.assertIn(f"objects of its range lie in cube {target} already, in no collection",
                    self.run_tool("move", store, "--collection", groups[1], "--to", target, status=2))
    self.assertEqual([one["collection"] for one in self.json("list", store, "--cube", target)["objects"]], ["-"])

  def test_groups_are_moved_and_balanced(self):
    store, groups = self.new_groups()
    at_first = self.homes(store)
    self.assertEqual(sorted(at_first.values()), [1, 2, 3, 4])
    for group in groups:
      moved = self.json("move", store, "--collection", group, "--to", 2)
      self.assertEqual((moved["moved"], moved["from_cube"], moved["to_cube"]),
                       (at_first[group] != 2, at_first[group], 2))
    self.assertEqual(set(self.homes(store).values()), {2})
    planned = self.json("balance", store, "--dry-run")["planned_moves"]
    self.assertEqual(len(planned), 3)
    self.assertEqual(set(self.homes(store).values()), {2})
    self.assertEqual(self.json("balance", store)["moves"], planned)
    self.assertEqual(sorted(self.homes(store).values()), [1, 2, 3, 4])
    self.assertEqual(self.json("fsck", store)["errors"], 0)
    self.assertIn("are moved to cubes 1 to 4, not to cube 5",
                  self.run_tool("move", store, "--collection", groups[0], "--to", 5, status=2))
    for name in ("1.x", "1.1b", "1.00_head"):
      self.assertIn("names no collection", self.run_tool("move", store, "--collection", name, "--to", 1, status=2))
    self.assertIn("has no placement group 7.0_head",
                  self.run_tool("move", store, "--collection", "7.0_head", "--to", 1, status=2))
    self.assertIn("takes all cubes", self.run_tool("balance", store, "--cube", 1, status=2))

  def test_of_an_abandoned_cube_nothing_is_taken_for_the_copy_that_was_made_in_its_stead(self):
    store, groups = self.new_groups()
    archive = self.base / "archive"
    home = self.homes(store)[groups[0]]
    for mark, status in (("abandoned: a test says so", 0), ("a mark that says nothing", 1)):
      (store / f"cube_{home}_failed").write_text(mark + "\n")
      said = self.run_tool("export", store, "--salvage", "--collection", groups[1], "--out", archive, status=2)
      self.assertIn(f"what it had may lie in cube {home} alone", said)
      self.assertFalse(archive.exists())
      self.assertIn(f"lies in cube {home} alone", self.run_tool("export", store, "--salvage", "--out", archive, status=1))
      self.json("export", store, "--salvage", "--collection", groups[0], "--cube", home, "--out", archive,
                status=status)
      self.assertIn("has no collection meta",
                    self.run_tool("export", store, "--salvage", "--collection", "meta", "--out", archive, status=2))
      archive.unlink()

  def test_a_store_with_one_cube_has_nothing_to_move(self):
    self.fill()
    self.assertIn("has one cube", self.run_tool("move", self.store, "--collection", PG, "--to", 1, status=2))
    self.assertEqual(self.json("balance", self.store)["moves"], [])

  def test_a_store_gets_more_cubes(self):
    self.fill()
    before = self.exported()
    self.assertEqual(set(self.homes(self.store).values()), {0})
    for wanted, message in (("3", "1, 2, 4"), ("0", "1, 2, 4"), ("128", "up to 64 cubes"), ("many", "--to"), ("-2", "--to")):
      self.assertIn(message, self.run_tool("add-cubes", self.store, "--to", wanted, status=2))
    self.assertIn("--to is required", self.run_tool("add-cubes", self.store, status=2))
    added = self.json("add-cubes", self.store, "--to", 4)
    self.assertEqual((added["data_cubes_before"], added["data_cubes"]), (1, 4))
    self.assertIn(f"ceph-swimstore-tool balance {self.store}", added["next"])
    info = self.json("info", self.store)
    self.assertEqual((info["cubes"], info["upgradable"]), (5, False))
    self.assertEqual(self.json("dump", "superblock", self.store)["ro_compat_features"], "groups_in_cube_0, witness")
    self.assertEqual(set(self.homes(self.store).values()), {0})
    self.assertEqual(self.classes(0, "--deep"), set())
    self.assertEqual(self.exported(), before)
    self.assertEqual(self.json("add-cubes", self.store, "--to", 4)["data_cubes_before"], 4)
    self.assertIn("over 4 cubes already", self.run_tool("add-cubes", self.store, "--to", 2, status=2))
    self.assertIn("takes all cubes", self.run_tool("add-cubes", self.store, "--to", 8, "--cube", 1, status=2))
    self.assertIn("not to cube 0", self.run_tool("move", self.store, "--collection", PG, "--to", 0, status=2))
    self.assertEqual([(one["collection"], one["from_cube"]) for one in self.json("balance", self.store)["moves"]], [(PG, 0)])
    self.assertNotEqual(self.homes(self.store)[PG], 0)
    self.assertEqual(self.classes(0, "--deep"), set())
    self.assertEqual(self.exported(), before)

  def test_the_omap_of_an_own_object_is_left_out_once_there_are_more_cubes(self):
    own = b"O\0\x7f" + struct.pack(">QI", (1 << 63) - 1, 0) + b"\0" + b"map" + b"\0=" + struct.pack(">QQ", 0, NOGEN)
    archive = (begin() + record(b"C", prefixed(b"meta") + varint(0)) + record(b"O", prefixed(own) + varint(0))
               + record(b"A", prefixed(b"_") + prefixed(b"x")) + record(b"M", prefixed(b"key") + prefixed(b"value"))
               + record(b"E", b"") + end(1))
    (self.base / "own").write_bytes(archive)
    self.run_tool("import", self.store, "--in", self.base / "own")
    before = self.exported()
    self.run_tool("add-cubes", self.store, "--to", 2)
    self.assertEqual(self.classes(0, "--deep"), set())
    after = self.exported(1)
    self.assertNotEqual(after, before)
    self.assertEqual(set(after), set(before))

  def test_a_link_is_not_followed(self):
    self.fill()
    outside = self.base / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"mine")
    (self.store / "cubes/2").symlink_to(outside)
    self.assertIn(f"{self.store}/cubes/2 is there", self.run_tool("add-cubes", self.store, "--to", 2, status=2))
    (self.store / "add_cubes_unfinished").write_text("3\n")
    for number in (1, 2, 4):
      self.assertIn(f"{self.store}/cubes/2 is a symbolic link",
                    self.run_tool("add-cubes", self.store, "--to", number, status=2))
    self.assertEqual((outside / "precious").read_bytes(), b"mine")
    (self.store / "cubes/2").unlink()
    self.json("add-cubes", self.store, "--to", 1)
    self.assertFalse((self.store / "add_cubes_unfinished").exists())

  def test_more_cubes_where_they_cannot_be_made(self):
    self.fill()
    mine = self.store / "cubes/2"
    mine.mkdir()
    (mine / "precious").write_bytes(b"mine")
    before = self.content()
    self.assertIn(f"{mine}/precious is there", self.run_tool("add-cubes", self.store, "--to", 2, status=2))
    self.assertEqual((mine / "precious").read_bytes(), b"mine")
    self.assertEqual(set(self.content()), set(before))
    self.assertIn("no such directory", self.run_tool("add-cubes", self.base / "missing", "--to", 2, status=2))
    self.assertIn("holds no SwimStore", self.run_tool("add-cubes", self.base, "--to", 2, status=2))


if __name__ == "__main__":
  main(__doc__.splitlines()[0])
