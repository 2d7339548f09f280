#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""RBD images whose data lies in an erasure-coded pool with overwrites: 2+1 on four OSDs, 4+2 on eight.

fio writes to an image, a snapshot of it and a clone, while an OSD is killed. Then all OSDs are started anew, one after
kill -9; as many as may be lost are lost, and their pieces made anew on others; a byte of a piece changes on its disk, is
found by a deep scrub and repaired. Each time every block is compared. The OSDs do not warn of silent corruption, as they
do on stores without checksums. At the end: deep scrub, and a deep fsck of each store.

The long form measures fio with each profile beside BlueStore. --quick: 2+1 alone.
"""

import functools
import random
import time
from typing import NamedTuple

import scenario as scenario_module
from bit_rot import BLOCK_BYTES, repair_by_scrub, rot
from client_rbd import RbdUser
from clients import measure
from scenario import GIB

PROFILES = ((2, 1), (4, 2))
POOL = "pieces"
KILL_AFTER_S = 1
DOWN_S = 1


class Side(NamedTuple):
  """A cluster, and the user of its images, as clients.measure() takes it."""
  cluster: object
  users: list


def start(scenario, store, k, m):
  """With m OSDs more than a placement group needs."""
  cluster = scenario.start(k + 2 * m, size_bytes=4 * GIB, store=store, name=f"{store}{k}+{m}",
                           mon_conf={"mon debug no require bluestore for ec overwrites": "true"})
  cluster.create_ec_pool(POOL, overwrites=True, k=k, m=m)
  user = RbdUser(scenario, cluster, scenario.args)
  user.data_pool = POOL
  user.begin()
  return Side(cluster, [user])


def kill_and_start(scenario, cluster, osd):
  time.sleep(KILL_AFTER_S)
  cluster.kill_osd(osd)
  time.sleep(DOWN_S)
  cluster.start_osd(osd)
  cluster.wait_up()
  scenario.check(True, f"osd.{osd} is killed and starts while the image is used")


def restart(scenario, cluster, killed):
  cluster.kill_osd(killed)
  osds = range(cluster.spec.osds)
  scenario.at_once(*(functools.partial(cluster.stop_osd, osd) for osd in osds if osd != killed))
  scenario.at_once(*(functools.partial(cluster.start_osd, osd) for osd in osds))
  cluster.wait_up()


def lose(scenario, cluster, osds):
  """For good, as far as the others know: they make the pieces anew."""
  for osd in osds:
    cluster.kill_osd(osd)
    cluster.ceph("osd", "down", osd)
    cluster.ceph("osd", "out", osd)
  scenario.check(cluster.wait_clean(600), f"without OSDs {osds} their pieces are made anew on others")


def take_back(cluster, osds):
  for osd in osds:
    cluster.start_osd(osd)
    cluster.ceph("osd", "in", osd)
  cluster.wait_up()
  cluster.wait_clean(600)


def rotten_piece(scenario, cluster):
  """Of an object of its own: the first block of the first piece is its beginning."""
  bytes_of_object = random.Random(scenario.args.seed).randbytes(1 << 20)
  path = cluster.dir / "run" / "object"
  path.write_bytes(bytes_of_object)
  cluster.client("rados", "-p", POOL, "put", "object", path)
  found = cluster.ceph_json("osd", "map", POOL, "object")
  rot(cluster, found["acting"][0], bytes_of_object[:BLOCK_BYTES])
  repair_by_scrub(scenario, cluster, {found["pgid"]}, "a wrong byte in a piece")
  out = cluster.shell(f"rados -p {POOL} get object - | cmp - {path} && echo same")
  scenario.check(out == "same\n", "the object whose piece was wrong reads right")


def check_warnings(scenario, cluster):
  log = cluster.ceph("log", "last", "10000", "debug", "cluster")
  scenario.check("osd." in log and "silent data corruption" not in log, "no OSD warns of silent corruption",
                 "\n".join(line for line in log.splitlines() if "silent" in line)[:300])


def use_and_check(scenario, k, m):
  side = start(scenario, scenario.args.store, k, m)
  cluster, user = side.cluster, side.users[0]
  user.prepare("checked")
  scenario.at_once(functools.partial(kill_and_start, scenario, cluster, 0), user.use)
  restart(scenario, cluster, 1)
  user.read_back("after all OSDs were started anew")
  lost = list(range(m))
  lose(scenario, cluster, lost)
  user.read_back("without them")
  take_back(cluster, lost)
  rotten_piece(scenario, cluster)
  if scenario.args.store != "bluestore":
    check_warnings(scenario, cluster)
  scenario.deep_scrub()
  scenario.restart_with_fsck()
  user.read_back("at the end")
  user.remove()
  return side


def run(scenario):
  args = scenario.args
  args.rbd_mib, args.pg_num = (32, 4) if args.quick else (512, 16)
  scenario.say(f"seed {args.seed}")
  for k, m in PROFILES[:1] if args.quick else PROFILES:
    scenario.say(f"{k}+{m}")
    side = use_and_check(scenario, k, m)
    if not args.quick and args.rounds:
      other = start(scenario, "bluestore", k, m)
      measure(scenario, [side, other], args.rounds)
      other.cluster.stop()
    side.cluster.stop()


if __name__ == "__main__":
  scenario_module.main("erasure", run, __doc__, stores=("swimstore", "bluestore"), options=(
      (("--rounds",), {"type": int, "default": 3, "help": "that are measured, beside BlueStore (default: %(default)s)"}),
      (("--seed",), {"type": int, "default": random.randrange(1 << 32), "help": "of what is written"})))
