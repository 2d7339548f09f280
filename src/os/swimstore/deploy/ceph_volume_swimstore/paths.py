# SPDX-License-Identifier: LGPL-2.1-or-later
"""Other paths to what an OSD, or a mount, lies on: to the disk, to that of a partition or a volume, or a mapping of it.

`found`: what osds.find_all() says, which asks each disk, so once for a command.
"""

import contextlib
import itertools

from . import host, parsing, units
from .errors import Refused

TWO_PATHS = "set up multipathd for two paths to one disk, or take one of the two away"


def osd_on(device, found):
  """The OSD that is on it, or on what lies on it, in a sentence with the remedy; "" for none, or none in use."""
  for osd, other in _with_devices(found):
    is_it = other.number == device.number
    is_on_it = any(_overlap(place, below) and place[0].number == below[0].number for place, below in _pairs(device, other))
    if (is_it or is_on_it) and other.busy():
      where = "It is" if is_it else f"On {osd.device}, which lies on it, is"
      stop = f"{units.ending(osd.osd_id, osd.process)} and " if osd.process else ""
      return f". {where} {osd.name}: {stop}{deactivation(osd.osd_id, osd.osd_fsid)} first"
  return ""


def deactivation(osd_id, osd_fsid):
  return f"'ceph-volume swimstore deactivate {osd_id} {osd_fsid}'"


def _with_devices(found):
  """(OSD, its device), but for one that is gone, whose mount is left."""
  for osd in found:
    with contextlib.suppress(Refused):
      yield osd, host.BlockDevice(osd.device)


def _pairs(device, used):
  return itertools.product(device.places(), used.places_below())


def _overlap(place, other):
  """Of BlockDevice.places(): whether they could be on one disk. Two partitions of it are not."""
  return not place[1].part or not other[1].part or place[1].part == other[1].part


def others_of(device, found):
  """Devices that say that they are the same OSD. It is a copy of theirs: check() refuses what may be another path to them."""
  held = parsing.swimstore_of(device.signatures())
  return [other for osd, other in _with_devices(found)
          if held and held[:2] == (osd.osd_id, osd.osd_fsid) and other.number != device.number]


def check(device, found):
  """Refused where it is a path to what an OSD, or anything mounted, lies on, alone or with others."""
  own = device.whole().number
  for used, is_osd, what, remedy in _used(found):
    if used.number == device.number:
      continue
    for place, below in _pairs(device, used):
      disk, other = place[0], below[0]
      # By this very path the kernel knows of it: see BlockDevice.busy().
      if not _overlap(place, below) or disk.number == other.number == own:
        continue
      where = f"{other.path}, {'' if used.number == other.number else f'where {used.path} lies, '}which {what}"
      if disk.number == other.number:
        raise Refused(f"{device.path} lies on {where}: {remedy}")
      if disk.is_path_to(other):
        raise Refused(f"{device.path} is {'' if disk.number == device.number else 'on '}the same disk as {where}: {TWO_PATHS}")
      if is_osd and not (disk.disk and other.disk) and place[1].may_be(below[1]):
        raise Refused(f"{device.path} holds the same as {where}, and the kernel does not tell whether it is the same disk: "
                      f"{TWO_PATHS}")


def _used(found):
  """What OSDs and mounts are on: (device, is it an OSD's, what is there, the remedy where it is in the way)."""
  for osd, device in _with_devices(found):
    yield (device, True, f"holds {osd.name}, fsid {osd.osd_fsid}",
           f"if nobody needs it any more, 'ceph-volume swimstore zap {osd.device}' first")
  for number, where in {mount.device: mount.path for mount in host.mounts()}.items():
    with contextlib.suppress(Refused):  # it is gone, or no device
      yield host.BlockDevice(host.path_of(number)), False, f"is mounted on {where}", "unmount it first"
