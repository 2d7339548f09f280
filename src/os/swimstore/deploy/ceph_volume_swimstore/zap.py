# SPDX-License-Identifier: LGPL-2.1-or-later
"""`zap`: a device that holds what nobody needs any more becomes an empty one."""

import contextlib
import os

from ceph_volume import decorators, terminal
from ceph_volume.devices.lvm.zap import wipefs

from . import crypt, host, names, osds, parsing, units
from .arguments import Command, add_no_systemd, parser_of
from .errors import Failed, Refused

END_BYTES = 16 << 20  # as large as the header of LUKS2, with its keys


def overwrite_ends(path, size_bytes):
  """With zeros: every label and every superblock lies there, but for copies."""
  count = min(END_BYTES, size_bytes)
  descriptor = os.open(path, os.O_WRONLY | os.O_EXCL)
  try:
    for offset in (0, size_bytes - count):
      os.pwrite(descriptor, bytes(count), offset)
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def _check_free(device):
  """Neither the device nor a partition of it is in use."""
  # Those first: the kernel holds a disk for whoever uses a partition of it.
  for part in (*map(host.BlockDevice, device.partitions()), device):
    busy = part.busy()
    if busy:
      raise Refused(f"{part.path} {busy}{_osd_on(part)}")


def _number(path):
  """"" where the device is gone, and its mount is left."""
  try:
    return host.BlockDevice(path).number
  except Refused:
    return ""


def _osd_on(device):
  osd = next((osd for osd in osds.find_all() if _number(osd.device) == device.number), None)
  if not osd:
    return ""
  stop = f"'systemctl stop {units.osd_unit(osd.osd_id)}' and " if osd.process else ""
  return f". It is {osd.name}: {stop}'ceph-volume swimstore deactivate {osd.osd_id} {osd.osd_fsid}' first"


def _others_of(device):
  """Devices that say that they are the same OSD, where this one is a copy. Refused where it may be another path to an OSD's disk."""
  held = parsing.swimstore_of(device.signatures())
  others = []
  for osd in osds.find_all():
    try:
      other = host.BlockDevice(osd.device)
    except Refused:
      continue  # it is gone, and its mount is left
    if other.number == device.number:
      continue
    remedy = "set up multipathd for two paths to one disk, or take one of the two away"
    # Some kinds of disks all have the same serial number.
    is_alike = device.size_bytes == other.size_bytes and device.signatures() == other.signatures()
    if device.disk and device.disk == other.disk and is_alike:
      raise Refused(f"{device.path} is the same disk as {other.path}, which holds {osd.name}, fsid {osd.osd_fsid}: {remedy}")
    if held and held[:2] == (osd.osd_id, osd.osd_fsid):
      others.append(other)
      if not device.disk or not other.disk:
        raise Refused(f"{device.path} holds {osd.name}, fsid {osd.osd_fsid}, and so does {other.path}, and the kernel does not tell "
                      f"whether it is the same disk: {remedy}")
  return others


@contextlib.contextmanager
def _locked(device):
  """Nobody activates an OSD that is on it meanwhile, as `trigger` does at the start of the host."""
  parts = (device, *map(host.BlockDevice, device.partitions()))
  held = filter(None, (parsing.swimstore_of(part.signatures()) for part in parts))
  with contextlib.ExitStack() as locks:
    for osd_fsid in sorted({osd_fsid for _, osd_fsid, _ in held}):
      locks.enter_context(host.lock(osd_fsid))
    yield


def zap(path, destroy, no_systemd):
  device = host.BlockDevice(path)
  with _locked(device):
    _zap(path, device, destroy, no_systemd)


def _zap(path, device, destroy, no_systemd):
  _check_free(device)
  partitions = device.partitions()
  for partition in partitions:
    _others_of(host.BlockDevice(partition))
  others = _others_of(device)
  signatures = device.signatures()
  held = parsing.describe(signatures)
  if partitions:
    held += f" with the partitions {', '.join(partitions)}"
  if not held and not destroy:
    terminal.success(f"{path} holds nothing: it is left as it is")
    return
  osd = parsing.swimstore_of(signatures)
  if held and not osd and not destroy:
    raise Refused(f"{path} holds {held}, no OSD of SwimStore: with --destroy it is wiped all the same")
  terminal.info(f"{path}, {parsing.size_in_words(device.size_bytes)}, holds {held or 'nothing that is known'}: it is wiped")
  if osd and not others and not no_systemd:
    units.disable_volume(osd[0], osd[1])
  for partition in partitions:
    _wipe(host.BlockDevice(partition), destroy)
  _wipe(device, destroy)
  terminal.success(f"{path} is empty")
  if others:
    terminal.info(f"osd.{osd[0]} with the fsid {osd[1]} is on {', '.join(other.path for other in others)}, too: that stays")
  elif osd:
    terminal.info(f"where 'ceph osd dump' still has osd.{osd[0]} with the fsid {osd[1]}, 'ceph osd purge {osd[0]} "
                  f"--yes-i-really-mean-it' removes it, 'ceph osd destroy {osd[0]} --yes-i-really-mean-it' keeps its number for "
                  "another disk")


def _wipe(device, destroy):
  if destroy and any(one.kind == names.LUKS for one in device.signatures()):
    try:
      crypt.erase(device.path)
    except Failed as error:
      terminal.warning(f"{error}; where the keys are is overwritten all the same")  # a damaged header
  wipefs(device.path)
  if destroy:
    overwrite_ends(device.path, device.size_bytes)


class Zap(Command):
  help = "Wipe a device, so that it is an empty one"

  @decorators.needs_root
  def main(self):
    parser = parser_of("zap", f"""\
        {self.help}. What is mounted or in use otherwise is refused.

        An OSD of SwimStore loses its label and the superblock of its file system. With --destroy anything else is wiped, too,
        partitions included, and nothing can be brought back by its superblock: 16 MiB at both ends are overwritten, and
        the keys of an encrypted device.""")
    parser.add_argument("devices", nargs="*", metavar="DEVICE", help="disks, partitions or logical volumes, by their paths")
    parser.add_argument("--osd-id", type=int, metavar="N", help="the device that holds this OSD")
    parser.add_argument("--osd-fsid", type=names.valid_fsid, metavar="UUID", help="needed where several devices have that number")
    parser.add_argument("--destroy", action="store_true", help="also what is no OSD of SwimStore, and for good")
    add_no_systemd(parser)
    args = parser.parse_args(self.argv)
    by_osd = args.osd_id is not None or args.osd_fsid is not None
    if bool(args.devices) == by_osd:
      parser.error("give devices, or --osd-id or --osd-fsid")
    with host.lock("devices"):
      for device in [osds.find(args.osd_id, args.osd_fsid).device] if by_osd else args.devices:
        zap(device, args.destroy, args.no_systemd)
