#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare object stores below a real Ceph cluster.

Every store gets a cluster of its own on this machine (mon, mgr, OSDs; see qa/vstart.py); all stand side by side, and
the rounds go from store to store, in an order drawn anew for each size, so that what changes on the machine meets all
of them. Per round, size and store, with 16 whole objects in flight as `rados bench` has them:

  write      new objects: the store's first fill, until they take a third of the device or the time is over
  overwrite  the same objects, whole, in random order: its steady state
  seq, rand  reading them back; every read is checked against what was written last
  cold       the same once more, each object once, in random order, after the OSDs were started anew and the kernel
             has dropped what it kept. Not of MemStore, which forgets then; --quick leaves it out. So the writes of
             the next size meet an OSD that was started for the cold reads of this one

Reported are medians over the rounds, and beside the ratio to BlueStore those of the single rounds, lowest and highest.
What was measured for less than 5 s, all rounds together, is marked as no result. p99 is exact, over every operation of
a phase. cv is the standard deviation of per-second operations over their mean. "device B/B" is what reached the block
device per byte of the client, replicas included (for reads: what was read from it), "flushes/op" the flush requests it
got. "OSD us" is the processor time that the OSDs' processes took for each operation, "switches" how often their threads
had to wait (voluntary context switches). Each OSD has a loop device with direct I/O over a file written beforehand;
BlueStore has it raw, its best case, the others through a file system.

A store can be named several times, with options of its own (`--stores swimstore,swimstore:swimstore_cubes=4`), or on
another file system (`swimstore:fs=xfs`). Without BlueStore the ratios are those to the first store named.

