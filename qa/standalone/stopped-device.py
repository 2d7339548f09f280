#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stop the device below one of two OSDs for half a minute, under load.

The host's file system is frozen: its writes wait in the kernel, as with a disk that hangs. Then: what the
store has taken in stays within swimstore_throttle_bytes and the OSD's memory within its target and that, no OSD
is marked down or ends, no client sees an error, and all goes on with the device.

Op threads that wait longer than osd_op_thread_timeout are counted, and that is no claim: a store may suspend
the timeout by the handle that comes with a transaction, and PrimaryLogPG gives none.

Two OSDs, since a PG of a single one stays "laggy" for ever once its lease has run out: Ceph looks at it again
when a peer acknowledges the next lease.
"""

import subprocess
import time

import scenario as scenario_module

POOL = "load"
OSDS, STOPPED = 2, 0
MIB = 1 << 20
OP_THREAD_TIMEOUT = 15  # osd_op_thread_timeout
BEFORE, AFTER = 3, 5  # seconds of load, beside those of the stop
DEVICE_BYTES = 8 * scenario_module.GIB  # more than the load writes: a full cluster would hold it up, too
MEMORY_SLACK = 256 * MIB  # of the process beside its target: what the messenger holds for 64 writes of 4 MiB


def start_load(cluster, seconds):
  """64 writes of 4 MiB at a time, more bytes than a client has under way by default."""
  command = cluster.command_line("rados", "--objecter-inflight-op-bytes", 64 * 4 * MIB, "-p", POOL,
                                 "bench", seconds, "write", "-b", 4 * MIB, "-t", 64, "--no-cleanup")
  return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def throttle(cluster):
  return cluster.ask_osd(STOPPED, "swimstore status")["throttle"]


def stop_device(cluster, seconds):
  """Samples of each second of the stop."""
  mount = cluster.osd_dir(STOPPED)
  subprocess.run(["fsfreeze", "--freeze", mount], check=True)
  samples, begun = [], time.monotonic()
  try:
    while time.monotonic() - begun < seconds:
      time.sleep(1)
      samples.append(throttle(cluster) | {"resident_bytes": cluster.osd_memory_bytes(STOPPED)})
  finally:
    subprocess.run(["fsfreeze", "--unfreeze", mount], check=True)
  return samples


def end_load(scenario, cluster, load):
  try:
    out, _ = load.communicate(timeout=120)
    good = load.returncode == 0 and "Total writes made" in out
    scenario.check(good, "the load ends without an error", out[-500:])
  except subprocess.TimeoutExpired:
    scenario.check(False, "the load ends", "not within 120 s of the stop's end; " + cluster.ceph("health", "detail"))
  finally:
    if load.poll() is None:
      load.kill()
      load.wait()


def log_lines(cluster, *words):
  """Of any OSD's log."""
  logs = [(cluster.dir / "log" / f"osd.{osd}.log").read_text(errors="replace") for osd in range(OSDS)]
  return [line for log in logs for line in log.splitlines() if all(word in line for word in words)]


def check_samples(scenario, samples, target_bytes):
  # One transaction may be let in that turns out larger than it said, by what surrounds its ends.
  limit = samples[0]["limit_bytes"]
  most = max(it["taken_bytes"] for it in samples)
  scenario.check(limit / 2 < most <= limit + MIB, f"{most >> 20} MiB are under way, of {limit >> 20}")
  # Its op threads wait, at the throttle or for a container to grow, which is a matter of the device, too.
  later = [it["taken_bytes"] for it in samples[len(samples) // 2:]]
  scenario.check(min(later) == max(later), "nothing more is taken in", str(later))
  memory = max(it["resident_bytes"] for it in samples)
  scenario.check(memory <= target_bytes + limit + MEMORY_SLACK, f"the OSD has {memory >> 20} MiB of memory")


def run(scenario):
  cluster = scenario.start(osds=OSDS, size_bytes=DEVICE_BYTES)
  cluster.create_pool(POOL, pg_num=32)
  cluster.wait_clean()
  seconds = OP_THREAD_TIMEOUT + 5 if scenario.args.quick else 30
  load = start_load(cluster, BEFORE + seconds + AFTER)
  try:
    time.sleep(BEFORE)
    samples = stop_device(cluster, seconds)
    check_samples(scenario, samples, cluster.spec.osd_memory_target)
  finally:
    end_load(scenario, cluster, load)
  hung = {line.split("thread ")[1].split("'")[0] for line in log_lines(cluster, "had timed out", "osd_op_tp")}
  scenario.say(f"{len(hung)} op threads were taken for hung in {seconds} s")
  marked = log_lines(cluster, "marked me down")
  scenario.check(not marked, "no OSD is marked down", "\n".join(marked[:3]))
  scenario.until(lambda: throttle(cluster)["taken_bytes"] == 0, 30, "nothing is under way")
  scenario.deep_scrub()
  scenario.check_daemons()


if __name__ == "__main__":
  scenario_module.main("stopped-device", run, __doc__, stores=("swimstore",))
