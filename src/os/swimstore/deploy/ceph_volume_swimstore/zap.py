# SPDX-License-Identifier: LGPL-2.1-or-later
"""`zap`: a device that holds what nobody needs any more becomes an empty one."""

import contextlib
import os
import shlex

from ceph_volume import decorators, terminal
from ceph_volume.devices.lvm.zap import wipefs

from . import crypt, filesystem, host, metadata, names, osds, parsing, paths, units
from .arguments import Command, add_no_systemd, parser_of
from .errors import Failed, Refused

END_BYTES = crypt.HEADER_BYTES


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


def _check(device, partitions, found):
  """Nobody uses the device, or a partition of it, by this path or another one, nor will at the host's next start."""
  # Those first: the kernel holds a disk for whoever uses a partition of it.
  parts = (*partitions, device)
  for part in parts:
    busy = part.busy()
    if busy:
      raise Refused(f"{part.path} {busy}{paths.osd_on(part, found)}")
  for part in parts:
    paths.check(part, found)
  # What was only prepared, or was deactivated, goes, as a copy does.
  for part in parts:
    held = parsing.swimstore_of(part.signatures())
    if held and units.is_started_with_host(*held[:2]) and not paths.others_of(part, found):
      where = "" if part is device else f"has {part.path}, which "
      raise Refused(f"{device.path} {where}holds osd.{held[0]}, fsid {held[1]}, which is started with this host: "
                    f"{paths.deactivation(*held[:2])} first")


@contextlib.contextmanager
def _locked(parts):
  """Nobody activates an OSD that is on them meanwhile, as `trigger` does at the start of the host."""
  held = filter(None, (parsing.swimstore_of(part.signatures()) for part in parts))
  with contextlib.ExitStack() as locks:
    for osd_fsid in sorted({osd_fsid for _, osd_fsid, _ in held}):
      locks.enter_context(host.lock(osd_fsid))
    yield


def zap(path, destroy, no_systemd):
  device = host.BlockDevice(path)
  partitions = [host.BlockDevice(partition) for partition in device.partitions()]
  with _locked((*partitions, device)):
    found = osds.find_all()
    _check(device, partitions, found)
    directories = [held for part in (*partitions, device) for held in _metadata_of(part, found)]
    _zap(device, partitions, paths.others_of(device, found), destroy, no_systemd)
    for directory, osd_fsid in directories:
      _end_metadata(directory, osd_fsid, destroy)


def _zap(device, partitions, others, destroy, no_systemd):
  path = device.path
  signatures = device.signatures()
  held = parsing.describe(signatures)
  if partitions:
    held += f" with the partitions {', '.join(map(_with_osd, partitions))}"
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
    _wipe(partition, destroy)
  _wipe(device, destroy)
  terminal.success(f"{path} is empty")
  if others:
    terminal.info(f"osd.{osd[0]} with the fsid {osd[1]} is on {', '.join(other.path for other in others)}, too: that stays")
  elif osd:
    terminal.info(f"where 'ceph osd dump' still has osd.{osd[0]} with the fsid {osd[1]}, 'ceph osd purge {osd[0]} "
                  f"--yes-i-really-mean-it' removes it, 'ceph osd destroy {osd[0]} --yes-i-really-mean-it' keeps its number for "
                  "another disk")


def _metadata_of(device, found):
  """(directory of log and tree on another device, fsid) of the OSD that is on it, and on no other one."""
  osd = parsing.swimstore_of(device.signatures())
  if osd and not paths.others_of(device, found):
    osd_id, osd_fsid, kind = osd
    directory = metadata.told_by(osds.Osd(osd_id, osd_fsid, device.path, kind, kind == names.LUKS, "", 0))
    if directory is None:
      terminal.info(f"if {device.path} had its log and tree on a faster device, remove its directory there yourself: "
                    f"{names.mapping_of(osd_fsid)}, if 'create' made it")
    elif directory:
      terminal.info(f"log and tree of osd.{osd_id} are in {directory}")  # whatever ends this command before they are removed
      yield directory, osd_fsid


def _end_metadata(directory, osd_fsid, destroy):
  """With `destroy` what `create` made goes. Else, or where somebody chose it, it is named, not removed."""
  if os.path.basename(directory) != names.mapping_of(osd_fsid):
    terminal.info(f"its log and tree were in {directory}: remove that yourself")
    return
  try:
    if destroy and metadata.remove(directory, osd_fsid):
      terminal.info(f"its log and tree, {directory}, are removed")
      return
    if not destroy and metadata.is_there(directory, osd_fsid):
      terminal.info(f"its log and tree, {directory}, stay: if nobody needs them any more, "
                    f"'rm -r {shlex.quote(directory)}'")
      return
    why = "it is not there: its file system may not be mounted"
  except (RuntimeError, OSError) as error:
    why = str(error)
  terminal.warning(f"its log and tree, {directory}, are not removed: {why}; remove them yourself")


def _with_osd(partition):
  """Its path, and the OSD that it holds."""
  signatures = partition.signatures()
  return partition.path + (f" ({parsing.describe(signatures)})" if parsing.swimstore_of(signatures) else "")


def _wipe(device, destroy):
  if destroy and any(one.kind == names.LUKS for one in device.signatures()):
    try:
      crypt.erase(device.path)
    except Failed as error:
      terminal.warning(f"{error}; where the keys are is overwritten all the same")  # a damaged header
  wipefs(device.path)
  if destroy:
    overwrite_ends(device.path, device.size_bytes)


def _by_number(osd_id, osd_fsid):
  """Its device. Who names no more than a number means that of this host's cluster."""
  osd = osds.find(osd_id, osd_fsid)
  if osd_fsid:
    return osd.device
  try:
    filesystem.cluster_fsid()
  except RuntimeError:
    return osd.device  # no ceph.conf, or none that tells
  try:
    filesystem.check_cluster(osd, filesystem.cluster_of(osd))
  except Refused as error:
    raise Refused(f"{error}; if nobody needs it any more: 'ceph-volume swimstore zap {osd.device}'") from error
  return osd.device


class Zap(Command):
  help = "Wipe a device, so that it is an empty one"

  @decorators.needs_root
  def main(self):
    parser = parser_of("zap", f"""\
        {self.help}. What is mounted or in use otherwise is refused, and so is an OSD of SwimStore
        that is started with this host, and another path to one or to what is mounted.

        An OSD of SwimStore loses its label and the superblock of its file system; log and tree on a faster device stay.
        With --destroy they go where 'create' made their directory, anything else is wiped, too, partitions included,
        and nothing can be brought back by its superblock: 16 MiB at both ends are overwritten, and the keys of an
        encrypted device.""")
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
      for device in [_by_number(args.osd_id, args.osd_fsid)] if by_osd else args.devices:
        zap(device, args.destroy, args.no_systemd)
