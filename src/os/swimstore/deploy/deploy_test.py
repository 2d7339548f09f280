#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The functions of ceph-volume's plugin that touch no device; what it calls is played by a list of answers.

deploy_host_test.py and deploy_paths_test.py play a host's devices, too; qa/standalone/ceph-volume.py has the rest, with loop devices and a cluster.
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import ceph_volume.process  # noqa: E402, F401: its modules import each other, and can be entered only here

from ceph_volume_swimstore import listing, names, parsing  # noqa: E402
from ceph_volume_swimstore.errors import Failed, Refused  # noqa: E402
from played import FSID, Player, played  # noqa: E402


class Names(unittest.TestCase):
  def test_a_label_tells_the_number(self):
    for osd_id in (0, 7, 9999999):
      self.assertEqual(names.id_of_label(names.label_of(osd_id)), osd_id)
      self.assertLessEqual(len(names.label_of(osd_id)), 12)
    with self.assertRaisesRegex(Refused, "osd.10000000: the number is too long"):
      names.label_of(10000000)

  def test_labels_of_others(self):
    for label in (None, "", "swim", "swim-", "swim-x", "swim-7 ", "swim-07", "aswim-7", "swim-7\n", "swim--1"):
      self.assertIsNone(names.id_of_label(label), label)

  def test_folders(self):
    self.assertEqual(names.id_of_folder("ceph", names.folder_of("ceph", 12)), 12)
    for path in ("/var/lib/ceph/osd/other-12", "/var/lib/ceph/osd/ceph-12/x", "/var/lib/ceph/osd/ceph-x", "/"):
      self.assertIsNone(names.id_of_folder("ceph", path), path)

  def test_what_systemd_hands_over(self):
    self.assertEqual(names.parse_trigger(f"7-{FSID}"), (7, FSID))
    for text in ("", None, "7", f"-{FSID}", f"x-{FSID}", "7-" + "-" * 36, f"7-{FSID}0"):
      with self.assertRaises(Refused, msg=text):
        names.parse_trigger(text)


