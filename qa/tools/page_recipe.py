# SPDX-License-Identifier: LGPL-2.1-or-later
"""The recipe of doc/swimstore-operations.rst as scripts that a test may run: taken by their headings, with what is a matter of
the host replaced, and refused whenever the page no longer says what the test takes for granted.

Nothing here runs anything. A recipe makes file systems and installs packages: a wording that has changed must end the test
before its first command, not turn it loose on the disks of the machine that tests.
"""

import os
import pathlib
import re
import shlex

import page_commands

BUILD, INSTALL, MAKE, START, UPDATE = "Build", "Install", "Make an OSD", "Start it", "Update"
DEVICE = "/dev/disk/by-id/NAME-OF-THE-DISK"
VERSION = "V=VERSION-OF-THE-BUILD"
NUMBER = "ID=NUMBER-OF-THE-OSD"
SIMULATED = {"apt-get install ": "apt-get install --simulate "}
# All that the first block may run, which is run in the repository and by the machine itself.
BUILD_PROGRAMS = ("cmake", "ninja", "dpkg-query")
INSTALL_DIR, ARCHIVE = "build/install", "build/swimstore.tar.gz"


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


def check_build_command(where, text):
  """`qa/enter.sh PROGRAM …`, with `DESTDIR=…` before it or without, and `tar -C build/install …`: one plain command."""
  lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
  lexer.whitespace_split = True
  words = list(lexer)
  plain = (not any(set(word) <= set("();<>|&") for word in words) and
           not any(art in text for art in ("`", "$(", "\n")))
  inside = words[1:] if words[0] == f"DESTDIR=$PWD/{INSTALL_DIR}" else words
  allowed = (len(inside) > 1 and inside[0] == "qa/enter.sh" and inside[1] in BUILD_PROGRAMS or
             words == ["tar", "-C", INSTALL_DIR, "-czf", ARCHIVE, "opt/swimstore"])
  if not plain or not allowed:
    raise Refused(f"{where}: '{text}' is not run on this machine: page_recipe.py says what may be")


def build_commands(name, text, folder):
  """The commands of the build, with what they make in `folder`, and nothing compiled: the test command has built
  everything. What ninja would do, a copy of its file in `folder` tells: with its own, it would say no more than that it
  looks for new files first."""
  (block,) = section_blocks(name, text, BUILD)
  commands = page_commands.commands(block)
  for command in commands:
    check_build_command(f"{name}:{command.line}", command.text)
  whole = "\n".join(command.text for command in commands)
  whole = replaced(whole, {f"DESTDIR=$PWD/{INSTALL_DIR} ": f"DESTDIR={folder}/install ",
                           f"-C {INSTALL_DIR} ": f"-C {folder}/install ", f" {ARCHIVE} ": f" {folder}/swimstore.tar.gz ",
                           "ninja -C build": f"ninja -C build -f {folder}/build.ninja -n"}, f"{name}, '{BUILD}'")
  return [page_commands.Command(command.line, words) for command, words in zip(commands, whole.splitlines(), strict=True)]


def check_devices(script, device):
  """No device but the one that the test made, and /dev/null."""
  strangers = sorted(set(re.findall(r"/dev\b[^\s;|&)\"'<>]*", script)) - {device, "/dev/null"})
  if strangers:
    raise Refused(f"a device that is not the test's own: {', '.join(strangers)}")


def section_commands(name, text, heading, device="", version="", osd=""):
  """The commands of a section of the OSD's host, ready to be run there."""
  tables = {INSTALL: {VERSION: f"V={version}"} | SIMULATED, MAKE: {DEVICE: device}, START: {},
            UPDATE: {VERSION: f"V={version}", NUMBER: f"ID={osd}"} | SIMULATED}
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


def check_root(cache_dir):
  """Alone in namespaces of its own, in the sysroot: never on the machine itself."""
  if os.getpid() != 1:
    raise Refused("not the first process of a namespace of its own: run qa/standalone/pages.py, which makes one")
  root = pathlib.Path(cache_dir, "trixie")
  if not root.is_dir() or not os.path.samefile("/", root):
    raise Refused(f"/ is not the sysroot {root}: run qa/standalone/pages.py, which goes there")
