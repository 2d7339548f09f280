# SPDX-License-Identifier: LGPL-2.1-or-later
"""Log and tree of an OSD on the file system of a faster device: `--metadata FOLDER` gives it a directory there.

The directory is called swimstore-FSID, below FOLDER. Which one an OSD has is told by its own file `metadata_path`, and whose a
directory is by the file `fsid` in that: `ceph-swimstore-tool move-metadata`, or an operator, may have chosen another one.
"""

import contextlib
import os
import pathlib
import shutil

from ceph_volume.util import system

from . import filesystem, host, names, osds
from .errors import Failed, Refused

FILE = "metadata_path"
FEATURE = b"metadata_elsewhere"  # as the superblock has it
HIDDEN = ("/home", "/root", "/tmp", "/var/tmp", "/run/user")  # by the unit of an OSD: ProtectHome, PrivateTmp


def directory_of(parent, osd_fsid):
  return os.path.join(parent, names.mapping_of(osd_fsid))


def check(parent, encrypted):
  """Whether OSDs may have directories in this one. Returns its path without links, which an OSD keeps."""
  path = os.path.realpath(parent)
  if not os.path.isdir(path):
    raise Refused(f"--metadata {parent} is no directory: make the faster device's file system, mount it by /etc/fstab, and name a "
                  "directory on it")
  hidden = next((folder for folder in HIDDEN if os.path.commonpath((folder, path)) == folder), "")
  if hidden:
    raise Refused(f"--metadata {parent} is below {hidden}, which systemd hides from an OSD: name another directory")
  mount = _mount_of(path)
  if mount_point_of(path) == "/":
    raise Refused(f"--metadata {parent} lies on the root file system: is the faster device's mounted? Where you want them there, make "
                  "the OSD without, and move them with 'ceph-swimstore-tool move-metadata'")
  if not mount or mount.fs not in names.FILE_SYSTEMS:
    raise Refused(f"--metadata {parent} lies on {mount.fs if mount else 'a file system that is not known'}: log and tree need "
                  f"{' or '.join(names.FILE_SYSTEMS)}")
  if encrypted and not host.BlockDevice(host.path_of(mount.device)).is_encrypted:
    raise Refused(f"--metadata {parent} lies on a device that is not encrypted, and --dmcrypt encrypts the OSD's own alone: the names "
                  "of objects and their omap would be there as they are; name a directory on an encrypted one")
  return path


def mount_point_of(path):
  while not os.path.ismount(path):
    path = os.path.dirname(path)
  return path


def _mount_of(path):
  """One of those of the device that it lies on."""
  status = os.stat(path)
  number = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
  return next((mount for mount in reversed(host.mounts()) if mount.device == number), None)


def make(parent, osd_fsid):
  """The directory, which must not be there, of the user ceph. Returns its path."""
  path = directory_of(parent, osd_fsid)
  os.mkdir(path, 0o750)
  os.chown(path, *system.get_ceph_user_ids())
  filesystem.sync_folder(parent)
  return path


def told_by(osd):
  """The path in an OSD's file, of one that is not mounted as `filesystem.peek` reads it; "" where log and tree are in the OSD's
  own directory. None where nothing tells: a damaged file system, or an encrypted device that is not open."""
  try:
    if osd.mounted:
      # The superblock decides: a file may be there that was left by what did not come to its end.
      superblock = pathlib.Path(osd.mounted, "superblock").read_bytes()
      return osds.read_meta(osd.mounted, FILE) if FEATURE in superblock else ""
    if osd.encrypted:
      return None
    found = ""
    with contextlib.suppress(Failed):  # so xfs_db ends where there is no such file
      found = filesystem.peek(osd, FILE)
    # One that is not there, and one that cannot be read, look alike: but not where another one of the OSD's is read.
    if not found:
      return "" if names.valid_fsid(filesystem.peek(osd, "fsid")) == osd.osd_fsid else None
  except (RuntimeError, OSError, ValueError):
    return None
  return found if os.path.isabs(found) and "\0" not in found else None


def check_there(osd):
  """Of one that is mounted: an OSD without them does not start, and systemd would say no more than that."""
  path = told_by(osd)
  if not path:
    return
  told = f"{os.path.join(osd.mounted, FILE)} says that log and tree of {osd.name} are in {path}"
  if not os.path.isdir(path):
    raise Refused(f"{told}, which is not there: mount its file system, or unmount what covers it; where it is mounted elsewhere "
                  "now, correct the line")
  found = osds.read_meta(path, "fsid")
  if found != osd.osd_fsid:
    raise Refused(f"{told}, which has {f'those of the OSD with fsid {found}' if found else 'none'}: mount the right file system "
                  "there, or correct the line")
  filesystem.give_to_ceph(path)


def is_there(path, osd_fsid):
  """Whether what make() made is; refused where it is another OSD's now."""
  if not os.path.isdir(path):
    return False
  found = osds.read_meta(path, "fsid")
  if found and found != osd_fsid:
    raise Refused(f"{path} belongs to the OSD with fsid {found}")
  return True


def remove(path, osd_fsid):
  """What make() made, if it still is that OSD's; returns whether it was there."""
  if not is_there(path, osd_fsid):
    return False
  shutil.rmtree(path)
  filesystem.sync_folder(os.path.dirname(path))
  return True
