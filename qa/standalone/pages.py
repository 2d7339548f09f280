#!/usr/bin/env python3
"""The commands that the pages tell an operator to type, taken out of the pages and run.

The recipe of doc/swimstore-operations.rst, from the build to an OSD that is up, with cephx, as user ceph, started by what the
unit and its drop-in say; then what the pages say about a running OSD, about the tools, and about the scripts of this
repository. A command that its program does not know fails, and so does one in a block that is not marked as commands.
"""

import json
import pathlib
import shutil
import subprocess
import sys

import lane as lane_module
import sysroot
from loop_disk import LoopDisk

sys.path.insert(0, str(sysroot.CHECKOUT / "qa" / "tools"))

import page_commands  # noqa: E402

DISK_BYTES = 2 << 30
RECIPE = "doc/swimstore-operations.rst"
# The test command has built everything.
REPLACED = {"ninja -C build": "ninja -C build -n"}


def build_and_install(lane):
  """The recipe's first block, in this repository; returns the archive."""
  text = (sysroot.CHECKOUT / RECIPE).read_text()
  block = next(block for block in page_commands.blocks(RECIPE, text) if block.kind == "sh")
  for command in page_commands.commands(block):
    words = command.text
    for old, new in REPLACED.items():
      words = words.replace(old, new)
    done = subprocess.run(["bash", "-c", words], cwd=sysroot.CHECKOUT, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    if not lane.check(done.returncode == 0, f"{RECIPE}:{command.line}: {command.text.splitlines()[0]}", done.stdout[-800:]):
      raise lane_module.UserError("nothing is installed")
  return sysroot.CHECKOUT / "build" / "swimstore.tar.gz"


def run_inside(lane, device, archive):
  """pages_inside.py, whose claims become ours. All that it starts, and mounts, ends with it."""
  namespaces = ["unshare", "--fork", "--pid", "--kill-child", "--net", "--mount", "--propagation", "unchanged", "--mount-proc"]
  inside = pathlib.Path(__file__).resolve().parent / "pages_inside.py"
  process = subprocess.Popen(sysroot.command([*namespaces, "python3", inside, device, archive]), text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
  try:
    for line in process.stdout:
      claim = json.loads(line)
      lane.check(claim["good"], claim["what"], claim["detail"])
    lane.check(process.wait() == 0, "pages_inside.py ends")
  finally:
    process.kill()
    process.wait()


def check_marks(lane):
  for page in (sysroot.CHECKOUT / "README.md", *sorted((sysroot.CHECKOUT / "doc").iterdir())):
    for where in page_commands.unmarked(page.name, page.read_text()):
      lane.check(False, f"{where}: stands in a block marked as commands")


def run(lane):
  check_marks(lane)
  folder = lane.directory()
  folder.mkdir(parents=True, exist_ok=True)
  image = folder / "disk.img"
  disk = LoopDisk(image, DISK_BYTES)
  disk.detach()
  installed = sysroot.CHECKOUT / "build" / "install"
  shutil.rmtree(installed, ignore_errors=True)
  archive = build_and_install(lane)
  try:
    with open(image, "wb") as out:
      out.truncate(DISK_BYTES)  # sparse: nothing is measured here
    run_inside(lane, disk.attach(), archive)
  finally:
    disk.detach()
    image.unlink(missing_ok=True)
    archive.unlink(missing_ok=True)
    shutil.rmtree(installed, ignore_errors=True)


if __name__ == "__main__":
  lane_module.main("pages", run, __doc__, stores=("swimstore",))