class Parsing(unittest.TestCase):
  def test_blkid(self):
    text = f"""\
DEVNAME=/dev/loop1
LABEL=swim-7
UUID={FSID}
TYPE=ext4

DEVNAME=/dev/mapper/vg-lv
LABEL=a\\ name\\ =\\ x
TYPE=xfs
"""
    first, second = parsing.parse_blkid(text)
    self.assertEqual(first, {"DEVNAME": "/dev/loop1", "LABEL": "swim-7", "UUID": FSID, "TYPE": "ext4"})
    self.assertEqual(second["LABEL"], "a name = x")
    self.assertEqual(parsing.parse_blkid(""), [])

  def test_mountinfo(self):
    text = ("25 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw\n"
            "99 25 7:3 / /mnt/a\\040b ro,noatime - xfs /dev/loop3 rw,attr2\n"
            "broken\n")
    self.assertEqual(parsing.parse_mountinfo(text),
                     [parsing.Mount("8:2", "/", "ext4"), parsing.Mount("7:3", "/mnt/a b", "xfs")])

  def test_swaps(self):
    text = "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n/dev/sda3                               partition\t976892\t0\t-2\n"
    self.assertEqual(parsing.parse_swaps(text), ["/dev/sda3"])

  def test_locks(self):
    text = ("1: POSIX  ADVISORY  WRITE 812 fd:01:11 0 EOF\n"
            "2: FLOCK  ADVISORY  WRITE 4711 07:0c:131 0 EOF\n"
            "2: -> FLOCK  ADVISORY  WRITE 4712 07:0c:131 0 EOF\n")
    self.assertEqual(parsing.parse_locks(text), {(7, 12, 131): 4711})

  def wipefs(self, *signatures):
    entries = ", ".join(f'{{"device": "loop3", "type": "{kind}", "uuid": {uuid}, "label": {label}}}'
                        for kind, uuid, label in signatures)
    return parsing.parse_wipefs(f'{{"signatures": [{entries}]}}')

  def test_what_a_device_holds(self):
    osd = self.wipefs(("ext4", f'"{FSID}"', '"swim-7"'))
    self.assertEqual(parsing.swimstore_of(osd), (7, FSID, "ext4"))
    self.assertEqual(parsing.describe(osd), f"osd.7 of SwimStore, ext4, fsid {FSID}")
    encrypted = self.wipefs(("crypto_LUKS", f'"{FSID}"', '"swim-7"'), ("crypto_LUKS", f'"{FSID}"', "null"))
    self.assertEqual(parsing.swimstore_of(encrypted), (7, FSID, "crypto_LUKS"))
    self.assertEqual(parsing.describe(encrypted), f"osd.7 of SwimStore, encrypted, fsid {FSID}")

  def test_a_block(self):
    """Of xfs_db, of debugfs."""
    for text in ("000:  34 66 32 35 30 34 65 30 2d 34 66 38 39 2d 34 31  4f2504e0.4f89.41\n010:  64 33 0a 00 00 00  d3....\n",
                 "0000  3466 3235 3034 6530 2d34 6638 392d 3431  4f2504e0-4f89-41\n0020  6433 0a00  d3..\n0040  0000  ..\n*\n"):
      self.assertEqual(parsing.parse_block(text), "4f2504e0-4f89-41d3")
    for other in ("", "no such file\n", "\n000:  "):
      self.assertEqual(parsing.parse_block(other), "")
    with self.assertRaises(ValueError):
      parsing.parse_block("0000  6161 6161 6161 6161 6161 6161 6161 6161  aaaaaaaaaaaaaaaa\n*\n0100  0a00  ..\n")

  def test_what_is_not_ours(self):
    for others, words in ((self.wipefs(("ext4", '"u"', '"home"')), "an ext4 file system 'home'"),
                          (self.wipefs(("xfs", '"u"', "null")), "an xfs file system"),
                          (self.wipefs(("LVM2_member", '"u"', "null")), "a physical volume of LVM"),
                          (self.wipefs(("gpt", "null", "null"), ("gpt", "null", "null"), ("PMBR", "null", "null")),
                           "a partition table (GPT) and a partition table (MBR of a GPT)"),
                          (self.wipefs(("swap", '"u"', '"swim-7"')), "swap space 'swim-7'"),
                          # Something beside it: whose is the device?
                          (self.wipefs(("ext4", f'"{FSID}"', '"swim-7"'), ("zfs_member", '"u"', "null")),
                           "an ext4 file system 'swim-7' and a member of a ZFS pool")):
      self.assertIsNone(parsing.swimstore_of(others))
      self.assertEqual(parsing.describe(others), words)
    self.assertEqual(parsing.parse_wipefs(""), [])
    self.assertEqual(parsing.describe([]), "")
    self.assertIsNone(parsing.swimstore_of([]))

  def test_sizes(self):
    self.assertEqual([parsing.size_in_words(size) for size in (0, 1023, 1 << 20, 3 << 39, 5 << 50)],
                     ["0 B", "1023 B", "1.0 MiB", "1.5 TiB", "5120.0 TiB"])


class Listing(unittest.TestCase):
  def test_the_table(self):
    report = {"osd_id": 7, "osd_fsid": FSID, "device": "/dev/sdb", "fs": "", "encrypted": True, "mounted": "", "up": False,
              "metadata": "/fast/x"}
    heads, line = listing.as_table([report])
    self.assertEqual(heads.split(), ["ID", "FSID", "DEVICE", "FS", "ENCRYPTED", "MOUNTED", "UP", "METADATA"])
    self.assertEqual(line.split(), ["7", FSID, "/dev/sdb", "-", "yes", "-", "no", "/fast/x"])


