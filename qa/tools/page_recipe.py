# SPDX-License-Identifier: LGPL-2.1-or-later
"""The recipe of doc/swimstore-operations.rst as scripts that a test may run: taken by their headings, with what is a matter of
the host replaced, and refused whenever the page no longer says what the test takes for granted.

Nothing here runs anything. A recipe makes file systems and installs packages: a wording that has changed must end the test
before its first command, not turn it loose on the disks of the machine that tests.
"""

import os
import pathlib
import re

import page_commands

BUILD, INSTALL, CREATE, MAKE, START = "Build", "Install", "Make an OSD", "Make it by hand", "Start it"
UPDATE, REMOVE = "Update", "Remove"
DEVICE = "/dev/disk/by-id/NAME-OF-THE-DISK"
NUMBER = "ID=NUMBER-OF-THE-OSD"
# All that the first block may run, which is run in the repository and by the machine itself.
BUILD_COMMAND = "qa/build-deb.sh"
SCRATCH = "swim-scratch"  # the name of qa/enter.sh's mount


class Refused(Exception):
  """The page, or where it runs, is not what the test takes for granted; nothing was run."""


def replaced(text, table, where):
  """`text` with each key of `table` replaced, which must be there once, no more and no less."""
  for old in table:
    if text.count(old) != 1:
      raise Refused(f"{where}: '{old}' is there {text.count(old)} times, not once: tell page_recipe.py the new wording")
  for old, new in table.items():
    text = text.replace(old, new)
  return text


def section_blocks(name, text, heading):
  """The blocks of commands below a heading, down to the next one; the heading must be there once, and a block."""
  lines = text.splitlines()
  headings = [number for number in range(1, len(lines))
              if re.fullmatch(r"([=-])\1{2,}", lines[number]) and lines[number - 1].strip()]
  begins = [number for number in headings if lines[number - 1].strip() == heading]
  if len(begins) != 1:
    raise Refused(f"{name}: the heading '{heading}' is there {len(begins)} times, not once")
  end = min((number for number in headings if number > begins[0]), default=len(lines))
  found = [block for block in page_commands.blocks(name, text) if block.kind == "sh" and begins[0] < block.line <= end]
  if not found:
    raise Refused(f"{name}: no block of commands below '{heading}'")
  return found


def check_build(name, text):
  """That the section says what is run in its place, and nothing else."""
  (block,) = section_blocks(name, text, BUILD)
  for command in page_commands.commands(block):
    if command.text != BUILD_COMMAND:
      raise Refused(f"{name}:{command.line}: '{command.text}' is not run on this machine, only {BUILD_COMMAND}")


def check_devices(script, device):
  """No device but the one that the test made, and /dev/null."""
  strangers = sorted(set(re.findall(r"/dev\b[^\s;|&)\"'<>]*", script)) - {device, "/dev/null"})
  if strangers:
    raise Refused(f"a device that is not the test's own: {', '.join(strangers)}")


def section_commands(name, text, heading, device="", osd=""):
  """The commands of a section of the OSD's host, ready to be run there."""
  tables = {INSTALL: {}, CREATE: {DEVICE: device}, MAKE: {DEVICE: device}, START: {}, UPDATE: {NUMBER: f"ID={osd}"}, REMOVE: {}}
  commands = [command for block in section_blocks(name, text, heading) for command in page_commands.commands(block)]
  whole = replaced("\0".join(command.text for command in commands), tables[heading], f"{name}, '{heading}'")
  check_devices(whole.replace("\0", "\n"), device)
  return [page_commands.Command(command.line, words) for command, words in zip(commands, whole.split("\0"), strict=True)]


def script(commands, after=()):
  """Each command says its line before it runs; the first that fails ends the script. `after`: {begin of a command: what
  the test does behind it}."""
  lines = ["set -u -o pipefail"]
  for command in commands:
    # Not `set -e`: a failure in the middle of `a && b` would not end it.
    lines += [f"echo @@{command.line}", command.text, '[ "$?" -eq 0 ] || exit 1']
    lines += [added for begin, added in dict(after).items() if command.text.startswith(begin)]
  return "\n".join([*lines, "echo @@done"])


def check_root(mounts=None):
  """Alone in namespaces of its own, in a root whose changes are forgotten: never on the machine itself."""
  if os.getpid() != 1:
    raise Refused("not the first process of a namespace of its own: run qa/standalone/pages.py, which makes one")
  lines = pathlib.Path("/proc/self/mountinfo").read_text() if mounts is None else mounts
  # Behind the dash: file system, name of the mount.
  over = [line.partition(" - ")[2].split()[:2] for line in lines.splitlines() if line.split()[4] == "/"]
  if over[-1:] != [["overlay", SCRATCH]]:
    raise Refused(f"what is changed in / is not forgotten: run qa/standalone/pages.py, which enters a root where it is: {over}")
