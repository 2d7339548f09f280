#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""One SwimStore OSD and two packaged BlueStore ones hold the same PGs; deep scrub compares them bit by bit.

Objects with data, holes, xattrs, omap, clones and snapshots; what the SwimStore OSD missed while it was dead; and
backfill from BlueStore to SwimStore and back. A difference between the stores is a scrub error.
"""

import scenario as scenario_module

STORES = ("swimstore", "bluestore", "bluestore")
SWIM = 0
# Of a load: a fast machine would fill the devices in the seconds given, and a full OSD takes no backfill.
OBJECTS = "--max-objects 4000"


def objects(scenario, cluster):
  seconds = 3 if scenario.args.quick else 20
  out = cluster.shell(f"""set -e
    d=$(mktemp -d)
    for size in 1 4095 4096 4097 65536 300001 4194304; do
      head -c $size /dev/urandom >$d/$size
      rados -p mixed put whole.$size $d/$size
      rados -p mixed put --offset 70001 holes.$size $d/$size
      rados -p mixed setxattr whole.$size name value.$size
      for key in a b c; do rados -p mixed setomapval whole.$size $key $key.$size; done
    done
    rados -p mixed mksnap before
    for size in 4096 300001; do
      rados -p mixed put --offset 1000 whole.$size $d/65536
      rados -p mixed truncate holes.$size 71000
      rados -p mixed rmomapkey whole.$size b
    done
    rados -p mixed rm whole.4097
    rados -p mixed bench {seconds} write -b 16384 -t 8 {OBJECTS} --no-cleanup >/dev/null
    rados -p mixed bench {seconds} write -b 4096 -t 8 {OBJECTS} --run-name small --no-cleanup >/dev/null
    rados -p mixed -s before get whole.4097 $d/back
    cmp $d/4097 $d/back
    rm -r $d; echo done""", timeout=600)
  scenario.check(out.endswith("done\n"), "objects, holes, xattrs, omap, snapshot, bench", out[-300:])


def catch_up(scenario, cluster):
  """The SwimStore OSD is told by the others what it missed."""
  cluster.kill_osd(SWIM)
  cluster.shell(f"""set -e
    rados -p mixed bench 2 write -b 65536 -t 8 {OBJECTS} --run-name missed --no-cleanup >/dev/null
    rados -p mixed setomapval whole.65536 late value""", timeout=300)
  cluster.start_osd(SWIM)
  cluster.wait_up()
  cluster.wait_clean(300)
  scenario.check(True, "SwimStore recovers what it missed from BlueStore")


def backfill(scenario, cluster):
  """All PGs leave the SwimStore OSD and come back whole."""
  cluster.shell("ceph osd pool set mixed size 2")
  cluster.wait_clean(300)
  for word in ("out", "in"):
    cluster.ceph("osd", word, str(SWIM))
    cluster.wait_clean(300)
  cluster.shell("ceph osd pool set mixed size 3")
  cluster.wait_clean(300)
  scenario.check(True, "backfill from SwimStore and to it")


def run(scenario):
  cluster = scenario.start(osds=len(STORES), mixed=STORES)
  cluster.create_pool("mixed", pg_num=8, size=3)
  cluster.wait_clean()
  objects(scenario, cluster)
  scenario.deep_scrub()
  catch_up(scenario, cluster)
  backfill(scenario, cluster)
  scenario.check_daemons()
  scenario.deep_scrub()


if __name__ == "__main__":
  scenario_module.main("mixed", run, __doc__, stores=("swimstore",))
