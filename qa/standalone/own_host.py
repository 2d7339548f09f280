# SPDX-License-Identifier: LGPL-2.1-or-later
"""A Debian host with Ceph's packages and a monitor, for what an operator does with the package: made, and forgotten again.

It is the sysroot, with namespaces of its own for processes, mounts and the network, and nothing that is changed in it stays
(qa/enter.sh --scratch). A program of this folder, `…_inside.py`, is its first process (own_host_inside.py has what they share).
"""

import contextlib
import fcntl
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "bench"), str(HERE.parent / "tools")]

import page_recipe  # noqa: E402
import sysroot  # noqa: E402
from loop_disk import LoopDisk  # noqa: E402

DISK_BYTES = 2 << 30
RECIPE = "doc/swimstore-operations.rst"
NAMESPACES = ("unshare", "--fork", "--pid", "--kill-child", "--net", "--mount", "--propagation", "unchanged", "--mount-proc")


def build_package(scenario):
  """By the recipe's first section, in this repository; returns the path of a copy: the next build removes the package."""
  try:
    page_recipe.check_build(RECIPE, (sysroot.CHECKOUT / RECIPE).read_text())
  except page_recipe.Refused as error:
    raise sysroot.UserError(str(error)) from error
  folder = scenario.directory()
  folder.mkdir(parents=True, exist_ok=True)
  with open(sysroot.cache_dir() / "package.lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)  # another scenario may want one, too
    done = subprocess.run([page_recipe.BUILD_COMMAND], cwd=sysroot.CHECKOUT, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if not scenario.check(done.returncode == 0, f"{RECIPE}: {page_recipe.BUILD_COMMAND}", done.stderr[-1500:]):
      raise sysroot.UserError("there is no package to install")
    return shutil.copy(sysroot.CHECKOUT / done.stdout.split()[-1], folder)


def run(scenario, inside, disks=(DISK_BYTES,), arguments=()):
  """The program `inside PACKAGE ARGUMENT... DEVICE...`, whose claims become ours. All that it starts, and mounts, ends with it.

  `disks`: how large each device is, in bytes.
  """
  package = build_package(scenario)
  folder = scenario.directory()
  with contextlib.ExitStack() as made:
    made.callback(pathlib.Path(package).unlink)
    devices = [made.enter_context(new_disk(folder / f"disk{number}.img", size)) for number, size in enumerate(disks)]
    command = ["--scratch", *NAMESPACES, "python3", HERE / inside, package, *arguments, *devices]
    process = subprocess.Popen(sysroot.command(command), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
      for line in process.stdout:
        claim = json.loads(line)
        scenario.check(claim["good"], claim["what"], claim["detail"])
      scenario.check(process.wait() == 0, f"{inside} ends")
    finally:
      process.kill()
      process.wait()


@contextlib.contextmanager
def new_disk(image, size_bytes):
  """A loop device over a file that is sparse, for nothing is measured here."""
  disk = LoopDisk(image, size_bytes)
  disk.detach()  # what a run left that was killed
  try:
    with open(image, "wb") as out:
      out.truncate(size_bytes)
    yield disk.attach()
  finally:
    disk.detach()
    image.unlink(missing_ok=True)
