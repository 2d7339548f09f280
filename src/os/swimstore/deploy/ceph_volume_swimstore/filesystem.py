# SPDX-License-Identifier: LGPL-2.1-or-later
"""The file system below an OSD, and the OSD's directory, which is where it is mounted."""

import contextlib
import os
import shutil
import time

from ceph_volume import conf
from ceph_volume.util import system

from . import crypt, host, names, osds, parsing, paths
from .command import call
from .errors import Failed, Refused

FSCK_REPAIRED = (0, 1)
FSCK_ASKS = (4, 5)  # errors are left which it repairs only where somebody answers
STORE = ("superblock", "cubes")
UNMOUNT_SECONDS = 15


def make(kind, device, osd_id=None, osd_fsid=None):
  """With number and fsid as label and UUID; without, inside an encrypted device, whose header has them."""
  label = names.label_of(osd_id) if osd_fsid else ""
  if kind == "xfs":
    call("mkfs.xfs", "-q", *(("-L", label, "-m", f"uuid={osd_fsid}") if label else ()), device)
  else:
    # Nothing is kept for root: an OSD that runs as ceph never gets it. A store has few files: an inode for each MiB, where ext4
    # would give 0.4 to 1.6 % of the disk to them. fast_commit loses data; mke2fs.conf may ask for it.
    call("mkfs.ext4", "-q", "-m", "0", "-i", "1048576", "-O", "^fast_commit", *(("-L", label, "-U", osd_fsid) if label else ()), device)


def make_folder(path):
  """The mount point. What is in it already would be hidden."""
  if os.path.isdir(path) and os.listdir(path):
    raise Refused(f"{path} is not empty: whatever is in it would be hidden; unmount it, or move it away")
  system.mkdir_p(path)


def remove_folder(path):
  """Only an empty one goes; returns whether it did."""
  if not os.path.isdir(path) or host.mounted_on(path) or os.listdir(path):
    return False
  os.rmdir(path)
  return True


def mount(kind, device, path):
  call("mount", "-t", kind, "-o", "noatime", device, path)
  if shutil.which("selinuxenabled"):
    system.set_context(path)


def check_and_mount(kind, device, path):
  """As the host does with what /etc/fstab has: ext4 is looked at first, xfs looks after itself."""
  if kind == "ext4":
    check_ext4(device)
  try:
    mount(kind, device, path)
  except Failed as error:
    if kind != "xfs" or error.code is None:
      raise
    raise Failed(f"{error}; where the kernel's log tells of damage, the file system needs 'xfs_repair {device}', by hand",
                 error.code, by_hand=True) from error


def check_ext4(device, *options):
  try:
    call("fsck.ext4", "-p", *options, device, good=FSCK_REPAIRED)
  except Failed as error:
    if error.code not in FSCK_ASKS:
      raise
    raise Failed(f"{error}; the file system needs 'e2fsck -f {device}', by hand", error.code, by_hand=True) from error


@contextlib.contextmanager
def telling_what_stays_open(osd):
  """To errors that name a repair by hand: of an encrypted OSD. REQUIRES: the device was open before the command, or opened with
  Undo.add(…, stays_for_repair=True)."""
  try:
    yield
  except Failed as error:
    if not (error.by_hand and osd.encrypted):
      raise
    raise Failed(f"{error}. {osd.mapping} stays open for that, until {paths.deactivation(osd.osd_id, osd.osd_fsid)}", error.code,
                 by_hand=True) from error


def size_bytes(device):
  """Of the file system on it."""
  text = call("blkid", "-p", "-s", "FSLASTBLOCK", "-s", "FSBLOCKSIZE", "-o", "export", device, show=False, good=(0, 2))
  told = next(iter(parsing.parse_blkid(text)), {})
  if "FSLASTBLOCK" not in told or "FSBLOCKSIZE" not in told:
    raise Refused(f"{device}: blkid does not tell how large its file system is; that of util-linux 2.39 and newer does")
  return int(told["FSLASTBLOCK"]) * int(told["FSBLOCKSIZE"])


