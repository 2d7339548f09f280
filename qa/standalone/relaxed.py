#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What relaxed pools gain on a device whose flushes take long: swimstore_relaxed_pools.

The store lies on a loop device that delays each flush (fault_disk). swimstore_bench writes objects of 4 KiB in a pool
that is relaxed and in one that is not, by turns. Printed are the operations a second, latencies, flushes of the device
for each operation, and the ratio of each pair. Claimed is that with one write of new objects in flight each pair's is
at least 20 where a flush takes 5 ms or more, and that no pair loses. --quick: that first load alone.
"""

import json
import shutil

import scenario as scenario_module
import sysroot
from fault_disk import FaultDisk
from loop_disk import mounted
from scenario import GIB, UserError

POOL = 1  # of swimstore_bench's objects
LOADS = (("write", 1, 1), ("write", 16, 2), ("overwrite", 1, 1), ("overwrite", 16, 2))  # what, in flight, threads
RATIO_MIN = 20
SLOW_MS = 5


def measure(scenario, where, load, relaxed):
  """One run on a store made for it; its line of results."""
  op, depth, threads = load
  folder = where / "store"
  shutil.rmtree(folder, ignore_errors=True)
  result = where / "result.json"
  bench = sysroot.built("swimstore_bench")
  if not bench.exists():
    raise UserError(f"{bench}: no such program; build it first (qa/enter.sh ninja -C build swimstore_bench)")
  options = [f"--{name.replace(' ', '_')}={value}" for name, value in scenario.args.conf]
  pools = ["--swimstore_relaxed_pools", POOL] if relaxed else []
  sysroot.run([bench, "--op", op, "--size", "4K", "--depth", depth, "--threads", threads, "--seconds",
               scenario.args.seconds, "--path", folder, "--json", result, "--", *options, *pools],
              timeout=scenario.args.seconds + 300)
  return json.loads(result.read_text())["results"][0]


def told(result):
  return (f"{result['iops']:8.0f} a second, median {result['p50_ms']:.2f} ms, p99 {result['p99_ms']:.2f} ms, "
          f"{result['device_flushes_per_op']:.3f} flushes each")


def run(scenario):
  args = scenario.args
  with mounted(scenario.directory(), 4 * GIB, args.fs, scenario.say, make=FaultDisk) as disk:
    where = scenario.directory() / "mnt"
    disk.delay_syncs(args.flush_ms)
    scenario.say(f"a flush of {disk.device()} takes {args.flush_ms} ms, and what it took before")
    for load in LOADS[:1] if args.quick else LOADS:
      op, depth, _ = load
      ratios = []
      for _ in range(args.rounds):
        strict, relaxed = (measure(scenario, where, load, relaxed) for relaxed in (False, True))
        ratios.append(relaxed["iops"] / strict["iops"])
        scenario.say(f"{op}, {depth} in flight: strict  {told(strict)}")
        scenario.say(f"{op}, {depth} in flight: relaxed {told(relaxed)}: {ratios[-1]:.1f} times as many")
      line = f"{op}, {depth} in flight: relaxed to strict {', '.join(f'{ratio:.1f}' for ratio in ratios)}"
      if (op, depth) == ("write", 1) and args.flush_ms >= SLOW_MS:
        scenario.check(min(ratios) >= RATIO_MIN, f"{line}; at least {RATIO_MIN}")
      else:
        scenario.check(min(ratios) > 1, line)


if __name__ == "__main__":
  scenario_module.main("relaxed", run, __doc__, stores=("swimstore",), options=(
      (("--flush-ms",), {"type": float, "default": SLOW_MS, "help": "(default: %(default)s)"}),
      (("--rounds",), {"type": int, "default": 3, "help": "pairs of each load (default: %(default)s)"}),
      (("--seconds",), {"type": int, "default": 3, "help": "of each measurement (default: %(default)s)"})))
