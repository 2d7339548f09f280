#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks the models with Spin, all rules on and each rule off: of the log (one_log.pml), of the flush that cubes share
(shared_flush.pml), of a collection's move from cube to cube (move.pml), also while it is in use (online_move.pml), and
of the loss of a cube (witness.pml).

With all rules on no violation may be found. With a rule off one must be found, or the model could not have
noticed it; the one rule that others imply says so. D is durable_seq, W the watermark.
Exits 1 when a verdict is not the expected one.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

MODELS = Path(__file__).resolve().parent
LOG = "one_log"

ONE_CUBE = {"TXNS": 3, "EMPTIES": 0, "CRASHES": 2}
TWO_CUBES = {"CUBES": 2, "TXNS": 1, "EMPTIES": 0, "CRASHES": 2, "SEGS": 2, "POS": 4}
WITH_EMPTY = ONE_CUBE | {"EMPTIES": 1}
FOUR_SEGMENTS = WITH_EMPTY | {"SEGS": 4}


@dataclass(frozen=True)
class Rule:
  text: str
  bounds: dict
  implied: bool = False  # others keep the promise without it: no violation to be found
  model: str = LOG


RULES = {
    "segment_epoch": Rule("a record's epoch is its segment's", FOUR_SEGMENTS),
    "body_checksum": Rule("a record's body matches its checksum", ONE_CUBE),
    "previous_checksum": Rule("a record names its predecessor's checksum", ONE_CUBE),
    "nonce": Rule("no two records are the same bytes", WITH_EMPTY),
    "external_check": Rule("above W, data is compared with its crc", ONE_CUBE),
    "trust_below_watermark": Rule("at or below W, it is not", WITH_EMPTY),
    "two_passes": Rule("W is known before data is looked at", WITH_EMPTY),
    "next_segment_rule": Rule("the next segment is one whose first record continues the chain", ONE_CUBE),
    "greatest_epoch": Rule("of several of those, the one of the greatest epoch", ONE_CUBE),
    "new_epoch": Rule("a new epoch is beyond every record's, not only every header's", FOUR_SEGMENTS, implied=True),
    "own_flush": Rule("a group's flush follows all of its writes", ONE_CUBE),
    "durable_in_order": Rule("D moves in sequence order, not per group", ONE_CUBE),
    "watermark_behind_flush": Rule("a record carries the D of when it was formed", ONE_CUBE),
    "acknowledge_after_flush": Rule("acknowledged means at or below D", ONE_CUBE),
    "reuse_rule": Rule("a freed slot waits", ONE_CUBE),
    "reuse_after_record": Rule("it waits for a durable record that knows, not for D alone", ONE_CUBE),
    "memtable_rule": Rule("the tree takes only what is at or below D", ONE_CUBE),
    "recycle_rule": Rule("a segment is recycled after a durable checkpoint", ONE_CUBE),
    "recovery_flush": Rule("recovery flushes everything before its record", ONE_CUBE),
    "recovery_record": Rule("recovery ends with a record", ONE_CUBE),
    "recovery_record_flush": Rule("that record is durable before anything is served", ONE_CUBE),
    "lock": Rule("the store's lock lives as long as its last write", ONE_CUBE),
    "participants": Rule("a record needs its participant in the other cube", TWO_CUBES),
    "participants_durable": Rule("D waits for participants", TWO_CUBES),
    "serve_together": Rule("no cube serves before all recovery records are durable", TWO_CUBES),
    "flush_begins_later": Rule("a flush serves those that asked before it began", {}, model="shared_flush"),
    "failure_is_final": Rule("after a failed flush none is believed", {}, model="shared_flush"),
    "new_copy_marked": Rule("the new cube calls the range unowned before it has objects", {}, model="move"),
    "record_after_copies": Rule("the new record follows the copies", {}, model="move"),
    "new_record_durable_first": Rule("the old record goes when the new one is durable", {}, model="move"),
    "old_copy_marked": Rule("with the old record's end its range is unowned", {}, model="move"),
    "old_record_gone_first": Rule("the transaction waits for the old record's end", {}, model="move"),
    "noted_from_the_beginning": Rule("changes are noted before the first object is copied", {}, model="online_move"),
    "changes_noted": Rule("each change of an object is noted", {}, model="online_move"),
    "noted_with_the_change": Rule("under the lock under which it happens", {}, model="online_move"),
    "taken_before_copied": Rule("the set is emptied before its objects are copied again", {}, model="online_move"),
    "rest_noted_again": Rule("what a last pass leaves for want of time is noted again", {}, model="online_move"),
    "last_pass_alone": Rule("nothing is written from the last pass to the switch", {}, model="online_move"),
    "witness_awaited": Rule("a group starts when its witness is durable", {}, model="witness"),
    "group_remade": Rule("a lost group is made anew, from its witness", {}, model="witness"),
}

