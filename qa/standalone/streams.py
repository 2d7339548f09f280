#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a stream of 4 MiB objects costs a pool of 4 KiB objects beside it, in a store with one cube and in one with several.

Two clusters of one OSD stand side by side and take turns. Each has a pool `small` and a pool `large` of one placement
group each; where the store has several cubes, they lie in different ones. In each round `large` is written at depth 4,
and meanwhile `small` is overwritten at depth 16. Printed are the medians and the ratios of the rounds, beside the targets:
3 times the operations and a third of the 99th percentile. And what limits them: `small` without the stream, and how much
of the processors was idle. What is claimed is that the OSDs live and every write succeeds.
"""

import json
import pathlib
import random
import statistics
import subprocess

import scenario as scenario_module
import sysroot
from scenario import UserError

import rados_bench

CUBES = 4
OPERATIONS_TARGET = 3
P99_TARGET = 1 / 3
POOLS_MAX = 2 * CUBES + 1
DEVICE_BYTES = 6 << 30
STREAM_BYTES_MAX = 3 << 30
STREAM_SECONDS_MORE = 3  # than the small pool is measured: its first fill, and starting up


def begin(cluster, pool, size, depth, prefix, seconds, *options):
  return subprocess.Popen(sysroot.command(rados_bench.load_command(
      cluster, pool, "--depth", depth, "--size", size, "--prefix", prefix, "--seconds", seconds, *options)),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def end(process, phase):
  said, _ = process.communicate(timeout=600)
  if process.returncode != 0:
    raise UserError(f"the load ended with {process.returncode}: {said[-500:]}")
  return next(line for line in map(json.loads, said.splitlines()) if line["phase"] == phase)


def processor_times():
  """(idle, all), of the machine since it started."""
  times = [int(word) for word in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
  return times[3] + times[4], sum(times)


class Side:
  """A cluster with so many cubes, and what was measured on it."""

  def __init__(self, scenario, cubes):
    self.cubes = cubes
    self.cluster = scenario.start(1, DEVICE_BYTES, conf={"swimstore cubes": cubes}, name=f"cubes{cubes}")
    self.small, self.large = self._pools()
    self.rounds = []

  def _pools(self):
    """Two pools of one group each; where there are several cubes, in different ones."""
    pools = []
    for number in range(POOLS_MAX):
      pools.append(f"pool{number}")
      self.cluster.create_pool(pools[-1], pg_num=1)
      self.cluster.wait_clean()
      homes = self._homes()
      if number > 0 and (self.cubes == 1 or homes[pools[0]] != homes[pools[-1]]):
        return pools[0], pools[-1]
    raise UserError(f"the groups of {POOLS_MAX} pools all lie in one cube")

  def _homes(self):
    """{pool: the cube of its one group}"""
    names = {str(pool["poolnum"]): pool["poolname"] for pool in self.cluster.ceph_json("osd", "lspools")}
    pools = ((group.partition(".")[0], cube) for group, cube in self.cluster.homes(0).items())
    return {names[number]: cube for number, cube in pools if number in names}

  def measure(self, nth, seconds):
    alone = self._overwrite_small(f"alone{nth}", seconds)
    stream = begin(self.cluster, self.large, "4M", 4, f"large{nth}", seconds + STREAM_SECONDS_MORE, "--phases",
                   "write,delete", "--fill-bytes-max", STREAM_BYTES_MAX)
    before = processor_times()
    small = self._overwrite_small(f"small{nth}", seconds)
    idle, passed = (now - then for now, then in zip(processor_times(), before))
    large = end(stream, "write")
    self.rounds.append({"iops": small["ops"] / small["seconds"], "p99_ms": small["p99_ms"],
                        "MB/s": large["ops"] * 4.194304 / large["seconds"], "iops alone": alone["ops"] / alone["seconds"],
                        "% idle": 100 * idle / passed})
    return self.rounds[-1]

  def _overwrite_small(self, prefix, seconds):
    return end(begin(self.cluster, self.small, "4K", 16, prefix, seconds, "--phases", "write,overwrite,delete",
                     "--fill-seconds", 1), "overwrite")

  def median(self, figure):
    return statistics.median(one[figure] for one in self.rounds)


def spread(one, other, figure):
  ratios = [ours[figure] / theirs[figure] for ours, theirs in zip(one.rounds, other.rounds)]
  return f"{one.median(figure) / other.median(figure):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"


def run(scenario):
  rounds, seconds = (1, 3) if scenario.args.quick else (scenario.args.rounds, scenario.args.seconds)
  one, several = Side(scenario, 1), Side(scenario, CUBES)
  for nth in range(rounds):
    for side in random.sample((one, several), 2):
      found = side.measure(nth, seconds)
      scenario.say(f"round {nth + 1}, {side.cubes} cubes: " + ", ".join(f"{name} {value:.1f}" for name, value in found.items()))
  scenario.say(f"of one cube's: operations {spread(several, one, 'iops')}, 99th percentile {spread(several, one, 'p99_ms')}, "
               f"stream {spread(several, one, 'MB/s')}")
  scenario.say(f"targets: {OPERATIONS_TARGET} and {P99_TARGET:.2f}")
  scenario.check(True, f"{2 * rounds} rounds without a failed write")
  for side in (one, several):
    scenario.cluster = side.cluster
    scenario.check_daemons()


if __name__ == "__main__":
  scenario_module.main("streams", run, __doc__, stores=("swimstore",), options=(
      (("--rounds",), {"type": int, "default": 5, "help": "of both clusters (default: %(default)s)"}),
      (("--seconds",), {"type": float, "default": 4, "help": "of each measurement (default: %(default)s)"})))
