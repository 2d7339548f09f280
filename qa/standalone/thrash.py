#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Kill and freeze one of three OSDs again and again under Ceph's own checking load; nothing may be lost.

ceph_test_rados knows what every object and snapshot holds and compares each read; `rados bench` runs beside it. Per
round an OSD gets SIGKILL, or one round in five SIGSTOP for a while, and comes back. At the end every OSD
is started with the store's deep fsck, and every PG is deep-scrubbed.
"""

import os
import random
import signal
import subprocess
import threading
import time

import scenario as scenario_module
import sysroot

OSDS = 3
OBJECTS = 50
WEIGHTS = {"read": 100, "write": 100, "write_excl": 20, "writesame": 20, "append": 50, "delete": 50, "setattr": 25,
           "rmattr": 25, "snap_create": 50, "snap_remove": 50, "rollback": 50, "copy_from": 50}
# A pool of its own for each run, and gone after it: what ceph_test_rados leaves, snapshots above all, would fill the
# OSDs; and then a client holds its writes back and lets its reads pass, which ceph_test_rados takes for an error.
CHECKED = """set -e
  pool=thrashed.$RUN
  ceph osd pool create $pool 8 8 replicated --size 3 --autoscale-mode off
  ceph osd pool set $pool min_size 2
  ceph osd pool application enable $pool bench
  ceph_test_rados --pool $pool --objects {objects} --max-in-flight 16 --size 400000 --min-stride-size 1000 \
    --max-stride-size 80000 --max-ops 100000000 --max-seconds {seconds} {weights} 2>&1
  ceph osd pool rm $pool $pool --yes-i-really-really-mean-it"""
# The objects are gone after each run; so many fit beside the others on the devices.
BENCH = "rados -p bench bench 10 write -b 16384 -t 8 --max-objects 20000"


class Load(threading.Thread):
  """Runs a shell script again and again, with the number of the run in $RUN, until told to stop."""

  def __init__(self, cluster, name, script):
    super().__init__(daemon=True)
    self.name = name
    self.runs = 0
    self.failure = None
    self.said = "no output"
    self._process = None
    self._log = cluster.dir / "log" / f"{name}.log"
    self._script = f"export CEPH_CONF={cluster.dir}/ceph.conf\n{script}"
    self._ends = threading.Event()

  def run(self):
    while not self._ends.is_set() and not self.failure:
      with open(self._log, "w") as log:
        self._process = subprocess.Popen(sysroot.command(["bash", "-c", f"RUN={self.runs}\n{self._script}"]),
                                         stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                         start_new_session=True)
        status = self._process.wait()
      if status != 0:
        self.failure = f"exit {status}; the end of {self._log}:\n" + "\n".join(
            self._log.read_text(errors="replace").splitlines()[-8:])
      self.said = (self._log.read_text(errors="replace").splitlines() or ["no output"])[-1]
      self.runs += 1

  def finish(self, timeout):
    """Let the run under way end. One that still waits then is killed: it would hold the cluster's directory."""
    self._ends.set()
    self.join(timeout)
    if self.is_alive():
      self.failure = f"no answer for {timeout} s"
      os.killpg(self._process.pid, signal.SIGKILL)
      self.join()


def disturb(scenario, cluster, rng):
  """One round; returns what was done."""
  osd = rng.randrange(OSDS)
  if rng.random() < 0.2:
    seconds = rng.uniform(0.5, 8.0)
    cluster.freeze_osd(osd)
    try:
      time.sleep(seconds)
    finally:
      cluster.thaw_osd(osd)
    return f"osd.{osd} frozen for {seconds:.1f} s", False
  cluster.kill_osd(osd)
  time.sleep(rng.uniform(0.0, 2.0))
  begun = time.monotonic()
  cluster.start_osd(osd)
  cluster.wait_up(timeout=180)
  return f"osd.{osd} killed, up again in {time.monotonic() - begun:.1f} s", True


def run(scenario):
  args = scenario.args
  kills_wanted = args.rounds or (4 if args.quick else 200)
  rng = random.Random(args.seed)
  scenario.say(f"{kills_wanted} kills, seed {args.seed}")
  cluster = scenario.start(osds=OSDS)
  cluster.create_pool("bench", pg_num=8, size=3)
  cluster.wait_clean()
  weights = " ".join(f"--op {name} {weight}" for name, weight in WEIGHTS.items())
  checked = CHECKED.format(objects=OBJECTS, seconds=15 if args.quick else 90, weights=weights)
  loads = [Load(cluster, "ceph_test_rados", checked), Load(cluster, "rados_bench", BENCH)]
  for load in loads:
    load.start()
  kills = 0
  while kills < kills_wanted:
    time.sleep(rng.uniform(0.2, 3.0))
    what, killed = disturb(scenario, cluster, rng)
    kills += killed
    scenario.say(f"kill {kills}/{kills_wanted}: {what}; runs done: " + ", ".join(f"{load.name} {load.runs}" for load in loads))
    scenario.check_daemons()
    broken = [load for load in loads if load.failure]
    if broken or scenario.failures:
      break
  for load in loads:
    load.finish(300)
    scenario.check(load.runs > 0 and not load.failure, f"{load.name} found every object as it should be, in {load.runs} runs; the last: {load.said}",
                   load.failure or "")
  if scenario.failures:
    return
  scenario.restart_with_fsck()
  scenario.deep_scrub()


if __name__ == "__main__":
  scenario_module.main("thrash", run, __doc__, stores=("swimstore", "bluestore", "kstore"), options=(
      (("--rounds",), {"type": int, "help": "kills (default: 200; with --quick 4)"}),
      (("--seed",), {"type": int, "default": random.randrange(1 << 32), "help": "of the moments"})))
