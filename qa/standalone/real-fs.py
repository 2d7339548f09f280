#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a loss of power leaves of a store on real file systems, and whether one flush covers all files there.

The file system lies on a loop device over a disk in memory (real_fs_explorer) that records every write, flush and
discard. Of the record, any disk is made that the block layer allows after a crash; the kernel mounts it and replays its
journal; the store recovers, is compared with what it had promised, and checked. Every fourth store goes on working and
crashes again.

The single-flush rule is asked of each file system without a store, too. An ext4 with fast_commit, which loses what was
synced, is refused; so are one without a journal or mounted 'nobarrier', ext2 and ext3. And rules are broken on purpose:
a crash must show it, or this scenario could not fail.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from scenario import Scenario, UserError
from loop_disk import mounted, unmount
import ending
import sysroot

PROGRAM = sysroot.built("real_fs_explorer")
TESTS = sysroot.built("vtkv_tests")
BENCH = sysroot.built("swimstore_bench")
STORE_TESTS = sysroot.built("swimstore_tests")
HOST_DISK_BYTES = 512 << 20
OVERHEAD_SECONDS = 120  # of a run beyond its --time: the last state, on a busy machine

# Which share of the blocks survives when every write is lost that no flush covers.
ALL, NOT_ALL, NONE = "all", "not all", "none"
ONE_FLUSH = {
    "written before, nothing synced": NONE,
    "written before, another file synced": ALL,
    "written before, synced itself": ALL,
    "only reserved, nothing synced": NONE,
    "only reserved, another file synced": NOT_ALL,
    "only reserved, synced itself": ALL,
}
FLUSH_RULE = {
    "ext4": ONE_FLUSH,
    "xfs": ONE_FLUSH,
    "btrfs": ONE_FLUSH | {"written before, another file synced": NOT_ALL},
}
# Rules whose break must be noticed.
MUTATIONS = {
    "ext4": ["flush_removed"],
    "xfs": ["flush_removed"],
    "btrfs": ["flush_removed", "single_flush_everywhere"],
}


def share_of(kept, blocks):
  return {0: NONE, blocks: ALL}.get(kept, NOT_ALL)


def explore(fs, seconds, *options):
  """Run the program; returns its exit status and the lines it printed. Its progress goes to standard error."""
  with tempfile.TemporaryDirectory(prefix="real-fs-") as scratch:
    command = sysroot.command(["env", f"TMPDIR={scratch}", PROGRAM, "--fs", fs, "--time", seconds, *options])
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=None, text=True,
                          timeout=seconds + OVERHEAD_SECONDS)
  if done.returncode not in (0, 1):
    raise UserError(f"real_fs_explorer on {fs}: exit {done.returncode}, for the reason above")
  return done.returncode, done.stdout.splitlines()


def ask_flush_rule(scenario, fs):
  _, lines = explore(fs, 60, "--flush-rule")
  found = {what: share_of(int(kept), int(blocks))
           for what, kept, blocks in (re.fullmatch(r"(.*): (\d+) of (\d+) blocks kept", line).groups() for line in lines)}
  for what, expected in FLUSH_RULE[fs].items():
    kept = found.get(what)
    scenario.check(kept == expected or (expected == NOT_ALL and kept == NONE), f"{fs}: {what}: {expected} kept",
                   f"{kept} kept")


def find_copy_by_reflink(scenario):
  """Blocks that a file shares with its copy are written elsewhere: one flush of another file does not cover that."""
  folder = sysroot.cache_dir() / "scenarios" / "real-fs"
  with mounted(folder, HOST_DISK_BYTES, "xfs", scenario.say):
    check_by_test(scenario, "xfs: a file that shares blocks with a copy of it is found", "ReflinkTest",
                  "VTKV_REFLINK_FOLDER", folder / "mnt")


