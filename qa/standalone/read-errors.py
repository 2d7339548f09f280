#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Objects that one OSD cannot read: clients get the right bytes from the others, and Ceph repairs the copy.

Injected errors of data and metadata, as Ceph's own tests inject them; then bytes of one copy overwritten on its
disk, found by reading, by deep scrub, and by the store's own check of a running OSD.
"""

import hashlib
import json
import random

import scenario as scenario_module
from bit_rot import BLOCK_BYTES, repair_by_scrub, rot
from scenario import UserError

OSDS = 3
POOL = "damaged"
BYTES = 300_000
ALERT = "SWIMSTORE_FSCK_FINDINGS"


def content(name):
  return random.Random(name).randbytes(BYTES)


def put(cluster, names):
  path = cluster.dir / "run" / "object"
  for name in names:
    path.write_bytes(content(name))
    cluster.client("rados", "-p", POOL, "put", name, path)
  path.unlink()


def reads_right(cluster, name):
  path = cluster.dir / "run" / "read"
  cluster.client("rados", "-p", POOL, "get", name, path)
  found = hashlib.sha256(path.read_bytes()).digest()
  path.unlink()
  return found == hashlib.sha256(content(name)).digest()


def where(cluster, name):
  """(PG, primary, a replica)"""
  found = cluster.ceph_json("osd", "map", POOL, name)
  return found["pgid"], found["acting_primary"], next(osd for osd in found["acting"] if osd != found["acting_primary"])


def inject(cluster, osd, kind, name):
  answer = cluster.ask_osd(osd, f"inject{kind}err", pool=POOL, objname=name)
  if "ok" not in str(answer):
    raise UserError(f"osd.{osd} does not take the error: {answer}")


def injected_data_errors(scenario, cluster):
  names = [f"data{number}" for number in range(4)]
  put(cluster, names)
  for name in names:
    inject(cluster, where(cluster, name)[1], "data", name)
  scenario.check(all(reads_right(cluster, name) for name in names),
                 "the primary cannot read: clients get the right bytes")
  scenario.until(lambda: cluster.wait_clean() and repaired(cluster) >= len(names), 60,
                 "the primary's copies are repaired")
  scenario.check(all(reads_right(cluster, name) for name in names), "and read well")


def repaired(cluster):
  cluster.flush_pg_stats()
  return sum(pg["stat_sum"]["num_objects_repaired"] for pg in cluster.ceph_json("pg", "dump", "pgs")["pg_stats"])


def injected_replica_errors(scenario, cluster):
  """Only a scrub meets them; repairing writes the replica's copy anew."""
  names = {"data": "replica-data", "mdata": "replica-mdata"}
  put(cluster, names.values())
  for kind, name in names.items():
    inject(cluster, where(cluster, name)[2], kind, name)
  repair_by_scrub(scenario, cluster, {where(cluster, name)[0] for name in names.values()},
                  "injected errors of a replica")


def rotten_bytes(scenario, cluster):
  names = ["rot-read", "rot-scrub"]
  put(cluster, names)
  for name in names:
    pg, primary, replica = where(cluster, name)
    osd = primary if name == "rot-read" else replica
    rot(cluster, osd, content(name)[:BLOCK_BYTES])
    before = repaired(cluster)
    if osd == where(cluster, name)[1]:
      scenario.check(reads_right(cluster, name), "a byte of the primary's copy is wrong: clients get the right bytes")
      scenario.until(lambda: repaired(cluster) > before, 60, "the copy is repaired")
    else:
      repair_by_scrub(scenario, cluster, {pg}, "a wrong byte in a replica's copy")
    scenario.check(reads_right(cluster, name), f"{name} reads well")


def daemon(cluster, osd, *command):
  """As an operator asks the store."""
  socket = cluster.socket(osd)
  return json.loads(cluster.client("ceph", "daemon", socket, "swimstore", *command))


def checked_while_in_use(scenario, cluster, osd):
  daemon(cluster, osd, "fsck", "--deep")
  scenario.until(lambda: daemon(cluster, osd, "fsck", "status")["state"] == "done", 120,
                 "the check of a running OSD ends")
  return daemon(cluster, osd, "fsck", "status")


def has_alert(cluster):
  return ALERT in cluster.ceph_json("health", "detail")["checks"]


def online_fsck(scenario, cluster):
  name = "rot-fsck"
  put(cluster, [name])
  pg, _, osd = where(cluster, name)
  rot(cluster, osd, content(name)[:BLOCK_BYTES])
  status = checked_while_in_use(scenario, cluster, osd)
  scenario.check([name in finding["object"] for finding in status["findings"]] == [True],
                 "it finds a wrong byte, and nothing else", str(status["findings"]))
  scenario.until(lambda: has_alert(cluster), 60, f"the health of the cluster tells of it ({ALERT})")
  cluster.ceph("pg", "repair", pg)
  scenario.until(lambda: not checked_while_in_use(scenario, cluster, osd)["findings"], 60, "pg repair fixes it")
  scenario.until(lambda: not has_alert(cluster), 60, "the alert goes")


def run(scenario):
  # The check is not held back: nothing else asks for the disk here.
  cluster = scenario.start(osds=OSDS,
                           conf={"swimstore debug inject read err": "true", "swimstore fsck online rate": 1e6,
                                 "swimstore fsck online data rate": 1e6})
  cluster.create_pool(POOL, pg_num=8, size=3)
  cluster.wait_clean()
  injected_data_errors(scenario, cluster)
  injected_replica_errors(scenario, cluster)
  rotten_bytes(scenario, cluster)
  online_fsck(scenario, cluster)
  scenario.check_daemons()
  scenario.deep_scrub()


if __name__ == "__main__":
  scenario_module.main("read-errors", run, __doc__, stores=("swimstore",))
