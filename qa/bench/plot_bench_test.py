#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of what plot_bench.py draws of a bench's results."""

import unittest

import matplotlib.pyplot as plt
from matplotlib.container import ErrorbarContainer

import plot_bench

KIB = 1 << 10


def entry(store, mode, size, ratio, lowest=None, highest=None, is_result=True):
  return {"store": store, "mode": mode, "size_bytes": size, "ratio_to_bluestore": ratio, "ratio_lowest": lowest,
          "ratio_highest": highest, "is_result": is_result}


def error_bars(axis):
  """(lowest, highest) of each."""
  return [tuple(y for _, y in segment) for bars in axis.containers if isinstance(bars, ErrorbarContainer)
          for segment in bars.lines[2][0].get_segments()]


class PlotBench(unittest.TestCase):
  def axis(self, results, title="write, first fill"):
    figure = plot_bench.draw(results)
    self.addCleanup(plt.close, figure)
    return next(axis for axis in figure.axes if axis.get_title() == title)

  def test_bars_are_ratios_of_the_other_stores_on_a_linear_axis_from_0(self):
    axis = self.axis([entry("swimstore", "write", 4 * KIB, 1.6), entry("swimstore", "write", 64 * KIB, 0.9),
                      entry("bluestore", "write", 4 * KIB, 1), entry("bluestore", "write", 64 * KIB, 1)])
    self.assertEqual([bar.get_height() for bar in axis.patches], [1.6, 0.9])
    self.assertEqual((axis.get_yscale(), axis.get_ylim()[0]), ("linear", 0))
    self.assertEqual([label.get_text() for label in axis.get_xticklabels()], ["4K", "64K"])

  def test_error_bars_go_from_the_lowest_round_to_the_highest(self):
    axis = self.axis([entry("swimstore", "write", 4 * KIB, 1.6, 1.25, 1.5)])
    self.assertEqual(error_bars(axis), [(1.25, 1.5)])  # of ratios that the medians' own lies outside of

  def test_the_axis_holds_the_highest_bar_of_whatever_panel(self):
    axis = self.axis([entry("swimstore", "write", 4 * KIB, 1.1), entry("swimstore", "rand", 4 * KIB, 2.5, 2, 3)])
    self.assertGreater(axis.get_ylim()[1], 3)

  def test_one_round_has_no_error_bar(self):
    axis = self.axis([entry("swimstore", "write", 4 * KIB, 1.6)])
    self.assertEqual(error_bars(axis), [])

  def test_overwrites_stand_inside_writes_and_have_a_panel_of_their_own(self):
    results = [entry("swimstore", "write", 4 * KIB, 1.6) | {"overwrite": entry("", "", 0, 1.2)}]
    self.assertEqual([bar.get_height() for bar in self.axis(results, "write, steady overwrite").patches], [1.2])

  def test_what_is_no_result_is_hatched(self):
    axis = self.axis([entry("swimstore", "write", size * KIB, 1, is_result=size > 4) for size in (4, 16)])
    self.assertEqual([bool(bar.get_hatch()) for bar in axis.patches], [True, False])

  def test_two_stores_stand_side_by_side(self):
    axis = self.axis([entry(store, "write", 4 * KIB, 1) for store in ("swimstore", "kstore")])
    first, second = axis.patches
    self.assertAlmostEqual(first.get_x() + first.get_width(), second.get_x())
    self.assertAlmostEqual(first.get_x(), -(second.get_x() + second.get_width()))

  def test_the_stores_are_named_once(self):
    figure = plot_bench.draw([entry("swimstore", "write", size * KIB, 1) for size in (4, 16)])
    self.addCleanup(plt.close, figure)
    legend = figure.axes[-1].get_legend()
    self.assertEqual([text.get_text() for text in legend.get_texts()], ["swimstore"])


if __name__ == "__main__":
  unittest.main()
