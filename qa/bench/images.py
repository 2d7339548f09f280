# SPDX-License-Identifier: LGPL-2.1-or-later
"""Devices' backing files that are written already and in nobody's use, so that the next user need not write one.

They lie in SWIM_CACHE/images. Who needs one renames it to its own path; who no longer does renames it back, or deletes
it, unless SWIM_KEEP_IMAGES says that somebody will want it. A rename is all the locking there is: of two who want the
same file, whatever checkout they run from, one gets it. So no more images exist at a time than there are devices.
"""

import os
import pathlib
import uuid

import sysroot
from units import show_size

SLACK_BYTES = 1 << 30  # logs, the monitor's database, results


def folder():
  return sysroot.cache_dir() / "images"


def is_whole(path, size_bytes):
  """Of this size, and nowhere sparse."""
  try:
    found = os.stat(path)
  except FileNotFoundError:
    return False
  return found.st_size == size_bytes and found.st_blocks * 512 >= size_bytes


def take(path, size_bytes):
  """Move a free image to `path`; whether there was one."""
  for image in sorted(folder().glob(f"{show_size(size_bytes)}.*.img")):
    try:
      image.rename(path)
    except OSError:  # somebody else took it; or `path` is on another file system
      continue
    if is_whole(path, size_bytes):
      return True
    path.unlink()
  return False


def give_back(path):
  """It is nobody's from now on. A missing one is none."""
  path = pathlib.Path(path)
  try:
    size_bytes = path.stat().st_size
    if os.environ.get("SWIM_KEEP_IMAGES") and is_whole(path, size_bytes):
      folder().mkdir(parents=True, exist_ok=True)
      path.rename(folder() / f"{show_size(size_bytes)}.{uuid.uuid4().hex[:8]}.img")
      return
  except FileNotFoundError:
    return
  except OSError:  # on another file system
    pass
  path.unlink(missing_ok=True)


def missing_bytes(wanted):
  """What has to be written for all of `wanted`, a list of (path, size in bytes)."""
  free = [image.name.split(".")[0] for image in folder().glob("*.img")]
  missing = 0
  for path, size_bytes in wanted:
    if is_whole(path, size_bytes):
      continue
    if show_size(size_bytes) in free:
      free.remove(show_size(size_bytes))
    else:
      missing += size_bytes
  return missing


def check_room(wanted):
  """All of `wanted` must fit, before the first is written."""
  missing = missing_bytes(wanted)
  if not missing:
    return
  parent = next(parent for parent in pathlib.Path(wanted[0][0]).parents if parent.exists())
  found = os.statvfs(parent)
  if found.f_bavail * found.f_frsize < missing + SLACK_BYTES:
    raise sysroot.UserError(f"{parent}: {len(wanted)} devices need {(missing + SLACK_BYTES) / SLACK_BYTES:.1f} GiB and "
                            f"{found.f_bavail * found.f_frsize / SLACK_BYTES:.1f} are free: free some, give a smaller size, or set "
                            "SWIM_CACHE to a folder on a larger disk")
