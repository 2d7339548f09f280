#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a store costs as it grows: 10^4, 10^5, 10^6 objects of 4 KiB, with --long 10^7.

swimstore_bench grows one store after the other on a device of the same size, SwimStore through a file system, BlueStore
(--stores swimstore,bluestore) raw. Both are in one program then, and have caches of the same size. Each write has what
an OSD adds: object info, PG log. At each count, each line a process of its own on the same store:

  write      new objects: the second half of the way to the count, with all flushes and compactions that fall into it
  overwrite  at random, whole
  read       at random
  list       every object of each PG, 300 at a time
  delete     1 %, at most 10,000, the oldest
  crash      a tenth as many new objects, at most 100,000, then kill -9 while it writes; the kernel forgets what it
             has cached, the store is mounted, a first read and a first write are done; then every object that was
             acknowledged while it wrote is read and compared
  fsck       of the store after that, not mounted

The stores come one after the other, each once. Processor time is that of the process, with what the load itself takes;
the kernel's own threads are not in it.

Claimed is, of SwimStore: processor time for a write at the largest count is at most 1.2 of that at 10^5, and the first
read and the first write after a crash are done within a second of the mount's beginning. Of each store: nothing that
was acknowledged in a while before a crash is missing or has other content (overwriting leaves it as it was), listing finds all
and no more, fsck finds no error.

