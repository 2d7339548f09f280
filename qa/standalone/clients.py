#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Users' programs on three OSDs: fio on an RBD image with a snapshot and a clone, a source tree unpacked and built in
CephFS with random operations there, s3cmd on a bucket of radosgw.

All at once, while an OSD is killed. Then all OSDs are started anew, one of them after kill -9, with MDS and radosgw, and
everything is read back and compared with local files in which the same was done. At the end: deep scrub, and a deep fsck
of each OSD's store.

The long form does it three times. It goes on with rounds on SwimStore and on BlueStore by turns, one program at a time
and without kills, and prints how long each step took.
"""

import functools
import random
import statistics
import time

import scenario as scenario_module
import sysroot
from client_fs import FsUser
from client_rbd import RbdUser
from client_s3 import S3User
from scenario import CRASH_MARKS, GIB

USERS = (RbdUser, FsUser, S3User)
OSDS = 3
KILL_AFTER_S = 1
DOWN_S = 1
# Each pool is a change of the map: radosgw makes seven, one after another.
MON_CONF = {"paxos propose interval": 0.1}


class Side:
  """A cluster and its users."""

  def __init__(self, scenario, store, name=""):
    self.scenario = scenario
    args = scenario.args
    self.cluster = scenario.start(OSDS, size_bytes=(2 if args.quick else 4) * GIB, store=store, name=name,
                                  mon_conf={"osd pool default pg num": args.pg_num // 4} | MON_CONF)
    self.users = [user(scenario, self.cluster, args) for user in USERS]
    self._under_way = set()
    self.scenario.at_once(*(functools.partial(self._begin, user) for user in self.users))

  def _begin(self, user):
    user.begin()
    user.start()

  def use_while_killed(self, osd):
    """All of them at once."""
    self.scenario.at_once(lambda: self._kill_and_start(osd), *(functools.partial(self._use, user) for user in self.users))

  def _use(self, user):
    self._under_way.add(user.name)
    user.use()
    self._under_way.remove(user.name)

  def _kill_and_start(self, osd):
    time.sleep(KILL_AFTER_S)
    self.cluster.kill_osd(osd)
    writing = sorted(self._under_way)
    time.sleep(DOWN_S)
    self.cluster.start_osd(osd)
    self.cluster.wait_up()
    self.scenario.check(len(writing) == len(USERS), f"osd.{osd} is killed and starts while {', '.join(writing)} are used")

  def restart(self, killed):
    """All of them, and what is in front of them, so that nothing is in a cache. One is killed."""
    for user in self.users:
      user.before_restart()
    self.cluster.kill_front()
    self.cluster.kill_osd(killed)
    self.scenario.at_once(*(functools.partial(self.cluster.stop_osd, osd) for osd in range(OSDS) if osd != killed))
    self.scenario.at_once(*(functools.partial(self.cluster.start_osd, osd) for osd in range(OSDS)))
    self.cluster.wait_up()
    self.scenario.at_once(*(user.start for user in self.users))

  def check_stores(self):
    """At the end."""
    self.scenario.cluster = self.cluster
    self.scenario.check_daemons()
    self.scenario.deep_scrub()
    self.cluster.kill_front()
    self.scenario.restart_with_fsck()
    logs = {path.name: path.read_text(errors="replace") for path in (self.cluster.dir / "log").glob("*.log")}
    crashed = [name for name, text in logs.items() if any(mark in text for mark in CRASH_MARKS)]
    self.scenario.check(len(logs) >= OSDS + 4 and not crashed, f"no daemon crashed, by {len(logs)} logs", str(crashed))


def use_and_check(scenario, side, rounds):
  """With kills, and everything read back."""
  for nth in range(rounds):
    scenario.at_once(*(functools.partial(user.prepare, f"checked{nth}") for user in side.users))
    side.use_while_killed(nth)
    side.restart((nth + 1) % OSDS)
    scenario.at_once(*(functools.partial(user.read_back, "after all OSDs were started anew") for user in side.users))
    if not scenario.args.quick:
      scenario.at_once(*(user.remove for user in side.users))


def measure(scenario, sides, rounds):
  """Prints a table."""
  found = {}
  for nth in range(1, rounds + 1):
    for side in random.sample(sides, len(sides)):
      store = side.cluster.spec.store
      for user in side.users:
        user.prepare(f"measured{nth}")
        for what, (value, unit) in user.use().items():
          found.setdefault((user.name, what, unit), {}).setdefault(store, []).append(value)
          scenario.say(f"round {nth}, {store}, {user.name}: {what}: {value:.2f} {unit}")
        user.read_back(f"round {nth}")
        user.remove()
  ours, theirs = (side.cluster.spec.store for side in sides)
  print(f"| program | step | {ours} | {theirs} | ratio (of single rounds) |\n|---|---|---|---|---|")
  for (program, what, unit), values in found.items():
    ratios = [one / other for one, other in zip(values[ours], values[theirs])]
    medians = [statistics.median(values[store]) for store in (ours, theirs)]
    print(f"| {program} | {what} | {medians[0]:.3g} {unit} | {medians[1]:.3g} {unit} | "
          f"{medians[0] / medians[1]:.2f} ({min(ratios):.2f}–{max(ratios):.2f}) |", flush=True)


def run(scenario):
  sysroot.check_host("--fuse")
  args = scenario.args
  args.rbd_mib, args.fs_operations, args.s3_objects, args.s3_mib = (32, 300, 30, 12) if args.quick else (512, 4000, 400, 128)
  # Of Ceph's source.
  args.trees = ("xxHash", "zstd/lib" if args.quick else "zstd")
  args.builds = ("xxHash",) if args.quick else ("xxHash", "zstd/lib")
  args.pg_num = 4 if args.quick else 16  # of the pools with the data; radosgw makes seven
  scenario.say(f"seed {args.seed}")
  side = Side(scenario, args.store)
  use_and_check(scenario, side, 1 if args.quick else OSDS)
  sides = [side]
  if not args.quick and args.rounds and args.store != "bluestore":
    sides.append(Side(scenario, "bluestore", name="bluestore"))
    measure(scenario, sides, args.rounds)
  for each in sides:
    each.check_stores()


if __name__ == "__main__":
  scenario_module.main("clients", run, __doc__, stores=("swimstore", "bluestore"), options=(
      (("--rounds",), {"type": int, "default": 3, "help": "that are measured, beside BlueStore (default: %(default)s)"}),
      (("--seed",), {"type": int, "default": random.randrange(1 << 32), "help": "of what is written"})))