--quick takes at most 5 minutes, the default at most 40, set-up not counted: on a slow machine the phases get shorter,
unless --seconds or --rounds ask for a length. The first run on a machine makes the
sysroot, builds ceph-osd and writes the devices' files; all of it is kept in SWIM_CACHE.
"""

import argparse
import fcntl
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import bench_report
import ending
import images
import sysroot
from cluster import Cluster, STATE_FILE
from cluster_spec import BACKING, Spec
from loop_disk import FILE_SYSTEMS
from sysroot import UserError, say
from units import check_targets, parse_size, show_size

DEPTH = 16
ONE_BINARY = str(sysroot.CHECKOUT / "build-all/bin/ceph-osd")
BUFFERED_WRITE = "bluestore_default_buffered_write"
DROP_CACHES = "/proc/sys/vm/drop_caches"
POOL = "bench"
STORES = "swimstore,bluestore,kstore,memstore"
WARM_PHASES = tuple(phase for phase in bench_report.PHASES if phase != "cold")
SIZES = "4K,16K,64K,1M,4M"
QUICK_SIZES = "4K,64K,4M"
# A third of the device: the rest is room for a store that writes anew before it gives up what was there.
FILL_SHARE = 3
QUIET_SECONDS_MAX = 5
# What a run may take, boot included. On a slow machine phases become shorter instead.
QUICK_SECONDS_MAX = 290
SECONDS_MAX = 39 * 60
# Per size and store, besides its timed phases: deleting, syncing, waiting for quiet, and what a start of the OSDs takes.
STEP_OVERHEAD_SECONDS = 4
RESTART_SECONDS = 8


def parse_args(argv):
  parser = argparse.ArgumentParser(prog="run-rados-bench.sh", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--stores", default=STORES, help=f"some of {', '.join(BACKING)}, each with options or without: "
                      "NAME:OPTION=VALUE:OPTION=VALUE (default: %(default)s); the option fs is the file system below "
                      "that one (--fs); filestore comes from Ceph 16.2 in a sysroot of its own")
  parser.add_argument("--sizes", help=f"object sizes (default: {SIZES}; with --quick {QUICK_SIZES})")
  parser.add_argument("--osds", type=int, default=1, help="OSDs per cluster; pools keep min(3, N) copies (default: 1)")
  parser.add_argument("--phases", help=f"some of {','.join(bench_report.PHASES)}, write among them, which makes what the "
                      f"others take (default: all; with --quick {','.join(WARM_PHASES)})")
  parser.add_argument("--seconds", type=float, help="length of each phase (default: 5; with --quick 3)")
  parser.add_argument("--rounds", type=int, help="interleaved rounds (default: 3; with --quick 1)")
  parser.add_argument("--quick", action="store_true", help="at most 5 minutes")
  parser.add_argument("--json", metavar="FILE", help="write the results there")
  parser.add_argument("--plot", metavar="FILE", help="draw their ratios to BlueStore there, as PNG")
  parser.add_argument("--device-size", default="6G", help="of each OSD's loop device (default: %(default)s)")
  parser.add_argument("--fs", default="ext4", help=f"below swimstore, kstore, filestore: {' or '.join(FILE_SYSTEMS)} "
                      "(default: %(default)s)")
  parser.add_argument("--buffered-write", action="store_true", help="BlueStore keeps what it writes in its cache "
                      "(bluestore_default_buffered_write), which it does not by itself")
  parser.add_argument("--one-binary", action="store_true", help="every store in the same ceph-osd, built here with "
                      "BlueStore and KStore in it, instead of theirs from Ceph's packages: the first time a build of "
                      "an hour or so")
  parser.add_argument("--release", choices=sysroot.RELEASES, help="of Ceph (default: reef); the first time with "
                      "another one: its set-up, and a build of an hour or so")
  parser.add_argument("--ceph-osd", default="", help="swimstore's ceph-osd (default: that of the build)")
  args = parser.parse_args(argv)
  if args.release:
    os.environ["SWIM_RELEASE"] = args.release
  args.command = bench_report.told_command("qa/run-rados-bench.sh", argv)
  args.stores = list(dict.fromkeys(args.stores.split(",")))
  args.kinds = {kind_of(store) for store in args.stores}
  sizes = args.sizes or (QUICK_SIZES if args.quick else SIZES)
  args.sizes = [parse_size(size, "--sizes") for size in dict.fromkeys(sizes.split(","))]
  args.budget = None if args.seconds or args.rounds else QUICK_SECONDS_MAX if args.quick else SECONDS_MAX
  args.seconds = (3 if args.quick else 5) if args.seconds is None else args.seconds
  args.rounds = (1 if args.quick else 3) if args.rounds is None else args.rounds
  args.phases = args.phases.split(",") if args.phases else WARM_PHASES if args.quick else bench_report.PHASES
  args.device_size = parse_size(args.device_size, "--device-size")
  check_args(args)
  return args


def check_args(args):
  if args.one_binary and sysroot.release_name() != "reef":
    raise UserError("--one-binary: builds the BlueStore of Reef alone; use --release reef")
  if "filestore" in args.kinds and sysroot.release_name() != "reef":
    raise UserError("--stores filestore: is measured with clients of Reef alone; use --release reef")
  if args.one_binary and (args.ceph_osd or "filestore" in args.kinds):
    raise UserError("--one-binary: leave out --ceph-osd, and filestore, which is of another release")
  for store in args.stores:
    spec_of(args, store).check_values()
  if not {"write"} <= set(args.phases) <= set(bench_report.PHASES):
    raise UserError(f"--phases {','.join(args.phases)}: give write and some of {', '.join(bench_report.PHASES[1:])}")
  for size in args.sizes:
    if not 512 <= size <= 64 << 20:
      raise UserError(f"--sizes {show_size(size)}: give sizes from 512 to 64M")
  if not 1 <= args.seconds <= 3600:
    raise UserError(f"--seconds {args.seconds}: give a number from 1 to 3600")
  if not 1 <= args.rounds <= 1000:
    raise UserError(f"--rounds {args.rounds}: give a number from 1 to 1000")
  if "cold" in args.phases and not os.access(DROP_CACHES, os.W_OK):
    raise UserError(f"{DROP_CACHES} cannot be written: run this as root where the kernel allows it, or with --quick, "
                    "which leaves cold reads out")
  if args.plot and "bluestore" not in args.stores:
    raise UserError("--plot: draws the ratio to BlueStore; add bluestore to --stores")
  check_targets(("--json", args.json), ("--plot", args.plot))


def kind_of(store):
  """Of a store with options."""
  return store.split(":")[0]


def options_of(store):
  options = [option.partition("=") for option in store.split(":")[1:]]
  for name, sign, value in options:
    if not name or not sign or not value:
      raise UserError(f"--stores {store}: an option is given as NAME:OPTION=VALUE")
  return {name: value for name, _, value in options}


def spec_of(args, store):
  kind = kind_of(store)
  conf = {BUFFERED_WRITE: str(args.buffered_write).lower()} if kind == "bluestore" else {}
  conf |= options_of(store)
  fs = conf.pop("fs", "")
  if fs and BACKING.get(kind) != "fs":
    raise UserError(f"--stores {store}: {kind} lies on no file system; leave fs out")
  return Spec(store=kind, osds=args.osds, size_bytes=args.device_size, fs=fs or args.fs, conf=conf,
              ceph_osd=ONE_BINARY if args.one_binary else args.ceph_osd if kind == "swimstore" else "")


def cluster_of(store):
  return Cluster(sysroot.cache_dir() / "bench" / re.sub(r"[^\w.-]", "_", store), say)


def wanted_images(args):
  return [image for store in args.stores for image in cluster_of(store).wanted_images(spec_of(args, store))]


def set_up(args):
  """The sysroots, swimstore's ceph-osd and the load generator: whatever of it is missing."""
  release = sysroot.release()
  needs = ["--loop", "--setup", release.set_up, "--images", images.missing_bytes(wanted_images(args))]
  needs += ["--setup", "filestore"] if "filestore" in args.kinds else []
  needs += ["--build", "build-all" if args.one_binary else release.build] if "swimstore" in args.kinds and not args.ceph_osd else []
  sysroot.check_host(*needs)
  sysroot.prepare()
  if "filestore" in args.kinds:
    os.environ.pop("SWIM_NO_SETUP", None)
    sysroot.prepare(spec_of(args, "filestore").root())
  if args.one_binary or ("swimstore" in args.kinds and not args.ceph_osd):
    say("building ceph-osd")
    folder, extra = ("build-all", "-DSWIM_WITH_BLUESTORE=ON") if args.one_binary else (release.build, "")
    build = (f"cmake --preset {release.preset} -B {folder} {extra} >&2 && "
             f"cmake --build {folder} --target ceph-osd --parallel $(nproc) >&2")
    if subprocess.run(sysroot.command(["bash", "-c", build]), cwd=sysroot.CHECKOUT,
                      stdin=subprocess.DEVNULL).returncode != 0:
      raise UserError("ceph-osd does not build; see the compiler's messages above")


