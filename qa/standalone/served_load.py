# SPDX-License-Identifier: LGPL-2.1-or-later
"""`acked_load.py serve`, told what to do, and its answers."""

import queue
import subprocess
import threading
import time

SERVED_S = 120  # an order


class LoadFailed(Exception):
  """Without it nothing can be judged any more."""


class ServedLoad:
  """acked_load.py serve."""

  def __init__(self, command):
    self._process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT)
    self._lines = queue.Queue()
    self._owed = 0  # answers
    self._answered = threading.Event()  # the last order was, though nobody asked for it yet
    threading.Thread(target=self._read, daemon=True).start()

  def _read(self):
    for line in self._process.stdout:
      self._lines.put(line.rstrip("\n"))
      if line == "done\n":
        self._answered.set()
    self._lines.put(None)
    self._answered.set()

  def is_idle(self):
    return self._answered.is_set()

  def tell(self, order):
    self._owed += 1
    self._answered.clear()
    self._process.stdin.write(order + "\n")
    self._process.stdin.flush()

  def answer(self):
    """The lines to the last order."""
    lines = []
    deadline = time.monotonic() + SERVED_S
    while True:
      try:
        line = self._lines.get(timeout=max(0, deadline - time.monotonic()))
      except queue.Empty:
        raise LoadFailed(f"the load does not answer in {SERVED_S} s; so far: {lines[-3:]}") from None
      if line is None:
        raise LoadFailed(f"the load ended: {lines[-5:]}")
      if line == "done":
        self._owed -= 1
        return lines
      lines.append(line)

  def settle(self):
    """Nothing is under way, and it waits for an order."""
    while self._owed:
      self.answer()
    self.order("stop")

  def order(self, order):
    self.tell(order)
    return self.answer()

  def end(self):
    """What it knows is saved."""
    self._process.stdin.close()
    self._process.wait(timeout=60)

  def kill(self):
    if self._process.poll() is None:
      self._process.kill()
      self._process.wait()
