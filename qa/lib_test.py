#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of what the shell scripts of this folder share: how a signal ends them, what they
say of failures at their end, and who deletes the scenarios' images."""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PR_SET_CHILD_SUBREAPER = 36
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "bench"))

import ending  # noqa: E402


class Commands(unittest.TestCase):
  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.base = pathlib.Path(folder.name)

  def start(self, text, **environment):
    script = f"set -euo pipefail\nhere={HERE}\n. $here/lib.sh\ntrap_signals\n{text}"
    kept = {name: value for name, value in os.environ.items() if name != "SWIM_KEEP_IMAGES"}
    process = subprocess.Popen(["bash", "-c", script, "test"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=kept | {"SWIM_CACHE": str(self.base)} | environment, start_new_session=True,
                               preexec_fn=ending.forget_ignored)
    self.addCleanup(process.communicate, timeout=30)
    self.addCleanup(process.kill)
    return process

  def test_the_status_of_what_runs_is_told(self):
    process = self.start('status=0; run bash -c "exit 3" || status=$?; echo $status; run true && echo good')
    self.assertEqual(process.communicate(timeout=30)[0].split(), ["3", "good"])

  def test_a_signal_ends_all_that_runs_and_waits_for_it(self):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
      process = self.start("""run bash -c 'trap "sleep 0.5; echo tidy; exit" TERM
        sleep 1000 & echo $!; wait'; echo behind""")
      sleeper = int(process.stdout.readline())
      process.send_signal(number)
      said, _ = process.communicate(timeout=30)
      self.assertEqual(process.returncode, 130)
      self.assertIn("tidy", said)
      self.assertNotIn("behind", said)
      self.assertIsNone(ending.started(sleeper))

  def test_a_signal_ends_what_runs_beside_it_too(self):
    process = self.start("""start bash -c 'trap "sleep 0.5; echo tidy; exit" TERM; echo $$; sleep 1000 & wait'
      run sleep 1000; echo behind""")
    beside = int(process.stdout.readline())
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=30)
    self.assertEqual(process.returncode, 130)
    self.assertEqual(said, "tidy\n")
    self.assertIsNone(ending.started(beside))

  def test_the_status_of_what_was_started_is_told_later(self):
    process = self.start('start bash -c "exit 3"; beside=$started; run true; wait $beside || echo $?')
    self.assertEqual(process.communicate(timeout=30)[0].split(), ["3"])

  def test_a_signal_that_comes_at_once_ends_it_too(self):
    process = self.start("""set -T
      trap 'case $BASH_COMMAND in "set +m" | "job="*) trap - DEBUG; kill -TERM $$ ;; esac' DEBUG
      run sleep 1000; echo behind""")
    said, _ = process.communicate(timeout=30)
    self.assertEqual(process.returncode, 130)
    self.assertNotIn("behind", said)

  def test_what_nobody_reaps_is_not_waited_for(self):
    # Orphans become children of this process, which does not reap them, as the first one of a container may not.
    libc = ctypes.CDLL(None, use_errno=True)
    self.assertEqual(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0)
    self.addCleanup(libc.prctl, PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    for start in ("run", "run_step stamp what"):
      process = self.start(f"""mkdir -p $STAMPS $LOGS
        both() {{ bash -c 'sleep 1000 & echo $! >{self.base}/orphan; exec sleep 1000' & exec sleep 1000; }}
        {start} both""")
      while not (self.base / "orphan").exists() or not (self.base / "orphan").read_text():
        time.sleep(0.05)
      process.send_signal(signal.SIGTERM)
      process.communicate(timeout=20)
      self.assertEqual(process.returncode, 130)
      (self.base / "orphan").unlink()

  def test_the_end_tells_what_failed(self):
    log = self.base / "scenario.log"
    log.write_text("[   0.1] FAIL osd.0 is alive: it is not\n" + "".join(f"line {number}\n" for number in range(99)))
    (self.base / "results.xml").write_text("""<testsuite>
      <testcase name="good" status="run"><system-out>fine</system-out></testcase>
      <testcase name="bad" status="fail"><system-out>expected 1\nfound 2</system-out></testcase>
      <testcase name="late" status="notrun"/></testsuite>""")
    (self.base / "torn.xml").write_text("<testsuite>")
    (self.base / "short.log").write_text("its only line\n")
    (self.base / "enter.sh").write_text('#!/bin/sh\nexec "$@"\n')
    (self.base / "enter.sh").chmod(0o755)
    (self.base / "cmake").symlink_to(HERE / "cmake")
    process = self.start(f"""here={self.base}; count_pass; count_failure first.py {log}
      count_failure second.sh {self.base}/short.log; count_tests {self.base}/results.xml
      for name in none torn; do count_tests {self.base}/$name.xml; done; finish""")
    said = process.communicate(timeout=30)[0].splitlines()
    self.assertEqual(process.returncode, 1)
    self.assertEqual(said[:3], ["FAILED: first.py", "[   0.1] FAIL osd.0 is alive: it is not", "line 84"])
    self.assertEqual(said[16:], ["line 98", "FAILED: second.sh", "its only line",
                                 "FAILED: bad", "expected 1", "found 2", "FAILED: late: it did not run (notrun)",
                                 f"FAILED: ctest: it wrote no results in {self.base}/none.xml",
                                 f"FAILED: ctest: it wrote no results in {self.base}/torn.xml", "2 passed, 6 failed"])

  def share(self, end, **environment):
    """A command that shares images, leaves one, and ends once `end` is there."""
    process = self.start(f"share_images; : >$images/$$.img; echo sharing; run bash -c 'while [ ! -e {end} ]; do sleep 0.05; done'",
                         **environment)
    self.assertEqual(process.stdout.readline(), "sharing\n")
    return process

  def images(self):
    return list(self.base.glob("images/*.img"))

  def test_the_last_one_deletes_the_images(self):
    first, second = self.share(self.base / "end1"), self.share(self.base / "end2")
    (self.base / "end1").touch()
    self.assertEqual(first.wait(30), 0)
    self.assertEqual(len(self.images()), 2)
    (self.base / "end2").touch()
    self.assertEqual(second.wait(30), 0)
    self.assertEqual(self.images(), [])

  def test_one_that_is_interrupted_does_too(self):
    process = self.share(self.base / "never")
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    self.assertEqual(self.images(), [])

  def test_what_is_kept_of_them_is_not_asked_for_again(self):
    # The last number is larger than 2^31, which some awks print with an exponent.
    said = self.start("echo $((1 + $(kept_image_bytes))); mkdir -p $images; fallocate --length 64K $images/a.img;"
                      "truncate --size=1G $images/a.img; echo $((1 + $(kept_image_bytes)));"
                      "fallocate --length 3G $images/b.img; echo $((1 + $(kept_image_bytes)))").communicate(timeout=30)[0]
    before, sparse, large = map(int, said.split())
    self.assertEqual(before, 1)
    self.assertTrue(1 << 16 < sparse < 1 << 20, sparse)
    self.assertGreater(large, 3 << 30)

  def test_who_wants_to_keep_them_can(self):
    process = self.start("share_images; mkdir -p $images; : >$images/a.img", SWIM_KEEP_IMAGES="1")
    self.assertEqual(process.wait(30), 0)
    self.assertEqual(len(self.images()), 1)


class Host(unittest.TestCase):
  """check_host.sh on machines that lack something, which programs in PATH pretend."""

  def lacks(self, *options, **programs):
    with tempfile.TemporaryDirectory() as folder:
      for name, text in programs.items():
        program = pathlib.Path(folder, name)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
      done = subprocess.run([HERE / "setup/check_host.sh", *options], text=True, stderr=subprocess.PIPE,
                            env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"})
    self.assertEqual(done.returncode, 1)
    return done.stderr.splitlines()

  def test_another_processor_is_named(self):
    self.assertRegex(self.lacks(uname="echo aarch64")[0], "aarch64.*amd64")

  def test_root_is_asked_for(self):
    self.assertRegex("\n".join(self.lacks("--loop", id="echo 1000")), "root.*sudo")

  def test_without_mounts_the_container_needs_more(self):
    self.assertRegex("\n".join(self.lacks("--loop", unshare="exit 1", id="echo 0")), "mounted here.*--privileged")

  def test_without_loop_devices_the_module_is_named(self):
    self.assertRegex("\n".join(self.lacks("--loop", losetup="exit 1", unshare="exit 0", id="echo 0")), "modprobe loop")

  def test_disk_is_counted_in_total(self):
    tib = 1 << 40
    self.assertRegex(self.lacks("--images", str(2000 * tib), "--setup", "build", uname="echo x86_64", id="echo 0")[-1],
                     "GiB are needed.*SWIM_CACHE")


if __name__ == "__main__":
  unittest.main()
