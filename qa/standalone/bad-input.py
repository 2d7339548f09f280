#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Mistakes of an operator, and damage of the store's root file: one clear error each, and nothing changed.

Every case runs ceph-osd (or ceph-objectstore-tool) by hand on an OSD's directory and wants: an exit status of its
own, no crash; a message that names the thing; the directory as it was. At the end the OSD starts as if nothing had
happened.
"""

import pathlib
import shutil
import subprocess
import uuid

import scenario as scenario_module
import sysroot
from loop_disk import unmount
from scenario import CRASH_MARKS
from superblock import COPY_BYTES, crc32c, with_version


def fingerprint(directory):
  """Every name with its size and time of change, and the small files' bytes."""
  found = {}
  for path in sorted(pathlib.Path(directory).rglob("*")) if pathlib.Path(directory).exists() else ():
    stat = path.lstat()
    small = path.is_file() and stat.st_size <= 16384
    found[str(path)] = (stat.st_mode, stat.st_size if path.is_file() else 0, path.read_bytes() if small else stat.st_mtime_ns)
  return found


class Cases:
  def __init__(self, scenario, cluster):
    self.scenario = scenario
    self.cluster = cluster
    self.base = cluster.osd_dir(0)

  def osd(self, directory, *options):
    """ceph-osd on any directory, in the foreground; it should end by itself."""
    return ["env", "-C", "/", self.cluster.spec.osd_binary(), "-c", self.cluster.dir / "ceph.conf", "-i", "0", "-f",
            "--osd-data", directory, "--pid-file", "", "--log-file", "/dev/null", *options]

  def mkfs(self, directory, *options):
    return self.osd(directory, "--mkfs", "--osd-uuid", str(uuid.uuid4()), *options)

  def tool(self, directory):
    return [self.cluster.spec.beside_osd("ceph-objectstore-tool"), "--no-mon-config", "--type",
            self.cluster.spec.store, "--data-path", directory, "--op", "fsck", "--debug"]

  def expect_error(self, what, command, directory, names):
    """`names`: the message must hold one of these."""
    before = fingerprint(directory)
    try:
      done = subprocess.run(sysroot.command(command), text=True, errors="replace", stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    except subprocess.TimeoutExpired:
      self.scenario.check(False, what, "still runs after 60 s")
      return
    said = done.stdout.strip()
    telling = [line for line in said.splitlines() if any(str(name) in line for name in names)]
    # Ceph exits with a negative errno; a signal would show as a negative number here.
    self.scenario.check(done.returncode > 0, f"{what}: refused", f"exit {done.returncode}\n{said[-1500:]}")
    self.scenario.check(not any(mark in said for mark in CRASH_MARKS), f"{what}: no crash", said[-1500:])
    self.scenario.check(telling, f"{what}: the message names it", said[-1500:])
    if telling:
      self.scenario.say(f"       {telling[0][:200]}")
    changed = [name for name, entry in fingerprint(directory).items() if before.get(name) != entry]
    self.scenario.check(not changed and len(before) == len(fingerprint(directory)), f"{what}: nothing changed",
                        str(changed[:5]))


def directories(cases, scratch):
  missing = scratch / "missing"
  # These two are found by ceph-osd before it makes a store; Ceph does not name the directory.
  cases.expect_error("missing directory", cases.osd(missing, "--log-flush-on-exit"), missing, ["type", missing])
  cases.expect_error("missing directory, mkfs", cases.mkfs(missing), missing, [missing])
  empty = scratch / "empty"
  empty.mkdir()
  cases.expect_error("directory without a store", cases.osd(empty, "--log-flush-on-exit"), empty, ["type", empty])
  foreign = scratch / "foreign"
  foreign.mkdir()
  (foreign / "type").write_text("bluestore\n")
  (foreign / "block").write_bytes(b"bluestore block device\n")
  cases.expect_error("another store's directory, mkfs", cases.mkfs(foreign), foreign, [foreign, "bluestore"])
  cases.expect_error("another store's directory", cases.tool(foreign), foreign, [foreign, "bluestore"])


def file_systems(cases, scratch):
  memory = scratch / "tmpfs"
  memory.mkdir()
  subprocess.run(["mount", "-t", "tmpfs", "none", memory], check=True)
  try:
    cases.expect_error("unsupported file system", cases.mkfs(memory), memory, ["tmpfs", memory])
  finally:
    unmount(memory)
  subprocess.run(["mount", "-o", "remount,ro", cases.base], check=True)
  try:
    cases.expect_error("read-only mount", cases.osd(cases.base), cases.base, ["read-only", "Read-only"])
  finally:
    subprocess.run(["mount", "-o", "remount,rw", cases.base], check=True)


def superblocks(cases):
  path = cases.base / "superblock"
  good = path.read_bytes()

  def flipped(bit):
    damaged = bytearray(good)
    for copy in range(0, len(good), COPY_BYTES):
      damaged[copy + bit // 8] ^= 1 << bit % 8
    return bytes(damaged)

  cases.scenario.check(with_version(good, 3)[:80] == good[:80],
                       "this scenario computes the superblock's checksum as the store does")
  damages = {"truncated superblock": good[:100], "empty superblock": b"", "superblock from the future": with_version(good, 99),
             "superblock from the past": with_version(good, 1)}
  damages |= {f"superblock with bit {bit} flipped in both copies": flipped(bit) for bit in (3, 100, 200, 333, 600)}
  try:
    for what, content in damages.items():
      path.write_bytes(content)
      cases.expect_error(what, cases.osd(cases.base), cases.base, ["superblock"])
      cases.expect_error(f"{what}, tool", cases.tool(cases.base), cases.base, ["superblock"])
  finally:
    path.write_bytes(good)


def options(cases, scratch):
  absurd = (("swimstore_io_depth", "0"), ("swimstore_chunk_size", "3"), ("swimstore_log_segment_size", "1"), ("swimstore_zone_size", "5"),
            ("swimstore_reserve_size", "9223372036854775807"))
  for number, (option, value) in enumerate(absurd):
    directory = cases.base / f"absurd{number}"
    directory.mkdir()
    try:
      cases.expect_error(f"{option} = {value}", cases.mkfs(directory, f"--{option}={value}"), directory, [option])
    finally:
      shutil.rmtree(directory)


def run(scenario):
  cluster = scenario.start(osds=1)
  cluster.create_pool("data", pg_num=8, size=1)
  cluster.wait_clean()
  cluster.shell("head -c 100000 /dev/urandom | tee /tmp/bad_input.$$ | rados -p data put object -; rm /tmp/bad_input.$$")
  digest = cluster.shell("rados -p data get object - | sha256sum")
  cases = Cases(scenario, cluster)
  scratch = cluster.dir / "run" / "scratch"
  scratch.mkdir()
  cases.expect_error("directory in use", cases.tool(cluster.osd_dir(0)), scratch, [cluster.osd_dir(0)])
  # Found by ceph-osd before it mounts, and by Ceph's own message, which its log loses at times.
  cases.expect_error("directory in use, ceph-osd", cases.osd(cluster.osd_dir(0), "--log-flush-on-exit"), scratch,
                     [cluster.osd_dir(0)])
  scenario.check_daemons()
  cluster.stop_osd(0)
  cases.expect_error("wrong fsid", cases.mkfs(cluster.osd_dir(0)), cluster.osd_dir(0), ["fsid", "uuid"])
  directories(cases, scratch)
  file_systems(cases, scratch)
  superblocks(cases)
  if not scenario.args.quick:
    options(cases, scratch)
  cluster.start_osd(0)
  cluster.wait_up()
  scenario.check(cluster.shell("rados -p data get object - | sha256sum") == digest,
                 "the OSD starts, its object is intact")


if __name__ == "__main__":
  assert crc32c(b"123456789") == 0xE3069283
  scenario_module.main("bad-input", run, __doc__, stores=("swimstore",))
