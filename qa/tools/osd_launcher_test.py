#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What stands in front of ceph-osd in the package (qa/debian/ceph-osd-launcher): which program it runs, and what it refuses."""

import os
import pathlib
import subprocess
import tempfile
import unittest

LAUNCHER = pathlib.Path(__file__).resolve().parents[1] / "debian/ceph-osd-launcher"
USER, GROUP = "nobody", "nogroup"
OURS, CEPHS = "/usr/lib/ceph-swimstore/ceph-osd", "/usr/bin/ceph-osd"


class Launcher(unittest.TestCase):
  def setUp(self):
    folder = tempfile.TemporaryDirectory(dir="/tmp")
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    self.folder.chmod(0o755)
    self.osd = self.folder / "osd"
    self.osd.mkdir(mode=0o755)
    text = LAUNCHER.read_text()
    for name, program in (("ours", OURS), ("cephs", CEPHS)):
      self.assertIn(f"program={program}\n", text)
      stub = self.folder / name
      stub.write_text(f'#!/bin/sh\necho {name} "$@"\n')
      stub.chmod(0o755)
      text = text.replace(f"program={program}\n", f"program={stub}\n")
    self.launcher = self.folder / "launcher"
    self.launcher.write_text(text)

  def make_type(self, text, mode=0o644):
    (self.osd / "type").write_text(text + "\n")
    (self.osd / "type").chmod(mode)

  def launch(self):
    return subprocess.run(["sh", self.launcher, self.osd, "-f", "--id", "7", "--setuser", USER, "--setgroup", GROUP],
                          text=True, capture_output=True, timeout=60)

  def check_runs(self, name):
    done = self.launch()
    self.assertEqual((done.returncode, done.stdout), (0, f"{name} -f --id 7 --setuser {USER} --setgroup {GROUP}\n"), done.stderr)

  def test_the_file_type_chooses_the_program(self):
    self.check_runs("cephs")
    self.make_type("bluestore", 0o600)
    self.check_runs("cephs")
    self.make_type("swimstore")
    self.check_runs("ours")

  @unittest.skipUnless(os.geteuid() == 0, "files are given away by root")
  def test_the_first_file_that_cannot_be_opened_is_named(self):
    self.make_type("swimstore", 0o600)
    for mode, file in ((0o755, self.osd / "type"), (0o700, self.osd)):
      self.osd.chmod(mode)
      done = self.launch()
      self.assertEqual((done.returncode, done.stdout), (1, ""))
      self.assertIn(f"{file} cannot be opened by the user {USER}", done.stderr)
      self.assertIn(f"'chown -R {USER}:{GROUP} {self.osd}'", done.stderr)
    subprocess.run(["chown", "-R", f"{USER}:{GROUP}", self.osd], check=True)
    self.check_runs("ours")


if __name__ == "__main__":
  unittest.main()
