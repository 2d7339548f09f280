# SPDX-License-Identifier: LGPL-2.1-or-later
"""Our program, and the units of systemd that bring an OSD up: ceph-volume@swimstore-ID-FSID at each start of the host, which
calls `trigger`, and ceph-osd@ID, which that starts. A drop-in of the package tells the latter which program to run."""

import os
import pathlib
import re

from ceph_volume import terminal
from ceph_volume.systemd import systemctl

from . import host, names
from .command import call
from .errors import Failed, Refused

PACKAGE = "ceph-osd-swimstore"
PROGRAM = "/usr/lib/ceph-swimstore/ceph-osd"
PROGRAM_VARIABLE = "SWIMSTORE_CEPH_OSD"  # another program, for tests
ENABLED = pathlib.Path("/etc/systemd/system")
FOLDERS = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")


def program():
  path = os.environ.get(PROGRAM_VARIABLE) or PROGRAM
  if not os.access(path, os.X_OK):
    raise Refused(f"{path} is not there, SwimStore's ceph-osd: install {PACKAGE}")
  return path


def has_drop_in(osd_id, folders=FOLDERS):
  """For all OSDs, as the package brings it, or for this one."""
  return any("swimstore" in path.read_text() for folder in folders for unit in ("ceph-osd@", f"ceph-osd@{osd_id}")
             for path in sorted(pathlib.Path(folder, f"{unit}.service.d").glob("*.conf")))


def check_drop_in(osd_id):
  """Without it the packaged program would be started, which does not know the store."""
  if not has_drop_in(osd_id):
    raise Refused(f"no drop-in below ceph-osd@.service.d tells systemd to run SwimStore's program: install {PACKAGE}")


def start(osd_id, osd_fsid):
  """Now, and at each start of the host."""
  check_drop_in(osd_id)
  call("systemctl", "enable", volume_unit(osd_id, osd_fsid))
  call("systemctl", "enable", "--runtime", osd_unit(osd_id))
  # Where it was started too often, systemd would refuse. Of a unit that it has not loaded there is nothing to forget.
  call("systemctl", "reset-failed", osd_unit(osd_id), show=False, good=(0, 1))
  call("systemctl", "start", osd_unit(osd_id))


def disable_volume(osd_id, osd_fsid):
  """What calls `trigger` for this very OSD. Another one may have the same number."""
  call("systemctl", "disable", volume_unit(osd_id, osd_fsid))


def volumes_of(osd_id):
  """The fsids with which this number is started with the host."""
  units = ENABLED.glob(f"*.wants/{volume_unit(osd_id, '*')}.service")
  return sorted({names.parse_trigger(unit.stem.partition("@swimstore-")[2])[1] for unit in units})


def is_started_with_host(osd_id, osd_fsid):
  return any(ENABLED.glob(f"*.wants/{volume_unit(osd_id, osd_fsid)}.service"))


def disable_others(osd_id, osd_fsid):
  """Of disks that had this number before, which may answer again; also those of ceph-volume's other plugins: one of `lvm` would
  write the files of its BlueStore over this one's."""
  one_of_this_number = re.compile(rf"ceph-volume@\w+-{osd_id}-\w{{8}}(-\w{{4}}){{3}}-\w{{12}}")
  units = {path.stem for path in ENABLED.glob("*.wants/ceph-volume@*.service") if one_of_this_number.fullmatch(path.stem)}
  for unit in sorted(units - {volume_unit(osd_id, osd_fsid)}):
    try:
      call("systemctl", "disable", unit)
    except Failed as error:
      terminal.warning(f"{error}; a disk that had the number osd.{osd_id} before may be started in its place")


def is_active(osd_id):
  return systemctl.osd_is_active(osd_id)


def ending(osd_id, process):
  """How one that has the store open is ended, in words: the OSD, or a tool."""
  program = host.program_of(process)
  if program not in ("", "ceph-osd"):
    return f"wait until {program}, process {process}, has ended"
  return f"'systemctl stop {osd_unit(osd_id)}'"


def forget(osd_id, osd_fsid):
  """The opposite of start(), for the OSD that is mounted where this number's is."""
  forget_mounted(osd_id)
  disable_volume(osd_id, osd_fsid)
  return True


def forget_mounted(osd_id):
  # Active or not: after a crash systemd waits before it starts it again.
  call("systemctl", "stop", osd_unit(osd_id))
  call("systemctl", "disable", "--runtime", osd_unit(osd_id))
  call("systemctl", "disable", osd_unit(osd_id))  # as one is enabled that was made by hand


def volume_unit(osd_id, osd_fsid):
  return systemctl.volume_unit % ("swimstore", osd_id, osd_fsid)


def osd_unit(osd_id):
  return systemctl.osd_unit % osd_id
