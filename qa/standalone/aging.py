#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What age does to a store: what still fits and how fast it is, beside a new store and an old BlueStore.

A store is filled to 85 % with objects of 4 KiB to 4 MiB. Each round takes a snapshot, writes into a tenth of
the objects, which makes clones, deletes a random half of all, removes the snapshot, and fills up again with
objects of other sizes: medium, large, all, small, by turns. BlueStore, the packaged one on the raw device,
ages the same way, with the same seed. A new store of the same program gets what the aged one holds, each
object written once: the same content without the past.

Then, going from store to store: whole objects of 4 KiB, 64 KiB and 4 MiB written, overwritten and read, 16
at a time; everything that was there read and compared; and objects of 4 MiB added until the store says that
it is 95 % full. Each figure of the aged store must be 0.9 of the new one's or more, and BlueStore's or more.
Medians are compared; "least" and "most" are of the pairs that were measured one after the other. "empty" is the
new store before it was given anything. Where BlueStore fails, or takes more than --patience to trim a round's
snapshot, the scenario goes on without it, and the table says so.
"""

import contextlib
import json
import pathlib
import random
import statistics
import subprocess
import time

import scenario as scenario_module
import images
import sysroot
from scenario import GIB, UserError
from rados_bench import load_command, wait_quiet
from units import show_size

COLUMNS = ("empty", "fresh", "aged", "x fresh", "least", "most", "BlueStore", "x BlueStore")
LOAD = pathlib.Path(__file__).resolve().parent / "aging_load.py"
POOL = "aging"
KIB, MIB = 1 << 10, 1 << 20
MIXES = ((4 * KIB, 4 * MIB), (16 * KIB, 512 * KIB), (512 * KIB, 4 * MIB), (4 * KIB, 64 * KIB))
FULL, BRIM = 0.85, 0.95
SIZES = (4 * KIB, 64 * KIB, 4 * MIB)
PHASES = ("write", "overwrite", "rand")
DEPTH = 16
MEASURED_SHARE = 0.05   # of the device: what one measurement may write
NEAR_SHARE = 0.005      # of the device: this near is full enough
LOOK_SECONDS = 1       # how often an OSD asks its store for space
OF_FRESH_MIN = 0.9
OF_BLUESTORE_MIN = 1.0
AGED, FRESH, BLUESTORE = "aged", "fresh", "bluestore"
CONF = {"osd heartbeat interval": LOOK_SECONDS}
# The brim is what the store says, and no flag of the cluster stops writes on the way there.
FULL_RATIO = 0.965


class GaveUp(Exception):
  """What a rival could not do."""


class Target:
  """One store, what it holds, and what was measured of it."""

  def __init__(self, scenario, name, store):
    self.scenario = scenario
    self.name = name
    self.is_rival = name == BLUESTORE
    self.gave_up = ""  # of a rival: when and why
    self.cluster = scenario.start(osds=1, size_bytes=scenario.args.size, conf=CONF, store=store, name=name)
    self.cluster.create_pool(POOL, size=1)
    self.cluster.ceph("osd", "set-full-ratio", str(FULL_RATIO))
    self.cluster.wait_clean()
    self.model = self.cluster.dir / "run" / "aging.model"
    self.figures = {}

  def load(self, mode, *more, errors_allowed=False):
    """One run of aging_load.py; returns what it tells."""
    done = sysroot.run(["python3", LOAD, mode, self.cluster.dir / "ceph.conf", POOL, self.model,
                        self.scenario.rng.randrange(1 << 32), *more], check=False, timeout=3600)
    if not done.stdout.strip():
      raise sysroot.CommandFailed(["aging_load.py", mode], f"{self.name}: {done.stderr.strip()[-800:]}")
    told = json.loads(done.stdout)
    if told["errors"] and not errors_allowed:
      raise sysroot.CommandFailed(["aging_load.py", mode], f"{self.name}: {told['errors']}")
    return told

  def space(self):
    """What the store reports, not older than this call."""
    time.sleep(2 * LOOK_SECONDS)
    return self.cluster.space()

  def missing_bytes(self, share):
    space = self.space()
    missing = int(share * space["total"]) - (space["total"] - space["available"])
    return missing if missing > NEAR_SHARE * space["total"] else 0

  def check(self, good, what, detail=""):
    """A claim; no failure of the scenario's when a rival does not hold it."""
    if self.is_rival and not good:
      raise GaveUp(f"gave up: {what}: {detail or 'no'}")
    return self.scenario.check(good, what, detail)

  def until_trimmed(self, nth):
    self.scenario.cluster = self.cluster
    if not self.is_rival:
      self.scenario.until_trimmed()
      return
    patience = self.scenario.args.patience
    end = time.monotonic() + patience
    while self.cluster.ceph_json("osd", "dump")["removed_snaps_queue"]:
      if self.cluster.osd_crashed(0) or time.monotonic() > end:
        raise GaveUp(f"gave up in round {nth} after {patience:.0f} s")
      time.sleep(0.5)

  @contextlib.contextmanager
  def own_fault(self):
    """A rival that fails within is left behind, and the table says so. Of ours it is the scenario's failure."""
    try:
      yield
    except (GaveUp, UserError, sysroot.CommandFailed, subprocess.SubprocessError) as error:
      if not self.is_rival:
        raise
      self.gave_up = str(error).strip().splitlines()[0]
      self.scenario.say(f"{self.name} {self.gave_up}; on without it")
      self.cluster.stop()

  def note(self, what, figure):
    self.figures.setdefault(what, []).append(figure)


