#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the files for Grafana and Prometheus ask for (src/os/swimstore/monitoring).

Run as a program it prints it, as JSON: "expressions", objects with where, selectors ([metric, matchers]), labels and made, and
"recorded", the labels of each metric that the rules make.
"""

import json
import re

import promql
import store_names

FOLDER = store_names.SWIMSTORE / "monitoring"
DASHBOARD, RULES = FOLDER / "swimstore-dashboard.json", FOLDER / "swimstore-rules.yml"
DISK_LABELS = ["ceph_daemon", "device", "instance", "job"]  # of all that is recorded
LABEL_VALUES = re.compile(r"label_values\((?P<selector>.+), (?P<label>\w+)\)")


def rules():
  """Each rule, with the name of its group."""
  import yaml  # which comes with Ceph's manager; outside the sysroot it may be absent
  return [rule | {"group": group["name"]} for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def dashboard():
  return json.loads(DASHBOARD.read_text())


def recorded():
  """{metric: labels} of what the rules make."""
  return {rule["record"]: DISK_LABELS for rule in rules() if "record" in rule}


def asked():
  """(where, promql.Names) of each expression; what is shown of a series, its labels, is asked for, too."""
  for rule in rules():
    name = rule.get("alert") or rule["record"]
    shown = re.findall(r"\$labels\.(\w+)", json.dumps(rule.get("annotations", {})))
    yield f"{RULES.name}: {name}", _with(rule["expr"], shown)
  for variable in dashboard()["templating"]["list"]:
    if variable["type"] == "query":
      query = LABEL_VALUES.fullmatch(variable["query"])
      yield f"{DASHBOARD.name}: ${variable['name']}", _with(query["selector"], [query["label"]])
  for panel in dashboard()["panels"]:
    for target in panel.get("targets", ()):
      shown = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
      yield f"{DASHBOARD.name}: {panel['title']}", _with(target["expr"], shown)


def _with(expression, labels):
  found = promql.names(expression)
  found.labels.update(labels)
  return found


def main():
  expressions = [{"where": where, "selectors": [[one.metric, one.matchers] for one in found.selectors],
                  "labels": sorted(found.labels), "made": sorted(found.made)} for where, found in asked()]
  print(json.dumps({"expressions": expressions, "recorded": recorded()}))


if __name__ == "__main__":
  main()
