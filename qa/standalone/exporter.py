# SPDX-License-Identifier: LGPL-2.1-or-later
"""The manager's module `prometheus`: switched on, asked, and held against what the files for Grafana and Prometheus ask for."""

import json
import os
import pathlib
import re
import sys
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench"))

import sysroot  # noqa: E402
from cluster import free_port  # noqa: E402

SAMPLE = re.compile(r'([\w:]+)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
ADDED = {"instance", "job"}  # by Prometheus, to all that it scrapes
# Not of Ceph, but of node_exporter: labels by its source (collector/filesystem_common.go, diskstats_linux.go).
OF_NODE_EXPORTER = {"node_filesystem_size_bytes": {"device", "device_error", "fstype", "mountpoint"},
                    "node_disk_device_mapper_info": {"device", "lv_layer", "lv_name", "name", "uuid", "vg_name"},
                    "node_disk_io_time_seconds_total": {"device"}, "node_disk_read_bytes_total": {"device"},
                    "node_disk_written_bytes_total": {"device"}}


def let_modules_load():
  """Of managers that are started from now on."""
  os.environ["PYTHONPATH"] = str(HERE / "mgr_python")


class Exporter:
  def __init__(self, cluster):
    self._port = free_port()
    # Also the counters of OSDs: Debian has no ceph-exporter.
    for option, value in {"server_addr": "127.0.0.1", "server_port": self._port, "scrape_interval": 2,
                          "exclude_perf_counters": "false"}.items():
      cluster.ceph("config", "set", "mgr", f"mgr/prometheus/{option}", value, "--force")  # it may not have told its options yet
    cluster.ceph("mgr", "module", "enable", "prometheus", "--force")

  def series(self):
    """{metric: [(labels, value)]}; empty while the module does not answer."""
    try:
      with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    except (OSError, urllib.error.URLError):
      return {}
    found = {}
    for line in text.splitlines():
      sample = SAMPLE.fullmatch(line)
      if sample:
        found.setdefault(sample[1], []).append((dict(LABEL.findall(sample[2] or "")), float(sample[3])))
    return found

  def value(self, metric, **labels):
    """Of the first series with these labels; None where there is none."""
    return next((value for found, value in self.series().get(metric, ()) if labels.items() <= found.items()), None)


def asked():
  """What the files ask for: see qa/tools/monitoring_files.py, which runs in the sysroot, where a parser of YAML is."""
  return json.loads(sysroot.run([HERE.parent / "tools/monitoring_files.py"]).stdout)


def missing(files, series):
  """What the expressions name that is neither exported nor made: a list of sentences."""
  labels = {metric: {label for found, _ in samples for label in found} | ADDED for metric, samples in series.items()}
  labels |= {metric: known | ADDED for metric, known in OF_NODE_EXPORTER.items()}
  # What the manager names itself, of other stores' OSDs, has a name of the rules' then.
  labels |= {metric: set(made) for metric, made in files["recorded"].items()}
  found = []
  for one in files["expressions"]:
    known = set(one["made"])
    for metric, matchers in one["selectors"]:
      known |= labels.get(metric, set())
      found += [f"{one['where']}: {fault}" for fault in _of_selector(metric, matchers, labels, series)]
    found += [f"{one['where']}: no series has the label {label}" for label in one["labels"] if label not in known]
  return found


def _of_selector(metric, matchers, labels, series):
  if metric not in labels:
    yield f"no metric {metric}"
    return
  for label, operator, value in matchers:
    if label not in labels[metric]:
      yield f"{metric} has no label {label}"
    # An alert has a series when it was raised for the first time: monitoring_files_test.py holds their names against the source.
    elif operator == "=" and metric in series and metric != "ceph_health_detail":
      if not any(found.get(label) == value for found, _ in series[metric]):
        yield f'no {metric} with {label}="{value}"'
