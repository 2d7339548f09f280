#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""SIGTERM and SIGHUP in the middle of a command: no process, mount, loop device or image of it may be left.

Each command runs until an OSD of it (or what takes an OSD's place) runs; then it gets the signal.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import uuid

import scenario as scenario_module
import ending
import sysroot
from scenario import UserError

QA = sysroot.CHECKOUT / "qa"
SCENARIOS = sysroot.cache_dir() / "scenarios"
START_SECONDS, END_SECONDS = 240, 90
QUICK_STANDALONE = "scrub/osd-unexpected-clone.sh"


class Command:
  """One run of a command; every process of it has a mark of its own in its environment."""

  def __init__(self, what, argv, folder, running=b"ceph-osd"):
    self.what = what
    self.folder = folder
    self._running = running
    self._mark = f"SWIM_INTERRUPTED={uuid.uuid4()}"
    name, _, value = self._mark.partition("=")
    self.log = SCENARIOS / f"interrupted.{what.split()[-1]}.log"
    with open(self.log, "w") as out:
      self._process = subprocess.Popen([str(word) for word in argv], env=os.environ | {name: value}, stdout=out,
                                       stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True,
                                       preexec_fn=ending.forget_ignored)

  def processes(self):
    """{pid: command line} of all that carry the mark."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
      try:
        if entry.name.isdigit() and self._mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
          found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
      except OSError:
        continue
    return found

  def mounts(self):
    return [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
            if line.split()[4].startswith(f"{self.folder}/") or line.split()[4] == str(self.folder)]

  def loop_devices(self):
    listing = subprocess.run(["losetup", "--json", "--list", "--output", "NAME,BACK-FILE"], text=True,
                             stdout=subprocess.PIPE, check=True).stdout
    devices = json.loads(listing or '{"loopdevices": []}')["loopdevices"]
    return [entry["name"] for entry in devices if (entry["back-file"] or "").startswith(f"{self.folder}/")]

  def images(self):
    return [str(path) for suffix in ("img", "partial") for path in self.folder.rglob(f"*.{suffix}")]

  def wait_until_running(self):
    deadline = time.monotonic() + START_SECONDS
    while not (self.loop_devices() and any(os.path.basename(line.split(b" ")[0]).startswith(self._running)
                                           for line in self.processes().values())):
      if self._process.poll() is not None or time.monotonic() > deadline:
        raise UserError(f"{self.what}: does not come to run; see {self.log}")
      time.sleep(0.1)

  def end(self, number):
    """Send the signal to the command itself alone, as `kill` and a service manager do; returns the seconds it took."""
    begun = time.monotonic()
    os.kill(self._process.pid, number)
    try:
      self._process.wait(END_SECONDS)
    except subprocess.TimeoutExpired as expired:
      raise UserError(f"{self.what}: does not end; see {self.log}") from expired
    return time.monotonic() - begun

  def end_by_force(self):
    """Where the claim did not hold: this scenario leaves nothing either."""
    for _ in range(100):
      left = self.processes()
      if not left:
        break
      for pid in left:
        try:
          os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
          pass
      time.sleep(0.1)
    self._process.wait()
    for mount in reversed(self.mounts()):
      subprocess.run(["umount", mount], stderr=subprocess.DEVNULL)
    for device in self.loop_devices():
      subprocess.run(["losetup", "--detach", device], check=False)


def interrupt(scenario, command, number):
  name = signal.Signals(number).name
  try:
    command.wait_until_running()
    took = command.end(number)
    scenario.check(True, f"{command.what} ends {took:.1f} s after {name}")
    left = [line.decode(errors="replace") for line in command.processes().values()]
    scenario.check(not left, f"{command.what}, {name}: no process is left", "\n".join(left))
    scenario.check(not command.mounts(), f"{command.what}, {name}: no mount is left", str(command.mounts()))
    scenario.check(not command.loop_devices(), f"{command.what}, {name}: no loop device is left", str(command.loop_devices()))
    scenario.check(not command.images(), f"{command.what}, {name}: no image is left", str(command.images()))
  finally:
    command.end_by_force()
  if not scenario.failures:
    command.log.unlink()


def stay(scenario):
  """What the scenario that is interrupted does: clients run in its cluster, one of them waits for long."""
  cluster = scenario.start(osds=1)
  cluster.create_pool("data", pg_num=8, size=1)
  subprocess.Popen(sysroot.command(["bash", "-c", f"cd {cluster.osd_dir(0)}; sleep 1000; true"]), start_new_session=True)
  cluster.shell("rados -p data bench 1000 write -b 4096; true", timeout=2000)


def run(scenario):
  ceph_osd = scenario.args.ceph_osd or str(sysroot.built("ceph-osd"))
  cluster = SCENARIOS / "interrupted.cluster"
  interrupt(scenario, Command("cluster", [QA / "vstart.py", "start", "--dir", cluster, "--size", "2G", "--ceph-osd", ceph_osd],
                              cluster), signal.SIGTERM)
  inner = SCENARIOS / "interrupted.inner"
  interrupt(scenario, Command("scenario", [__file__, "--stay", "--ceph-osd", ceph_osd], inner, b"rados"), signal.SIGHUP)
  if scenario.args.quick:
    return
  bench = sysroot.cache_dir() / "bench"
  interrupt(scenario, Command("bench", [QA / "run-rados-bench.sh", "--stores", "swimstore,bluestore", "--device-size", "2G", "--sizes",
                                        "4K", "--ceph-osd", ceph_osd], bench, b"rados_load"), signal.SIGTERM)
  vtkv = sysroot.cache_dir() / "interrupted.vtkv"
  interrupt(scenario, Command("vtkv_bench", [QA / "run-vtkv-bench.sh", "--quick", "--program", sysroot.built("vtkv_bench"),
                                             "--name", "interrupted.vtkv"],
                              vtkv, b"vtkv_bench"), signal.SIGHUP)
  shutil.rmtree(vtkv)
  interrupt(scenario, Command("ceph_standalone", [QA / "run-ceph-standalone.sh", "--bin", os.path.dirname(ceph_osd), QUICK_STANDALONE],
                              sysroot.cache_dir() / "standalone"), signal.SIGTERM)


if __name__ == "__main__":
  if "--stay" in sys.argv:
    sys.argv.remove("--stay")
    scenario_module.main("interrupted.inner", stay, "The scenario that is interrupted.", stores=("swimstore",))
  else:
    scenario_module.main("interrupted", run, __doc__, stores=("swimstore",))
