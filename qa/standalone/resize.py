#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An OSD's disk gets larger while it serves, and its file system smaller and larger while it is stopped.

xfs is enlarged below clients that write; ext4, which can also be made smaller, with the OSD stopped. Each time the
cluster's size follows, every object has the bytes that were written, and the store is clean by a deep fsck.
"""

import os
import subprocess

import scenario as scenario_module
import sysroot
from loop_disk import unmount
from scenario import GIB

POOL = "data"
SMALL, LARGE = 2 * GIB, 4 * GIB
OBJECTS_WHILE_ENLARGED, OBJECTS = 60, 40  # of 8 MiB; log, reserve and primed slots take 1 GiB


def is_about(cluster, size_bytes):
  """File system and store keep some for themselves."""
  return 0.8 * size_bytes < cluster.space()["total"] <= size_bytes


def start(scenario, kind, size_bytes):
  scenario.args.fs = kind
  cluster = scenario.start(1, size_bytes=size_bytes, name=kind, conf={"osd heartbeat interval": 1})
  cluster.create_pool(POOL, pg_num=8)
  cluster.wait_clean()
  return cluster


def write(cluster, count):
  """Random bytes, whose sums are noted."""
  script = f"""set -e
    cd {cluster.dir}/run; : >sums
    for number in $(seq {count}); do
      head -c 8M /dev/urandom >object
      sha256sum <object >>sums
      rados -p {POOL} put $number object
    done
    rm object"""
  return subprocess.Popen(sysroot.command(["env", f"CEPH_CONF={cluster.dir}/ceph.conf", "bash", "-c", script]),
                          stdin=subprocess.DEVNULL)


def is_writing(cluster, writer):
  return writer.poll() is None and bool(cluster.shell(f"rados -p {POOL} ls").split())


def check_content(scenario, cluster, count, when):
  out = cluster.shell(f"""set -e -o pipefail
    cd {cluster.dir}/run
    for number in $(seq {count}); do rados -p {POOL} get $number - | sha256sum; done | cmp - sums 2>&1 && echo same || true""")
  scenario.check(out == "same\n", f"{count} objects have the bytes that were written, {when}", out[-300:])


def enlarge_xfs(scenario):
  cluster = start(scenario, "xfs", SMALL)
  disk = cluster.disk(0)
  scenario.check(is_about(cluster, SMALL), f"the cluster has {SMALL >> 30} GiB")
  writer = write(cluster, OBJECTS_WHILE_ENLARGED)
  try:
    scenario.until(lambda: is_writing(cluster, writer), 30, "a client writes")
    os.truncate(disk.image, LARGE)
    subprocess.run(["losetup", "--set-capacity", disk.device()], check=True)
    sysroot.run(["xfs_growfs", cluster.osd_dir(0)])
    scenario.check(writer.poll() is None, "disk and xfs are enlarged meanwhile")
    scenario.until(lambda: is_about(cluster, LARGE), 30, f"the cluster has {LARGE >> 30} GiB, without a restart")
  finally:
    failed = writer.wait(100)
  scenario.check(not failed, "no write failed")
  check_content(scenario, cluster, OBJECTS_WHILE_ENLARGED, "in the larger file system")
  scenario.deep_scrub()
  scenario.restart_with_fsck()
  cluster.stop()


def resize_ext4(scenario, cluster, size_bytes):
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
  check_content(scenario, cluster, OBJECTS, f"in {size_bytes >> 30} GiB")
  scenario.restart_with_fsck()


def run(scenario):
  enlarge_xfs(scenario)
  cluster = start(scenario, "ext4", LARGE)
  scenario.check(write(cluster, OBJECTS).wait(100) == 0, f"{OBJECTS} objects are written")
  for size_bytes in (SMALL, LARGE):
    resize_ext4(scenario, cluster, size_bytes)
  scenario.deep_scrub()


if __name__ == "__main__":
  scenario_module.main("resize", run, __doc__, stores=("swimstore",))
