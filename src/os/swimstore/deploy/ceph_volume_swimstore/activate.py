# SPDX-License-Identifier: LGPL-2.1-or-later
"""`activate` and `trigger`: an OSD that is on a device is mounted and started. `deactivate`: the opposite."""

import dataclasses

from ceph_volume import conf, decorators, terminal

from . import crypt, filesystem, host, metadata, names, osds, units
from .arguments import Command, add_no_systemd, add_osd, parse_osd, parser_of
from .errors import Failed, Refused
from .undo import Undo


@decorators.needs_root
def activate(osd, no_systemd):
  """Does what is not done yet. What it did itself before something fails is taken back. REQUIRES: host.lock(osd.osd_fsid)"""
  with Undo() as undo:
    _mount(osd, undo)
    filesystem.check_content(osd)
    metadata.check_there(dataclasses.replace(osd, mounted=osd.folder))
    filesystem.give_to_ceph(osd.folder)
  if no_systemd:
    terminal.info(f"{osd.name} is mounted on {osd.folder}; with --no-systemd it is not started")
    return
  units.start(osd.osd_id, osd.osd_fsid)
  terminal.success(f"{osd.name} is mounted on {osd.folder}, and started")


def _mount(osd, undo):
  there = host.mounted_on(osd.folder)
  mapping = osd.mapping if not osd.encrypted or crypt.is_open(osd.osd_fsid) else None
  if there:
    if mapping and there.device == host.BlockDevice(mapping).number:
      return
    raise Refused(f"something else is mounted on {osd.folder}: unmount it first; {osd.name} is on {osd.device}")
  if osd.mounted:
    raise Refused(f"{osd.device} is mounted on {osd.mounted}: unmount it first; it belongs on {osd.folder}")
  filesystem.check_cluster(osd, filesystem.cluster_of(osd))
  kind = crypt.read_token(osd.device)["fs"] if osd.encrypted else osd.fs
  if not mapping:
    undo.add("the encrypted device", lambda: crypt.close(osd.osd_fsid), stays_for_repair=True)
    mapping = crypt.open_by_monitor(osd.device, osd.osd_id, osd.osd_fsid)
  undo.add("the directory", lambda: filesystem.remove_folder(osd.folder))
  filesystem.make_folder(osd.folder)
  undo.add("the mount", lambda: filesystem.unmount(osd.folder))
  with filesystem.telling_what_stays_open(osd):
    filesystem.check_and_mount(kind, mapping, osd.folder)


def activate_all(no_systemd):
  """Each that can be; those that cannot are named."""
  found = _without_kept(osds.find_all())
  failed = []
  if not found:
    terminal.warning("no device of this host holds an OSD of SwimStore")
  for key in sorted({(osd.osd_id, osd.osd_fsid) for osd in found}):
    try:
      _check_only(key, found)
      with osds.locked(*key) as osd:
        activate(osd, no_systemd)
    except (RuntimeError, OSError) as error:
      terminal.error(f"osd.{key[0]}: {error}")
      failed.append(f"osd.{key[0]}")
  if failed:
    raise Failed(f"not activated: {', '.join(failed)}; the lines above say why")


def _check_only(key, found):
  others = sorted({osd.device for osd in found if osd.osd_id == key[0] and osd.osd_fsid != key[1]})
  if others:
    raise Refused(f"{', '.join(others)} has this number, too: activate the one whose fsid 'ceph osd dump' has, by number and fsid; "
                  "take the other away, or, when nobody needs it any more, zap it")


def _without_kept(found):
  """Of several with one number, that which is mounted or is started with the host, if it is the only one: others are kept."""
  counts = [osd for osd in found if osd.mounted == osd.folder or units.is_started_with_host(osd.osd_id, osd.osd_fsid)]
  left = []
  for osd in found:
    one = {other.osd_fsid for other in counts if other.osd_id == osd.osd_id}
    if len(one) == 1 and osd.osd_fsid not in one:
      terminal.info(f"{osd.device} holds {osd.name} with the fsid {osd.osd_fsid}, which was deactivated: it is left")
    else:
      left.append(osd)
  return left


