# SPDX-License-Identifier: LGPL-2.1-or-later
"""Encrypted OSDs, with the keys where ceph-volume has those of BlueStore.

The passphrase is in the monitors' config-key store, dm-crypt/osd/FSID/luks; client.osd-lockbox.FSID may read it. That client's
own key is what a disk has to bring along: it is in a token of the LUKS2 header, as LVM tags have it for BlueStore. A disk alone
opens nothing: it takes the monitors of its cluster, and they forget the passphrase when the OSD is destroyed or purged.
"""

import contextlib
import json
import os
import pathlib
import tempfile

from ceph_volume import conf
from ceph_volume.util import encryption

from . import host, monitor, names, paths
from .command import call
from .errors import Failed, Refused

TOKEN_TYPE = "swimstore-osd"
TOKEN_ID = 0
HEADER_BYTES = 16 << 20  # of LUKS2, with its keys


def check_host():
  """Before anything is made."""
  call("cryptsetup", "--version", show=False)
  if " device-mapper\n" not in pathlib.Path("/proc/misc").read_text():
    raise Refused("this kernel has no device mapper, which --dmcrypt needs: load it with 'modprobe dm-crypt'")


def make(device, passphrase, osd_id, osd_fsid):
  call("cryptsetup", "--batch-mode", "--type", "luks2", "--key-size", encryption.get_key_size_from_conf(), "--uuid", osd_fsid,
       "--label", names.label_of(osd_id), "--subsystem", names.SUBSYSTEM, "--key-file", "-", "luksFormat", device,
       stdin=passphrase)


def token_text(osd_id, osd_fsid, cluster_fsid, fs, lockbox_secret):
  return json.dumps({"type": TOKEN_TYPE, "keyslots": [], "osd_id": str(osd_id), "osd_fsid": osd_fsid, "ceph_fsid": cluster_fsid,
                     "fs": fs, "lockbox_secret": lockbox_secret})


def write_token(device, text):
  call("cryptsetup", "token", "import", "--token-id", TOKEN_ID, "--json-file", "-", device, stdin=text)


def read_token(device):
  try:
    text = call("cryptsetup", "token", "export", "--token-id", TOKEN_ID, device, show=False, secret=True)
  except Failed as error:
    if error.code is None:
      raise
    raise Failed(f"{error}; where 'ceph osd dump' has the OSD as 'new', it was never up: 'ceph-volume swimstore zap {device}'; "
                 "otherwise bring the token back from a copy of the header") from error
  try:
    token = json.loads(text)
    if token["type"] != TOKEN_TYPE or not all(token[name] for name in ("osd_id", "osd_fsid", "ceph_fsid", "fs")):
      raise ValueError(token["type"])
    return token
  except (ValueError, KeyError, TypeError) as error:
    raise Failed(f"{device}: token {TOKEN_ID} of its LUKS2 header is not SwimStore's; bring it back from a copy of the header") \
        from error


def open_with(passphrase, device, osd_fsid):
  """Returns the device that the file system is on."""
  if conf.dmcrypt_no_workqueue is None:
    encryption.set_dmcrypt_no_workqueue()
  bypass = conf.dmcrypt_no_workqueue and not host.BlockDevice(device).is_rotational
  options = ["--perf-no_read_workqueue", "--perf-no_write_workqueue"] if bypass else []
  name = names.mapping_of(osd_fsid)
  call("cryptsetup", "--key-file", "-", "--allow-discards", *options, "luksOpen", device, name, stdin=passphrase)
  return f"/dev/mapper/{name}"


def open_by_monitor(device, osd_id, osd_fsid):
  """With the passphrase that the monitor has."""
  return open_with(passphrase_by_monitor(device, osd_id, osd_fsid), device, osd_fsid)


def passphrase_by_monitor(device, osd_id, osd_fsid):
  secret = read_token(device)["lockbox_secret"]
  client, key = f"client.osd-lockbox.{osd_fsid}", f"dm-crypt/osd/{osd_fsid}/luks"
  try:
    with _lockbox_keyring(client, secret) as keyring:
      return monitor.passphrase(client, key, keyring)
  except Failed as error:
    if error.code is None:
      raise
    raise Failed(f"{device}: {client} does not get the key {key} from the monitors: {error.said}; where "
                 "'ceph osd dump' has no OSD with this fsid, it was destroyed or purged, and the key with it: where somebody kept "
                 "that, see 'No other OSD has what it held' in the operations page; otherwise "
                 f"{paths.deactivation(osd_id, osd_fsid)} and 'ceph-volume swimstore zap {device}'; where the monitors "
                 f"were not reached, see to the network and to mon_host in {conf.path}, "
                 "and try again") from error


@contextlib.contextmanager
def _lockbox_keyring(client, secret):
  """For as long as the monitor is asked, in memory where /run is."""
  with tempfile.TemporaryDirectory(prefix="swimstore-", dir="/run") as folder:
    path = os.path.join(folder, "lockbox.keyring")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
      out.write(keyring_text(client, secret))
    yield path


def keyring_text(name, secret):
  return f"[{name}]\n\tkey = {secret}\n"


def is_open(osd_fsid):
  return os.path.exists(f"/dev/mapper/{names.mapping_of(osd_fsid)}")


def resize(osd_fsid, passphrase):
  """What is within, as far as the device goes."""
  call("cryptsetup", "resize", "--key-file", "-", names.mapping_of(osd_fsid), stdin=passphrase)


def close(osd_fsid):
  """Returns whether it was open."""
  if not is_open(osd_fsid):
    return False
  call("cryptsetup", "luksClose", names.mapping_of(osd_fsid))
  return True


def erase(device):
  """The key slots: what is on the device cannot be read any more, by nobody."""
  call("cryptsetup", "--batch-mode", "luksErase", device)
