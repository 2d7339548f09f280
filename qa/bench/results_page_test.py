#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of what results_page.py makes of a bench's results, and that the pages have a place for it."""

import json
import pathlib
import tempfile
import unittest
from unittest import mock

import results_page

RUN = {"date": "2026-01-02", "machine": "2 cores", "command": "qa/run-rados-bench.sh --rounds 5", "device": "loop",
       "fs": "ext4"}


def entry(store, mode, size, iops, ratio, spread=(None, None), is_result=True):
  return {"store": store, "mode": mode, "size_bytes": size, "iops": iops, "ratio_to_bluestore": ratio,
          "ratio_lowest": spread[0], "ratio_highest": spread[1], "is_result": is_result, "p99_ms": 3.0,
          "device_bytes_per_client_byte": 2.0, "device_flushes_per_op": None}


def document(*results):
  return {"results": list(results), "run": RUN}


class ResultsPage(unittest.TestCase):
  def test_ratios_have_a_row_for_each_size_and_a_column_for_each_load(self):
    table = results_page.ratios(document(
        entry("swimstore", "write", 4096, 300, 1.5, (1.25, 2)) | {"overwrite": entry("", "", 0, 80, 0.8)},
        entry("swimstore", "write", 65536, 100, 1), entry("bluestore", "write", 4096, 200, 1)))
    self.assertEqual(table, ["| size | write, first fill | write, steady overwrite |", "| --- | --- | --- |",
                             "| 4K | **1.50** (1.25–2.00) | 0.80 |", "| 64K | 1.00 |  |"])

  def test_medians_have_both_stores_in_a_row(self):
    table = results_page.medians(document(entry("swimstore", "seq", 4096, 300.4, 1.5, (1.25, 2)),
                                          entry("bluestore", "seq", 4096, 200, 1),
                                          entry("swimstore", "rand", 4096, 5, None)))
    self.assertEqual(table[2:], ["| sequential read | 4K | 300 | 200 | **1.50** (1.25–2.00) | 3.00 : 3.00 | "
                                 "2.00 : 2.00 | – : – |"])

  def test_what_is_no_result_is_marked(self):
    table = results_page.ratios(document(entry("swimstore", "seq", 4096, 1, 1.5, is_result=False)))
    self.assertIn("~ **1.50**", table[-1])

  def test_results_without_date_machine_or_command_are_refused(self):
    for name in ("date", "machine", "command"):
      with self.assertRaisesRegex(results_page.Refused, name):
        results_page.caption({key: value for key, value in RUN.items() if key != name})

  def test_a_page_keeps_what_stands_outside_the_marks(self):
    page = f"before\n{results_page.BEGIN}\nold\n{results_page.END}\nafter\n"
    self.assertEqual(results_page.replaced("a", page, "new"),
                     f"before\n{results_page.BEGIN}\nnew\n{results_page.END}\nafter\n")
    for wrong in ("no marks", page + page):
      with self.assertRaises(results_page.Refused):
        results_page.replaced("a", wrong, "new")

  def test_both_pages_are_written_or_none(self):
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(results_page, "CHECKOUT", pathlib.Path(folder)):
      root = pathlib.Path(folder)
      (root / "doc").mkdir()
      empty = f"{results_page.BEGIN}\n{results_page.END}\n"
      for name in ("README.md", "doc/benchmarks.md"):
        (root / name).write_text(empty)
      measured = document(entry("swimstore", "seq", 4096, 300, 1.5), entry("bluestore", "seq", 4096, 200, 1))
      (root / "r.json").write_text(json.dumps(measured))
      with self.assertRaisesRegex(SystemExit, "--plot doc/rados_bench.png"):
        results_page.main([str(root / "r.json")])
      self.assertEqual((root / "README.md").read_text(), empty)
      (root / results_page.PICTURE).write_bytes(b"")
      results_page.main([str(root / "r.json")])
      readme, page = ((root / name).read_text() for name in ("README.md", "doc/benchmarks.md"))
      self.assertIn(f"]({results_page.PICTURE})", readme)
      self.assertIn("| 4K | **1.50** |", readme)
      self.assertIn("| sequential read | 4K | 300 | 200 |", page)
      for text in (readme, page):
        self.assertIn(f"2026-01-02, 2 cores,\nloop, ext4:\n`{RUN['command']}`\n", text)

  def test_the_pages_have_a_place_for_it(self):
    for name in ("README.md", "doc/benchmarks.md"):
      results_page.replaced(name, (results_page.CHECKOUT / name).read_text(), "new")


if __name__ == "__main__":
  unittest.main()
