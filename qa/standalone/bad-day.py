#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A drill: accidents that happen to one OSD of three, and the way out that the message and the page name.

Each accident checks that the message names the thing and the remedy, that `On a bad day` in
doc/swimstore-operations.rst has the remedy, that nothing is lost that the disk or a replica still had, and that the
cluster ends in HEALTH_OK, with every object right.
"""

# tidy: long because each accident is a few lines, and all read as one list

import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import time

import scenario as scenario_module
import sysroot
from cube_damage import blocks_of
from scenario import CRASH_MARKS, UserError
from superblock import with_version

OSDS = 3
POOL = "many"
LOAD = sysroot.CHECKOUT / "qa" / "standalone" / "many_objects.py"
PAGE = sysroot.CHECKOUT / "doc" / "swimstore-operations.rst"
SECTION = "On a bad day"
BLOCK = 4096
NOBODY = 65534

ACCIDENTS = []


def accident(title, quick=False):
  """`title`: as the page has it."""
  def add(function):
    ACCIDENTS.append((title, quick, function))
    return function
  return add


def read_page():
  """{title: what to do} of the page's section, which is a definition list."""
  text = PAGE.read_text()
  begin = text.index(f"\n{SECTION}\n")
  following = re.search(r"\n\n[^\n]+\n=====+\n", text[begin + 5:])
  section = text[begin:begin + 5 + following.start() if following else len(text)]
  found = re.findall(r"^(\S[^\n]*)\n((?:    [^\n]*\n?|\n)+)", section, re.MULTILINE)
  return {title: " ".join(words.split()) for title, words in found}


def fill(path):
  """Grow one file until not even root gets another block. Not on the host's own disk."""
  if not os.path.ismount(path.parent):
    raise UserError(f"{path.parent} is no file system of its own")
  with open(path, "wb", buffering=0) as ballast:
    at = 0
    for step in (64 << 20, 1 << 20, BLOCK):
      while True:
        try:
          os.posix_fallocate(ballast.fileno(), at, step)
          at += step
        except OSError:
          break


def host(*words, status=(0,)):
  done = subprocess.run([str(word) for word in words], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT)
  if done.returncode not in status:
    raise UserError(f"{' '.join(map(str, words))}: exit status {done.returncode}: {done.stdout[-500:]}")
  return done.stdout


