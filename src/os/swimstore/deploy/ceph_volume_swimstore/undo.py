# SPDX-License-Identifier: LGPL-2.1-or-later
"""Takes back what a command has done when it does not come to its end."""

import contextlib
import logging
import os
import pathlib
import signal
import sys
import time

from ceph_volume import terminal

logger = logging.getLogger(__name__)


CHILD_SECONDS = 15


class Unheard:
  """What is shown may reach nobody: the terminal is gone, or who read the pipe."""

  def __init__(self, stream):
    self._stream = stream

  def write(self, text):
    with contextlib.suppress(OSError):
      self._stream.write(text)

  def flush(self):
    with contextlib.suppress(OSError):
      self._stream.flush()


def end_children():
  """A program that was called may still be at work: what it does behind its undoing would stay."""
  listed = pathlib.Path("/proc/self/task").glob("*/children")
  for child in {int(word) for children in listed for word in children.read_text().split()}:
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
      os.kill(child, signal.SIGTERM)
      deadline = time.monotonic() + CHILD_SECONDS
      while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
          os.kill(child, signal.SIGKILL)
        time.sleep(0.1)


class Undo:
  """`with Undo() as undo: undo.add("the mount", unmount)`: after an error all that was added is called, the last first, but for
  what a repair needs.

  What cannot be taken back is named, with what the operator is to do, and the rest is taken back all the same. Ctrl-C, SIGTERM
  and SIGHUP are errors, too.
  """

  SIGNALS = (signal.SIGTERM, signal.SIGHUP)

  def __init__(self):
    self._steps = []
    self._before = {}

  def add(self, what, how, remedy="", stays_for_repair=False):
    """Before the step is taken: `how` returns whether there was anything to take back. `stays_for_repair`: it is not called where
    the error names a command, to be typed by hand, that needs what the step has made (errors.Failed.by_hand)."""
    self._steps.append((what, how, remedy, stays_for_repair))

  def drop(self):
    """The step that was added last was not ours to take."""
    self._steps.pop()

  def __enter__(self):
    for number in self.SIGNALS:
      self._before[number] = signal.signal(number, self._interrupt)
    return self

  def __exit__(self, kind, error, trace):
    for number in self.SIGNALS:
      signal.signal(number, signal.SIG_IGN if kind else self._before[number])
    if getattr(error, "by_hand", False):
      self._steps = [step for step in self._steps if not step[-1]]
    if kind and self._steps:
      before = signal.signal(signal.SIGINT, signal.SIG_IGN)
      with contextlib.redirect_stderr(Unheard(sys.stderr)):  # to which terminal and the calls of programs write
        terminal.error("it does not come to its end; what was done is taken back")
        end_children()
        while self._steps:
          what, how, remedy, _ = self._steps.pop()
          self._take_back(what, how, remedy)
      signal.signal(signal.SIGINT, before)
    for number in self.SIGNALS:
      signal.signal(number, self._before[number])

  @staticmethod
  def _take_back(what, how, remedy):
    try:
      if how():
        terminal.info(f"taken back: {what}")
    except Exception as error:
      text = f"not taken back: {what}: {error}" + (f"; do it by hand: {remedy}" if remedy else "")
      logger.error(text)  # the terminal may be gone
      terminal.error(text)

  @staticmethod
  def _interrupt(number, frame):
    raise SystemExit(128 + number)
