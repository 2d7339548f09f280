# SPDX-License-Identifier: LGPL-2.1-or-later
"""`list`: the OSDs of SwimStore that this host has devices of."""

import json

from ceph_volume import decorators

from . import metadata, osds
from .arguments import Command, parser_of

COLUMNS = {"osd_id": "ID", "osd_fsid": "FSID", "device": "DEVICE", "fs": "FS", "encrypted": "ENCRYPTED", "mounted": "MOUNTED",
           "up": "UP", "metadata": "METADATA"}


def in_words(value):
  if isinstance(value, bool):
    return "yes" if value else "no"
  return str(value) if value != "" else "-"


def as_table(reports):
  """Lines, the first one the heads."""
  rows = [list(COLUMNS.values()), *([in_words(report[key]) for key in COLUMNS] for report in reports)]
  widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
  return ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in rows]


class List(Command):
  help = "Show the OSDs of SwimStore that are on devices of this host"

  @decorators.needs_root
  def main(self):
    parser = parser_of("list", f"{self.help}.", epilog=(
        "'mounted' is where, 'up' whether a process has the store open. Those made by hand\n"
        "are shown while they are mounted. 'metadata' is the directory of log and tree where they\n"
        "lie on another file system; of an encrypted OSD it is known while that is mounted."))
    parser.add_argument("--format", default="plain", choices=("plain", "json"), help="(default: %(default)s)")
    args = parser.parse_args(self.argv)
    reports = [osd.report() | {"metadata": metadata.told_by(osd) or ""} for osd in osds.find_all()]
    if args.format == "json":
      print(json.dumps(reports, indent=2))
    else:
      print("\n".join(as_table(reports) if reports else ["no device of this host holds an OSD of SwimStore"]))
