# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the commands' lines of arguments have in common."""

import argparse
import textwrap

from . import names


class Command:
  """What ceph-volume makes with the words behind a command's name; then it calls main()."""

  def __init__(self, argv):
    self.argv = argv


def parser_of(command, description, **keywords):
  return argparse.ArgumentParser(prog=f"ceph-volume swimstore {command}", description=textwrap.dedent(description),
                                 formatter_class=argparse.RawDescriptionHelpFormatter, **keywords)


def add_no_systemd(parser):
  parser.add_argument("--no-systemd", action="store_true", help="leave systemd alone: nothing is enabled, nor started")


def add_osd(parser):
  parser.add_argument("osd_id", nargs="?", type=int, metavar="ID", help="its number")
  parser.add_argument("osd_fsid", nargs="?", type=names.valid_fsid, metavar="FSID",
                      help="needed where several devices have that number")


def parse_osd(parser, argv):
  """Of a command that is for one OSD. REQUIRES: add_osd()."""
  args = parser.parse_args(argv)
  if args.osd_id is None:
    parser.error("give an ID")
  return args
