# SPDX-License-Identifier: LGPL-2.1-or-later
"""The SwimStore OSDs that this host has devices of, as the devices tell it."""

import contextlib
import dataclasses
import pathlib

from ceph_volume import conf

from . import crypt, host, names, units
from .errors import Failed, Refused


@dataclasses.dataclass(frozen=True)
class Osd:
  osd_id: int
  osd_fsid: str
  device: str
  fs: str  # ext4 or xfs; "" where an encrypted one is closed and its token cannot be read
  encrypted: bool
  mounted: str  # where; "" for nowhere
  process: int  # of who has the store open; 0 for none

  @property
  def name(self):
    return f"osd.{self.osd_id}"

  @property
  def folder(self):
    return names.folder_of(conf.cluster, self.osd_id)

  @property
  def mapping(self):
    """The device that the file system is on."""
    return f"/dev/mapper/{names.mapping_of(self.osd_fsid)}" if self.encrypted else self.device

  def report(self):
    return {"osd_id": self.osd_id, "osd_fsid": self.osd_fsid, "device": self.device, "fs": self.fs,
            "encrypted": self.encrypted, "mounted": self.mounted, "up": self.process != 0}


class Absent(Refused):
  """It is on no device of the host."""


def find_all():
  """By number. Those made by hand, which have no label, are among them where they are mounted."""
  found = [osd for entry in host.all_devices() for osd in _labelled(entry)]
  devices = {osd.mounted for osd in found if osd.mounted}
  found += [osd for mount in host.mounts() if mount.path not in devices for osd in _made_by_hand(mount)]
  return sorted(found, key=lambda osd: (osd.osd_id, osd.osd_fsid, osd.device))


def _labelled(entry):
  osd_id = names.id_of_label(entry.get("LABEL"))
  kind = entry.get("TYPE")
  if osd_id is None or kind not in (*names.FILE_SYSTEMS, names.LUKS) or "UUID" not in entry:
    return
  try:
    device = host.BlockDevice(entry["DEVNAME"])
  except Refused:
    return  # it went away
  encrypted = kind == names.LUKS
  if device.is_path():
    return  # of a multipath device, say, which is listed itself
  yield _with_state(osd_id, entry["UUID"], device, "" if encrypted else kind, encrypted)


def _with_state(osd_id, osd_fsid, device, fs, encrypted):
  inner = device
  if encrypted:
    inner = host.BlockDevice(f"/dev/mapper/{names.mapping_of(osd_fsid)}") if crypt.is_open(osd_fsid) else None
    try:
      fs = crypt.read_token(device.path)["fs"]
    except (Failed, KeyError):
      fs = ""
  where = inner.mounts() if inner else []
  folder = names.folder_of(conf.cluster, osd_id)
  mounted = next((mount.path for mount in where if mount.path == folder), where[0].path if where else "")
  return Osd(osd_id, osd_fsid, device.path, fs, encrypted, mounted, (mounted and host.process_of(mounted)) or 0)


def _made_by_hand(mount):
  """By the recipe of doc/swimstore-operations.rst."""
  osd_id = names.id_of_folder(conf.cluster, mount.path)
  folder = pathlib.Path(mount.path)
  if osd_id is None or mount.fs not in names.FILE_SYSTEMS:
    return
  try:
    kind, osd_fsid = read_meta(folder, "type"), read_meta(folder, "fsid")
  except OSError:
    return  # its disk answers no more: nobody knows whose it was
  if kind != "swimstore":
    return
  name = (host.SYS / mount.device).resolve().name
  yield Osd(osd_id, osd_fsid, f"/dev/{name}", mount.fs, False, mount.path, host.process_of(mount.path) or 0)


def read_meta(folder, name):
  """A file of a line, as Ceph writes them into an OSD's directory; "" where there is none. OSError where it cannot be read."""
  try:
    return pathlib.Path(folder, name).read_text(errors="replace").strip()
  except FileNotFoundError:
    return ""


def is_dead(mount):
  """What is mounted where an OSD's file system is was one, and answers no more."""
  if not mount or mount.fs not in names.FILE_SYSTEMS:
    return False
  try:
    read_meta(mount.path, "type")
    return False
  except OSError:
    return True


def find(osd_id=None, osd_fsid=None):
  """The one. Refused where there is none, or where several devices say that they are it; by number also where another one that is
  not there is started with the host: a disk that was kept is not taken for it."""
  asked = f"osd.{osd_id}" if osd_id is not None else "the OSD"
  asked += f" with fsid {osd_fsid}" if osd_fsid else ""
  found = [osd for osd in find_all() if osd_id in (None, osd.osd_id) and osd_fsid in (None, "", osd.osd_fsid)]
  if len(found) > 1 and len({osd.osd_fsid for osd in found}) == 1:
    # A snapshot or a copy beside it.
    found = [osd for osd in found if osd.mounted == osd.folder] or found
  if not found:
    raise Absent(f"{asked} is on no device of this host: 'ceph-volume swimstore list' shows those that are")
  if len(found) > 1:
    told = ", ".join(f"{osd.device} (fsid {osd.osd_fsid})" for osd in found)
    remedy = "give the fsid"
    if len({osd.osd_fsid for osd in found}) == 1:
      remedy = "two paths to one disk need multipathd; of a disk and its copy or snapshot take one away: it need not be zapped"
    raise Refused(f"several devices say that they are {asked}: {told}; {remedy}")
  if not osd_fsid and not found[0].mounted:
    others = [fsid for fsid in units.volumes_of(found[0].osd_id) if fsid != found[0].osd_fsid]
    if others:
      raise Refused(f"{asked} with the fsid {', '.join(others)} is started with this host, and is on no device; {found[0].device} holds "
                    f"one with the fsid {found[0].osd_fsid}: give the fsid")
  return found[0]


@contextlib.contextmanager
def locked(osd_id, osd_fsid=None):
  """find(), with the lock of the OSD: as it is while no other command is at work on it."""
  osd_fsid = osd_fsid or find(osd_id).osd_fsid
  with host.lock(osd_fsid):
    yield find(osd_id, osd_fsid)
