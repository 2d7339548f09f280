#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Kill an OSD with SIGKILL at random moments under load; nothing acknowledged may be lost, nothing half-done seen.

Per round: load for a random time, kill -9, restart with the store's own deep fsck on mount, then read every object
and compare it byte by byte (data, xattr, omap) with what was acknowledged.
"""

import pathlib
import random
import subprocess
import time

import scenario as scenario_module
import sysroot
from scenario import FSCK_ON_MOUNT, UserError

LOAD = pathlib.Path(__file__).resolve().parent / "acked_load.py"
POOL = "acked"


def acked_load(cluster, mode, model, seed):
  return sysroot.command(["python3", LOAD, mode, cluster.dir / "ceph.conf", POOL, model, seed])


def begin_load(cluster, model, seed):
  """The client, whose operations have begun. It ends when its standard input does, and saves what it knows."""
  client = subprocess.Popen(acked_load(cluster, "load", model, seed), text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
  try:
    if client.stdout.readline().strip() != "loading":
      raise UserError(f"the load does not start: {client.communicate()[0].strip()}")
  except BaseException:
    client.kill()
    client.wait()
    raise
  return client


def verify(scenario, cluster, model, what):
  """Every object is as acknowledged: `what` tells when."""
  done = subprocess.run(acked_load(cluster, "verify", model, 0), text=True, stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
  lines = done.stdout.strip().splitlines() or ["no output"]
  scenario.check(done.returncode == 0, f"{what}: {lines[-1]}", "\n".join(lines[:10]))


def load_until_killed(scenario, cluster, model, seed, seconds):
  """Load, kill osd.0 in the middle of it, and have the client save what it knows."""
  client = begin_load(cluster, model, seed)
  try:
    time.sleep(seconds)
    if client.poll() is not None or not cluster.osd_alive(0):
      scenario.check_daemons()
      raise UserError(f"the load ended before the kill: {client.communicate()[0].strip()}")
    cluster.kill_osd(0)
    said, _ = client.communicate(timeout=60)
  finally:
    if client.poll() is None:
      client.kill()
      client.wait()
  scenario.check(client.returncode == 0, "no operation failed", said.strip())


def run(scenario):
  args = scenario.args
  rounds = args.rounds or (3 if args.quick else 50)
  rng = random.Random(args.seed)
  scenario.say(f"{rounds} rounds, seed {args.seed}")
  cluster = scenario.start(osds=1)
  cluster.create_pool(POOL, pg_num=16, size=1)
  cluster.wait_clean()
  model = cluster.dir / "run" / "acked.model"
  for nth in range(1, rounds + 1):
    seconds = rng.uniform(0.2, 4.0)
    load_until_killed(scenario, cluster, model, rng.randrange(1 << 32), seconds)
    begun = time.monotonic()
    cluster.start_osd(0, *FSCK_ON_MOUNT.get(args.store, []))
    cluster.wait_up(timeout=180)
    boot = time.monotonic() - begun
    verify(scenario, cluster, model, f"round {nth}/{rounds}: killed after {seconds:.1f} s, up again in {boot:.1f} s")
    scenario.check_daemons()
    if scenario.failures:
      return
  scenario.deep_scrub()


if __name__ == "__main__":
  scenario_module.main("kill9", run, __doc__, stores=("swimstore", "bluestore", "kstore", "filestore"), options=(
      (("--rounds",), {"type": int, "help": "(default: 50; with --quick 3)"}),
      (("--seed",), {"type": int, "default": random.randrange(1 << 32), "help": "of the moments and the load"})))
