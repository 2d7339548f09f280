# SPDX-License-Identifier: LGPL-2.1-or-later
"""`prepare` and `create`: an empty device becomes an OSD, or stays an empty device."""

import os
import shutil

from ceph_volume import conf, decorators, terminal
from ceph_volume.devices.lvm.zap import wipefs
from ceph_volume.util import system

from . import activate, crypt, filesystem, host, metadata, monitor, names, osds, parsing, paths, units
from .arguments import Command, add_no_systemd, parser_of
from .command import call
from .errors import Failed, Refused
from .undo import Undo


def parser_with_device(command, description):
  parser = parser_of(command, description)
  parser.add_argument("--data", required=True, metavar="DEVICE", help="a disk, a partition or a logical volume, by its path, "
                      "which the OSD gets as a whole; it must be empty")
  parser.add_argument("--fs", default="ext4", choices=names.FILE_SYSTEMS, help="the file system (default: %(default)s)")
  parser.add_argument("--metadata", metavar="FOLDER", help="a directory on the file system of a faster device: log and tree "
                      "get a directory of their own in it")
  parser.add_argument("--dmcrypt", action="store_true", help="encrypt it; the monitors keep the key")
  parser.add_argument("--osd-id", type=int, metavar="N", help="a number that is free, or that of an OSD that was destroyed")
  parser.add_argument("--osd-fsid", type=names.valid_fsid, metavar="UUID", help="default: a new one")
  parser.add_argument("--crush-device-class", metavar="CLASS", help="default: what the disk tells, hdd or ssd")
  return parser


def check_device(path, found):
  """Refuses one that holds anything, or that somebody uses; returns it."""
  device = host.BlockDevice(path)
  remedy = f"if nobody needs it any more: ceph-volume swimstore zap {path}"
  partitions = device.partitions()
  if partitions:
    raise Refused(f"{path} has partitions, {', '.join(partitions)}: name one that is empty, or, {remedy} --destroy")
  signatures = device.signatures()
  held = parsing.describe(signatures)
  destroy = "" if parsing.swimstore_of(signatures) else " --destroy"
  busy = device.busy()
  if busy:
    raise Refused(f"{path} {busy}" + (f"; it holds {held}; then, {remedy}{destroy}" if held else ""))
  if held:
    raise Refused(f"{path} holds {held}; {remedy}{destroy}")
  paths.check(device, found)  # what is decrypted of another one's data shows no signature
  if device.is_read_only:
    raise Refused(f"{path} is read-only: see 'blockdev --setrw', or take another one")
  return device


def check_host(args, found):
  """What would make one of the later steps fail. Returns whether the number was destroyed before."""
  if conf.cluster != "ceph":
    raise Refused(f"the cluster is called '{conf.cluster}': OSDs of clusters with another name than 'ceph' are not started with the "
                  "host, so none is made")
  units.program()
  if not getattr(args, "no_systemd", True):
    units.check_drop_in(args.osd_id)
  monitor.check_keyring()
  filesystem.cluster_fsid()
  system.get_ceph_user_ids()
  for program in (f"mkfs.{args.fs}", "wipefs"):
    if not shutil.which(program):
      raise Refused(f"{program} is not there: install it (xfsprogs, e2fsprogs, util-linux)")
  if args.dmcrypt:
    crypt.check_host()
  if args.metadata:
    args.metadata = metadata.check(args.metadata, args.dmcrypt)
  check_others(args.osd_id, args.osd_fsid, found)
  folder = names.folder_of(conf.cluster, args.osd_id) if args.osd_id is not None else ""
  if folder and host.mounted_on(folder):
    raise Refused(f"{folder} is still mounted: 'umount {folder}' first")
  return monitor.check_wishes(args.osd_id, args.osd_fsid)


def check_others(osd_id, osd_fsid, found):
  """That no other device here is this OSD, or will be. One that is kept, as the last copy of something, is in nobody's way once it
  is deactivated: it has another fsid."""
  for osd in found:
    if osd_fsid == osd.osd_fsid:
      raise Refused(f"{osd.device} holds {osd.name} already, fsid {osd.osd_fsid}: leave --osd-fsid out, or take that device away")
    if osd_id == osd.osd_id and (osd.mounted or units.is_started_with_host(osd.osd_id, osd.osd_fsid)):
      elsewhere = f"'umount {osd.mounted}', and " if osd.mounted not in ("", osd.folder) else ""
      raise Refused(f"{osd.device} holds {osd.name} already, fsid {osd.osd_fsid}: {elsewhere}"
                    f"{paths.deactivation(osd.osd_id, osd.osd_fsid)} first; what it holds stays")