def fill(target, share, mix):
  """Until the store says that this share of it is taken, in ever smaller steps, since it takes more than the
  bytes of the objects. Returns the last step's answer, None where there was nothing to do."""
  told = None
  while missing := target.missing_bytes(share):
    told = target.load("fill", max(int(0.85 * missing), MIB), *mix, errors_allowed=True)
    if told["errors"]:
      break
  return told


def age(scenario, target, rounds):
  begun = time.monotonic()
  for nth in range(rounds + 1):
    if nth > 0:
      target.load("thin")
      target.until_trimmed(nth)
    told = fill(target, FULL, MIXES[nth % len(MIXES)])
    target.check(told and not told["errors"], f"{target.name}: filled to {FULL:.0%}, round {nth} of {rounds}, "
                 f"after {time.monotonic() - begun:.0f} s: {told_briefly(told)}", alerts(target))
    if scenario.failures:
      return


def told_briefly(told):
  if not told:
    return "there was no room for anything"
  return "; ".join([f"{told['objects']} objects, {told['object_bytes'] >> 20} MiB", *told["errors"]])


def alerts(target):
  checks = target.cluster.ceph_json("health", "detail")["checks"].values()
  return "; ".join(entry["message"] for check in checks if not check["muted"] for entry in check["detail"])


def measure(target, size, nth, seconds, when=""):
  cluster, bytes_max = target.cluster, int(MEASURED_SHARE * target.scenario.args.size)
  said = sysroot.run(load_command(cluster, POOL, "--depth", DEPTH, "--size", size, "--seconds", seconds,
                                  "--fill-bytes-max", bytes_max, "--seed", nth + 1,
                                  "--phases", ",".join(PHASES + ("delete",)), "--prefix", f"measured_{nth}_{size}"),
                     timeout=120 + 20 * seconds).stdout
  for phase in map(json.loads, said.splitlines()):
    if phase["phase"] in PHASES:
      target.note((f"{show_size(size):>3} {phase['phase']}, IOPS", when), phase["ops"] / phase["seconds"])
  wait_quiet(cluster)


def measure_all(scenario, targets):
  for nth in range(scenario.args.repeats):
    turn = nth % len(targets)
    for size in SIZES:
      for target in those_left(targets[turn:] + targets[:turn]):
        with target.own_fault():
          measure(target, size, nth, scenario.args.seconds)
    for target in those_left(targets[turn:] + targets[:turn]):
      with target.own_fault():
        read_all(target)
    scenario.say(f"measured {nth + 1} of {scenario.args.repeats} times")


def those_left(targets):
  return [target for target in targets if not target.gave_up]


def read_all(target):
  told = target.load("read", errors_allowed=True)
  target.check(not told["errors"], f"{target.name}: {told['objects']} objects are as they should be",
               str(told["errors"]))
  target.note(("all that was there read, MB/s", ""), told["bytes"] / told["seconds"] / 1e6)


def fill_to_the_brim(target):
  space = target.space()
  target.note(("allocated beside stored", ""), space["allocated"] / space["data_stored"])
  told = fill(target, BRIM, (4 * MIB, 4 * MIB))
  target.check(told and not told["errors"],
               f"{target.name}: takes objects until it says that it is {BRIM:.0%} full", told_briefly(told))
  target.note(("fits at the brim, MiB", ""), (told or {"object_bytes": 0})["object_bytes"] >> 20)


def median(target, what, when=""):
  found = target and target.figures.get((what, when))
  return statistics.median(found) if found else None


def ratios(aged, fresh, what):
  """Of what was measured one after the other: least and most."""
  found = [mine / its for mine, its in zip(aged.figures.get((what, ""), []), fresh.figures.get((what, ""), []))]
  return (min(found), max(found)) if found else (None, None)


def compare(targets):
  """Rows: what, then the figures that COLUMNS names; None where there is none."""
  found = {target.name: target for target in those_left(targets)}
  rows = []
  for what in [what for what, when in found[AGED].figures if not when]:
    aged, fresh, bluestore = (median(found.get(name), what) for name in (AGED, FRESH, BLUESTORE))
    rows.append((what, median(found[FRESH], what, "empty"), fresh, aged, fresh and aged / fresh,
                 *ratios(found[AGED], found[FRESH], what), bluestore, bluestore and aged / bluestore))
  rows += [(f"{target.name} {target.gave_up}",) + (None,) * len(COLUMNS) for target in targets if target.gave_up]
  return rows


