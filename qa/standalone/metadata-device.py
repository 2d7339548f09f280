#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An OSD whose log and tree lie on a device of their own.

First what an operator may meet: kill -9 under load, a start while that device is not mounted, log and tree moved into
the store's directory and out again; each time all that was acknowledged is there, and deep fsck and deep scrub find
nothing.

Then, beside BlueStore (Debian's ceph-osd) with its block.db on such a device, a data disk that does so many reads and
writes in a second and no more, and takes its time for each flush, as one that spins: new objects of 4 KiB, 64 KiB and
4 MiB with 16 in flight, the same ones overwritten in random order and read. The clusters stand side by side and take
turns. SwimStore without a second device is the third. BlueStore defers small writes, and what it still owes its data
disk at the end of a turn it may do at full speed, uncounted; it keeps what it writes in its cache, as SwimStore does.
Medians and what the disk did are told; of them nothing is claimed. --quick leaves that out.
"""

import json
import pathlib
import random
import statistics
import subprocess

import scenario as scenario_module
import sysroot
from kill9 import POOL, acked_load, load_until_killed
from scenario import FSCK_ON_MOUNT, GIB, UserError

import rados_bench
from loop_disk import unmount

OSD = 0
METADATA_BYTES = 2 * GIB
SIZES = {"4K": 4096, "64K": 65536, "4M": 4 << 20}
PHASES = ("write", "overwrite", "rand")
BENCH_POOL = "bench"
FILL_BYTES_MAX = 1 << 30
# Whatever the kernel says of the loop device; and its reads of what it wrote are from memory, as ours.
CONF = {"bluestore debug enforce settings": "hdd", "bluestore default buffered write": "true"}
FLUSH_MS = 8  # a turn of a disk with 7,200 in a minute


class Operator:
  """What is done to the one OSD, and what is acknowledged by it."""

  def __init__(self, scenario):
    self.scenario = scenario
    self.rng = random.Random(scenario.args.seed)
    self.cluster = scenario.start(1, size_bytes=2 * GIB, metadata_bytes=METADATA_BYTES)
    self.cluster.create_pool(POOL, pg_num=16, size=1)
    self.cluster.wait_clean()
    self.model = self.cluster.dir / "run" / "acked.model"
    self.mount = self.cluster.metadata_dir(OSD)
    self.there = self.mount / "store"

  def load(self, seconds):
    load_until_killed(self.scenario, self.cluster, self.model, self.rng.randrange(1 << 32), seconds)

  def start(self, when):
    self.cluster.start_osd(OSD, *FSCK_ON_MOUNT["swimstore"])
    self.cluster.wait_up(timeout=180)
    done = subprocess.run(acked_load(self.cluster, "verify", self.model, 0), text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
    lines = done.stdout.strip().splitlines() or ["no output"]
    self.scenario.check(done.returncode == 0, f"{when}: {lines[-1]}", "\n".join(lines[:10]))
    self.scenario.check_daemons()

  def tool(self, *words):
    return json.loads(sysroot.run([self.cluster.spec.beside_osd("ceph-swimstore-tool"), "--format", "json",
                                   *words[:1], self.cluster.osd_dir(OSD), *words[1:]], timeout=600).stdout)

  def check_place(self, when):
    """Log and tree lie there, and there alone; and the OSD says so."""
    own = sorted(path.name for path in (self.cluster.osd_dir(OSD) / "cubes/0").iterdir() if any(path.rglob("*.log"))
                 or path.name in ("manifest", "tree"))
    self.scenario.check((self.there / "0/manifest").exists() and not own, f"{when}: log and tree lie on their device",
                        str(own))
    told = self.cluster.ceph_json("osd", "metadata", str(OSD))
    device = pathlib.Path(self.cluster.metadata_disk(OSD).device()).name
    self.scenario.check((told.get("swimstore_metadata_path"), told.get("swimstore_metadata_device")) ==
                        (str(self.there), device),
                        f"{when}: the OSD tells of it", str(told))


def operate(scenario):
  one = Operator(scenario)
  cluster = one.cluster
  one.check_place("a new store")
  for nth in range(1 if scenario.args.quick else 10):
    one.load(one.rng.uniform(0.5, 4.0))
    one.start(f"kill {nth + 1}")

  cluster.stop_osd(OSD)
  unmount(one.mount)
  try:
    cluster.start_osd(OSD)
    scenario.check(False, "without its second device the OSD does not start")
    cluster.stop_osd(OSD)
  except UserError as refused:
    scenario.check(f"should lie in {one.there}" in str(refused) and "Mount its file system" in str(refused),
                   "without its second device the OSD does not start, and names it", str(refused))
  cluster.metadata_disk(OSD).mount(one.mount, scenario.args.fs)
  one.start("mounted again")

  cluster.stop_osd(OSD)
  moved = one.tool("move-metadata", "--back")
  scenario.check(moved["moved"] and not any(path.is_file() and path.name != "lock" for path in one.there.rglob("*")),
                 "log and tree move back, and leave nothing but a lock", str(moved))
  one.start("moved back")
  one.load(1.0)
  moved = one.tool("move-metadata", "--to", one.there)
  scenario.check(moved["moved"] and moved["copied_bytes"] > 0, "and out again", str(moved))
  one.start("moved out")
  one.check_place("moved out")
  if not scenario.args.quick:
    scenario.deep_scrub()


# ---- beside BlueStore, on a slow disk

class Contender:
  def __init__(self, scenario, name, store, metadata_bytes):
    self.scenario, self.name = scenario, name
    self.cluster = scenario.start(1, size_bytes=8 * GIB, store=store, name=name.replace(" ", "-"), fault_disks=True,
                                  metadata_bytes=metadata_bytes, conf=CONF if store == "bluestore" else None)
    self.cluster.create_pool(BENCH_POOL, pg_num=16)
    self.cluster.wait_clean()
    self.found = {}  # (size, phase): operations in a second of each round, and p99

  def measure(self, size, nth, seconds, operations):
    disk = self.cluster.disk(OSD)
    disk.limit(operations)
    disk.delay_syncs(FLUSH_MS)
    command = rados_bench.load_command(
        self.cluster, BENCH_POOL, "--depth", rados_bench.DEPTH, "--size", SIZES[size], "--seconds", seconds,
        "--fill-bytes-max", FILL_BYTES_MAX, "--seed", nth + 1, "--prefix", f"bench_{nth}_{size}",
        "--state", self.cluster.dir / "run" / "load_state", "--phases", ",".join(PHASES))
    before = disk.status()
    for line in map(json.loads, sysroot.run(command, timeout=120 + 40 * seconds).stdout.splitlines()):
      if line["phase"] in PHASES and line["ops"]:
        self.found.setdefault((size, line["phase"]), []).append((line["ops"] / line["seconds"], line["p99_ms"]))
    after = disk.status()
    self.scenario.say(f"{self.name}, {size}: {after['writes'] - before['writes']} writes and "
                      f"{after['reads'] - before['reads']} reads of the data disk; "
                      + ", ".join(f"{phase} {self.found[size, phase][-1][0]:.0f}/s" for phase in PHASES
                                  if (size, phase) in self.found))
    disk.limit(0)  # what it put off is not the next one's
    disk.delay_syncs(0)
    if not rados_bench.wait_quiet(self.cluster, 60, 1):
      self.scenario.check(False, f"{self.name}: its disk is quiet before the other's turn", "not after 60 s")


def compare(scenario):
  args = scenario.args
  contenders = [Contender(scenario, "swimstore", "swimstore", METADATA_BYTES),
                Contender(scenario, "bluestore", "bluestore", METADATA_BYTES),
                Contender(scenario, "swimstore alone", "swimstore", 0)]
  for nth in range(args.rounds):
    for size in SIZES:
      for one in random.sample(contenders, len(contenders)):
        one.measure(size, nth, args.seconds, args.operations)
  scenario.say(f"operations in a second (p99 in ms), medians of {args.rounds} rounds of {args.seconds} s; a data disk "
               f"of {args.operations} operations in a second:")
  print("| | " + " | ".join(one.name for one in contenders) + " |")
  for size in SIZES:
    for phase in PHASES:
      cells = []
      for one in contenders:
        rounds = one.found.get((size, phase), [(0, 0)])
        cells.append(f"{statistics.median(rate for rate, _ in rounds):.0f} "
                     f"({statistics.median(p99 for _, p99 in rounds):.1f})")
      print(f"| {size} {phase} | " + " | ".join(cells) + " |", flush=True)
  for one in contenders:
    scenario.cluster = one.cluster
    scenario.check_daemons()


def run(scenario):
  scenario.say(f"seed {scenario.args.seed}")
  if not scenario.args.only_bench:
    operate(scenario)
    scenario.cluster.remove()
  if not scenario.args.quick:
    compare(scenario)


if __name__ == "__main__":
  scenario_module.main("metadata-device", run, __doc__, stores=("swimstore",), options=(
      (("--rounds",), {"type": int, "default": 3, "help": "beside BlueStore (default: %(default)s)"}),
      (("--seconds",), {"type": int, "default": 20, "help": "of each phase (default: %(default)s)"}),
      (("--operations",), {"type": int, "default": 150, "help": "of the data disk in a second (default: %(default)s)"}),
      (("--only-bench",), {"action": "store_true", "help": "only the part beside BlueStore"}),
      (("--seed",), {"type": int, "default": random.randrange(1 << 32), "help": "of the moments and the load"})))
