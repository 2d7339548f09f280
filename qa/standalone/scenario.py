# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the live scenarios share: options, a cluster that is always tidied up, checks, and the exit status.

A scenario is a function of (Scenario); it calls scenario.check() and raises nothing on success. Exit status: 0 when
every check held, 1 otherwise.
"""

import argparse
import collections
import concurrent.futures
import fcntl
import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

import admin_socket  # noqa: E402
import ending  # noqa: E402
import sysroot  # noqa: E402
from cluster import Cluster  # noqa: E402
from cluster_spec import BACKING, Spec  # noqa: E402
from sysroot import UserError  # noqa: E402
from units import parse_size  # noqa: E402

GIB = 1 << 30

# The store's own check of itself when it is mounted; a store that finds an error refuses to start.
FSCK_ON_MOUNT = {
    "swimstore": ["--swimstore_fsck_on_mount=true", "--swimstore_fsck_on_mount_deep=true"],
    "bluestore": ["--bluestore_fsck_on_mount=true", "--bluestore_fsck_on_mount_deep=true"],
}
# What a program says that ends by itself.
CRASH_MARKS = ("Caught signal", "Aborted", "FAILED ceph_assert", "terminate called")

# Requested scrubs begin at once, and all together.
SCRUB_CONF = {"osd max scrubs": 8, "osd scrub sleep": 0, "osd scrub backoff ratio": 0}
# What the OSDs say of their PGs is known at once: most of a scenario's time goes into waiting for it.
MGR_CONF = {"mgr stats period": 1, "mgr tick period": 1}


class Scenario:
  def __init__(self, name, args):
    self.name = name
    self.args = args
    self.cluster = None  # the one that is asked and checked: the last one started
    self.clusters = []
    self.failures = 0
    self.held = 0
    self.interrupted = False
    self._counts = threading.Lock()
    self._begun = time.monotonic()

  def say(self, text):
    print(f"[{time.monotonic() - self._begun:6.1f}] {text}", flush=True)

  def check(self, good, what, detail=""):
    """Record one claim; a broken one fails the scenario, which goes on where it can."""
    with self._counts:
      self.held += bool(good)
      self.failures += not good
    self.say(f"{'ok  ' if good else 'FAIL'} {what}" + (f": {detail}" if detail and not good else ""))
    return good

  def directory(self, name=""):
    return sysroot.cache_dir() / "scenarios" / (f"{self.name}.{name}" if name else self.name)

  def start(self, osds, size_bytes=2 * GIB, conf=None, mon_conf=None, mixed=(), store="", name="",
            fault_disks=False, metadata_bytes=0):
    """One more cluster. `store`: another than that of the options; `name`: where a scenario has several."""
    store = store or self.args.store
    self.cluster = Cluster(self.directory(name), self.say)
    self.clusters = [other for other in self.clusters if other.dir != self.cluster.dir] + [self.cluster]
    self.cluster.stop()  # an earlier one in its place, too
    self.cluster.create(Spec(store=store, osds=osds, size_bytes=size_bytes, fs=self.args.fs,
                             conf=SCRUB_CONF | (conf or {}) | dict(self.args.conf), mon_conf=mon_conf or {},
                             mgr_conf=MGR_CONF,
                             osd_memory_target=GIB, mixed=list(mixed), fault_disks=fault_disks,
                             metadata_bytes=metadata_bytes,
                             ceph_osd=self.args.ceph_osd if store == self.args.store else ""))
    return self.cluster

  @staticmethod
  def at_once(*tasks):
    with concurrent.futures.ThreadPoolExecutor(len(tasks)) as pool:
      try:
        for done in [pool.submit(task) for task in tasks]:
          done.result()
      except KeyboardInterrupt:
        ending.end_processes()  # the threads wait for those that they started
        raise

  def until(self, condition, timeout, what):
    """Check that `condition()` becomes true in time; returns the seconds it took. The scenario ends if it does not."""
    begun = time.monotonic()
    while time.monotonic() - begun <= timeout:
      if condition():
        took = time.monotonic() - begun
        self.check(True, f"{what} (after {took:.0f} s)")
        return took
      if any(self.cluster.osd_crashed(osd) for osd in range(self.cluster.spec.osds)):
        self.check_daemons()
        break
      time.sleep(0.5)
    self.check(False, what, f"not within {timeout} s")
    raise UserError(f"no use to go on without: {what}")

  def deep_scrub(self, timeout=300):
    """Deep-scrub every PG and check that none found an error; returns how many were found."""
    errors = self.deep_scrub_errors(timeout)
    self.check(not errors, "deep scrub finds 0 errors", str(errors))
    return sum(errors.values())

  def deep_scrub_errors(self, timeout=300):
    """Deep-scrub every PG; returns {PG: errors} of those that have some."""
    def scrubbed():
      return {pg["pgid"]: (pg["last_deep_scrub_stamp"], pg["stat_sum"]["num_scrub_errors"])
              for pg in self.cluster.ceph_json("pg", "dump", "pgs")["pg_stats"]}
    self.cluster.wait_clean()
    before = scrubbed()
    begun = asked = time.monotonic()
    waiting = set(before)
    self.cluster.ceph("osd", "deep-scrub", "all")
    while waiting and time.monotonic() - begun < timeout:
      time.sleep(2)
      now = scrubbed()
      waiting = {pg for pg in waiting if now.get(pg, before[pg])[0] == before[pg][0]}
      # A request is forgotten when the PG changes its primary, for one.
      if waiting and time.monotonic() - asked > 30:
        asked = time.monotonic()
        # Not "all" again: those that are done would come before those that wait.
        self.cluster.shell("\n".join(f"ceph pg deep-scrub {pg}" for pg in sorted(waiting)[:8]))
    self.check(not waiting, f"deep scrub of {len(before)} PGs ends", f"not within {timeout} s: {sorted(waiting)[:5]}")
    return {pg: count for pg, (_, count) in scrubbed().items() if count}

  def restart_with_fsck(self):
    """Check that each OSD's store is clean: one that finds an error does not start."""
    for osd in range(self.cluster.spec.osds):
      self.cluster.stop_osd(osd)
      self.cluster.start_osd(osd, *FSCK_ON_MOUNT.get(self.cluster.spec.store, []))
      self.cluster.wait_up(timeout=300)
    self.check_daemons()
    self.cluster.wait_clean(300)
    self.check(True, "every OSD starts with a deep fsck of its store")

  def until_trimmed(self, timeout=600):
    """Check that removed snapshots are gone, as the monitor knows it; returns the seconds it took."""
    return self.until(lambda: not self.cluster.ceph_json("osd", "dump")["removed_snaps_queue"], timeout,
                      "what only removed snapshots had is trimmed")

  def check_daemons(self):
    """No OSD may have ended by itself."""
    for osd in range(self.cluster.spec.osds):
      if self.cluster.osd_crashed(osd):
        self.check(False, f"osd.{osd} is alive", "the end of its log:\n" + self.cluster.log_tail(f"osd.{osd}", 40))


