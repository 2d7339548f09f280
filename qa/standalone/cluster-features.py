#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What Ceph does with a store beyond reading and writing, on three OSDs with three copies.

active+clean, bench, pool snapshots, rbd with snapshots and clones, stores that get more cubes, PG split and merge, an
erasure-coded pool, OSDs stopped in the middle of its writes with an unmount, an OSD out and in with backfill, an OSD killed
and recovered, export and import of a PG, deep scrub with 0 errors at the end.
"""

import json
import re
import subprocess
import time

import scenario as scenario_module
import sysroot
from scenario import CRASH_MARKS

import rados_bench

OSDS = 3
# Of a load: a fast machine would fill the devices in the seconds given, and a full OSD takes no backfill.
OBJECTS = "--max-objects 2000"


def bench(scenario, cluster):
  cluster.create_pool("bench", pg_num=16)
  cluster.wait_clean()
  seconds = 3 if scenario.args.quick else 20
  out = cluster.shell(f"""set -e
    rados -p bench bench {seconds} write -b 65536 -t 16 {OBJECTS} --no-cleanup
    rados -p bench bench {seconds} seq -t 16
    rados -p bench bench {seconds} rand -t 16
    rados -p bench bench {seconds} write -b 4096 -t 16 {OBJECTS} --run-name small --no-cleanup""", timeout=300)
  rates = re.findall(r"Average IOPS:\s+(\d+)", out)
  scenario.check(len(rates) == 4 and all(int(rate) for rate in rates), f"rados bench: IOPS {', '.join(rates)}",
                 out[-500:])


def device_class(scenario, cluster):
  """An OSD chooses its shards and threads by it. The disk below the loop device may be called a spinning one."""
  if cluster.spec.store == "kstore":  # does not look
    return
  told = [cluster.ceph_json("osd", "metadata", osd)["rotational"] for osd in range(OSDS)]
  scenario.check(told == ["0"] * OSDS, "the OSDs see that their devices do not spin", f"rotational: {told}")


def pool_snapshot(scenario, cluster):
  out = cluster.shell("""set -e
    d=$(mktemp -d); head -c 300000 /dev/urandom >$d/old; head -c 200000 /dev/urandom >$d/new
    rados -p bench put snapped $d/old
    rados -p bench setomapval snapped key old
    rados -p bench mksnap before
    rados -p bench put snapped $d/new
    rados -p bench setomapval snapped key new
    rados -p bench get snapped $d/now
    rados -p bench -s before get snapped $d/then
    cmp $d/new $d/now
    cmp $d/old $d/then
    rados -p bench rollback snapped before
    rados -p bench get snapped $d/back
    cmp $d/old $d/back
    rados -p bench getomapval snapped key | grep -c old
    rados -p bench rmsnap before
    rm -r $d; echo done""")
  scenario.check(out.endswith("done\n"), "pool snapshot: read at, rolled back, removed", out)


def rbd_images(scenario, cluster):
  cluster.create_pool("rbd", pg_num=16, application="rbd")
  cluster.wait_clean()
  size = 16 if scenario.args.quick else 128
  written = f"--io-threads 8 --io-total {size // 4}M --io-pattern rand"
  out = cluster.shell(f"""set -e -o pipefail
    d=$(mktemp -d); head -c {size}M /dev/urandom >$d/image
    same() {{ rbd export --no-progress $1 - | cmp - $2; }}
    rbd import --no-progress --image-format 2 $d/image rbd/base
    rbd snap create --no-progress rbd/base@first
    rbd snap protect rbd/base@first
    rbd clone rbd/base@first rbd/child
    rbd bench --io-type write --io-size 4096 {written} rbd/base >/dev/null
    same rbd/base@first $d/image
    same rbd/child $d/image
    rbd bench --io-type write --io-size 16384 {written} rbd/child >/dev/null
    same rbd/base@first $d/image
    rbd snap create --no-progress rbd/child@second
    rbd export --no-progress rbd/child $d/child
    rbd flatten --no-progress rbd/child
    same rbd/child $d/child
    rbd snap rollback --no-progress rbd/base@first
    same rbd/base $d/image
    rbd snap purge --no-progress rbd/child
    rbd snap unprotect rbd/base@first
    rbd snap purge --no-progress rbd/base
    rbd rm --no-progress rbd/child
    test "$(rbd ls rbd)" = base
    rm -r $d; echo done""", timeout=600)
  scenario.check(out.endswith("done\n"), "rbd: image, snapshots, clone, flatten, rollback, all bytes equal", out[-500:])


def more_cubes(scenario, cluster):
  """Two OSDs' stores get more cubes than they were made with. On one the groups stay where they are."""
  if cluster.spec.store != "swimstore":
    return
  cluster.shell("""set -e
    for n in $(seq 20); do head -c $((n * 9000)) /dev/urandom | rados -p bench put cube_$n -; rados -p bench setomapval cube_$n key $n; done
    rados -p bench mksnap cubes
    for n in 1 2 3 4 5; do head -c 50000 /dev/urandom | rados -p bench put cube_$n -; done""")
  objects = """for n in $(seq 20); do
    for snap in "" "-s cubes"; do rados -p bench $snap get cube_$n - 2>/dev/null | sha256sum; done
    rados -p bench getomapval cube_$n key | tail -2; done"""
  before = cluster.shell(objects)
  cluster.ceph("osd", "set", "noout")
  for osd, balances in ((0, False), (1, True)):
    cluster.stop_osd(osd)
    at_first = _homes(cluster, osd)
    had = int(_swimstore_tool(cluster, "info", osd)["cubes"])
    wanted = 2 * max(had - 1, 1)
    _swimstore_tool(cluster, "add-cubes", osd, "--to", wanted)
    scenario.check(_homes(cluster, osd) == at_first, f"osd.{osd}: {had} cubes become {wanted + 1}, its {len(at_first)} groups stay where they are")
    if balances:
      _swimstore_tool(cluster, "balance", osd)
      used = sorted(set(_homes(cluster, osd).values()))
      scenario.check(used == list(range(1, wanted + 1)), f"osd.{osd}: after balance its groups lie in cubes {used}")
    fsck = _swimstore_tool(cluster, "fsck", osd)
    scenario.check(fsck["errors"] == 0, f"osd.{osd}: fsck is clean", str(fsck))
    cluster.start_osd(osd)
    cluster.wait_up()
    cluster.wait_clean(300)
    told = cluster.ceph_json("osd", "metadata", osd)["swimstore_cubes"]
    scenario.check(told == str(wanted + 1), f"osd.{osd} tells of {told} cubes")
  cluster.ceph("osd", "unset", "noout")
  scenario.check(cluster.shell(objects) == before, "objects and their snapshots are the same")
  cluster.shell("for n in 6 7 8; do rados -p bench rm cube_$n; done; rados -p bench rmsnap cubes")
  scenario.until_trimmed()


