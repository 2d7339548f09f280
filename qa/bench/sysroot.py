# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run commands inside the sysroot, where the packaged Ceph lives."""

import dataclasses
import os
import pathlib
import subprocess
import sys
import time

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
ENTER = CHECKOUT / "qa" / "enter.sh"
CHECK_HOST = CHECKOUT / "qa" / "setup" / "check_host.sh"


@dataclasses.dataclass(frozen=True)
class Release:
  """A release of Ceph that SwimStore is built for."""
  root: str  # of qa/enter.sh
  set_up: str  # of qa/setup/sysroot.sh
  preset: str  # of CMake
  build: str  # where that one builds
  source: str  # where Ceph's is, below SWIM_CACHE


RELEASES = {"reef": Release("trixie", "build", "release", "build", "ceph/source"),
            "tentacle": Release("forky", "tentacle", "tentacle", "build-tentacle", "ceph-tentacle/source")}
if os.environ.get("SWIM_RELEASE", "reef") not in RELEASES:
  sys.exit(f"SWIM_RELEASE is '{os.environ['SWIM_RELEASE']}': use {' or '.join(RELEASES)}")


class UserError(Exception):
  """A mistake the caller can fix; its text names the thing and the remedy."""


def say(text):
  print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def release_name():
  """Of the release that is asked for."""
  return os.environ.get("SWIM_RELEASE", "reef")


def release():
  return RELEASES[release_name()]


def built(program, of=""):
  """Path of a program of ours, of the release that is asked for or of another."""
  return CHECKOUT / RELEASES[of or release_name()].build / "bin" / program


def cache_dir():
  return pathlib.Path(os.environ.get("SWIM_CACHE") or "/var/cache/swimstore").resolve()


def command(args, root=None):
  """The argument vector that runs `args` inside; `root` names another sysroot than the default."""
  prefix = [str(ENTER)]
  if root:
    prefix += ["--root", root]
  return prefix + [str(arg) for arg in args]


def prepare(root=None):
  """Make the sysroot if it is not there; its progress goes to the terminal."""
  if subprocess.run(command(["true"], root), stdin=subprocess.DEVNULL).returncode != 0:
    raise UserError("the sysroot could not be made; fix what is said above and run again")
  os.environ["SWIM_NO_SETUP"] = "1"


def check_host(*needs):
  """Before anything is made: what this machine lacks, and what helps. `needs` are qa/setup/check_host.sh's options."""
  done = subprocess.run([str(CHECK_HOST), *(str(need) for need in needs)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                        text=True)
  if done.returncode != 0:
    raise UserError(done.stderr.strip())


def run(args, root=None, check=True, timeout=120, stdin=None):
  """Run to completion; returns the CompletedProcess with text output.

  Raises CommandFailed (when `check`) with the command and the end of what it said.
  """
  try:
    done = subprocess.run(command(args, root), text=True, timeout=timeout, input=stdin,
                          stdin=subprocess.DEVNULL if stdin is None else None,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
  except subprocess.TimeoutExpired as expired:
    raise CommandFailed(args, f"no end after {timeout} s") from expired
  if check and done.returncode != 0:
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-8:]
    raise CommandFailed(args, f"exit {done.returncode}: " + "\n  ".join(said))
  return done


class CommandFailed(Exception):
  def __init__(self, args, why):
    super().__init__(f"{' '.join(str(arg) for arg in args)}: {why}")


def is_visible_inside(path):
  """Only the checkout and SWIM_CACHE appear inside at the path they have outside."""
  path = pathlib.Path(path).resolve()
  return any(path.is_relative_to(base) for base in (CHECKOUT, cache_dir()))
