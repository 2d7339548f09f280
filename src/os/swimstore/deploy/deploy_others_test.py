#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the commands of ceph-volume's plugin do where another command, or another disk, has to do with the same OSD: devices are
played, as in played.py."""

import contextlib
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from ceph_volume_swimstore.errors import Failed, Refused  # noqa: E402
from played import FSID, OTHER_FSID, PlayedHost  # noqa: E402


class Units(PlayedHost):
  def setUp(self):
    super().setUp()
    from ceph_volume_swimstore import units
    self.units = units

  def test_what_has_the_store_open_is_ended_as_it_can_be(self):
    from ceph_volume_swimstore import host
    for program, ending in (("ceph-osd", "'systemctl stop ceph-osd@7'"), ("", "'systemctl stop ceph-osd@7'"),
                            ("ceph-swimstore-tool", "wait until ceph-swimstore-tool, process 4711, has ended")):
      self.put(host, "program_of", lambda process: program)
      self.assertEqual(self.units.ending(7, 4711), ending)

  def test_the_name_of_a_program(self):
    from ceph_volume_swimstore import host
    self.assertEqual(host.program_of(os.getpid()), os.path.basename(sys.orig_argv[0]))
    self.assertEqual(host.program_of(1 << 30), "")

  def test_other_disks_with_the_number_are_not_started_whatever_store_they_have(self):
    folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
    self.put(self.units, "ENABLED", folder)
    wants = folder / "multi-user.target.wants"
    wants.mkdir()
    for name in (f"swimstore-7-{FSID}", f"swimstore-7-{OTHER_FSID}", f"lvm-7-{OTHER_FSID}", f"lvm-77-{OTHER_FSID}", f"lvm-2-{FSID}",
                 "lvm-7-of-no-form"):
      (wants / f"ceph-volume@{name}.service").touch()
    self.units.disable_others(7, FSID)
    self.units.disable_others(4089, FSID)  # which is in their fsids
    self.assertEqual(self.called("systemctl"), [f"systemctl disable ceph-volume@lvm-7-{OTHER_FSID}",
                                                f"systemctl disable ceph-volume@swimstore-7-{OTHER_FSID}"])


class AnotherCommandMeanwhile(PlayedHost):
  """It had the lock of the OSD, and has changed what is there."""

  FOLDER = "/var/lib/ceph/osd/ceph-7"

  def meanwhile(self, change):
    from ceph_volume_swimstore import host

    @contextlib.contextmanager
    def lock(name):
      change()
      yield
    self.put(host, "lock", lock)

  def test_one_that_was_started_is_not_deactivated(self):
    from ceph_volume_swimstore import activate, host
    self.disk("/dev/sda", 7)

    def started():
      self.mount("/dev/sda", self.FOLDER)
      self.put(host, "process_of", lambda path: 4711)
    self.meanwhile(started)
    with self.assertRaisesRegex(Refused, "osd.7 is in use: 'systemctl stop ceph-osd@7' first"):
      activate.Deactivate(["7"]).main()
    self.assertFalse(self.called("disable"))

  def test_one_that_was_unmounted_is_mounted_again(self):
    from ceph_volume_swimstore import activate
    self.disk("/dev/sda", 7)
    self.mount("/dev/sda", self.FOLDER)
    self.meanwhile(self.mounts.clear)
    seen = []
    self.put(activate, "activate", lambda osd, no_systemd: seen.append(osd.mounted))
    activate.Activate(["7"]).main()
    self.mount("/dev/sda", self.FOLDER)
    activate.Trigger([f"7-{FSID}"]).main()
    self.mount("/dev/sda", self.FOLDER)
    activate.Activate(["--all"]).main()
    self.assertEqual(seen, ["", "", ""])

  def test_one_that_has_got_the_number_is_left_alone(self):
    from ceph_volume_swimstore import activate, osds, units
    self.put(units, "volumes_of", lambda osd_id: [OTHER_FSID])
    self.disk("/dev/sda", 7)
    self.mount("/dev/sda", self.FOLDER)

    def exchanged():
      self.entries.clear(), self.mounts.clear()
      self.disk("/dev/sdb", 7, fsid=OTHER_FSID)
      self.mount("/dev/sdb", self.FOLDER)
    self.meanwhile(exchanged)
    with self.assertRaises(osds.Absent):
      activate.Deactivate(["7"]).main()
    self.assertFalse(self.called("disable"))

  def test_it_is_started_before_another_command_can_be_at_work(self):
    from ceph_volume_swimstore import activate, units
    self.disk("/dev/sda", 7)
    self.put(units, "start", lambda osd_id, osd_fsid: self.assertEqual(self.locked, [FSID]))
    for module, name in ((activate.metadata, "check_there"), (activate.filesystem, "check_content"),
                         (activate.filesystem, "give_to_ceph"), (activate, "_mount")):
      self.put(module, name, lambda *arguments: None)
    activate.Activate(["7"]).main()
    self.assertIn("osd.7 is mounted on /var/lib/ceph/osd/ceph-7, and started", self.said)


class ADiskThatIsKept(PlayedHost):
  """As the last copy of something, while its number goes to another disk."""

  def setUp(self):
    super().setUp()
    from ceph_volume_swimstore import prepare, units
    self.prepare = prepare
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
    self.put(units, "ENABLED", self.folder)
    self.disk("/dev/sda", 7)

  def check(self, osd_id=7, osd_fsid=None):
    from ceph_volume_swimstore import osds
    self.prepare.check_others(osd_id, osd_fsid, osds.find_all())

  def test_once_it_is_deactivated_another_one_is_made(self):
    self.check()

  def test_one_that_may_be_started_is_deactivated_first(self):
    remedy = f"^/dev/sda holds osd.7 already, fsid {FSID}: 'ceph-volume swimstore deactivate 7 {FSID}' first; what it holds stays$"
    self.mount("/dev/sda", "/mnt")
    with self.assertRaisesRegex(Refused, f"fsid {FSID}: 'umount /mnt', and 'ceph-volume swimstore deactivate 7 {FSID}' first"):
      self.check()
    self.check(osd_id=8)
    self.mounts.clear()
    unit = self.folder / "multi-user.target.wants" / f"ceph-volume@swimstore-7-{FSID}.service"
    unit.parent.mkdir()
    unit.touch()
    with self.assertRaisesRegex(Refused, remedy):
      self.check()

  def test_no_other_one_has_its_fsid(self):
    with self.assertRaisesRegex(Refused, "holds osd.7 already.*: leave --osd-fsid out"):
      self.check(8, FSID)

  def enable(self, *fsids):
    wants = self.folder / "multi-user.target.wants"
    wants.mkdir()
    for fsid in fsids:
      (wants / f"ceph-volume@swimstore-7-{fsid}.service").touch()

  def test_it_is_not_taken_for_the_one_that_is_away(self):
    from ceph_volume_swimstore import activate, osds
    self.enable(OTHER_FSID)
    for words in (["7"],):
      with self.assertRaisesRegex(Refused, f"osd.7 with the fsid {OTHER_FSID} is started with this host, .* give the fsid"):
        activate.Deactivate(words).main()
    self.assertEqual(osds.find(7, FSID).device, "/dev/sda")
    activate.Deactivate(["7", OTHER_FSID]).main()
    self.assertEqual(self.called("disable"), [f"systemctl disable ceph-volume@swimstore-7-{OTHER_FSID}"])

  def test_beside_it_the_others_are_activated(self):
    from ceph_volume_swimstore import activate
    self.disk("/dev/sdb", 7, fsid=OTHER_FSID)
    done = []
    self.put(activate, "activate", lambda osd, no_systemd: done.append(osd.device))
    with self.assertRaisesRegex(Failed, "not activated: osd.7"):
      activate.activate_all(True)
    self.enable(OTHER_FSID)
    activate.activate_all(True)
    self.assertEqual(done, ["/dev/sdb"])
    self.assertIn(f"/dev/sda holds osd.7 with the fsid {FSID}, which was deactivated: it is left", self.said)


if __name__ == "__main__":
  unittest.main()