def check_by_test(scenario, claim, test, variable, folder, program=TESTS, words=""):
  """A test that runs where it is given a folder for it, and words that it is to find, or none."""
  done = sysroot.run(["env", f"{variable}={folder}", f"VTKV_EXPECTED_WORDS={words}", program, f"--gtest_filter=*{test}*"],
                     check=False)
  scenario.check(done.returncode == 0 and "[  PASSED  ] 1 test" in done.stdout, claim, done.stdout + done.stderr)


def refuse_fast_commit(scenario):
  """Linux loses what was synced there: no store is made, and no OSD starts on one that is there."""
  folder = sysroot.cache_dir() / "scenarios" / "real-fs"
  where = folder / "mnt"
  with mounted(folder, HOST_DISK_BYTES, "ext4", scenario.say) as disk:
    check_by_test(scenario, "ext4: is not taken for one with fast_commit", "WithoutFastCommitTest",
                  "VTKV_PLAIN_EXT4_FOLDER", where)
    unmount(where)
    sysroot.run(["tune2fs", "-O", "fast_commit", disk.device()])
    disk.mount(where, "ext4")
    check_by_test(scenario, "ext4 with fast_commit: is found", "WithFastCommitTest", "VTKV_FAST_COMMIT_FOLDER", where)
    made = sysroot.run([BENCH, "--path", where / "store", "--seconds", 1], check=False)
    remedy = f"tune2fs -O ^fast_commit {disk.device()}'"
    scenario.check(made.returncode != 0 and remedy in made.stderr,
                   "ext4 with fast_commit: mkfs refuses, and says what to do", made.stdout + made.stderr)
    check_by_test(scenario, "ext4 with fast_commit: no OSD starts, and tools go on", "UnsafeHostMountTest",
                  "SWIM_UNSAFE_HOST_FOLDER", where, STORE_TESTS)


def refuse_lost_syncs(scenario):
  """File systems that pass for an ext4 by their magic number, or keep its promises no more; and the remedy, as it is named."""
  folder = sysroot.cache_dir() / "scenarios" / "real-fs"
  where = folder / "mnt"
  with mounted(folder, HOST_DISK_BYTES, "ext4", scenario.say) as disk:
    def find(claim, words):
      check_by_test(scenario, claim, "SyncLossHostTest", "VTKV_SYNC_LOSS_FOLDER", where, words=words)

    def refused(claim, words, takes_store=True):
      find(f"{claim}: is found", words)
      made = sysroot.run([BENCH, "--path", where / "store", "--seconds", 1], check=False)
      scenario.check(made.returncode != 0 and words in made.stderr, f"{claim}: mkfs refuses, and says what to do",
                     made.stdout + made.stderr)
      if not takes_store:  # it reserves no space: no store could be made on it
        unmount(where)
        return
      check_by_test(scenario, f"{claim}: no OSD starts, and tools go on", "UnsafeHostMountTest", "SWIM_UNSAFE_HOST_FOLDER",
                    where, STORE_TESTS)
      check_by_test(scenario, f"{claim}: where it is allowed, an alert stays", "UnsafeHostAlertTest", "SWIM_UNSAFE_ALERT_FOLDER",
                    where, STORE_TESTS)
      unmount(where)

    find("ext4: nothing is known against it", "")
    cache = pathlib.Path("/sys/block", pathlib.Path(disk.device()).name, "queue/write_cache")
    cache.write_text("write through")
    check_by_test(scenario, "a cache that is not flushed any more, by hand: is found", "UnflushedCacheHostTest",
                  "VTKV_UNFLUSHED_FOLDER", where, words=str(cache))
    check_by_test(scenario, "a cache that is not flushed any more: an alert stays", "UnsafeHostAlertTest",
                  "SWIM_UNSAFE_ALERT_FOLDER", where, STORE_TESTS)
    cache.write_text("write back")
    check_by_test(scenario, "a cache that is flushed again: nothing is found", "UnflushedCacheHostTest",
                  "VTKV_UNFLUSHED_FOLDER", where)
    unmount(where)

    disk.mount(where, "ext4", "nobarrier")
    find("ext4 mounted 'nobarrier': is found", f"mount -o remount,barrier {where}'")
    sysroot.run(["mount", "-o", "remount,barrier", where])
    find("ext4 mounted 'barrier' again: nothing is found", "")
    unmount(where)
    disk.mount(where, "ext4", "nobarrier")
    refused("ext4 mounted 'nobarrier'", "remount,barrier")

    for kind, options, words in (("ext4", ("-O", "^has_journal"), f"tune2fs -O has_journal {disk.device()}'"),
                                 ("ext2", (), "make an ext4"), ("ext3", (), "make an ext4")):
      sysroot.run([f"mkfs.{kind}", "-q", "-F", *options, disk.device()])
      disk.mount(where, kind)
      refused(" ".join((kind, *options)), words, takes_store=kind == "ext4")
      if options:
        sysroot.run(["tune2fs", "-O", "has_journal", disk.device()])
        disk.mount(where, kind)
        find("ext4 with a journal again: nothing is found", "")
        unmount(where)


