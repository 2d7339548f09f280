#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What an OSD tells of itself: to operators, and to the manager, whose exporters show it on.

Commit latency by size; the counters that it sends to the manager; a pool's omap; then the device below stands still for
a moment: slow operations, in log, counters, health and the alerts for Prometheus; then whether all metrics and labels are
exported that the dashboard for Grafana and the rules for Prometheus name; at last the host file system takes no write any more:
the OSD ends, with a crash report, and starts again when it can.
"""

import contextlib
import json
import pathlib
import subprocess
import threading
import time

import exporter as exporter_module
import scenario as scenario_module
from scenario import UserError
from loop_disk import unmount

POOL = "watched"
OSD = 0
KIB, MIB = 1 << 10, 1 << 20
SMALL, LARGE = 4 * KIB, MIB
WRITES = 40  # of each size
OMAP_KEYS, OMAP_VALUE = 100, 1000
SLOW_S, STOP_S = 1, 2.5
ALERT = "SWIMSTORE_SLOW_OPERATIONS"
LAST_WORDS = "nothing can be made durable any more"
# What Ceph's dashboards show of a BlueStore OSD beside the OSD's own counters, the hits of its onodes; and what BlueStore sends to
# the manager besides: its latencies and errors.
SENT = ["onode_hits", "onode_misses", "commit_latency", "read_latency", "queue_latency", "throttle_latency", "plan_latency",
        "submit_latency", "omap_latency", "omap_seek_latency", "omap_next_latency", "list_latency", "slow_operations",
        "read_checksum_errors", "read_errors", "read_retries", "transactions"]

# Of four names that nothing has.
WRONG = {"where": "made up", "made": [], "labels": ["nobody"],
         "selectors": [["ceph_swimstore_no_such", []], ["ceph_osd_up", [["no_such", "=~", ".*"]]],
                       ["ceph_osd_metadata", [["objectstore", "=", "filestore"]]]]}


def write(cluster, bytes_each, count=WRITES):
  cluster.client("rados", "-p", POOL, "bench", 60, "write", "-b", bytes_each, "-t", 4, "--max-objects", count,
                 "--no-cleanup", "--run-name", f"of-{bytes_each}")


def histogram(cluster):
  """{(bytes from, microseconds from): count}, from the OSD's socket as `ceph daemon` asks it."""
  found = cluster.ask_osd(OSD, "perf histogram dump", logger="swimstore")["swimstore"]["commit_latency_histogram"]
  latencies, sizes = (axis["ranges"] for axis in found["axes"])
  return {(size.get("min", 0), latency.get("min", 0)): count
          for latency, row in zip(latencies, found["values"]) for size, count in zip(sizes, row) if count}


def counter(cluster, name):
  return cluster.ask_osd(OSD, "perf dump", logger="swimstore")["swimstore"][name]


