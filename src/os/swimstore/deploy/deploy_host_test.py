#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the commands of ceph-volume's plugin do with the devices that a host has: those are played, as in played.py."""

import errno
import os
import pathlib
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from ceph_volume_swimstore import names, parsing  # noqa: E402
from ceph_volume_swimstore.errors import Failed, Refused  # noqa: E402
from played import FSID, OTHER_FSID, PlayedHost  # noqa: E402


class Zapped(PlayedHost):
  def test_another_path_to_the_disk_of_an_osd_is_refused(self):
    for attributes in ({"device__wwid": "naa.5000"}, {"wwid": "nvme.1"}, {"serial": "x"}, {"loop__backing_file": "/a file"}, {}):
      for mounted in (False, True):
        for destroy in (False, True):
          with self.subTest(attributes=attributes, mounted=mounted, destroy=destroy):
            self.entries.clear(), self.mounts.clear(), self.player.calls.clear()
            self.disk("/dev/sda", 7, **attributes)
            self.disk("/dev/sdb", 7, **attributes)
            if mounted:
              self.mount("/dev/sda", "/var/lib/ceph/osd/ceph-7")
            with self.assertRaisesRegex(Refused, "^/dev/sdb (is the same disk as|holds the same as) /dev/sda.* multipathd "):
              self.zap("/dev/sdb", destroy)
            self.assertEqual(self.called("wipefs --all") + self.called("systemctl"), [])

  def test_another_disk_with_the_same_serial(self):
    self.disk("/dev/sda", 7, serial="x")
    self.disk("/dev/sdb", 8, serial="x", fsid=OTHER_FSID)
    self.disk("/dev/sdc", 9, serial="x", size="4096")
    for path in ("/dev/sdb", "/dev/sdc"):
      self.zap(path)
    self.assertEqual(self.called("wipefs --all"), ["wipefs --all /dev/sdb", "wipefs --all /dev/sdc"])

  def test_a_copy_goes_and_the_osd_stays_enabled(self):
    self.disk("/dev/sda", 7, device__wwid="naa.5000")
    self.disk("/dev/sdb", 7, device__wwid="naa.5001")
    self.mount("/dev/sda", "/var/lib/ceph/osd/ceph-7")
    self.zap("/dev/sdb")
    self.assertEqual(self.called("wipefs --all"), ["wipefs --all /dev/sdb"])
    self.assertEqual(self.called("systemctl"), [])
    self.assertFalse([text for text in self.said if "purge" in text], self.said)

  def test_the_last_one_is_not_started_any_more(self):
    self.disk("/dev/sda", 7, device__wwid="naa.5000")
    self.disk("/dev/sdb", 8, fsid=OTHER_FSID)
    self.zap("/dev/sda")
    self.assertEqual(self.called("systemctl"), [f"systemctl disable ceph-volume@swimstore-7-{FSID}"])
    self.assertEqual(self.called("wipefs --all"), ["wipefs --all /dev/sda"])

  def test_one_that_is_started_with_the_host(self):
    """It did not come up: its log and tree are not mounted, say, or monitors are away."""
    from ceph_volume_swimstore import units, zap
    folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
    self.put(units, "ENABLED", folder)
    unit = folder / "multi-user.target.wants" / f"ceph-volume@swimstore-7-{FSID}.service"
    unit.parent.mkdir()
    unit.touch()
    for path, kind in (("/dev/sda", "ext4"), ("/dev/sdb", "crypto_LUKS")):
      self.entries.clear()
      self.disk(path, 7, kind)
      for words in ([path], ["--destroy", path], ["--no-systemd", path], ["--osd-fsid", FSID]):
        with self.subTest(words=words):
          with self.assertRaisesRegex(Refused, f"^{path} holds osd.7, fsid {FSID}, which is started with this host: "
                                      f"'ceph-volume swimstore deactivate 7 {FSID}' first$"):
            zap.Zap(words).main()
          self.assertEqual(self.called("wipefs --all") + self.called("systemctl") + self.called("luksErase"), [])
    unit.unlink()
    self.zap("/dev/sdb")
    self.assertEqual(self.called("wipefs --all"), ["wipefs --all /dev/sdb"])

  def test_nobody_activates_it_meanwhile(self):
    """trigger at the start of the host, for one, opens an encrypted device: it has the lock of the fsid."""
    from ceph_volume_swimstore import host, zap
    self.disk("/dev/sda")
    for number, fsid in ((1, FSID), (2, FSID), (3, OTHER_FSID)):
      self.disk(f"/dev/sda{number}", 7, fsid=fsid, part_of="/dev/sda", device__wwid=f"naa.{number}")
    self.disk("/dev/sdb", 8)
    for path, locked in (("/dev/sda", [FSID, OTHER_FSID]), ("/dev/sdb", [FSID])):
      with self.subTest(path=path):
        seen = []
        self.put(host.BlockDevice, "partitions",
                 lambda device: [f"/dev/sda{number}" for number in (1, 2, 3)] if device.path == "/dev/sda" else [])
        self.put(host.BlockDevice, "busy", lambda device: seen.append(("busy", *self.locked)) or "")
        self.put(zap, "_wipe", lambda device, destroy: seen.append(("wipe", *self.locked)))
        self.zap(path, destroy=True)
        self.assertEqual({kind for kind, *_ in seen}, {"busy", "wipe"})
        self.assertEqual({tuple(held) for _, *held in seen}, {tuple(locked)})
    self.assertEqual(self.locked, [])

  def test_partitions_of_another_path(self):
    for path in ("/dev/sda", "/dev/sdb"):
      self.disk(path, device__wwid="naa.5000")
      self.disk(f"{path}1", 7, part_of=path)
    from ceph_volume_swimstore import host
    self.put(host.BlockDevice, "partitions", lambda device: [f"{device.path}1"] if device.path == "/dev/sdb" else [])
    with self.assertRaisesRegex(Refused, "^/dev/sdb1 is on the same disk as /dev/sda, where /dev/sda1 lies, which holds osd.7"):
      self.zap("/dev/sdb", destroy=True)
    self.assertEqual(self.called("wipefs --all"), [])

  def test_another_path_to_one_made_by_hand(self):
    """Which has no label: it is known while it is mounted."""
    from ceph_volume_swimstore import osds
    self.disk("/dev/sda", device__wwid="naa.5000")
    self.disk("/dev/sdb", device__wwid="naa.5000")
    self.mount("/dev/sda", "/var/lib/ceph/osd/ceph-7")
    self.put(osds, "read_meta", lambda folder, name: "swimstore")
    with self.assertRaisesRegex(Refused, "^/dev/sdb is the same disk as /dev/sda, which holds osd.7"):
      self.zap("/dev/sdb", destroy=True)

  def test_a_copy_on_the_same_disk(self):
    self.disk("/dev/sda", device__wwid="naa.5000")
    for name in ("1", "2"):
      self.disk(f"/dev/sda{name}", 7, part_of="/dev/sda", part=name)
    self.zap("/dev/sda2")
    self.assertEqual(self.called("wipefs --all"), ["wipefs --all /dev/sda2"])

  def test_where_an_osd_was_whose_disk_is_gone(self):
    from ceph_volume_swimstore import osds
    self.disk("/dev/sda", 8)
    self.mounts.append(parsing.Mount("8:999", "/var/lib/ceph/osd/ceph-7", "ext4"))
    self.put(osds, "read_meta", lambda folder, name: "swimstore")  # from memory
    self.zap("/dev/sda")
    self.assertEqual(self.called("wipefs --all"), ["wipefs --all /dev/sda"])


