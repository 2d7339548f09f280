#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Put what qa/run-rados-bench.sh measured into the pages: results_page.py RESULTS.json

README.md gets the ratios and the picture (doc/rados_bench.png, drawn by the bench's --plot), doc/benchmarks.md all
medians; both with date, machine and command. Each page says by two marks what is written anew:
`<!-- rados bench: begin -->` and `<!-- rados bench: end -->`.
"""

import argparse
import json
import pathlib
import re
import sys

from bench_report import PHASES, TITLES
from units import show_size

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent.parent
BEGIN, END = "<!-- rados bench: begin -->", "<!-- rados bench: end -->"
PICTURE = "doc/rados_bench.png"
PAIRS = ("p99_ms", "device_bytes_per_client_byte", "device_flushes_per_op")
OURS, THEIRS = "swimstore", "bluestore"


class Refused(Exception):
  pass


def phases_of(results):
  """{(store, phase, size): entry}, the overwrites taken out of their writes."""
  found = {}
  for entry in results:
    found[entry["store"], entry["mode"], entry["size_bytes"]] = entry
    if "overwrite" in entry:
      found[entry["store"], "overwrite", entry["size_bytes"]] = entry["overwrite"]
  return found


def caption(run):
  missing = [name for name in ("date", "machine", "command") if name not in run]
  if missing:
    raise Refused(f"the results do not tell {', '.join(missing)}: measure again with this bench")
  return f"{run['date']}, {run['machine']},\n{run['device']}, {run['fs']}:\n`{run['command']}`"


def cell(entry, shown):
  """`shown` of an entry that is there; marked as the bench's table marks it."""
  if entry is None or entry["ratio_to_bluestore"] is None:
    return ""
  return shown(entry) if entry["is_result"] else f"~ {shown(entry)}"


def ratio(entry):
  spread = "" if entry["ratio_lowest"] is None else f" ({entry['ratio_lowest']:.2f}–{entry['ratio_highest']:.2f})"
  shown = f"{entry['ratio_to_bluestore']:.2f}"
  return (f"**{shown}**" if entry["ratio_to_bluestore"] > 1 else shown) + spread


def rows(cells):
  return ["| " + " | ".join(row) + " |" for row in cells]


def ratios(document):
  """A row for each size, a column for each kind of load."""
  found = phases_of(document["results"])
  sizes = sorted({size for _, _, size in found})
  phases = [phase for phase in PHASES if any(other == phase for _, other, _ in found)]
  table = [["size", *(TITLES[phase] for phase in phases)], ["---"] * (len(phases) + 1)]
  table += [[show_size(size), *(cell(found.get((OURS, phase, size)), ratio) for phase in phases)] for size in sizes]
  return rows(table)


def medians(document):
  """A row for each kind of load and size: both stores."""
  found = phases_of(document["results"])
  table = [["load", "size", "SwimStore, IOPS", "BlueStore, IOPS", "ratio (lowest–highest round)", "p99, ms",
            "bytes at the device per byte", "flushes per operation"], ["---"] * 8]
  for phase in PHASES:
    for size in sorted({size for _, other, size in found if other == phase}):
      ours, theirs = found.get((OURS, phase, size)), found.get((THEIRS, phase, size))
      if ours and theirs:
        table.append([TITLES[phase], show_size(size), f"{ours['iops']:.0f}", f"{theirs['iops']:.0f}", cell(ours, ratio),
                      *(pair(ours, theirs, name) for name in PAIRS)])
  return rows(table)


def pair(ours, theirs, name):
  return " : ".join("–" if entry[name] is None else f"{entry[name]:.2f}" for entry in (ours, theirs))


def replaced(name, page, text):
  found = re.findall(f"{BEGIN}.*?{END}", page, re.DOTALL)
  if len(found) != 1:
    raise Refused(f"{name}: has no place for the results: {BEGIN} and, behind it, {END}, once")
  return page.replace(found[0], f"{BEGIN}\n{text}\n{END}")


def main(argv):
  parser = argparse.ArgumentParser(prog="results_page.py", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("results", type=pathlib.Path, help="the JSON that the bench has written")
  document = json.loads(parser.parse_args(argv).results.read_text())
  try:
    if not (CHECKOUT / PICTURE).exists():
      raise Refused(f"there is no {PICTURE}: measure with --plot {PICTURE}")
    told = caption(document["run"])
    texts = {"README.md": [f"![ratios to BlueStore]({PICTURE})", "", told, "", *ratios(document)],
             "doc/benchmarks.md": [told, "", *medians(document)]}
    pages = {name: replaced(name, (CHECKOUT / name).read_text(), "\n".join(lines)) for name, lines in texts.items()}
  except Refused as error:
    sys.exit(f"results_page.py: error: {error}")
  for name, text in pages.items():
    (CHECKOUT / name).write_text(text)


if __name__ == "__main__":
  main(sys.argv[1:])
