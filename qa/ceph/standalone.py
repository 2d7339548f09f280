#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run Ceph's own standalone tests (qa/standalone of its source) against the ceph-osd built here.

Each test function of a script is a test, in namespaces of its own: it sees its own processes and a loopback of its own,
so several may run at once, and whatever it leaves behind ends with it. Its programs, wrapped so that an OSD is a
SwimStore, and its data lie in a folder on an ext4 that is made for the run.

NAME is a group (scrub), a script (scrub/osd-scrub-repair.sh) or one test of it (osd/osd-dup.sh:TEST_x). Without one, all
of the groups that say something about a store. What cannot apply to it is left out, unless named: --list tells why.
The last line counts: "N passed, N failed". Exit status 1 if anything failed.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

import ending  # noqa: E402
import sysroot  # noqa: E402
from loop_disk import LoopDisk, share, unmount  # noqa: E402
from sysroot import UserError  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
NOT_APPLICABLE = HERE / "standalone_not_applicable"
DISK_BYTES = 32 << 30  # sparse
QUICK_DISK_BYTES = 3 << 30  # what one test takes of it, at most
NEEDED_DISK_BYTES = 8 << 30
GROUPS = ("scrub", "osd", "osd-backfill", "erasure-code/test-erasure-eio.sh")
QUICK = ("erasure-code/test-erasure-eio.sh:TEST_rados_get_subread_eio_shard_0", "osd/osd-reuse-id.sh",
         "scrub/osd-unexpected-clone.sh")
# Small and made at once: a test makes up to twenty of them.
OSD_OPTIONS = ("--osd-objectstore=swimstore", "--swimstore_log_segment_size=16777216", "--swimstore_log_segments=2",
               "--swimstore_primed_ahead_size=4194304", "--swimstore_reserve_size=16777216",
               "--swimstore_chunk_size=4194304")
TOOLS = ("ceph-objectstore-tool", "ceph-kvstore-tool")
ALONE = "(all)"  # of a script that cannot be asked for one test


@dataclasses.dataclass(frozen=True)
class Test:
  script: str  # scrub/osd-scrub-repair.sh
  function: str

  def __str__(self):
    return f"{self.script}:{self.function}"


class Source:
  """The scripts of Ceph's source."""

  def __init__(self, root):
    self.root = root
    self.scripts = root / "qa" / "standalone"
    if not (self.scripts / "ceph-helpers.sh").exists():
      raise UserError(f"{self.scripts}: holds no ceph-helpers.sh; set SWIM_CEPH_SOURCE, or run qa/setup/sysroot.sh")

  def tests_of(self, script):
    text = (self.scripts / script).read_text()
    functions = re.findall(r"^(?:function\s+)?(TEST_\w+)\s*\(\)", text, re.MULTILINE)
    return [Test(script, function) for function in dict.fromkeys(functions)] or [Test(script, ALONE)]

  def find(self, name):
    """The tests that a name on the command line means."""
    path, _, function = name.partition(":")
    if (self.scripts / path).is_dir():
      scripts = sorted(str(script.relative_to(self.scripts)) for script in (self.scripts / path).glob("*.sh")
                       if os.access(script, os.X_OK))
    else:
      scripts = [str(script.relative_to(self.scripts)) for script in sorted(self.scripts.rglob("*.sh"))
                 if path in (script.name, str(script.relative_to(self.scripts)))]
    tests = [test for script in scripts for test in self.tests_of(script) if function in ("", test.function)]
    if not tests:
      raise UserError(f"{name}: no such group, script or test below {self.scripts}")
    return tests


def not_applicable():
  """{what: why}; what is a script or one test of it."""
  lines = [line for line in NOT_APPLICABLE.read_text().splitlines() if line and not line.startswith("#")]
  return dict(line.split(None, 1) for line in lines)


