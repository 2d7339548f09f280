#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What ceph-volume's plugin refuses of devices that are not what they seem: other paths to a disk, disks of another cluster.

The devices are played, as in played.py.
"""

import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from ceph_volume_swimstore import names, parsing  # noqa: E402
from ceph_volume_swimstore.errors import Failed, Refused  # noqa: E402
from played import FSID, OTHER_FSID, PlayedHost  # noqa: E402

MULTIPATH = "set up multipathd for two paths to one disk, or take one of the two away"
VOLUME = f"/dev/sda, where /dev/mapper/vg-lv lies, which holds osd.7, fsid {FSID}"


class OtherPaths(PlayedHost):
  """To a disk of which a partition or a volume holds an OSD."""

  def setUp(self):
    super().setUp()
    from ceph_volume_swimstore import host
    self.seen = {}  # {disk: the partitions of it that the kernel has}
    self.put(host.BlockDevice, "partitions", lambda device: self.seen.get(device.path, []))

  def begin(self):
    self.entries.clear(), self.mounts.clear(), self.player.calls.clear(), self.player.answers.clear(), self.seen.clear()

  def zap(self, path):
    from ceph_volume_swimstore import zap
    zap.zap(path, destroy=True, no_systemd=False)

  def refused(self, path, said):
    self.player.calls.clear()
    with self.assertRaises(Refused) as refused:
      self.zap(path)
    self.assertEqual(str(refused.exception), said)
    self.assertEqual(self.called("wipefs --all") + self.called("systemctl"), [])

  def wiped(self, *paths):
    self.player.calls.clear()
    for path in paths:
      self.zap(path)
    self.assertEqual(self.called("wipefs --all"), [f"wipefs --all {path}" for path in paths])

  def holds_volume(self, path, uuid="pv-1"):
    signature = f'''{{"signatures": [{{"type": "LVM2_member", "label": null, "uuid": "{uuid}"}}]}}'''
    self.player.answers[f"wipefs --no-act --json --output TYPE,LABEL,UUID {path}"] = signature, 0

  def mapped(self, kernel_name, name, *slaves, osd_id=None, uuid="", size="500", **attributes):
    self.disk(f"/dev/mapper/{name}", osd_id, dm__name=name, dm__uuid=uuid, size=size,
              **{f"slaves__{slave}": "" for slave in slaves}, **attributes)
    self.numbers[f"/dev/{kernel_name}"] = self.numbers[f"/dev/mapper/{name}"]

  def volume(self, on="", mounted=False, of=("/dev/sda", "/dev/sdb"), **attributes):
    """osd.7 on a volume of /dev/sda, or of a partition of it; what lies on it is known of that path."""
    held = {"holders__dm-0__dm__name": "vg-lv", "holders__dm-0__dm__uuid": "LVM-a"}
    attributes = {"size": "1000"} | (attributes or {"device__wwid": "naa.5000"})
    for path in of:
      this = held if path == "/dev/sda" else {}
      self.disk(path, **attributes, **({} if on else this))
      if on:
        self.disk(f"{path}{on}", part_of=path, part=on, **this)
      self.holds_volume(path + on)
    self.mapped("dm-0", "vg-lv", f"sda{on}", osd_id=7, uuid="LVM-a")
    if mounted:
      self.mount("/dev/mapper/vg-lv", "/var/lib/ceph/osd/ceph-7")

  def test_a_volume_of_the_disk(self):
    for attributes in ({"device__wwid": "naa.5000"}, {"wwid": "nvme.1"}, {"serial": "x"}, {"loop__backing_file": "/a file"}):
      for mounted in (False, True):
        with self.subTest(attributes=attributes, mounted=mounted):
          self.begin()
          self.volume(mounted=mounted, **attributes)
          self.refused("/dev/sdb", f"/dev/sdb is the same disk as {VOLUME}: {MULTIPATH}")

  def test_a_volume_of_a_partition(self):
    self.volume(on="1")
    self.disk("/dev/sdb2", part_of="/dev/sdb", part="2")
    for path, words in (("/dev/sdb", "is"), ("/dev/sdb1", "is on")):
      self.refused(path, f"{path} {words} the same disk as {VOLUME}: {MULTIPATH}")
    self.wiped("/dev/sdb2")

  def test_a_partition(self):
    """Of which the kernel has none by the second path, or has those of another table."""
    for path in ("/dev/sda", "/dev/sdb"):
      self.disk(path, device__wwid="naa.5000")
    self.disk("/dev/sda1", 7, part_of="/dev/sda")
    self.disk("/dev/sdb2", part_of="/dev/sdb", part="2")
    self.refused("/dev/sdb", "/dev/sdb is the same disk as /dev/sda, where /dev/sda1 lies, which holds osd.7, "
                 f"fsid {FSID}: {MULTIPATH}")
    self.wiped("/dev/sdb2")

  def test_a_partition_by_another_path_where_the_osd_has_the_disk(self):
    for path, osd_id in (("/dev/sda", 7), ("/dev/sdb", None)):
      self.disk(path, osd_id, device__wwid="naa.5000")
    self.player.answers["wipefs --no-act --json --output TYPE,LABEL,UUID /dev/sdb1"] = "", 0
    self.disk("/dev/sdb1", part_of="/dev/sdb")
    self.player.answers["wipefs --no-act --json --output TYPE,LABEL,UUID /dev/sdb"] = (
        self.player.answers["wipefs --no-act --json --output TYPE,LABEL,UUID /dev/sda"])
    self.refused("/dev/sdb1", f"/dev/sdb1 is on the same disk as /dev/sda, which holds osd.7, fsid {FSID}: {MULTIPATH}")

  def test_a_path_that_has_not_heard_of_the_new_size(self):
    self.volume()
    self.disk("/dev/sdc", device__wwid="naa.5000", size="900")
    self.disk("/dev/sdd", 8, fsid=OTHER_FSID, device__wwid="naa.5001", size="1000")
    self.disk("/dev/sde", 8, fsid=OTHER_FSID, device__wwid="naa.5001", size="900")
    self.holds_volume("/dev/sdc")
    self.refused("/dev/sdc", f"/dev/sdc is the same disk as {VOLUME}: {MULTIPATH}")
    self.refused("/dev/sde", f"/dev/sde is the same disk as /dev/sdd, which holds osd.8, fsid {OTHER_FSID}: {MULTIPATH}")

  def test_a_path_that_answers_no_more(self):
    self.volume(mounted=True)
    self.player.answers["wipefs --no-act --json --output TYPE,LABEL,UUID /dev/sda"] = "", 1
    self.refused("/dev/sdb", f"/dev/sdb is the same disk as {VOLUME}: {MULTIPATH}")

  def test_other_disks(self):
    """Of the same serial number; of another; a copy."""
    for attributes, others in (({"serial": "x"}, {"serial": "x"}), ({"wwid": "nvme.1"}, {"wwid": "nvme.2"})):
      with self.subTest(attributes=attributes):
        self.begin()
        self.volume(of=("/dev/sda",), **attributes)
        self.disk("/dev/sdb", size="1000", **others)
        self.holds_volume("/dev/sdb", "pv-1" if others != attributes else "pv-2")
        self.wiped("/dev/sdb")
    self.begin()
    for path in ("/dev/sda", "/dev/sdb"):
      self.disk(path, serial="x")
      self.player.answers[f"PTUUID -o value {path}"] = f"table of {path}", 0
    self.disk("/dev/sda1", 7, part_of="/dev/sda")
    self.wiped("/dev/sdb")

  def test_where_the_kernel_tells_nothing(self):
    self.disk("/dev/sda", size="1000", holders__x="")
    self.disk("/dev/sdb", size="1000")
    self.disk("/dev/sdc", size="1000")
    self.mapped("dm-0", "vg-lv", "sda", osd_id=7, uuid="LVM-a")
    for path, uuid in (("/dev/sda", "pv-1"), ("/dev/sdb", "pv-1"), ("/dev/sdc", "pv-2")):
      self.holds_volume(path, uuid)
    self.refused("/dev/sdb", f"/dev/sdb holds the same as {VOLUME}, "
                 f"and the kernel does not tell whether it is the same disk: {MULTIPATH}")
    self.wiped("/dev/sdc")
    self.player.answers["wipefs --no-act --json --output TYPE,LABEL,UUID /dev/sda"] = "", 1
    self.wiped("/dev/sdb")

  def test_a_partition_where_the_kernel_tells_nothing(self):
    for path in ("/dev/sda", "/dev/sdb"):
      self.disk(path)
      self.disk(f"{path}1", 7, part_of=path)
    self.seen["/dev/sdb"] = ["/dev/sdb1"]
    for path in ("/dev/sdb", "/dev/sdb1"):
      self.refused(path, f"/dev/sdb1 holds the same as /dev/sda, where /dev/sda1 lies, which holds osd.7, fsid {FSID}, "
                   f"and the kernel does not tell whether it is the same disk: {MULTIPATH}")

  def test_another_disk_of_a_raid(self):
    """All of which have one UUID: it is a second path only where the kernel's identifiers of themselves are proof."""
    for kind in ("linux_raid_member", "zfs_member", "btrfs"):
      for attributes in ({}, {"serial": "x"}, {"device__wwid": "naa.5000"}):
        with self.subTest(kind=kind, attributes=attributes):
          self.begin()
          for path in ("/dev/sda", "/dev/sdb"):
            self.disk(path, **attributes)
            signature = f'''{{"signatures": [{{"type": "{kind}", "label": "x", "uuid": "y"}}]}}'''
            self.player.answers[f"wipefs --no-act --json --output TYPE,LABEL,UUID {path}"] = signature, 0
          self.disk("/dev/md0", 7, slaves__sda="")
          if "device__wwid" in attributes:
            self.refused("/dev/sdb", "/dev/sdb is the same disk as /dev/sda, where /dev/md0 lies, which holds osd.7, "
                         f"fsid {FSID}: {MULTIPATH}")
          else:
            self.wiped("/dev/sdb")

  def test_partitions_of_what_lies_on_the_disk(self):
    """Of an MD RAID."""
    for path in ("/dev/sda", "/dev/sdb"):
      self.disk(path, device__wwid="naa.5000")
    self.disk("/dev/md0", slaves__sda="")
    self.disk("/dev/md0p1", 7, part_of="/dev/md0")
    self.refused("/dev/sdb", "/dev/sdb is the same disk as /dev/sda, where /dev/md0p1 lies, which holds osd.7, "
                 f"fsid {FSID}: {MULTIPATH}")

  def test_a_partition_of_a_loop_device_of_the_disk(self):
    self.disk("/dev/sda", 7, size="1000")
    self.disk("/dev/loop0", loop__backing_file="/dev/sda", size="1000")
    self.disk("/dev/loop0p1", part_of="/dev/loop0")
    self.refused("/dev/loop0p1", f"/dev/loop0p1 lies on /dev/sda, which holds osd.7, fsid {FSID}: "
                 "if nobody needs it any more, 'ceph-volume swimstore zap /dev/sda' first")

  def test_a_partition_of_a_volume(self):
    """As kpartx makes it: the volume is on the third partition of the disk."""
    for path in ("/dev/sda", "/dev/sdb"):
      self.disk(path, device__wwid="naa.5000")
      for part in ("1", "3"):
        self.disk(f"{path}{part}", part_of=path, part=part)
    self.mapped("dm-0", "vg-lv", "sda3", uuid="LVM-a")
    self.mapped("dm-1", "vg-lv1", "dm-0", uuid="part1-LVM-a", osd_id=7)
    self.wiped("/dev/sdb1")
    self.refused("/dev/sdb3", "/dev/sdb3 is on the same disk as /dev/sda, where /dev/mapper/vg-lv1 lies, which holds osd.7, "
                 f"fsid {FSID}: {MULTIPATH}")

  def test_the_copy_of_a_disk_with_multipath(self):
    """And of its partition: the kernel tells by the disks below that it is another one."""
    for part in ("", "-part1"):
      with self.subTest(part=part):
        self.begin()
        for number, name, paths in ((0, "mpatha", ("sda", "sdb")), (1, "mpathb", ("sdc", "sdd"))):
          for path in paths:
            self.disk(f"/dev/{path}", device__wwid=f"naa.500{number}", size="500")
          self.mapped(f"dm-{number}", name, *paths, uuid=f"mpath-3500{number}", osd_id=None if part else 7)
          if part:
            self.mapped(f"dm-{number + 2}", f"{name}-part1", f"dm-{number}", uuid=f"part1-mpath-3500{number}", osd_id=7)
        self.wiped(f"/dev/mapper/mpathb{part}")
        self.assertEqual(self.called("systemctl"), [])
        self.assertIn(f"osd.7 with the fsid {FSID} is on /dev/mapper/mpatha{part}, too: that stays", self.said)

  def test_all_devices_are_asked_once(self):
    from ceph_volume_swimstore import host
    asked = mock.Mock(return_value=self.entries)
    self.put(host, "all_devices", asked)
    self.disk("/dev/sda")
    self.seen["/dev/sda"] = ["/dev/sda1", "/dev/sda2"]
    for number, path in enumerate(self.seen["/dev/sda"], 1):
      self.disk(path, number, part_of="/dev/sda", part=str(number))
    self.zap("/dev/sda")
    self.assertEqual((len(self.called("wipefs --all")), asked.call_count), (3, 1))

  def test_a_mapping_of_the_disk(self):
    """The kernel lets several lie on one disk."""
    remedy = "if nobody needs it any more, 'ceph-volume swimstore zap /dev/mapper/vg-lv' first"
    for uuid in ("", "CRYPT-PLAIN-x", "mpath-x"):
      with self.subTest(uuid=uuid):
        self.begin()
        self.volume()
        self.mapped("dm-1", "x", "sda", uuid=uuid, size="1000")
        self.mapped("dm-2", "y", "dm-1", size="1000")
        self.mapped("dm-3", "z", "sdb", uuid=uuid, size="1000")
        for name in ("x", "y"):
          self.refused(f"/dev/mapper/{name}", f"/dev/mapper/{name} lies on {VOLUME}: {remedy}")
        self.refused("/dev/mapper/z", f"/dev/mapper/z is on the same disk as {VOLUME}: {MULTIPATH}")

  def test_a_loop_device_of_the_disk(self):
    """It holds what the disk holds: no copy."""
    for mounted in (False, True):
      with self.subTest(mounted=mounted):
        self.begin()
        self.disk("/dev/sda", 7, device__wwid="naa.5000", size="1000")
        self.disk("/dev/loop0", 7, loop__backing_file="/dev/sda", size="1000")
        if mounted:
          self.mount("/dev/sda", "/var/lib/ceph/osd/ceph-7")
        self.refused("/dev/loop0", f"/dev/loop0 lies on /dev/sda, which holds osd.7, fsid {FSID}: if nobody needs it any more, "
                     "'ceph-volume swimstore zap /dev/sda' first")

  def test_none_is_made_on_a_mapping_of_the_disk(self):
    """Of which what is decrypted shows no signature."""
    from ceph_volume_swimstore import osds, prepare
    self.volume()
    self.mapped("dm-1", "x", "sda", uuid="CRYPT-PLAIN-x", size="1000")
    self.mapped("dm-2", "vg-new", "sda", uuid="LVM-b")
    found = osds.find_all()
    with self.assertRaisesRegex(Refused, f"^/dev/mapper/x lies on {VOLUME}: "):
      prepare.check_device("/dev/mapper/x", found)
    self.assertEqual(prepare.check_device("/dev/mapper/vg-new", found).path, "/dev/mapper/vg-new")

  def test_other_volumes_of_the_disk(self):
    self.volume()
    self.mapped("dm-1", "vg-other", "sda", uuid="LVM-b")
    self.mapped("dm-2", "vg-large", "sda", uuid="LVM-c", size="1000")
    self.mapped("dm-3", "slice", "sda", size="499")
    self.mapped("dm-4", "secret", "dm-1", uuid="CRYPT-LUKS2-x")
    self.mapped("dm-5", "plain", "sda", uuid="CRYPT-PLAIN-x", size="499")
    self.wiped("/dev/mapper/vg-other", "/dev/mapper/vg-large", "/dev/mapper/slice", "/dev/mapper/secret", "/dev/mapper/plain")

  def test_partitions_of_multipath(self):
    """As kpartx makes them; an OSD on the first, by the one path, on a volume of it, or by the kernel's partition."""
    for on in ("mpatha-part1", "volume", "sda1"):
      with self.subTest(on=on):
        self.begin()
        for path in ("/dev/sda", "/dev/sdb", "/dev/sdc"):
          self.disk(path, device__wwid="naa.5000", size="1000")
          self.holds_volume(path)
        self.mapped("dm-0", "mpatha", "sda", "sdb", uuid="mpath-35000", size="1000")
        self.mapped("dm-1", "mpatha-part1", "dm-0", uuid="part1-mpath-35000", osd_id=7 if on == "mpatha-part1" else None)
        self.mapped("dm-2", "mpatha-part2", "dm-0", uuid="part2-mpath-35000")
        if on == "volume":
          self.mapped("dm-3", "vg-lv", "dm-1", uuid="LVM-a", osd_id=7)
        if on == "sda1":
          self.disk("/dev/sda1", 7, part_of="/dev/sda")
          self.refused("/dev/mapper/mpatha-part1", "/dev/mapper/mpatha-part1 lies on /dev/sda, where /dev/sda1 lies, which holds "
                       f"osd.7, fsid {FSID}: if nobody needs it any more, 'ceph-volume swimstore zap /dev/sda1' first")
        said = f"^/dev/sdc is the same disk as /dev/sd[ab], where .*, which holds osd.7, fsid {FSID}: "
        with self.assertRaisesRegex(Refused, said):
          self.zap("/dev/sdc")
        self.assertEqual(self.called("wipefs --all"), [])
        self.disk("/dev/sdc2", part_of="/dev/sdc", part="2")
        self.wiped("/dev/mapper/mpatha-part2", "/dev/sdc2")

  def test_what_is_within_an_encrypted_one(self):
    """That was unmounted by hand."""
    self.player.answers["token export"] = "{}", 0
    self.disk("/dev/sda", 7, "crypto_LUKS", size="1000")
    self.mapped("dm-0", f"swimstore-{FSID}", "sda", uuid="CRYPT-LUKS2-x", size="968")
    self.refused(f"/dev/mapper/swimstore-{FSID}", f"/dev/mapper/swimstore-{FSID} lies on /dev/sda, which holds osd.7, fsid {FSID}: "
                 "if nobody needs it any more, 'ceph-volume swimstore zap /dev/sda' first")

  def test_of_a_disk_in_use_the_osd_is_named(self):
    """And where it is, for the disk, its partition, and a path below multipath."""
    from ceph_volume_swimstore import host
    self.put(host, "process_of", lambda path: 4711)
    remedy = f"'systemctl stop ceph-osd@7' and 'ceph-volume swimstore deactivate 7 {FSID}' first"
    for on in ("", "1"):
      self.begin()
      self.volume(on=on, mounted=True)
      self.seen["/dev/sda"] = ["/dev/sda1"] if on else []
      self.refused("/dev/sda", f"/dev/sda{on} is in use by vg-lv. On /dev/mapper/vg-lv, which lies on it, is osd.7: {remedy}")
    self.begin()
    self.disk("/dev/sda", **{"holders__dm-0__dm__name": "mpatha"})
    self.mapped("dm-0", "mpatha", "sda", uuid="mpath-x", osd_id=7)
    self.mount("/dev/mapper/mpatha", "/var/lib/ceph/osd/ceph-7")
    self.refused("/dev/sda", f"/dev/sda is in use by mpatha. On /dev/mapper/mpatha, which lies on it, is osd.7: {remedy}")
    self.begin()
    self.volume()  # the OSD was deactivated
    self.refused("/dev/sda", "/dev/sda is in use by vg-lv")
    self.begin()
    self.player.answers["token export"] = "{}", 0
    self.disk("/dev/sda", 7, "crypto_LUKS", **{"holders__dm-0__dm__name": "secret", "holders__dm-0__dm__uuid": "CRYPT-LUKS2-x"})
    self.refused("/dev/sda", f"/dev/sda is in use by secret. It is osd.7: 'ceph-volume swimstore deactivate 7 {FSID}' first")

  def test_what_else_is_mounted_by_another_path(self):
    for path in ("/dev/sda", "/dev/sdb"):
      self.disk(path, device__wwid="naa.5000")
    self.disk("/dev/sda2", part_of="/dev/sda", part="2")
    self.disk("/dev/sdb3", part_of="/dev/sdb", part="3")
    self.mount("/dev/sda2", "/")
    self.mounts.append(parsing.Mount("0:27", "/run", "tmpfs"))
    self.refused("/dev/sdb", f"/dev/sdb is the same disk as /dev/sda, where /dev/sda2 lies, which is mounted on /: {MULTIPATH}")
    self.wiped("/dev/sdb3")

  def test_a_disk_with_an_osd_that_is_started_with_the_host(self):
    """This very one: what else has its number has nothing to do with it."""
    from ceph_volume_swimstore import units
    folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
    self.put(units, "ENABLED", folder)
    self.put(names, "folder_of", lambda cluster, osd_id: str(folder / "ceph-7"))
    wants = folder / "multi-user.target.wants"
    for path in (folder / "ceph-7", wants):  # the former is empty: of one of ours that has this number
      path.mkdir()
    for fsid in ("of-no-form", OTHER_FSID):
      (wants / f"ceph-volume@swimstore-7-{fsid}.service").touch()
    unit = wants / f"ceph-volume@swimstore-7-{FSID}.service"
    self.disk("/dev/sda", device__wwid="naa.5000")
    self.disk("/dev/sda1", 7, part_of="/dev/sda")
    self.seen["/dev/sda"] = ["/dev/sda1"]
    unit.touch()
    self.refused("/dev/sda", f"/dev/sda has /dev/sda1, which holds osd.7, fsid {FSID}, which is started with this host: "
                 f"'ceph-volume swimstore deactivate 7 {FSID}' first")
    self.refused("/dev/sda1", f"/dev/sda1 holds osd.7, fsid {FSID}, which is started with this host: "
                 f"'ceph-volume swimstore deactivate 7 {FSID}' first")
    self.disk("/dev/sdb", 7, device__wwid="naa.5001")  # which is it?
    self.zap("/dev/sda")
    self.numbers.pop("/dev/sdb"), self.entries.pop(), self.player.calls.clear()
    unit.unlink()
    self.zap("/dev/sda")
    self.assertEqual(self.called("wipefs --all"), ["wipefs --all /dev/sda1", "wipefs --all /dev/sda"])
    self.assertIn(f"with the partitions /dev/sda1 (osd.7 of SwimStore, ext4, fsid {FSID}): it is wiped", "".join(self.said))

  def test_deactivate_of_one_that_is_not_mounted_leaves_the_directory_of_its_number(self):
    """In /etc/fstab it may be the mount point of another OSD with that number."""
    from ceph_volume_swimstore import activate
    folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "ceph-7")
    folder.mkdir()
    self.put(names, "folder_of", lambda cluster, osd_id: str(folder))
    self.disk("/dev/sda", 7)
    activate.Deactivate(["7"]).main()
    self.assertTrue(folder.exists())