def unmount(path):
  """Returns whether anything was mounted. Patient: a program that was ended, or ends just now, may hold it for a moment."""
  if not host.mounted_on(path):
    return False
  deadline = time.monotonic() + UNMOUNT_SECONDS
  while True:
    try:
      call("umount", path)
      return True
    except Failed as error:
      if "busy" not in str(error) or time.monotonic() > deadline:
        raise
      time.sleep(0.5)


def write_file(folder, name, text, mode=0o644):
  """Of the user ceph, and durable."""
  path = os.path.join(folder, name)
  with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as out:
    os.fchmod(out.fileno(), mode)
    os.fchown(out.fileno(), *system.get_ceph_user_ids())
    out.write(text)
    out.flush()
    os.fsync(out.fileno())
  sync_folder(folder)


def sync_folder(folder):
  descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def give_to_ceph(folder):
  """All of it, where it is not ceph's: that of another host may have had another number."""
  if os.stat(folder).st_uid != system.get_ceph_user_ids()[0]:
    call("chown", "-R", "ceph:ceph", folder)


def cluster_fsid():
  """Of ceph.conf."""
  fsid = conf.ceph.get_safe("global", "fsid", check_valid=False)
  if not fsid:
    raise Refused(f"{conf.path} has no fsid in its section [global]: it is not known which cluster an OSD is of")
  return fsid.strip()


def check_cluster(osd, found):
  """`found`: the cluster that its disk tells; "" where it tells none."""
  ours = cluster_fsid()
  if found and found != ours:
    raise Refused(f"{osd.device} holds osd.{osd.osd_id} of another cluster, {found}; {conf.path} is of {ours}")


def cluster_of(osd):
  """What its disk tells, without a write to it, as each mount may be one; "" where it cannot be told so."""
  try:
    if osd.encrypted:
      return crypt.read_token(osd.device)["ceph_fsid"]
    if osd.mounted:
      return osds.read_meta(osd.mounted, "ceph_fsid")
    # What is in the journal alone is not seen. Where the one file is not what it is to be, the other tells nothing either.
    is_it = names.valid_fsid(peek(osd, "fsid")) == osd.osd_fsid
    return names.valid_fsid(peek(osd, "ceph_fsid")) if is_it else ""
  except (Failed, Refused, OSError, ValueError):
    return ""


def peek(osd, name):
  """The line in a file of an OSD that is not mounted, of which one block is read. A read-only mount would not do: ext4 takes up
  orphans, and notes errors."""
  if osd.fs == "xfs":
    steps = (word for step in (f"path /{name}", "dblock 0", "type text", "print") for word in ("-c", step))
    text = call("xfs_db", "-r", *steps, osd.device, show=False)
  else:
    text = call("debugfs", "-c", "-R", f"block_dump -f /{name} 0", osd.device, show=False)
  return parsing.parse_block(text)


def check_content(osd):
  """That what is mounted is the OSD that the device says, of this cluster."""
  wanted = {"type": "swimstore", "whoami": str(osd.osd_id), "fsid": osd.osd_fsid, "ceph_fsid": cluster_fsid()}
  for name, value in wanted.items():
    try:
      found = osds.read_meta(osd.folder, name)
    except OSError as error:
      raise Failed(f"{osd.device}: the file '{name}' of {osd.name} cannot be read: {error.strerror}; look at the kernel's log") \
          from error
    if found == value:
      continue
    if name == "ceph_fsid":
      check_cluster(osd, found)
    if not found:
      raise Refused(f"{osd.device}: {_without(name, osd)}")
    raise Refused(f"{osd.device}: the file '{name}' says '{found}', not '{value}': is it the device it was? Its label and UUID "
                  "can be changed with tune2fs, xfs_admin or cryptsetup config")


def _without(name, osd):
  """What is the matter with an OSD that lacks this file."""
  there = os.listdir(osd.folder)
  store = next((one for one in ("ready", *STORE) if one in there), "")
  if not store:
    return f"{osd.name} was never made to its end: 'ceph-volume swimstore zap {osd.device}', and make another one"
  return (f"{osd.name} is damaged, or was not made to its end: the file '{name}' is not there, but '{store}' is: where "
          "'ceph osd dump' has it as 'new' it was never up; otherwise change nothing on the device, and look at the kernel's log")
