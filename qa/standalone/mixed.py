#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A mixed load for ten minutes, on this store and on BlueStore (Debian's ceph-osd), on clusters that stand
side by side.

One OSD each, which has 1 GiB of memory (osd_memory_target). Two RBD images of 2 GiB are written from end to
end by 4 MiB. Then fio reads and writes 4 KiB of them at random, 70 to 30, 8 in flight on each image, each
block as likely as another: four times what the OSD may keep, so that most reads meet the device, which does
not go through the host's page cache. librbd's cache is off.

First each cluster is loaded for ten minutes without a pause, one after the other: a store that rests while
the other has its turn can catch up with what it has put off, so only this run tells the worst second. It also
begins where the images are as the large writes left them. Then, so that what changes on the machine meets
both, they take turns of a minute, five rounds whose order is drawn, on the images as the ten minutes left
them: these tell the ratios.

What clients see comes from fio's log of every operation, which it keeps in memory and writes when it has ended. At a
million operations of an image it makes room for as many again, for which it lets end what is in flight. BlueStore runs in
Debian's ceph-osd, SwimStore in the one built here. Bytes at the device are all of the OSD's, collection and compaction
included.
Claimed are, of the rounds, 1.5 times BlueStore's operations (the ratio of medians) at a p99 of reads and one
of writes that are no higher; of the ten minutes a worst second of at least 0.6 of the median one. The longest
time in which no write ended, on either image, is told. At the end: deep scrub, and a deep fsck of each store.
--quick: some seconds on small images; the figures are told, and nothing is claimed of them.
"""

import functools
import json
import pathlib
import random
import statistics
import sys
import time

import scenario as scenario_module
from client_rbd import DEPTH, RbdUser
from scenario import GIB, UserError
from sides import Side, measure

import bench_report
from fio_log import KINDS, FioLog
from rados_bench import wait_quiet
from units import check_targets

BLOCK_BYTES = 4096
IMAGES = ("first", "second")
FILL = "--rw=write --bs=4M"
# The log has room for a million operations from the start: to make more, fio waits for what is in flight.
MIX = (f"--rw=randrw --rwmixread=70 --bs={BLOCK_BYTES} --iodepth={DEPTH // len(IMAGES)} --norandommap "
       "--time_based --runtime={seconds} --randseed={seed} --write_lat_log={log} --disable_slat=1 "
       "--disable_clat=1 --log_unix_epoch=1 --log_entries=1048576")
BASELINE = "bluestore"
OPERATIONS_TARGET = 1.5  # of BlueStore's
P99_TARGET = 1.0         # of BlueStore's
WORST_SECOND_TARGET = 0.6  # of the median one
DEVICE_READS_MIN = 0.5   # bytes at the device per byte
QUIET_SECONDS_MAX = 90

OPERATIONS = "operations"
WORST = "worst second to the median one"
READ_AT_DEVICE = "bytes read at the device per byte"
PERCENTILE = "{}s, p{}"


class MixedUser(RbdUser):
  """Two images, loaded for `seconds` in each turn."""

  def __init__(self, scenario, cluster, args):
    super().__init__(scenario, cluster, args)
    self.seconds = 0
    self.per_second = []  # of each turn, a list

  def begin(self):
    super().begin()
    self._shell(f"rbd config pool set {self.pool} rbd_cache false")
    for image in IMAGES:
      self._shell(f"rbd create --size {self.mib}M {self.pool}/{image}")
      filled = self._fio(image, FILL)["write"]
      self.scenario.say(f"{self.cluster.spec.store}: {image} image written, {filled['bw_bytes'] / 1e6:.0f} MB/s")
    self._wait_quiet()

  def prepare(self, name):
    self.seed += 1  # no turn goes where another one was; both stores' turns of a round go the same way

  def use(self):
    before = self.cluster.device_counters()
    counted = [0] * len(IMAGES)
    self.scenario.at_once(*(functools.partial(self._mix, number, counted) for number in range(len(IMAGES))))
    read_bytes = sum((now - then).read_bytes for now, then in zip(self.cluster.device_counters(), before))
    paths = [pathlib.Path(f"{self._log(number)}_lat.1.log") for number in range(len(IMAGES))]
    try:
      log = FioLog(paths)
    except ValueError as error:
      raise UserError(str(error)) from error
    for path in paths:
      path.unlink()
    share = log.count("read") / log.count()
    told = f"{self.cluster.spec.store}: {log.count()} operations, none failed, {share:.3f} of them reads"
    self.scenario.check(log.count() == sum(counted) and abs(share - 0.7) < 0.02, told, f"fio counts {sum(counted)}")
    return self._figures(log) | {READ_AT_DEVICE: (read_bytes / (log.count("read") * BLOCK_BYTES), "")}

  def _mix(self, number, counted):
    done = self._fio(IMAGES[number], MIX.format(seconds=self.seconds, seed=10 * self.seed + number,
                                                log=self._log(number)))
    counted[number] = done["read"]["total_ios"] + done["write"]["total_ios"]

  def _figures(self, log):
    seconds = log.per_second()
    self.per_second.append(seconds)
    worst, median = min(seconds), statistics.median(seconds)
    gaps = log.gaps_ms("write")
    figures = {OPERATIONS: (statistics.fmean(seconds), "/s")} | {f"{kind}s": (log.rate(kind), "/s") for kind in KINDS}
    for kind in KINDS:
      for percent in (50, 99, 99.9):
        figures[PERCENTILE.format(kind, percent)] = (log.percentile_ms(kind, percent), "ms")
    return figures | {"median second": (median, "operations"), "worst second": (worst, "operations"),
                      WORST: (worst / median, ""), "longest time without the end of a write": (max(gaps), "ms")}

  def read_back(self, when):
    """There is no copy to compare with: clients.py has one."""

  def remove(self):
    """The images stay. What this turn has put off does not fall into the other's."""
    self._wait_quiet()

  def _wait_quiet(self):
    if not wait_quiet(self.cluster, QUIET_SECONDS_MAX, 1, lambda step: step.written_bytes + step.read_bytes):
      self.scenario.check(False, f"{self.cluster.spec.store}: its device is quiet before the other's turn",
                          f"not after {QUIET_SECONDS_MAX} s")

  def _log(self, number):
    return self.folder / f"mix{number}"

  def _shell(self, script):
    return self.cluster.shell(script, timeout=900 + self.seconds)