class TakenBack(unittest.TestCase):
  def run_with(self, error):
    from ceph_volume_swimstore.undo import Undo
    done = []

    def broken():
      raise Failed("no")

    with mock.patch("ceph_volume_swimstore.undo.terminal") as terminal:
      try:
        with Undo() as undo:
          undo.add("the first", lambda: done.append("first") or True)
          undo.add("the second", broken, "by hand")
          undo.add("the third", lambda: bool(done.append("third")))
          if error:
            raise error
      except (Failed, KeyboardInterrupt):
        pass
    return done, [call.args[0] for call in terminal.error.mock_calls + terminal.info.mock_calls]

  def test_the_last_first_and_all_of_them(self):
    for error in (Failed("it"), KeyboardInterrupt()):
      done, said = self.run_with(error)
      self.assertEqual(done, ["third", "first"])
      self.assertEqual(said[1:], ["not taken back: the second: no; do it by hand: by hand", "taken back: the first"])

  def test_nothing_where_it_came_to_its_end(self):
    self.assertEqual(self.run_with(None), ([], []))

  def test_what_a_repair_needs_stays(self):
    from ceph_volume_swimstore.undo import Undo
    for error, expected in ((Failed("it"), ["third", "second", "first"]), (Failed("it", by_hand=True), ["third", "first"])):
      with self.subTest(by_hand=error.by_hand):
        done = []
        with mock.patch("ceph_volume_swimstore.undo.terminal"), self.assertRaises(Failed), Undo() as undo:
          undo.add("the first", lambda: done.append("first"))
          undo.add("the second", lambda: done.append("second"), stays_for_repair=True)
          undo.add("the third", lambda: done.append("third"))
          raise error
        self.assertEqual(done, expected)

  def test_where_all_stays_it_is_not_said_that_anything_is_taken_back(self):
    from ceph_volume_swimstore.undo import Undo
    with mock.patch("ceph_volume_swimstore.undo.terminal") as terminal, self.assertRaises(Failed), Undo() as undo:
      undo.add("the device", self.fail, stays_for_repair=True)
      raise Failed("it", by_hand=True)
    self.assertEqual(terminal.mock_calls, [])


class LostTerminal(unittest.TestCase):
  def test_all_is_taken_back(self):
    """A pipe that nobody reads any more: each line that is shown, by a step that is taken back as well, is an error."""
    from ceph_volume import terminal

    from ceph_volume_swimstore.undo import Undo
    reader, writer = os.pipe()
    os.close(reader)
    done = []

    def shown(name):
      terminal.write(f"Running command: {name}")
      return done.append(name) or True

    def broken():
      raise Failed("no")

    stderr = os.fdopen(writer, "w", buffering=1)
    with mock.patch.object(sys, "stderr", stderr):
      with self.assertLogs("ceph_volume_swimstore.undo", "ERROR") as logged, self.assertRaises(BrokenPipeError), Undo() as undo:
        undo.add("the first", lambda: shown("first"))
        undo.add("the second", broken, "by hand")
        undo.add("the third", lambda: shown("third"))
        terminal.write("Running command: mkfs")
      self.assertIs(sys.stderr, stderr)
    self.assertEqual(done, ["third", "first"])
    self.assertIn("not taken back: the second: no; do it by hand: by hand", "".join(logged.output))
    with contextlib.suppress(BrokenPipeError):
      stderr.close()