def make(args, undo):
  """The OSD, mounted, with what it takes to take it back in `undo`."""
  found = osds.find_all()
  device = check_device(args.data, found)
  was_destroyed = check_host(args, found)
  osd_fsid = args.osd_fsid or system.generate_uuid()
  secrets = monitor.new_secrets(args.dmcrypt)
  undo.add("the OSD's number", lambda: monitor.give_back(osd_fsid, was_destroyed),
           f"'ceph osd destroy {args.osd_id} --yes-i-really-mean-it', where client.admin is" if was_destroyed else
           f"'ceph osd purge-new ID --yes-i-really-mean-it', of what has the fsid {osd_fsid} in 'ceph osd dump'")
  try:
    osd_id = monitor.new_number(osd_fsid, secrets, args.osd_id)
  except monitor.Taken:
    undo.drop()  # another host's, which came first
    raise
  osd = osds.Osd(osd_id, osd_fsid, args.data, args.fs, args.dmcrypt, "", 0)
  names.label_of(osd_id)
  undo.add("the directory", lambda: filesystem.remove_folder(osd.folder))
  filesystem.make_folder(osd.folder)
  _check_again(device, found)
  undo.add(f"what was written to {args.data}", lambda: _wipe(args.data, osd_id, osd_fsid), f"wipefs --all {args.data}")
  if args.dmcrypt:
    _encrypt(osd, secrets, undo)
    filesystem.make(args.fs, osd.mapping)
  else:
    filesystem.make(args.fs, args.data, osd_id, osd_fsid)
  undo.add("the mount", lambda: filesystem.unmount(osd.folder), f"umount {osd.folder}")
  filesystem.mount(args.fs, osd.mapping, osd.folder)
  directory = _make_metadata(args.metadata, osd_fsid, undo) if args.metadata else ""
  _fill(osd, secrets["cephx_secret"], args.crush_device_class, directory)
  return osd


def _check_again(device, found):
  """The monitors have been asked meanwhile, which may have taken minutes."""
  now = check_device(device.path, found)
  if now.identity != device.identity:
    raise Refused(f"{device.path} is another device than a moment ago: use one of the names in /dev/disk/by-id")


def _wipe(path, osd_id, osd_fsid):
  """What is there, if it is this OSD's; what somebody else has written there meanwhile is left alone."""
  signatures = host.BlockDevice(path).signatures()
  if not signatures:
    return False
  found = parsing.swimstore_of(signatures)
  if not found or found[:2] != (osd_id, osd_fsid):
    raise Failed(f"{path} holds {parsing.describe(signatures)} now, which is not this OSD's")
  wipefs(path)
  return True


def _encrypt(osd, secrets, undo):
  crypt.make(osd.device, secrets["dmcrypt_key"], osd.osd_id, osd.osd_fsid)
  crypt.write_token(osd.device, crypt.token_text(osd.osd_id, osd.osd_fsid, filesystem.cluster_fsid(), osd.fs,
                                                 secrets["cephx_lockbox_secret"]))
  undo.add("the encrypted device", lambda: crypt.close(osd.osd_fsid), f"cryptsetup close {names.mapping_of(osd.osd_fsid)}")
  crypt.open_with(secrets["dmcrypt_key"], osd.device, osd.osd_fsid)


def _make_metadata(parent, osd_fsid, undo):
  path = metadata.directory_of(parent, osd_fsid)
  if os.path.lexists(path):
    raise Refused(f"{path} is there already: remove it, or leave --osd-fsid out")
  undo.add("the directory of log and tree", lambda: metadata.remove(path, osd_fsid), f"rm -r {path}")
  return metadata.make(parent, osd_fsid)


def _fill(osd, secret, device_class, metadata_directory):
  filesystem.give_to_ceph(osd.folder)
  filesystem.write_file(osd.folder, "keyring", crypt.keyring_text(osd.name, secret), 0o600)
  if device_class:
    filesystem.write_file(osd.folder, "crush_device_class", f"{device_class}\n")
  # In /, as systemd runs it: Debian's `osd class dir` is a relative path.
  call(units.program(), "--cluster", conf.cluster, "-i", osd.osd_id, "--mkfs", "--osd-uuid", osd.osd_fsid,
       "--osd-objectstore", "swimstore", "--osd-data", osd.folder, "--setuser", "ceph", "--setgroup", "ceph",
       *(("--swimstore-metadata-path", metadata_directory) if metadata_directory else ()), cwd="/")
  filesystem.check_content(osd)


class Prepare(Command):
  help = "Make an OSD on an empty device, without starting it"

  @decorators.needs_root
  def main(self):
    args = parser_with_device("prepare", self.help + ".").parse_args(self.argv)
    with host.lock("devices"), Undo() as undo:
      osd = make(args, undo)
    terminal.success(f"{osd.name} is made on {osd.device}, fsid {osd.osd_fsid}: "
                     f"'ceph-volume swimstore activate {osd.osd_id} {osd.osd_fsid}' starts it")


class Create(Command):
  help = "Make an OSD on an empty device, and start it, now and at each start of the host"

  @decorators.needs_root
  def main(self):
    parser = parser_with_device("create", self.help + ".\n\nWhere anything fails, all that was done is taken back.")
    add_no_systemd(parser)
    args = parser.parse_args(self.argv)
    with host.lock("devices"), Undo() as undo:
      osd = make(args, undo)
      if not args.no_systemd:
        undo.add("the units", lambda: units.forget(osd.osd_id, osd.osd_fsid))
      with host.lock(osd.osd_fsid):
        activate.activate(osd, args.no_systemd)
    if not args.no_systemd:
      units.disable_others(osd.osd_id, osd.osd_fsid)
    terminal.success(f"{osd.name} is made on {osd.device}, fsid {osd.osd_fsid}")