def latency_by_size(scenario, cluster):
  before = histogram(cluster)
  write(cluster, SMALL)
  write(cluster, LARGE)
  grown = {bucket: count - before.get(bucket, 0) for bucket, count in histogram(cluster).items()}
  small = sum(count for (size, _), count in grown.items() if SMALL // 2 <= size <= 4 * SMALL)
  large = sum(count for (size, _), count in grown.items() if LARGE // 2 <= size <= 4 * LARGE)
  scenario.check(small >= WRITES and WRITES <= large <= WRITES + 4, f"perf histogram dump: {small} transactions of a few KiB, {large} "
                 "of a MiB", str(grown))
  in_all, counted = sum(histogram(cluster).values()), counter(cluster, "commit_latency")["avgcount"]
  scenario.check(abs(in_all - counted) <= 16, f"{in_all} transactions in it, {counted} in commit_latency")


@contextlib.contextmanager
def background(cluster, *words):
  """A client at work meanwhile; it does not outlive the block."""
  load = subprocess.Popen([str(word) for word in cluster.command_line("rados", "-p", POOL, *words)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
  try:
    yield load
  finally:
    if load.poll() is None:
      load.kill()
      load.wait()


def freeze(cluster):
  subprocess.run(["fsfreeze", "--freeze", cluster.osd_dir(OSD)], check=True)


def thaw(cluster):
  subprocess.run(["fsfreeze", "--unfreeze", cluster.osd_dir(OSD)], check=True)


@contextlib.contextmanager
def slow_device(cluster):
  """Meanwhile the device below stands still most of the time: a commit takes milliseconds, however quick the disk."""
  over = threading.Event()

  def stand_still():
    while not over.is_set():
      freeze(cluster)
      time.sleep(0.02)
      thaw(cluster)
      time.sleep(0.005)
  thread = threading.Thread(target=stand_still)
  thread.start()
  try:
    yield
  finally:
    over.set()
    thread.join()


def osd_perf(scenario, cluster):
  """An OSD tells the average since it told the last, 0 of a second without commits: the load must not pause. And it tells whole
  milliseconds, 0 of less than one."""
  def told():
    stats = cluster.ceph_json("pg", "dump", "osds")["osd_stats"][OSD]["perf_stat"]
    return stats["apply_latency_ms"] == stats["commit_latency_ms"] >= 1
  with background(cluster, "bench", 90, "write", "-b", SMALL, "-t", 1, "--run-name", "meanwhile"), slow_device(cluster):
    scenario.until(told, 60, "ceph osd perf: the time of a commit, in both columns")


def osd_log(cluster):
  return cluster.log_tail(f"osd.{OSD}", 1_000_000).splitlines()


def sent_to_manager(scenario, cluster):
  declared = {line.split()[-1] for line in osd_log(cluster) if " declare swimstore." in line}
  absent = [name for name in SENT if f"swimstore.{name}" not in declared]
  scenario.check(not absent, f"the manager gets {len(declared)} counters, and those that dashboards need", str(absent))


def pool_omap(scenario, cluster):
  """It is not counted, and must not be told as none."""
  keys = "\n".join(f"rados -p {POOL} setomapval with-omap key{key} $value" for key in range(OMAP_KEYS))
  cluster.shell(f"set -e\nvalue=$(head -c {OMAP_VALUE} /dev/zero | tr '\\0' v)\n{keys}")
  scenario.deep_scrub()
  scenario.until(lambda: stored_omap(cluster) >= OMAP_KEYS * OMAP_VALUE, 60, "ceph df shows a pool's omap as the scrub found it")
  osd = cluster.ceph_json("pg", "dump", "osds")["osd_stats"][OSD]
  scenario.check(osd["num_per_pool_omap_osds"] == 0, "the OSD does not claim to count it", str(osd))


def stored_omap(cluster):
  pools = {pool["name"]: pool["stats"] for pool in cluster.ceph_json("df", "detail")["pools"]}
  return pools[POOL]["stored_omap"]


def health(cluster):
  return cluster.ceph_json("health", "detail")["checks"]


def slow_operations(scenario, cluster, exporter):
  scenario.check(ALERT not in health(cluster), "no operation is told as slow before")
  with background(cluster, "bench", 5, "write", "-b", SMALL, "-t", 8, "--run-name", "slow") as load:
    time.sleep(1)
    freeze(cluster)
    try:
      time.sleep(STOP_S)
    finally:
      thaw(cluster)
    load.wait(timeout=60)
  said = [line for line in osd_log(cluster) if "slow operation: commit of" in line]
  counted = counter(cluster, "slow_operations")
  scenario.check(0 < len(said) <= counted, f"{counted} slow operations are counted, {len(said)} commits are in the log")
  late = sum(count for (_, us), count in histogram(cluster).items() if us >= SLOW_S * 1e6 / 2)
  scenario.check(late >= len(said), f"{late} of them in the histogram's late columns", str(histogram(cluster)))
  scenario.until(lambda: ALERT in health(cluster), 60, f"the health of the cluster tells of them ({ALERT})")
  detail = str(health(cluster)[ALERT]["detail"])
  scenario.check("commit of" in detail and str(cluster.osd_dir(OSD)) in detail, "its text names the last and the store", detail)
  scenario.until(lambda: exporter.value("ceph_health_detail", name=ALERT) == 1, 60, "Prometheus gets the alert")
  cluster.ceph("config", "set", "osd", "swimstore_slow_ops_warn_threshold", 0, "--force")
  scenario.until(lambda: ALERT not in health(cluster), 60, "threshold 0: no alert")
  scenario.until(lambda: exporter.value("ceph_health_detail", name=ALERT) == 0, 60, "Prometheus gets its end")


def dashboard_and_rules(scenario, cluster, exporter):
  files, series = exporter_module.asked(), exporter.series()
  of_store = [metric for metric in series if metric.startswith("ceph_swimstore_")]
  named = {metric for one in files["expressions"] for metric, _ in one["selectors"]}
  absent = exporter_module.missing(files, series)
  scenario.check(len(of_store) > 50 and len(files["expressions"]) > 60 and not absent,
                 f"{len(named)} metrics, and all labels, that {len(files['expressions'])} expressions of the dashboard and the rules name "
                 f"are exported; {len(of_store)} of the store's are", "\n".join(absent))
  wrong = exporter_module.missing({"expressions": [WRONG], "recorded": {}}, series)
  scenario.check(len(wrong) == 4, "an expression that names others is told", "\n".join(wrong))
  # Which the rules make in its place; where Ceph does one day, they are not needed any more.
  scenario.check(not series.get("ceph_disk_occupation"), "the manager tells no disk of an OSD of SwimStore")
  # The rules find it by its mount point, and Ceph's dashboards the host by its name.
  metadata = cluster.ceph_json("osd", "metadata", OSD)
  scenario.check(exporter.value("ceph_osd_metadata", ceph_daemon=f"osd.{OSD}", objectstore="swimstore",
                                hostname=metadata["hostname"]) == 1, "it tells its store and host")
  scenario.check(metadata["swimstore_host_mount_point"] == str(cluster.osd_dir(OSD)), "the OSD tells its mount point", str(metadata))


def crash_reports(cluster):
  """What the OSD's own say, as `ceph crash` would post them. A manager whose modules do not load writes some, too."""
  reports = []
  for meta in (cluster.dir / "log").glob("*/meta"):
    try:
      report = json.loads(meta.read_text())
    except ValueError:  # is being written
      continue
    if report["entity_name"] == f"osd.{OSD}":
      reports.append(report)
  return reports


def end_of_writing(scenario, cluster):
  """The host file system was damaged, for the kernel: it takes no write any more."""
  device = pathlib.Path(cluster.devices()[OSD]).name
  cluster.ceph("osd", "set", "noout")
  subprocess.run(["mount", "-o", "remount,errors=remount-ro", cluster.osd_dir(OSD)], check=True)
  (pathlib.Path("/sys/fs/ext4") / device / "trigger_fs_error").write_text("test")
  with background(cluster, "put", "last", "/etc/hostname") as load:
    # Its pid file goes before it writes the report.
    deadline = time.monotonic() + 60
    while not (cluster.osd_crashed(OSD) and crash_reports(cluster)) and time.monotonic() < deadline:
      time.sleep(0.5)
    if not scenario.check(cluster.osd_crashed(OSD), "the host file system takes no write: the OSD ends"):
      raise UserError("no use to go on: the OSD still runs")
    # Not once more in the list of recent events that follows, which is indented.
    said = [line for line in osd_log(cluster) if LAST_WORDS in line and "FATAL" in line and not line.startswith(" ")]
    scenario.check(len(said) == 1 and str(cluster.osd_dir(OSD)) in said[0], "one message says why", "\n".join(said))
    reports = crash_reports(cluster)
    scenario.check([LAST_WORDS in report.get("assert_msg", "") for report in reports] == [True], "a crash report says so", str(reports))
    scenario.check(all(report.get("io_error") for report in reports), "and that it was the disk", str(reports))
    start_again(scenario, cluster)
    load.wait(timeout=60)


def start_again(scenario, cluster):
  unmount(cluster.osd_dir(OSD))
  cluster.disk(OSD).mount(cluster.osd_dir(OSD), cluster.spec.fs)
  cluster.start_osd(OSD)
  cluster.wait_up()
  cluster.wait_clean()
  scenario.check(True, "mounted anew, it serves")


def run(scenario):
  exporter_module.let_modules_load()
  cluster = scenario.start(osds=1, conf={"swimstore log op age": SLOW_S, "debug mgrc": 20})
  exporter = exporter_module.Exporter(cluster)
  cluster.create_pool(POOL, pg_num=8)
  cluster.wait_clean()
  latency_by_size(scenario, cluster)
  osd_perf(scenario, cluster)
  sent_to_manager(scenario, cluster)
  pool_omap(scenario, cluster)
  slow_operations(scenario, cluster, exporter)
  dashboard_and_rules(scenario, cluster, exporter)
  if cluster.spec.fs == "ext4":  # which can be told to fail
    end_of_writing(scenario, cluster)
  scenario.deep_scrub()
  scenario.check_daemons()


if __name__ == "__main__":
  scenario_module.main("monitoring", run, __doc__, stores=("swimstore",))