def _homes(cluster, osd):
  listed = _swimstore_tool(cluster, "list", osd, "--collections")["collections"]
  return {one["collection"]: one["cube"] for one in listed if one["collection"] != "meta"}


def _swimstore_tool(cluster, command, osd, *words):
  program = cluster.spec.beside_osd("ceph-swimstore-tool")
  return json.loads(sysroot.run([program, "--format", "json", command, cluster.osd_dir(osd), *words], timeout=300).stdout)


def split_and_merge(scenario, cluster):
  checksums = "rados -p bench ls | sort | head -40 | while read o; do rados -p bench get $o - | sha256sum; done"
  before = cluster.shell(checksums, timeout=300)
  for wanted, word in ((18, "split"), (14, "merge")) if scenario.args.quick else ((32, "split"), (8, "merge")):
    # Merging goes one PG at a time; the scenario does not wait for the pace of a production cluster.
    cluster.shell(f"""set -e
      ceph config set mgr target_max_misplaced_ratio 1
      ceph osd pool set bench pg_num {wanted}; ceph osd pool set bench pgp_num {wanted}""")
    scenario.until(lambda: _pg_num(cluster, "bench") == wanted, 300, f"PG {word} to {wanted}")
    cluster.wait_clean(300)
    scenario.check(cluster.shell(checksums, timeout=300) == before, f"objects are the same after the {word}")


