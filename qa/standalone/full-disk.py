#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Full disks: another program's doing, and the clients'.

First the host's file system below an OSD is filled to 0 bytes free, as another program would. Then: OSD_FULL within
30 s, every object still reads back, `rados rm` succeeds, a kill -9 and restart works while full, and once there is
room again the cluster takes writes.

Then three OSDs are filled to the brim by clients, with mixed sizes and omap, in a replicated and an erasure-coded
pool, 64 writes in flight; all is deleted, and filled again, 30 times. No OSD may end, and what was deleted is room.
"""

import hashlib
import json
import os
import pathlib
import tempfile
import time

import scenario as scenario_module
import sysroot

POOL = "data"
OBJECT_BYTES = 1 << 20
BRIM_LOAD = pathlib.Path(__file__).resolve().parent / "brim_load.py"
BRIM_POOLS = "brim,ec-brim"
BRIM_OSDS = 3
IN_FLIGHT = 64
QUICK_ROOM_BYTES = 512 << 20


def fill(path):
  """Grow one file until not even root gets another block. Again: what was given back meanwhile."""
  with open(path, "ab", buffering=0) as ballast:
    at = ballast.tell()
    for step in (64 << 20, 1 << 20, 4096):
      while True:
        try:
          os.posix_fallocate(ballast.fileno(), at, step)
          at += step
        except OSError:
          break
    os.fsync(ballast.fileno())


def is_full(path):
  """No byte for anybody. What ext4 keeps back for its own metadata still counts as free, but not as available."""
  stat = os.statvfs(path)
  try:
    (path / "one-more").write_bytes(b"x")
    (path / "one-more").unlink()
    return False
  except OSError:
    (path / "one-more").unlink(missing_ok=True)
    return stat.f_bavail == 0


def health_checks(cluster):
  return cluster.ceph_json("health")["checks"]


def rados(cluster, *args, timeout=60, **options):
  return cluster.client("rados", "-p", POOL, *args, timeout=timeout, **options)


def put_objects(cluster, folder, count):
  """Returns {name: digest}."""
  script, digests = "set -e\n", {}
  for number in range(count):
    content = os.urandom(OBJECT_BYTES)
    with open(f"{folder}/object{number}", "wb") as file:
      file.write(content)
    digests[f"object{number}"] = hashlib.sha256(content).hexdigest()
    script += f"rados -p {POOL} put object{number} {folder}/object{number}\n"
  cluster.shell(script, timeout=300)
  return digests


def check_reads(scenario, cluster, folder, digests, when):
  script = "set -e\n" + "\n".join(f"timeout 30 rados -p {POOL} get {name} {folder}/back.{name}" for name in digests)
  try:
    cluster.shell(script, timeout=600)
    wrong = [name for name, digest in digests.items()
             if hashlib.sha256(open(f"{folder}/back.{name}", "rb").read()).hexdigest() != digest]
    scenario.check(not wrong, f"all {len(digests)} objects read back {when}", str(wrong))
  except sysroot.CommandFailed as failed:
    scenario.check(False, f"all {len(digests)} objects read back {when}", str(failed))


def remove(scenario, cluster, digests, name, when):
  try:
    rados(cluster, "rm", name)
    left = rados(cluster, "ls").split()
    scenario.check(name not in left, f"rados rm succeeds {when}", "the object is still listed")
  except sysroot.CommandFailed as failed:
    scenario.check(False, f"rados rm succeeds {when}", str(failed))
  digests.pop(name)


def fill_by_another_program(scenario):
  cluster = scenario.start(osds=1)
  cluster.create_pool(POOL, pg_num=8, size=1)
  cluster.wait_clean()
  # The cluster stores stay in their directory; the ballast is a neighbour on the same file system.
  ballast = cluster.osd_dir(0) / "ballast"
  with tempfile.TemporaryDirectory(dir=sysroot.cache_dir()) as folder:
    digests = put_objects(cluster, folder, 16 if scenario.args.quick else 64)
    for _ in range(10):  # the OSD gives back what it needs no more, beside this
      fill(ballast)
      if is_full(cluster.osd_dir(0)):
        break
    scenario.check(is_full(cluster.osd_dir(0)), "0 bytes are free on the host's file system")
    try:
      scenario.until(lambda: "OSD_FULL" in health_checks(cluster), 30, "OSD_FULL is raised")
      scenario.check_daemons()
      check_reads(scenario, cluster, folder, digests, "while full")
      remove(scenario, cluster, digests, "object0", "while full")
      cluster.kill_osd(0)
      cluster.start_osd(0)
      cluster.wait_up()
      scenario.check(True, "the OSD restarts while full")
      check_reads(scenario, cluster, folder, digests, "after a restart while full")
      remove(scenario, cluster, digests, "object1", "after a restart while full")
      scenario.check_daemons()
    finally:
      ballast.unlink()
    scenario.until(lambda: "OSD_FULL" not in health_checks(cluster), 60, "OSD_FULL goes once there is room")
    digests |= put_objects(cluster, folder, 4)
    check_reads(scenario, cluster, folder, digests, "after writing again")
    scenario.deep_scrub()
    scenario.check_daemons()


def leave_room(path, room_bytes):
  """So that a fill does not take long."""
  stat = os.statvfs(path)
  with open(path / "ballast", "wb") as ballast:
    os.posix_fallocate(ballast.fileno(), 0, max(1 << 20, stat.f_bavail * stat.f_frsize - room_bytes))


def brim_load(cluster, what, *args):
  done = sysroot.run(["python3", BRIM_LOAD, what, cluster.dir / "ceph.conf", BRIM_POOLS, IN_FLIGHT, *args], timeout=1800)
  return json.loads(done.stdout)


def fill_and_empty(scenario, cluster, number):
  begun = time.monotonic()
  filled = brim_load(cluster, "fill", number)
  filled_s = time.monotonic() - begun
  scenario.check_daemons()
  checks = health_checks(cluster)
  scenario.check("OSD_FULL" in checks and "OSD_DOWN" not in checks and not filled["errors"],
                 f"fill {number}: full after {filled['written_bytes'] >> 20} MiB in {filled_s:.0f} s", f"{list(checks)} {filled}")
  emptied = brim_load(cluster, "empty")
  scenario.check(emptied["answered"] == emptied["sent"] and not emptied["errors"],
                 f"fill {number}: {emptied['sent']} objects removed in {time.monotonic() - begun - filled_s:.0f} s", str(emptied))
  scenario.check_daemons()
  scenario.until(lambda: "OSD_FULL" not in health_checks(cluster), 120, f"fill {number}: OSD_FULL is gone")
  return filled["written_bytes"]


def fill_by_clients(scenario):
  cluster = scenario.start(osds=BRIM_OSDS)
  cluster.create_pool("brim", pg_num=16, size=BRIM_OSDS)
  cluster.create_ec_pool("ec-brim")
  cluster.wait_clean()
  if scenario.args.quick:
    for osd in range(BRIM_OSDS):
      leave_room(cluster.osd_dir(osd), QUICK_ROOM_BYTES)
  written = [fill_and_empty(scenario, cluster, number) for number in range(scenario.args.fills or (1 if scenario.args.quick else 30))]
  if len(written) > 1:
    scenario.check(min(written) > 0.5 * written[0], "each fill takes at least half of what the first one took",
                   str([count >> 20 for count in written]))
  scenario.deep_scrub()
  scenario.check_daemons()


def run(scenario):
  if not scenario.args.only_fills:
    fill_by_another_program(scenario)
  if scenario.args.store == "swimstore":
    fill_by_clients(scenario)


OPTIONS = [(("--fills",), {"type": int, "default": 0, "help": "how often clients fill it (default: 30, quick 1)"}),
           (("--only-fills",), {"action": "store_true", "help": "only what clients fill"})]

if __name__ == "__main__":
  scenario_module.main("full-disk", run, __doc__, stores=("swimstore", "kstore", "filestore"), options=OPTIONS)
