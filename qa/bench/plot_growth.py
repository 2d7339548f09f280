#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draw what qa/standalone/growth.py measured: plot_growth.py PICTURE.png, its JSON on stdin. Runs inside the sysroot,
where matplotlib is.

One panel for each figure, one line for each store, over the number of objects. An axis is linear from 0, so that flat
looks flat, but for what goes over powers of ten: reads from the caches and from the device, fsck.
"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# Operation, its figure, title, scale.
PANELS = (("write", "iops", "write of new objects, a second", "linear"),
          ("write", "processor_us_per_op", "processor time for a write, µs", "linear"),
          ("write", "device_bytes_per_op", "bytes at the device for a write", "linear"),
          ("overwrite", "iops", "overwrite at random, a second", "linear"),
          ("read", "iops", "random read, a second", "log"),
          ("list", "objects_per_s", "listing, objects a second", "linear"),
          ("crash", "first_write_s", "after kill -9: to first read and write, s", "linear"),
          ("fsck", "seconds", "fsck, s", "log"),
          ("read", "resident_mib", "memory of the process, MiB", "linear"))


def draw_panel(axis, results, op, key, scale):
  found = [(entry["store"], entry["objects"], entry[op][key]) for entry in results if entry[op].get(key) is not None]
  for store in dict.fromkeys(store for store, _, _ in found):
    axis.plot(*zip(*((count, value) for its, count, value in found if its == store)), marker="o", label=store)
  axis.set_xscale("log")
  axis.set_yscale(scale)
  if scale == "linear":
    axis.set_ylim(0, 1.1 * max((value for _, _, value in found), default=1))
  axis.grid(alpha=0.3)


def draw(results):
  figure, axes = plt.subplots(3, 3, figsize=(12, 9), sharex=True, layout="constrained")
  for axis, (op, key, title, scale) in zip(axes.flat, PANELS):
    draw_panel(axis, results, op, key, scale)
    axis.set_title(title)
  for axis in axes[-1]:
    axis.set_xlabel("objects of 4 KiB")
  axes[0, 0].legend()
  return figure


def main(target):
  draw(json.load(sys.stdin)["results"]).savefig(target, dpi=100, format="png")


if __name__ == "__main__":
  main(*sys.argv[1:])