class Metadata(PlayedHost):
  """Log and tree of an OSD on another file system."""

  def setUp(self):
    from ceph_volume_swimstore import metadata
    super().setUp()
    self.metadata = metadata
    self.parent = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(dir="/var")))

  def directory(self, name=f"swimstore-{FSID}", fsid=FSID):
    path = self.parent / name
    path.mkdir()
    (path / "0").mkdir()
    if fsid:
      (path / "fsid").write_text(f"{fsid}\n")
    self.put(self.metadata, "told_by", lambda osd: str(path) if osd.osd_fsid == FSID else "")
    return path

  def test_they_stay_where_the_osd_is_not_destroyed(self):
    self.disk("/dev/sda", 7)
    path = self.directory()
    self.zap("/dev/sda")
    self.assertEqual(self.called("wipefs --all"), ["wipefs --all /dev/sda"])
    self.assertTrue((path / "0").exists())
    self.assertIn(f"its log and tree, {path}, stay: if nobody needs them any more, 'rm -r {path}'", self.said)
    (path / "fsid").write_text(f"{OTHER_FSID}\n")
    self.said.clear()
    self.zap("/dev/sda")
    self.assertNotIn("rm -r", "".join(self.said))

  def test_they_go_with_the_osd(self):
    self.disk("/dev/sda", 7)
    for fsid in (FSID, ""):
      path = self.directory(fsid=fsid)
      self.zap("/dev/sda", destroy=True)
      self.assertEqual(list(self.parent.iterdir()), [])
      self.assertIn(f"its log and tree, {path}, are removed", self.said)

  def test_also_with_its_disk(self):
    from ceph_volume_swimstore import host
    self.disk("/dev/sda")
    self.disk("/dev/sda1", 7, part_of="/dev/sda")
    self.put(host.BlockDevice, "partitions", lambda device: ["/dev/sda1"] if device.path == "/dev/sda" else [])
    self.directory()
    self.zap("/dev/sda", destroy=True)
    self.assertEqual(list(self.parent.iterdir()), [])

  def test_what_is_not_this_osds_stays(self):
    self.disk("/dev/sda", 7)
    for fsid, name, said in ((OTHER_FSID, f"swimstore-{FSID}", f"belongs to the OSD with fsid {OTHER_FSID}; remove them yourself"),
                             (FSID, "chosen", "remove that yourself")):
      path = self.directory(name, fsid)
      self.zap("/dev/sda", destroy=True)
      self.assertTrue((path / "0").exists())
      self.assertIn(said, "".join(self.said))

  def test_where_they_are_not_there(self):
    self.disk("/dev/sda", 7)
    self.directory().rename(self.parent / "elsewhere")
    self.zap("/dev/sda", destroy=True)
    self.assertEqual(self.called("wipefs --all"), ["wipefs --all /dev/sda"])
    self.assertIn("its file system may not be mounted; remove them yourself", "".join(self.said))

  def test_those_of_an_osd_that_is_on_another_device_too(self):
    self.disk("/dev/sda", 7, device__wwid="naa.5000")
    self.disk("/dev/sdb", 7, device__wwid="naa.5001")
    path = self.directory()
    self.zap("/dev/sdb", destroy=True)
    self.assertTrue((path / "0").exists())

  def osd(self):
    from ceph_volume_swimstore import osds
    return osds.Osd(7, FSID, "/dev/sda", "ext4", False, str(self.parent), 0)

  def test_an_osd_without_them_is_not_started(self):
    for fsid, said in ((OTHER_FSID, f"which has those of the OSD with fsid {OTHER_FSID}: mount the right file system"),
                       ("", "which has none: mount the right file system")):
      self.directory(fsid=fsid)
      with self.assertRaisesRegex(Refused, said):
        self.metadata.check_there(self.osd())
      (self.parent / f"swimstore-{FSID}").rename(self.parent / f"away{fsid}")
    with self.assertRaisesRegex(Refused, "metadata_path says that log and tree of osd.7 are in .*, which is not there: mount"):
      self.metadata.check_there(self.osd())

  def test_a_line_that_counts_no_more(self):
    """Log and tree are in the cubes: an mkfs or a move that did not come to its end has left it."""
    (self.parent / "metadata_path").write_text("/gone\n")
    superblock = self.parent / "superblock"
    superblock.write_bytes(b"\x01\0compressed_blobs\0metadata_elsewhere\0")
    self.assertEqual(self.metadata.told_by(self.osd()), "/gone")
    superblock.write_bytes(b"\x01\0compressed_blobs\0")
    self.assertEqual(self.metadata.told_by(self.osd()), "")
    self.metadata.check_there(self.osd())

  def test_nothing_tells_of_an_encrypted_one(self):
    self.disk("/dev/sda", 7, kind="crypto_LUKS")
    self.zap("/dev/sda")
    self.assertIn(f"swimstore-{FSID}, if 'create' made it", "".join(self.said))

  def test_with_them_they_are_cephs(self):
    from ceph_volume_swimstore import filesystem
    given = []
    self.put(filesystem, "give_to_ceph", given.append)
    path = self.directory()
    self.metadata.check_there(self.osd())
    self.assertEqual(given, [str(path)])

  def test_where_they_may_be(self):
    from ceph_volume_swimstore import host
    number = f"{os.major(os.stat(self.parent).st_dev)}:{os.minor(os.stat(self.parent).st_dev)}"
    self.disk("/dev/sda", dm__uuid="LVM-x")
    self.disk("/dev/sdb", dm__uuid="CRYPT-LUKS2-x")
    used, mount_point = [], ["/var"]
    self.put(self.metadata, "mount_point_of", lambda path: mount_point[0])
    self.put(host, "path_of", lambda of: used.append(of) or "/dev/sda")
    for fs, encrypted, said in (("ext4", False, ""), ("xfs", False, ""), ("btrfs", False, "lies on btrfs: log and tree need ext4 or xfs"),
                                ("ext4", True, "not encrypted")):
      self.mounts[:] = [parsing.Mount(number, "/var", fs)]
      if said:
        with self.assertRaisesRegex(Refused, said):
          self.metadata.check(str(self.parent), encrypted)
      else:
        self.assertEqual(self.metadata.check(str(self.parent), encrypted), os.path.realpath(self.parent))
    mount_point[0] = "/"
    with self.assertRaisesRegex(Refused, "lies on the root file system: is the faster device's mounted?"):
      self.metadata.check(str(self.parent), False)
    mount_point[0] = "/var"
    self.put(host, "path_of", lambda of: "/dev/sdb")
    self.metadata.check(str(self.parent), True)
    self.assertEqual(used, [number])
    for path, said in ((self.parent / "none", "is no directory"), ("/tmp", "below /tmp, which systemd hides")):
      with self.assertRaisesRegex(Refused, said):
        self.metadata.check(str(path), False)