class Bench:
  """The folder of a run: an ext4 of its own, with a folder for each test."""

  def __init__(self, source, bin_dir):
    self.source = source
    self.bin = bin_dir
    self.dir = sysroot.cache_dir() / "standalone"
    self.logs = self.dir / "log"
    self.mount = self.dir / "fs"
    self._disk = LoopDisk(self.dir / "disk.img", DISK_BYTES)
    self._processes = set()
    self.ended = False

  @contextlib.contextmanager
  def ready(self):
    self.dir.mkdir(parents=True, exist_ok=True)
    with open(self.dir / "lock", "w") as lock:
      fcntl.flock(lock, fcntl.LOCK_EX)  # another run uses the same disk
      self._tidy_up()
      shutil.rmtree(self.logs, ignore_errors=True)
      self.logs.mkdir()
      with open(self._disk.image, "wb") as image:
        image.truncate(DISK_BYTES)
      share(self.dir)
      try:
        self._disk.attach()
        self._disk.make_file_system("ext4")
        self._disk.mount(self.mount, "ext4", "noatime,discard")  # what a test leaves is given back
        yield
      finally:
        self._tidy_up()

  def _tidy_up(self):
    with ending.whole():
      ending.end_processes()
      unmount(self.mount)
      self._disk.detach()
      self._disk.image.unlink(missing_ok=True)
      unmount(self.dir)

  def folder(self, number):
    folder = self.mount / str(number)
    folder.mkdir()
    (folder / "tmp").mkdir()
    # scrub/osd-recovery-scrub.sh calls bin/ceph, as in a folder where Ceph was built.
    (folder / "bin").mkdir()
    (folder / "bin" / "ceph").symlink_to("/usr/bin/ceph")
    crashes = f"--crash-dir={folder}"
    # Debian's default of the class folder is a relative path.
    classes = "--osd-class-dir=$(echo /usr/lib/*/rados-classes)"
    self._wrap(folder, "ceph-osd", f'{self.bin}/ceph-osd {" ".join(OSD_OPTIONS)} {classes} {crashes} "$@"')
    for name in TOOLS:
      self._wrap(folder, name, f'{self.bin}/{name} "$@"')
    # The monitor asks for "bluestore" by name before it lets an EC pool overwrite.
    overwrites = "--mon-debug-no-require-bluestore-for-ec-overwrites=true"
    self._wrap(folder, "ceph-mon", f'/usr/bin/ceph-mon {overwrites} {crashes} "$@"')
    self._wrap(folder, "ceph-mgr", f'/usr/bin/ceph-mgr "$@" --mgr-module-path=/usr/share/ceph/mgr {crashes}')
    return folder

  @staticmethod
  def _wrap(folder, name, command):
    program = folder / name
    program.write_text(f"#!/bin/sh\nexec {command}\n")
    program.chmod(0o755)

  def command(self, folder, test):
    """The test as the first process of its own namespaces: all that it starts ends with it."""
    arguments = [] if test.function == ALONE else [test.function]
    script = """set -e
      ip link set lo up
      # Some write to /tmp by name. It stays where our own programs lie in it.
      case $1:$2 in /tmp/* | *:/tmp/*) ;; *) mount --bind "$3/tmp" /tmp ;; esac
      cd "$3"
      export CEPH_ROOT=$4 TMPDIR=$3/tmp TESTDIR=$3 HOME=$3
      export PATH=$3:$PATH
      shift 4
      bash "$@" </dev/null"""
    namespaces = ["unshare", "--fork", "--pid", "--kill-child", "--net", "--mount", "--propagation", "unchanged",
                  "--mount-proc"]
    return sysroot.command([*namespaces, "bash", "-c", script, "standalone", sysroot.CHECKOUT, sysroot.cache_dir(),
                            folder, self.source.root, self.source.scripts / test.script, *arguments])

  def run(self, number, test, seconds):
    """None when the test passed, else what is wrong."""
    folder = self.folder(number)
    log = self.log_of(test)
    with open(log, "w") as out:
      process = subprocess.Popen(self.command(folder, test), stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT, start_new_session=True)
      self._processes.add(process)
      if self.ended:
        process.kill()
      try:
        status = process.wait(seconds)
        wrong = None if status == 0 else f"exit {status}"
      except subprocess.TimeoutExpired:
        wrong = f"no end after {seconds} s"
      finally:
        process.kill()  # the namespaces end with it
        process.wait()
        self._processes.discard(process)
    if wrong:
      self._keep_logs(folder, log)
    else:
      log.unlink()
    self._remove(folder)
    return wrong

  def end_all(self):
    self.ended = True
    for process in list(self._processes):
      process.kill()

  def log_of(self, test):
    return self.logs / (str(test).replace("/", ".").replace(":", ".").replace("(all)", "all") + ".log")

  @staticmethod
  def _keep_logs(folder, log):
    """The daemons' logs, from where the test had them or moved them."""
    kept = log.with_suffix("")
    kept.mkdir(exist_ok=True)
    for path in folder.rglob("[a-z]*.log"):
      shutil.copy(path, kept / path.name)
    for path in folder.glob("*/meta"):
      # Debian's Python cannot load all of the manager's modules, which is a crash to it.
      if '"entity_name": "mgr.' not in path.read_text():
        shutil.copy(path, kept / f"crash.{path.parent.name}")

  @staticmethod
  def _remove(folder):
    for _ in range(50):  # what was killed may still hold its files for a moment
      shutil.rmtree(folder, ignore_errors=True)
      if not folder.exists():
        return
      time.sleep(0.1)


