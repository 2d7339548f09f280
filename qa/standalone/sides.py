# SPDX-License-Identifier: LGPL-2.1-or-later
"""A cluster with users in front of it (client_user.py), and two such clusters measured beside each other."""

import functools
import math
import random
import statistics
import time

from scenario import CRASH_MARKS

KILL_AFTER_S = 1
DOWN_S = 1


class Side:
  def __init__(self, scenario, cluster, users):
    self.scenario = scenario
    self.cluster = cluster
    self.users = users
    self._under_way = set()
    scenario.at_once(*(functools.partial(self._begin, user) for user in users))

  @staticmethod
  def _begin(user):
    user.begin()
    user.start()

  def prepare(self, name):
    self.scenario.at_once(*(functools.partial(user.prepare, name) for user in self.users))

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
    self.scenario.check(len(writing) == len(self.users),
                        f"osd.{osd} is killed and starts while {', '.join(writing)} are used")

  def restart(self, killed):
    """All of them, and what is in front of them, so that nothing is in a cache. One is killed."""
    for user in self.users:
      user.before_restart()
    self.cluster.kill_front()
    self.cluster.kill_osd(killed)
    osds = range(self.cluster.spec.osds)
    self.scenario.at_once(*(functools.partial(self.cluster.stop_osd, osd) for osd in osds if osd != killed))
    self.scenario.at_once(*(functools.partial(self.cluster.start_osd, osd) for osd in osds))
    self.cluster.wait_up()
    self.scenario.at_once(*(user.start for user in self.users))

  def read_back(self, when):
    self.scenario.at_once(*(functools.partial(user.read_back, when) for user in self.users))

  def remove(self):
    self.scenario.at_once(*(user.remove for user in self.users))

  def check_stores(self):
    """At the end."""
    self.scenario.cluster = self.cluster
    self.scenario.check_daemons()
    self.scenario.deep_scrub()
    self.cluster.kill_front()
    self.scenario.restart_with_fsck()
    logs = {path.name: path.read_text(errors="replace") for path in (self.cluster.dir / "log").glob("*.log")}
    crashed = [name for name, text in logs.items() if any(mark in text for mark in CRASH_MARKS)]
    daemons = self.cluster.spec.osds + sum(user.daemons for user in self.users) + 2  # monitor and manager
    self.scenario.check(len(logs) >= daemons and not crashed, f"no daemon crashed, by {len(logs)} logs", str(crashed))


def measure(scenario, sides, rounds):
  """Two sides by turns, one user at a time. Prints a table; returns {(user, what, unit): {store: value of each round}}."""
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
      scenario.cluster = side.cluster  # what it removes does not fall into the other's turn
      scenario.until_trimmed()
      side.cluster.wait_clean()
  ours, theirs = (side.cluster.spec.store for side in sides)
  print(f"| program | step | {ours} | {theirs} | ratio (of single rounds) |\n|---|---|---|---|---|")
  for (program, what, unit), values in found.items():
    ratios = [_ratio(one, other) for one, other in zip(values[ours], values[theirs])]
    medians = [statistics.median(values[store]) for store in (ours, theirs)]
    print(f"| {program} | {what} | {_shown(medians[0])} {unit} | {_shown(medians[1])} {unit} | "
          f"{_ratio(*medians):.2f} ({min(ratios):.2f}–{max(ratios):.2f}) |", flush=True)
  return found


def _ratio(one, other):
  return one / other if other else math.nan


def _shown(value):
  return f"{value:.3g}" if value < 999.5 else f"{value:.0f}"
