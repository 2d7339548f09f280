#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An OSD's disk gets larger while it serves, and its file system larger and smaller while it is stopped.

xfs is enlarged below clients that write; ext4, which can also be made smaller, with the OSD stopped. Each time the
cluster's size follows, every object reads right, and the store is clean by a deep fsck.
"""

import os
import subprocess

import scenario as scenario_module
import sysroot
from loop_disk import unmount
from scenario import GIB

POOL = "bench"
SMALL, LARGE = 2 * GIB, 4 * GIB
OBJECTS = "-b 65536 -t 8 --max-objects 5000"


def is_about(cluster, size_bytes):
  """File system and store keep some for themselves."""
  return 0.8 * size_bytes < cluster.space()["total"] <= size_bytes


def start(scenario, kind, size_bytes):
  scenario.args.fs = kind
  cluster = scenario.start(1, size_bytes=size_bytes, name=kind, conf={"osd heartbeat interval": 1})
  cluster.create_pool(POOL, pg_num=8)
  cluster.wait_clean()
  return cluster


def reads_right(scenario, cluster, when):
  """rados bench compares what it reads."""
  cluster.shell(f"rados -p {POOL} bench 60 seq -t 8 --run-name written >/dev/null")
  scenario.check(True, f"each object reads right {when}")


def write(cluster, seconds):
  return subprocess.Popen(sysroot.command([
      "rados", "--conf", cluster.dir / "ceph.conf", "-p", POOL, "bench", seconds, "write", *OBJECTS.split(),
      "--run-name", "written", "--no-cleanup"]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def enlarge_xfs(scenario):
  cluster = start(scenario, "xfs", SMALL)
  disk = cluster.disk(0)
  scenario.check(is_about(cluster, SMALL), f"the cluster has {SMALL >> 30} GiB")
  writer = write(cluster, 5)
  try:
    os.truncate(disk.image, LARGE)
    subprocess.run(["losetup", "--set-capacity", disk.device()], check=True)
    sysroot.run(["xfs_growfs", cluster.osd_dir(0)])
    scenario.check(writer.poll() is None, "disk and xfs are enlarged while clients write")
    scenario.until(lambda: is_about(cluster, LARGE), 30, f"the cluster has {LARGE >> 30} GiB, without a restart")
  finally:
    failed = writer.wait(60)
  scenario.check(not failed, "no write failed")
  reads_right(scenario, cluster, "in the larger file system")
  scenario.deep_scrub()
  scenario.restart_with_fsck()
  cluster.stop()


def resize_ext4(scenario, cluster, size_bytes):
  """As the page says."""
  cluster.stop_osd(0)
  unmount(cluster.osd_dir(0))
  disk = cluster.disk(0)
  disk.detach()  # waits until nobody uses it
  disk.attach()
  sysroot.run(["e2fsck", "-f", "-p", disk.device()])
  sysroot.run(["resize2fs", disk.device(), f"{size_bytes >> 20}M"])
  disk.mount(cluster.osd_dir(0), "ext4")
  cluster.start_osd(0)
  cluster.wait_up()
  scenario.until(lambda: is_about(cluster, size_bytes), 30, f"ext4 is resized: the cluster has {size_bytes >> 30} GiB")
  reads_right(scenario, cluster, f"in {size_bytes >> 30} GiB")
  scenario.restart_with_fsck()


def run(scenario):
  enlarge_xfs(scenario)
  cluster = start(scenario, "ext4", LARGE)
  scenario.check(write(cluster, 3).wait(60) == 0, "objects are written")
  for size_bytes in (SMALL, LARGE):
    resize_ext4(scenario, cluster, size_bytes)
  scenario.deep_scrub()


if __name__ == "__main__":
  scenario_module.main("resize", run, __doc__, stores=("swimstore",))
