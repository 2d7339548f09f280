#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What one 4 KiB overwrite costs at the block device, one transaction at a time, from the kernel's own counters.

swimstore_bench overwrites on a file system of its own; meanwhile this scenario samples the loop device. Claims:
one flush per transaction; at most 8 KiB in the foreground (the lower quartile of the samples: those that no background
write falls in); at most 9 KiB with all background work over 5 minutes of steady state. Steady it is when what is done
once is done: the blocks have left the 4 MiB slots they were filled in for slots of their own, the log and the slots
written ahead have reached their size. So the working set is small and the first minutes do not count. (--quick: 20 s,
too short for this last claim, which is left out then.)
"""

import json
import pathlib
import statistics
import subprocess
import time

import scenario as scenario_module
import sysroot
from scenario import GIB, UserError
from loop_disk import mounted, read_counters

FLUSHES_PER_OP_MAX = 1.01
FOREGROUND_BYTES_MAX = 8 * 1024
TOTAL_BYTES_MAX = 9 * 1024
SAMPLE_SECONDS = 0.5
WARM_UP_SECONDS = 150
OBJECTS = 8  # of 4 MiB, in each of two PGs


def measure(scenario, disk, directory, seconds, result):
  """Run the bench; returns its result and the counters sampled along."""
  options = [f"--{name.replace(' ', '_')}={value}" for name, value in scenario.args.conf]
  bench = sysroot.built("swimstore_bench")
  if not bench.exists():
    raise UserError(f"{bench}: no such program; build it first")
  process = subprocess.Popen(sysroot.command([bench, "--store", "swimstore", "--op", "overwrite", "--size", "4K",
                                              "--depth", 1, "--objects", OBJECTS, "--seconds", seconds, "--path", directory, "--json",
                                              result, "--", *options]),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
  samples = []
  while process.poll() is None:
    samples.append(read_counters(disk.device()))
    time.sleep(SAMPLE_SECONDS)
  if process.returncode != 0:
    raise UserError(f"swimstore_bench: exit {process.returncode}: {process.stdout.read()[-1000:]}")
  found = json.loads(pathlib.Path(result).read_text())["results"][0]
  return found, samples


def foreground_bytes(samples):
  """Bytes per flush in each sample, their lower quartile. With one flush per transaction that is per transaction.

  Not the median: on a fast device half of the samples have a background write in them. And the two counters are not
  read in one instant, so samples without one lie a tenth of a percent about the true figure.
  """
  steps = [after - before for before, after in zip(samples, samples[1:])]
  per_flush = [step.written_bytes / step.flushes for step in steps if step.flushes > 10]
  if len(per_flush) < 10:
    raise UserError(f"only {len(per_flush)} samples with flushes; run longer")
  return statistics.quantiles(per_flush, n=4)[0]


def total_bytes(samples, seconds):
  """Bytes per flush over the last `seconds`, background work included."""
  last = samples[-1] - samples[max(0, len(samples) - 1 - int(seconds / SAMPLE_SECONDS))]
  return last.written_bytes / last.flushes


def run(scenario):
  steady = scenario.args.seconds or (20 if scenario.args.quick else 300)
  seconds = steady if scenario.args.quick else WARM_UP_SECONDS + steady
  folder = sysroot.cache_dir() / "scenarios" / "overwrite-cost"
  with mounted(folder, 2 * GIB, scenario.args.fs, scenario.say, keep=scenario.args.keep) as disk:
    (folder / "mnt" / "store").mkdir()
    found, samples = measure(scenario, disk, folder / "mnt" / "store", seconds, folder / "result.json")
  scenario.say(f"{found.get('iops', 0):.0f} transactions per second for {seconds} s on {scenario.args.fs}")
  for quarter in range(4):
    begin, end = (samples[(len(samples) - 1) * edge // 4] for edge in (quarter, quarter + 1))
    step = end - begin
    scenario.say(f"quarter {quarter + 1}: {step.written_bytes >> 10} KiB, {step.flushes} flushes, "
                 f"{step.written_bytes / max(1, step.flushes):.0f} bytes per flush")
  flushes, total, foreground = (found["device_flushes_per_op"], total_bytes(samples, steady),
                                foreground_bytes(samples))
  scenario.check(0 < flushes <= FLUSHES_PER_OP_MAX, f"{flushes:.3f} flushes per transaction: 1 allowed")
  scenario.check(0 < foreground <= FOREGROUND_BYTES_MAX, f"{foreground:.0f} bytes in the foreground: "
                 f"{FOREGROUND_BYTES_MAX} allowed")
  if scenario.args.quick:
    scenario.say(f"{total:.0f} bytes with all background work: says nothing yet, what is done once weighs too much")
  else:
    scenario.check(0 < total <= TOTAL_BYTES_MAX,
                   f"{total:.0f} bytes with all background work: {TOTAL_BYTES_MAX} allowed")


if __name__ == "__main__":
  scenario_module.main("overwrite-cost", run, __doc__, stores=("swimstore",), options=(
      (("--seconds",), {"type": int, "help": "of steady state (default: 300; with --quick 20 in all)"}),))