class Encryption(unittest.TestCase):
  """Without a device mapper: what is called, and with which key."""

  def setUp(self):
    from ceph_volume_swimstore import crypt
    self.crypt = crypt
    disk = types.SimpleNamespace(is_rotational=False)
    for module, name, value in ((crypt.encryption, "get_key_size_from_conf", lambda: "512"),
                                (crypt.conf, "dmcrypt_no_workqueue", True),
                                (crypt.host, "BlockDevice", lambda path: disk)):
      patch = mock.patch.object(module, name, value)
      patch.start()
      self.addCleanup(patch.stop)

  def test_the_header_says_whose_it_is(self):
    player, patch = played()
    with patch:
      self.crypt.make("/dev/x", "the passphrase", 7, FSID)
    ((words, stdin),) = player.calls
    self.assertEqual(stdin, "the passphrase")
    self.assertNotIn("the passphrase", words)
    for part in (f"--uuid {FSID}", "--label swim-7", "--type luks2", "luksFormat /dev/x"):
      self.assertIn(part, words)

  def test_the_token_is_read_as_it_was_written(self):
    text = self.crypt.token_text(7, FSID, "the cluster", "xfs", "the secret")
    _, patch = played({"token export": (text, 0)})
    with patch:
      token = self.crypt.read_token("/dev/x")
    self.assertEqual((token["fs"], token["lockbox_secret"], token["osd_fsid"], token["keyslots"]), ("xfs", "the secret", FSID, []))
    for other in ('{"type": "luks2-keyring"}', "{}", "no JSON", "[]"):
      _, patch = played({"token export": (other, 0)})
      with patch, self.assertRaisesRegex(Failed, "not SwimStore's"):
        self.crypt.read_token("/dev/x")

  def test_one_that_was_not_made_to_its_end(self):
    """The token is written behind the header."""
    _, patch = played({"token export": ("", 1)})
    with patch, self.assertRaisesRegex(Failed, "exit 1: it says why; .*'new'.*swimstore zap /dev/x'; otherwise .*a copy of the header"):
      self.crypt.open_by_monitor("/dev/x", 7, FSID)

  def test_the_monitor_is_asked_as_the_lockbox(self):
    """As for BlueStore: the client, and the key that it may read; and its keyring is gone afterwards."""
    text = self.crypt.token_text(7, FSID, "the cluster", "xfs", "the secret")
    seen = {}

    class Asking(Player):
      def __call__(self, words, **keywords):
        if "config-key" in words:
          seen["keyring"] = words[words.index("--keyring") + 1]
          seen["text"] = pathlib.Path(seen["keyring"]).read_text()
          seen["mode"] = pathlib.Path(seen["keyring"]).stat().st_mode & 0o777
        return super().__call__(words, **keywords)

    player = Asking({"token export": (text, 0), "config-key get": ("the passphrase\n", 0)})
    with mock.patch("ceph_volume.process.call", player), mock.patch.object(self.crypt.conf, "cluster", "ceph", create=True):
      self.assertEqual(self.crypt.open_by_monitor("/dev/x", 7, FSID), f"/dev/mapper/swimstore-{FSID}")
    asked = next(words for words in player.said() if "config-key" in words)
    self.assertIn(f"--name client.osd-lockbox.{FSID} ", asked)
    self.assertTrue(asked.endswith(f"config-key get dm-crypt/osd/{FSID}/luks"), asked)
    self.assertEqual((seen["text"], seen["mode"]), (f"[client.osd-lockbox.{FSID}]\n\tkey = the secret\n", 0o600))
    self.assertFalse(pathlib.Path(seen["keyring"]).exists())
    self.assertIn(" --connect-timeout 300 ", asked)
    opened, stdin = player.calls[-1]
    self.assertTrue(opened.endswith(f"--perf-no_write_workqueue luksOpen /dev/x swimstore-{FSID}"), opened)
    self.assertEqual(stdin, "the passphrase")

  def test_a_key_that_the_monitors_do_not_give(self):
    """They have forgotten it, or were not reached."""
    text = self.crypt.token_text(7, FSID, "the cluster", "xfs", "the secret")
    player, patch = played({"token export": (text, 0), "config-key get": ("", 2)})
    with patch, mock.patch.multiple(self.crypt.conf, create=True, cluster="ceph", path="/etc/ceph/ceph.conf"):
      with self.assertRaises(RuntimeError) as failed:
        self.crypt.open_by_monitor("/dev/x", 7, FSID)
    self.assertEqual(str(failed.exception), (
        f"/dev/x: client.osd-lockbox.{FSID} does not get the key dm-crypt/osd/{FSID}/luks from the monitors: it says "
        "why; where 'ceph osd dump' has no OSD with this fsid, it was destroyed or purged, and the key with it: "
        "where somebody kept that, see 'No other OSD has what it held' in the operations page; otherwise "
        f"'ceph-volume swimstore deactivate 7 {FSID}' and 'ceph-volume swimstore zap /dev/x'; where the monitors were "
        "not reached, see to the network and to mon_host in /etc/ceph/ceph.conf, and try again"))
    self.assertNotIn("luksOpen", "".join(player.said()))


