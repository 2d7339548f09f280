#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The commands that the pages tell an operator to type, taken out of the pages. Of them are run

  the recipe of doc/swimstore-operations.rst, from the build (whose programs must be there) to an OSD that is up, with cephx, as
  user ceph, started by what the unit and its drop-in say, and its update; apt-get with --simulate
  `ceph daemon`, `ceph osd metadata`, `ceph osd df`, `ceph osd pool set` and `ceph config set`, wherever a page names them
  the tables of commands of the two tools, with each option, on that OSD's store or a database, and the blocks marked `console`

and asked for by --help, without being run: other commands of ceph and rados, and scripts and tests with the options that a page
gives them. A block that is not marked as commands holds none.
"""

import json
import pathlib
import shutil
import subprocess
import sys

import scenario as scenario_module
import sysroot
from loop_disk import LoopDisk

sys.path.insert(0, str(sysroot.CHECKOUT / "qa" / "tools"))

import page_commands  # noqa: E402
import page_recipe  # noqa: E402

DISK_BYTES = 2 << 30
RECIPE = "doc/swimstore-operations.rst"


def build_and_install(scenario, folder):
  """The recipe's first section, in this repository, with what it makes in `folder`; returns the archive and the version."""
  commands = page_recipe.build_commands(RECIPE, (sysroot.CHECKOUT / RECIPE).read_text(), folder)
  for command in commands:
    if " ninja " in command.text:
      shutil.copy(sysroot.CHECKOUT / "build" / "build.ninja", folder / "build.ninja")
    done = subprocess.run(["bash", "-c", command.text], cwd=sysroot.CHECKOUT, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    if " ninja " in command.text:
      scenario.check("ninja: no work to do." in done.stdout, "the programs in build/ are built from this source",
                     f"they are older: run ninja first; it says {done.stdout[-300:]}")
    elif not scenario.check(done.returncode == 0, f"{RECIPE}:{command.line}: {command.text.splitlines()[0]}", done.stdout[-800:]):
      raise scenario_module.UserError("nothing is installed")
  return folder / "swimstore.tar.gz", done.stdout.split()[-1]


def run_inside(scenario, device, archive, version):
  """pages_inside.py, whose claims become ours. All that it starts, and mounts, ends with it."""
  namespaces = ["unshare", "--fork", "--pid", "--kill-child", "--net", "--mount", "--propagation", "unchanged", "--mount-proc"]
  inside = pathlib.Path(__file__).resolve().parent / "pages_inside.py"
  process = subprocess.Popen(sysroot.command([*namespaces, "python3", inside, device, archive, version]), text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
  try:
    for line in process.stdout:
      claim = json.loads(line)
      scenario.check(claim["good"], claim["what"], claim["detail"])
    scenario.check(process.wait() == 0, "pages_inside.py ends")
  finally:
    process.kill()
    process.wait()


def check_marks(scenario):
  for page in page_commands.pages(sysroot.CHECKOUT):
    for where in page_commands.unmarked(page.name, page.read_text()):
      scenario.check(False, f"{where}: stands in a block marked as commands")


def run(scenario):
  check_marks(scenario)
  folder = scenario.directory()
  folder.mkdir(parents=True, exist_ok=True)
  image = folder / "disk.img"
  disk = LoopDisk(image, DISK_BYTES)
  disk.detach()
  made = (folder / "install", folder / "swimstore.tar.gz", folder / "build.ninja")
  remove(*made)  # what a run left that was killed
  try:
    archive, version = build_and_install(scenario, folder)
    with open(image, "wb") as out:
      out.truncate(DISK_BYTES)  # sparse: nothing is measured here
    run_inside(scenario, disk.attach(), archive, version)
  except page_recipe.Refused as error:
    raise scenario_module.UserError(str(error)) from error
  finally:
    disk.detach()
    remove(image, *made)


def remove(*paths):
  for path in paths:
    if path.is_dir():
      shutil.rmtree(path)
    else:
      path.unlink(missing_ok=True)


if __name__ == "__main__":
  scenario_module.main("pages", run, __doc__, stores=("swimstore",))
