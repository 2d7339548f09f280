#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The commands that the pages tell an operator to type, taken out of the pages. Of them are run

  the recipe of doc/swimstore-operations.rst, from the build (whose programs should be there) to an OSD that is up, with cephx,
  as user ceph, started by what the unit and its drop-in say, its update, and the removal of the package
  `ceph daemon`, `ceph osd metadata`, `ceph osd df`, `ceph osd pool set` and `ceph config set`, wherever a page names them
  the tables of commands of the two tools, with each option, on that OSD's store or a database, and the blocks marked `console`

and asked for by --help, without being run: other commands of ceph and rados, and scripts and tests with the options that a page
gives them. A block that is not marked as commands holds none.
"""

import own_host
import page_commands
import scenario as scenario_module
import sysroot


def check_marks(scenario):
  for page in page_commands.pages(sysroot.CHECKOUT):
    for where in page_commands.unmarked(page.name, page.read_text()):
      scenario.check(False, f"{where}: stands in a block marked as commands")


def run(scenario):
  check_marks(scenario)
  own_host.run(scenario, "pages_inside.py")


if __name__ == "__main__":
  scenario_module.main("pages", run, __doc__, stores=("swimstore",))
