#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of page_recipe.py: what of a page is never run, and where nothing is."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import page_recipe
from page_commands import Command
from page_recipe import Refused

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
NAME = "doc/swimstore-operations.rst"
PAGE = (CHECKOUT / NAME).read_text()


def changed(old, new):
  assert old in PAGE, old
  return PAGE.replace(old, new, 1)


def section(text, heading):
  return page_recipe.section_commands(NAME, text, heading, device="/dev/loop7", version="1", osd="3")


class Page(unittest.TestCase):
  def test_the_page_as_it_is_is_taken(self):
    commands = page_recipe.build_commands(NAME, PAGE, "/folder")
    self.assertIn("qa/enter.sh ninja -C build -f /folder/build.ninja -n", [command.text for command in commands])
    self.assertNotIn("build/install", "".join(command.text for command in commands))
    for heading in (page_recipe.INSTALL, page_recipe.MAKE, page_recipe.START, page_recipe.UPDATE):
      self.assertTrue(section(PAGE, heading))
    self.assertEqual(section(PAGE, page_recipe.MAKE)[0].text, "DEVICE=/dev/loop7")
    self.assertIn("apt-get install --simulate ceph-osd", section(PAGE, page_recipe.UPDATE)[-1].text)

  def test_a_placeholder_that_has_changed_is_refused(self):
    for old, new, heading in ((page_recipe.DEVICE, "/dev/sdb", page_recipe.MAKE),
                              ("apt-get install ceph-osd", "apt install ceph-osd", page_recipe.INSTALL),
                              (page_recipe.NUMBER, "ID=7", page_recipe.UPDATE)):
      with self.assertRaisesRegex(Refused, "is there 0 times"):
        section(changed(old, new), heading)
    for old, heading in ((page_recipe.DEVICE, page_recipe.MAKE), ("apt-get install ", page_recipe.INSTALL)):
      with self.assertRaisesRegex(Refused, "is there 2 times"):
        section(changed(old, f"{old} && {old}"), heading)

  def test_any_other_device_is_refused(self):
    for stranger in ("/dev/sdb", "/dev/loop70", "/dev/loop7p1", "/dev/disk/by-id/x", "\"/dev/sda\"", "/dev", "/dev/nullx",
                     "of=/dev/sda"):
      with self.subTest(stranger=stranger), self.assertRaisesRegex(Refused, "not the test's own"):
        section(changed("mkfs.ext4 -q -m 0 $DEVICE", f"mkfs.ext4 -q {stranger}"), page_recipe.MAKE)
      with self.subTest(stranger=stranger), self.assertRaisesRegex(Refused, "not the test's own"):
        section(changed("systemctl daemon-reload", f"wipefs {stranger}"), page_recipe.START)
    self.assertTrue(section(changed("systemctl daemon-reload", "true >/dev/null"), page_recipe.START))

  def test_a_heading_that_is_not_there_once_is_refused(self):
    with self.assertRaisesRegex(Refused, "'Build' is there 0 times"):
      page_recipe.build_commands(NAME, changed("Build\n-----\n", "Build it\n--------\n"), "/folder")
    with self.assertRaisesRegex(Refused, "'Install' is there 2 times"):
      section(PAGE + "\nInstall\n=======\n", page_recipe.INSTALL)

  def test_the_machine_runs_only_what_builds(self):
    for command in ("rm -rf /", "qa/enter.sh rm -rf /", "qa/enter.sh cmake .; rm x", "qa/enter.sh cmake . && rm x",
                    "qa/enter.sh cmake . >x", "qa/enter.sh ninja `rm x`", "qa/enter.sh ninja $(rm x)",
                    "qa/enter.sh ninja \"$(rm x)\"", "qa/enter.sh ninja & rm x", "qa/enter.sh", "A=b qa/enter.sh cmake .",
                    "DESTDIR=/ qa/enter.sh cmake", "tar -C / -xzf a",
                    "tar -C build/install -xzf build/swimstore.tar.gz opt/swimstore"):
      with self.subTest(command=command), self.assertRaisesRegex(Refused, "is not run on this machine"):
        page_recipe.build_commands(NAME, changed("qa/enter.sh cmake --preset release", command), "/folder")

  def test_a_build_that_would_go_elsewhere_is_refused(self):
    for old, new in (("ninja -C build\n", "ninja -C other\n"), ("DESTDIR=$PWD/build/install ", "")):
      with self.subTest(new=new), self.assertRaisesRegex(Refused, "is there 0 times"):
        page_recipe.build_commands(NAME, changed(old, new), "/folder")

  def test_a_script_ends_at_the_first_failure_even_in_a_list(self):
    commands = [Command(1, "true && false && echo never"), Command(2, "echo never")]
    done = subprocess.run(["bash", "-c", page_recipe.script(commands)], text=True, stdout=subprocess.PIPE)
    self.assertEqual((done.returncode, done.stdout), (1, "@@1\n"))


class Root(unittest.TestCase):
  def test_the_machine_itself_is_refused(self):
    with self.assertRaisesRegex(Refused, "first process"):
      page_recipe.check_root("/")

  def test_a_first_process_outside_of_the_sysroot_is_refused(self):
    with tempfile.TemporaryDirectory() as cache, mock.patch("os.getpid", return_value=1):
      with self.assertRaisesRegex(Refused, "/ is not the sysroot"):
        page_recipe.check_root(cache)
      os.mkdir(f"{cache}/trixie")
      with self.assertRaisesRegex(Refused, "/ is not the sysroot"):
        page_recipe.check_root(cache)
      os.rmdir(f"{cache}/trixie")
      os.symlink("/", f"{cache}/trixie")
      page_recipe.check_root(cache)

  def test_the_program_refuses_before_it_does_anything(self):
    program = CHECKOUT / "qa" / "standalone" / "pages_inside.py"
    done = subprocess.run([sys.executable, program, "/dev/null", "archive", "1"], text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={"PATH": "/nowhere"})
    self.assertEqual((done.returncode, done.stdout.count("\n")), (1, 1), done.stdout)
    self.assertIn("not the first process of a namespace of its own", done.stdout)


if __name__ == "__main__":
  unittest.main()
