#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draw a bench's JSON: plot_bench.py RESULTS.json PICTURE.png. Runs inside the sysroot, where matplotlib is.

One panel for each kind of load, one bar for each size: operations per second beside BlueStore's, on a linear axis that
begins at 0. A bar is the ratio of the medians; its error bar goes from the lowest round to the highest.
"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from units import show_size  # noqa: E402

PANELS = (("write", None, "write, first fill"), ("write", "overwrite", "write, steady overwrite"),
          ("seq", None, "sequential read"), ("rand", None, "random read"), ("cold", None, "cold random read"))
BARS_WIDTH = 0.8  # of all stores, at one size
NOTE = ("bar: ratio of the medians\nerror bar: lowest and highest round\n"
        "hatched: measured for too short to be a result\nline at 1: BlueStore")


def entries_of(results, store, mode, part):
  found = [entry for entry in results if entry["store"] == store and entry["mode"] == mode]
  return {entry["size_bytes"]: entry.get(part, {}) if part else entry for entry in found}


def draw_store(axis, place, width, entries, sizes, store, color):
  """`place`: of its bar at the first size."""
  label = store
  for at, size in enumerate(sizes):
    entry = entries.get(size, {})
    ratio = entry.get("ratio_to_bluestore")
    if ratio is None:
      continue
    axis.bar(at + place, ratio, width, label=label, color=color, hatch=None if entry["is_result"] else "//")
    label = None
    lowest, highest = entry["ratio_lowest"], entry["ratio_highest"]
    if lowest is not None:
      # About the rounds' own middle: the ratio of the medians may lie outside them.
      axis.errorbar(at + place, (lowest + highest) / 2, (highest - lowest) / 2, fmt="none", ecolor="black", capsize=4)


def draw(results):
  stores = [store for store in dict.fromkeys(entry["store"] for entry in results) if store != "bluestore"]
  sizes = sorted({entry["size_bytes"] for entry in results})
  width = BARS_WIDTH / max(1, len(stores))
  figure, axes = plt.subplots(2, 3, figsize=(12, 6.5), sharey=True, layout="constrained")
  for axis, (mode, part, title) in zip(axes.flat, PANELS):
    for nth, store in enumerate(stores):
      place = (nth - (len(stores) - 1) / 2) * width
      draw_store(axis, place, width, entries_of(results, store, mode, part), sizes, store, f"C{nth}")
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_title(title)
    axis.set_xticks(range(len(sizes)), [show_size(size) for size in sizes])
    axis.grid(axis="y", alpha=0.3)
    axis.set_axisbelow(True)
  axes[0, 0].set_ylim(bottom=0)  # of all panels, and fixed from now on: when they hold what they will
  for axis in axes[:, 0]:
    axis.set_ylabel("operations per second, BlueStore = 1")
  key = axes.flat[-1]
  key.set_axis_off()
  key.legend(*axes.flat[0].get_legend_handles_labels(), loc="upper left", title=NOTE, alignment="left", frameon=False)
  return figure


def main(source, target):
  with open(source) as file:
    results = json.load(file)["results"]
  draw(results).savefig(target, dpi=100, format="png")


if __name__ == "__main__":
  main(*sys.argv[1:])