class Locks(PlayedHost):
  """The real ones."""

  def setUp(self):
    from ceph_volume_swimstore import host
    lock = host.lock
    super().setUp()
    self.lock = lock
    self.put(host, "LOCKS", self.enterContext(tempfile.TemporaryDirectory()))

  def wait(self, said):
    """A second one says this, and has the lock when the first one has ended."""
    taken = []

    def take(name):
      with self.lock(name):
        taken.append(name)

    later = threading.Thread(target=take, args=("devices",))
    with self.lock("devices"):
      take("another")
      later.start()
      until = time.monotonic() + 5
      while not self.said and time.monotonic() < until:
        time.sleep(0.01)
      told = list(self.said), list(taken)
    later.join()
    self.assertEqual(told, ([said], ["another"]))
    self.assertEqual((self.said, taken), ([said], ["another", "devices"]))

  def test_who_comes_later_says_so_and_waits(self):
    self.wait(f"another ceph-volume swimstore is at work, process {os.getpid()}: this one waits for it")

  def test_where_the_process_is_not_known(self):
    from ceph_volume_swimstore import host
    self.put(host.parsing, "parse_locks", lambda text: {})
    self.wait("another ceph-volume swimstore is at work: this one waits for it")


class Units(PlayedHost):
  def setUp(self):
    super().setUp()
    from ceph_volume_swimstore import units
    self.units = units
    self.put(units, "check_drop_in", lambda osd_id: None)

  def test_one_that_crashed_too_often_is_started(self):
    """systemd counts starts of a unit, and refuses more of them; it may also know nothing of it yet."""
    for code in (0, 1):
      self.player.calls.clear()
      self.player.answers["systemctl reset-failed"] = "", code
      self.units.start(7, FSID)
      self.assertEqual(self.called("systemctl")[-2:], ["systemctl reset-failed ceph-osd@7", "systemctl start ceph-osd@7"])

  def test_one_that_waits_for_its_next_start_is_stopped(self):
    self.player.answers["is-active"] = "activating\n", 3
    self.units.forget(7, FSID)
    self.assertEqual(self.called("systemctl")[0], "systemctl stop ceph-osd@7")

  def test_one_made_by_hand_is_enabled_for_good(self):
    self.units.forget(7, "")
    self.assertEqual(self.called("disable"), ["systemctl disable --runtime ceph-osd@7", "systemctl disable ceph-osd@7",
                                              "systemctl disable ceph-volume@swimstore-7-"])


