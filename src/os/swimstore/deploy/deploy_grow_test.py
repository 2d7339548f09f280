#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What `ceph-volume swimstore grow` asks of which program, in which order, with devices that are played, as in played.py."""

import contextlib
import os
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from ceph_volume_swimstore.errors import Failed, Refused  # noqa: E402
from played import FSID, PlayedHost  # noqa: E402

GIB = 1 << 30
FOLDER = "/var/lib/ceph/osd/ceph-7"
DEVICE, MAPPING = "/dev/sda", f"/dev/mapper/swimstore-{FSID}"
PROGRAMS = ("xfs_growfs", "resize2fs", "fsck.ext4", "cryptsetup resize", "cryptsetup --key-file", "cryptsetup luksClose")


class Grown(PlayedHost):
  def setUp(self):
    super().setUp()
    from ceph_volume_swimstore import crypt, filesystem, grow
    self.grow, self.is_open = grow, False
    self.sizes = [2 * GIB, 3 * GIB]  # before, and after
    self.put(os, "statvfs", lambda path: types.SimpleNamespace(f_blocks=self.sizes.pop(0) >> 12, f_frsize=1 << 12))
    self.put(crypt, "is_open", lambda osd_fsid: self.is_open)
    self.put(crypt.conf, "dmcrypt_no_workqueue", False)
    self.put(filesystem, "cluster_fsid", lambda: "ours")

  def osd(self, kind, fs="", mounted=True):
    """osd.7, encrypted where `fs` says what is within."""
    from ceph_volume_swimstore import crypt
    self.disk(DEVICE, 7, kind, size=str(4 * GIB >> 9))
    self.player.answers["config-key get"] = "the passphrase\n", 0
    self.player.answers["blkid -p -s FSLASTBLOCK"] = "DEVNAME=x\nFSLASTBLOCK=524288\nFSBLOCKSIZE=4096\n", 0
    if fs:
      self.player.answers["token export"] = crypt.token_text(7, FSID, "ours", fs, "the secret"), 0
      self.disk(MAPPING, size=str(4 * GIB >> 9))
      self.is_open = mounted
    if mounted:
      self.mount(MAPPING if fs else DEVICE, FOLDER, fs or kind)

  @staticmethod
  def weight(value):
    return f"its CRUSH weight is as before: 'ceph osd crush reweight osd.7 {value}' gives it data for this size"

  def run_it(self, *words):
    self.grow.Grow(["7", *words]).main()
    return self.asked()

  def asked(self):
    return [text for text in self.player.said() if text.startswith(PROGRAMS)]

  def test_while_it_serves(self):
    for kind, command in (("xfs", f"xfs_growfs -d {FOLDER}"), ("ext4", f"resize2fs {DEVICE}")):
      with self.subTest(kind=kind):
        self.entries.clear(), self.mounts.clear(), self.player.calls.clear(), self.said.clear()
        self.sizes = [2 * GIB, 3 * GIB]
        self.osd(kind)
        self.assertEqual(self.run_it(FSID), [command])
        self.assertEqual(self.said, ["the file system of osd.7 has 3.0 GiB now, before it had 2.0 GiB",
                                     self.weight("0.00293")])

  def test_one_that_fills_its_device(self):
    self.osd("xfs")
    self.sizes = [2 * GIB, 2 * GIB]
    self.run_it()
    self.assertEqual(self.said, ["the file system of osd.7 fills its device already: 2.0 GiB", self.weight("0.00195")])

  def test_what_is_within_an_encrypted_one_grows_first(self):
    self.osd("crypto_LUKS", "xfs")
    self.assertEqual(self.run_it(), [f"cryptsetup resize --key-file - swimstore-{FSID}", f"xfs_growfs -d {FOLDER}"])
    self.assertIn((f"cryptsetup resize --key-file - swimstore-{FSID}", "the passphrase"), self.player.calls)
    self.assertNotIn("the passphrase", "".join(self.player.said()))

  def test_a_kernel_that_does_not_enlarge_ext4_below_a_mount(self):
    self.osd("ext4")
    self.player.answers["resize2fs"] = "", 1
    with self.assertRaisesRegex(Failed, f"^resize2fs {DEVICE}: exit 1: it says why; .*'systemctl stop ceph-osd@7', 'ceph-volume swimstore "
                                        f"deactivate 7 {FSID}', '.* grow 7 {FSID}', then '.* activate 7 {FSID}'$"):
      self.run_it()

  def test_ext4_that_is_not_mounted_is_checked_first(self):
    self.osd("ext4", mounted=False)
    self.assertEqual(self.run_it(), [f"fsck.ext4 -p -f {DEVICE}", f"resize2fs {DEVICE}"])
    self.assertIn("the file system of osd.7 fills its device: 4.0 GiB", self.said)
    self.player.calls.clear()
    self.player.answers["fsck.ext4"] = "", 4
    with self.assertRaisesRegex(Failed, f"^fsck.ext4 .*: exit 4: it says why; .* 'e2fsck -f {DEVICE}', by hand$"):
      self.run_it()
    self.assertEqual(self.asked(), [f"fsck.ext4 -p -f {DEVICE}"])

  def test_an_encrypted_one_that_is_closed_is_closed_again(self):
    self.osd("crypto_LUKS", "ext4", mounted=False)
    opened = f"cryptsetup --key-file - --allow-discards luksOpen {DEVICE} swimstore-{FSID}"
    closed = f"cryptsetup luksClose swimstore-{FSID}"
    from ceph_volume_swimstore import crypt
    self.put(crypt, "close", lambda osd_fsid: self.player(closed.split()))
    self.assertEqual(self.run_it(), [opened, f"fsck.ext4 -p -f {MAPPING}", f"resize2fs {MAPPING}", closed])
    self.player.calls.clear()
    self.player.answers["resize2fs"] = "", 1
    with self.assertRaisesRegex(Failed, "exit 1"):
      self.run_it()
    self.assertEqual(self.asked()[-1], closed)
    self.player.calls.clear()
    self.player.answers["fsck.ext4"] = "", 4
    with self.assertRaisesRegex(Failed, f"'e2fsck -f {MAPPING}', by hand. {MAPPING} stays open for that, until '.* deactivate 7 {FSID}'$"):
      self.run_it()
    self.assertEqual(self.asked(), [opened, f"fsck.ext4 -p -f {MAPPING}"])

  def test_one_that_was_open_stays_open_for_a_repair_and_that_is_said(self):
    self.osd("crypto_LUKS", "ext4", mounted=False)
    self.is_open = True
    self.player.answers["fsck.ext4"] = "", 4
    with self.assertRaisesRegex(Failed, f"by hand. {MAPPING} stays open for that, until '.* deactivate 7 {FSID}'$"):
      self.run_it()
    self.assertEqual(self.asked(), [f"cryptsetup resize --key-file - swimstore-{FSID}", f"fsck.ext4 -p -f {MAPPING}"])

  def test_what_was_opened_for_that_is_closed_unless_a_person_is_needed(self):
    from ceph_volume_swimstore import crypt
    closed = []
    self.put(crypt, "close", closed.append)
    for program, code, error in (("fsck.ext4", 8, Failed), ("fsck.ext4", FileNotFoundError, Failed), ("resize2fs", 1, Failed),
                                 ("resize2fs", SystemExit, SystemExit)):
      with self.subTest(program=program, code=code):
        self.entries.clear(), closed.clear()
        self.osd("crypto_LUKS", "ext4", mounted=False)
        self.player.answers[program] = "", code
        with self.assertRaises(error) as raised:
          self.run_it()
        self.assertNotIn("stays open", str(raised.exception))
        self.assertEqual(closed, [FSID])
        self.player.answers.pop(program)

  def test_what_another_command_did_meanwhile_is_seen(self):
    from ceph_volume_swimstore import host
    self.osd("ext4", mounted=False)

    @contextlib.contextmanager
    def lock(name):
      self.mount(DEVICE, FOLDER)  # by activate, which had it
      yield
    self.put(host, "lock", lock)
    self.assertEqual(self.run_it(), [f"resize2fs {DEVICE}"])

  def test_a_size_that_is_not_told(self):
    self.osd("crypto_LUKS", "xfs")
    self.player.answers["blkid -p -s FSLASTBLOCK"] = "", 0
    with self.assertRaisesRegex(Refused, f"^{MAPPING}: blkid does not tell how large its file system is; .* util-linux 2.39"):
      self.run_it()
    self.assertEqual(self.asked(), [])

  def test_one_that_was_made_by_hand(self):
    """`grow` and `activate` would not find it when it is not mounted."""
    from ceph_volume_swimstore import osds
    self.disk(DEVICE, size=str(4 * GIB >> 9))
    self.player.answers["blkid -p -s FSLASTBLOCK"] = "DEVNAME=x\nFSLASTBLOCK=524288\nFSBLOCKSIZE=4096\n", 0
    self.mount(DEVICE, FOLDER)
    self.put(osds, "read_meta", lambda folder, name: {"type": "swimstore", "fsid": FSID}[name])
    self.player.answers["resize2fs"] = "", 1
    with self.assertRaisesRegex(Failed, f"'umount {FOLDER}', 'e2fsck -f {DEVICE}', 'resize2fs {DEVICE}', then mount it") as failed:
      self.run_it()
    self.assertNotIn("activate", str(failed.exception))

  def test_a_device_that_got_smaller(self):
    """Programs would cut off, or shrink what serves."""
    for kind, fs, mounted, needed in (("ext4", "", True, 4 * GIB), ("xfs", "", True, 4 * GIB), ("ext4", "", False, 4 * GIB),
                                      ("crypto_LUKS", "xfs", True, 4 * GIB - (15 << 20)),
                                      ("crypto_LUKS", "ext4", False, 4 * GIB)):
      with self.subTest(kind=kind, fs=fs, mounted=mounted):
        self.entries.clear(), self.mounts.clear(), self.player.calls.clear()
        self.osd(kind, fs, mounted)
        size = needed // 4096 + 1
        self.player.answers["blkid -p -s FSLASTBLOCK"] = f"DEVNAME=x\nFSLASTBLOCK={size}\nFSBLOCKSIZE=4096\n", 0
        with self.assertRaisesRegex(Refused, "it got smaller. Enlarge it to what it was, and write nothing to it until then$"):
          self.run_it()
        self.assertFalse([text for text in self.asked() if "luksOpen" not in text], self.asked())

  def test_refused(self):
    self.osd("xfs", mounted=False)
    with self.assertRaisesRegex(Refused, f"xfs grows only while it is: 'ceph-volume swimstore activate 7 {FSID}' first$"):
      self.run_it()
    self.mount(DEVICE, "/mnt")
    with self.assertRaisesRegex(Refused, f"^{DEVICE} is mounted on /mnt: unmount that first$"):
      self.run_it()
    with self.assertRaisesRegex(Refused, "^osd.8 is on no device of this host"):
      self.grow.Grow(["8"]).main()
    self.assertEqual(self.asked(), [])

  def test_one_of_another_cluster(self):
    from ceph_volume_swimstore import filesystem
    self.osd("ext4", mounted=False)
    self.put(filesystem, "cluster_of", lambda osd: "theirs")
    with self.assertRaisesRegex(Refused, "of another cluster, theirs"):
      self.run_it()
    self.assertEqual(self.asked(), [])


if __name__ == "__main__":
  unittest.main()