class AnotherCluster(PlayedHost):
  """A guest's disk, as a hypervisor sees it."""

  OURS, THEIRS = (FSID.replace("3f", begin) for begin in ("6f", "7f"))

  def setUp(self):
    super().setUp()
    from ceph_volume_swimstore import activate, filesystem
    self.activate, self.filesystem = activate, filesystem
    self.put(filesystem, "cluster_fsid", lambda: self.OURS)
    self.put(filesystem.conf, "path", "/etc/ceph/ceph.conf")
    self.put(filesystem, "make_folder", lambda path: None)
    self.put(filesystem, "check_content", lambda osd: None)
    self.put(filesystem, "give_to_ceph", lambda path: None)
    self.put(filesystem.shutil, "which", lambda name: None)

  def plain(self, kind, **files):
    """The disk, and what its files say to who looks at it as it lies there."""
    self.entries.clear(), self.mounts.clear(), self.player.calls.clear(), self.player.answers.clear(), self.said.clear()
    self.disk("/dev/sda", 7, kind)
    for name, text in files.items():
      text = text.ljust(64, "\0")  # as in a block
      pieces = [(at, text[at:at + 16].encode()) for at in range(0, len(text), 16)]
      self.player.answers[f"debugfs -c -R block_dump -f /{name} 0 /dev/sda"] = (
          "".join(f"{at:04o}  {piece.hex(' ', -2)}  x\n" for at, piece in pieces), 0)
      lines = "".join(f"{at:03x}:  {piece.hex(' ')}  x\n" for at, piece in pieces)
      self.player.answers[f"xfs_db -r -c path /{name} -c dblock 0 -c type text -c print /dev/sda"] = lines, 0

  def writes(self):
    return [text for text in self.player.said() if text.split()[0] in ("mount", "fsck.ext4", "chown")]

  def test_of_an_encrypted_disk_nothing_is_opened(self):
    from ceph_volume_swimstore import crypt
    self.disk("/dev/sda", 7, "crypto_LUKS")
    self.player.answers["token export"] = crypt.token_text(7, FSID, "theirs", "xfs", "the secret"), 0
    with self.assertRaisesRegex(Failed, "not activated: osd.7"):
      self.activate.activate_all(False)
    self.assertFalse([text for text in self.player.said() if text.startswith(("mount", "cryptsetup")) and "export" not in text])
    self.assertRegex("".join(self.said), "/dev/sda holds osd.7 of another cluster, theirs")

  def test_what_needs_repair_within_an_encrypted_disk_stays_open(self):
    """Else the command that the message names would find no device."""
    from ceph_volume_swimstore import crypt
    mapping = f"/dev/mapper/swimstore-{FSID}"
    closed = []
    self.put(crypt, "open_by_monitor", lambda device, osd_id, osd_fsid: mapping)
    self.put(crypt, "close", closed.append)
    self.disk("/dev/sda", 7, "crypto_LUKS")
    for fs, program, code, remedy in (("ext4", "fsck.ext4", 4, f"e2fsck -f {mapping}"), ("xfs", "mount -t", 32, f"xfs_repair {mapping}"),
                                      ("xfs", "mount -t", FileNotFoundError, None), ("ext4", "fsck.ext4", 8, None),
                                      ("ext4", "mount -t", 32, None)):
      with self.subTest(program=program, code=code):
        closed.clear(), self.said.clear()
        self.player.answers.pop("mount -t", None), self.player.answers.pop("fsck.ext4", None)
        self.player.answers.update({"token export": (crypt.token_text(7, FSID, self.OURS, fs, "the secret"), 0), program: ("", code)})
        with self.assertRaisesRegex(Failed, "not activated: osd.7"):
          self.activate.activate_all(False)
        self.assertEqual(closed, [] if remedy else [FSID])
        told = f"'{remedy}', by hand. {mapping} stays open for that, until 'ceph-volume swimstore deactivate 7 {FSID}'"
        self.assertEqual(told in "".join(self.said), remedy is not None, self.said)

  def test_a_plain_disk_is_not_mounted(self):
    for kind in ("ext4", "xfs"):
      with self.subTest(kind=kind):
        self.plain(kind, fsid=FSID, ceph_fsid=self.THEIRS)
        with self.assertRaisesRegex(Failed, "not activated: osd.7"):
          self.activate.activate_all(True)
        self.assertEqual(self.writes(), [])
        self.assertIn(f"/dev/sda holds osd.7 of another cluster, {self.THEIRS}; /etc/ceph/ceph.conf is of {self.OURS}",
                      "".join(self.said))

  def test_ours_and_what_does_not_tell_is_mounted(self):
    """Its files may be in the journal alone; what was read in their place is another's, or none."""
    for kind in ("ext4", "xfs"):
      for files in ({"fsid": FSID, "ceph_fsid": self.OURS}, {}, {"fsid": FSID}, {"fsid": FSID, "ceph_fsid": "\0\0"},
                    {"fsid": OTHER_FSID, "ceph_fsid": self.THEIRS}, {"ceph_fsid": self.THEIRS}):
        with self.subTest(kind=kind, files=files):
          self.plain(kind, **files)
          self.activate.activate_all(True)
          self.assertEqual(self.writes()[-1:], [f"mount -t {kind} -o noatime /dev/sda /var/lib/ceph/osd/ceph-7"])

  def test_where_the_program_that_looks_is_missing_or_fails(self):
    for answer in (FileNotFoundError, ValueError, 1):  # ValueError: of what it prints is not all UTF-8
      for kind, program in (("ext4", "debugfs"), ("xfs", "xfs_db")):
        with self.subTest(kind=kind, answer=answer):
          self.plain(kind)
          self.player.answers[program] = "", answer
          self.activate.activate_all(True)
          self.assertEqual(self.writes()[-1:], [f"mount -t {kind} -o noatime /dev/sda /var/lib/ceph/osd/ceph-7"])

  def zap(self, *words):
    from ceph_volume_swimstore import zap
    zap.Zap(list(map(str, words))).main()

  def test_zap_by_number(self):
    """Who names a path, or an fsid, knows what it is."""
    self.plain("ext4", fsid=FSID, ceph_fsid=self.THEIRS)
    with self.assertRaisesRegex(Refused, f"of another cluster, {self.THEIRS}; .*: 'ceph-volume swimstore zap /dev/sda'$"):
      self.zap("--osd-id", 7)
    self.assertEqual(self.called("wipefs --all"), [])
    for words in (("/dev/sda",), ("--osd-fsid", FSID), ("--osd-id", 7, "--osd-fsid", FSID)):
      self.zap(*words)
    self.assertEqual(len(self.called("wipefs --all")), 3)

  def test_zap_by_number_of_ours_and_of_what_does_not_tell(self):
    for files in ({"fsid": FSID, "ceph_fsid": self.OURS}, {}):
      self.plain("xfs", **files)
      self.zap("--osd-id", 7)
      self.assertEqual(self.called("wipefs --all"), ["wipefs --all /dev/sda"])
    self.plain("ext4", fsid=FSID, ceph_fsid=self.THEIRS)
    self.put(self.filesystem, "cluster_fsid", mock.Mock(side_effect=RuntimeError))  # no ceph.conf
    self.zap("--osd-id", 7)
    self.assertEqual(self.called("wipefs --all"), ["wipefs --all /dev/sda"])
    self.plain("crypto_LUKS")
    self.player.answers["token export"] = "", 1  # a damaged header
    self.zap("--osd-id", 7)
    self.assertEqual(self.called("wipefs --all"), ["wipefs --all /dev/sda"])


if __name__ == "__main__":
  unittest.main()
