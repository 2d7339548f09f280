# SPDX-License-Identifier: LGPL-2.1-or-later
"""What fio's logs of every operation tell (--write_lat_log without --log_avg_msec), of several jobs at once.

A line: when it ended, in ms; the ns that it took; 0 for a read, 1 for a write; and what is of no use here. With
--log_unix_epoch=1 the times of several jobs are of one clock.
"""

import array
import collections
import math
import statistics

KINDS = ("read", "write")


class FioLog:
  def __init__(self, paths):
    """Of one job each. A job without an operation is an error."""
    self._took_ns = {kind: array.array("Q") for kind in KINDS}
    self._ended_ms = {kind: array.array("Q") for kind in KINDS}
    self._all_run = range(0, 1 << 62)  # in ms: while every job had operations
    self._first_ms, self._last_ms = 1 << 62, 0  # any job
    for path in paths:
      self._add(path)
    self._took_ns = {kind: array.array("Q", sorted(found)) for kind, found in self._took_ns.items()}
    self._ended_ms = {kind: array.array("Q", sorted(found)) for kind, found in self._ended_ms.items()}

  def _add(self, path):
    first, last = 1 << 62, 0
    with open(path) as file:
      for line in file:
        ended, took, kind, _ = line.split(",", 3)
        kind, ended = KINDS[int(kind)], int(ended)
        self._ended_ms[kind].append(ended)
        self._took_ns[kind].append(int(took))
        first, last = min(first, ended), max(last, ended)
    if not last:
      raise ValueError(f"{path}: no operation in it")
    self._first_ms, self._last_ms = min(self._first_ms, first), max(self._last_ms, last)
    self._all_run = range(max(self._all_run.start, first), min(self._all_run.stop, last))

  def count(self, *kinds):
    return sum(len(self._took_ns[kind]) for kind in kinds or KINDS)

  def per_second(self, *kinds):
    """How many ended in each whole second in which all jobs ran."""
    begin, seconds = self._all_run.start, len(self._all_run) // 1000
    counts = collections.Counter((ended - begin) // 1000 for kind in kinds or KINDS for ended in self._ended_ms[kind])
    return [counts[second] for second in range(seconds)]

  def rate(self, *kinds):
    """Operations a second, of whole seconds."""
    return statistics.fmean(self.per_second(*kinds))

  def percentile_ms(self, kind, percent):
    """The smallest one that so many percent do not exceed."""
    found = self._took_ns[kind]
    return found[max(0, math.ceil(len(found) * percent / 100) - 1)] / 1e6

  def gaps_ms(self, kind):
    """How long none ended: from the first operation of any kind, from each to the next one, and to the last operation."""
    ended = [self._first_ms, *self._ended_ms[kind], self._last_ms]
    return [after - before for before, after in zip(ended, ended[1:])]
