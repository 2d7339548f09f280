# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the host knows of a block device, and who uses it. Nothing here writes to one."""

import contextlib
import errno
import fcntl
import os
import pathlib
import stat

from . import parsing
from .command import call
from .errors import Refused

SYS = pathlib.Path("/sys/dev/block")


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
    """The same for each path to a disk, or to a partition, and for no other one; "" where the kernel does not tell."""
    found = next(filter(None, map(self._read_of_disk, ("device/wwid", "wwid", "serial", "loop/backing_file"))), "")
    volume = self._read("dm/uuid")
    # What lies on another path to the disk has another one: of the device mapper only volumes of LVM count.
    found = found or (volume if volume.startswith("LVM-") else "")
    return found and f"{found} {self._read('partition')}"

  @property
  def size_bytes(self):
    return int(self._read("size") or 0) * 512

  @property
  def is_read_only(self):
    return self._read("ro") == "1"

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
    return sorted((f"/dev/{name}" for name in names), key=lambda name: (len(name), name))

  def signatures(self):
    return parsing.parse_wipefs(call("wipefs", "--no-act", "--json", "--output", "TYPE,LABEL,UUID", self.path, show=False))

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
  """One at a time on this host; who comes later waits."""
  folder = "/run/ceph-volume-swimstore"  # root's: nobody else can hold a lock there
  os.makedirs(folder, 0o700, exist_ok=True)
  with open(f"{folder}/{name}.lock", "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    yield


def _text(path):
  return pathlib.Path(path).read_text()


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
  key = (os.major(status.st_dev), os.minor(status.st_dev), status.st_ino)
  return parsing.parse_locks(_text("/proc/locks")).get(key)


def all_devices():
  """[{DEVNAME, TYPE, LABEL, UUID …}] of every device that holds something, asked of the devices, not of a cache."""
  # 2: there is none.
  return parsing.parse_blkid(call("blkid", "-c", "/dev/null", "-o", "export", show=False, good=(0, 2)))
