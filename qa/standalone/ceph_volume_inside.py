#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The part of ceph-volume.py that runs in the host of own_host.py.

usage: ceph_volume_inside.py PACKAGE all|quick DEVICE DEVICE DEVICE DEVICE DEVICE
"""

import fcntl
import os
import pathlib
import re
import shutil
import struct
import sys

import ceph_volume_failures
import ceph_volume_refusals
import own_host_inside as host
import page_recipe
from ceph_volume_host import (OSDS, create, devices_listed, enabled, is_empty, prepare_host, start_host, swimstore, table_of, wait_up)
from own_host_inside import CEPH_UID, ceph, check_objects, must, pid_of, put_objects, report, run, stop, until

BOOTSTRAP = pathlib.Path("/var/lib/ceph/bootstrap-osd/ceph.keyring")
FSID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
LARGER_BYTES = 256 << 20  # get both devices
# struct loop_info64 of linux/loop.h
LOOP_SET_STATUS64, LOOP_GET_STATUS64 = 0x4C04, 0x4C05
LOOP_INFO_BYTES, LOOP_SIZE_LIMIT_AT = 232, 32


# -- makes them -------------------------------------------------------------------------------------------------------

def check_plugin():
  report("swimstore" in run("ceph-volume", "--help").stdout, "ceph-volume finds the plugin")
  usage = swimstore().stdout
  commands = ("create", "prepare", "activate", "list", "grow", "trigger", "zap", "deactivate")
  report(all(command in usage for command in commands), "it says which commands there are", usage)
  for command in commands:
    report(f"usage: ceph-volume swimstore {command}" in swimstore(command, "--help").stdout, f"{command} says how it is used")
  unknown = swimstore("destroy")
  report(unknown.returncode == 1 and "no command 'destroy'" in unknown.stdout, "another command is refused", unknown.stdout)


def make_by_the_page(device):
  """The page's own commands."""
  refused = create(device)
  report(refused.returncode == 1 and f"ceph auth get client.bootstrap-osd -o {BOOTSTRAP}" in refused.stdout and is_empty(device),
         "without the keyring to make OSDs it says how to get it, and does nothing", refused.stdout)
  host.run_script(host.recipe(page_recipe.CREATE, device=device), "make an OSD")
  wait_up(0)
  secret = ceph("auth", "get", "osd.0")[0]["key"]
  report(secret not in pathlib.Path("/var/log/ceph/ceph-volume.log").read_text(), "its key is not in the log of ceph-volume")
  keyring = OSDS / "ceph-0/keyring"
  report(secret in keyring.read_text() and (keyring.stat().st_mode & 0o777, keyring.stat().st_uid) == (0o600, CEPH_UID),
         "it is in its keyring, which nobody but ceph reads")
  space = os.statvfs(OSDS / "ceph-0")
  report(space.f_bfree - space.f_bavail < space.f_blocks / 50, "nothing of its file system is kept for root", space)


def make_xfs(device):
  done = create(device, "--fs", "xfs", "--osd-id", 1, "--osd-fsid", FSID, "--crush-device-class", "nvme")
  report(done.returncode == 0 and f"osd.1 is made on {device}, fsid {FSID}" in done.stdout, "an OSD on xfs", done.stdout)
  wait_up(1)
  node = next(node for node in ceph("osd", "tree")["nodes"] if node["id"] == 1)
  report(node.get("device_class") == "nvme", "it has the device class that was given", node)
  entry = next(entry for entry in ceph("osd", "dump")["osds"] if entry["osd"] == 1)
  report(entry["uuid"] == FSID, "it has the fsid that was given", entry)


def check_list(first, second):
  listed = devices_listed()
  of_first, of_second = listed[first], listed[second]
  report(sorted(listed) == sorted((first, second)) and of_second == {
      "osd_id": 1, "osd_fsid": FSID, "device": second, "fs": "xfs", "encrypted": False, "mounted": f"{OSDS}/ceph-1", "up": True,
      "metadata": ""},
      "list --format json shows both", listed)
  report((of_first["osd_id"], of_first["fs"], of_first["up"]) == (0, "ext4", True), "and which is which", listed)
  table = table_of()
  report(table[0] == ["ID", "FSID", "DEVICE", "FS", "ENCRYPTED", "MOUNTED", "UP", "METADATA"] and
         table[2] == ["1", FSID, second, "xfs", "no", str(OSDS / "ceph-1"), "yes", "-"], "list shows the same as a table", table)
  for osd in (0, 1):
    metadata = ceph("osd", "metadata", osd)
    report(metadata["osd_objectstore"] == "swimstore" and os.stat(OSDS / f"ceph-{osd}").st_uid == CEPH_UID,
           f"osd.{osd} is a SwimStore, its directory is ceph's", metadata)
    strangers = must("find", OSDS / f"ceph-{osd}", "!", "-user", "ceph")
    report(not strangers, f"all of osd.{osd} belongs to ceph", strangers)


