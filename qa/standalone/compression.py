#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pools that are compressed, on this store and on BlueStore, each with the same pool options.

An RBD image is filled by fio, with data of which a half is noise (--noise), or with text (--text): in blocks of 4 MiB,
and another in blocks of 64 KiB. Then 4 KiB blocks of it are overwritten at random. Stores take turns. Printed are MB/s
or operations a second, what the pool takes for what is stored in it, what `ceph df` says of compression, and the ratios
to BlueStore, beside the targets: 1.2 times the speed, and no more space. What is claimed is that every block is read as
it was written, also after kill -9, that compression gains, that an image in a pool without is not compressed, and that
a deep scrub is clean. --quick: this store alone.
"""

import statistics

import rbd_image
import scenario as scenario_module
import sysroot
from scenario import GIB

ALGORITHMS = ("snappy", "lz4", "zstd", "zlib")
SPEED_TARGET, SPACE_TARGET = 1.2, 1.0
DEPTH = 16
# What fio takes as a pattern, and as much as a compressed blob holds twice.
TEXT_BYTES = 128 << 10
VERIFY = "--verify=crc32c --verify_fatal=1 --verify_dump=0 --verify_state_save=0"
LOADS = (("4 MiB writes", "--rw=write --bs=4M", 4), ("64 KiB writes", "--rw=write --bs=64k", DEPTH),
         ("4 KiB overwrites", "--rw=randwrite --bs=4k", DEPTH))


def noise(args):
  """fio's options for data of which some is random."""
  return f"--buffer_compress_percentage={100 - args.noise} --buffer_compress_chunk=1k"


def text(path):
  """fio's options for text, which is written to `path` first. Not where fio verifies: it makes its own data then."""
  pages = sorted((sysroot.CHECKOUT / "doc").glob("*.md"))
  path.write_bytes(b"".join(page.read_bytes() for page in pages)[:TEXT_BYTES])
  return f"--buffer_pattern=\"'{path}'\""


class Side:
  """A cluster of one OSD, and what was measured on it."""

  def __init__(self, scenario, store):
    self.scenario = scenario
    self.store = store
    self.cluster = scenario.start(1, size_bytes=6 * GIB, store=store, name=store)
    self.rounds = []

  def pool(self, name, algorithm):
    """A new pool; compressed, when an algorithm is named."""
    self.cluster.create_pool(name, pg_num=4, application="rbd")
    if algorithm:
      self.cluster.ceph("osd", "pool", "set", name, "compression_algorithm", algorithm)
      self.cluster.ceph("osd", "pool", "set", name, "compression_mode", "force")
    self.cluster.shell(f"rbd pool init {name}")

  def usage(self, pool):
    """What ceph df says of the pool, once the OSD has told."""
    self.cluster.flush_pg_stats()
    found = self.cluster.ceph_json("df", "detail")["pools"]
    return next(row["stats"] for row in found if row["name"] == pool)

  def measure(self, nth, algorithm, mib):
    """{what: figure}, of images in a pool made for it."""
    pool = f"pool{nth}"
    content = text(self.cluster.dir / "run" / "text") if self.scenario.args.text else noise(self.scenario.args)
    self.pool(pool, algorithm)
    figures = {}
    for what, options, depth in LOADS:
      image = "large" if "4 MiB" in what else "small"
      if "overwrites" not in what:
        self.cluster.shell(f"rbd create --size {mib}M {pool}/{image}")
      share = "--io_size=25%" if "overwrites" in what else ""
      done = rbd_image.fio(self.cluster, pool, image,
                           f"{options} --iodepth={depth} --size={mib}M {share} {content}")["write"]
      figures[what] = done["iops"] if "overwrites" in what else done["bw_bytes"] / 1e6
      stats = self.usage(pool)
      figures[f"space after {what}"] = stats["bytes_used"] / stats["stored"]
    self.scenario.say(f"{self.store}, {algorithm}: " + ", ".join(f"{what} {value:.2f}" for what, value in figures.items())
                      + f"; compressed {stats['compress_bytes_used'] / 1e6:.0f} of {stats['compress_under_bytes'] / 1e6:.0f} MB")
    self.cluster.ceph("osd", "pool", "rm", pool, pool, "--yes-i-really-really-mean-it")
    self.rounds.append(figures)