def load_generator():
  """Path of rados_load, compiled once per version of its source."""
  source = sysroot.CHECKOUT / "qa/bench/rados_load.cc"
  key = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
  program = sysroot.cache_dir() / "bench" / "bin" / f"rados_load-{sysroot.release().root}-{key}"
  if not program.exists():
    program.parent.mkdir(parents=True, exist_ok=True)
    sysroot.run(["bash", "-c", f"g++ -std=c++20 -O2 -I$SWIM_CEPH_SOURCE/src/include {source} -o {program}.partial "
                               "-l:librados.so.2"])
    pathlib.Path(f"{program}.partial").rename(program)
  return program


def load_command(cluster, pool, *options):
  """argv of rados_load on that pool, inside the sysroot."""
  return [load_generator(), "--conf", cluster.dir / "ceph.conf", "--pool", pool, *options]


class Bench:
  def __init__(self, args):
    self.args = args
    self.clusters = {}
    self.measured = {}
    self.failed = []
    self.begun = time.monotonic()

  def prepare_devices(self):
    """Set-up too. SWIM_KEEP_IMAGES keeps the files from run to run."""
    for store in self.args.stores:
      cluster_of(store).write_images(spec_of(self.args, store))

  def boot(self):
    self.begun = time.monotonic()
    for store in self.args.stores:
      started = time.monotonic()
      cluster = cluster_of(store)
      self.clusters[store] = cluster
      cluster.stop()
      cluster.create(spec_of(self.args, store))
      cluster.create_pool(POOL)
      cluster.wait_clean()
      say(f"{store}: cluster is up after {time.monotonic() - started:.0f} s")

  def shut_down(self):
    with ending.whole():
      self._shut_down()

  def _shut_down(self):
    ending.end_processes()
    for store in self.args.stores:
      try:
        cluster = self.clusters.get(store) or cluster_of(store)
        if store in self.failed:
          cluster.stop()
          say(f"{store}: logs and stores, until the next run: {cluster.dir}")
        else:
          cluster.remove()
      except (UserError, sysroot.CommandFailed) as error:
        say(f"cannot tidy up: {error}")

  def run(self):
    args = self.args
    steps = args.rounds * len(args.sizes) * len(args.stores)
    started, done = time.monotonic(), 0
    for nth in range(args.rounds):
      for size in args.sizes:
        # Drawn anew each time: no store always follows the same other one.
        for store in random.sample(args.stores, len(args.stores)):
          self._measure(store, size, nth, self._phase_seconds(steps - done))
          done += 1
          elapsed = time.monotonic() - started
          left = elapsed / done * (steps - done)
          say(f"{done}/{steps} round {nth + 1} {show_size(size):>4} {store:<9} {self._last(store, size)} "
              f"({left // 60:.0f}:{left % 60:02.0f} left)")

  def _phase_seconds(self, steps_left):
    if self.args.budget is None:
      return self.args.seconds
    left = self.args.budget - (time.monotonic() - self.begun)
    overhead = STEP_OVERHEAD_SECONDS + (RESTART_SECONDS if "cold" in self.args.phases else 0)
    share = (left / steps_left - overhead) / len(self.args.phases)
    return round(max(1.0, min(self.args.seconds, share)), 1)

  def _measure(self, store, size, nth, seconds):
    if store in self.failed:
      return
    try:
      self._load(store, size, nth, seconds)
    except (sysroot.CommandFailed, UserError) as failed:
      cluster = self.clusters[store]
      self.failed.append(store)
      dead = [osd for osd in range(self.args.osds) if not cluster.osd_alive(osd)]
      say(f"{store}: {failed}")
      for osd in dead:
        say(f"{store}: osd.{osd} has ended; the end of its log:\n{cluster.log_tail(f'osd.{osd}')}")
      say(f"{store}: left out from here on")
      return
    wait_quiet(self.clusters[store])

  def _load(self, store, size, nth, seconds):
    cluster, args = self.clusters[store], self.args
    command = load_command(cluster, POOL, "--depth", DEPTH, "--size", size, "--seconds", seconds,
                           "--fill-bytes-max", max(args.device_size // FILL_SHARE, 64 * size), "--seed", nth + 1,
                           "--prefix", f"bench_{nth}_{size}", "--state", cluster.dir / "run" / "load_state")
    devices = cluster.devices()
    if devices:
      mounts = [cluster.osd_dir(osd) for osd in range(args.osds)] if BACKING[kind_of(store)] == "fs" else []
      command += ["--devices", ",".join(devices)]
      command += ["--sync", ",".join(str(mount) for mount in mounts)] if mounts else []
    timeout = 60 + 20 * seconds
    warm = [phase for phase in WARM_PHASES if phase in args.phases]
    has_cold = "cold" in args.phases and kind_of(store) != "memstore"
    for phases in [warm, ("cold", "delete")] if has_cold else [(*warm, "delete")]:
      if "cold" in phases:
        start_cold(cluster)
      processes = ",".join(str(cluster.osd_pid(osd)) for osd in range(args.osds))
      self._note(store, size, sysroot.run([*command, "--processes", processes, "--phases", ",".join(phases)],
                                          timeout=timeout).stdout)

  def _note(self, store, size, said):
    for line in said.splitlines():
      phase = json.loads(line)
      phase["on_device"] = bool(self.clusters[store].devices())
      if phase["phase"] in bench_report.PHASES and phase["ops"]:
        self.measured.setdefault((store, phase["phase"], size), []).append(phase)

  def _last(self, store, size):
    shown = []
    for phase in bench_report.PHASES:
      rounds = self.measured.get((store, phase, size))
      if rounds:
        shown.append(f"{phase} {rounds[-1]['ops'] / rounds[-1]['seconds']:.0f}/s")
    return "failed" if store in self.failed else ", ".join(shown)


def start_cold(cluster):
  """The OSDs anew, with nothing of their stores in memory."""
  osds = range(cluster.spec.osds)
  for osd in osds:
    cluster.stop_osd(osd)
  forget_caches()
  for osd in osds:
    cluster.start_osd(osd)
  cluster.wait_up()
  cluster.wait_clean()
  wait_quiet(cluster)


def forget_caches():
  """What the kernel keeps of files and of file systems."""
  os.sync()  # what is dirty is not dropped
  pathlib.Path(DROP_CACHES).write_text("3\n")


def wait_quiet(cluster, seconds_max=QUIET_SECONDS_MAX, every_s=0.5, moved_bytes=lambda step: step.written_bytes):
  """Let a store finish what it does in the background before the next one's turn, within reason: until no device moves a MiB
  in the time between two looks. `moved_bytes`: of what the counters of a device gained. Returns whether it came to that."""
  deadline = time.monotonic() + seconds_max
  before = cluster.device_counters()
  while time.monotonic() < deadline:
    time.sleep(every_s)
    now = cluster.device_counters()
    if all(moved_bytes(after - earlier) < 1 << 20 for after, earlier in zip(now, before)):
      return True
    before = now
  return False


def programs(args):
  return ("every store in one ceph-osd, built here" if args.one_binary
          else "swimstore in the ceph-osd built here, the others in that of Ceph's packages; --one-binary: all in one")


def write_caching(args):
  return (f"write caching: {BUFFERED_WRITE} = {str(args.buffered_write).lower()} for bluestore"
          f"{'' if args.buffered_write else ', its default; --buffered-write turns it on'}")


def write_json(path, args, medians):
  document = {
      "results": bench_report.results(medians),
      "run": {"date": time.strftime("%Y-%m-%d"), "machine": bench_report.machine(), "command": args.command,
              "osds": args.osds, "in_flight": DEPTH, "seconds_per_phase": args.seconds, "rounds": args.rounds,
              "fs": args.fs, "device": "loop, direct I/O, backing file written beforehand",
              "order": "of the stores: drawn anew for each size of each round", "write_caching": write_caching(args),
              "programs": programs(args),
              "is_result": f"measured for {bench_report.RESULT_SECONDS_MIN} s or more, all rounds together, and what it is compared with, too",
              "ratio": f"to {bench_report.baseline(args.stores)}", "ratio_lowest": "of the rounds, each beside the compared one's of the same round; likewise ratio_highest",
              "p99_ms": "exact, over all operations of a phase as the client saw them; median of the rounds",
              "cold": "the OSDs were started anew, and the kernel's page cache was dropped",
              "overwrite": "inside the write entries: the same objects once more, whole, in random order"},
  }
  pathlib.Path(path).write_text(json.dumps(document, indent=2) + "\n")


def plot(args, medians):
  with tempfile.TemporaryDirectory(dir=sysroot.cache_dir()) as folder:
    write_json(f"{folder}/results.json", args, medians)
    sysroot.run(["python3", sysroot.CHECKOUT / "qa/bench/plot_bench.py", f"{folder}/results.json",
                 f"{folder}/results.png"])
    shutil.copyfile(f"{folder}/results.png", args.plot)


def only_one_run():
  """Two runs at once would measure each other. The lock ends with the process."""
  path = sysroot.cache_dir() / "bench" / "lock"
  path.parent.mkdir(parents=True, exist_ok=True)
  lock = open(path, "w")
  try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    raise UserError("another bench runs on this machine; wait for its end") from None
  return lock


def give_back_others(args):
  """What a run that was killed has left of stores that are not in this one: it would run beside, and keep its devices."""
  own = {cluster_of(store).dir for store in args.stores}
  for path in (sysroot.cache_dir() / "bench").resolve().glob(f"*/{STATE_FILE}"):
    if path.parent in own:
      continue
    say(f"{path.parent.name}: left by an earlier run: it is ended, and its devices are given back")
    try:
      Cluster(path.parent, say).remove()
    except (UserError, sysroot.CommandFailed, OSError) as error:
      say(f"cannot tidy up: {error}")


def main(argv):
  ending.arm()
  try:
    args = parse_args(argv)
    lock = only_one_run()
    give_back_others(args)
    set_up(args)
    for store in args.stores:
      spec_of(args, store).check()
    bench = Bench(args)
    try:
      bench.prepare_devices()
      bench.boot()
      bench.run()
    finally:
      bench.shut_down()
    lock.close()
    base_store = bench_report.baseline(args.stores)
    medians = bench_report.summarize(bench.measured, base_store)
    print(bench_report.table(medians, args.stores, args.sizes, base_store))
    print(f"\n{write_caching(args)}\nprograms: {programs(args)}")
    if args.json:
      write_json(args.json, args, medians)
    if args.plot:
      plot(args, medians)
    return 1 if bench.failed else 0
  except (UserError, sysroot.CommandFailed, OSError) as error:
    print(f"run-rados-bench: {error}", file=sys.stderr)
    return 1
  except KeyboardInterrupt:
    ending.end_processes()
    print("run-rados-bench: interrupted; everything it started is ended", file=sys.stderr)
    return 130


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