class Multipath(PlayedHost):
  """Two paths and what lies on both; then the same of a partition."""

  def check(self, kind, *opened):
    from ceph_volume_swimstore import osds
    held = {"holders__dm-0__dm__name": "mpatha", "holders__dm-0__dm__uuid": "mpath-35000"}
    with self.subTest(kind=kind, opened=opened):
      self.entries.clear()
      self.disk("/dev/sda", 7, kind, **held)
      self.disk("/dev/sdb", 7, kind, **held)
      self.disk("/dev/mapper/mpatha", 7, kind, **dict(opened))
      self.assertEqual(osds.find(7).device, "/dev/mapper/mpatha")
    with self.subTest(kind=kind, opened=opened, partition=1):
      self.entries.clear()
      for path in ("/dev/sda", "/dev/sdb"):
        self.disk(path, **held)
        self.disk(f"{path}1", 7, kind, part_of=path)
      self.disk("/dev/mapper/mpatha-part1", 7, kind, **dict(opened))
      self.assertEqual([osd.device for osd in osds.find_all()], ["/dev/mapper/mpatha-part1"])

  def test_plain(self):
    self.check("ext4")

  def test_encrypted(self):
    self.player.answers["token export"] = "{}", 0
    self.check("crypto_LUKS")
    self.check("crypto_LUKS", ("holders__dm-1__dm__uuid", f"CRYPT-LUKS2-{FSID.replace('-', '')}-swimstore-{FSID}"))

  def test_without_multipath_an_open_one_is_found(self):
    from ceph_volume_swimstore import osds
    self.player.answers["token export"] = "{}", 0
    self.disk("/dev/sda", 7, "crypto_LUKS", **{"holders__dm-1__dm__uuid": "CRYPT-LUKS2-3f25-by-hand"})
    self.assertEqual(osds.find(7).device, "/dev/sda")


