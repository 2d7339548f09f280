# SPDX-License-Identifier: LGPL-2.1-or-later
"""One loop device over a file written beforehand, and what the kernel counts on it.

The file is written with zeros, never left sparse: otherwise the host's file system would allocate during the
run, and its own journal would be measured. For the same reason nothing here discards.
"""

import contextlib
import dataclasses
import json
import mmap
import os
import pathlib
import subprocess
import time

import ending
import images
import sysroot

SECTOR_BYTES = 512
PIECE_BYTES = 4 << 20
FILE_SYSTEMS = ("ext4", "xfs")


@dataclasses.dataclass(frozen=True)
class DeviceCounters:
  """Totals since the device was attached (Documentation/admin-guide/iostats)."""
  written_bytes: int
  read_bytes: int
  writes: int
  flushes: int

  def __sub__(self, earlier):
    return DeviceCounters(*(now - then for now, then in
                            zip(dataclasses.astuple(self), dataclasses.astuple(earlier))))


def _host(*args):
  done = subprocess.run([str(arg) for arg in args], text=True, stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
  if done.returncode != 0:
    raise sysroot.CommandFailed(args, done.stderr.strip() or f"exit {done.returncode}")
  return done.stdout.strip()


def _open_direct(path, flags):
  """Past the page cache, where the host's file system can: gigabytes of zeros would push everything else out of it,
  and writing them takes three times as long."""
  try:
    return os.open(path, flags | os.O_DIRECT, 0o644)
  except OSError:
    return os.open(path, flags, 0o644)


def read_counters(device):
  """`device` is /dev/loopN."""
  stat = pathlib.Path("/sys/block", pathlib.Path(device).name, "stat")
  field = [int(value) for value in stat.read_text().split()]
  if len(field) < 16:
    raise sysroot.UserError(f"{stat}: this kernel does not count flushes; use Linux 5.5 or later")
  return DeviceCounters(field[6] * SECTOR_BYTES, field[2] * SECTOR_BYTES, field[4], field[15])


class LoopDisk:
  """The device over `image` exists between attach() and detach()."""

  def __init__(self, image, size_bytes):
    self.image = pathlib.Path(image)
    self.size_bytes = size_bytes

  @property
  def backing(self):
    """The file that the kernel is given."""
    return self.image

  def write_image(self, say):
    """Zeros, to the full size, on stable storage. An image of the right size is used again, or taken where one is free."""
    if images.is_whole(self.image, self.size_bytes):
      return
    self.image.parent.mkdir(parents=True, exist_ok=True)
    self.image.unlink(missing_ok=True)
    if images.take(self.image, self.size_bytes):
      return
    images.check_room([(self.image, self.size_bytes)])
    partial = self.image.with_suffix(".partial")
    try:
      self._write_zeros(partial, say)
    except BaseException:
      partial.unlink(missing_ok=True)
      raise
    partial.rename(self.image)

  def _write_zeros(self, partial, say):
    told = time.monotonic()
    with open(partial, "wb", buffering=0, opener=_open_direct) as out, mmap.mmap(-1, PIECE_BYTES) as zeros:
      for done in range(0, self.size_bytes, PIECE_BYTES):
        out.write(zeros)
        if time.monotonic() - told > 5:
          told = time.monotonic()
          say(f"writing {self.image.name}: {done >> 20} of {self.size_bytes >> 20} MiB")
      out.truncate(self.size_bytes)
      os.fsync(out.fileno())

  def device(self):
    """/dev/loopN while attached, else None. The kernel is asked: a recorded name goes stale at a reboot."""
    listing = _host("losetup", "--json", "--list", "--output", "NAME,BACK-FILE")
    for entry in json.loads(listing or '{"loopdevices": []}')["loopdevices"]:
      if entry["back-file"] == str(self.backing):
        return entry["name"]
    return None

  def attach(self):
    device = self.device()
    if device is None:
      device = _host("losetup", "--find", "--show", "--direct-io=on", self.backing)
    # The class of the disk decides OSD shards and deferred writes; all stores get the same.
    pathlib.Path("/sys/block", pathlib.Path(device).name, "queue/rotational").write_text("0")
    return device

  def wipe(self):
    """Forget what an earlier user of the image left: its first MiB holds every label."""
    with open(self.device(), "r+b", buffering=0) as out:
      out.write(bytes(1 << 20))
      os.fsync(out.fileno())

  def make_file_system(self, kind, few_files=True):
    if kind == "ext4":
      # As many inodes as our tools ask for. Without the lazy options the kernel would still write their tables during the run.
      inodes = ("-i", "1048576") if few_files else ()
      sysroot.run(["mkfs.ext4", "-q", "-F", *inodes, "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", self.device()])
    elif kind == "xfs":
      sysroot.run(["mkfs.xfs", "-q", "-f", "-K", self.device()])
    else:
      raise sysroot.UserError(f"--fs {kind}: unknown file system; choose one of {', '.join(FILE_SYSTEMS)}")

  def mount(self, where, kind, options="noatime"):
    where = pathlib.Path(where)
    where.mkdir(parents=True, exist_ok=True)
    if not is_mounted(where):
      _host("mount", "-t", kind, "-o", options, self.device(), where)

  def detach(self):
    """The kernel puts the end off while anybody still uses the device: that is an error here."""
    device = self.device()
    if device is None:
      return
    _host("losetup", "--detach", device)
    for _ in range(240):
      if self.device() is None:
        return
      time.sleep(0.25)
    raise sysroot.UserError(f"{device}: still in use after detaching {self.backing}; end what uses it "
                            f"(a mount in another namespace: grep {device} /proc/*/mounts) and stop again")


@contextlib.contextmanager
def mounted(folder, size_bytes, kind, say, keep=False, make=LoopDisk):
  """A new file system on a loop device of its own, mounted at `folder`/mnt until the end of the block; the LoopDisk.

  `kind` "": no file system, nothing is mounted.

  `make`: of which class.
  """
  folder = pathlib.Path(folder)
  folder.mkdir(parents=True, exist_ok=True)
  disk = make(folder / "disk.img", size_bytes)

  def undo():
    unmount(folder / "mnt")
    disk.detach()
    unmount(folder)

  undo()  # what a run left that was killed
  try:
    disk.write_image(say)
    share(folder)
    disk.attach()
    disk.wipe()
    if kind:
      disk.make_file_system(kind)
      disk.mount(folder / "mnt", kind)
    yield disk
  finally:
    if not keep:
      with ending.whole():
        ending.end_processes()  # what an interruption left of the block still uses it
        undo()
        images.give_back(disk.image)


def is_mounted(where):
  """Bind mounts too, which os.path.ismount cannot tell."""
  escaped = str(pathlib.Path(where).resolve()).replace(" ", r"\040")
  return any(line.split()[4] == escaped for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines())


def share(where):
  """Mounts made and undone below `where` are from now on made and undone for every command inside the sysroot.

  Each of these has a mount namespace of its own. Where the host's root is a private mount, a command that happens
  to run during our umount would otherwise keep the file system, and the device below it, busy.
  """
  if not is_mounted(where):
    _host("mount", "--bind", where, where)
    _host("mount", "--make-shared", where)


def unmount(where):
  """Patient: a daemon that has just ended may hold the mount for a moment."""
  for attempt in range(20):
    if not is_mounted(where):
      return
    try:
      _host("umount", where)
    except sysroot.CommandFailed:
      if attempt == 19:
        raise
      time.sleep(0.25)
