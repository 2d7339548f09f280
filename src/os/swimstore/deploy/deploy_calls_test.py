#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What ceph-volume's plugin makes of what programs and the kernel tell: in any locale, and where it is no UTF-8."""

import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import ceph_volume.process  # noqa: E402, F401: its modules import each other, and can be entered only here

from ceph_volume_swimstore import command, host, metadata, osds, parsing  # noqa: E402
from ceph_volume_swimstore.errors import Failed, Refused  # noqa: E402
from played import FSID, played  # noqa: E402


class Calls(unittest.TestCase):
  def test_a_failure_names_the_command_and_the_reason(self):
    _, patch = played({"mkfs.xfs": ("", 1)})
    with patch, self.assertRaisesRegex(Failed, "^mkfs.xfs -q /dev/x: exit 1: it says why$"):
      command.call("mkfs.xfs", "-q", "/dev/x")
    missing = mock.patch("ceph_volume.process.call", side_effect=FileNotFoundError)
    with missing, self.assertRaisesRegex(Failed, "mkfs.xfs is not there"):
      command.call("mkfs.xfs")

  def test_programs_speak_english(self):
    with mock.patch.dict(os.environ, {"LANG": "de_DE.UTF-8", "LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de", "KEPT": "as it is"}):
      self.assertEqual(command.call("printenv", "LC_ALL"), "C.UTF-8")
      self.assertEqual(command.call("printenv", "LANGUAGE"), "")
      self.assertEqual(command.call("printenv", "KEPT"), "as it is")

  def test_what_is_no_utf8_is_named(self):
    with self.assertRaisesRegex(Failed, r"^printf \\374: it prints b'\\xfc', which is no UTF-8$"):
      command.call("printf", r"\374")
    with self.assertRaisesRegex(Failed, "it prints something, which is no UTF-8$"):
      command.call("printf", r"\374", secret=True)


class ForeignNames(unittest.TestCase):
  def test_a_mount_point_may_have_any_name(self):
    with tempfile.NamedTemporaryFile() as file:
      file.write(b"99 25 7:3 / /mnt/b\xfccher rw - ext4 /dev/loop3 rw\n"
                 b"98 25 7:2 / /mnt/a\xe2\x80\xa8b\xc2\xa0c rw - xfs /dev/loop2 rw\n")
      file.flush()
      text = host._text(file.name)
    self.assertEqual(parsing.parse_mountinfo(text), [parsing.Mount("7:3", "/mnt/b\\xfccher", "ext4"),
                                                     parsing.Mount("7:2", "/mnt/a\u2028b\u00a0c", "xfs")])

  def test_a_label_that_is_no_utf8_is_nobody_of_ours(self):
    with tempfile.TemporaryDirectory() as folder:
      program = pathlib.Path(folder, "wipefs")
      program.write_text("#!/bin/sh\nprintf '{\"signatures\": [{\"label\": \"\\374\"}]}'\n")
      program.chmod(0o755)
      device = object.__new__(host.BlockDevice)
      device.path = "/dev/sda"
      with mock.patch("ceph_volume.process.which", lambda name, *_: str(program)), \
           self.assertRaisesRegex(Refused, "^/dev/sda holds something whose label is no UTF-8.*: see who uses it"):
        device.signatures()


class Told(unittest.TestCase):
  def test_what_cannot_be_read_is_not_taken_for_what_is_not_there(self):
    osd = osds.Osd(7, FSID, "/dev/sda", "ext4", False, "", 0)
    for code in (0, 1):
      _, patch = played({"block_dump": ("", code)})
      with patch:
        self.assertIsNone(metadata.told_by(osd))
    with mock.patch("ceph_volume_swimstore.filesystem.peek", lambda osd, name: FSID if name == "fsid" else ""):
      self.assertEqual(metadata.told_by(osd), "")


if __name__ == "__main__":
  unittest.main()