class Found(PlayedHost):
  def test_of_one_fsid_the_message_does_not_ask_for_it(self):
    from ceph_volume_swimstore import osds
    self.disk("/dev/sda", 7)
    self.disk("/dev/sdb", 7)
    with self.assertRaisesRegex(Refused, "several devices say that they are osd.7: /dev/sda.*, /dev/sdb.*multipath") as refused:
      osds.find(7)
    self.assertNotIn("give the fsid", str(refused.exception))
    self.disk("/dev/sdc", 7, fsid=OTHER_FSID)
    with self.assertRaisesRegex(Refused, "give the fsid"):
      osds.find(7)


class DeadFileSystem(PlayedHost):
  """As of an xfs that was shut down: everything below its mount is EIO."""

  def setUp(self):
    from ceph_volume_swimstore import host
    process_of = host.process_of
    super().setUp()
    self.put(host, "process_of", process_of)
    self.disk("/dev/sda", 7)
    self.disk("/dev/sdb", 8, fsid=OTHER_FSID)
    self.disk("/dev/sdc")
    self.dead = ["/var/lib/ceph/osd/ceph-7", "/var/lib/ceph/osd/ceph-9"]
    self.mount("/dev/sda", self.dead[0])
    self.mount("/dev/sdc", self.dead[1], "xfs")
    for module, name in ((host.os, "stat"), (host.os, "listdir"), (pathlib.Path, "read_text")):
      self.put(module, name, self.broken(getattr(module, name)))

  def broken(self, real):
    def answer(path, *args, **keywords):
      if str(path).startswith(tuple(self.dead)):
        raise OSError(errno.EIO, "Input/output error", str(path))
      return real(path, *args, **keywords)
    return answer

  def test_the_others_are_found(self):
    from ceph_volume_swimstore import osds
    self.assertEqual([(osd.name, osd.mounted, osd.process) for osd in osds.find_all()],
                     [("osd.7", self.dead[0], 0), ("osd.8", "", 0)])

  def test_the_others_are_activated(self):
    from ceph_volume_swimstore import activate
    done = []

    def one(osd, no_systemd):
      self.assertEqual(self.locked, [osd.osd_fsid])
      os.listdir(osd.folder) if osd.mounted else done.append(osd.name)

    self.put(activate, "activate", one)
    with self.assertRaisesRegex(Failed, "not activated: osd.7;"):
      activate.activate_all(False)
    self.assertEqual(done, ["osd.8"])
    self.assertIn("Input/output error", self.said[0])


