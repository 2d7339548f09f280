#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An RBD image whose data lies in pieces, and what `swimstore defragment` makes of it.

One OSD. An image is written from end to end by 4 MiB, and then blocks of 4 KiB of it are overwritten at random
(--overwritten percent of its size), which is what age does to images. A snapshot of it is made and removed. The OSD
puts its data together, and that of another image, which is written to meanwhile, and is killed in the middle. What is
claimed is that the image holds the same bytes before and after, that each block of the other one is right, that next
to nothing is left to put together, that a deep scrub and a deep fsck are clean. The trees are defragmented beside
writes, too: that it ends, and leaves less to do.

Without --quick it is read from end to end, with cold caches: as it was written, aged, and put together; BlueStore's,
too, as it was written and aged. Then clients read and write 4 KiB of the other image at random, in windows of two
seconds, with and without a defragmentation by turns.
"""

import statistics
import time

import rbd_image
import scenario as scenario_module
import sysroot
from scenario import GIB
from rados_bench import forget_caches, wait_quiet

OMAP_LOAD = sysroot.CHECKOUT / "qa" / "standalone" / "omap_load.py"
POOL = "images"
AGED, OTHER = "aged", "other"
RATE = "swimstore_defragment_rate"
VERIFY = "--verify=crc32c --verify_fatal=1 --verify_dump=0 --verify_state_save=0"
LEFT_MAX = 0.05     # of the pieces
END_SECONDS = 600
WINDOW_SECONDS = 2


class Side:
  """A cluster of one OSD with an image."""

  def __init__(self, scenario, store, size_bytes):
    self.scenario = scenario
    self.store = store
    self.mib = scenario.args.mib or (64 if scenario.args.quick else 1024)
    self.cluster = scenario.start(1, size_bytes=size_bytes, store=store, name=store)
    self.cluster.create_pool(POOL, pg_num=8, application="rbd")
    self.cluster.shell(f"rbd pool init {POOL} && rbd create --size {self.mib}M {POOL}/{AGED}")

  def fio(self, image, options):
    return rbd_image.fio(self.cluster, POOL, image, options)

  def fill(self):
    self.fio(AGED, f"--rw=write --bs=4M --iodepth=4 --size={self.mib}M")

  def age(self):
    self.fio(AGED, f"--rw=randwrite --bs=4k --iodepth=16 --size={self.mib}M --norandommap "
             f"--io_size={self.scenario.args.overwritten}%")

  def checksum(self):
    return rbd_image.checksum(self.cluster, f"{POOL}/{AGED}")

  def read_cold(self, what):
    """MB/s, from end to end, by 4 MiB."""
    speeds = []
    for _ in range(self.scenario.args.rounds):
      wait_quiet(self.cluster)
      self.cluster.stop_osd(0)
      forget_caches()
      self.cluster.start_osd(0)
      self.cluster.wait_up()
      self.cluster.wait_clean()
      speeds.append(self.fio(AGED, f"--rw=read --bs=4M --iodepth=4 --size={self.mib}M")["read"]["bw_bytes"] / 1e6)
    self.scenario.say(f"{self.store}, {what}: read at {statistics.median(speeds):.0f} MB/s "
                      f"({min(speeds):.0f}-{max(speeds):.0f})")


def defragment(cluster, *words, **arguments):
  return cluster.ask_osd(0, " ".join(("swimstore defragment", *words)), **arguments)


def dry_run(scenario, cluster, **of):
  defragment(cluster, dry_run=True, **of)
  return wait_until_over(scenario, cluster)


def wait_until_over(scenario, cluster):
  end = time.monotonic() + END_SECONDS
  while time.monotonic() < end:
    found = defragment(cluster, "status")
    if found["state"] != "running":
      break
    time.sleep(0.1)
  scenario.check(found["state"] == "done", "it comes to its end", str(found))
  return found


def put_together(scenario, side):
  """While another image is written to, and the OSD is killed in the middle."""
  cluster, writes = side.cluster, f"--rw=randwrite --bsrange=4k-64k --iodepth=16 --size=32M --randseed=3 {VERIFY}"
  cluster.shell(f"rbd snap create --no-progress {POOL}/{AGED}@gone && rbd snap rm --no-progress {POOL}/{AGED}@gone")
  scenario.until_trimmed()
  before, bytes_before = dry_run(scenario, cluster), side.checksum()
  scenario.check(before["fragmented_bytes"] > 0.5 * (side.mib << 20),
                 f"a dry run finds {before['fragmented_bytes'] >> 20} MiB in {before['pieces']} pieces", str(before))
  cluster.shell(f"rbd create --size 32M {POOL}/{OTHER}")
  cluster.ask_osd(0, "config set", var=RATE, val=[str(before["pieces"] << 12)])  # so that it takes some 17 s
  side.fio(OTHER, writes)
  defragment(cluster)
  side.fio(OTHER, f"{writes} --time_based --runtime=3")
  half = defragment(cluster, "status")
  scenario.check(half["state"] == "running" and half["moved_bytes"] > 0,
                 f"it is killed after {half['moved_bytes'] >> 20} MiB", str(half))
  cluster.kill_osd(0)
  cluster.start_osd(0)
  cluster.wait_up()
  cluster.wait_clean()
  scenario.check(side.checksum() == bytes_before, "the image holds what it held")
  cluster.ask_osd(0, "config set", var=RATE, val=[str(4 << 30)])
  begun = time.monotonic()
  defragment(cluster)
  side.fio(OTHER, writes + " --verify_only=1")
  scenario.check(True, "each block of the other image is right")
  found = wait_until_over(scenario, cluster)
  scenario.check(found["unreadable_ranges"] == found["unplaced_ranges"] == 0, "all can be read, and has a place",
                 str(found))
  scenario.say(f"the rest, as fast as it goes: {found['moved_bytes'] >> 20} MiB, {found['moved_pieces_before']} pieces "
               f"to {found['moved_pieces_after']}, in {time.monotonic() - begun:.1f} s at most")
  left = dry_run(scenario, cluster)
  scenario.check(left["pieces"] <= LEFT_MAX * before["pieces"], f"{left['pieces']} pieces are left to put together",
                 f"more than {LEFT_MAX} of those before")
  scenario.check(side.checksum() == bytes_before, "and the image holds what it held")


def defragment_trees(scenario, side):
  """Of omap that was set, and half of it removed, while an image is written to."""
  cluster = side.cluster
  keys = 100000 if scenario.args.quick else 1000000
  for mode in ("fill", "thin"):
    cluster.shell(f"python3 {OMAP_LOAD} {mode} {cluster.dir}/ceph.conf {POOL} {keys}", timeout=600)
    cluster.shell("ceph tell osd.0 compact")

  def bytes_of_zones():
    found = cluster.ask_osd(0, "swimstore status")["fragmentation"]["metadata"]
    return found["zones_bytes"], found["live_bytes"]

  in_use, live = bytes_of_zones()
  before = dry_run(scenario, cluster, metadata=True)
  scenario.check(before["zones"] >= 2, f"of the trees {before['zones']} zones are worth emptying: "
                 f"{before['zones_used_bytes'] >> 10} KiB in {before['fragments']} fragments", str(before))
  cluster.ask_osd(0, "config set", var=RATE, val=[str(before["zones_used_bytes"] // 8)])
  defragment(cluster, metadata=True)
  side.fio(OTHER, f"--rw=randwrite --bsrange=4k-64k --iodepth=16 --size=32M --randseed=3 {VERIFY} "
           "--time_based --runtime=2")
  half = defragment(cluster, "status")
  scenario.check(half["state"] == "running", f"after two seconds of writes {half['moved_bytes'] >> 10} KiB are moved",
                 str(half))
  done = wait_until_over(scenario, cluster)
  scenario.check(done["moved_bytes"] >= before["zones_used_bytes"] // 2, f"at the end {done['moved_bytes'] >> 10} KiB, "
                 f"in {done['seconds']} s", str(done))
  left = dry_run(scenario, cluster, metadata=True)
  scenario.check(left["zones"] <= before["zones"] // 2, f"{left['zones']} zones are left", str(left))
  in_use_after, live_after = bytes_of_zones()
  scenario.check(in_use_after < in_use, f"zones in use: {in_use >> 20} MiB, of which {live >> 20} live; at the end "
                 f"{in_use_after >> 20}, of which {live_after >> 20}", "no less")


def cost(scenario, side):
  """What clients notice of it, at the rate that it has by default: windows by turns."""
  cluster = side.cluster
  cluster.ask_osd(0, "config unset", var=RATE)
  side.age()
  ratios = {"operations": [], "p99": []}
  for nth in range(scenario.args.windows):
    seen = {}
    for with_it in (False, True) if nth % 2 == 0 else (True, False):
      if with_it:
        defragment(cluster)
      load = side.fio(OTHER, f"--rw=randrw --rwmixread=70 --bs=4k --iodepth=16 --size=32M --time_based "
                      f"--runtime={WINDOW_SECONDS}")
      if with_it and not scenario.check(defragment(cluster, "stop")["state"] == "stopped",
                                        "it takes longer than a window", "use a larger --mib"):
        return
      writes = load["write"]
      seen[with_it] = (load["read"]["iops"] + writes["iops"], writes["clat_ns"]["percentile"]["99.000000"])
    ratios["operations"].append(seen[True][0] / seen[False][0])
    ratios["p99"].append(seen[True][1] / seen[False][1])
  for what, found in ratios.items():
    scenario.say(f"{what} with a defragmentation, to those without: {statistics.median(found):.2f} "
                 f"({min(found):.2f}-{max(found):.2f})")


def run(scenario):
  args = scenario.args
  side = Side(scenario, args.store, size_bytes=(2 if args.quick else 6) * GIB)
  side.fill()
  if not args.quick:
    side.read_cold("as it was written")
  side.age()
  if not args.quick:
    side.read_cold("aged")
  put_together(scenario, side)
  if not args.quick:
    side.read_cold("put together")
    cost(scenario, side)
  defragment_trees(scenario, side)
  scenario.deep_scrub()
  scenario.restart_with_fsck()
  if not args.quick:
    side.cluster.stop()
    rival = Side(scenario, "bluestore", size_bytes=6 * GIB)
    rival.fill()
    rival.read_cold("as it was written")
    rival.age()
    rival.read_cold("aged")
    rival.cluster.stop()


if __name__ == "__main__":
  scenario_module.main("defragment", run, __doc__, stores=("swimstore",), options=(
      (("--mib",), {"type": int, "help": "of the image (default: 1024; with --quick 64)"}),
      (("--overwritten",), {"type": int, "default": 50, "help": "percent of its size (default: %(default)s)"}),
      (("--rounds",), {"type": int, "default": 3, "help": "of each reading (default: %(default)s)"}),
      (("--windows",), {"type": int, "default": 8, "help": "pairs of windows (default: %(default)s)"})))
