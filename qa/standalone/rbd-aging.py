#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An RBD image overwritten at random for hours, with snapshots taken and trimmed, while OSDs are killed.

Three OSDs. Every few minutes one gets SIGKILL and comes back. At the end every block of the image and of its
snapshots is read and compared, the snapshots are trimmed, and every PG is deep-scrubbed. Watched are
allocated bytes beside stored ones, each OSD's memory beside its target, and p99 of the writes' latency, which
is drawn. At the end allocated bytes are set beside the blocks that there are, with the snapshots and without.
"""

import json
import pathlib
import random
import subprocess
import time

import scenario as scenario_module
import sysroot
from scenario import GIB, UserError

HERE = pathlib.Path(__file__).resolve().parent
LOAD = HERE / "rbd_load.py"
PLOT = HERE.parent / "bench" / "plot_aging.py"
OSDS = 3
POOL = "aging"
SPACE_MAX = 1.15       # allocated beside stored
SETTLE_SECONDS = 60    # after the load's end
DOWN_SECONDS = 15
LOOK_SECONDS = 1       # how often an OSD asks its store for space
# What the target speaks of is the daemon's heap; the program's own pages are not in it.
PROGRAM_BYTES = 128 << 20


def load_command(cluster, mode, *more):
  return sysroot.command(["python3", LOAD, mode, cluster.dir / "ceph.conf", POOL, cluster.dir / "run" / "aging.model", *more])


def run_load(scenario, cluster, mode, what, *more):
  done = subprocess.run(load_command(cluster, mode, *more), text=True, stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=3600)
  said = done.stdout.strip().splitlines() or ["no output"]
  scenario.check(done.returncode == 0, f"{what}: {said[0]}" if mode == "verify" else what, "\n".join(said[:10]))
  return said[0]


def allocated_beside_stored(cluster):
  space = cluster.space()
  return space["allocated"] / max(space["data_stored"], 1)


class Watch:
  """What the OSDs took, from time to time."""

  def __init__(self, cluster):
    self.cluster = cluster
    self.begun = time.monotonic()
    self.samples = []  # seconds, allocated beside stored, the largest OSD's memory

  def look(self):
    ratio = allocated_beside_stored(self.cluster)
    memory = max((self.cluster.osd_memory_bytes(osd) for osd in range(OSDS)), default=0)
    self.samples.append((time.monotonic() - self.begun, ratio, memory))


def disturb(scenario, cluster, client, rng, watch, seconds, every):
  """Kill and start until the time is up, or the client gives up."""
  end = time.monotonic() + seconds
  next_kill = time.monotonic() + every
  kills = 0
  while time.monotonic() < end and client.poll() is None and not any(cluster.osd_crashed(osd) for osd in range(OSDS)):
    if time.monotonic() >= next_kill:
      osd = rng.randrange(OSDS)
      cluster.kill_osd(osd)
      time.sleep(min(DOWN_SECONDS, every / 4))
      cluster.start_osd(osd)
      cluster.wait_up(timeout=180)
      kills += 1
      next_kill = time.monotonic() + every
    time.sleep(min(5, every / 4))
    watch.look()
  scenario.check(kills > 0, f"{kills} times an OSD was killed")


def age(scenario, cluster, rng, minutes):
  args = scenario.args
  watch = Watch(cluster)
  command = load_command(cluster, "load", rng.randrange(1 << 32), args.snapshot_every or minutes * 60 / 24,
                         args.writes_per_second)
  client = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
  try:
    if client.stdout.readline().strip() != "loading":
      raise UserError(f"the load does not start: {client.communicate()[0].strip()[-500:]}")
    disturb(scenario, cluster, client, rng, watch, minutes * 60, args.kill_every * 60)
    said, _ = client.communicate(timeout=600)
  finally:
    if client.poll() is None:
      client.kill()
      client.wait()
  scenario.check_daemons()
  scenario.check(client.returncode == 0, "no write failed", said.strip())
  return watch


def check_space_during(scenario, watch):
  """A weak bound: `stored` counts what snapshots share once for each."""
  during = max((ratio for _, ratio, _ in watch.samples), default=0)
  scenario.check(during <= SPACE_MAX, f"allocated beside stored while it ran: at most {during:.3f}",
                 f"more than {SPACE_MAX}")


def check_space(scenario, cluster, when):
  """Beside the blocks that there are, each counted once; with nothing under way."""
  scenario.until_trimmed()
  held_bytes = OSDS * int(run_load(scenario, cluster, "held", f"the blocks {when} are counted"))
  end = time.monotonic() + SETTLE_SECONDS
  ratio = SPACE_MAX + 1
  while ratio > SPACE_MAX and time.monotonic() < end:
    time.sleep(2 * LOOK_SECONDS)
    ratio = cluster.space()["allocated"] / held_bytes
  scenario.check(ratio <= SPACE_MAX, f"allocated beside held {when}: {ratio:.3f}", f"more than {SPACE_MAX}")


def check_memory(scenario, watch):
  most = max((memory for _, _, memory in watch.samples), default=0)
  bound = scenario.cluster.spec.osd_memory_target + PROGRAM_BYTES
  scenario.check(0 < most <= bound, f"an OSD's memory: at most {most >> 20} MiB, its target is "
                 f"{scenario.cluster.spec.osd_memory_target >> 20}")


def tell(scenario, cluster, watch, minutes):
  """p99 of twelve equal parts of the run: of ten minutes each in the long form."""
  results = scenario.results / "rbd-aging.json"
  sysroot.run(["python3", PLOT, cluster.dir / "run" / "aging.model.latencies", minutes * 60 / 12, results,
               results.with_suffix(".png")], stdin=json.dumps(watch.samples), timeout=600)
  for entry in json.loads(results.read_text())["latency"]:
    scenario.say(f"from {entry['from_s']:6.0f} s: {entry['writes']} writes, p50 {entry['p50_ms']:.1f} ms, "
                 f"p99 {entry['p99_ms']:.1f} ms, max {entry['max_ms']:.0f} ms")
  scenario.say(f"{results}, {results.with_suffix('.png').name}")


def run(scenario):
  args = scenario.args
  args.kill_every = args.kill_every or (0.25 if args.quick else 5)
  minutes = args.minutes or (0.6 if args.quick else 120)
  mib = (args.image_size or (64 << 20 if args.quick else 2 << 30)) >> 20
  rng = random.Random(args.seed)
  scenario.results = sysroot.CHECKOUT / "build"
  scenario.say(f"{minutes} minutes, an image of {mib} MiB, seed {args.seed}")
  cluster = scenario.start(osds=OSDS, size_bytes=args.size or (2 if args.quick else 8) * GIB,
                           conf={"osd heartbeat interval": LOOK_SECONDS})
  cluster.create_pool(POOL, pg_num=16, size=OSDS, application="rbd")
  cluster.wait_clean()
  run_load(scenario, cluster, "fill", "the image is written", mib)
  watch = age(scenario, cluster, rng, minutes)
  if scenario.failures:
    return
  cluster.wait_clean(600)
  run_load(scenario, cluster, "verify", "every block of the image and of its snapshots is right")
  check_space_during(scenario, watch)
  check_space(scenario, cluster, "with the snapshots")
  run_load(scenario, cluster, "trim", "the snapshots are removed")
  check_space(scenario, cluster, "without them")
  check_memory(scenario, watch)
  tell(scenario, cluster, watch, minutes)
  scenario.check_daemons()
  scenario.deep_scrub(timeout=1800)


if __name__ == "__main__":
  scenario_module.main("rbd-aging", run, __doc__, stores=("swimstore", "bluestore"), options=(
      (("--minutes",), {"type": float, "help": "of load (default: 120; with --quick 0.6)"}),
      (("--kill-every",), {"type": float, "metavar": "MINUTES", "help": "(default: 5; with --quick 0.25)"}),
      (("--snapshot-every",), {"type": float, "metavar": "SECONDS", "help": "(default: 24 in all)"}),
      (("--writes-per-second",), {"type": float, "default": 0, "metavar": "N",
                                  "help": "at most (default: as many as 16 at a time make)"}),
      (("--image-size",), {"type": scenario_module.size, "help": "in whole MiB (default: 2G; with --quick 64M)"}),
      (("--size",), {"type": scenario_module.size, "help": "of each OSD's device (default: 8G; with --quick 2G)"}),
      (("--seed",), {"type": int, "default": random.randrange(1 << 32), "help": "of the load and the kills"})))
