# SPDX-License-Identifier: LGPL-2.1-or-later
"""From the phases measured in each round to medians, ratios, a table and a JSON document."""

import os
import pathlib
import platform
import re
import shlex
import statistics

from units import show_size

# The rows of the table, in order. `overwrite` is no mode of its own in the JSON: it stands inside `write`'s entry.
PHASES = ("write", "overwrite", "seq", "rand", "cold")
TITLES = {"write": "write, first fill", "overwrite": "write, steady overwrite", "seq": "sequential read",
          "rand": "random read", "cold": "cold random read"}
# What was measured for less, all rounds together, is no result.
RESULT_SECONDS_MIN = 5


def told_command(program, argv):
  """As it can be given again by who reads of it: without the places that the results go to."""
  kept = [word for before, word in zip(["", *argv], argv)
          if before not in ("--json", "--plot") and not re.match(r"--(json|plot)(=|$)", word)]
  return shlex.join([program, *kept])


def machine():
  """This host, in a few words."""
  model = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
  memory_kib = re.search(r"^MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text(), re.MULTILINE)
  kernel = platform.release().partition("-")[0]
  return (f"{os.cpu_count()} cores ({model[1] if model else platform.machine()}), "
          f"{int(memory_kib[1]) / (1 << 20):.0f} GiB, Linux {kernel}")


def figures(phase):
  """One phase's line from rados_load -> the figures that are reported."""
  client_bytes = phase["ops"] * phase["size_bytes"]
  device_bytes = phase["device_bytes_written" if phase["phase"] in ("write", "overwrite") else "device_bytes_read"]
  per_second = phase["ops_per_second"]
  mean = statistics.fmean(per_second) if per_second else 0
  return {
      "iops": phase["ops"] / phase["seconds"],
      "mb_per_s": client_bytes / phase["seconds"] / 1e6,
      "p99_ms": phase["p99_ms"],
      "cv": statistics.pstdev(per_second) / mean if len(per_second) > 1 and mean else None,
      "device_bytes_per_client_byte": device_bytes / client_bytes if phase["on_device"] else None,
      "device_flushes_per_op": phase["device_flushes"] / phase["ops"] if phase["on_device"] else None,
      "osd_us_per_op": phase["processor_us"] / phase["ops"],
      "osd_switches_per_op": phase["switches"] / phase["ops"],
      "osd_page_faults_per_op": phase["page_faults"] / phase["ops"],
  }


def median_figures(rounds):
  """Each figure's median over the rounds; None where no round has it."""
  result = {}
  for name in rounds[0]:
    values = [figure[name] for figure in rounds if figure[name] is not None]
    result[name] = statistics.median(values) if values else None
  return result


def baseline(stores):
  """The store that others are measured by."""
  return "bluestore" if "bluestore" in stores else stores[0]


def summarize(measured, base_store="bluestore"):
  """`measured`: {(store, phase, size): [line of rados_load, one per round]} -> the same keys with medians."""
  medians = {key: median_figures([figures(phase) for phase in rounds]) for key, rounds in measured.items()}
  for key, entry in medians.items():
    entry["seconds"] = sum(line["seconds"] for line in measured[key])
    entry["rounds"] = len(measured[key])
  for (store, phase, size), entry in medians.items():
    base_key = (base_store, phase, size)
    base = medians.get(base_key)
    entry["ratio"] = entry["iops"] / base["iops"] if base and base["iops"] else None
    entry["ratio_to_bluestore"] = entry["ratio"] if base_store == "bluestore" else None
    ratios = _ratios_of_rounds(measured[store, phase, size], measured.get(base_key, []))
    entry["ratio_lowest"], entry["ratio_highest"] = (min(ratios), max(ratios)) if ratios else (None, None)
    entry["is_result"] = min(side["seconds"] for side in (entry, base) if side) >= RESULT_SECONDS_MIN
  return medians


def _ratios_of_rounds(ours, theirs):
  """Of each round to the baseline's of the same round; none where there is no spread to tell."""
  if len(ours) < 2 or len(ours) != len(theirs):
    return []
  return [figures(our)["iops"] / figures(their)["iops"] for our, their in zip(ours, theirs)]


def results(medians):
  """The JSON document's list."""
  entries = []
  for (store, phase, size), figures_ in medians.items():
    if phase == "overwrite":
      continue
    entry = {"store": store, "mode": phase, "size_bytes": size, **_rounded(figures_)}
    overwrite = medians.get((store, "overwrite", size))
    if phase == "write" and overwrite:
      entry["overwrite"] = _rounded(overwrite)
    entries.append(entry)
  return entries


def _rounded(figures_):
  return {name: round(value, 4) if isinstance(value, float) else value for name, value in figures_.items()}


def table(medians, stores, sizes, base_store="bluestore"):
  base = "BlueStore" if base_store == "bluestore" else base_store
  base_title = base if base_store == "bluestore" else "first"
  columns = max(19, *(len(store) + 1 for store in stores))
  lines = []
  for phase in PHASES:
    shown = [(size, store) for size in sizes for store in stores if (store, phase, size) in medians]
    if not shown:
      continue
    lines += ["", f"{TITLES[phase]:<{columns + 9}}{'IOPS':>9}{'MB/s':>9}{'x ' + base_title:>13}{'rounds':>11}{'p99 ms':>9}{'cv':>7}"
                  f"{'device B/B':>12}{'flushes/op':>12}{'OSD us':>9}{'switches':>10}"]
    for size, store in shown:
      entry = medians[store, phase, size]
      mark = " " if entry["is_result"] else "~"
      lines.append(f"{mark} {show_size(size):>5}  {store:<{columns}}{entry['iops']:>9.0f}{entry['mb_per_s']:>9.1f}"
                   f"{_cell(entry['ratio'], 13)}{_spread(entry):>11}{_cell(entry['p99_ms'], 9)}{_cell(entry['cv'], 7)}"
                   f"{_cell(entry['device_bytes_per_client_byte'], 12)}{_cell(entry['device_flushes_per_op'], 12)}"
                   f"{entry['osd_us_per_op']:>9.0f}{entry['osd_switches_per_op']:>10.1f}")
  if any(not entry["is_result"] for entry in medians.values()):
    lines += ["", f"~ is no result: it, or {base} beside it, was measured for less than {RESULT_SECONDS_MIN} s, "
                  "all rounds together"]
  return "\n".join(lines)


def _spread(entry):
  if entry["ratio_lowest"] is None:
    return "-"
  return f"{entry['ratio_lowest']:.2f}-{entry['ratio_highest']:.2f}"


def _cell(value, width):
  return f"{'-':>{width}}" if value is None else f"{value:>{width}.2f}"