# All rules on: what, bounds, whether only --long looks at it, the model if it is another than the log's.
WHOLE = [
    ("all rules, one cube", ONE_CUBE, False),
    ("all rules, two cubes", TWO_CUBES, False),
    ("all rules, a shared flush", {}, False, "shared_flush"),
    ("all rules, a move", {}, False, "move"),
    ("all rules, a move while in use", {}, False, "online_move"),
    ("all rules, a witness", {}, False, "witness"),
    ("all rules, one cube, empty records", WITH_EMPTY, True),
    ("all rules, one cube, 4 segments", FOUR_SEGMENTS, True),
    ("all rules, one cube, 3 slots", ONE_CUBE | {"SLOTS": 3}, True),
    ("all rules, one cube, 3 crashes", {"TXNS": 2, "EMPTIES": 1, "CRASHES": 3}, True),
    ("all rules, one cube, 4 transactions", ONE_CUBE | {"TXNS": 4}, True),
    ("all rules, two cubes, 2 transactions", TWO_CUBES | {"TXNS": 2, "CRASHES": 1}, True),
    ("all rules, two cubes, segments recycled", TWO_CUBES | {"SEGS": 3, "POS": 2}, True),
    ("all rules, two cubes, 2 and 2", TWO_CUBES | {"TXNS": 2}, True),
]


@dataclass
class Verdict:
  states: int
  violation: str  # empty: none
  story: list
  complete: bool


def run(command, folder, limit_s=None):
  return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit_s)


def build(folder, model, defines, optimize, thorough, shortest):
  shutil.copy(MODELS / f"{model}.pml", folder)  # the trail is written beside the model
  made = run(["spin", "-a", *defines, f"{model}.pml"], folder)
  if made.returncode != 0:
    sys.exit(f"run.py: error: spin does not accept the model:\n{made.stdout}{made.stderr}")
  # One process: partial order reduction has nothing to reduce.
  flags = ["-w", optimize, "-DSAFETY", "-DNOREDUCE", "-DVECTORSZ=1024", "-DMEMLIM=16000"]
  flags += ["-DCOLLAPSE"] if thorough else []  # exact, unlike a hash of each state
  flags += ["-DREACH"] if shortest else []
  made = run(["gcc", *flags, "-o", "pan", "pan.c"], folder)
  if made.returncode != 0:
    sys.exit(f"run.py: error: gcc does not accept what spin made:\n{made.stderr}")