def crash_store(scenario, fs, states, seconds):
  kept = sysroot.cache_dir() / "scenarios" / f"real-fs-{fs}.image"
  kept.parent.mkdir(parents=True, exist_ok=True)
  kept.unlink(missing_ok=True)
  status, lines = explore(fs, seconds, "--states", states, "--seed", scenario.args.seed, "--image", kept)
  scenario.check(status == 0, f"{fs}: {lines[-1]}", "\n".join(lines))


def break_rules(scenario, fs, mutations, states, seconds):
  for mutation in mutations:
    status, lines = explore(fs, seconds, "--states", states, "--seed", scenario.args.seed, "--mutation", mutation)
    noticed = status == 1 and any(line.startswith("violation") for line in lines)
    scenario.check(noticed, f"{fs}: {mutation} is noticed", f"not in {lines[-1]}")


def run(scenario):
  sysroot.check_host("--loop", "--fuse", "--setup", sysroot.release().set_up)
  sysroot.prepare()
  if not PROGRAM.exists():
    raise UserError(f"{PROGRAM}: no such program; build it first (qa/enter.sh ninja -C build real_fs_explorer)")
  quick = scenario.args.quick
  if "xfs" in scenario.args.fs:
    find_copy_by_reflink(scenario)
  if "ext4" in scenario.args.fs:
    refuse_fast_commit(scenario)
    refuse_lost_syncs(scenario)
  for fs in scenario.args.fs:
    ask_flush_rule(scenario, fs)
    crash_store(scenario, fs, scenario.args.states or (20 if quick else 2000), 6 if quick else 3600)
    break_rules(scenario, fs, MUTATIONS[fs][:1] if quick else MUTATIONS[fs], 20 if quick else 2000,
                30 if quick else 1800)


def file_systems(text):
  names = text.split(",")
  for name in names:
    if name not in FLUSH_RULE:
      raise argparse.ArgumentTypeError(f"there is no file system '{name}' to test: use {', '.join(FLUSH_RULE)}")
  return names


def main():
  parser = argparse.ArgumentParser(prog="real-fs", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--fs", type=file_systems, default=list(FLUSH_RULE), help="some of ext4,xfs,btrfs (default: all)")
  parser.add_argument("--states", type=int, default=0, help="crashes of each file system (2000; with --quick 20)")
  parser.add_argument("--seed", type=int, default=1, help="of the first store (default: %(default)s)")
  parser.add_argument("--quick", action="store_true", help="a short version, for the test command")
  scenario = Scenario("real-fs", parser.parse_args())
  ending.arm()
  try:
    run(scenario)
  except (UserError, sysroot.CommandFailed, subprocess.TimeoutExpired) as error:
    scenario.check(False, "real-fs runs to its end", str(error))
  except KeyboardInterrupt:
    scenario.check(False, "real-fs runs to its end", "interrupted")
    ending.end_processes()
  scenario.say(f"real-fs: {scenario.held} held, {scenario.failures} failed")
  sys.exit(1 if scenario.failures or not scenario.held else 0)


if __name__ == "__main__":
  main()