class Drill:
  """One accident under way: the OSD `osd` is its victim."""

  def __init__(self, scenario, cluster, count, title, osd, page):
    self.scenario = scenario
    self.cluster = cluster
    self.count = count
    self.title = title
    self.osd = osd
    self.base = cluster.osd_dir(osd)
    self.cube = self.base / "cubes" / "0"
    self.scratch = cluster.dir / "run" / "scratch"
    self._page = page.get(title, "")
    shutil.rmtree(self.scratch, ignore_errors=True)
    self.scratch.mkdir()

  def check(self, good, what, detail=""):
    return self.scenario.check(good, f"{self.title}: {what}", detail)

  def page_says(self, *words):
    self.check(self._page and all(word in self._page for word in words), "the page has the remedy",
               f"{words} in {self._page!r}")

  def says(self, text, *words):
    """One line names all of them."""
    telling = [line for line in text.splitlines() if all(str(word) in line for word in words)]
    if self.check(telling, f"the message names {', '.join(map(str, words))}", text[-1500:]):
      self.scenario.say(f"       {telling[0].strip()[:300]}")

  def command(self, program, *words, user=None):
    argv = [self.cluster.spec.beside_osd(program), *words]
    return sysroot.command((["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []) + argv)

  def tool(self, *words, status, user=None):
    """Runs ceph-swimstore-tool; returns what it says."""
    done = subprocess.run(self.command("ceph-swimstore-tool", *words, user=user), text=True, errors="replace",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    name = words[2] if words[0] == "--format" else words[0]
    self.check(done.returncode == status and not any(mark in done.stdout for mark in CRASH_MARKS),
               f"`{name}` exits with {status}", f"exit {done.returncode}\n{done.stdout[-1500:]}")
    return done.stdout

  def tool_json(self, *words, status):
    """As tool(); the fields of its answer."""
    said = self.tool("--format", "json", *words, status=status)
    try:
      return json.loads(said)
    except ValueError:
      self.check(False, f"`{words[0]}` prints JSON", said[-500:])
      return {}

  def kill_tool(self, mark, seconds, *words):
    """kill -9 so long after it has made the file `mark`; whether it was still at work."""
    tool = subprocess.Popen(self.command("ceph-swimstore-tool", *words), stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
      while not mark.exists() and tool.poll() is None:
        time.sleep(0.001)
      tool.wait(seconds)
      return False
    except subprocess.TimeoutExpired:
      os.killpg(tool.pid, signal.SIGKILL)
      tool.wait()
      return True

  def stop(self):
    self.cluster.stop_osd(self.osd)

  def orphan(self, count):
    """Omap that no object has, in the stopped OSD's store: what repair fixes, an entry each."""
    # Leaves a log whose every record is known to be durable.
    host(*self.command("ceph-swimstore-tool", "fsck", self.base), status=(0, 1))
    containers = self.cube / "containers"
    aside = self.base / "containers"  # vtkv-tool writes to no database that has some
    containers.rename(aside)
    try:
      for number in range(count):
        key = b"M" + struct.pack(">Q", 1 << 40 | number) + b"key"
        host(*self.command("vtkv-tool", "put", self.cube, "".join(f"\\x{byte:02x}" for byte in key), "value"))
    finally:
      aside.rename(containers)

  def write(self):
    """Everything once more: without waiting, for an OSD may be about to end."""
    subprocess.Popen(sysroot.command(["timeout", "60", "python3", LOAD, "write", self.cluster.dir / "ceph.conf", POOL,
                                      self.count, 0]),
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait()

  def objects(self):
    """How many the stopped OSD's store holds."""
    return self.tool_json("info", self.base, status=0).get("objects", 0)

  def refuses_to_start(self):
    """What the OSD says."""
    log = self.cluster.dir / "log" / f"osd.{self.osd}.log"
    before = log.stat().st_size
    said = ""
    try:
      self.cluster.start_osd(self.osd, "--log-flush-on-exit")
      self.cluster.wait_up()
      self.check(False, "the OSD refuses to start")
    except UserError as error:
      said = str(error)
    self.cluster.stop_osd(self.osd)
    with open(log, errors="replace") as file:
      file.seek(before)
      said += file.read()
    self.check(not any(mark in said for mark in CRASH_MARKS), "it refuses without a crash", said[-1500:])
    return said

  def export(self, status, objects=None):
    """--salvage into a file; at least so many objects."""
    archive = self.scratch / "archive"
    saved = self.tool_json("export", self.base, "--salvage", "--out", archive, status=status)
    if objects is not None:
      self.check(saved.get("objects", 0) >= objects, f"export --salvage saves {objects} objects", str(saved)[:800])
    return archive

  def start(self):
    self.cluster.start_osd(self.osd)
    self.cluster.wait_up()

  def make_anew(self):
    self.cluster.remake_osd(self.osd)
    self.cluster.wait_up()

  def load(self, mode, pool):
    """Writes or reads every object."""
    done = subprocess.run(sysroot.command(["python3", LOAD, mode, self.cluster.dir / "ceph.conf", pool, self.count, 0]),
                          text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    self.check(done.returncode == 0, f"all {self.count} objects of pool {pool} are right ({mode})",
               done.stdout[-500:] + done.stderr[-500:])

  def all_right(self):
    """Every object reads back, and the cluster is healthy."""
    self.cluster.wait_clean(300)
    self.load("read", POOL)
    deadline = time.monotonic() + 60
    while (health := self.cluster.ceph_json("health"))["status"] != "HEALTH_OK" and time.monotonic() < deadline:
      time.sleep(1)
    self.check(health["status"] == "HEALTH_OK", "the cluster ends in HEALTH_OK", str(health))


# -- what the store's root is made of -----------------------------------------------------------------------------


@accident("One copy of the superblock is damaged")
def one_superblock(drill):
  drill.stop()
  with open(drill.base / "superblock", "r+b") as file:
    file.write(bytes(BLOCK))
  drill.page_says("the other copy", "nothing to do")
  drill.start()
  drill.stop()
  said = drill.tool_json("dump", "superblock", drill.base, status=0)
  drill.check(said.get("first_copy_whole") and said.get("second_copy_whole"), "both copies are whole again", str(said))
  drill.start()


@accident("Both copies of the superblock are damaged", quick=True)
def superblock(drill):
  drill.stop()
  objects = drill.objects()
  good = (drill.base / "superblock").read_bytes()
  (drill.base / "superblock").write_bytes(bytes(len(good)))
  drill.says(drill.refuses_to_start(), "superblock", "mount:", "do not run mkfs", "export --salvage")
  drill.says(drill.tool("mkfs", drill.base, status=2), "superblock", "do not run mkfs")
  drill.page_says("export --salvage", "make the OSD anew")
  drill.export(1, objects)
  drill.make_anew()


@accident("The superblock is gone")
def no_superblock(drill):
  drill.stop()
  objects = drill.objects()
  good = (drill.base / "superblock").read_bytes()
  (drill.base / "superblock").unlink()
  drill.says(drill.refuses_to_start(), "superblock", "do not run mkfs")
  drill.says(drill.tool("mkfs", drill.base, status=2), "do not run mkfs", "copy")
  drill.page_says("from a copy", "do not run mkfs")
  drill.export(1, objects)
  (drill.base / "superblock").write_bytes(good)
  drill.start()


@accident("No other OSD has what it held")
def only_copy(drill):
  """A pool without replicas: what export --salvage saves goes into the new OSD."""
  pool = "alone"
  drill.cluster.create_pool(pool, pg_num=8, size=1)
  drill.load("write", pool)
  drill.cluster.shell(f"rados -p {POOL} put deleted-meanwhile {drill.cluster.dir}/ceph.conf")
  drill.cluster.wait_clean()
  pgs = [pg["pgid"] for pg in drill.cluster.ceph_json("pg", "ls-by-pool", pool)["pg_stats"] if pg["up"] == [drill.osd]]
  drill.check(pgs, "the OSD has PGs that no other has")
  drill.stop()
  objects = drill.objects()
  (drill.base / "superblock").write_bytes(bytes(2 * BLOCK))
  (drill.cube / "containers" / "header").unlink()
  drill.page_says("export --salvage", "--collection", "meta", "start it once", "import")
  drill.export(1, objects)
  archives = {}
  for collection in ("meta", *(f"{pg}_head" for pg in pgs)):
    archives[collection] = drill.cluster.dir / "run" / f"archive.{collection}"
    drill.tool("export", drill.base, "--salvage", "--collection", collection, "--out", archives[collection], status=1)
  drill.cluster.shell(f"rados -p {POOL} rm deleted-meanwhile")
  drill.make_anew()
  drill.stop()
  for collection, archive in archives.items():
    said = drill.tool_json("import", drill.base, "--in", archive, status=1)
    drill.check(not any("lacks its own object" in line["text"] for line in said.get("omitted", [])),
                "every PG has its own object", str(said)[:800])
    archive.unlink()
  drill.start()
  drill.cluster.wait_clean(300)
  drill.load("read", pool)
  names = drill.cluster.shell(f"rados -p {POOL} ls").split()
  drill.check("deleted-meanwhile" not in names, "what was deleted meanwhile does not come back", str(len(names)))
  drill.cluster.shell(f"ceph osd pool rm {pool} {pool} --yes-i-really-really-mean-it")


@accident("The header of the containers is gone", quick=True)
def container_header(drill):
  drill.stop()
  objects = drill.objects()
  (drill.cube / "containers" / "header").unlink()
  drill.says(drill.refuses_to_start(), "containers/header", "mount:", "export --salvage")
  drill.page_says("export --salvage", "make the OSD anew")
  drill.export(1, objects)
  drill.make_anew()


@accident("One copy of the manifest is torn")
def one_manifest_copy(drill):
  drill.cluster.ask_osd(drill.osd, "swimstore flush")  # a new store has written one copy only
  drill.stop()
  manifest = drill.cube / "manifest"
  with open(manifest, "r+b") as file:
    epochs = [struct.unpack_from("<Q", file.read(BLOCK), 24)[0] for at in (0, manifest.stat().st_size // 2)
              if file.seek(at) == at]
    file.seek(epochs.index(max(epochs)) * manifest.stat().st_size // 2 + 100)
    file.write(b"torn")
  drill.page_says("the other copy", "nothing to do")
  drill.tool("fsck", "--deep", drill.base, status=0)
  drill.start()


@accident("Both copies of the manifest are torn", quick=True)
def both_manifest_copies(drill):
  drill.stop()
  manifest = drill.cube / "manifest"
  with open(manifest, "r+b") as file:
    for at in (0, manifest.stat().st_size // 2):
      file.seek(at + 100)
      file.write(b"torn")
  drill.says(drill.refuses_to_start(), "manifest", "mount:", "make it anew")
  drill.says(drill.tool("export", drill.base, "--salvage", "--out", drill.scratch / "archive", status=2), "manifest")
  drill.page_says("make the OSD anew", "cannot be exported")
  drill.make_anew()


@accident("A segment of the log is missing")
def log_segment(drill):
  drill.cluster.ask_osd(drill.osd, "swimstore flush")  # what is in the tree stays
  drill.stop()
  objects = drill.objects()
  segment = max((drill.cube / "log").iterdir(), key=lambda path: struct.unpack_from("<Q", path.read_bytes()[:64], 40)[0])
  shutil.move(segment, drill.scratch / "segment")
  said = drill.refuses_to_start()
  drill.says(said, "log", "mount:", "restore", "export --salvage")
  drill.page_says("put it back", "export --salvage", "make the OSD anew")
  drill.says(drill.tool("export", drill.base, "--salvage", "--out", drill.scratch / "first", status=1), "log", "not seen")
  drill.export(1, objects // 2)
  drill.make_anew()


@accident("A third of the tree is damaged")
def third_of_the_tree(drill):
  drill.cluster.ask_osd(drill.osd, "swimstore flush")  # a small store is in the log
  drill.stop()
  objects = drill.objects()
  entries = blocks_of(drill.cube / "tree", "entries")
  with open(drill.cube / "tree", "r+b") as file:
    drill.check(len(entries) >= 3, "its entries are in the tree", str(len(entries)))
    for at in entries[1::3]:  # the first has the collections: without them nothing opens
      file.seek(at)
      file.write(bytes(BLOCK))
  said = drill.tool("fsck", drill.base, status=1)
  drill.says(said, "metadata_unreadable", "tree")
  drill.page_says("export --salvage", "make the OSD anew")
  drill.export(1, objects // 2)
  drill.make_anew()


@accident("The quarantine is damaged")
def quarantine(drill):
  drill.stop()
  path = drill.cube / "containers" / "quarantine"
  path.write_bytes(b"\xff" * 2 * BLOCK)
  drill.says(drill.refuses_to_start(), "quarantine", "remove")
  drill.page_says("remove the file")
  path.unlink()
  drill.start()


# -- programs and people ------------------------------------------------------------------------------------------


def version(drill, number, *words):
  drill.stop()
  path = drill.base / "superblock"
  good = path.read_bytes()
  path.write_bytes(with_version(good, number))
  drill.says(drill.refuses_to_start(), "superblock", f"format version {number}", *words)
  drill.says(drill.tool("repair", drill.base, status=2), f"format version {number}")
  drill.check(path.read_bytes() == with_version(good, number), "nothing was changed")
  path.write_bytes(good)
  drill.start()


@accident("A newer program wrote the store", quick=True)
def newer(drill):
  drill.page_says("the newer program")
  version(drill, 99, "newer program")


@accident("A program of long ago wrote the store")
def older(drill):
  drill.page_says("the program that wrote it", "export")
  version(drill, 1, "export")


@accident("The files have the wrong owner")
def wrong_owner(drill):
  drill.stop()
  said = drill.tool("info", drill.base, status=2, user=NOBODY)
  drill.says(said, drill.base, "ermission denied")
  drill.page_says("chown -R")
  host("chown", "-R", f"{NOBODY}:{NOBODY}", drill.base)
  drill.tool("fsck", drill.base, status=0, user=NOBODY)
  drill.tool("repair", drill.base, status=0)  # by root, whose files the owner must be able to open
  drill.tool("fsck", drill.base, status=0, user=NOBODY)
  host("chown", "-R", "0:0", drill.base)
  drill.start()


@accident("Two programs want the store at once")
def two_at_once(drill):
  for command in (["fsck"], ["repair"], ["import", "--in", "/dev/null"]):
    drill.says(drill.tool(*command, drill.base, status=2), drill.base, "in use by another process")
  drill.page_says("stop the OSD")
  drill.stop()
  holder = subprocess.Popen(["flock", "--exclusive", drill.base / "lock", "-c", "echo held; read x"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
  holder.stdout.readline()
  drill.says(drill.refuses_to_start(), "in use")
  holder.communicate("\n")
  drill.start()


@accident("The file system is read-only")
def read_only(drill):
  drill.stop()
  host("mount", "-o", "remount,ro", drill.base)
  try:
    drill.says(drill.refuses_to_start(), drill.base, "read-only", "remount")
  finally:
    host("mount", "-o", "remount,rw", drill.base)
  drill.page_says("remount read-write")
  drill.start()


@accident("The host makes the file system read-only")
def made_read_only(drill):
  """As ext4 does when it meets damage of its own, below an OSD that writes."""
  disk = drill.cluster.disk(drill.osd)
  host("mount", "-o", "remount,errors=remount-ro", drill.base)
  pathlib.Path("/sys/fs/ext4", pathlib.Path(disk.device()).name, "trigger_fs_error").write_text("1")
  drill.write()
  deadline = time.monotonic() + 60
  while drill.cluster.osd_alive(drill.osd) and time.monotonic() < deadline:
    time.sleep(0.5)
  drill.check(not drill.cluster.osd_alive(drill.osd), "the OSD ends when it is to write")
  drill.says(drill.cluster.log_tail(f"osd.{drill.osd}", lines=1000), "FATAL", "Read-only file system")
  drill.stop()
  host("umount", drill.base)
  host("e2fsck", "-fy", disk.image, status=(0, 1))
  disk.attach()
  disk.mount(drill.base, "ext4")
  drill.page_says("kernel's log", "check the file system")
  drill.start()


# -- cut short ----------------------------------------------------------------------------------------------------


@accident("A repair was cut short")
def repair_cut_short(drill):
  drill.stop()
  mark = drill.base / "repair_unfinished"
  for attempt in range(40):
    drill.orphan(20)
    drill.kill_tool(mark, 0.002 * (attempt % 20), "repair", drill.base)
    if mark.exists():
      break
  if drill.check(mark.exists(), "it was killed at work"):
    drill.says(drill.refuses_to_start(), "repair", drill.base)
  drill.page_says("repair again")
  drill.tool("repair", drill.base, status=0)
  drill.tool("fsck", "--deep", drill.base, status=0)
  drill.start()


@accident("mkfs was cut short")
def mkfs_cut_short(drill):
  drill.stop()
  another = drill.base / "another"
  another.mkdir()
  half = 0
  for attempt in range(40):
    if drill.kill_tool(another / "mkfs_unfinished", 0.002 * (attempt % 20), "mkfs", another):
      half += any(another.iterdir())
    else:  # it came to its end
      shutil.rmtree(another)
      another.mkdir()
    if half == 3:
      break
  drill.check(half, "it was killed at work")
  drill.page_says("run it again")
  drill.tool("mkfs", another, status=0)
  drill.tool("fsck", "--deep", another, status=0)
  shutil.rmtree(another)
  drill.start()


@accident("import was cut short")
def import_cut_short(drill):
  drill.stop()
  objects = drill.objects()
  archive = drill.scratch / "archive"
  drill.tool("export", drill.base, "--out", archive, status=0)
  another = drill.base / "another"
  another.mkdir()
  drill.tool("mkfs", another, status=0)
  for attempt in range(30):
    drill.kill_tool(another / "import_unfinished", 0.002 * attempt, "import", another, "--in", archive)
    there = drill.tool_json("info", another, status=0).get("objects", 0)
    if 0 < there < objects:
      break
    shutil.rmtree(another)
    another.mkdir()
    drill.tool("mkfs", another, status=0)
  drill.check(0 < there < objects, "it was killed at work", f"{there} of {objects} objects are there")
  drill.page_says("run it again")
  said = drill.tool_json("import", another, "--in", archive, status=1)
  drill.check(all("is there already" in line["text"] for line in said.get("omitted", [])), "what was there is named",
              str(said)[:500])
  drill.tool("fsck", "--deep", another, status=0)
  drill.check(drill.tool_json("info", another, status=0).get("objects") == objects, f"all {objects} objects are there")
  shutil.rmtree(another)
  drill.start()


# -- a full disk --------------------------------------------------------------------------------------------------


@accident("The disk is full in mkfs")
def full_in_mkfs(drill):
  drill.stop()
  another = drill.base / "another"
  another.mkdir()
  fill(drill.base / "ballast")
  try:
    drill.says(drill.tool("mkfs", another, status=2), another, "No space left")
  finally:
    (drill.base / "ballast").unlink()
  drill.page_says("run it again")
  drill.tool("mkfs", another, status=0)
  shutil.rmtree(another)
  drill.start()


@accident("The disk is full in repair")
def full_in_repair(drill):
  drill.stop()
  objects = drill.objects()
  drill.orphan(20)
  drill.tool("fsck", drill.base, status=1)
  fill(drill.base / "ballast")
  try:
    drill.tool("repair", drill.base, status=0)
    drill.tool("fsck", "--deep", drill.base, status=0)
  finally:
    (drill.base / "ballast").unlink()
  drill.page_says("repair again")
  drill.check(drill.objects() == objects, f"all {objects} objects are there")
  drill.start()


@accident("The disk is full in export")
def full_in_export(drill):
  drill.stop()
  out = drill.base / "archive"
  fill(drill.base / "ballast")
  try:
    drill.says(drill.tool("export", drill.base, "--out", out, status=2), out, "room", "No space left")
  finally:
    (drill.base / "ballast").unlink()
  drill.page_says("a place with more room")
  drill.tool("export", drill.base, "--out", drill.scratch / "archive", status=0)
  out.unlink(missing_ok=True)
  drill.start()


def run(scenario):
  chosen = [(title, function) for title, quick, function in ACCIDENTS
            if (quick or not scenario.args.quick)
            and any(word in function.__name__ for word in scenario.args.only.split(","))]
  page = read_page()
  count = 100 if scenario.args.quick else 300
  scenario.say(f"{len(chosen)} accidents, {count} objects")
  cluster = scenario.start(osds=OSDS, conf={"osd fast shutdown": "false"})
  cluster.create_pool(POOL, pg_num=8, size=3)
  cluster.wait_clean()
  subprocess.run(sysroot.command(["python3", LOAD, "write", cluster.dir / "ceph.conf", POOL, count, 0]), check=True,
                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=300)
  for number, (title, function) in enumerate(chosen):
    osd = number % OSDS
    scenario.say(f"-- {title}: osd.{osd}")
    drill = Drill(scenario, cluster, count, title, osd, page)
    try:
      function(drill)
      drill.all_right()
    except Exception as error:  # whatever it was, the next accident has its turn
      drill.check(False, "the way out is gone to its end", str(error)[-1500:])
      cluster.stop_osd(osd)
      if os.path.ismount(drill.base):
        subprocess.run(["mount", "-o", "remount,rw", drill.base], check=False)
      drill.make_anew()
      drill.all_right()
  scenario.check_daemons()
  scenario.deep_scrub()


if __name__ == "__main__":
  scenario_module.main("bad-day", run, __doc__, stores=("swimstore",), options=(
      (("--only",), {"default": "", "help": "the accidents whose function's name has one of these in it, with commas between"}),))