class Made(unittest.TestCase):
  """`create --dmcrypt` with a played cryptsetup: the order, and what a failure takes back."""

  DEVICE = "/dev/x"

  def setUp(self):
    from ceph_volume_swimstore import crypt, filesystem, host, monitor, osds, prepare, units
    from ceph_volume_swimstore.undo import Undo
    self.prepare, self.undo = prepare, Undo
    self.signatures = []
    self.mounted = set()
    self.open = set()
    self.events = []
    device = types.SimpleNamespace(path=self.DEVICE, partitions=lambda: [], signatures=lambda: self.signatures, busy=lambda: "",
                                   is_read_only=False, identity="1", number="8:0", whole=lambda: device)
    self.put(prepare, "wipefs", lambda path: self.event("wipefs", self.signatures.clear))
    self.put(host, "BlockDevice", lambda path: device)
    self.find_all = mock.Mock(return_value=[])
    self.put(osds, "find_all", self.find_all)
    self.put(units, "program", lambda: "/programs/ceph-osd")
    self.put(monitor, "check_keyring", lambda: None)
    self.put(monitor, "check_wishes", lambda osd_id, osd_fsid: False)
    self.put(monitor, "new_secrets", lambda encrypted: {"cephx_secret": "S", "dmcrypt_key": "K", "cephx_lockbox_secret": "L"})
    self.put(monitor, "new_number", lambda *args: self.event("number", lambda: 7))
    self.give_back = monitor.give_back
    self.put(monitor, "give_back", lambda *args: self.event("give back", lambda: True))
    self.put(filesystem, "cluster_fsid", lambda: "the cluster")
    self.put(filesystem, "make_folder", lambda path: None)
    self.put(filesystem, "remove_folder", lambda path: self.event("rmdir"))
    self.put(filesystem, "make", lambda kind, path, *args: self.event(f"mkfs {path}"))
    self.put(filesystem, "mount", lambda kind, path, folder: self.event(f"mount {path}", lambda: self.mounted.add(folder)))
    self.put(filesystem, "unmount", lambda folder: self.event("umount", lambda: self.mounted.discard(folder)))
    self.put(crypt, "check_host", lambda: None)
    header = parsing.Signature("crypto_LUKS", "swim-7", FSID)
    self.put(crypt, "make", lambda *args: self.event("luksFormat", lambda: self.signatures.append(header)))
    self.put(crypt, "write_token", lambda *args: self.event("token"))
    self.put(crypt, "open_with", lambda *args: self.event("open", lambda: self.open.add(1)))
    self.put(crypt, "close", lambda fsid: self.event("close", self.open.clear))
    self.put(prepare.system, "get_ceph_user_ids", lambda: (1, 1))
    self.put(filesystem, "give_to_ceph", lambda path: self.event("chown"))
    self.put(prepare.conf, "cluster", "ceph")
    self.put(filesystem, "write_file", lambda *args: self.event("keyring"))
    self.put(filesystem, "check_content", lambda osd: self.event("look"))
    self.put(prepare, "call", lambda *args, **keywords: self.calls.append(args) or self.event("ceph-osd --mkfs"))
    self.calls = []
    self.put(prepare.shutil, "which", lambda name: name)
    self.put(sys.modules["ceph_volume_swimstore.undo"], "terminal", mock.Mock())
    self.fail_at = None

  def put(self, module, name, value):
    patch = mock.patch.object(module, name, value, create=name == "cluster")
    patch.start()
    self.addCleanup(patch.stop)

  def event(self, name, effect=lambda: None):
    self.events.append(name)
    if name == self.fail_at:
      raise Failed(name)
    return effect()

  def make(self, osd_id=None, metadata=None):
    args = types.SimpleNamespace(data=self.DEVICE, fs="ext4", dmcrypt=True, osd_id=osd_id, osd_fsid=FSID, crush_device_class=None,
                                 metadata=metadata)
    with self.undo() as undo:
      return self.prepare.make(args, undo)

  MAPPING = f"/dev/mapper/swimstore-{FSID}"
  STEPS = ["number", "luksFormat", "token", "open", f"mkfs {MAPPING}", f"mount {MAPPING}", "chown", "keyring", "ceph-osd --mkfs",
           "look"]

  def test_all_devices_are_asked_once(self):
    self.make()
    self.assertEqual(self.find_all.call_count, 1)

  def test_what_somebody_else_wrote_meanwhile_is_left(self):
    home = parsing.Signature("ext4", "home", "")
    self.put(self.prepare.crypt, "make", lambda *args: self.event("luksFormat", lambda: self.signatures.append(home)))
    self.fail_at = "token"
    with self.assertRaises(Failed):
      self.make()
    self.assertEqual((self.signatures, self.events[-1]), ([home], "give back"))

  def test_another_device_of_the_same_name_is_left(self):
    from ceph_volume_swimstore import host
    device = host.BlockDevice(self.DEVICE)
    self.put(self.prepare.monitor, "new_number", lambda *args: self.event("number", lambda: setattr(device, "identity", "2") or 7))
    self.put(host, "BlockDevice", lambda path: types.SimpleNamespace(**vars(device)))
    with self.assertRaisesRegex(Refused, "another device than a moment ago"):
      self.make()
    self.assertEqual(self.events, ["number", "rmdir", "give back"])

  def test_the_number_of_another_host_is_not_given_back(self):
    from ceph_volume_swimstore import monitor

    def taken(*args):
      raise monitor.Taken("EEXIST")
    self.put(monitor, "new_number", taken)
    with self.assertRaises(Failed):
      self.make()
    self.assertEqual(self.events, [])

  def test_one_remedy_for_a_number_that_is_not_given_back(self):
    """purge-new would take the place in the tree away that a number keeps when its OSD is destroyed."""
    from ceph_volume_swimstore import monitor, undo
    for was_destroyed, remedy, other in ((True, "'ceph osd destroy 7 --yes-i-really-mean-it'", "purge-new"),
                                         (False, "'ceph osd purge-new ID --yes-i-really-mean-it'", "destroy")):
      with self.subTest(was_destroyed=was_destroyed):
        self.put(monitor, "check_wishes", lambda *args: was_destroyed)
        self.put(monitor, "give_back", self.give_back)
        self.put(monitor, "_entries", lambda: [{"osd": 7, "uuid": FSID}])
        _, patch = played({"osd destroy": ("", 1), "osd purge-new": ("", 1)})
        self.fail_at = "token"
        undo.terminal.reset_mock()
        with patch, self.assertRaises(Failed):
          self.make(osd_id=7)
        (told,) = [call.args[0] for call in undo.terminal.error.mock_calls if "number" in call.args[0]]
        self.assertEqual((told.count(remedy), told.count("by hand"), told.count(f"'ceph osd {other}")), (1, 1, 0), told)

  def test_in_order(self):
    osd = self.make()
    self.assertEqual(self.events, self.STEPS)
    self.assertEqual((osd.osd_id, osd.osd_fsid, osd.encrypted, osd.mapping), (7, FSID, True, self.MAPPING))

  def test_each_failure_leaves_nothing(self):
    for step in self.STEPS:
      with self.subTest(step=step):
        self.events.clear()
        self.fail_at = step
        with self.assertRaisesRegex(Failed, f"^{re.escape(step)}$"):
          self.make()
        self.assertEqual((self.signatures, self.mounted, self.open), ([], set(), set()))
        back = self.events[self.events.index(step) + 1:]
        self.assertEqual(back[-1], "give back")
        self.assertEqual([event for event in back if event in ("umount", "close", "wipefs")],
                         [event for event, after in (("umount", f"mkfs {self.MAPPING}"), ("close", "token"), ("wipefs", "number"))
                          if event != "wipefs" and self.STEPS.index(step) > self.STEPS.index(after)
                          or event == "wipefs" and self.STEPS.index(step) > self.STEPS.index("luksFormat")])

  def make_with_metadata(self, parent):
    from ceph_volume_swimstore import metadata
    self.put(metadata, "check", lambda path, encrypted: path)
    self.put(metadata.system, "get_ceph_user_ids", lambda: (os.getuid(), os.getgid()))
    return self.make(metadata=parent)

  def test_log_and_tree_get_a_directory(self):
    with tempfile.TemporaryDirectory() as parent:
      path = f"{parent}/swimstore-{FSID}"
      self.make_with_metadata(parent)
      self.assertEqual(os.stat(path).st_mode & 0o777, 0o750)
      self.assertEqual(self.calls[-1][-2:], ("--swimstore-metadata-path", path))

  def test_each_failure_leaves_no_directory(self):
    for step in self.STEPS:
      with self.subTest(step=step), tempfile.TemporaryDirectory() as parent:
        self.fail_at = step
        with self.assertRaisesRegex(Failed, f"^{re.escape(step)}$"):
          self.make_with_metadata(parent)
        self.assertEqual(os.listdir(parent), [])

  def test_a_directory_that_is_there_is_left(self):
    with tempfile.TemporaryDirectory() as parent:
      there = pathlib.Path(parent, f"swimstore-{FSID}")
      there.mkdir()
      with self.assertRaisesRegex(Refused, "is there already"):
        self.make_with_metadata(parent)
      self.assertTrue(there.is_dir())
      self.assertEqual((self.signatures, self.events[-1]), ([], "give back"))


