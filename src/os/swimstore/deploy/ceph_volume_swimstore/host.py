# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the host knows of a block device, and who uses it. Nothing here writes to one."""

import contextlib
import errno
import fcntl
import os
import pathlib
import re
import stat

from ceph_volume import terminal

from . import parsing
from .command import call
from .errors import Failed, Refused

SYS = pathlib.Path("/sys/dev/block")
LOCKS = "/run/ceph-volume-swimstore"  # root's: nobody else can hold a lock there
WORLDWIDE = ("naa.", "eui.", "uuid.")  # identifiers that a standard gives to one disk
OF_SEVERAL_DISKS = ("linux_raid_member", "zfs_member", "btrfs")  # all of them have one UUID


class BlockDevice:
  """`path` may be a link, as those in /dev/disk/by-id, which messages name as it was given."""

  def __init__(self, path):
    self.path = path
    try:
      status = os.stat(path)
    except OSError as error:
      raise Refused(f"{path}: {error.strerror}; name a disk, a partition or a logical volume, by its path in /dev") from error
    if not stat.S_ISBLK(status.st_mode):
      raise Refused(f"{path} is no block device; name a disk, a partition or a logical volume, by its path in /dev")
    self.number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    self._sys = SYS / self.number
    # The kernel numbers what is attached: another disk under the same name has another one.
    self.identity = (self.number, self._read("diskseq") or self._read("../diskseq"))

  def _read(self, name):
    try:
      return (self._sys / name).read_text().strip()
    except OSError:
      return ""

  def _read_of_disk(self, name):
    """A partition has what its disk has."""
    return self._read(name) or (self._read(f"../{name}") if self._read("partition") else "")

  @property
  def disk(self):
    """The same for each path to a disk, and for no other one; "" where the kernel does not tell."""
    found = next(filter(None, map(self._read_of_disk, ("device/wwid", "wwid", "serial", "loop/backing_file"))), "")
    volume = self._read("dm/uuid")
    # What lies on another path to the disk has another one: of the device mapper only volumes of LVM count.
    return found or (volume if volume.startswith("LVM-") else "")

  @property
  def part(self):
    """The number of the partition that it is, by the kernel or by kpartx; "" for none."""
    return self._read("partition") or "".join(re.findall(r"^part(\d+)-", self._read("dm/uuid")))

  def is_path_to(self, other):
    """Whether both are one disk, as far as the kernel tells. Some kinds of disks all have the same serial number, so they have to
    hold the same, too."""
    if not self.disk or self.disk != other.disk:
      return False
    sure = self.disk.startswith(WORLDWIDE)
    try:
      return self._holds_same(other, sure) and self.table_uuid() == other.table_uuid()
    except Failed:
      return sure  # a path that answers no more

  def may_be(self, other):
    """Whether both hold the same volume or file system: where the kernel does not tell, they may be one."""
    # Not by their partition tables: disks that were made of one image have the same.
    with contextlib.suppress(Failed):  # one that answers no more
      return self._holds_same(other) and any(one.uuid for one in self.signatures())
    return False

  def _holds_same(self, other, sure=False):
    """`sure`: they are not two members of a RAID, and of a disk that was resized one path may still have the old size."""
    found = self.signatures()
    return found == other.signatures() and (sure or (self.size_bytes == other.size_bytes and
                                                     not any(one.kind in OF_SEVERAL_DISKS for one in found)))

  def whole(self):
    """The disk that it is a partition of, or itself."""
    if not self._read("partition"):
      return self
    try:
      return BlockDevice(_dev(self._sys.resolve().parent.name))
    except Refused:
      return self  # a container may have the partition alone

  def places(self):
    """Where its bytes are: [(disk, the partition of it, or all of the disk)]. What is but another name, as that of multipath, is
    what it names."""
    lies_on = [self.whole()] if self._read("partition") else list(self._slaves())
    if self in lies_on or not self._covers(lies_on):
      return [(self, self)]
    return [(disk, self if self.part and it is disk else it) for below in lies_on for disk, it in below.places()]

  def places_below(self):
    """Also what it shares with others, as a volume of LVM does its group's disks."""
    own = self.places()
    return own + [place for disk, _ in own for below in disk._slaves() for place in below.places_below()]

  def _covers(self, lies_on):
    """Whether it is all of what it lies on, by another name, or a partition of it."""
    kind = self._read("dm/uuid")
    if self.part or kind.startswith(("mpath-", "CRYPT-LUKS")):
      return bool(lies_on)
    is_mapped = self._read("dm/name") + self._read("loop/backing_file") != "" and not kind.startswith("LVM-")
    return is_mapped and len(lies_on) == 1 and self.size_bytes == lies_on[0].size_bytes

  def _slaves(self):
    """What it lies on, of the device mapper, of MD, and of a loop device where that is no file."""
    found = [self._read("loop/backing_file")]
    with contextlib.suppress(OSError):
      found += map(_dev, sorted(os.listdir(self._sys / "slaves")))
    for path in filter(None, found):
      with contextlib.suppress(Refused):
        yield BlockDevice(path)

  @property
  def size_bytes(self):
    return int(self._read("size") or 0) * 512

  @property
  def is_read_only(self):
    return self._read("ro") == "1"

  @property
  def is_encrypted(self):
    """By the device mapper, or what it lies on is."""
    return self._read("dm/uuid").startswith("CRYPT-") or any(below.is_encrypted for below in self._slaves())

  @property
  def is_rotational(self):
    """A partition is what its disk is."""
    return (self._read("queue/rotational") or self._read("../queue/rotational")) == "1"

  def holders(self):
    """Kernel names of what lies on it, dm-3 or md0, by the name that it is known under: {"dm-3": "vg-lv"}."""
    return {name: self._read(f"{folder}/dm/name") or name for name, folder in self._holders()}

  def is_path(self):
    """Another device has the same content, as that of multipath has. What dm-crypt makes of it is another one."""
    return any(not self._read(f"{folder}/dm/uuid").startswith("CRYPT-") for _, folder in self._holders())

  def _holders(self):
    """What lies on a whole disk lies on its partitions, too."""
    for folder in ("holders", "../holders") if self._read("partition") else ("holders",):
      with contextlib.suppress(OSError):
        yield from ((name, f"{folder}/{name}") for name in sorted(os.listdir(self._sys / folder)))

  def partitions(self):
    """Their paths, in order."""
    folder = self._sys.resolve()
    names = [path.parent.name for path in folder.glob("*/partition")]
    return sorted(map(_dev, names), key=lambda name: (len(name), name))

  def signatures(self):
    try:
      return parsing.parse_wipefs(call("wipefs", "--no-act", "--json", "--output", "TYPE,LABEL,UUID", self.path, show=False))
    except Failed as error:
      if not isinstance(error.__cause__, UnicodeDecodeError):
        raise
      raise Refused(f"{self.path} holds something whose label is no UTF-8, and nothing of SwimStore's: see who uses it, and wipe it "
                    "by hand if nobody needs it any more") from error

  def table_uuid(self):
    """Of its partition table, which wipefs does not tell; "" for none."""
    # 2: it holds nothing; 8: several things.
    return call("blkid", "-p", "-s", "PTUUID", "-o", "value", self.path, show=False, good=(0, 2, 8)).strip()

  def mounts(self):
    return [mount for mount in mounts() if mount.device == self.number]

  def busy(self):
    """Who uses it, in a sentence with the remedy; empty when nobody does. Partitions are not looked at."""
    where = self.mounts()
    if where:
      return f"is mounted on {where[0].path}: unmount it"
    if any(os.path.exists(swap) and _number(swap) == self.number for swap in parsing.parse_swaps(_text("/proc/swaps"))):
      return "is used as swap space: end that with swapoff"
    held = self.holders()
    if held:
      return f"is in use by {', '.join(held.values())}: deactivate what lies on it (LVM, RAID, dm-crypt)"
    try:
      os.close(os.open(self.path, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
      if error.errno != errno.EBUSY:
        raise Refused(f"{self.path} cannot be read: {error.strerror}; look at the kernel's log") from error
      return "is in use, by a mount in another namespace or another program: end that"
    return ""


@contextlib.contextmanager
def lock(name):
  """One at a time on this host; who comes later says so, and waits."""
  os.makedirs(LOCKS, 0o700, exist_ok=True)
  with open(f"{LOCKS}/{name}.lock", "w") as file:
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      process = _locked_by(os.fstat(file.fileno()))
      told = f", process {process}" if process else ""
      terminal.info(f"another ceph-volume swimstore is at work{told}: this one waits for it")
      fcntl.flock(file, fcntl.LOCK_EX)
    yield


def _text(path):
  """A mount point's name may be any bytes."""
  return pathlib.Path(path).read_text(encoding="utf-8", errors="backslashreplace")


def _dev(name):
  """Of a name in sysfs, where a slash is written so."""
  return f"/dev/{name.replace('!', '/')}"


def path_of(number):
  """That of the device with this number, as of a mount; "" where the kernel has none, as of tmpfs."""
  folder = SYS / number
  return _dev(folder.resolve().name) if folder.exists() else ""


def _number(path):
  device = os.stat(path).st_rdev
  return f"{os.major(device)}:{os.minor(device)}"


def mounts():
  return parsing.parse_mountinfo(_text("/proc/self/mountinfo"))


def mounted_on(path):
  """What one sees there: the last of those mounted; None for none."""
  return next((mount for mount in reversed(mounts()) if mount.path == path), None)


def process_of(folder):
  """That of the OSD, or of a tool, which has the store in this folder open; None: nobody has, or the file system answers no
  more."""
  try:
    status = os.stat(os.path.join(folder, "lock"))
  except OSError:
    return None
  return _locked_by(status)


def program_of(process):
  """Its name; "" where it has ended."""
  try:
    return os.path.basename(pathlib.Path(f"/proc/{process}/cmdline").read_text(errors="replace").partition("\0")[0])
  except OSError:
    return ""


def _locked_by(status):
  """The process that has a lock by flock() on the file; None: nobody has, or the kernel does not tell."""
  key = (os.major(status.st_dev), os.minor(status.st_dev), status.st_ino)
  return parsing.parse_locks(_text("/proc/locks")).get(key)


def all_devices():
  """[{DEVNAME, TYPE, LABEL, UUID …}] of every device that holds something, asked of the devices, not of a cache."""
  # 2: there is none.
  return parsing.parse_blkid(call("blkid", "-c", "/dev/null", "-o", "export", show=False, good=(0, 2)))