class DiskIsGone(PlayedHost):
  """What it leaves: a mount that answers no more, and a unit for the next start of the host."""

  FOLDER = "/var/lib/ceph/osd/ceph-7"

  def setUp(self):
    super().setUp()
    from ceph_volume_swimstore import activate, filesystem, osds, units
    self.activate = activate
    folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
    self.put(units, "ENABLED", folder)
    self.wants = folder / "multi-user.target.wants"
    self.wants.mkdir()
    self.enable(7, FSID)
    self.enable(7, OTHER_FSID)
    self.enable(77, FSID)
    self.put(filesystem, "unmount", lambda path: self.player.calls.append((f"umount {path}", None)))
    self.put(osds, "read_meta", self.read_meta)
    self.kind = OSError(errno.EIO, "Input/output error")
    self.player.answers["is-active"] = "", 3

  def enable(self, osd_id, fsid):
    (self.wants / f"ceph-volume@swimstore-{osd_id}-{fsid}.service").touch()

  def read_meta(self, folder, name):
    if isinstance(self.kind, OSError):
      raise self.kind
    return self.kind

  def mount_left(self, fs="ext4"):
    self.mounts.append(parsing.Mount("8:99", self.FOLDER, fs))

  def deactivate(self, *words):
    self.activate.Deactivate(list(map(str, words))).main()
    return [text for text in self.player.said() if text.startswith(("systemctl", "umount"))]

  def test_mount_and_units(self):
    self.mount_left()
    volumes = [f"systemctl disable ceph-volume@swimstore-7-{fsid}" for fsid in (FSID, OTHER_FSID)]
    self.assertEqual(self.deactivate(7), ["systemctl is-active ceph-osd@7", *volumes, "systemctl stop ceph-osd@7",
                                          "systemctl disable --runtime ceph-osd@7", "systemctl disable ceph-osd@7", f"umount {self.FOLDER}"])

  def test_no_mount(self):
    """The number may be another OSD's, which runs: only the unit of this one goes."""
    self.assertEqual(self.deactivate(7, FSID), [f"systemctl disable ceph-volume@swimstore-7-{FSID}"])

  def test_without_systemd(self):
    self.mount_left()
    self.assertEqual(self.deactivate(7, "--no-systemd"), ["systemctl is-active ceph-osd@7", f"umount {self.FOLDER}"])

  def test_the_number_on_a_new_disk_that_answers_no_more(self):
    """Its mount is not the old one's."""
    self.disk("/dev/sdb", 7, fsid=FSID.replace("3f", "5f"))
    self.mount("/dev/sdb", self.FOLDER)
    self.assertEqual(self.deactivate(7, FSID), [f"systemctl disable ceph-volume@swimstore-7-{FSID}"])

  def test_one_that_runs_is_left(self):
    self.mount_left()
    self.player.answers["is-active"] = "", 0
    with self.assertRaisesRegex(Refused, "'systemctl stop ceph-osd@7' first"):
      self.deactivate(7)
    self.assertFalse(self.called("disable") + self.called("umount"))

  def test_what_is_not_ours(self):
    """A BlueStore, and a file system that answers."""
    for fs, kind in (("tmpfs", self.kind), ("ext4", "filestore")):
      self.mounts.clear()
      self.mount_left(fs)
      self.kind = kind
      with self.assertRaisesRegex(Refused, "osd.7 with fsid .* is on no device of this host"):
        self.deactivate(7, FSID.replace("3f", "5f"))
    with self.assertRaisesRegex(Refused, "osd.5 is on no device of this host"):
      self.deactivate(5)
    self.assertFalse(self.called("disable") + self.called("umount"))

  def test_the_number_on_a_new_disk(self):
    """The old one may answer again: its unit is not to take the number at the next start."""
    from ceph_volume_swimstore import osds, prepare
    new = FSID.replace("3f", "5f")
    self.enable(7, new)
    self.put(prepare, "make", lambda args, undo: osds.Osd(7, new, "/dev/sda", "ext4", False, "", 0))
    self.put(prepare.activate, "activate", lambda osd, no_systemd: self.player.calls.append(("activate", None)))
    prepare.Create(["--data", "/dev/sda", "--osd-id", "7"]).main()
    disabled = [f"systemctl disable ceph-volume@swimstore-7-{fsid}" for fsid in (FSID, OTHER_FSID)]
    self.assertEqual(self.player.said(), ["activate", *disabled])
    self.player.calls.clear()
    self.player.answers["systemctl disable"] = "", 1  # the new one runs all the same
    prepare.Create(["--data", "/dev/sda", "--osd-id", "7"]).main()
    self.assertRegex("".join(self.said), "a disk that had the number osd.7 before may be started in its place")
    self.player.calls.clear()
    prepare.Create(["--data", "/dev/sda", "--osd-id", "7", "--no-systemd"]).main()
    self.assertEqual(self.player.said(), ["activate"])


