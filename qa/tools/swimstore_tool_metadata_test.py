#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""usage: swimstore_tool_metadata_test.py CEPH_SWIMSTORE_TOOL VTKV_TOOL

What ceph-swimstore-tool does with log and tree in a directory of their own.
"""

import os
import shutil
import subprocess
import unittest

from swimstore_tool_store import StoreTest, main


class SwimstoreToolMetadata(StoreTest):
  def setUp(self):
    super().setUp()
    self.fill()
    self.there = self.base / "fast"

  def objects(self):
    self.assertEqual(self.json("fsck", self.store, "--deep")["errors"], 0)
    return self.json("list", self.store)["objects"]

  def files(self, place):
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())

  def test_they_move_and_come_back(self):
    before = self.objects()
    self.assertEqual(len(before), 3)
    moved = self.json("move-metadata", self.store, "--to", self.there)
    self.assertTrue(moved["moved"])
    self.assertGreater(moved["copied_bytes"], 1 << 20)
    self.assertTrue((self.there / "0/manifest").exists())
    self.assertTrue(all(name.startswith("0/containers/") for name in self.files(self.store / "cubes")))
    self.assertEqual(self.objects(), before)
    self.assertEqual(self.json("info", self.store)["metadata_path"], str(self.there))
    self.assertFalse(self.json("move-metadata", self.store, "--to", f"{self.there}/")["moved"])
    (self.base / "alias").symlink_to(self.there)
    self.assertIn("has log and tree of this store already",
                  self.run_tool("move-metadata", self.store, "--to", self.base / "alias", status=2))

    second = self.base / "second"
    self.json("move-metadata", self.store, "--to", second)
    self.assertEqual(self.files(self.there), ["lock"])
    self.assertEqual(self.objects(), before)

    self.assertTrue(self.json("move-metadata", self.store, "--back")["moved"])
    self.assertEqual(self.files(second), ["lock"])
    self.assertEqual(self.objects(), before)
    self.assertNotIn("metadata_path", self.json("info", self.store))
    self.assertTrue(self.json("move-metadata", self.store, "--to", self.there)["moved"])

  def test_programs_that_know_the_engine_alone_only_read_them(self):
    """They would checkpoint what they do not know of: the slots of the store's objects would count as free."""
    before = self.objects()
    self.json("move-metadata", self.store, "--to", self.there)
    for command in (("put", "key", "value"), ("compact",), ("gc",), ("defragment",), ("upgrade",)):
      done = subprocess.run([self.VTKV, command[0], self.there / "0", *command[1:]], capture_output=True, text=True)
      self.assertEqual(done.returncode, 3, done)
      self.assertIn("holds part_of beside a database, which is part of another program's store", done.stderr)
    self.assertEqual(subprocess.run([self.VTKV, "stats", self.there / "0"], capture_output=True).returncode, 0)
    self.assertEqual(self.objects(), before)

  @unittest.skipUnless(os.geteuid() == 0, "files are given away by root")
  def test_they_are_of_the_user_whom_the_store_is_of(self):
    """A disk was mounted for them, by root: its directory is root's."""
    user, group = 64045, 64046
    for path in (self.store, *self.store.rglob("*")):
      os.chown(path, user, group)
    mounted = self.base / "mounted"
    (mounted / "lost+found").mkdir(parents=True)
    for directory in (self.there, mounted, mounted / "below"):
      self.json("move-metadata", self.store, "--to", directory)
      wrong = [path for path in (directory, *directory.rglob("*")) if path.name != "lost+found" and
               (path.stat().st_uid, path.stat().st_gid) != (user, group)]
      self.assertEqual(wrong, [])
      if directory == mounted:
        self.json("move-metadata", self.store, "--back")
    stranger = self.base / "stranger"
    stranger.mkdir()
    (stranger / "mine").touch()
    self.run_tool("move-metadata", self.store, "--to", stranger, status=2)
    self.assertEqual((stranger.stat().st_uid, (stranger / "mine").stat().st_uid), (0, 0))

  def test_a_new_store_has_them_there_from_the_start(self):
    path = self.base / "new"
    path.mkdir()
    self.run_tool("--set", f"swimstore_metadata_path={self.there}", "mkfs", path)
    self.assertTrue((self.there / "0/manifest").exists())
    self.assertEqual(self.json("fsck", path)["errors"], 0)
    self.assertIn("database_format_version", self.json("info", path))
    self.run_tool("dump", "log", path)

  def test_what_is_not_theirs_is_left_alone(self):
    self.there.mkdir()
    (self.there / "precious").write_text("mine")
    self.assertIn(f"{self.there}/precious is there",
                  self.run_tool("move-metadata", self.store, "--to", self.there, status=2))
    self.assertIn("outside of", self.run_tool("move-metadata", self.store, "--to", self.store / "fast", status=2))
    self.assertIn("named from / on", self.run_tool("move-metadata", self.store, "--to", "fast", status=2))
    self.assertIn("below one that is there",
                  self.run_tool("move-metadata", self.store, "--to", self.base / "no/fast", status=2))
    for words in ([], ["--to", self.base / "fast", "--back"]):
      self.assertIn("needs one of", self.run_tool("move-metadata", self.store, *words, status=2))
    self.assertEqual((self.there / "precious").read_text(), "mine")
    self.assertEqual(len(self.objects()), 3)

  def test_a_directory_that_is_not_there_is_named(self):
    self.json("move-metadata", self.store, "--to", self.there)
    self.there.rename(self.base / "away")
    for command in ("info", "list"):
      self.assertIn(f"should lie in {self.there}", self.run_tool(command, self.store, status=2))
    self.there.mkdir()  # as a mount point below which nothing is mounted
    self.assertIn("Mount its file system", self.run_tool("move-metadata", self.store, "--back", status=2))
    (self.store / "metadata_path").write_text(f"{self.base}/away\n")
    self.assertEqual(len(self.objects()), 3)

  def test_an_old_copy_is_not_taken(self):
    shutil.copytree(self.store / "cubes/0", self.base / "old")
    self.json("move-metadata", self.store, "--to", self.there)
    shutil.copy(self.base / "old/manifest", self.store / "cubes/0/manifest")
    self.assertEqual(len(self.objects()), 3)
    self.assertIn("cubes/0/manifest is there", self.run_tool("move-metadata", self.store, "--back", status=2))


if __name__ == "__main__":
  main(__doc__.splitlines()[0])
