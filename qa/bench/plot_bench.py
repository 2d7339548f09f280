#!/usr/bin/env python3
"""Draw a bench's JSON: plot_bench.py RESULTS.json PICTURE.png. Runs inside the sysroot, where matplotlib is."""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from units import show_size  # noqa: E402

PANELS = (("write", None, "write, first fill"), ("write", "overwrite", "write, steady overwrite"),
          ("seq", None, "sequential read"), ("rand", None, "random read"), ("cold", None, "cold random read"))


def main(source, target):
  with open(source) as file:
    results = json.load(file)["results"]
  stores = [store for store in dict.fromkeys(entry["store"] for entry in results) if store != "bluestore"]
  sizes = sorted({entry["size_bytes"] for entry in results})
  figure, axes = plt.subplots(2, 3, figsize=(18, 8), layout="constrained")
  axes.flat[-1].remove()
  for axis, (mode, part, title) in zip(axes.flat, PANELS):
    for nth, store in enumerate(stores):
      found = {entry["size_bytes"]: entry.get(part, {}) if part else entry
               for entry in results if entry["store"] == store and entry["mode"] == mode}
      width = 0.8 / len(stores)
      label = store
      for at, size in enumerate(sizes):
        entry = found.get(size, {})
        ratio = entry.get("ratio_to_bluestore")
        if ratio is None:
          continue
        lowest, highest = (ratio if entry[name] is None else entry[name] for name in ("ratio_lowest", "ratio_highest"))
        axis.bar(at + nth * width, ratio, width, label=label, color=f"C{nth}", hatch=None if entry["is_result"] else "//")
        axis.vlines(at + nth * width, lowest, highest, color="black")
        label = None
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_title(title)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("operations per second, BlueStore = 1")
    axis.set_xticks([at + 0.4 - 0.4 / max(1, len(stores)) for at in range(len(sizes))], [show_size(size) for size in sizes])
    axis.grid(axis="y", alpha=0.3)
    if axis.get_legend_handles_labels()[0]:
      axis.legend()
  figure.suptitle("median of the rounds, lowest and highest round; hatched: measured for too short to be a result")
  figure.savefig(target, dpi=110, format="png")


if __name__ == "__main__":
  main(*sys.argv[1:])
