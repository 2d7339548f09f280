# SPDX-License-Identifier: LGPL-2.1-or-later
"""`grow`: an OSD's device got larger (LVM, a virtual disk, a partition), and its file system fills it. The store notices by itself.

Nothing here makes anything smaller: that is not safe while something fails half-way, and is in the operations page.
"""

import os

from ceph_volume import decorators, terminal

from . import crypt, filesystem, host, osds, parsing, paths, units
from .arguments import Command, add_osd, parse_osd, parser_of
from .command import call
from .errors import Failed, Refused
from .undo import Undo


def grow(osd):
  """Mounted or not, for ext4; xfs only grows where it is mounted. REQUIRES: host.lock(osd.osd_fsid)"""
  if osd.mounted and osd.mounted != osd.folder:
    raise Refused(f"{osd.device} is mounted on {osd.mounted}: unmount that first")
  if osd.mounted:
    _grow_mounted(osd)
  else:
    _grow_unmounted(osd)


def _grow_mounted(osd):
  _check_larger(osd, osd.device, crypt.HEADER_BYTES if osd.encrypted else 0)
  before = _size(osd.folder)
  if osd.encrypted:
    _grow_mapping(osd)
  try:
    call(*(("xfs_growfs", "-d", osd.folder) if osd.fs == "xfs" else ("resize2fs", osd.mapping)))
  except Failed as error:
    if osd.fs == "xfs" or error.code is None:
      raise
    raise Failed(f"{error}; where the kernel does not enlarge this file system while it is mounted: {_unmounted(osd)}") from error
  after = _size(osd.folder)
  if after == before:
    terminal.success(f"the file system of {osd.name} fills its device already: {parsing.size_in_words(before)}")
  else:
    terminal.success(f"the file system of {osd.name} has {parsing.size_in_words(after)} now, before it had "
                     f"{parsing.size_in_words(before)}")
  _tell_weight(osd, after)


def _unmounted(osd):
  """How ext4 grows then."""
  stop, this = f"'systemctl stop {units.osd_unit(osd.osd_id)}'", f"{osd.osd_id} {osd.osd_fsid}"
  if parsing.swimstore_of(host.BlockDevice(osd.device).signatures()):
    return f"{stop}, {paths.deactivation(osd.osd_id, osd.osd_fsid)}, 'ceph-volume swimstore grow {this}', then " \
           f"'ceph-volume swimstore activate {this}'"
  return f"{stop}, 'umount {osd.folder}', 'e2fsck -f {osd.device}', 'resize2fs {osd.device}', then mount it and start it as it was " \
         "made, by hand"


def _grow_unmounted(osd):
  kind = crypt.read_token(osd.device)["fs"] if osd.encrypted else osd.fs
  if kind == "xfs":
    raise Refused(f"{osd.name} is not mounted, and xfs grows only while it is: 'ceph-volume swimstore activate "
                  f"{osd.osd_id} {osd.osd_fsid}' first")
  filesystem.check_cluster(osd, filesystem.cluster_of(osd))
  if osd.encrypted and crypt.is_open(osd.osd_fsid):
    _check_larger(osd, osd.device, crypt.HEADER_BYTES)
    _grow_mapping(osd)
    size = _grow_ext4(osd)
  elif osd.encrypted:
    size = _grow_closed(osd)
  else:
    size = _grow_ext4(osd)
  terminal.success(f"the file system of {osd.name} fills its device: {parsing.size_in_words(size)}")
  _tell_weight(osd, size)


def _grow_closed(osd):
  """Within an encrypted device, which is opened for that."""
  with Undo() as undo:
    undo.add("the encrypted device", lambda: crypt.close(osd.osd_fsid), stays_for_repair=True)
    crypt.open_by_monitor(osd.device, osd.osd_id, osd.osd_fsid)  # as large as the device is now
    size = _grow_ext4(osd)
    crypt.close(osd.osd_fsid)
  return size


def _grow_ext4(osd):
  """Returns how large the device is."""
  _check_larger(osd, osd.mapping)
  with filesystem.telling_what_stays_open(osd):
    filesystem.check_ext4(osd.mapping, "-f")
  call("resize2fs", osd.mapping)
  return host.BlockDevice(osd.mapping).size_bytes


def _check_larger(osd, device, header_bytes=0):
  """Than its file system, which some of these programs would make smaller, or cut off."""
  needed = filesystem.size_bytes(osd.mapping) + header_bytes
  has = host.BlockDevice(device).size_bytes
  if has < needed:
    raise Refused(f"{device} has {has} bytes, and {osd.name} needs {needed}: it got smaller. Enlarge it to what it was, and write "
                  "nothing to it until then")


def _grow_mapping(osd):
  crypt.resize(osd.osd_fsid, crypt.passphrase_by_monitor(osd.device, osd.osd_id, osd.osd_fsid))


def _size(folder):
  space = os.statvfs(folder)
  return space.f_blocks * space.f_frsize


def _tell_weight(osd, size_bytes):
  terminal.info(f"its CRUSH weight is as before: 'ceph osd crush reweight {osd.name} {size_bytes / (1 << 40):.5f}' gives it data "
                "for this size")


class Grow(Command):
  help = "Let the file system of an OSD fill its device, which got larger"

  @decorators.needs_root
  def main(self):
    parser = parser_of("grow", f"""\
        {self.help}.
        While the OSD serves, for it to go on. Of an encrypted one what is within the device grows first, with the key that the
        monitors have. Where the kernel does not enlarge ext4 below a mount, it is done with the OSD deactivated.""")
    add_osd(parser)
    args = parse_osd(parser, self.argv)
    with osds.locked(args.osd_id, args.osd_fsid) as osd:
      grow(osd)