def table(rows):
  def cell(value):
    return f"{'-':>12}" if value is None else f"{value:>12.{0 if value >= 100 else 2}f}"
  lines = [f"{'':<32}" + "".join(f"{name:>12}" for name in COLUMNS)]
  lines += [f"{what:<32}" + "".join(cell(value) for value in cells) for what, *cells in rows]
  return "\n".join(lines)


def check_bars(scenario, rows):
  for what, _, _, aged, of_fresh, _, _, _, of_bluestore in rows:
    if what.startswith("allocated") or aged is None:
      continue  # less is better there, and what fits tells it; or it says that a rival gave up
    if scenario.args.quick and not what.startswith("fits"):
      continue  # one second of one run says nothing of speed
    scenario.check(of_fresh >= OF_FRESH_MIN, f"{what}: {of_fresh:.2f} of the new store's",
                   f"less than {OF_FRESH_MIN}")
    if of_bluestore is not None:
      scenario.check(of_bluestore >= OF_BLUESTORE_MIN, f"{what}: {of_bluestore:.2f} of BlueStore's",
                     f"less than {OF_BLUESTORE_MIN}")


def has_bluestore(scenario):
  if scenario.args.no_bluestore or scenario.args.quick:
    return False
  there = sysroot.run(["sh", "-c", "command -v ceph-osd"], check=False).returncode == 0
  if not there:
    scenario.say("the sysroot has no packaged ceph-osd: BlueStore's column is left out")
  return there


def make_fresh(scenario, aged):
  fresh = Target(scenario, FRESH, scenario.args.store)
  if not scenario.args.quick:
    for size in SIZES:
      measure(fresh, size, 0, scenario.args.seconds, "empty")
  fresh.model.write_bytes(aged.model.read_bytes())
  fresh.load("copy")
  return fresh


def run(scenario):
  args = scenario.args
  scenario.rng = random.Random(args.seed)
  args.rounds = args.rounds or (1 if args.quick else 10)
  args.repeats = args.repeats or (1 if args.quick else 3)
  args.seconds = args.seconds or (1 if args.quick else 5)
  args.size = args.size or (2 if args.quick else 6) * GIB
  scenario.say(f"{args.rounds} rounds, devices of {show_size(args.size)}, seed {args.seed}")
  stores = {AGED: args.store} | ({BLUESTORE: "bluestore"} if has_bluestore(scenario) else {})
  images.check_room([(scenario.directory(name) / "osd.0.img", args.size) for name in (*stores, FRESH)])
  targets = []
  for name, store in stores.items():
    scenario.rng.seed(args.seed)
    targets.append(Target(scenario, name, store))
    with targets[-1].own_fault():
      age(scenario, targets[-1], args.rounds)
    if scenario.failures:
      return
  targets.insert(0, make_fresh(scenario, targets[0]))
  measure_all(scenario, targets)
  for target in those_left(targets):
    with target.own_fault():
      fill_to_the_brim(target)
    if not target.is_rival:
      scenario.cluster = target.cluster
      scenario.check_daemons()
  if not scenario.failures:
    conclude(scenario, targets)


def conclude(scenario, targets):
  """The table, and the bars. What is missed then is speed: the images are given back."""
  scenario.cluster = next(target.cluster for target in targets if target.name == AGED)
  if not scenario.args.quick:
    scenario.deep_scrub(timeout=1800)
  rows = compare(targets)
  results = sysroot.CHECKOUT / "build" / "aging.json"
  results.write_text(json.dumps([dict(zip(("what", *COLUMNS), row)) for row in rows], indent=1) + "\n")
  if not scenario.failures and not scenario.args.keep:
    for target in targets:
      target.cluster.remove()
  check_bars(scenario, rows)
  print(table(rows), flush=True)


if __name__ == "__main__":
  scenario_module.main("aging", run, __doc__, stores=("swimstore",), options=(
      (("--rounds",), {"type": int, "help": "(default: 10; with --quick 1)"}),
      (("--size",), {"type": scenario_module.size, "help": "of each device (default: 6G; with --quick 2G)"}),
      (("--seconds",), {"type": float, "help": "of each measured phase (default: 5; with --quick 1)"}),
      (("--repeats",), {"type": int, "help": "of the measurements (default: 3; with --quick 1)"}),
      (("--patience",), {"type": float, "default": 600, "metavar": "SECONDS",
                         "help": "for BlueStore to trim what one round removed (default: %(default)s)"}),
      (("--no-bluestore",), {"action": "store_true", "help": "leave out BlueStore, as --quick does"}),
      (("--seed",), {"type": int, "default": random.randrange(1 << 32), "help": "of the objects"})))
