#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An OSD that reads 200,000 objects, whose metadata alone is more than its memory target: it stays at the target.

An object has 32 extent shards of 64 KiB, and one block of 4 KiB in each: what is known of it takes some 7 KiB of memory when it was
read, and 128 KiB on disk, most of which it shares with its snapshots. The OSD starts anew, and deep scrub reads every object
as a whole. The autotuner alone limits the caches: osd_memory_base and osd_memory_expected_fragmentation leave them all of the target.
"""

import subprocess
import threading
import time

import scenario as scenario_module
import sysroot
from scenario import UserError

POOL = "thin"
OSD = 0
MIB = 1 << 20
SNAPSHOTS, SHARDS = 50, 32
OBJECTS = 4000  # beside their snapshots: 204,000 in all
LOAD = sysroot.CHECKOUT / "qa" / "standalone" / "snapshot_load.py"
CONF = {"osd memory base": 64 * MIB, "osd memory expected fragmentation": 0}
ALLOWED = 0.10  # above and below the target


class Watch:
  """Memory of the OSD, each second, until it is stopped."""

  def __init__(self, cluster):
    self.samples = []  # (resident bytes, onodes, their bytes, all caches' bytes)
    self._cluster = cluster
    self._ends = threading.Event()
    self._thread = threading.Thread(target=self._run, daemon=True)

  def __enter__(self):
    self._thread.start()
    return self

  def __exit__(self, *_):
    self._ends.set()
    self._thread.join()

  def _run(self):
    while not self._ends.wait(1):
      try:
        counters = self._cluster.ask_osd(OSD, "perf dump", logger="swimstore")["swimstore"]
      except scenario_module.admin_socket.NotAnswering:
        continue
      self.samples.append((self._cluster.osd_memory_bytes(OSD), counters["onodes"], counters["onode_cache_bytes"],
                           sum(counters[name] for name in ("onode_cache_bytes", "block_cache_bytes", "data_cache_bytes"))))

  def most(self):
    return max(resident for resident, *_ in self.samples)

  def last(self):
    return self.samples[-1]


def load(cluster, objects):
  done = subprocess.run(sysroot.command(["python3", LOAD, cluster.dir / "ceph.conf", POOL, objects, SNAPSHOTS, SHARDS]),
                        text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=3600)
  if done.returncode != 0:
    raise UserError(f"snapshot_load.py: {done.stderr.strip()[-500:]}")


def share(resident, target):
  return f"{resident / target:.1%} of the target"


def run(scenario):
  objects = scenario.args.objects
  cluster = scenario.start(osds=1, size_bytes=10 * scenario_module.GIB, conf=CONF)
  target = cluster.spec.osd_memory_target
  cluster.create_pool(POOL, pg_num=16)
  cluster.wait_clean()
  with Watch(cluster) as writing:
    begun = time.monotonic()
    load(cluster, objects)
    scenario.say(f"{objects * (SNAPSHOTS + 1)} objects written in {time.monotonic() - begun:.0f} s, "
                 f"at most {share(writing.most(), target)} in memory")
  cluster.stop_osd(OSD)
  cluster.start_osd(OSD)
  cluster.wait_up()
  cluster.wait_clean()
  idle = cluster.osd_memory_bytes(OSD)
  with Watch(cluster) as reading:
    scenario.deep_scrub(timeout=3600)
  resident, onodes, onode_bytes, caches = reading.last()
  scenario.say(f"idle {idle >> 20} MiB; at the end {resident >> 20}, of which the caches know {caches >> 20}: {onodes} onodes "
               f"with {onode_bytes / max(onodes, 1):.0f} bytes each")
  scenario.check(onodes < objects * (SNAPSHOTS + 1), "not all onodes fit", f"{onodes}: take more objects")
  scenario.check(reading.most() <= (1 + ALLOWED) * target, f"reading, it has at most {share(reading.most(), target)}")
  scenario.check(resident >= (1 - ALLOWED) * target, f"at the end, it has {share(resident, target)}")
  scenario.check(abs(resident - idle - caches) <= ALLOWED * target, "what is counted is what was taken since the start",
                 f"{(resident - idle) >> 20} MiB taken, {caches >> 20} MiB counted")
  scenario.check_daemons()


if __name__ == "__main__":
  scenario_module.main("memory-target", run, __doc__, stores=("swimstore",), options=(
      (("--objects",), {"type": int, "default": OBJECTS, "help": f"beside {SNAPSHOTS} snapshots of each (default: %(default)s)"}),))