class Content(PlayedHost):
  def setUp(self):
    super().setUp()
    from ceph_volume_swimstore import filesystem, osds
    self.filesystem = filesystem
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
    self.put(names, "folder_of", lambda cluster, osd_id: str(self.folder))
    self.put(filesystem, "cluster_fsid", lambda: "the cluster")
    for name, text in (("type", "swimstore"), ("whoami", "7"), ("fsid", FSID), ("ceph_fsid", "the cluster"), ("ready", "ready")):
      (self.folder / name).write_text(f"{text}\n")
    self.osd = osds.Osd(7, FSID, "/dev/sda", "ext4", False, str(self.folder), 0)

  def refused(self):
    with self.assertRaises((Refused, Failed)) as refused:
      self.filesystem.check_content(self.osd)
    return str(refused.exception)

  def test_one_that_is_whole(self):
    self.filesystem.check_content(self.osd)

  def test_one_that_was_never_made(self):
    (self.folder / "type").unlink()
    (self.folder / "ready").unlink()
    self.assertIn("was never made to its end: 'ceph-volume swimstore zap /dev/sda'", self.refused())

  def test_a_damaged_one_is_not_to_be_zapped(self):
    (self.folder / "type").unlink()
    (self.folder / "ready").unlink()
    for name in ("superblock", "cubes"):
      with self.subTest(name=name):
        (self.folder / name).touch()
        said = self.refused()
        self.assertNotIn("zap", said)
        self.assertRegex(said, f"'type' is not there, but '{name}' is: .*'new'.*kernel's log")
        (self.folder / name).unlink()

  def test_a_file_that_is_gone_or_cannot_be_read(self):
    (self.folder / "type").unlink()
    self.assertRegex(self.refused(), "'type' is not there")
    (self.folder / "type").mkdir()  # read(2) fails
    (self.folder / "ready").unlink()
    said = self.refused()
    self.assertRegex(said, "'type' .*cannot be read: Is a directory; look at the kernel's log")
    self.assertNotRegex(said, "zap|tune2fs")

  def test_a_file_full_of_rubbish(self):
    (self.folder / "type").write_bytes(b"\xff\xfe\n")
    self.assertIn("the file 'type' says", self.refused())

  def test_another_label(self):
    (self.folder / "whoami").write_text("9")
    self.assertRegex(self.refused(), "the file 'whoami' says '9', not '7'.*tune2fs")

  def test_e2fsck_is_named_where_fsck_asks_for_a_person(self):
    for code, named in ((4, True), (5, True), (8, False), (12, False), (16, False), (-15, False)):
      with self.subTest(code=code):
        self.player.answers["fsck.ext4 -p"] = "", code
        with self.assertRaisesRegex(Failed, f"fsck.ext4 -p /dev/sda: exit {code}") as failed:
          self.filesystem.check_and_mount("ext4", "/dev/sda", "/x")
        self.assertEqual("e2fsck" in str(failed.exception), named)
    self.player.answers["mount -t xfs"] = "", 32
    with self.assertRaisesRegex(Failed, "^mount .*: exit 32: it says why; .* 'xfs_repair /dev/sda', by hand$"):
      self.filesystem.check_and_mount("xfs", "/dev/sda", "/x")
    self.put(sys.modules["ceph_volume"].process, "call", mock.Mock(side_effect=FileNotFoundError))
    with self.assertRaisesRegex(Failed, "fsck.ext4 is not there: install it$"):
      self.filesystem.check_and_mount("ext4", "/dev/sda", "/x")


if __name__ == "__main__":
  unittest.main()