def parse_args(argv):
  parser = argparse.ArgumentParser(prog="run-ceph-standalone", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("names", nargs="*", metavar="NAME", help=f"(default: {' '.join(GROUPS)})")
  parser.add_argument("--quick", action="store_true", help="a few short tests, for the test command")
  parser.add_argument("--list", action="store_true", help="say what would run and what cannot apply, and run nothing")
  parser.add_argument("--time-limit", type=int, default=1200, metavar="SECONDS", help="of one test (default: %(default)s)")
  parser.add_argument("--jobs", type=int, metavar="N", help="tests at once (default: 1; with --quick 2)")
  parser.add_argument("--bin", default=str(sysroot.built("")), metavar="DIR",
                      help="where ceph-osd and its tools are (default: %(default)s)")
  args = parser.parse_args(argv)
  args.jobs = (2 if args.quick else 1) if args.jobs is None else args.jobs
  if args.time_limit < 1 or args.jobs < 1:
    parser.error("--time-limit and --jobs need a number of at least 1")
  return args


def choose(source, args):
  """(tests, [(test, why it cannot apply)])"""
  reasons = not_applicable()
  names = args.names or (QUICK if args.quick else GROUPS)
  tests, left_out = [], []
  for name in names:
    for test in source.find(name):
      why = reasons.get(str(test)) or reasons.get(test.script)
      if why and not (args.names and ":" in name):
        left_out.append((test, why))
      elif test not in tests:
        tests.append(test)
  return tests, left_out


def run_all(bench, tests, args):
  """The number of tests that failed, and of those that an interruption left out."""
  results = []

  def run(numbered):
    number, test = numbered
    begun = time.monotonic()
    wrong = bench.run(number, test, args.time_limit)
    took = time.monotonic() - begun
    if bench.ended:
      return
    print(f"{'FAIL' if wrong else 'ok  '} {test} ({took:.0f} s)" + (f": {wrong}; see {bench.log_of(test)}" if wrong else ""),
          flush=True)
    results.append(wrong is not None)

  with bench.ready(), concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
    futures = [pool.submit(run, numbered) for numbered in enumerate(tests)]
    try:
      for future in futures:
        future.result()
    except KeyboardInterrupt:
      print(f"interrupted: {len(tests) - len(results)} tests have no result", flush=True)
      known = list(results)
      pool.shutdown(wait=False, cancel_futures=True)
      bench.end_all()
      return sum(known), len(tests) - len(known)
  return sum(results), 0


def main(argv):
  args = parse_args(argv)
  ending.arm()
  try:
    if not args.list:
      sysroot.check_host("--loop", "--setup", sysroot.release().set_up,
                         "--images", (QUICK_DISK_BYTES if args.quick else NEEDED_DISK_BYTES) * args.jobs)
    sysroot.prepare()
    source = Source(pathlib.Path(os.environ.get("SWIM_CEPH_SOURCE") or sysroot.cache_dir() / sysroot.release().source))
    tests, left_out = choose(source, args)
    for test, why in left_out:
      print(f"n/a  {test}: {why}")
    if args.list:
      print("\n".join(f"     {test}" for test in tests))
      return 0
    for name in ("ceph-osd", *TOOLS):
      if not os.access(pathlib.Path(args.bin) / name, os.X_OK):
        raise UserError(f"{args.bin}/{name}: no such program; build it first (qa/run-make-check.sh --help)")
    failed, left = run_all(Bench(source, pathlib.Path(args.bin).resolve()), tests, args)
  except (UserError, sysroot.CommandFailed, OSError) as error:
    print(f"run-ceph-standalone: {error}", file=sys.stderr)
    return 2
  except KeyboardInterrupt:
    ending.end_processes()
    print("run-ceph-standalone: interrupted", file=sys.stderr)
    return 130
  print(f"{len(tests) - failed - left} passed, {failed} failed")
  return 1 if failed or left or not tests else 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
