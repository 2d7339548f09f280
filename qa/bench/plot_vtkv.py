#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draw vtkv_bench's JSON: plot_vtkv.py RESULTS.json PICTURE.png. Runs inside the sysroot, where matplotlib is.

One panel of throughput per workload; where engines ran with several settings (NAME:OPTION=VALUE), also a curve of
write against space amplification, and of insertion and scan against the stitching threshold.
"""

import json
import math
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLUMNS = 4
STITCH_DEFAULT = "65536"
INSERTIONS = ("sequential_insertion", "random_append")


def unique(values):
  return list(dict.fromkeys(values))


def draw_throughput(axis, title, entries, engines):
  sizes = sorted({entry["value_bytes"] for entry in entries})
  width = 0.8 / len(engines)
  for nth, engine in enumerate(engines):
    found = {entry["value_bytes"]: entry["ops_per_s"] for entry in entries if entry["engine"] == engine}
    axis.bar([at + nth * width for at in range(len(sizes))], [found.get(size) or 0 for size in sizes], width,
             label=engine)
  axis.set_title(title)
  axis.set_yscale("log")
  axis.set_ylabel("operations/s")
  axis.set_xticks([at + 0.4 - width / 2 for at in range(len(sizes))], [f"{size} B" for size in sizes])
  axis.grid(axis="y", alpha=0.3)


def draw_amplification(axis, entries):
  for name in unique(entry["engine"].split(":")[0] for entry in entries):
    points = sorted((entry["space_amplification"], entry["write_amplification"], entry["engine"])
                    for entry in entries if entry["engine"].split(":")[0] == name)
    axis.plot([point[0] for point in points], [point[1] for point in points], "o-", label=name)
    for space, write, engine in points:
      axis.annotate(engine.partition(":")[2], (space, write), fontsize=7)
  axis.set_title("overwrite: write against space amplification")
  axis.set_xlabel("space amplification")
  axis.set_ylabel("write amplification")
  axis.grid(alpha=0.3)
  axis.legend()


def stitch_threshold(engine):
  """Of one of vtkv's settings, as text; None when another option was set."""
  name, _, options = engine.partition(":")
  if name != "vtkv" or (options and not options.startswith("stitch=")) or ":" in options:
    return None
  return options.removeprefix("stitch=") or STITCH_DEFAULT


def draw_stitching(axis, group, workload, results):
  """Insertion until everything is merged, and the scan after it."""
  entries = [entry for entry in results if entry["group"] == group and stitch_threshold(entry["engine"])]
  inserted = {stitch_threshold(entry["engine"]): entry["operations"] / (entry["seconds"] + entry["settle_seconds"])
              for entry in entries if entry["workload"] == workload}
  scanned = {stitch_threshold(entry["engine"]): entry["ops_per_s"] for entry in entries if entry["workload"] == "readseq"}
  labels = sorted(inserted, key=float)
  axis.plot(labels, [inserted[label] for label in labels], "o-", label="insertion, until merged")
  axis.plot(labels, [scanned.get(label, math.nan) for label in labels], "s--", label="scan after it")
  axis.set_title(f"{workload}: stitching")
  axis.set_xlabel("threshold, bytes")
  axis.set_ylabel("operations/s")
  axis.set_ylim(bottom=0)
  axis.grid(alpha=0.3)
  axis.legend(fontsize=8)


def main(source, target):
  with open(source) as file:
    results = json.load(file)["results"]
  engines = unique(entry["engine"] for entry in results)
  panels = unique((entry["group"], entry["workload"]) for entry in results)
  curve = [entry for entry in results if entry["workload"] == "overwrite" and entry["write_amplification"] is not None
           and entry["space_amplification"] is not None]
  with_curve = bool(curve) and any(":" in engine for engine in engines)
  stitching = [(group, workload) for group, workload in panels if workload in INSERTIONS
               and len({stitch_threshold(entry["engine"]) for entry in results if entry["workload"] == workload}
                       - {None}) > 1]
  count = len(panels) + with_curve + len(stitching)
  columns = min(COLUMNS, count)
  rows = math.ceil(count / columns)
  figure, axes = plt.subplots(rows, columns, figsize=(5 * columns, 3.6 * rows), layout="constrained", squeeze=False)
  for axis in axes.flat[count:]:
    axis.set_visible(False)
  for axis, (group, workload) in zip(axes.flat, panels):
    entries = [entry for entry in results if (entry["group"], entry["workload"]) == (group, workload)]
    draw_throughput(axis, f"{group}: {workload}" if group else workload, entries, engines)
  axes.flat[0].legend(fontsize=8)
  if with_curve:
    draw_amplification(axes.flat[len(panels)], curve)
  for axis, (group, workload) in zip(axes.flat[len(panels) + with_curve:], stitching):
    draw_stitching(axis, group, workload, results)
  figure.savefig(target, dpi=110, format="png")


if __name__ == "__main__":
  main(*sys.argv[1:])
