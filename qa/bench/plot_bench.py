#!/usr/bin/env python3
"""Draw a bench's JSON: plot_bench.py RESULTS.json PICTURE.png. Runs inside the sysroot, where matplotlib is."""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from units import show_size  # noqa: E402

PANELS = (("write", None, "write, first fill"), ("write", "overwrite", "write, steady overwrite"),
          ("seq", None, "sequential read"), ("rand", None, "random read"))


def main(source, target):
  with open(source) as file:
    results = json.load(file)["results"]
  stores = list(dict.fromkeys(entry["store"] for entry in results))
  sizes = sorted({entry["size_bytes"] for entry in results})
  figure, axes = plt.subplots(2, 2, figsize=(12, 8), layout="constrained")
  for axis, (mode, part, title) in zip(axes.flat, PANELS):
    for nth, store in enumerate(stores):
      found = {entry["size_bytes"]: entry.get(part, {}) if part else entry
               for entry in results if entry["store"] == store and entry["mode"] == mode}
      width = 0.8 / len(stores)
      axis.bar([at + nth * width for at in range(len(sizes))],
               [found.get(size, {}).get("mb_per_s", 0) for size in sizes], width, label=store)
    axis.set_title(title)
    axis.set_yscale("log")
    axis.set_ylabel("MB/s")
    axis.set_xticks([at + 0.4 - width / 2 for at in range(len(sizes))], [show_size(size) for size in sizes])
    axis.grid(axis="y", alpha=0.3)
  axes.flat[0].legend()
  figure.savefig(target, dpi=110, format="png")


if __name__ == "__main__":
  main(*sys.argv[1:])
