#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of how a signal ends a command: each command is a Python program of its own."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import ending

HERE = pathlib.Path(__file__).resolve().parent
PREFACE = f"""
import subprocess, sys, time
sys.path.insert(0, {str(HERE)!r})
import ending
ending.arm()
def say(text): print(text, flush=True)
# Python looks for a signal that came just before a sleep began when that ends.
def wait():
  for _ in range(600): time.sleep(0.1)
"""


class Program:
  def __init__(self, text, preexec_fn=ending.forget_ignored):
    self.process = subprocess.Popen([sys.executable, "-c", PREFACE + text], text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, preexec_fn=preexec_fn)

  def line(self):
    return self.process.stdout.readline().strip()

  def end(self, number):
    """Returns what it said from then on."""
    self.process.send_signal(number)
    return self.process.communicate(timeout=30)[0].split()


class Signals(unittest.TestCase):
  def test_each_of_the_three_is_a_keyboard_interrupt(self):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
      program = Program("""
try:
  say("waiting")
  wait()
except KeyboardInterrupt:
  say("interrupted")
""")
      self.assertEqual(program.line(), "waiting")
      self.assertEqual(program.end(number), ["interrupted"])
      self.assertEqual(program.process.returncode, 0)

  def test_a_second_one_does_not_cut_the_tidying_up_short(self):
    program = Program("""
try:
  say("waiting")
  wait()
except KeyboardInterrupt:
  say("tidying")
  time.sleep(1)
  say("tidy")
""")
    program.line()
    program.process.send_signal(signal.SIGHUP)
    self.assertEqual(program.line(), "tidying")
    self.assertEqual(program.end(signal.SIGTERM), ["tidy"])

  def test_what_is_whole_goes_on_to_its_end(self):
    program = Program("""
try:
  with ending.whole():
    with ending.whole():
      say("inside")
      time.sleep(1)
    say("done")
  say("behind")
except KeyboardInterrupt:
  say("interrupted")
""")
    program.line()
    self.assertEqual(program.end(signal.SIGTERM), ["done", "interrupted"])

  def test_what_the_caller_ignores_stays_ignored(self):
    program = Program("""
say("waiting")
time.sleep(1)
say("undisturbed")
""", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    program.line()
    self.assertEqual(program.end(signal.SIGHUP), ["undisturbed"])


class Processes(unittest.TestCase):
  def end(self, command, patience_seconds=1):
    """What happens to a process that a program starts by `command`, which prints its pid."""
    program = Program(f"""
try:
  subprocess.run(["bash", "-c", {command!r}], stdin=subprocess.DEVNULL)
  wait()
except KeyboardInterrupt:
  ending.end_processes({patience_seconds})
  say("tidy")
""")
    pid = int(program.line())
    self.assertIsNotNone(ending.started(pid))
    begun = time.monotonic()
    self.assertEqual(program.end(signal.SIGTERM)[-1], "tidy")
    self.assertIsNone(ending.started(pid))
    return time.monotonic() - begun

  def test_a_grandchild_ends(self):
    self.end("sleep 60 & echo $!; wait")

  def test_a_daemon_ends(self):
    self.end("setsid bash -c 'echo $$; exec sleep 60 >/dev/null 2>&1 </dev/null' &")

  def test_one_that_loses_its_mark_on_its_way_out_is_waited_for(self):
    self.end("""setsid bash -c 'trap "exec env -i sleep 0.5" TERM; echo $$; exec >/dev/null 2>&1
while :; do sleep 0.05; done' &""", 20)

  def test_one_that_is_becoming_another_program_is_looked_at_again(self):
    with tempfile.TemporaryDirectory() as folder:
      entry = pathlib.Path(folder)
      (entry / "environ").write_bytes(b"")
      (entry / "exe").symlink_to("/proc/self/exe")
      threading.Timer(0.02, lambda: (entry / "environ").write_bytes(b"A=1\0")).start()
      self.assertIn(b"A=1", ending._environment(entry))

  def test_one_that_is_stopped_ends(self):
    self.assertLess(self.end("sleep 60 & kill -STOP $!; echo $!", 20), 20)

  def test_one_that_does_not_want_to_is_killed(self):
    self.assertGreater(self.end("bash -c 'trap \"\" TERM; echo $$; while :; do sleep 0.1; done' &"), 1)

  def test_those_of_another_run_go_on(self):
    other = subprocess.Popen(["sleep", "60"], env=os.environ | {"SWIM_RUN": "another"})
    try:
      self.end("sleep 60 & echo $!; wait")
      self.assertIsNotNone(ending.started(other.pid))
    finally:
      other.kill()
      other.wait()


if __name__ == "__main__":
  unittest.main()