def print_table(table, columns, kinds):
  """`table`: {kind: Counter}; `columns`: {its key: head}; `kinds`: the first one's head. And the sums."""
  heads = [kinds, *columns.values()]
  total = sum(table.values(), collections.Counter())
  rows = [[name, *(f"{row[column]:.0f}" for column in columns)] for name, row in [*table.items(), ("all", total)]]
  widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
  for row in [heads, *rows]:
    print("| " + " | ".join(word.ljust(width) for word, width in zip(row, widths)) + " |", flush=True)


def only_one_run(name):
  """Wait for another run of this scenario: both would use the same directory. The lock ends with the process."""
  path = sysroot.cache_dir() / "scenarios" / f"{name}.lock"
  path.parent.mkdir(parents=True, exist_ok=True)
  lock = open(path, "w")
  try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    print(f"{name}: another run of this scenario is under way; waiting for its end", flush=True)
    fcntl.flock(lock, fcntl.LOCK_EX)
  return lock


def tidy_up(scenario):
  """A failed scenario leaves its logs and its OSDs' images."""
  if not scenario.args.keep:
    ending.end_processes()
  failed = scenario.failures > 0
  for cluster in scenario.clusters:
    if not cluster.state:
      continue
    if failed and not scenario.interrupted:
      scenario.say(f"logs and stores, until its next run: {cluster.dir}")
    if scenario.args.keep:
      continue
    try:
      if failed and not scenario.interrupted:
        cluster.trim()
        cluster.stop()
      else:
        cluster.remove()
    except (UserError, sysroot.CommandFailed) as error:
      scenario.check(False, f"the cluster in {cluster.dir} is tidied up", str(error))


def setting(text):
  option, equals, value = text.partition("=")
  if not option or not equals:
    raise argparse.ArgumentTypeError(f"'{text}' is no setting: write it like swimstore_throttle_bytes=1048576")
  return option.strip().replace("_", " "), value.strip()


def size(text):
  try:
    return parse_size(text, "the size")
  except UserError as error:
    raise argparse.ArgumentTypeError(str(error)) from error


def main(name, run, description, stores=tuple(BACKING), options=None):
  """Parse the options, run the scenario, tidy up, exit."""
  parser = argparse.ArgumentParser(prog=name, description=description,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--store", default="swimstore", choices=stores, help="(default: %(default)s)")
  parser.add_argument("--fs", default="ext4", help="file system below the store (default: %(default)s)")
  parser.add_argument("--quick", action="store_true", help="a short version, for the test command")
  parser.add_argument("--keep", action="store_true", help="leave the cluster running, to look at it")
  parser.add_argument("--ceph-osd", default="", help="the ceph-osd to run (default: that of the store)")
  parser.add_argument("--conf", type=setting, action="append", default=[], metavar="OPTION=VALUE",
                      help="of every OSD, beside those of the scenario; may be given again")
  for flags, keywords in options or ():
    parser.add_argument(*flags, **keywords)
  scenario = Scenario(name, parser.parse_args())
  ending.arm()
  lock = only_one_run(name)
  try:
    sysroot.check_host("--loop", "--setup", sysroot.release().set_up)
    sysroot.prepare()
    run(scenario)
  except (UserError, sysroot.CommandFailed, subprocess.SubprocessError, admin_socket.NotAnswering) as error:
    scenario.check(False, f"{name} runs to its end", str(error))
  except KeyboardInterrupt:
    scenario.interrupted = True
    scenario.check(False, f"{name} runs to its end", "interrupted")
  finally:
    with ending.whole():
      tidy_up(scenario)
    lock.close()
  scenario.say(f"{name}: {scenario.held} held, {scenario.failures} failed")
  sys.exit(1 if scenario.failures or not scenario.held else 0)
