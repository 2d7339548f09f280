#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of the arithmetic between rados_load's lines and what is reported, and of how sizes are read."""

import unittest

import bench_report
from sysroot import UserError
from units import parse_size, show_size


def phase(name, ops, size=4096, seconds=2.0, per_second=(5, 5), written=0, read=0, flushes=0, on_device=True,
          processor_us=0, switches=0):
  return {"phase": name, "ops": ops, "size_bytes": size, "seconds": seconds, "p99_ms": 3.0,
          "ops_per_second": list(per_second), "device_bytes_written": written, "device_bytes_read": read,
          "device_flushes": flushes, "on_device": on_device, "processor_us": processor_us, "switches": switches,
          "page_faults": 0}


class Figures(unittest.TestCase):
  def test_rates_come_from_operations_and_time(self):
    found = bench_report.figures(phase("write", 1000))
    self.assertEqual(found["iops"], 500)
    self.assertAlmostEqual(found["mb_per_s"], 500 * 4096 / 1e6)

  def test_writes_count_what_was_written_and_reads_what_was_read(self):
    self.assertEqual(bench_report.figures(phase("write", 10, written=81920, read=7))["device_bytes_per_client_byte"], 2)
    self.assertEqual(bench_report.figures(phase("seq", 10, written=7, read=40960))["device_bytes_per_client_byte"], 1)

  def test_a_store_in_memory_has_no_device_figures(self):
    found = bench_report.figures(phase("write", 10, on_device=False))
    self.assertIsNone(found["device_bytes_per_client_byte"])
    self.assertIsNone(found["device_flushes_per_op"])

  def test_what_the_osds_took_is_told_for_each_operation(self):
    found = bench_report.figures(phase("write", 10, processor_us=1500, switches=42))
    self.assertEqual(found["osd_us_per_op"], 150)
    self.assertEqual(found["osd_switches_per_op"], 4.2)

  def test_variation_is_relative_and_needs_two_seconds(self):
    self.assertAlmostEqual(bench_report.figures(phase("write", 10, per_second=(50, 150)))["cv"], 0.5)
    self.assertIsNone(bench_report.figures(phase("write", 10, per_second=(50,)))["cv"])