def in_turn(scenario, sides, seconds, rounds):
  """{what: (this store's value of each round, BlueStore's)}"""
  scenario.say(f"{rounds} of {seconds} s for each store")
  for side in sides:
    side.users[0].seconds = seconds
  found = measure(scenario, sides, rounds)
  stores = [side.cluster.spec.store for side in sides]
  return {what: tuple(values[store] for store in stores) for (_, what, _), values in found.items()}


def ratio(values):
  ours, theirs = map(statistics.median, values)
  return ours / theirs


def judge(scenario, without_pause, rounds):
  """The targets; the short form tells them only."""
  lines = [(ratio(rounds[OPERATIONS]) >= OPERATIONS_TARGET,
            f"operations: {ratio(rounds[OPERATIONS]):.2f} of BlueStore's, at least {OPERATIONS_TARGET}")]
  for kind in KINDS:
    found = ratio(rounds[PERCENTILE.format(kind, 99)])
    lines.append((found <= P99_TARGET, f"p99 of {kind}s: {found:.2f} of BlueStore's, at most {P99_TARGET}"))
  worst, theirs = (values[0] for values in without_pause[WORST])
  lines.append((worst >= WORST_SECOND_TARGET, f"worst second: {worst:.2f} of the median one, at least "
                f"{WORST_SECOND_TARGET} (BlueStore: {theirs:.2f})"))
  at_device = min(min(values) for found in (without_pause, rounds) for values in found[READ_AT_DEVICE])
  lines.append((at_device >= DEVICE_READS_MIN,
                f"reads meet the device: {at_device:.2f} bytes there per byte or more, at least {DEVICE_READS_MIN}"))
  for good, what in lines:
    if scenario.args.quick:
      scenario.say(f"not judged: {what}")
    else:
      scenario.check(good, what)


def document(scenario, sides, **found):
  """A value of each round for each store, and the operations of each second of the ten minutes."""
  args = scenario.args
  stores = [side.cluster.spec.store for side in sides]
  return {
      "run": {"date": time.strftime("%Y-%m-%d"), "machine": bench_report.machine(),
              "command": bench_report.told_command("qa/standalone/mixed.py", sys.argv[1:]), "seed": args.seed},
      "image_mib": args.rbd_mib, "images": len(IMAGES), "in_flight": DEPTH,
      "osd_memory_target": sides[0].cluster.spec.osd_memory_target,
      "operations_per_second": {store: side.users[0].per_second[0] for store, side in zip(stores, sides)},
  } | {name: {what: dict(zip(stores, values)) for what, values in table.items()} for name, table in found.items()}


def run(scenario):
  args = scenario.args
  args.pg_num = 8
  if args.quick:
    args.rbd_mib, args.seconds, args.round_seconds, args.rounds = 64, 4, 3, 1
  check_targets(("--json", args.json))
  if min(args.seconds, args.round_seconds) < 3 or args.rounds < 1:
    raise UserError("give --seconds and --round-seconds of 3 or more, and --rounds of 1 or more")
  scenario.say(f"seed {args.seed}")
  sides = []
  for store in (args.store, BASELINE):
    cluster = scenario.start(1, size_bytes=(2 if args.quick else 10) * GIB, store=store, name=store)
    sides.append(Side(scenario, cluster, [MixedUser(scenario, cluster, args)]))
  without_pause = in_turn(scenario, sides, args.seconds, 1)
  rounds = in_turn(scenario, sides, args.round_seconds, args.rounds)
  judge(scenario, without_pause, rounds)
  if args.json:
    found = document(scenario, sides, without_pause=without_pause, rounds=rounds)
    args.json.write_text(json.dumps(found, indent=1) + "\n")
  for side in sides:
    scenario.cluster = side.cluster
    scenario.check_daemons() if args.quick else side.check_stores()


if __name__ == "__main__":
  scenario_module.main("mixed-load", run, __doc__, stores=("swimstore",), options=(
      (("--seconds",), {"type": int, "default": 600, "help": "without a pause (default: %(default)s)"}),
      (("--rounds",), {"type": int, "default": 5, "help": "by turns (default: %(default)s)"}),
      (("--round-seconds",), {"type": int, "default": 60, "help": "of each turn (default: %(default)s)"}),
      (("--mib",), {"type": int, "default": 2048, "dest": "rbd_mib", "help": "of each image (default: %(default)s)"}),
      (("--seed",), {"type": int, "default": random.randrange(1 << 32), "help": "of what is read and written"}),
      (("--json",), {"type": pathlib.Path, "metavar": "FILE", "help": "write what was found there, too"})))
