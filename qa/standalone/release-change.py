#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A cluster with data goes from Reef to Tentacle, daemon by daemon, under load; nothing acknowledged may be lost.

The monitor and the manager first, then one OSD after the other, each of which checks its whole store as it starts.
Then the cluster is told that all its OSDs are of the new release. The client is of Reef throughout.
"""

import os
import time

import scenario as scenario_module
import sysroot
from kill9 import POOL, begin_load, verify
from scenario import FSCK_ON_MOUNT, UserError

OSDS = 3
NEW = "tentacle"
AFTERWARDS_S = 10


def check_load(scenario, client, what):
  scenario.check(client.poll() is None, f"{what}; the load goes on")


def end_load(scenario, client):
  still = client.poll() is None
  said, _ = client.communicate(timeout=120)
  scenario.check(still and client.returncode == 0, "the load went on all the while, and no operation failed", said.strip())


def change_osd(cluster, osd):
  """Raises where its store is not clean: it does not start then."""
  cluster.stop_osd(osd)
  cluster.change_release(f"osd.{osd}", NEW)
  cluster.start_osd(osd, *FSCK_ON_MOUNT[cluster.spec.store])
  cluster.wait_up(timeout=300)
  cluster.wait_clean(300)


def change_cluster(scenario, cluster, client):
  for daemon in ("mon.a", "mgr.x"):
    cluster.change_release(daemon, NEW)
  cluster.restart_mon_and_mgr()
  cluster.wait_clean(300)
  check_load(scenario, client, "the monitor and the manager are changed, every PG is active+clean")
  for osd in range(OSDS):
    change_osd(cluster, osd)
    said = cluster.ask_osd(osd, "version")
    scenario.check(said["release"] == NEW, f"osd.{osd} is of {NEW}, and its store was clean", str(said))
    check_load(scenario, client, "every PG is active+clean")
  cluster.ceph("osd", "require-osd-release", NEW)


def prepare_new(scenario):
  """The set-up of the other release; its programs must be there."""
  if sysroot.release_name() != "reef":
    raise UserError("release-change begins with Reef: unset SWIM_RELEASE")
  if scenario.args.ceph_osd:
    raise UserError("--ceph-osd: here are two, of the builds of both releases; leave it out")
  new = sysroot.RELEASES[NEW]
  sysroot.check_host("--setup", new.set_up)
  os.environ.pop("SWIM_NO_SETUP", None)  # set when Reef's was there
  sysroot.prepare(new.root)
  program = sysroot.built("ceph-osd", NEW)
  if scenario.args.store == "swimstore" and not program.exists():
    raise UserError(f"{program}: no such program; build it first (qa/run-make-check.sh --release {NEW})")


def run(scenario):
  prepare_new(scenario)
  cluster = scenario.start(osds=OSDS)
  cluster.create_pool(POOL, pg_num=16, size=OSDS)
  cluster.wait_clean()
  model = cluster.dir / "run" / "acked.model"
  client = begin_load(cluster, model, scenario.args.seed)
  try:
    change_cluster(scenario, cluster, client)
    end_load(scenario, client)
  finally:
    if client.poll() is None:
      client.kill()
      client.wait()
  versions = cluster.ceph_json("versions")["overall"]
  scenario.check(len(versions) == 1 and NEW in next(iter(versions)), f"all daemons are of {NEW}", str(versions))
  verify(scenario, cluster, model, f"with all of {NEW} every object is as acknowledged")
  scenario.check_daemons()
  scenario.deep_scrub()
  # With what its OSDs write to each other from now on, too.
  client = begin_load(cluster, model, scenario.args.seed + 1)
  time.sleep(AFTERWARDS_S)
  end_load(scenario, client)
  verify(scenario, cluster, model, "after some more load every object is as acknowledged")
  scenario.restart_with_fsck()
  scenario.deep_scrub()


if __name__ == "__main__":
  scenario_module.main("release-change", run, __doc__, stores=("swimstore", "bluestore"), options=(
      (("--seed",), {"type": int, "default": 1, "help": "of the load (default: %(default)s)"}),))
