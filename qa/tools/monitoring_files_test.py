#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The dashboard for Grafana and the rules for Prometheus, as far as no cluster is needed (qa/standalone/monitoring.py has one):
all alerts of the store have a rule, each rule a remedy that the operations page knows; and how names are found in PromQL.

What the rules make of series says swimstore_rules_test.yml, where there is a promtool.
"""

import collections
import itertools
import pathlib
import re
import shutil
import subprocess
import unittest

import monitoring_files
import promql
import store_names

HERE = pathlib.Path(__file__).resolve().parent
PAGE = store_names.CHECKOUT / "doc/swimstore-operations.rst"


def sections():
  """{heading: text} of the operations page."""
  parts = re.split(r"^(\S.*)\n([=-])\2{2,}\n", PAGE.read_text(), flags=re.M)
  return {heading: " ".join(text.split()) for heading, text in zip(parts[1::3], parts[3::3])}


class Promql(unittest.TestCase):
  def test_names_of_an_expression(self):
    found = promql.names('sum by (osd) (rate(a_sum{x="1", y=~"$osd"}[5m]) / (b > 1.5)) unless on (host) '
                         'label_replace(c:d, "host", "$1", "instance", "([^:]*).*") or absent(e)')
    self.assertEqual([(one.metric, one.matchers) for one in found.selectors],
                     [("a_sum", [("x", "=", "1"), ("y", "=~", "$osd")]), ("b", []), ("c:d", []), ("e", [])])
    self.assertEqual(found.labels, {"osd", "host", "instance"})
    self.assertEqual(found.made, {"host"})

  def test_lists_behind_an_aggregation_and_without_one(self):
    found = promql.names("sum(a) without (x, y) * on (z) group_left (w) b * on (z) group_left c")
    self.assertEqual(found.labels, {"x", "y", "z", "w"})
    self.assertEqual([one.metric for one in found.selectors], ["a", "b", "c"])

  def test_what_is_not_known_is_refused(self):
    for wrong in ("histogramm(a)", "a & b", "rate(a", "a)", "sum by (x", '{x="1"}', 'a{x}', "a{x=1}"):
      with self.subTest(wrong), self.assertRaises(promql.Unknown):
        promql.names(wrong)


class Rules(unittest.TestCase):
  def test_each_alert_of_the_store_has_one(self):
    found = collections.Counter(name for rule in monitoring_files.rules()
                                for name in re.findall(r'ceph_health_detail\{name="(\w+)"\} == 1', rule["expr"]))
    self.assertGreater(len(found), 10)
    self.assertEqual(found, collections.Counter(store_names.alerts()))

  def test_each_says_what_to_do_and_where_more_is_said(self):
    known = sections()
    page = " ".join(PAGE.read_text().split())
    alerts = [rule for rule in monitoring_files.rules() if "alert" in rule]
    self.assertEqual(len({rule["alert"] for rule in alerts}), len(alerts))
    for rule in alerts:
      with self.subTest(rule["alert"]):
        self.assertIn(rule["labels"]["severity"], ("critical", "warning", "info"))
        self.assertEqual(set(rule["annotations"]), {"summary", "remedy", "section"})
        section = known[rule["annotations"]["section"]]
        for name in re.findall(r'name="(\w+)"', rule["expr"]):
          self.assertTrue(f"``{name}``" in section, name)
        for command in re.findall(r"`([^`]+)`", rule["annotations"]["remedy"]):
          self.assertTrue(command in page, command)

  def test_promtool(self):
    promtool = shutil.which("promtool")
    if not promtool:
      self.skipTest("no promtool here")
    for command in (["check", "rules", monitoring_files.RULES], ["test", "rules", HERE / "swimstore_rules_test.yml"]):
      done = subprocess.run([promtool, *command], text=True, capture_output=True, timeout=60)
      self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Dashboard(unittest.TestCase):
  def test_panels_are_explained_and_beside_each_other(self):
    panels = monitoring_files.dashboard()["panels"]
    self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
    for panel in panels:
      with self.subTest(panel["title"]):
        if panel["type"] != "row":
          self.assertTrue(panel["description"] and panel["targets"])
          self.assertEqual(len({target["refId"] for target in panel["targets"]}), len(panel["targets"]))
        self.assertLessEqual(panel["gridPos"]["x"] + panel["gridPos"]["w"], 24)
    for one, other in itertools.combinations((panel["gridPos"] for panel in panels), 2):
      beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
      self.assertTrue(beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"], (one, other))

  def test_variables_are_defined(self):
    text = monitoring_files.DASHBOARD.read_text()
    defined = {variable["name"] for variable in monitoring_files.dashboard()["templating"]["list"]}
    of_grafana = {"__range", "__rate_interval"}
    self.assertEqual(set(re.findall(r"\$\{?([a-z_]+)", text)) - of_grafana, defined)


if __name__ == "__main__":
  unittest.main()