def split_unevenly(scenario, cluster):
  """To a number that is no power of two: children of one group differ in bits, and are made at once."""
  cluster.create_pool("uneven", pg_num=8)
  cluster.shell("set -e; head -c 5000 /dev/urandom >/tmp/uneven.$$; for i in $(seq 60); do "
                "rados -p uneven put object$i /tmp/uneven.$$; done; rm /tmp/uneven.$$")
  checksums = "rados -p uneven ls | sort | while read o; do rados -p uneven get $o - | sha256sum; done"
  before = cluster.shell(checksums, timeout=300)
  cluster.shell("ceph osd pool set uneven pg_num 41; ceph osd pool set uneven pgp_num 41")
  scenario.until(lambda: _pg_num(cluster, "uneven") == 41, 300, "8 PGs split to 41")
  cluster.wait_clean(300)
  scenario.check(cluster.shell(checksums, timeout=300) == before, "objects are the same after the split to 41")


def _pg_num(cluster, pool):
  return next(entry["pg_num"] for entry in cluster.ceph_json("osd", "dump")["pools"] if entry["pool_name"] == pool)


def erasure_coded(scenario, cluster):
  # By name the monitor allows overwrites on BlueStore alone; `mon debug no require ...` is in this cluster's ceph.conf.
  cluster.create_ec_pool("ec")
  cluster.create_ec_pool("ec_overwrites", overwrites=True)
  out = cluster.shell(f"""set -e
    d=$(mktemp -d); head -c 3333333 /dev/urandom >$d/object; head -c 2222222 /dev/urandom >$d/other
    for file in other object other object; do rados -p ec put object $d/$file; done
    rados -p ec put gone $d/other
    rados -p ec rm gone
    rados -p ec get object $d/back
    cmp $d/object $d/back
    rados -p ec bench 3 write -b 65536 -t 8 {OBJECTS} --no-cleanup >/dev/null
    rados -p ec_overwrites put object $d/object
    rados -p ec_overwrites put --offset 12345 object $d/other
    dd if=$d/other of=$d/object bs=1M seek=12345 oflag=seek_bytes conv=notrunc status=none
    rados -p ec_overwrites get object $d/back
    cmp $d/object $d/back
    rados -p ec get object - | sha256sum; rm -r $d""")
  cluster.wait_clean()
  digest = out.split()[-2]
  cluster.kill_osd(2)
  scenario.until(lambda: _up(cluster) == OSDS - 1, 60, "the monitor notices a killed OSD")
  degraded = cluster.shell("rados -p ec get object - | sha256sum").split()[0]
  scenario.check(degraded == digest, "erasure-coded object reads back with one OSD dead")
  cluster.shell(f"rados -p bench bench 3 write -b 16384 -t 16 {OBJECTS} --run-name degraded --no-cleanup >/dev/null")
  cluster.start_osd(2)
  cluster.wait_up()
  cluster.wait_clean(300)
  scenario.check(True, "the killed OSD recovers to active+clean")