class Summary(unittest.TestCase):
  def setUp(self):
    self.medians = bench_report.summarize({
        ("kstore", "write", 4096): [phase("write", ops) for ops in (100, 900, 200)],
        ("bluestore", "write", 4096): [phase("write", ops) for ops in (400, 400, 1)],
        ("bluestore", "overwrite", 4096): [phase("overwrite", 50)],
        ("kstore", "seq", 4096): [phase("seq", 10)],
    })

  def test_the_median_round_counts(self):
    self.assertEqual(self.medians["kstore", "write", 4096]["iops"], 100)

  def test_the_ratio_is_to_bluestore_of_the_same_run(self):
    self.assertEqual(self.medians["kstore", "write", 4096]["ratio_to_bluestore"], 0.5)
    self.assertEqual(self.medians["bluestore", "write", 4096]["ratio_to_bluestore"], 1)

  def test_the_spread_is_that_of_the_rounds_each_beside_bluestores_own(self):
    entry = bench_report.summarize({
        ("kstore", "write", 4096): [phase("write", ops) for ops in (100, 900, 200)],
        ("bluestore", "write", 4096): [phase("write", ops) for ops in (400, 300, 400)]})["kstore", "write", 4096]
    self.assertEqual((entry["ratio_lowest"], entry["ratio_highest"]), (0.25, 3))

  def test_cold_reads_stand_in_the_table_for_the_stores_that_have_them(self):
    medians = bench_report.summarize({(store, "cold", 4096): [phase("cold", 300, read=300 * 4096)]
                                      for store in ("swimstore", "bluestore")})
    shown = bench_report.table(medians, ["swimstore", "bluestore", "kstore"], [4096])
    self.assertIn("cold random read", shown)
    self.assertIn("swimstore", shown)
    self.assertNotIn("kstore", shown)
    self.assertEqual(medians["swimstore", "cold", 4096]["device_bytes_per_client_byte"], 1)

  def test_no_spread_of_one_round_or_of_rounds_that_bluestore_did_not_have(self):
    for theirs in ([400], [400, 400]):
      entry = bench_report.summarize({
          ("kstore", "write", 4096): [phase("write", 100)] * (3 - len(theirs)),
          ("bluestore", "write", 4096): [phase("write", ops) for ops in theirs]})["kstore", "write", 4096]
      self.assertIsNone(entry["ratio_lowest"])
      self.assertIsNone(entry["ratio_highest"])

  def test_less_than_five_seconds_in_all_are_no_result(self):
    def entries(seconds):
      return bench_report.summarize({(store, "write", 4096): [phase("write", 100, seconds=one) for one in seconds]
                                     for store in ("kstore", "bluestore")})
    for seconds, result in (((4.9,), False), ((2.5, 2.5), True), ((5,), True), ((1, 1, 1), False)):
      medians = entries(seconds)
      entry = medians["kstore", "write", 4096]
      self.assertEqual((entry["seconds"], entry["is_result"]), (sum(seconds), result))
      text = bench_report.table(medians, ["bluestore", "kstore"], [4096])
      self.assertEqual("no result" in text, not result)
      self.assertEqual(text.count("~"), 0 if result else 3)  # two lines, and what the mark means

  def test_a_ratio_to_what_is_no_result_is_none_either(self):
    entry = bench_report.summarize({("kstore", "write", 4096): [phase("write", 100, seconds=9)],
                                    ("bluestore", "write", 4096): [phase("write", 100)]})["kstore", "write", 4096]
    self.assertFalse(entry["is_result"])

  def test_the_table_shows_the_spread_beside_the_ratio(self):
    text = bench_report.table(bench_report.summarize({
        ("kstore", "write", 4096): [phase("write", ops) for ops in (100, 900, 200)],
        ("bluestore", "write", 4096): [phase("write", 400)] * 3}), ["kstore"], [4096])
    self.assertRegex(text, r"kstore .* 0\.50 +0\.25-2\.25 ")

  def test_without_bluestore_the_first_store_is_the_measure(self):
    stores = ["swimstore", "swimstore:swimstore_cubes=4"]
    base = bench_report.baseline(stores)
    medians = bench_report.summarize({(store, "write", 4096): [phase("write", ops)] * 5
                                      for store, ops in zip(stores, (100, 150))}, base)
    self.assertEqual(medians[stores[1], "write", 4096]["ratio"], 1.5)
    self.assertIsNone(medians[stores[1], "write", 4096]["ratio_to_bluestore"])
    self.assertRegex(bench_report.table(medians, stores, [4096], base), r"x first(.*\n)*.*cubes=4 +75 .* 1\.50 ")
    self.assertEqual(bench_report.baseline(["kstore", "bluestore"]), "bluestore")

  def test_no_ratio_where_bluestore_did_not_run(self):
    self.assertIsNone(self.medians["kstore", "seq", 4096]["ratio_to_bluestore"])

  def test_json_has_the_documented_fields_and_modes(self):
    entries = bench_report.results(self.medians)
    self.assertEqual({entry["mode"] for entry in entries}, {"write", "seq"})
    for entry in entries:
      self.assertLessEqual({"store", "mode", "size_bytes", "iops", "mb_per_s", "p99_ms", "cv", "ratio_to_bluestore",
                            "device_bytes_per_client_byte", "device_flushes_per_op", "ratio_lowest", "ratio_highest", "seconds",
                            "is_result"}, entry.keys())

  def test_overwrite_stands_inside_write(self):
    entry = next(entry for entry in bench_report.results(self.medians) if entry["store"] == "bluestore")
    self.assertEqual(entry["overwrite"]["iops"], 25)

  def test_table_has_a_line_per_store_size_and_phase(self):
    text = bench_report.table(self.medians, ["bluestore", "kstore"], [4096])
    self.assertEqual(sum("4K" in line for line in text.splitlines()), 4)


class Told(unittest.TestCase):
  def test_the_command_is_told_without_the_places_of_the_results(self):
    for argv, told in ((["--rounds", "5", "--json", "a.json", "--seconds", "10"], "run --rounds 5 --seconds 10"),
                       (["--plot=a b.png", "--quick"], "run --quick"), ([], "run")):
      self.assertEqual(bench_report.told_command("run", argv), told)

  def test_the_machine_has_cores_memory_and_a_kernel(self):
    self.assertRegex(bench_report.machine(), r"^\d+ cores \(.+\), \d+ GiB, Linux \d+\.[\d.]+$")


class Sizes(unittest.TestCase):
  def test_suffixes_are_powers_of_1024(self):
    self.assertEqual([parse_size(text, "x") for text in ("512", "4K", "4k", "1MiB", "2G")],
                     [512, 4096, 4096, 1 << 20, 2 << 30])

  def test_what_is_no_size_is_refused_by_name(self):
    for text in ("", "0", "-1", "4X", "1.5M", "K"):
      with self.assertRaisesRegex(UserError, "--sizes"):
        parse_size(text, "--sizes")

  def test_shown_as_written(self):
    for text in ("4K", "1M", "3G", "1000"):
      self.assertEqual(show_size(parse_size(text, "x")), text)


if __name__ == "__main__":
  unittest.main()
