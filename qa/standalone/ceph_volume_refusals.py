# SPDX-License-Identifier: LGPL-2.1-or-later
"""Devices that somebody needs: `ceph-volume swimstore create` and `zap` name what they hold, and leave them as they are."""

import contextlib
import hashlib
import os
import pathlib
import struct

from ceph_volume_host import create, is_empty, swimstore
from own_host_inside import must, report, run

PIECE_BYTES = 4 << 20


def digest(device):
  """Of every byte."""
  found = hashlib.sha256()
  with open(device, "rb", buffering=0) as disk:
    while piece := disk.read(PIECE_BYTES):
      found.update(piece)
  return found.hexdigest()


def write(device, offset, data):
  with open(device, "r+b", buffering=0) as disk:
    disk.seek(offset)
    disk.write(data)
    os.fsync(disk.fileno())


def write_mbr(device):
  """With one partition, of 100 MiB behind the first."""
  entry = struct.pack("<B3xB3xII", 0, 0x83, 2048, 204800)
  write(device, 0, bytes(446) + entry + bytes(48) + b"\x55\xaa")


def write_pv(device):
  """pvcreate asks the device mapper, which not every kernel has: a label as it writes it, in the second sector."""
  body = struct.pack("<I8s32s", 32, b"LVM2 001", b"abcdefghijklmnopqrstuvwxyz012345")
  body += bytes(512 - 20 - len(body))
  write(device, 512, b"LABELONE" + struct.pack("<QI", 1, lvm_crc(body)) + body)


def lvm_crc(data):
  """CRC-32 with LVM's begin."""
  crc = 0xf597a6cf
  for byte in data:
    crc ^= byte
    for _ in range(8):
      crc = crc >> 1 ^ (0xedb88320 if crc & 1 else 0)
  return crc


def write_bluestore(device):
  write(device, 0, b"bluestore block device\n3f2504e0-4f89-41d3-9a0c-0305e82c3301\n")


def write_luks(device):
  """Without keys: the header alone is what tells."""
  write(device, 0, b"LUKS\xba\xbe" + struct.pack(">H", 1) + b"aes".ljust(32, b"\0") + b"xts-plain64".ljust(32, b"\0") +
        b"sha256".ljust(32, b"\0") + struct.pack(">II", 4096, 64) + bytes(52) + struct.pack(">I", 1000) +
        b"3f2504e0-4f89-41d3-9a0c-0305e82c3302".ljust(40, b"\0"))


# {what: (who writes it, the words that name it)}
HELD = {
    "an ext4 with a label": (lambda device: must("mkfs.ext4", "-q", "-F", "-L", "home", device), "an ext4 file system 'home'"),
    "an xfs": (lambda device: must("mkfs.xfs", "-q", "-f", device), "an xfs file system"),
    "an MBR": (write_mbr, "a partition table (MBR)"),
    "a GPT": (lambda device: must("sgdisk", "--clear", device), "a partition table (GPT)"),
    "a physical volume": (write_pv, "a physical volume of LVM"),
    "swap": (lambda device: must("mkswap", device), "swap space"),
    "LUKS": (write_luks, "an encrypted volume (LUKS)"),
    "BlueStore": (write_bluestore, "a BlueStore OSD"),
}


QUICK = ("an ext4 with a label", "a GPT", "a physical volume")


def check_left(device, what, words, *commands):
  """Each is refused in one line that has these words, and changes no byte."""
  before = digest(device)
  for command in commands:
    done = command()
    last = done.stdout.strip().splitlines()[-1:]
    report(done.returncode == 1 and last and last[0].startswith("-->") and words in last[0],
           f"{what} is refused in one line: {words}", done.stdout)
  report(digest(device) == before, f"{what} is as it was, byte for byte")


def check_held(device, what, write_it, words):
  write_it(device)
  check_left(device, what, words, lambda: create(device), lambda: swimstore("zap", device))
  refused = create(device)
  report(f"ceph-volume swimstore zap {device} --destroy" in refused.stdout, f"{what}: the remedy is named", refused.stdout)
  done = swimstore("zap", "--destroy", device)
  report(done.returncode == 0 and words in done.stdout and is_empty(device), f"zap --destroy says that it is {words}, and wipes it",
         done.stdout)