class Activate(Command):
  help = "Mount an OSD that is on a device of this host, and start it"

  def main(self):
    parser = parser_of("activate", f"{self.help}. What is done already is left.")
    add_osd(parser)
    parser.add_argument("--all", action="store_true", help="all OSDs of SwimStore that are on devices of this host")
    add_no_systemd(parser)
    args = parser.parse_args(self.argv)
    if args.all == (args.osd_id is not None):
      parser.error("give an ID, or --all")
    if args.all:
      activate_all(args.no_systemd)
    else:
      with osds.locked(args.osd_id, args.osd_fsid) as osd:
        activate(osd, args.no_systemd)
      if not args.no_systemd:
        units.disable_others(osd.osd_id, osd.osd_fsid)


class Trigger(Command):
  help = "What systemd calls at the start of the host, in ceph-volume@swimstore-ID-FSID.service"

  def main(self):
    parser = parser_of("trigger", f"{self.help}.")
    parser.add_argument("systemd_data", metavar="ID-FSID")
    args = parser.parse_args(self.argv)
    with osds.locked(*names.parse_trigger(args.systemd_data)) as osd:
      activate(osd, no_systemd=False)


def _deactivate(osd, no_systemd):
  if osd.process:
    raise Refused(f"{osd.name} is in use: {units.ending(osd.osd_id, osd.process)} first")
  if osd.mounted and osd.mounted != osd.folder:
    raise Refused(f"{osd.device} is mounted on {osd.mounted}: unmount that first")
  if not no_systemd:
    # Where it is not mounted, another OSD may be that has its number.
    (units.forget if osd.mounted else units.disable_volume)(osd.osd_id, osd.osd_fsid)
  if osd.mounted:
    filesystem.unmount(osd.folder)
    filesystem.remove_folder(osd.folder)
  crypt.close(osd.osd_fsid)


def _deactivate_absent(osd_id, osd_fsid, no_systemd):
  """What a disk that is gone left behind: its mount, and its units. Returns whether there was anything."""
  folder = names.folder_of(conf.cluster, osd_id)
  of_others = any(osd.mounted == folder for osd in osds.find_all())
  is_mounted = not of_others and osds.is_dead(host.mounted_on(folder))
  fsids = [fsid for fsid in units.volumes_of(osd_id) if osd_fsid in (None, fsid)]
  if is_mounted and units.is_active(osd_id):
    raise Refused(f"osd.{osd_id} runs: 'systemctl stop {units.osd_unit(osd_id)}' first")
  if not no_systemd:
    for fsid in fsids:
      units.disable_volume(osd_id, fsid)
    if is_mounted:
      units.forget_mounted(osd_id)
  if is_mounted:
    filesystem.unmount(folder)
    filesystem.remove_folder(folder)
    for fsid in fsids:
      crypt.close(fsid)
  return is_mounted or (bool(fsids) and not no_systemd)


class Deactivate(Command):
  help = "Unmount an OSD that is stopped, close its encrypted device, and start it no more with the host"

  @decorators.needs_root
  def main(self):
    parser = parser_of("deactivate", f"""\
        {self.help}.
        Its disk may move to another host then; 'activate' takes it up again, there or here. Of a disk that is gone already,
        what it left behind is removed: the mount, and the unit that would start it again.""")
    add_osd(parser)
    add_no_systemd(parser)
    args = parse_osd(parser, self.argv)
    osd_fsid = args.osd_fsid
    try:
      osd_fsid = osd_fsid or osds.find(args.osd_id).osd_fsid  # another one may get the number meanwhile
      with osds.locked(args.osd_id, osd_fsid) as osd:
        _deactivate(osd, args.no_systemd)
      terminal.success(f"{osd.name} is not mounted any more")
    except osds.Absent:
      with host.lock("devices"):
        if not _deactivate_absent(args.osd_id, osd_fsid, args.no_systemd):
          raise
      terminal.success(f"osd.{args.osd_id} is on no device of this host; what was left of it is removed")
