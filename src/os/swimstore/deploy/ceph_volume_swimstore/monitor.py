# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is asked of the monitors: a number when an OSD is made, and that they forget it where that fails; the
passphrase of an encrypted one."""

import json
import os

from ceph_volume import conf
from ceph_volume.util import encryption

from .command import call
from .errors import Failed, Refused

BOOTSTRAP = "client.bootstrap-osd"
CONNECT_SECONDS = 30
KEY_SECONDS = 300  # at a start of the host, when the monitors may start, too


def keyring():
  return f"/var/lib/ceph/bootstrap-osd/{conf.cluster}.keyring"


class Taken(Failed):
  """The fsid has become another OSD's."""


def check_keyring():
  if not os.path.exists(keyring()):
    raise Refused(f"{keyring()} is not there, with which an OSD is made: 'ceph auth get {BOOTSTRAP} -o {keyring()}'")


def _call(*words, seconds=CONNECT_SECONDS, **keywords):
  return call("ceph", "--cluster", conf.cluster, "--connect-timeout", seconds, *words, **keywords)


def _ask(*words, **keywords):
  return _call("--name", BOOTSTRAP, "--keyring", keyring(), *words, **keywords)


def new_secrets(encrypted):
  """As `ceph osd new` takes them."""
  secrets = {"cephx_secret": _new_key()}
  if encrypted:
    secrets |= {"dmcrypt_key": encryption.create_dmcrypt_key(), "cephx_lockbox_secret": _new_key()}
  return secrets


def _new_key():
  return call("ceph-authtool", "--gen-print-key", show=False, secret=True).strip()


def _entries():
  return json.loads(_ask("osd", "dump", "--format", "json", show=False))["osds"]


def check_wishes(osd_id, osd_fsid):
  """Whether the number was destroyed: then what it had in the CRUSH map is to stay. Refused where one of both is somebody's,
  whom give_back() would take for ours."""
  was_destroyed = False
  for entry in _entries() if osd_id is not None or osd_fsid else ():
    if entry["uuid"] == osd_fsid:
      raise Refused(f"osd.{entry['osd']} has the fsid {osd_fsid}: leave --osd-fsid out")
    if entry["osd"] != osd_id:
      continue
    if "destroyed" not in entry["state"]:
      raise Refused(f"osd.{osd_id} is in the cluster: 'ceph osd destroy {osd_id} --yes-i-really-mean-it' first, or leave --osd-id out")
    was_destroyed = True
  return was_destroyed


def new_number(osd_fsid, secrets, osd_id=None):
  """The OSD's number."""
  wanted = () if osd_id is None else (osd_id,)
  try:
    return int(_ask("-i", "-", "osd", "new", osd_fsid, *wanted, stdin=json.dumps(secrets)).split()[-1])
  except Failed as error:
    raise Taken(str(error)) if "EEXIST" in str(error) else error


def give_back(osd_fsid, was_destroyed):
  """Whatever number has this fsid; returns whether one has. It must not have been up yet.

  One that had been destroyed before becomes so again, for which the monitors ask for client.admin."""
  osd_id = next((entry["osd"] for entry in _entries() if entry["uuid"] == osd_fsid), None)
  if osd_id is None:
    return False
  if not was_destroyed:
    _ask("osd", "purge-new", f"osd.{osd_id}", "--yes-i-really-mean-it")
    return True
  _call("osd", "destroy", f"osd.{osd_id}", "--yes-i-really-mean-it")
  return True


def passphrase(client, key, client_keyring):
  return _call("--name", client, "--keyring", client_keyring, "config-key", "get", key, seconds=KEY_SECONDS,
               secret=True).strip()