@contextlib.contextmanager
def mounted(device):
  must("mkfs.ext4", "-q", "-F", device)
  pathlib.Path("/run/mnt").mkdir(exist_ok=True)
  must("mount", "-o", "ro,noload", device, "/run/mnt")
  yield
  must("umount", "/run/mnt")


@contextlib.contextmanager
def opened(device):
  descriptor = os.open(device, os.O_RDONLY | os.O_EXCL)
  yield
  os.close(descriptor)


@contextlib.contextmanager
def read_only(device):
  must("blockdev", "--setro", device)
  yield
  must("blockdev", "--setrw", device)


@contextlib.contextmanager
def partitioned(device):
  """As the kernel knows it; its partition is there as a device, too."""
  write_mbr(device)
  must("partx", "--add", device)
  name = f"{pathlib.Path(device).name}p1"
  major, minor = pathlib.Path("/sys/class/block", name, "dev").read_text().strip().split(":")
  os.mknod(f"/dev/{name}", 0o600 | 0o060000, os.makedev(int(major), int(minor)))
  try:
    yield
  finally:
    run("partx", "--delete", device)
    os.unlink(f"/dev/{name}")


@contextlib.contextmanager
def second_path(device):
  """To a disk: the kernel has no partitions of it by this one."""
  file = pathlib.Path("/sys/block", pathlib.Path(device).name, "loop/backing_file").read_text().strip()
  other = must("losetup", "--find").split()[0]  # "(lost)" where there is no node
  os.mknod(other, 0o600 | 0o060000, os.makedev(7, int(other.removeprefix("/dev/loop"))))
  must("losetup", other, file)
  try:
    yield other
  finally:
    run("losetup", "--detach", other)
    os.unlink(other)


def check_second_path(device):
  must("mkfs.ext4", "-q", "-F", "-L", "swim-7", "-U", "3f2504e0-4f89-41d3-9a0c-0305e82c3307", f"{device}p1")
  with second_path(device) as other:
    words = f"{other} is the same disk as {device}, where {device}p1 lies, which holds osd.7, fsid 3f2504e0-"
    check_left(device, "another path to a disk of which a partition holds an OSD", words, lambda: swimstore("zap", "--destroy", other))
    must("mount", "-o", "ro,noload", f"{device}p1", "/run/mnt")
    check_left(device, "and while that is mounted", words, lambda: swimstore("zap", "--destroy", other))
    must("umount", "/run/mnt")


def check(device, quick):
  for what, (write_it, words) in HELD.items():
    if not quick or what in QUICK:
      check_held(device, what, write_it, words)
  with mounted(device):
    check_left(device, "a mounted file system", "is mounted on /run/mnt", lambda: create(device),
               lambda: swimstore("zap", "--destroy", device))
  must("wipefs", "--quiet", "--all", device)
  with opened(device):
    check_left(device, "what another program has open for itself", "is in use", lambda: create(device),
               lambda: swimstore("zap", "--destroy", device))
  with read_only(device):
    check_left(device, "a read-only device", "is read-only", lambda: create(device))
  with partitioned(device):
    check_left(device, "a disk with a partition", f"has partitions, {device}p1", lambda: create(device))
    pathlib.Path("/run/file").write_text("")
    must("mkfs.ext4", "-q", "-F", f"{device}p1")
    must("mount", "-o", "ro,noload", f"{device}p1", "/run/mnt")
    check_left(device, "a disk with a partition in use", f"{device}p1 is mounted on /run/mnt",
               lambda: swimstore("zap", "--destroy", device))
    must("umount", "/run/mnt")
    check_second_path(device)
    done = swimstore("zap", "--destroy", device)
    report(done.returncode == 0 and f"with the partitions {device}p1" in done.stdout and is_empty(device),
           "zap --destroy wipes a disk with its partitions", done.stdout)
  for path, words in (("/run/file", "is no block device"), ("/dev/none", "No such file or directory")):
    done = create(path)
    report(done.returncode == 1 and words in done.stdout, f"{path}: {words}", done.stdout)
