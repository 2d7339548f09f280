#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of fio_log.py."""

import pathlib
import tempfile
import unittest

from fio_log import FioLog

READ, WRITE = 0, 1
EPOCH_MS = 1_700_000_000_000


class FioLogTest(unittest.TestCase):
  def log(self, *jobs):
    """Each job: [(ms at its end, ms that it took, kind)]."""
    with tempfile.TemporaryDirectory() as folder:
      paths = [pathlib.Path(folder, f"job{number}") for number in range(len(jobs))]
      for path, job in zip(paths, jobs):
        path.write_text("".join(f"{EPOCH_MS + ended}, {int(took * 1e6)}, {kind}, 4096, 0, 0x0000\n"
                                for ended, took, kind in job))
      return FioLog(paths)

  def test_percentiles_are_of_each_kind_and_of_all_jobs(self):
    log = self.log([(ms, ms, WRITE) for ms in range(1, 51)] + [(60, 500, READ)],
                   [(ms, ms, WRITE) for ms in range(51, 101)])
    self.assertEqual([log.percentile_ms("write", percent) for percent in (50, 99, 99.9, 100)], [50, 99, 100, 100])
    self.assertEqual(log.percentile_ms("read", 50), 500)
    self.assertEqual((log.count(), log.count("read"), log.count("write")), (101, 1, 100))

  def test_a_second_counts_when_all_of_it_all_jobs_ran(self):
    log = self.log([(ms, 1, READ) for ms in range(0, 3500, 10)], [(ms, 1, WRITE) for ms in range(500, 4000, 100)])
    self.assertEqual(log.per_second("read"), [100, 100])  # from 500 to 3490
    self.assertEqual(log.per_second("write"), [10, 10])
    self.assertEqual(log.per_second(), [110, 110])
    self.assertEqual(log.rate(), 110)

  def test_a_second_in_which_nothing_ended_is_one(self):
    log = self.log([(ms, 1, WRITE) for ms in (*range(0, 1000, 10), *range(2000, 3010, 10))])
    self.assertEqual(log.per_second(), [100, 0, 100])

  def test_a_gap_ends_with_a_write_of_whatever_job(self):
    log = self.log([(0, 1, WRITE), (300, 1, WRITE)], [(200, 1, WRITE), (250, 1, READ)])
    self.assertEqual(log.gaps_ms("write"), [0, 200, 100, 0])

  def test_a_gap_may_be_at_either_end(self):
    log = self.log([(100, 1, READ), (400, 1, WRITE), (450, 1, WRITE), (1000, 1, READ)])
    self.assertEqual(log.gaps_ms("write"), [300, 50, 550])

  def test_a_job_without_operations_is_refused(self):
    with self.assertRaisesRegex(ValueError, "job1: no operation"):
      self.log([(0, 1, READ)], [])


if __name__ == "__main__":
  unittest.main()
