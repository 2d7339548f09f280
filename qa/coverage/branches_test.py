#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of how branches.py counts what llvm-cov exports."""

import io
import pathlib
import tempfile
import unittest

from branches import Collector, Sources, Wanted, report

SOURCE = """\
int first(int a) {
  return a > 0 ? 1 : 2;
}
int second(int a) {
  VTKV_ASSERT(a > 0);
  RETURN_IF(a);
  RETURN_IF(a + 1);
}
"""
MACROS = """\
#define VTKV_ASSERT(x) ((x) ? 0 : fail())
#define RETURN_IF(x) do { if (x) return 1; } while (false)
"""
CODE, BRANCH = 0, 4
EXPANSION = 1


def branch(line, begin, end, true_count, false_count, file_id=0):
  return [line, begin, line, end, true_count, false_count, file_id, 0, BRANCH]


def use(line, column, expanded_id, file_id=0):
  return [line, column, line, column + 5, 1, file_id, expanded_id, EXPANSION]


def function(branches, regions=(), filenames=("./a.cc",)):
  return {"filenames": list(filenames), "branches": branches, "regions": list(regions)}


class Counting(unittest.TestCase):
  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    pathlib.Path(folder.name, "a.cc").write_text(SOURCE)
    pathlib.Path(folder.name, "m.h").write_text(MACROS)
    self.sources = Sources(folder.name)

  def collect(self, functions, text="a.cc\n"):
    collector = Collector(Wanted(text), self.sources)
    for found, name in functions:
      collector.add(found, name)
    return collector

  def test_both_outcomes_of_a_condition_count(self):
    collector = self.collect([(function([branch(2, 10, 15, 3, 0)]), "first(int)")])
    self.assertEqual(collector.table(), {"a.cc": [2, 1]})
    self.assertEqual([(location.line, what, text) for location, what, text in collector.uncovered()],
                     [(2, "never false", "a > 0")])

  def test_instances_are_one_source(self):
    collector = self.collect([(function([branch(2, 10, 15, 3, 0)]), "first<int>(int)"),
                              (function([branch(2, 10, 15, 0, 1)]), "first<char>(char)")])
    self.assertEqual(collector.table(), {"a.cc": [2, 2]})

  def test_each_use_of_a_macro_counts(self):
    used = function([branch(2, 31, 32, 0, 1, 1), branch(2, 31, 32, 1, 1, 2)], [use(6, 3, 1), use(7, 3, 2)],
                    ("./a.cc", "./m.h", "./m.h"))
    collector = self.collect([(used, "second(int)")])
    self.assertEqual(collector.table(), {"a.cc": [4, 3]})
    self.assertEqual([(location.line, text) for location, _, text in collector.uncovered()], [(6, "RETURN_IF")])

  def test_assertions_and_constants_are_left_out_and_counted(self):
    constant = MACROS.splitlines()[1].index("false") + 1
    used = function([branch(1, 25, 28, 1, 0, 1), branch(2, constant, constant + 5, 0, 0, 2)], [use(5, 3, 1), use(6, 3, 2)],
                    ("./a.cc", "./m.h", "./m.h"))
    collector = self.collect([(used, "second(int)")])
    self.assertEqual(collector.table(), {"a.cc": [0, 0]})
    self.assertEqual(dict(collector.left_out), {"assertion": 2, "constant": 2})

  def test_a_macro_of_a_system_header_lies_at_its_name(self):
    collector = self.collect([(function([branch(5, 3, 3, 1, 0), branch(5, 3, 3, 0, 0)]), "second(int)")])
    self.assertEqual(dict(collector.left_out), {"assertion": 4})

  def test_conditions_at_one_place_are_told_apart(self):
    collector = self.collect([(function([branch(6, 3, 3, 1, 0), branch(6, 3, 3, 0, 1)]), "second(int)")])
    self.assertEqual(collector.table(), {"a.cc": [4, 2]})

  def test_only_the_functions_of_the_list_count(self):
    functions = [(function([branch(2, 10, 15, 1, 1)]), "space::first(int)"),
                 (function([branch(6, 13, 14, 0, 0)]), "space::second(int)")]
    self.assertEqual(self.collect(functions, "a.cc  first").table(), {"a.cc": [2, 2]})
    self.assertEqual(self.collect(functions, "b.cc").table(), {"b.cc": [0, 0]})

  def test_a_name_that_no_function_has_is_told(self):
    collector = self.collect([(function([branch(2, 10, 15, 1, 1)]), "first(int)")], "a.cc  first irst\nb.cc  # gone\n")
    self.assertEqual(list(collector.wanted.unused(collector.seen)), ["a.cc: irst", "b.cc"])

  def test_below_the_minimum_is_failure(self):
    collector = self.collect([(function([branch(2, 10, 15, 3, 0)]), "first(int)")])
    out = io.StringIO()
    self.assertFalse(report(collector, self.sources, 95.0, out))
    self.assertTrue(report(collector, self.sources, 50.0, out))
    self.assertIn("a.cc:2: never false: a > 0  [return a > 0 ? 1 : 2;]", out.getvalue())


if __name__ == "__main__":
  unittest.main()
