#!/usr/bin/env python3
"""Stop the device below an OSD for half a minute, under load.

The host's file system is frozen: its writes wait in the kernel, as with a disk that hangs. Then: what the store has taken
in stays within swimstore_throttle_bytes and the OSD's memory within its target and that, no op thread is taken for
hung, no client sees an error, and all goes on with the device.
"""

import subprocess
import time

import lane as lane_module

POOL = "load"
MIB = 1 << 20
OP_THREAD_TIMEOUT = 15  # osd_op_thread_timeout
MEMORY_SLACK = 256 * MIB  # of the process beside its target: what the messenger holds for 64 writes of 4 MiB


def resident_bytes(pid):
  with open(f"/proc/{pid}/status", encoding="ascii") as status:
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))


def start_load(cluster, seconds):
  """64 writes of 4 MiB at a time."""
  command = cluster.command_line("rados", "-p", POOL, "bench", seconds, "write", "-b", 4 * MIB, "-t", 64, "--no-cleanup")
  return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def sample(cluster, pid):
  throttle = cluster.ask_osd(0, "swimstore status")["throttle"]
  return throttle | {"resident_bytes": resident_bytes(pid)}


def stop_device(cluster, pid, seconds):
  """Samples of each second of the stop."""
  place = cluster.osd_dir(0)
  subprocess.run(["fsfreeze", "--freeze", place], check=True)
  samples, begun = [], time.monotonic()
  try:
    while time.monotonic() - begun < seconds:
      time.sleep(1)
      samples.append(sample(cluster, pid))
  finally:
    subprocess.run(["fsfreeze", "--unfreeze", place], check=True)
  return samples


def check_samples(lane, samples, target_bytes):
  # One transaction may be let in that turns out larger than it said, by what surrounds its ends.
  limit = samples[0]["limit_bytes"]
  most = max(it["taken_bytes"] for it in samples)
  lane.check(limit / 2 < most <= limit + MIB, f"{most >> 20} MiB are under way, of {limit >> 20}")
  lane.check(all(it["waiting"] for it in samples[2:]), "op threads wait")
  memory = max(it["resident_bytes"] for it in samples)
  lane.check(memory <= target_bytes + limit + MEMORY_SLACK, f"the OSD has {memory >> 20} MiB of memory")


def run(lane):
  cluster = lane.start(osds=1, size_bytes=4 * lane_module.GIB)
  cluster.create_pool(POOL, pg_num=16, size=1)
  cluster.wait_clean()
  pid = cluster.osd_pid(0)
  seconds = OP_THREAD_TIMEOUT + 5 if lane.args.quick else 30
  load = start_load(cluster, 8)
  time.sleep(3)
  samples = stop_device(cluster, pid, seconds)
  check_samples(lane, samples, cluster.spec.osd_memory_target)
  out, _ = load.communicate(timeout=120)
  lane.check(load.returncode == 0 and "Total writes made" in out, "the load ends without an error", out[-500:])
  log = (cluster.dir / "log" / "osd.0.log").read_text(errors="replace")
  hung = [line for line in log.splitlines() if "had timed out" in line and "osd_op_tp" in line]
  lane.check(not hung, f"no op thread is taken for hung in {seconds} s", "\n".join(hung[:3]))
  lane.until(lambda: cluster.ask_osd(0, "swimstore status")["throttle"]["taken_bytes"] == 0, 30, "nothing is under way")
  lane.deep_scrub()
  lane.check_daemons()


if __name__ == "__main__":
  lane_module.main("stopped-device", run, __doc__, stores=("swimstore",))