def claims(scenario, side):
  """Of this store: read right, and gained."""
  cluster, mib = side.cluster, 32 if scenario.args.quick else 256
  verified = f"{VERIFY} --iodepth={DEPTH} --size={mib}M {noise(scenario.args)}"
  for algorithm in ("", "snappy") if scenario.args.quick else ("", *ALGORITHMS):
    pool = f"of_{algorithm or 'none'}"
    side.pool(pool, algorithm)
    cluster.shell(f"rbd create --size {mib}M {pool}/image")
    rbd_image.fio(cluster, pool, "image", f"--rw=write --bs=1M --randseed=1 {verified}")
    stats = side.usage(pool)
    gains = stats["compress_under_bytes"] > 0 and stats["bytes_used"] < 0.8 * stats["stored"]
    scenario.check(gains == bool(algorithm), f"pool with {algorithm or 'no'} compression: {stats['stored']} bytes take "
                   f"{stats['bytes_used']}, {stats['compress_under_bytes']} were compressed into {stats['compress_bytes_used']}")
    cluster.shell(f"rbd snap create --no-progress {pool}/image@before")
    before = rbd_image.checksum(cluster, f"{pool}/image")
    overwrites = f"--rw=randwrite --bsrange=4k-64k --randseed=2 {verified}"
    rbd_image.fio(cluster, pool, "image", overwrites)
    cluster.kill_osd(0)
    cluster.start_osd(0)
    cluster.wait_up()
    cluster.wait_clean()
    rbd_image.fio(cluster, pool, "image", overwrites + " --verify_only=1")
    scenario.check(True, f"{pool}: each block that was overwritten is right after kill -9")
    scenario.check(rbd_image.checksum(cluster, f"{pool}/image@before") == before, f"{pool}: and the snapshot is as it was")
  scenario.deep_scrub()


def compare(scenario):
  sides = [Side(scenario, store) for store in (scenario.args.store, "bluestore")]
  for algorithm in scenario.args.algorithms.split(","):
    for side in sides:
      side.rounds.clear()
    for nth in range(scenario.args.rounds):
      for side in sides if nth % 2 == 0 else reversed(sides):
        side.measure(f"{algorithm}{nth}", algorithm, scenario.args.mib)
    for what in sides[0].rounds[0]:
      ours, theirs = ([figures[what] for figures in side.rounds] for side in sides)
      ratios = sorted(a / b for a, b in zip(ours, theirs))
      target = f"at most {SPACE_TARGET}" if what.startswith("space") else f"at least {SPEED_TARGET}"
      scenario.say(f"{algorithm}, {what}: {statistics.median(ours):.2f}, BlueStore {statistics.median(theirs):.2f}: "
                   f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f}) times; target {target}")


def run(scenario):
  side = Side(scenario, scenario.args.store)
  claims(scenario, side)
  if not scenario.args.quick:
    side.cluster.stop()
    compare(scenario)
  scenario.check_daemons()


if __name__ == "__main__":
  scenario_module.main("compression", run, __doc__, stores=("swimstore",), options=(
      (("--algorithms",), {"default": "snappy,lz4", "help": "to compare (default: %(default)s)"}),
      (("--noise",), {"type": int, "default": 50, "help": "percent of the data that is random (default: %(default)s)"}),
      (("--text",), {"action": "store_true", "help": "compare with the pages in doc/, written again and again"}),
      (("--rounds",), {"type": int, "default": 3, "help": "of each (default: %(default)s)"}),
      (("--mib",), {"type": int, "default": 1024, "help": "of each image (default: %(default)s)"})))
