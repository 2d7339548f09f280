#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Summarize and draw what rbd-aging.py measured: plot_aging.py LATENCIES PART_SECONDS RESULTS.json PICTURE.png

LATENCIES: doubles, for each write the second in which it began and the milliseconds that it took (rbd_load.py). Reads from its stdin a list of [seconds, allocated beside stored, bytes of memory]. Runs inside the sysroot, where
matplotlib is.
"""

import array
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def intervals_of(latencies, interval_s):
  """One entry for each interval of the run in which a write began."""
  intervals = {}
  for began_s, took_ms in zip(latencies[::2], latencies[1::2]):
    intervals.setdefault(int(began_s / interval_s), []).append(took_ms)
  result = []
  for number, found in sorted(intervals.items()):
    found.sort()
    result.append({"from_s": number * interval_s, "writes": len(found), "p50_ms": found[len(found) // 2],
                   "p99_ms": found[len(found) * 99 // 100], "max_ms": found[-1]})
  return result


def draw(intervals, interval_s, samples, target):
  figure, axes = plt.subplots(3, 1, figsize=(10, 10), sharex=True, layout="constrained")
  at = [interval["from_s"] / 60 for interval in intervals]
  axes[0].step(at, [interval["p99_ms"] for interval in intervals], where="post", marker="o",
               label=f"p99 of {interval_s / 60:g} minutes")
  axes[0].step(at, [interval["p50_ms"] for interval in intervals], where="post", marker="o", label="median")
  axes[0].set_ylabel("latency of a write, ms")
  axes[0].set_ylim(bottom=0)
  axes[0].legend()
  minutes = [seconds / 60 for seconds, _, _ in samples]
  axes[1].plot(minutes, [ratio for _, ratio, _ in samples])
  axes[1].set_ylabel("allocated beside stored")
  axes[2].plot(minutes, [memory / (1 << 20) for _, _, memory in samples])
  axes[2].set_ylabel("memory of the largest OSD, MiB")
  axes[2].set_ylim(bottom=0)
  axes[2].set_xlabel("minutes")
  for axis in axes:
    axis.grid(alpha=0.3)
  figure.savefig(target, dpi=110, format="png")


def main(source, interval_s, results, picture):
  latencies = array.array("d", pathlib.Path(source).read_bytes())
  samples = json.load(sys.stdin)
  intervals = intervals_of(latencies, float(interval_s))
  with open(results, "w") as out:
    json.dump({"latency": intervals, "samples": samples}, out, indent=1)
  draw(intervals, float(interval_s), samples, picture)


if __name__ == "__main__":
  main(*sys.argv[1:])