# -- a larger device --------------------------------------------------------------------------------------------------

def limit(device, size_bytes):
  """A loop device goes no further than that; 0: as far as its file."""
  information = bytearray(LOOP_INFO_BYTES)
  descriptor = os.open(device, os.O_RDWR)
  try:
    fcntl.ioctl(descriptor, LOOP_GET_STATUS64, information)
    struct.pack_into("Q", information, LOOP_SIZE_LIMIT_AT, size_bytes)
    fcntl.ioctl(descriptor, LOOP_SET_STATUS64, information)
  finally:
    os.close(descriptor)


def size_of(osd):
  space = os.statvfs(OSDS / f"ceph-{osd}")
  return space.f_blocks * space.f_frsize


def grow_xfs(device):
  """osd.1, while it serves."""
  before, pid = size_of(1), pid_of(1)
  done = swimstore("grow", 1)
  report(done.returncode == 0 and "fills its device already" in done.stdout and size_of(1) == before,
         "grow of what fills its device does nothing", done.stdout)
  limit(device, 0)
  done = swimstore("grow", 1)
  after = size_of(1)
  report(done.returncode == 0 and "GiB now, before it had" in done.stdout and after > before + LARGER_BYTES * 0.9 and
         pid_of(1) == pid, "grow enlarges xfs while the OSD serves", f"{before} {after} {done.stdout}")
  report(until(lambda: ceph("osd", "df", "osd.1")["nodes"][0]["kb"] << 10 > before, 30), "and Ceph knows it", ceph("osd", "df"))


def grow_ext4(device, fsid):
  """osd.0, which is not mounted."""
  before = must("dumpe2fs", "-h", device)
  limit(device, 0)
  done = swimstore("grow", 0, fsid)
  after = must("dumpe2fs", "-h", device)
  report(done.returncode == 0 and "fills its device: 2.0 GiB" in done.stdout and blocks_of(after) - blocks_of(before) ==
         LARGER_BYTES >> 12, "grow enlarges ext4 that is not mounted", f"{before} {after} {done.stdout}")


def blocks_of(superblock):
  return int(re.search(r"^Block count: +(\d+)$", superblock, re.M)[1])


# -- brings them up ---------------------------------------------------------------------------------------------------

def start_again(first):
  """The host: nothing runs, nothing is mounted, and what is in /run is forgotten."""
  report(len(enabled()) == 2 and all(name.startswith("ceph-volume@swimstore-") for name in enabled()),
         "what the host starts is ceph-volume@ID-FSID, for both", enabled())
  stop(0, 1)
  for osd in (0, 1):
    must("umount", OSDS / f"ceph-{osd}")
  listed = devices_listed()
  report(not any(entry["mounted"] or entry["up"] for entry in listed.values()) and len(listed) == 2,
         "list shows both, neither mounted nor up", listed)
  start_host()
  for osd in (0, 1):
    wait_up(osd)
  check_objects("volumes", "the host was started again")
  pids = [pid_of(osd) for osd in (0, 1)]
  again = swimstore("activate", "--all")
  report(again.returncode == 0 and [pid_of(osd) for osd in (0, 1)] == pids, "activate --all of what is up does nothing",
         again.stdout)
  refused = create(first)
  report(refused.returncode == 1 and f"{first} is mounted on {OSDS}/ceph-0" in refused.stdout, "a running OSD's device is refused",
         refused.stdout)
  refused = swimstore("deactivate", 0)
  report(refused.returncode == 1 and "'systemctl stop ceph-osd@0' first" in refused.stdout, "deactivate leaves a running OSD alone",
         refused.stdout)
  refused = swimstore("zap", first)
  report(refused.returncode == 1 and "'ceph-volume swimstore deactivate 0" in refused.stdout, "so does zap", refused.stdout)
  report([pid_of(osd) for osd in (0, 1)] == pids, "both run all the while")


