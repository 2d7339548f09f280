#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a user does in a file system of the cluster, done in a local folder beside it. Runs inside the sysroot, where
ceph-fuse is: the mount is seen by this program, and ends with it.

  fs_load.py prepare FOLDER NAME PATH...
                                       unpacks FOLDER/tree.tar and calls `make` in each PATH of it, in the local folder only
  fs_load.py use CONF FOLDER NAME SEED COUNT PATH...
                                       the same in the directory NAME of the file system; takes a snapshot of it; then, in
                                       both, removes some of it and makes COUNT random operations
  fs_load.py verify CONF FOLDER NAME   compares it, and its snapshot, with the local ones
  fs_load.py remove CONF FOLDER NAME

FOLDER/mnt is where it is mounted, FOLDER/NAME and FOLDER/NAME.snapshot hold what should be there. Prints one JSON object:
how many seconds each step took, and what is not as it should be (`wrong`). Exit status 1 if anything is.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

SNAPSHOT = "first"
FILES = 12                 # that the random operations are about
FILE_BYTES_MAX = 10 << 20  # of one: more than two of the cluster's objects
WRITE_BYTES_MAX = 256 << 10
PUNCH = 1 | 2              # FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE
WRONG_MAX = 10
END_SECONDS = 60
LIBC = ctypes.CDLL(None, use_errno=True)


class Clock:
  def __init__(self):
    self.seconds = {}

  @contextlib.contextmanager
  def step(self, name):
    begun = time.monotonic()
    yield
    self.seconds[name] = time.monotonic() - begun


@contextlib.contextmanager
def mounted(conf, where, clock):
  """Nothing stays in a cache: the client ends when it is unmounted."""
  where.mkdir(exist_ok=True)
  client = subprocess.Popen(["ceph-fuse", "-c", conf, "-f", where], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)
  try:
    with clock.step("mount"):
      while not os.path.ismount(where):
        if client.poll() is not None:
          sys.exit(f"ceph-fuse ends with {client.returncode}: {client.stderr.read()[-500:]}")
        time.sleep(0.05)
    yield
    with clock.step("unmount"):
      subprocess.run(["umount", where], check=True)
      client.communicate(timeout=END_SECONDS)
  finally:
    client.kill()
    client.wait()


# -- random operations ------------------------------------------------------------------------------------------------

class Twins:
  """Each operation is made in both folders; what one says has to be what the other says.

  There are no hard links: of CephFS 18.2.7 a name that is listed is sometimes "No such file" when the first name of its
  file was removed, on BlueStore as well.
  """

  def __init__(self, folders, seed):
    self.folders = folders
    self.rng = random.Random(seed)
    self.wrong = []
    self.counts = {}
    for folder in folders:
      folder.mkdir()

  def run(self, count):
    kinds = (self.write, self.write, self.write, self.append, self.read, self.read, self.read_all, self.truncate, self.punch,
             self.rename, self.unlink, self.set_xattr)
    for number in range(count):
      kind = self.rng.choice(kinds)
      name, other = (f"file{self.rng.randrange(FILES)}" for _ in range(2))
      plan = kind(other)
      said = [answer_of(plan, folder / name) for folder in self.folders]
      self.counts[kind.__name__] = self.counts.get(kind.__name__, 0) + 1
      if said[0] != said[1] and len(self.wrong) < WRONG_MAX:
        self.wrong.append(f"operation {number}, {kind.__name__} of {name}: {str(said[0])[:80]}, should be {str(said[1])[:80]}")

  # Each draws what is to be done; what it returns does it to one path.

  def write(self, _):
    data, at, sync = self._data(), self.rng.randrange(FILE_BYTES_MAX), self.rng.random() < 0.2
    return lambda path: write_at(path, data, at, sync)

  def append(self, _):
    data = self._data()
    return lambda path: write_at(path, data, None, False)

  def read(self, _):
    at, length = self.rng.randrange(FILE_BYTES_MAX), self.rng.randrange(1, WRITE_BYTES_MAX)
    return lambda path: read_at(path, at, length)

  def read_all(self, _):
    return lambda path: path.read_bytes()

  def truncate(self, _):
    size = self.rng.randrange(FILE_BYTES_MAX)
    return lambda path: os.truncate(path, size)

  def punch(self, _):
    at, length = self.rng.randrange(FILE_BYTES_MAX), self.rng.randrange(1, 8 * WRITE_BYTES_MAX)
    return lambda path: punch_hole(path, at, length)

  def rename(self, other):
    return lambda path: os.rename(path, path.with_name(other))

  def unlink(self, _):
    return os.unlink

  def set_xattr(self, _):
    value = self.rng.randbytes(self.rng.randrange(1, 200))
    return lambda path: (os.setxattr(path, "user.swim", value), os.getxattr(path, "user.swim"))

  def _data(self):
    return self.rng.randbytes(self.rng.randrange(1, WRITE_BYTES_MAX))


