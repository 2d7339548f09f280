#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of how devices' images go from one user to the next."""

import os
import pathlib
import tempfile
import threading
import unittest
from unittest import mock

import images
from sysroot import UserError

SIZE = 1 << 20


class Images(unittest.TestCase):
  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.base = pathlib.Path(folder.name)
    environment = mock.patch.dict(os.environ, {"SWIM_CACHE": folder.name, "SWIM_KEEP_IMAGES": "1"})
    environment.start()
    self.addCleanup(environment.stop)

  def written(self, name, size_bytes=SIZE):
    path = self.base / name
    with open(path, "wb") as out:
      out.write(os.urandom(size_bytes))
      os.fsync(out.fileno())  # or it has no blocks yet
    return path

  def test_one_that_is_given_back_is_taken(self):
    images.give_back(self.written("a.img"))
    self.assertFalse((self.base / "a.img").exists())
    self.assertTrue(images.take(self.base / "b.img", SIZE))
    self.assertTrue(images.is_whole(self.base / "b.img", SIZE))
    self.assertFalse(images.take(self.base / "c.img", SIZE))

  def test_only_one_of_the_same_size_is(self):
    images.give_back(self.written("a.img"))
    self.assertFalse(images.take(self.base / "b.img", 2 * SIZE))

  def test_unless_it_is_asked_for_nothing_is_kept(self):
    del os.environ["SWIM_KEEP_IMAGES"]
    images.give_back(self.written("a.img"))
    self.assertEqual([path for path in self.base.rglob("*") if path.is_file()], [])

  def test_what_became_sparse_is_not_kept(self):
    sparse = self.base / "a.img"
    sparse.touch()
    os.truncate(sparse, SIZE)
    images.give_back(sparse)
    self.assertFalse(sparse.exists())
    self.assertFalse(images.take(self.base / "b.img", SIZE))

  def test_two_never_get_the_same(self):
    for number in range(8):
      images.give_back(self.written(f"{number}.img"))
    got = []

    def take(user):
      while images.take(self.base / f"{user}.{len(got)}.img", SIZE):
        got.append(user)

    users = [threading.Thread(target=take, args=(user,)) for user in range(4)]
    for user in users:
      user.start()
    for user in users:
      user.join()
    self.assertEqual(len(got), 8)

  def test_room_is_needed_for_what_is_not_there(self):
    images.give_back(self.written("free.img"))
    own = self.written("own.img")
    wanted = [(own, SIZE), (self.base / "b.img", SIZE), (self.base / "c.img", SIZE)]
    self.assertEqual(images.missing_bytes(wanted), SIZE)
    images.check_room(wanted)

  def test_what_does_not_fit_is_refused_in_total(self):
    free = os.statvfs(self.base)
    half = free.f_bavail * free.f_frsize * 2 // 3 >> 20 << 20
    images.check_room([(self.base / "a.img", half // 8)])
    with self.assertRaisesRegex(UserError, "SWIM_CACHE"):
      images.check_room([(self.base / "a.img", half), (self.base / "b.img", half)])


if __name__ == "__main__":
  unittest.main()