--quick: 10^3 and 10^4, which says nothing of growth, so that the first claim is left out.
"""

import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

import scenario as scenario_module
import images
import sysroot
from scenario import GIB, UserError
from bench_report import machine, told_command
from loop_disk import mounted
from rados_bench import DROP_CACHES, forget_caches
from units import check_targets

PLOT = sysroot.CHECKOUT / "qa" / "bench" / "plot_growth.py"
STORES = {"swimstore": "fs", "bluestore": "raw"}
COUNTS = {"quick": (10**3, 10**4), "default": (10**4, 10**5, 10**6), "long": (10**4, 10**5, 10**6, 10**7)}
SIZES = {"quick": 2 * GIB, "default": 8 * GIB, "long": 54 * GIB}
SECONDS = {"quick": 1, "default": 10, "long": 10}
OBJECT_BYTES = 4096
PGS, DEPTH = 8, 16
ACKED_ENTRY = struct.Struct("<QQ")  # in front of them PGs and bytes of an object, in the same shape
READS_MAX = 10**6       # the bench keeps each one's latency, and its memory is looked at
DELETED_MAX = 10_000
CRASHED_MAX = 100_000
KV_ONODE_RATIO = 0.04   # bluestore_cache_kv_onode_ratio
PATIENCE_S = 6 * 3600   # for one run of the bench
BASE_COUNT = 10**5
WRITE_COST_MAX = 1.2
FIRST_IO_S_MAX = 1.0
# Of the table: what, of which operation, its figure.
FIGURES = (
    ("write of new objects, a second", "write", "iops"),
    ("p99, ms", "write", "p99_ms"),
    ("processor time, µs", "write", "processor_us_per_op"),
    ("bytes at the device", "write", "device_bytes_per_op"),
    ("metadata among them", "write", "metadata_bytes_per_op"),
    ("overwrite, a second", "overwrite", "iops"),
    ("p99, ms", "overwrite", "p99_ms"),
    ("processor time, µs", "overwrite", "processor_us_per_op"),
    ("bytes at the device", "overwrite", "device_bytes_per_op"),
    ("metadata among them", "overwrite", "metadata_bytes_per_op"),
    ("random read, a second", "read", "iops"),
    ("p99, ms", "read", "p99_ms"),
    ("processor time, µs", "read", "processor_us_per_op"),
    ("memory of the process after it, MiB", "read", "resident_mib"),
    ("for each object more than before, bytes", "read", "resident_bytes_per_object"),
    ("list, objects a second", "list", "objects_per_s"),
    ("delete, a second", "delete", "iops"),
    ("p99, ms", "delete", "p99_ms"),
    ("after kill -9: mount, s", "crash", "mount_seconds"),
    ("until the first read, s", "crash", "first_read_s"),
    ("until the first write, s", "crash", "first_write_s"),
    ("fsck, s", "fsck", "seconds"),
)


class GrowingStore:
  """What swimstore_bench does with one store."""

  def __init__(self, scenario, name, folder, device):
    self.scenario = scenario
    self.name = name
    self.folder = folder
    self.path = folder / ("mnt/store" if STORES[name] == "fs" else "store")
    self.acked = folder / "acked"
    self.program = program_of(scenario.args.stores)
    cache = scenario.args.cache
    # An OSD's log goes to a file, too; what is an error is shown here.
    options = [f"--{name}_cache_autotune=false", f"--{name}_cache_size={cache}", "--log_to_stderr=false",
               "--err_to_stderr=true"]
    if name == "swimstore":
      options.append("--swimstore_fsck_memory=64G")  # one pass
    else:
      # Onodes have a cache of their own in RocksDB, which without autotuning keeps the size that it has from the start.
      options += [f"--bluestore_block_path={device}", f"--rocksdb_cache_size={int(KV_ONODE_RATIO * cache)}"]
    self.options = options + [f"--{option.replace(' ', '_')}={value}" for option, value in scenario.args.conf]

  def command(self, op, operations=0, seconds=PATIENCE_S, more=()):
    return [self.program, "--store", self.name, "--op", op, "--size", OBJECT_BYTES, "--object-size", OBJECT_BYTES,
            "--threads", PGS, "--depth", DEPTH, "--operations", operations, "--seconds", seconds, "--path", self.path,
            "--acked", self.acked, *more, "--", *self.options]

  def bench(self, op, operations=0, seconds=PATIENCE_S, errors_allowed=False):
    """One run; its result. `errors_allowed`: of objects or of fsck; they are in it."""
    result = self.folder / "result.json"
    result.unlink(missing_ok=True)
    command = self.command(op, operations, seconds, ["--json", result])
    done = sysroot.run(command, timeout=PATIENCE_S, check=False)
    if done.returncode != 0 and not (errors_allowed and result.exists()):
      raise sysroot.CommandFailed(command, f"exit {done.returncode}: {done.stderr.strip()[-800:]}")
    return json.loads(result.read_text())["results"][0]

  def numbers(self):
    """Of each PG: the number of its oldest object, and that of the next one."""
    header, *entries = ACKED_ENTRY.iter_unpack(self.acked.read_bytes())
    if header != (PGS, OBJECT_BYTES) or len(entries) != PGS:
      raise UserError(f"{self.program}: its file of acknowledged objects is not the one that is expected here; build it anew")
    return entries

  def count(self):
    return sum(end - first for first, end in self.numbers()) if self.acked.exists() else 0

  def grow(self, count):
    missing = count - self.count()
    if missing <= 0:
      raise UserError(f"{self.name}: has {-missing} objects more than the {count} that it was to grow to")
    return self.bench("write", operations=missing)

  def crash(self, count):
    """kill -9 when so many new objects are acknowledged; returns how many each PG has got, at most."""
    before = self.numbers()
    goal = self.count() + count
    with open(self.folder / "killed.log", "wb") as log:
      process = subprocess.Popen(sysroot.command(self.command("write")), stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=log)
      while process.poll() is None and self.count() < goal:
        time.sleep(0.001)
      process.send_signal(signal.SIGKILL)
      process.wait()
    self.scenario.check(process.returncode == -signal.SIGKILL, f"{self.name}: killed while it writes",
                        f"exit {process.returncode}: {(self.folder / 'killed.log').read_text()[-800:]}")
    return max(end - earlier for (_, end), (_, earlier) in zip(self.numbers(), before))


def program_of(stores):
  folder = "build-all" if "bluestore" in stores else "build"
  program = sysroot.CHECKOUT / folder / "bin" / "swimstore_bench"
  if not program.exists():
    extra = " -DSWIM_WITH_BLUESTORE=ON" if folder == "build-all" else ""
    raise UserError(f"{program}: no such program; build it first: qa/enter.sh sh -c "
                    f"'cmake --preset release -B {folder}{extra} && ninja -C {folder} swimstore_bench'")
  return program


def measure(scenario, store, count):
  """All of it at one count; returns {operation: result}."""
  check, seconds, found = scenario.check, scenario.args.seconds, {}
  half = count // 2
  if store.count() < half:
    store.grow(half)
  found["write"] = store.grow(count)
  found["overwrite"] = store.bench("overwrite", seconds=seconds)
  found["read"] = store.bench("read", operations=READS_MAX, seconds=seconds)
  found["list"] = store.bench("list")
  listed = found["list"]["listed_objects"]
  check(listed == count, f"{store.name}: listing finds the {count} objects, and no other", f"{listed}")
  found["delete"] = store.bench("delete", operations=min(count // 100, DELETED_MAX))
  new = store.crash(min(count // 10, CRASHED_MAX))
  forget_caches()
  # Of each PG as many: in one that has got fewer, older ones are read, too.
  found["crash"] = store.bench("check", operations=PGS * new, errors_allowed=True)
  wrong = found["crash"]["wrong_objects"]
  check(wrong == 0, f"{store.name}: of {found['crash']['operations']} objects acknowledged, the newest before kill -9, "
        "each has its content", f"{wrong} do not")
  found["fsck"] = store.bench("fsck", errors_allowed=True)
  check(found["fsck"]["errors"] == 0, f"{store.name}: fsck after it finds no error", f"{found['fsck']['errors']}")
  complete(found)
  scenario.say(f"{store.name}, {count} objects: write {found['write']['iops']:.0f}/s and "
               f"{found['write']['processor_us_per_op']:.1f} µs, overwrite {found['overwrite']['iops']:.0f}/s, read "
               f"{found['read']['iops']:.0f}/s, first write {found['crash']['first_write_s']:.2f} s after a crash, fsck "
               f"{found['fsck']['seconds']:.1f} s")
  return found


def complete(found):
  """What the table shows and follows from what the bench tells."""
  found["read"]["resident_mib"] = found["read"]["resident_bytes"] / (1 << 20)
  found["list"]["objects_per_s"] = found["list"]["listed_objects"] / found["list"]["seconds"]
  crash = found["crash"]
  crash["first_read_s"] = crash["mount_seconds"] + crash["first_read_ms"] / 1000
  crash["first_write_s"] = crash["first_read_s"] + crash["first_write_ms"] / 1000


def compare_memory(found):
  """What each object more takes, from count to count."""
  reads = [(count, results["read"]) for count, results in found.items()]
  for (less, before), (more, read) in zip(reads, reads[1:]):
    read["resident_bytes_per_object"] = (read["resident_bytes"] - before["resident_bytes"]) / (more - less)


def check_growth(scenario, found):
  """`found`: SwimStore's, {count: {operation: result}}."""
  for count, results in found.items():
    first_s = results["crash"]["first_write_s"]
    scenario.check(first_s <= FIRST_IO_S_MAX, f"swimstore, {count} objects: first read and first write "
                   f"{first_s:.3f} s after a crash", f"more than {FIRST_IO_S_MAX}")
  largest = max(found)
  if BASE_COUNT in found and largest > BASE_COUNT:
    costs = [found[count]["write"]["processor_us_per_op"] for count in (BASE_COUNT, largest)]
    ratio = costs[1] / costs[0]
    scenario.check(ratio <= WRITE_COST_MAX, f"swimstore: a write costs {costs[1]:.1f} µs of processor time at {largest} "
                   f"objects, {costs[0]:.1f} at {BASE_COUNT}: {ratio:.2f} times", f"more than {WRITE_COST_MAX}")