def move_to_another_host(first, second, spare):
  """Of which is known only ceph.conf, as of every host of the cluster. Its user ceph has another number."""
  stop(0, 1)
  for osd in (0, 1):
    must("chown", "-R", "12345:12345", OSDS / f"ceph-{osd}")
    done = swimstore("deactivate", osd)
    report(done.returncode == 0 and not (OSDS / f"ceph-{osd}").exists(), f"deactivate of osd.{osd} leaves nothing of it",
           done.stdout)
  report(swimstore("deactivate", 1).returncode == 0, "deactivate of what is not active does nothing")
  report(enabled() == [], "nothing is started with the host any more", enabled())
  for folder in ("/etc/systemd/system", "/run/systemd", OSDS):
    must("find", folder, "-mindepth", "1", "-delete")
  keys = [BOOTSTRAP, pathlib.Path("/etc/ceph/ceph.client.admin.keyring")]
  for path in keys:
    shutil.move(path, f"/run/{path.name}")
  check_what_is_not_activated(first, second, spare)
  grow_ext4(first, devices_listed()[first]["osd_fsid"])
  done = swimstore("activate", "--all", timeout=180)
  report(done.returncode == 0, "activate --all brings both up on a host that knows neither, without a key of the host", done.stdout)
  for path in keys:
    shutil.move(f"/run/{path.name}", path)
  for osd in (0, 1):
    wait_up(osd)
    strangers = must("find", OSDS / f"ceph-{osd}", "!", "-user", "ceph")
    report(not strangers, f"all of osd.{osd} belongs to this host's ceph", strangers)
  report(len(enabled()) == 2, "both are started with the host", enabled())
  check_objects("volumes", "on another host")


def check_what_is_not_activated(first, second, spare):
  fsid = devices_listed()[first]["osd_fsid"]
  text = pathlib.Path("/etc/ceph/ceph.conf").read_text()
  pathlib.Path("/etc/ceph/ceph.conf").write_text(text.replace("fsid = ", "fsid = 0000", 1))
  before = [ceph_volume_refusals.digest(device) for device in (first, second)]
  check_refusals({"osd.0 of another cluster": ("activate", 0, fsid), "osd.1 of another cluster": ("activate", 1, FSID),
                  f"'ceph-volume swimstore zap {second}'": ("zap", "--osd-id", 1)})
  report([ceph_volume_refusals.digest(device) for device in (first, second)] == before,
         "disks of another cluster, on ext4 and xfs, are as they were, byte for byte")
  pathlib.Path("/etc/ceph/ceph.conf").write_text(text)
  check_refusals({"osd.5 is on no device of this host": ("activate", 5),
                  f"osd.0 with fsid {FSID} is on no device": ("trigger", f"0-{FSID}")})
  must("e2label", first, "swim-9")
  check_refusals({"the file 'whoami' says '0', not '9'": ("activate", 9, fsid)})
  must("e2label", first, "swim-0")
  must("dd", f"if={first}", f"of={spare}", "bs=1M", "count=1", "conv=fsync")
  check_refusals({"several devices say that they are osd.0": ("activate", 0, fsid)})
  partial = swimstore("activate", "--all", "--no-systemd")
  report(partial.returncode == 1 and "not activated: osd.0;" in partial.stdout and host_mounts() == ["ceph-1"],
         "activate --all activates what it can", partial.stdout)
  must("umount", OSDS / "ceph-1")
  done = swimstore("zap", spare)
  report(done.returncode == 0 and is_empty(spare), "zap of a copy of it wipes the copy", done.stdout)
  (OSDS / "ceph-0").mkdir(exist_ok=True)
  (OSDS / "ceph-0/other").touch()
  check_refusals({"ceph-0 is not empty": ("activate", 0, fsid)})
  (OSDS / "ceph-0/other").unlink()


def host_mounts():
  return sorted(path.name for path in OSDS.iterdir() if os.path.ismount(path))


def check_refusals(refusals):
  for words, command in refusals.items():
    done = swimstore(*command)
    report(done.returncode == 1 and words in done.stdout and host_mounts() == [] and enabled() == [],
           f"{command[0]}: {words}: nothing is mounted or enabled", done.stdout)


# -- zap, and an old number -------------------------------------------------------------------------------------------

