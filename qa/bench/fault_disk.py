# SPDX-License-Identifier: LGPL-2.1-or-later
"""A loop device that fails, or is slow, when it is told to: fault_disk.cc says how.

Between the device and the image stands a file of a FUSE file system of its own:

  IMAGE          as of any LoopDisk
  IMAGE.served   the same bytes, served by the program fault_disk; the loop device's backing file
  IMAGE.sock     where the program is told what to do

It is mounted here, on the host, where the loop device is attached; the program runs in the sysroot, for its library.
"""

import ctypes
import fcntl
import json
import os
import pathlib
import socket
import stat
import struct
import subprocess
import time

import ending
import sysroot
from loop_disk import LoopDisk, is_mounted, share, unmount

PROGRAM = sysroot.built("fault_disk")
ALWAYS = 0  # times, of fail()
WHOLE_DISK = (("disk",),)  # ranges, of fail()
START_S = 20
FS_IOC_FIEMAP = 0xC020660B
FIEMAP_FLAG_SYNC = 1
EXTENT_LAST, EXTENT_NOT_PLAIN = 1, 2 | 4 | 8 | 0x80 | 0x100  # unknown, delayed, encoded, encrypted, inline
EXTENTS_MAX = 1000


class FaultDisk(LoopDisk):
  """As a LoopDisk; told what to do while it is attached."""

  @property
  def backing(self):
    return self.image.with_name(self.image.name + ".served")

  @property
  def _socket(self):
    return self.image.with_name(self.image.name + ".sock")

  def attach(self):
    if not PROGRAM.exists():
      raise sysroot.UserError(f"{PROGRAM}: no such program; build it first (qa/enter.sh ninja -C build fault_disk)")
    if is_mounted(self.backing) and not self._clears():
      self.detach()  # the program was killed
    if not is_mounted(self.backing):
      share(self.image.parent)
      self._serve()
    return super().attach()

  def detach(self):
    super().detach()
    unmount(self.backing)
    self.backing.unlink(missing_ok=True)
    self._socket.unlink(missing_ok=True)  # of one that was killed

  def _serve(self):
    self.backing.touch()
    self._socket.unlink(missing_ok=True)  # of one that was killed
    try:
      program = self._mount_and_start()
      for _ in range(START_S * 20):
        if self._clears():
          return
        if program.poll() is not None:
          break
        time.sleep(0.05)
      raise sysroot.UserError(f"{PROGRAM} does not serve {self.image}, for the reason above")
    except BaseException:
      unmount(self.backing)
      raise

  def _clears(self):
    """Whether the program answers. What it was told before, by a run that was killed, holds no more."""
    try:
      self.clear()
    except sysroot.UserError:
      return False
    return True

  def _mount_and_start(self):
    """The program, which may not listen yet."""
    try:
      device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
      raise sysroot.UserError(f"/dev/fuse: {error.strerror}: run 'modprobe fuse'; a container needs --privileged, or "
                              "--device /dev/fuse") from None
    try:
      options = f"fd={device},rootmode={stat.S_IFREG:o},user_id=0,group_id=0"
      if ctypes.CDLL(None, use_errno=True).mount(b"fault_disk", str(self.backing).encode(), b"fuse", 0,
                                                 options.encode()) != 0:
        raise sysroot.UserError(f"no FUSE file system can be mounted at {self.backing}: "
                                f"{os.strerror(ctypes.get_errno())}")
      # Without ending's mark: it ends when it is unmounted. What uses the disk has to end before.
      environment = {name: value for name, value in os.environ.items() if name != ending.MARK}
      return subprocess.Popen(
          sysroot.command([PROGRAM, "--image", self.image, "--fuse", device, "--socket", self._socket]),
          pass_fds=(device,), env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
    finally:
      os.close(device)  # the program's alone: the kernel ends the mount with it

  # -- orders ------------------------------------------------------------------------------------------------

  def _tell(self, *words):
    try:
      with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(20)
        connection.connect(str(self._socket))
        connection.sendall((" ".join(str(word) for word in words) + "\n").encode())
        with connection.makefile() as answers:
          answer = json.loads(answers.readline())
    except (OSError, ValueError) as error:  # ValueError: it ended instead of an answer
      raise sysroot.UserError(f"{self.image}: fault_disk does not answer: {error}") from error
    if "error" in answer:
      raise sysroot.UserError(f"{self.image}: {answer['error']}")
    return answer

  def fail(self, kind, ranges, nth=1, times=1):
    """`kind`: read, write or sync; `ranges`: (offset, length) on the disk, one or more, or WHOLE_DISK."""
    self._tell("fail", kind, nth, times, *(word for span in ranges for word in span))

  def delay_syncs(self, milliseconds):
    self._tell("sync_delay", milliseconds)

  def limit(self, operations, bytes_per_second=0):
    self._tell("limit", operations, bytes_per_second)

  def clear(self):
    """Nothing fails any more; how many requests failed since the last clear()."""
    return count_failed(self._tell("clear"))

  def status(self):
    return self._tell("status")

  def failed(self):
    """How many requests failed since the last clear()."""
    return count_failed(self.status())


def count_failed(status):
  return sum(rule["failed"] for rule in status["rules"])


def ranges_of(path):
  """Where this file's data lies on the device of its file system: [(offset, length)] in bytes. It is synced first.

  FIEMAP. What was allocated and never written counts as well.
  """
  request = struct.pack("=QQIIII", 0, (1 << 64) - 1, FIEMAP_FLAG_SYNC, 0, EXTENTS_MAX, 0)
  answer = bytearray(request + bytes(56 * EXTENTS_MAX))
  with open(pathlib.Path(path), "rb") as file:
    fcntl.ioctl(file, FS_IOC_FIEMAP, answer)
  count, = struct.unpack_from("=I", answer, 20)
  found = []
  for number in range(count):
    _, physical, length, flags = struct.unpack_from("=QQQ16xI", answer, 32 + 56 * number)
    if flags & EXTENT_NOT_PLAIN:
      raise sysroot.UserError(f"{path}: an extent that lies nowhere of its own (flags {flags:#x})")
    found.append((physical, length))
  if count == EXTENTS_MAX and not flags & EXTENT_LAST:
    raise sysroot.UserError(f"{path}: more than {EXTENTS_MAX} extents")
  return found