def shown(value):
  return "–" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def grown(values, counts):
  """At the largest count beside BASE_COUNT."""
  if BASE_COUNT not in counts or not values[-1] or not values[counts.index(BASE_COUNT)]:
    return None
  return values[-1] / values[counts.index(BASE_COUNT)]


def table(found, counts):
  """`found`: {store: {count: {operation: result}}}. A cell has the stores' figures, in their order."""
  lines = ["| " + " : ".join(found) + " | " + " | ".join(f"{count:,}" for count in counts) + " | largest to 100,000 |",
           "|---|" + "---|" * (len(counts) + 1)]
  for what, op, key in FIGURES:
    values = {store: [results[count][op].get(key) for count in counts] for store, results in found.items()}
    cells = [" : ".join(shown(values[store][nth]) for store in found) for nth in range(len(counts))]
    cells.append(" : ".join(shown(grown(values[store], counts)) for store in found))
    lines.append(f"| {what} | " + " | ".join(cells) + " |")
  return "\n".join(lines)


def check_arguments(args):
  unknown = [store for store in args.stores if store not in STORES]
  if unknown or not args.stores:
    raise UserError(f"--stores {','.join(args.stores)}: choose of {', '.join(STORES)}")
  if args.quick and args.long:
    raise UserError("--quick and --long: give one of them")
  if not os.access(DROP_CACHES, os.W_OK):
    raise UserError(f"{DROP_CACHES} cannot be written: run this as root where the kernel allows it")
  check_targets(("--json", args.json), ("--plot", args.plot))
  program_of(args.stores)


