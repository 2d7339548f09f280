#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""OSDs that `ceph-volume swimstore` makes: on ext4 and xfs, encrypted ones as far as the kernel has a device mapper.

They are made by the commands of doc/swimstore-operations.rst, come up when the host starts, and on another host, of which nothing
but the disk is known; devices that hold anything are refused and stay as they are, byte for byte; whatever fails while one is
made, nothing of it is left. On loop devices, on a host as own_host.py makes it, with the package installed.
"""

import own_host
import scenario as scenario_module

# Two OSDs; one on which making fails; one that holds what others need, read as a whole each time; within an encrypted one, whose
# header is as long as that of LUKS2.
DISKS = (own_host.DISK_BYTES, own_host.DISK_BYTES, own_host.DISK_BYTES, 320 << 20, own_host.DISK_BYTES - (16 << 20))


def run(scenario):
  own_host.run(scenario, "ceph_volume_inside.py", DISKS, ["quick" if scenario.args.quick else "all"])


if __name__ == "__main__":
  scenario_module.main("ceph-volume", run, __doc__, stores=("swimstore",))
