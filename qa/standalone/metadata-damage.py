#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Blocks of one OSD's metadata tree overwritten below it: the OSD says what it cannot read and ends; clients never notice.

A third of the blocks of entries, then of those of indexes, is overwritten while the OSD serves reads and writes, or all
where there are few; those that are read at the start alone (descriptors, filters, tombstones) while it is stopped. No
acknowledged object may be answered with "No such file", nor be lost by what the OSD tells its peers. Then the OSD is
made anew, as its last words advise, and Ceph fills it.
"""

import json
import random
import subprocess

import scenario as scenario_module
import sysroot
from cube_damage import overwrite_blocks
from scenario import UserError

OSDS = 3
POOL = "many"
LOAD = sysroot.CHECKOUT / "qa" / "standalone" / "many_objects.py"
LAST_WORDS = "metadata cannot be read"


def load(cluster, mode, count, generation):
  """What all the objects answered."""
  done = subprocess.run(sysroot.command(["python3", LOAD, mode, cluster.dir / "ceph.conf", POOL, count, generation]),
                        text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=900)
  try:
    return json.loads(done.stdout)
  except ValueError:
    raise UserError(f"many_objects.py {mode}: {(done.stderr.strip() or done.stdout)[-500:]}") from None


def all_answer_right(scenario, cluster, mode, count, generation, when):
  answers = load(cluster, mode, count, generation)
  scenario.check(answers["right"] == count, f"{when}: {mode} of {count} objects, {answers['absent']} absent, "
                 f"{answers['wrong']} wrong, {answers['refused']} refused", str(answers["examples"]))


def tree_of(cluster, osd):
  """Of the last cube: where there are several, it has placement groups."""
  cubes = cluster.osd_dir(osd) / "cubes"
  return max(cubes.iterdir(), key=lambda cube: int(cube.name)) / "tree"


def crash_reports(cluster):
  """What the OSDs' own crash reports say, as `ceph crash` would post them."""
  return [json.loads(meta.read_text()) for meta in (cluster.dir / "log").glob("*/meta")]


def check_last_words(scenario, cluster, osd, what):
  # Not once more in the list of recent events that follows, which is indented.
  said = [line for line in cluster.log_tail(f"osd.{osd}", 100_000).splitlines()
          if f"FATAL: {LAST_WORDS}" in line and not line.startswith(" ")]
  path = str(tree_of(cluster, osd))
  scenario.check(len(said) == 1 and path in said[0] and "bytes at" in said[0] and "ceph-swimstore-tool" in said[0],
                 f"{what}: one message names file, block and tool", "\n".join(said) or cluster.log_tail(f"osd.{osd}"))
  reports = [report for report in crash_reports(cluster) if report["entity_name"] == f"osd.{osd}"]
  scenario.check(any(LAST_WORDS in report.get("assert_msg", "") for report in reports),
                 f"{what}: a crash report says so",
                 str([report.get("assert_msg") for report in reports]))


def settle(cluster, osd):
  """The OSD's metadata lies in its tree, and not in memory."""
  cluster.ask_osd(osd, "compact", timeout=60)
  cluster.ask_osd(osd, "flush_store_cache")


def damage_in_use(scenario, cluster, osd, kind, mode, generation):
  """Returns the generation that the objects have now."""
  what = f"a third of the blocks of kind {kind} of osd.{osd}, overwritten"
  settle(cluster, osd)
  blocks = overwrite_blocks(tree_of(cluster, osd), [kind], 1 / 3, scenario.rng)
  scenario.say(f"{what} ({blocks} in all)")
  cluster.ask_osd(osd, "flush_store_cache")
  generation += mode == "write"
  all_answer_right(scenario, cluster, mode, scenario.count, generation, what)
  if not scenario.check(cluster.osd_crashed(osd), f"{what}: osd.{osd} ended"):
    cluster.stop_osd(osd)
    return generation
  check_last_words(scenario, cluster, osd, what)
  all_answer_right(scenario, cluster, "read", scenario.count, generation, f"without osd.{osd}")
  return generation


def damage_while_stopped(scenario, cluster, osd, kind, generation):
  """What is read at the start: the OSD does not begin to serve."""
  what = f"all blocks of kind {kind} of osd.{osd}, overwritten"
  settle(cluster, osd)
  cluster.stop_osd(osd)
  if overwrite_blocks(tree_of(cluster, osd), [kind], 1, scenario.rng) == 0:
    raise UserError(f"osd.{osd} has no blocks of kind {kind}")
  try:
    cluster.start_osd(osd)
    cluster.wait_up()
    scenario.check(False, f"{what}: osd.{osd} refuses to start")
  except UserError as error:
    path = str(tree_of(cluster, osd))
    said = [line for line in str(error).splitlines() if path in line and "mount:" in line]
    scenario.check(any("ceph-swimstore-tool" in line for line in said),
                   f"{what}: it refuses to start, naming file and tool", str(error))
  all_answer_right(scenario, cluster, "read", scenario.count, generation, f"without osd.{osd}")


def make_anew(scenario, cluster, osd):
  """As doc/ceph-swimstore-tool.md advises: what is damaged goes, Ceph fills a new store."""
  cluster.remake_osd(osd)
  cluster.wait_up()
  cluster.wait_clean(300)
  scenario.check(True, f"osd.{osd} made anew, and filled by its peers")


def run(scenario):
  scenario.rng = random.Random(scenario.args.seed)
  scenario.count = scenario.args.objects or (1000 if scenario.args.quick else 3000)
  scenario.say(f"{scenario.count} objects, seed {scenario.args.seed}")
  cluster = scenario.start(osds=OSDS, conf={"osd fast shutdown": "false"})
  cluster.create_pool(POOL, pg_num=16, size=3)
  cluster.wait_clean()
  generation = 0
  all_answer_right(scenario, cluster, "write", scenario.count, generation, "at first")
  rounds = [("entries", "read"), ("entries", "write"), ("index", "read"), ("index", "write")]
  stopped = ["descriptor", "filter"]
  if scenario.args.quick:
    rounds, stopped = [("entries", "read"), ("index", "write")], ["descriptor"]
  victim = 0
  for kind, mode in rounds:
    generation = damage_in_use(scenario, cluster, victim, kind, mode, generation)
    make_anew(scenario, cluster, victim)
    victim = (victim + 1) % OSDS
  for kind in stopped:
    damage_while_stopped(scenario, cluster, victim, kind, generation)
    make_anew(scenario, cluster, victim)
    victim = (victim + 1) % OSDS
  all_answer_right(scenario, cluster, "read", scenario.count, generation, "at last")
  scenario.check_daemons()
  scenario.deep_scrub()


if __name__ == "__main__":
  scenario_module.main("metadata-damage", run, __doc__, stores=("swimstore",), options=(
      (("--objects",), {"type": int, "help": "(default: 3000; with --quick 1000)"}),
      (("--seed",), {"type": int, "default": random.randrange(1 << 32), "help": "of the choice of blocks"})))
