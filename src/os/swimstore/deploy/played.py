# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests of ceph-volume's plugin have in place of a host: programs that answer what a test says, and devices."""

import contextlib
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from ceph_volume_swimstore import parsing
from ceph_volume_swimstore.errors import Refused

FSID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
OTHER_FSID = "4f2504e0-4f89-41d3-9a0c-0305e82c3301"


class Player:
  """Takes the place of ceph_volume's process.call: answers by the begin of a command, and remembers what was called."""

  def __init__(self, answers=()):
    self.answers = dict(answers)
    self.calls = []

  def __call__(self, words, stdin=None, **keywords):
    text = " ".join(words)
    self.calls.append((text, stdin))
    for begin, (out, code) in self.answers.items():
      if begin in text:
        if isinstance(code, type):
          raise code
        return out.splitlines(), [] if code == 0 else ["it says why"], code
    return [], [], 0

  def said(self):
    return [text for text, _ in self.calls]


def played(answers=()):
  player = Player(answers)
  return player, mock.patch("ceph_volume.process.call", player)


class PlayedHost(unittest.TestCase):
  """Devices of which the kernel says what `attributes` of disk() says, and programs that answer what `answers` has."""

  def setUp(self):
    from ceph_volume_swimstore import host, zap
    self.sys, self.kernel = (pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) for _ in range(2))
    self.numbers, self.entries, self.mounts, self.locked = {}, [], [], []
    numbers = self.numbers

    class Device(host.BlockDevice):
      def __init__(self, path):
        if path not in numbers:
          raise Refused(f"{path}: No such file or directory")
        self.path, self.number = path, numbers[path]
        self._sys = host.SYS / self.number

      def busy(self):
        held = ", ".join(self.holders().values())
        return "is mounted" if self.mounts() else held and f"is in use by {held}"

    @contextlib.contextmanager
    def lock(name):
      self.assertNotIn(name, self.locked)  # it would wait for itself
      self.locked.append(name)
      try:
        yield
      finally:
        self.locked.remove(name)

    self.put(host, "SYS", self.sys)
    self.put(host, "BlockDevice", Device)
    self.put(host, "all_devices", lambda: self.entries)
    self.put(host, "mounts", lambda: self.mounts)
    self.put(host, "process_of", lambda path: None)
    self.put(host, "lock", lock)
    self.put(zap, "overwrite_ends", lambda path, size_bytes: None)  # this host may have such a device
    self.put(sys.modules["ceph_volume"].conf, "cluster", "ceph")
    self.enterContext(mock.patch.dict(os.environ, {"CEPH_VOLUME_SKIP_NEEDS_ROOT": "1"}))
    self.said = []
    for kind in ("info", "success", "warning", "error"):
      self.put(sys.modules["ceph_volume"].terminal, kind, self.said.append)
    self.player = Player()
    self.put(sys.modules["ceph_volume"].process, "call", self.player)

  def put(self, module, name, value):
    self.enterContext(mock.patch.object(module, name, value, create=name in ("cluster", "path")))

  def disk(self, path, osd_id=None, kind="ext4", fsid=FSID, part_of="", part="1", **attributes):
    """One with the label of an OSD, if a number is given; `attributes`: {file of sysfs, with / as __: what it says}"""
    number = f"8:{len(list(self.sys.iterdir()))}"
    folder = self.kernel / number
    if part_of:
      folder = (self.sys / self.numbers[part_of]).resolve()
      attributes["partition"] = part
    folder /= pathlib.Path(path).name
    folder.mkdir(parents=True)
    (self.sys / number).symlink_to(folder)
    self.numbers[path] = number
    for name, text in attributes.items():
      file = folder / name.replace("__", "/")
      file.parent.mkdir(parents=True, exist_ok=True)
      file.write_text(f"{text}\n")
    if osd_id is not None:
      self.entries.append({"DEVNAME": path, "TYPE": kind, "LABEL": f"swim-{osd_id}", "UUID": fsid})
      signature = f'''{{"signatures": [{{"type": "{kind}", "label": "swim-{osd_id}", "uuid": "{fsid}"}}]}}'''
      self.player.answers[f"wipefs --no-act --json --output TYPE,LABEL,UUID {path}"] = signature, 0

  def mount(self, path, where, fs="ext4"):
    self.mounts.append(parsing.Mount(self.numbers[path], where, fs))

  def zap(self, path, destroy=False):
    from ceph_volume_swimstore import zap
    zap.zap(path, destroy, no_systemd=False)

  def called(self, word):
    return [text for text in self.player.said() if word in text]