def exchange_disk(first, second, spare):
  """osd.1 gets another disk, which fails first; its old one is zapped."""
  stop(1)
  must("ceph", "osd", "destroy", 1, "--yes-i-really-mean-it")
  refused = create(first, "--osd-id", 1)
  report(refused.returncode == 1, "a device in use is refused", refused.stdout)
  refused = create("/dev/null", "--osd-id", 1)
  report(refused.returncode == 1 and "is no block device" in refused.stdout, "what is no device is refused", refused.stdout)
  report(swimstore("deactivate", 1).returncode == 0, "the old one is deactivated")
  done = swimstore("zap", "--osd-id", 1)
  report(done.returncode == 0 and f"holds osd.1 of SwimStore, xfs, fsid {FSID}: it is wiped" in done.stdout and is_empty(second),
         "zap says what it wipes", done.stdout)
  report(swimstore("zap", second).returncode == 0, "zap of an empty device does nothing")
  report(sorted(devices_listed()) == [first], "list does not show it any more")
  refused = create(second, "--osd-id", 0)
  report(refused.returncode == 1 and f"{first} holds osd.0 already" in refused.stdout, "a number that is on a disk here is refused",
         refused.stdout)
  ceph_volume_failures.check_destroyed(second)
  use_faster_device(second, spare)
  done = create(second, "--osd-id", 1, "--fs", "ext4", "--no-systemd")
  report(done.returncode == 0 and enabled() and not any("swimstore-1-" in name for name in enabled()),
         "the number is used again; with --no-systemd nothing is enabled", done.stdout)
  must("systemctl", "start", "ceph-osd@1")
  wait_up(1)


def use_faster_device(device, fast):
  """osd.1, which was destroyed, with log and tree on a file system of that device; then both devices are empty again."""
  folder = pathlib.Path("/fast")
  folder.mkdir()
  must("mkfs.ext4", "-q", "-O", "^fast_commit", fast)
  must("mount", fast, folder)
  refused = create(device, "--osd-id", 1, "--metadata", folder / "none")
  report(refused.returncode == 1 and "is no directory" in refused.stdout and is_empty(device),
         "--metadata that is not there is refused", refused.stdout)
  done = create(device, "--osd-id", 1, "--metadata", folder)
  report(done.returncode == 0, "an OSD with log and tree on a faster device", done.stdout)
  wait_up(1)
  listed = devices_listed()[device]
  path = folder / f"swimstore-{listed['osd_fsid']}"
  report(listed["metadata"] == ceph("osd", "metadata", 1)["swimstore_metadata_path"] == str(path) and (path / "0/manifest").exists() and
         os.stat(path).st_uid == CEPH_UID, "list says where they are, and so does the OSD", listed)
  stop(1)
  must("umount", OSDS / "ceph-1")
  must("umount", folder)
  report(devices_listed()[device]["metadata"] == str(path), "of one that is not mounted as well")
  refused = swimstore("activate", 1)
  report(refused.returncode == 1 and f"are in {path}, which is not there: mount its file system" in refused.stdout and
         host_mounts() == ["ceph-0"], "without that device it is not started, and not mounted", refused.stdout)
  must("mount", fast, folder)
  report(swimstore("activate", 1).returncode == 0, "with it, it is")
  wait_up(1)
  stop(1)
  must("ceph", "osd", "destroy", 1, "--yes-i-really-mean-it")
  must("ceph-volume", "swimstore", "deactivate", 1)
  done = swimstore("zap", "--destroy", device)
  report(done.returncode == 0 and is_empty(device) and [one.name for one in folder.iterdir()] == ["lost+found"],
         "zap --destroy removes them, too", done.stdout)
  must("umount", folder)
  must("wipefs", "--all", fast)


def main(argv):
  package, how, first, second, third, foreign, within = argv
  with host.claims():
    host.empty_host(argv[2:])
    host.boot_cluster()
    host.install(package)
    prepare_host()
    check_plugin()
    size_bytes = int(must("blockdev", "--getsize64", first))
    for device in (first, second):
      limit(device, size_bytes - LARGER_BYTES)
    make_by_the_page(first)
    make_xfs(second)
    check_list(first, second)
    grow_xfs(second)
    must("ceph", "osd", "pool", "create", "volumes", "8", "8")
    put_objects("volumes")
    start_again(first)
    move_to_another_host(first, second, third)
    exchange_disk(first, second, third)
    ceph_volume_refusals.check(foreign, how == "quick")
    ceph_volume_failures.check(third, how == "quick")
    ceph_volume_failures.check_encrypted(third, within)


if __name__ == "__main__":
  main(sys.argv[1:])