def slow_stop(scenario, cluster):
  """OSDs that unmount their stores when they are stopped, in the middle of writes that wait for one another."""
  cluster.ceph("config", "set", "osd", "osd_fast_shutdown", "false")
  cluster.create_ec_pool("stopped", overwrites=True)
  cluster.wait_clean()
  load = subprocess.Popen(
      sysroot.command(rados_bench.load_command(cluster, "stopped", "--size", "64K", "--depth", 32, "--fill-seconds", 1,
                                               "--seconds", 600, "--phases", "write,overwrite")),
      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
  try:
    for osd in list(range(OSDS)) * (1 if scenario.args.quick else 5):
      time.sleep(3)
      log = cluster.dir / "log" / f"osd.{osd}.log"
      before = log.stat().st_size
      cluster.stop_osd(osd)
      said = log.read_bytes()[before:].decode(errors="replace")
      if cluster.spec.store == "swimstore":
        scenario.check("unmounted" in said, f"osd.{osd} unmounts its store when it is stopped", said[-500:])
      scenario.check(not any(mark in said for mark in CRASH_MARKS), f"osd.{osd} stops without a crash", said[-3000:])
      cluster.start_osd(osd)
      cluster.wait_up()
  finally:
    load.terminate()
    load.wait()
  cluster.ceph("config", "rm", "osd", "osd_fast_shutdown")
  cluster.wait_clean(300)


def _up(cluster):
  return cluster.ceph_json("osd", "stat")["num_up_osds"]


def out_and_in(scenario, cluster):
  """Size 2 here: with three OSDs and three copies there is nowhere to backfill to."""
  cluster.create_pool("moving", pg_num=16, size=2)
  cluster.wait_clean()
  cluster.shell(f"rados -p moving bench 3 write -b 65536 -t 16 {OBJECTS} --no-cleanup >/dev/null")
  cluster.shell("for p in bench rbd; do ceph osd pool set $p size 2; done")
  cluster.wait_clean(300)
  cluster.ceph("osd", "out", "0")
  scenario.until(lambda: _pool_pgs_on(cluster, "moving", 0) == 0, 300, "out: no PG of the pool is left on the OSD")
  cluster.ceph("osd", "in", "0")
  cluster.wait_clean(300)
  scenario.check(_pool_pgs_on(cluster, "moving", 0) > 0, "in: PGs are backfilled to the OSD again")
  cluster.shell("for p in bench rbd; do ceph osd pool set $p size 3; done")
  cluster.wait_clean(300)


def _pool_pgs_on(cluster, pool, osd):
  pgs = cluster.ceph_json("pg", "ls-by-pool", pool)["pg_stats"]
  return sum(osd in pg["acting"] or osd in pg["up"] for pg in pgs)


def export_and_import(scenario, cluster):
  """Take a PG out of a stopped OSD and put it back; Ceph then finds nothing amiss."""
  pg = next(pg["pgid"] for pg in cluster.ceph_json("pg", "ls-by-pool", "bench")["pg_stats"] if 1 in pg["acting"])
  cluster.ceph("osd", "set", "noout")
  cluster.stop_osd(1)
  file = cluster.dir / "run" / "pg.export"
  tool = _objectstore_tool(cluster, 1)
  listed = sysroot.run([*tool, "--op", "list", "--pgid", pg], timeout=120).stdout.splitlines()
  sysroot.run([*tool, "--op", "export", "--pgid", pg, "--file", file], timeout=300)
  sysroot.run([*tool, "--op", "remove", "--pgid", pg, "--force"], timeout=300)
  gone = pg not in sysroot.run([*tool, "--op", "list-pgs"], timeout=120).stdout.split()
  scenario.check(gone, "ceph-objectstore-tool removes a PG")
  sysroot.run([*tool, "--op", "import", "--pgid", pg, "--file", file], timeout=300)
  again = sysroot.run([*tool, "--op", "list", "--pgid", pg], timeout=120).stdout.splitlines()
  scenario.check(sorted(listed) == sorted(again) and listed,
                 f"ceph-objectstore-tool exports and imports a PG with {len(listed)} objects")
  file.unlink()
  fsck = sysroot.run([*tool, "--op", "fsck"], timeout=300, check=False)
  scenario.check(fsck.returncode == 0, "fsck is clean after the import", fsck.stderr[-500:])
  cluster.start_osd(1)
  cluster.wait_up()
  cluster.ceph("osd", "unset", "noout")
  cluster.wait_clean(300)


def _objectstore_tool(cluster, osd):
  program = cluster.spec.beside_osd("ceph-objectstore-tool")
  return [program, "--data-path", cluster.osd_dir(osd), "--type", cluster.spec.store, "--no-mon-config"]


STEPS = (bench, device_class, pool_snapshot, rbd_images, more_cubes, split_and_merge, split_unevenly, erasure_coded, slow_stop,
         out_and_in, export_and_import)


def run(scenario):
  cluster = scenario.start(osds=OSDS, mon_conf={"mon debug no require bluestore for ec overwrites": "true"})
  for step in STEPS:
    if scenario.args.only and step.__name__ not in (scenario.args.only, bench.__name__):
      continue
    scenario.say(step.__name__.replace("_", " "))
    try:
      step(scenario, cluster)
    except (scenario_module.UserError, sysroot.CommandFailed) as error:
      scenario.check(False, step.__name__, str(error))
      scenario.check_daemons()
      return
  scenario.check_daemons()
  scenario.deep_scrub()


if __name__ == "__main__":
  scenario_module.main("features", run, __doc__, stores=("swimstore", "bluestore", "kstore"), options=(
      (("--only",), {"choices": [step.__name__ for step in STEPS], "help": "one step, after bench"}),))
