#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Refuse a program that defines again what libceph-common defines.

The library's own calls stay with its own copy, the program's go to the program's:
every singleton exists twice, and a cluster looks healthy until the first call that
crosses over.
"""

import argparse
import re
import subprocess
import sys

# The one override that is meant: see option_install.cc.
ALLOWED = {"ceph_options"}

# Defined, global and strong. Weak symbols (inline functions, templates, tables of
# virtual functions) are made in every program that uses the header.
STRONG_KINDS = set("TBDRG")


def strong_symbols(nm_output):
  """Names of the strong global definitions in the output of nm."""
  names = set()
  for line in nm_output.splitlines():
    match = re.match(r"^[0-9a-f]+ (\w) ([^@\s]+)", line)
    if match and match.group(1) in STRONG_KINDS:
      names.add(match.group(2))
  return names


def defined_in(path, dynamic):
  return strong_symbols(run("nm", "--defined-only", "-D" if dynamic else "-g", path))


def copy_relocations(readelf_output):
  """Names of the library's data that lives in the program, by the linker's doing.

  The library uses that one copy too: it is no second one.
  """
  return set(re.findall(r"_COPY\s+[0-9a-f]+\s+([^@\s]+)", readelf_output))


def run(*command):
  done = subprocess.run(command, capture_output=True, text=True)
  if done.returncode != 0:
    sys.exit(f"check_symbols.py: error: {' '.join(command)}: {done.stderr.strip()}")
  return done.stdout


# Made by the linker in every program and library.
LINKER_MADE = {"_init", "_fini", "_edata", "_end", "__bss_start", "_IO_stdin_used",
               "__data_start", "_start", "main", "__dso_handle"}


def clashes(program_symbols, library_symbols):
  return (program_symbols & library_symbols) - ALLOWED - LINKER_MADE


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("program")
  parser.add_argument("library")
  args = parser.parse_args()
  program = defined_in(args.program, False)
  program -= copy_relocations(run("readelf", "-rW", args.program))
  found = clashes(program, defined_in(args.library, True))
  if found:
    shown = subprocess.run(["c++filt"], input="\n".join(sorted(found)[:20]),
                           capture_output=True, text=True).stdout
    sys.exit(f"check_symbols.py: error: {args.program} defines {len(found)} symbols "
             f"that {args.library} defines too; leave out the source files that "
             f"define them:\n{shown}")


if __name__ == "__main__":
  main()