class DropIns(unittest.TestCase):
  def test_of_all_of_one_and_of_another(self):
    from ceph_volume_swimstore import units
    with tempfile.TemporaryDirectory() as folder:
      def put(unit, text):
        path = pathlib.Path(folder, f"{unit}.service.d", "x.conf")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

      self.assertFalse(units.has_drop_in(7, [folder]))
      put("ceph-osd@8", "ExecStart=/opt/swimstore/bin/ceph-osd\n")
      put("ceph-osd@", "[Service]\nNice=1\n")
      self.assertFalse(units.has_drop_in(7, [folder]))
      put("ceph-osd@7", "ExecStart=/opt/swimstore/bin/ceph-osd\n")
      self.assertTrue(units.has_drop_in(7, [folder]))
      put("ceph-osd@", "ExecStart=/usr/lib/ceph-swimstore/launch %i\n")
      self.assertTrue(units.has_drop_in(9, [folder]))


class Peeked(unittest.TestCase):
  """What the file systems' own programs read of one that is not mounted."""

  OTHER = FSID.replace("3f", "4f")

  def images(self, ceph_fsid, **more):
    """(kind, path) of each kind with the two files of an OSD, and more of them."""
    with tempfile.TemporaryDirectory() as folder:
      files = pathlib.Path(folder, "files")
      files.mkdir()
      (files / "fsid").write_text(f"{FSID}\n")
      (files / "ceph_fsid").write_bytes(ceph_fsid)
      for name, text in more.items():
        (files / name).write_text(text)
      proto = pathlib.Path(folder, "proto")
      proto.write_text("/\n0 0\nd--755 0 0\n" + "".join(f"{file.name} ---644 0 0 {file}\n" for file in files.iterdir()) +
                       "$\n$\n")
      image = pathlib.Path(folder, "image")
      for kind, options in (("ext4", ("-d", files)), ("xfs", ("-p", proto))):
        image.unlink(missing_ok=True)
        image.touch()
        os.truncate(image, 320 << 20)
        subprocess.run([f"mkfs.{kind}", "-q", *options, image], check=True)
        yield kind, image

  def cluster(self, kind, image, osd_fsid=FSID):
    from ceph_volume_swimstore import filesystem, osds
    return filesystem.cluster_of(osds.Osd(7, osd_fsid, str(image), kind, False, "", 0))

  def test_it_is_read_and_left_as_it_is(self):
    for kind, image in self.images(f"{self.OTHER}\n".encode()):
      before = image.stat().st_mtime_ns
      self.assertEqual(self.cluster(kind, image), self.OTHER, kind)
      self.assertEqual(self.cluster(kind, image, self.OTHER), "", kind)
      self.assertEqual(image.stat().st_mtime_ns, before)

  def test_where_log_and_tree_are(self):
    from ceph_volume_swimstore import metadata, osds
    longest = "/" + "/".join(map(str, range(140)))
    for text, wanted in ((None, ""), ("/fast/ceph-7\n", "/fast/ceph-7"), (f"{longest}\n", longest), ("fast\n", None), ("\n", ""),
                         ("/\xfc/\u20ac\n", "/\xfc/\u20ac")):
      for kind, image in self.images(b"", **({metadata.FILE: text} if text is not None else {})):
        self.assertEqual(metadata.told_by(osds.Osd(7, FSID, str(image), kind, False, "", 0)), wanted, kind)
    # debugfs prints an asterisk for some of the first; the second is longer than what xfs_db does.
    for path in (f"/{'x' * 100}", longest * 2):
      for kind, image in self.images(b"", **{metadata.FILE: f"{path}\n"}):
        self.assertIn(metadata.told_by(osds.Osd(7, FSID, str(image), kind, False, "", 0)), (None, path), kind)

  def test_of_a_file_that_is_something_else_no_more_than_a_block_is_read(self):
    """As where the journal has a newer one."""
    from ceph_volume_swimstore import filesystem
    for text in (b"\xff" * (1 << 20), f"{self.OTHER}\nand more".encode(), b""):
      for kind, image in self.images(text):
        printed = []
        real = filesystem.call
        with mock.patch.object(filesystem, "call", lambda *words, **named: printed.append(real(*words, **named)) or printed[-1]):
          self.assertEqual(self.cluster(kind, image), "", f"{kind}: {text[:9]}")
        self.assertLess(max(map(len, printed)), 32 << 10)