def run(scenario):
  args = scenario.args
  check_arguments(args)
  form = "quick" if args.quick else "long" if args.long else "default"
  args.size = args.size or SIZES[form]
  args.seconds = args.seconds or SECONDS[form]
  found = {}
  for name in args.stores:
    folder = scenario.directory(name)
    images.check_room([(folder / "disk.img", args.size)])
    with mounted(folder, args.size, args.fs if STORES[name] == "fs" else "", scenario.say, keep=args.keep) as disk:
      clear(folder)
      store = GrowingStore(scenario, name, folder, disk.device())
      found[name] = {count: measure(scenario, store, count) for count in COUNTS[form]}
    compare_memory(found[name])
  print(table(found, COUNTS[form]), flush=True)
  if "swimstore" in found:
    check_growth(scenario, found["swimstore"])
  keep_results(args, found)


def clear(folder):
  """What an earlier run left beside its device."""
  for entry in ("acked", "result.json", "killed.log"):
    (folder / entry).unlink(missing_ok=True)
  if (folder / "store").exists():
    sysroot.run(["rm", "-r", folder / "store"])


def keep_results(args, found):
  command = told_command("qa/standalone/growth.py", sys.argv[1:])
  document = {"command": command, "machine": machine(), "date": time.strftime("%Y-%m-%d"),
              "results": [{"store": store, "objects": count, **results}
                          for store, by_count in found.items() for count, results in by_count.items()]}
  text = json.dumps(document, indent=1) + "\n"
  if args.json:
    args.json.write_text(text)
  if args.plot:
    inside = sysroot.cache_dir() / "scenarios" / "growth.png"
    sysroot.run(["python3", PLOT, inside], stdin=text)
    args.plot.write_bytes(inside.read_bytes())
    inside.unlink()


if __name__ == "__main__":
  scenario_module.main("growth", run, __doc__, stores=("swimstore",), options=(
      (("--stores",), {"type": lambda text: text.split(","), "default": ["swimstore"], "metavar": "NAME,NAME",
                       "help": f"some of {', '.join(STORES)} (default: swimstore)"}),
      (("--long",), {"action": "store_true", "help": "to 10^7 objects: 54 GiB of disk"}),
      (("--size",), {"type": scenario_module.size, "help": "of the device (default: 8G; with --quick 2G; --long 54G)"}),
      (("--seconds",), {"type": float, "help": "of overwriting and reading (default: 10; with --quick 1)"}),
      (("--cache",), {"type": scenario_module.size, "default": 256 << 20, "help": "of each store (default: 256M)"}),
      (("--json",), {"type": pathlib.Path, "metavar": "FILE", "help": "write what was found there, too"}),
      (("--plot",), {"type": pathlib.Path, "metavar": "FILE", "help": "draw it there, as PNG"})))
