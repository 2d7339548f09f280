#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What `swimstore fsck` of a serving OSD costs its clients, and how long it takes.

One OSD holds a million objects of 4 KiB. A client overwrites and reads them at random, in windows of two seconds, 16
operations at a time, while the store is checked. In every other pair of windows the check is held back, by its rate: short
windows beside each other, since machines are noisy. Claims: the 99th percentile of a window's latency is, in the median of
the pairs, at most 5 % above that of the pair before it; a check of all takes at most 10 minutes; it finds nothing amiss.
"""

import json
import statistics
import subprocess
import time

import scenario as scenario_module
import sysroot
from scenario import GIB, UserError
from rados_bench import load_command

POOL = "checked"
OSD = 0
SIZE = 4096
DEPTH = 16
PHASES = ("overwrite", "rand")
WINDOW_SECONDS = 2
RATE = "swimstore_fsck_online_rate"
HELD_BACK = 1  # entries in a second
PERCENTILE_ALLOWED = 1.05
SECONDS_ALLOWED = 600


class Load:
  """rados_load, which fills the pool and then runs pairs of windows until it is ended."""

  def __init__(self, cluster, objects, pairs):
    fill = load_command(cluster, POOL, "--depth", DEPTH, "--size", SIZE)
    phases = ["write"] + list(PHASES) * pairs
    self._process = subprocess.Popen(
        sysroot.command([*fill, "--fill-bytes-max", objects * SIZE, "--phases", ",".join(phases),
                         "--seconds", WINDOW_SECONDS, "--fill-seconds", 3600]),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

  def next_phase(self):
    line = self._process.stdout.readline()
    if not line.startswith("{"):
      raise UserError(f"rados_load: {line.strip()}{self._process.stdout.read()[-500:]}")
    return json.loads(line)

  def end(self):
    self._process.terminate()
    self._process.wait()


def fsck(cluster, *words):
  return cluster.ask_osd(OSD, " ".join(("swimstore fsck",) + words))


def one_pair(load):
  """{phase: (p99 in ms, operations per second)}"""
  found = {}
  for _ in PHASES:
    told = load.next_phase()
    found[told["phase"]] = (told["p99_ms"], told["ops"] / told["seconds"])
  return found


def cost(scenario, pairs):
  """Each pair without a check, against the one with it that follows."""
  for phase in PHASES:
    for nth, what in enumerate(("99th percentile", "operations per second")):
      ratios = [with_check[phase][nth] / without[phase][nth] for without, with_check in zip(pairs[::2], pairs[1::2])]
      median = statistics.median(ratios)
      least, _, most = statistics.quantiles(ratios, n=4)
      said = (f"{phase}: {what} with a check is {median:.3f} times that without (median of {len(ratios)}, quartiles "
              f"{least:.3f} and {most:.3f})")
      if nth == 0 and not scenario.args.quick:
        scenario.check(median <= PERCENTILE_ALLOWED, said)
      else:
        scenario.say(said)


def run(scenario):
  args = scenario.args
  objects = args.objects or (20000 if args.quick else 1000000)
  rounds = 2 if args.quick else 40
  cluster = scenario.start(osds=1, size_bytes=(2 if args.quick else 20) * GIB, conf={"osd memory target": 4 * GIB})  # the default
  cluster.create_pool(POOL, pg_num=16)
  cluster.wait_clean()
  begun = time.monotonic()
  load = Load(cluster, objects, pairs=3 * rounds + SECONDS_ALLOWED // WINDOW_SECONDS)
  try:
    filled = load.next_phase()
    scenario.say(f"{filled['objects']} objects written in {time.monotonic() - begun:.0f} s")
    one_pair(load)  # what the fill left behind is done meanwhile
    rate = cluster.ask_osd(OSD, "config get", var=RATE)[RATE]
    pairs = []
    for _ in range(rounds):
      for wanted in (HELD_BACK, rate):
        cluster.ask_osd(OSD, "config set", var=RATE, val=[str(wanted)])
        if fsck(cluster, "status")["state"] != "running":
          fsck(cluster)
        pairs.append(one_pair(load))
    cost(scenario, pairs)
    fsck(cluster, "stop")
    expected = fsck(cluster)["estimate"]
    begun = time.monotonic()
    while fsck(cluster, "status")["state"] == "running":
      one_pair(load)
    took = time.monotonic() - begun
  finally:
    load.end()
  found = fsck(cluster, "status")
  scenario.say(f"estimate: {expected['seconds']} s, {expected['entries']} entries, {expected['passes']} passes of "
               f"{expected['memory_bytes'] >> 20} MiB")
  scenario.check(found["state"] == "done", f"a check of {found['objects']} objects, under load, ends", str(found))
  scenario.check(took <= SECONDS_ALLOWED, f"it took {took:.0f} s at most: {SECONDS_ALLOWED} allowed")
  scenario.check(found["errors"] == 0 and found["objects"] >= objects, "it looked at every object and found nothing amiss",
                 str(found))
  scenario.check_daemons()


if __name__ == "__main__":
  scenario_module.main("online-fsck", run, __doc__, stores=("swimstore",), options=(
      (("--objects",), {"type": int, "help": "of 4 KiB (default: 1000000; with --quick 20000)"}),))
