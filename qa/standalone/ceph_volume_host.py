# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the parts of ceph_volume_inside.py share: questions to a host with the plugin."""

import json
import os
import pathlib
import shutil

from own_host_inside import CEPH_UID, HERE, PROGRAMS, ceph, must, pid_of, report, run, until

OSDS = pathlib.Path("/var/lib/ceph/osd")
WANTED = pathlib.Path("/etc/systemd/system/multi-user.target.wants")
PROGRAM = PROGRAMS / "ceph-osd"


def prepare_host():
  """Beside the package, with the plugin in it: what units start has no PATH of ours."""
  must("mount", "--bind", HERE / "unit_by_hand.py", "/usr/bin/systemctl")
  OSDS.mkdir(exist_ok=True)


def swimstore(*args, **keywords):
  return run("ceph-volume", "swimstore", *args, **{"timeout": 120} | keywords)


def create(device, *args, **keywords):
  return swimstore("create", "--data", device, *args, **keywords)


def devices_listed():
  """{device: what list says}"""
  text = must("sh", "-c", "ceph-volume swimstore list --format json 2>/run/list.errors")
  return {entry["device"]: entry for entry in json.loads(text)}


def table_of():
  return [line.split() for line in must("sh", "-c", "ceph-volume swimstore list 2>/run/list.errors").splitlines()]


def is_empty(device):
  return must("wipefs", device) == ""


def enabled():
  return sorted(path.name for path in WANTED.iterdir()) if WANTED.is_dir() else []


def wait_up(osd):
  """And that it is our program, as user ceph."""
  def is_up():
    return any(entry["osd"] == osd and entry["up"] for entry in ceph("osd", "dump")["osds"])
  up = until(is_up, 60)
  log = pathlib.Path(f"/run/ceph-osd@{osd}.service.log")
  if not report(up, f"osd.{osd} is up", log.read_text()[-800:] if log.exists() else "it was not started"):
    raise RuntimeError(f"osd.{osd} is not up")
  status = pathlib.Path(f"/proc/{pid_of(osd)}/status").read_text()
  runs = os.readlink(f"/proc/{pid_of(osd)}/exe")
  report(runs == str(PROGRAM) and f"Uid:\t{CEPH_UID}\t" in status, f"our program runs osd.{osd} as user ceph", runs)


def start_host():
  """What systemd would do: /run is empty, what is enabled is started."""
  shutil.rmtree("/run/systemd", ignore_errors=True)
  for path in pathlib.Path("/run").glob("ceph-osd@*.pid"):
    path.unlink()
  for name in enabled():
    must("systemctl", "start", name, timeout=180)
