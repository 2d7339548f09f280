#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of page_recipe.py: what of a page is never run, and where nothing is."""

import pathlib
import subprocess
import sys
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
  return page_recipe.section_commands(NAME, text, heading, device="/dev/loop7", osd="3")


class Page(unittest.TestCase):
  def test_the_page_as_it_is_is_taken(self):
    page_recipe.check_build(NAME, PAGE)
    for heading in (page_recipe.INSTALL, page_recipe.CREATE, page_recipe.MAKE, page_recipe.START, page_recipe.UPDATE,
                    page_recipe.REMOVE):
      self.assertTrue(section(PAGE, heading))
    for heading in (page_recipe.CREATE, page_recipe.MAKE):
      self.assertEqual(section(PAGE, heading)[0].text, "DEVICE=/dev/loop7")
    self.assertEqual(section(PAGE, page_recipe.UPDATE)[0].text, "ID=3")

  def test_a_placeholder_that_has_changed_is_refused(self):
    for old, new, heading in ((page_recipe.DEVICE, "/dev/sdb", page_recipe.CREATE),
                              (page_recipe.NUMBER, "ID=7", page_recipe.UPDATE)):
      with self.assertRaisesRegex(Refused, "is there 0 times"):
        section(changed(old, new), heading)
      with self.assertRaisesRegex(Refused, "is there 2 times"):
        section(changed(old, f"{old} && {old}"), heading)

  def test_any_other_device_is_refused(self):
    for stranger in ("/dev/sdb", "/dev/loop70", "/dev/loop7p1", "/dev/disk/by-id/x", "\"/dev/sda\"", "/dev", "/dev/nullx",
                     "of=/dev/sda"):
      with self.subTest(stranger=stranger), self.assertRaisesRegex(Refused, "not the test's own"):
        section(changed("mkfs.ext4 -q -m 0 -i 1048576 -O ^fast_commit $DEVICE", f"mkfs.ext4 -q {stranger}"), page_recipe.MAKE)
      with self.subTest(stranger=stranger), self.assertRaisesRegex(Refused, "not the test's own"):
        section(changed("ceph osd tree", f"wipefs {stranger}"), page_recipe.START)
    self.assertTrue(section(changed("ceph osd tree", "true >/dev/null"), page_recipe.START))

  def test_a_heading_that_is_not_there_once_is_refused(self):
    with self.assertRaisesRegex(Refused, "'Build' is there 0 times"):
      page_recipe.check_build(NAME, changed("Build\n-----\n", "Build it\n--------\n"))
    with self.assertRaisesRegex(Refused, "'Install' is there 2 times"):
      section(PAGE + "\nInstall\n=======\n", page_recipe.INSTALL)

  def test_the_machine_runs_only_what_builds(self):
    for command in ("rm -rf /", f"{page_recipe.BUILD_COMMAND}; rm x", f"{page_recipe.BUILD_COMMAND} && rm x",
                    f"{page_recipe.BUILD_COMMAND} >x", f"{page_recipe.BUILD_COMMAND}\n   rm x", "qa/enter.sh rm -rf /"):
      with self.subTest(command=command), self.assertRaisesRegex(Refused, "is not run on this machine"):
        page_recipe.check_build(NAME, changed(page_recipe.BUILD_COMMAND, command))

  def test_a_script_ends_at_the_first_failure_even_in_a_list(self):
    commands = [Command(1, "true && false && echo never"), Command(2, "echo never")]
    done = subprocess.run(["bash", "-c", page_recipe.script(commands)], text=True, stdout=subprocess.PIPE)
    self.assertEqual((done.returncode, done.stdout), (1, "@@1\n"))


class Root(unittest.TestCase):
  def test_the_machine_itself_is_refused(self):
    with self.assertRaisesRegex(Refused, "first process"):
      page_recipe.check_root("/")

  def test_a_first_process_in_a_root_that_stays_is_refused(self):
    scratch = "30 24 0:42 / / rw - overlay swim-scratch rw,lowerdir=/root"
    with mock.patch("os.getpid", return_value=1):
      for mounts in ("30 24 8:1 / / rw - ext4 /dev/sda1 rw", scratch.replace("swim-scratch", "docker"),
                     scratch.replace("/ / rw", "/ /mnt rw"), f"{scratch}\n31 30 8:1 / / rw - ext4 /dev/sda1 rw"):
        with self.subTest(mounts=mounts), self.assertRaisesRegex(Refused, "is not forgotten"):
          page_recipe.check_root(mounts)
      page_recipe.check_root(scratch)

  def test_the_program_refuses_before_it_does_anything(self):
    for name in ("pages_inside.py", "package_inside.py"):
      program = CHECKOUT / "qa" / "standalone" / name
      done = subprocess.run([sys.executable, program, "/dev/null", "package"], text=True, timeout=60,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={"PATH": "/nowhere"})
      self.assertEqual((done.returncode, done.stdout.count("\n")), (1, 1), done.stdout)
      self.assertIn("not the first process of a namespace of its own", done.stdout)


if __name__ == "__main__":
  unittest.main()
