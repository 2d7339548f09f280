# SPDX-License-Identifier: LGPL-2.1-or-later
"""SIGTERM and SIGHUP end a command as Ctrl-C does, and nothing that it started outlives it.

After arm() the first of these signals raises KeyboardInterrupt in the main thread; later ones change nothing, so that
tidying up is not cut short. What must not be cut short before that stands in `with whole():`; the exception then comes
at its end.

Every process that the command starts inherits a mark in its environment, wherever it goes: into the sysroot, into a
session of its own, into the background as a daemon. end_processes() ends all that carry it.
"""

import contextlib
import os
import pathlib
import signal
import sys
import time
import uuid

MARK = "SWIM_RUN"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE_SECONDS = 20

_depth = 0
_came = False
_raised = False


def arm():
  """To be called once, first. A signal that the caller ignores (nohup) stays ignored."""
  os.environ[MARK] = f"{os.getpid()}.{uuid.uuid4().hex}"
  for number in SIGNALS:
    if signal.getsignal(number) != signal.SIG_IGN:
      signal.signal(number, _on_signal)


def forget_ignored():
  """For a child that shall meet these signals, though our caller may ignore some (nohup): subprocess's preexec_fn."""
  for number in SIGNALS:
    signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def whole():
  """A block that is not interrupted in the middle."""
  global _depth
  _depth += 1
  try:
    yield
  finally:
    _depth -= 1
    _raise_if_due()


def processes():
  """The pids of all that carry the mark, but for this process. One that has ended and waits to be asked has none."""
  if MARK not in os.environ:
    return []
  mark = f"{MARK}={os.environ[MARK]}".encode()
  found = []
  for entry in pathlib.Path("/proc").iterdir():
    if not entry.name.isdigit() or int(entry.name) == os.getpid():
      continue
    try:
      if mark in _environment(entry):
        found.append(int(entry.name))
    except OSError:  # it has ended meanwhile
      continue
  return found


def _environment(entry):
  """Of the process at /proc/PID. One that is just becoming another program has none for a moment."""
  for _ in range(50):
    environment = (entry / "environ").read_bytes()
    if environment:
      break
    os.readlink(entry / "exe")  # OSError: it has ended, or is the kernel's
    time.sleep(0.002)
  return environment.split(b"\0")


def end_processes(patience_seconds=PATIENCE_SECONDS):
  """SIGTERM to all of them, also to those that are stopped; SIGKILL to what is left after that time."""
  begun = time.monotonic()
  told = {}  # when each began: its number may be another's soon
  while True:
    left = set(processes()) | {pid for pid, start in told.items() if start and started(pid) == start}
    if not left:
      return
    late = time.monotonic() - begun > patience_seconds
    if time.monotonic() - begun > patience_seconds + 10:
      return  # one that waits for a disk; those who ask for what it holds will say so
    for pid in left:
      if late:
        _send(pid, signal.SIGKILL)
      elif pid not in told:
        _send(pid, signal.SIGTERM)
        _send(pid, signal.SIGCONT)
        told[pid] = started(pid)
    time.sleep(0.05)


def started(pid):
  """When it did, as long as it runs. One that is ending has no environment any more, but still what it holds."""
  try:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
  except OSError:
    return None
  return None if fields[0] in "ZX" else fields[19]


def _send(pid, number):
  try:
    os.kill(pid, number)
  except ProcessLookupError:
    pass


def _on_signal(number, _frame):
  global _came
  if _came:
    os.write(sys.stderr.fileno(), f"{signal.Signals(number).name}: ending already\n".encode())
  _came = True
  _raise_if_due()


def _raise_if_due():
  global _raised
  if _came and not _raised and _depth == 0:
    _raised = True
    raise KeyboardInterrupt
