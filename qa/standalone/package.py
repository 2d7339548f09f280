#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The life of the Debian package on a host with Ceph's packages, by the commands of doc/swimstore-operations.rst: installed, an
OSD made and started by its unit, another one on a packaged BlueStore started by the same unit, the host started again, the
package exchanged below the running OSD, removed and installed again. What must hold:

  of another package nothing is overwritten, the dependencies are exact, and all libraries are in them
  an OSD is run by the program for its store, and the packaged one with the arguments of the packaged unit
  no OSD is started or stopped; which must be started again, or cannot be, is said
  what was written is there after each step, and removal changes nothing in the store

No systemd runs: unit_by_hand.py, which says what it does not show, takes its place.
"""

import own_host
import scenario as scenario_module


def run(scenario):
  own_host.run(scenario, "package_inside.py", disks=[own_host.DISK_BYTES] * 2)


if __name__ == "__main__":
  scenario_module.main("package", run, __doc__, stores=("swimstore",))
