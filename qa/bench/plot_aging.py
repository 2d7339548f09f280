#!/usr/bin/env python3
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


def parts_of(latencies, part_s):
  """One entry for each part of the run in which a write began."""
  parts = {}
  for began_s, took_ms in zip(latencies[::2], latencies[1::2]):
    parts.setdefault(int(began_s / part_s), []).append(took_ms)
  result = []
  for number, found in sorted(parts.items()):
    found.sort()
    result.append({"from_s": number * part_s, "writes": len(found), "p50_ms": found[len(found) // 2],
                   "p99_ms": found[len(found) * 99 // 100], "max_ms": found[-1]})
  return result


def draw(parts, part_s, samples, target):
  figure, axes = plt.subplots(3, 1, figsize=(10, 10), sharex=True, layout="constrained")
  at = [part["from_s"] / 60 for part in parts]
  axes[0].step(at, [part["p99_ms"] for part in parts], where="post", marker="o", label=f"p99 of {part_s / 60:g} minutes")
  axes[0].step(at, [part["p50_ms"] for part in parts], where="post", marker="o", label="median")
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


def main(source, part_s, results, picture):
  latencies = array.array("d", pathlib.Path(source).read_bytes())
  samples = json.load(sys.stdin)
  parts = parts_of(latencies, float(part_s))
  with open(results, "w") as out:
    json.dump({"latency": parts, "samples": samples}, out, indent=1)
  draw(parts, float(part_s), samples, picture)


if __name__ == "__main__":
  main(*sys.argv[1:])
