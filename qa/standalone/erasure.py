#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""RBD images whose data lies in an erasure-coded pool with overwrites: 2+1 on four OSDs, 4+2 on eight.

fio writes to an image, a snapshot of it and a clone, while an OSD is killed. Then all OSDs are started anew, one after
kill -9; as many as may be lost are lost, and their shards made anew on others. A byte of a shard changes on its disk: it
is read right all the same, found by a deep scrub and repaired. Each time every block is compared. The OSDs do not warn of
silent corruption, as Ceph's do on stores without checksums. At the end: deep scrub, and a deep fsck of each store.

The long form measures fio with each profile beside BlueStore, on new clusters. --quick: 2+1 alone.
"""

import random

import scenario as scenario_module
from bit_rot import BLOCK_BYTES, repair_by_scrub, rot
from client_rbd import RbdUser
from scenario import GIB
from sides import Side, measure

PROFILES = ((2, 1), (4, 2))
POOL = "data"
NO_OSD = 2147483647  # as Ceph prints a shard that lies nowhere


def start(scenario, store, k, m, name=""):
  """With m OSDs more than a placement group needs."""
  cluster = scenario.start(k + 2 * m, size_bytes=4 * GIB, store=store, name=f"{name or store}.{k}+{m}",
                           mon_conf={"mon debug no require bluestore for ec overwrites": "true"})
  cluster.create_ec_pool(POOL, overwrites=True, k=k, m=m)
  user = RbdUser(scenario, cluster, scenario.args)
  user.data_pool = POOL
  return Side(scenario, cluster, [user])


def lose(scenario, cluster, osds):
  """For good, as far as the others know."""
  for osd in osds:
    cluster.kill_osd(osd)
    cluster.ceph("osd", "down", osd)
    cluster.ceph("osd", "out", osd)

  def made_anew():
    pgs = cluster.ceph_json("pg", "dump", "pgs")["pg_stats"]
    return all(pg["state"].startswith("active+clean") and not {NO_OSD, *osds} & set(pg["acting"]) for pg in pgs)
  scenario.until(made_anew, 600, f"without OSDs {osds} their shards are made anew on others")


def take_back(cluster, osds):
  for osd in osds:
    cluster.start_osd(osd)
    cluster.ceph("osd", "in", osd)
  cluster.wait_up()
  cluster.wait_clean(600)


def rotten_shard(scenario, cluster):
  """Of an object of its own: the first block of the first shard is the object's beginning. A read does without the shard,
  and does not repair it."""
  bytes_of_object = random.Random(scenario.args.seed).randbytes(1 << 20)
  path = cluster.dir / "run" / "object"
  path.write_bytes(bytes_of_object)
  cluster.client("rados", "-p", POOL, "put", "object", path)
  found = cluster.ceph_json("osd", "map", POOL, "object")

  def check_object(when):
    out = cluster.shell(f"rados -p {POOL} get object - | cmp - {path} && echo same || true")
    scenario.check(out == "same\n", f"the object reads right, {when}")
  rot(cluster, found["acting"][0], bytes_of_object[:BLOCK_BYTES])
  check_object("of which a byte has changed on a disk")
  repair_by_scrub(scenario, cluster, {found["pgid"]}, "a wrong byte in a shard")
  check_object("repaired")


def check_warnings(scenario, cluster):
  """An OSD warns when it makes a shard of a pool that has the flag already, as they did when others were lost."""
  log = cluster.ceph("log", "last", "10000", "debug", "cluster")
  silent = [line for line in log.splitlines() if "silent data corruption" in line]
  scenario.check("osd." in log and not silent, "no OSD warns of silent corruption", "\n".join(silent)[:300])


def use_and_check(scenario, k, m):
  side = start(scenario, scenario.args.store, k, m)
  cluster = side.cluster
  side.prepare("checked")
  side.use_while_killed(0)
  side.restart(1)
  side.read_back("after all OSDs were started anew")
  lost = list(range(m))
  lose(scenario, cluster, lost)
  side.read_back("without them")
  take_back(cluster, lost)
  rotten_shard(scenario, cluster)
  check_warnings(scenario, cluster)
  side.check_stores()
  side.read_back("at the end")
  cluster.remove()


def compare(scenario, k, m):
  sides = [start(scenario, store, k, m, f"measured.{store}") for store in (scenario.args.store, "bluestore")]
  measure(scenario, sides, scenario.args.rounds)
  for side in sides:
    side.check_stores()
    side.cluster.remove()


def run(scenario):
  args = scenario.args
  args.rbd_mib, args.pg_num = (64, 4) if args.quick else (512, 16)
  scenario.say(f"seed {args.seed}")
  for k, m in PROFILES[:1] if args.quick else PROFILES:
    scenario.say(f"{k}+{m}")
    use_and_check(scenario, k, m)
    if not args.quick and args.rounds:
      compare(scenario, k, m)


if __name__ == "__main__":
  scenario_module.main("erasure", run, __doc__, stores=("swimstore",), options=(
      (("--rounds",), {"type": int, "default": 3, "help": "that are measured, beside BlueStore (default: %(default)s)"}),
      (("--seed",), {"type": int, "default": random.randrange(1 << 32), "help": "of what is written"})))