class Installed(unittest.TestCase):
  def test_its_pages_tell_how_to_call_and_to_install(self):
    """On a host with the package alone."""
    checkout = HERE.parents[3]
    tool = (checkout / "doc/ceph-swimstore-tool.md").read_text()
    self.assertRegex(tool, r"^# ceph-swimstore-tool\n\n`ceph-swimstore-tool COMMAND PATH`")
    rules = (checkout / "src/os/swimstore/monitoring/swimstore-rules.yml").read_text().partition("\ngroups:")[0]
    page, section = re.search(r"How to install this:\s+# (doc/\S+), section \"(.+?)\"", rules).groups()
    body = re.search(rf"^{section}\n=+\n(.*?)\n=+\n", (checkout / page).read_text(), re.M | re.S)[1]
    self.assertIn("``swimstore-rules.yml``", body)

  def test_ceph_volume_finds_it(self):
    """Installed as the package's build does it."""
    with tempfile.TemporaryDirectory() as folder:
      shutil.copytree(HERE, f"{folder}/source", ignore=shutil.ignore_patterns("__pycache__"))  # it writes beside what it builds
      subprocess.run([sys.executable, "setup.py", "-q", "install", "--root", f"{folder}/root", "--prefix", "/usr",
                      "--install-layout", "deb"], cwd=f"{folder}/source", check=True, capture_output=True)
      folder += "/root/usr/lib/python3/dist-packages"
      found = """
import importlib.metadata, sys
(plugin,) = importlib.metadata.entry_points(group="ceph_volume_handlers")
loaded = plugin.load()
print(plugin.name, loaded.name, sys.modules[loaded.__module__].__file__, importlib.metadata.version("ceph-volume-swimstore"))
"""
      done = subprocess.run([sys.executable, "-c", found], env={"PYTHONPATH": folder, "PATH": "/usr/bin"}, check=True, text=True,
                            stdout=subprocess.PIPE)
      names_there = sorted(path.name for path in pathlib.Path(folder, "ceph_volume_swimstore").glob("*.py"))
    name, handler, path, version = done.stdout.split()
    self.assertEqual((name, handler), ("swimstore", "swimstore"))
    self.assertTrue(path.startswith(folder), path)
    self.assertEqual(names_there, sorted(path.name for path in HERE.glob("ceph_volume_swimstore/*.py")))
    lists = (HERE.parents[3] / "CMakeLists.txt").read_text()
    self.assertEqual(version, re.search(r"project\(swimstore VERSION ([\d.]+)", lists)[1])


if __name__ == "__main__":
  unittest.main()