def answer_of(plan, path):
  try:
    return plan(path)
  except OSError as error:
    return error.strerror


def write_at(path, data, at, sync):
  descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if at is None else 0))
  try:
    written = os.write(descriptor, data) if at is None else os.pwrite(descriptor, data, at)
    if sync:
      os.fsync(descriptor)
    return written
  finally:
    os.close(descriptor)


def read_at(path, at, length):
  with open(path, "rb") as file:
    file.seek(at)
    return file.read(length)


def punch_hole(path, at, length):
  descriptor = os.open(path, os.O_WRONLY)
  try:
    if LIBC.fallocate(descriptor, PUNCH, ctypes.c_long(at), ctypes.c_long(length)) != 0:
      raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
  finally:
    os.close(descriptor)


# -- the tree ---------------------------------------------------------------------------------------------------------

def unpack(archive, folder):
  folder.mkdir()
  subprocess.run(["tar", "-xf", archive, "-C", folder, "--no-same-owner"], check=True)


def sync(folder):
  """What is below it: FUSE takes no syncfs()."""
  for path in folder.rglob("*"):
    if path.is_file():
      descriptor = os.open(path, os.O_RDONLY)
      os.fsync(descriptor)
      os.close(descriptor)


def build(folder, paths):
  """Without optimisation: it is the files that are of interest."""
  for path in paths:
    done = subprocess.run(["make", "-C", folder / path, "-j2", "CFLAGS=-O0"], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
      sys.exit(f"make in {folder / path}: exit {done.returncode}: {done.stdout[-1000:]}")


def content_of(path):
  """Of anything that has a name."""
  if path.is_symlink():
    return os.readlink(path)
  if path.is_dir():
    return sorted(os.listdir(path))
  return path.stat().st_mode, path.stat().st_nlink, path.read_bytes(), xattrs_of(path)


def xattrs_of(path):
  return {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith("user.")}


def compare(found, wanted):
  """What is not the same, and how many names were compared."""
  names = sorted({str(path.relative_to(folder)) for folder in (found, wanted) for path in folder.rglob("*")})
  wrong = [f"{found.name}/{name}" for name in names if answer_of(content_of, found / name) != answer_of(content_of, wanted / name)]
  return wrong, len(names)


def prepare(folder, name, *paths):
  unpack(folder / "tree.tar", folder / name)
  build(folder / name, paths)
  subprocess.run(["cp", "-a", folder / name, folder / f"{name}.snapshot"], check=True)


def use(clock, folder, name, seed, count, *paths):
  here, there = folder / name, folder / "mnt" / name
  with clock.step("untar"):
    unpack(folder / "tree.tar", there)
    sync(there)
  with clock.step("build"):
    build(there, paths)
    sync(there)
  (there / ".snap" / SNAPSHOT).mkdir()
  for each in (here, there):
    for path in sorted(path for path in each.rglob("*") if path.is_file())[::2]:
      path.unlink()
  twins = Twins((there / "files", here / "files"), int(seed))
  with clock.step("operations"):
    twins.run(int(count))
  return {"wrong": twins.wrong, "operations": twins.counts}


def verify(_, folder, name):
  here, there = folder / name, folder / "mnt" / name
  wrong, names = compare(there, here)
  more_wrong, more_names = compare(there / ".snap" / SNAPSHOT, folder / f"{name}.snapshot")
  return {"wrong": (wrong + more_wrong)[:WRONG_MAX], "names": names, "in_snapshot": more_names}


def remove(_, folder, name):
  (folder / "mnt" / name / ".snap" / SNAPSHOT).rmdir()
  for path in (folder / "mnt" / name, folder / name, folder / f"{name}.snapshot"):
    shutil.rmtree(path)
  return {"wrong": []}


def main():
  if sys.argv[1] == "prepare":
    prepare(pathlib.Path(sys.argv[2]), *sys.argv[3:])
    return
  mode, conf, folder, *more = sys.argv[1:]
  folder, clock = pathlib.Path(folder), Clock()
  with mounted(conf, folder / "mnt", clock):
    with clock.step(mode):
      found = {"use": use, "verify": verify, "remove": remove}[mode](clock, folder, *more)
  print(json.dumps(found | {"seconds": clock.seconds}))
  sys.exit(1 if found["wrong"] else 0)


if __name__ == "__main__":
  main()