def check(bounds, rule_off=None, thorough=False, shortest=False, limit_s=None, model=LOG):
  """Explores all states within the bounds, or up to the first violation."""
  defines = [f"-D{name}={value}" for name, value in bounds.items()]
  defines += [f"-DNO_{rule_off.upper()}"] if rule_off else []
  with tempfile.TemporaryDirectory(prefix=model) as folder:
    # A violation is found before an optimized build would be done.
    small = rule_off is not None and not RULES[rule_off].implied and not shortest
    build(folder, model, defines, "-O0" if small else "-O2" if thorough else "-O1", thorough, shortest)
    # -E: an end that was cut off by the bounds is no deadlock.
    command = ["./pan", "-E", "-m100000", "-w26" if thorough else "-w21"] + (["-i"] if shortest else [])
    try:
      found = run(command, folder, limit_s)
    except subprocess.TimeoutExpired:
      return Verdict(0, "", [], complete=False)
    states = re.search(r"(\d+) states, stored", found.stdout)
    story = []
    if list(Path(folder).glob("*.trail")):
      story = [line.strip() for line in run(["./pan", "-r"], folder).stdout.splitlines()]
      story = [line for line in story if re.match(r"cubes? |OSD |group |both |flush|recovery|power|the process|a dead|VIOL", line)]
    violation = next((line.removeprefix("VIOLATION: ") for line in story if line.startswith("VIOL")), "")
    complete = bool(states) and "max search depth too small" not in found.stdout and found.returncode == 0
    if "errors: 0" not in found.stdout and not violation:
      complete = False
    return Verdict(int(states.group(1)) if states else 0, violation, story, complete)


def show(name, verdict, expected, passed, seconds):
  text = verdict.violation or ("no violation" if verdict.complete else "NOT FINISHED")
  print(f"{name:<40} {verdict.states:>11,} {seconds:>6.0f} s  {'ok  ' if passed else 'FAIL'} {text}"
        f" (expected: {expected})", flush=True)


def judge(name, bounds, rule, thorough, model):
  """One line of the table; whether the verdict is the expected one."""
  start = time.monotonic()
  verdict = check(bounds, rule, thorough, model=model)
  wants_violation = rule is not None and not RULES[rule].implied
  passed = bool(verdict.violation) if wants_violation else verdict.complete and not verdict.violation
  expected = "a violation" if wants_violation else "none" if rule is None else "none: other rules imply it"
  show(name, verdict, expected, passed, time.monotonic() - start)
  return passed, verdict.states


def check_all(long, jobs):
  work = [(name, bounds, None, long, model[0] if model else LOG) for name, bounds, only_long, *model in WHOLE
          if long or not only_long]
  work += [(f"without {name}", rule.bounds, name, False, rule.model) for name, rule in RULES.items() if long or not rule.implied]
  print(f"{'rule':<40} {'states':>11} {'time':>8}       verdict")
  with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
    results = list(pool.map(lambda job: judge(*job), work))
  failed = sum(not passed for passed, _ in results)
  states = sum(states for _, states in results)
  print(f"{len(results)} runs, {states:,} states, {failed} unexpected")
  return failed == 0


def show_rule(name):
  """The shortest history that breaks the promise when the rule is not kept."""
  rule = RULES[name]
  print(f"{name}: {rule.text}\nwithout it:")
  verdict = check(rule.bounds, name, shortest=not rule.implied, model=rule.model)
  for line in verdict.story:
    print(f"  {line}")
  print(f"{verdict.states:,} states" + ("" if verdict.story else ", no violation"))
  return bool(verdict.violation) != rule.implied


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--quick", action="store_true", help="small bounds (default)")
  parser.add_argument("--long", action="store_true", help="large bounds as well: about an hour and up to 16 GB of memory")
  parser.add_argument("--rule", choices=sorted(RULES), metavar="NAME",
                      help="show what happens without this rule: " + ", ".join(RULES))
  parser.add_argument("--jobs", type=int, default=0, help="runs at a time (default: cores; 1 with --long)")
  arguments = parser.parse_args()
  for tool in ("spin", "gcc"):
    if not shutil.which(tool):
      sys.exit(f"run.py: error: there is no {tool} here: run this as 'qa/enter.sh qa/model/run.py'")
  if arguments.rule:
    return 0 if show_rule(arguments.rule) else 1
  jobs = arguments.jobs or (1 if arguments.long else os.cpu_count() or 1)
  return 0 if check_all(arguments.long, jobs) else 1


if __name__ == "__main__":
  sys.exit(main())
