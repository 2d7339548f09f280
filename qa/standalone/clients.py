#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Users' programs on three OSDs: fio on an RBD image with a snapshot and a clone, a source tree unpacked and built in
CephFS with random operations there, s3cmd on a bucket of radosgw.

All at once, while an OSD is killed. Then all OSDs are started anew, one of them after kill -9, with MDS and radosgw, and
everything is read back and compared with local files in which the same was done. At the end: deep scrub, and a deep fsck
of each OSD's store.

The long form does it three times. It goes on with rounds on new clusters of SwimStore and of BlueStore by turns, one
program at a time and without kills, and prints how long each step took.
"""

import random

import scenario as scenario_module
import sysroot
from client_fs import FsUser
from client_rbd import RbdUser
from client_s3 import S3User
from scenario import GIB
from sides import Side, measure

USERS = (RbdUser, FsUser, S3User)
OSDS = 3
# Each pool is a change of the map: radosgw makes seven, one after another.
MON_CONF = {"paxos propose interval": 0.1}


def start(scenario, store, name=""):
  args = scenario.args
  cluster = scenario.start(OSDS, size_bytes=(2 if args.quick else 4) * GIB, store=store, name=name,
                           mon_conf={"osd pool default pg num": args.pg_num // 4} | MON_CONF)
  return Side(scenario, cluster, [user(scenario, cluster, args) for user in USERS])


def use_and_check(scenario, side, rounds):
  """With kills, and everything read back."""
  for nth in range(rounds):
    side.prepare(f"checked{nth}")
    side.use_while_killed(nth)
    side.restart((nth + 1) % OSDS)
    side.read_back("after all OSDs were started anew")
    if not scenario.args.quick:
      side.remove()
  side.check_stores()


def run(scenario):
  sysroot.check_host("--fuse")
  args = scenario.args
  args.rbd_mib, args.fs_operations, args.s3_objects, args.s3_mib = (32, 300, 30, 12) if args.quick else (512, 4000, 400, 128)
  # Of Ceph's source.
  args.trees = ("xxHash", "zstd/lib" if args.quick else "zstd")
  args.builds = ("xxHash",) if args.quick else ("xxHash", "zstd/lib")
  args.pg_num = 4 if args.quick else 16  # of the pools with the data; radosgw makes seven
  scenario.say(f"seed {args.seed}")
  side = start(scenario, args.store)
  use_and_check(scenario, side, 1 if args.quick else OSDS)
  if not args.quick and args.rounds and args.store != "bluestore":
    side.cluster.stop()
    sides = [start(scenario, store, name=f"measured.{store}") for store in (args.store, "bluestore")]
    measure(scenario, sides, args.rounds)
    for each in sides:
      each.check_stores()


if __name__ == "__main__":
  scenario_module.main("clients", run, __doc__, stores=("swimstore", "bluestore"), options=(
      (("--rounds",), {"type": int, "default": 3, "help": "that are measured, beside BlueStore (default: %(default)s)"}),
      (("--seed",), {"type": int, "default": random.randrange(1 << 32), "help": "of what is written"})))
