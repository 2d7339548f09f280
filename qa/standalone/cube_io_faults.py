# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads, writes and syncs of one cube's files fail below its OSD, while that serves or when it starts.

For cube-faults.py. The disks are fault_disk's: they fail what touches the blocks of one file, the n-th time or
always. Whatever becomes of the OSD, it is started again: a few times with a fault that stays, then without.
"""

import collections
import contextlib
import dataclasses
import os
import queue
import subprocess
import threading
import time

import admin_socket
import sysroot
from fault_disk import ALWAYS, ranges_of
from loop_disk import unmount
from sysroot import UserError

OSDS = 3
STARTS_WITH_FAULT = 2
STARTS_UNREADABLE = 4  # one that meets the damage a block at a time
MEET_S = 4  # that a fault may wait for what it fails
LINGER_S = 1  # that one which stays goes on when the OSD lives
SCRUB_EACH = 40  # faults
SERVED_S = 120  # an order to the load


def forget_cached(path):
  """Its next read is one of the device."""
  with open(path, "rb") as file:
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@dataclasses.dataclass(frozen=True)
class IoKind:
  file: str  # log, tree, manifest, header, data
  io: str  # read, write, sync
  at_start: bool = False
  always: bool = False

  @property
  def name(self):
    return (f"{self.io} of {self.file}, {'at the start' if self.at_start else 'running'}, "
            f"{'always' if self.always else 'once'}")

  @property
  def nth_max(self):
    """Few are asked of some files."""
    return {"header": 1, "manifest": 2, "tree": 2}.get(self.file, 2 if self.io == "read" else 4)

  @property
  def starts_with_fault(self):
    """So often it is started before the fault is taken away."""
    return STARTS_UNREADABLE if self.io == "read" else STARTS_WITH_FAULT

  @property
  def costs_cube(self):
    """If it is met: the OSD serves, and without this cube."""
    return self.io == "read" and self.file != "data" and self.at_start and self.always

  @property
  def is_read_running(self):
    return self.io == "read" and not self.at_start

  @property
  def is_confined(self):
    """A sync's failure is the OSD's."""
    return self.io != "sync"


# What is never read or written at that time is left out.
RUNNING = (("log", "write"), ("log", "sync"), ("tree", "read"), ("tree", "write"), ("tree", "sync"), ("manifest", "write"),
           ("manifest", "sync"), ("data", "read"), ("data", "write"), ("data", "sync"))
AT_START = (("log", "read"), ("log", "write"), ("log", "sync"), ("tree", "read"), ("manifest", "read"), ("header", "read"),
            ("data", "read"))
KINDS = tuple(IoKind(file, io, at_start, always) for at_start, pairs in ((False, RUNNING), (True, AT_START))
              for file, io in pairs for always in (False, True))
QUICK = (IoKind("tree", "read"), IoKind("log", "write", always=True), IoKind("log", "read", at_start=True, always=True))


class LoadFailed(Exception):
  """Without it nothing can be judged any more."""


class ServedLoad:
  """acked_load.py serve."""

  def __init__(self, command):
    self._process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT)
    self._lines = queue.Queue()
    self._owed = 0  # answers
    self._answered = threading.Event()  # the last order was, though nobody asked for it yet
    threading.Thread(target=self._read, daemon=True).start()

  def _read(self):
    for line in self._process.stdout:
      self._lines.put(line.rstrip("\n"))
      if line == "done\n":
        self._answered.set()
    self._lines.put(None)
    self._answered.set()

  def is_idle(self):
    return self._answered.is_set()

  def tell(self, order):
    self._owed += 1
    self._answered.clear()
    self._process.stdin.write(order + "\n")
    self._process.stdin.flush()

  def answer(self):
    """The lines to the last order."""
    lines = []
    deadline = time.monotonic() + SERVED_S
    while True:
      try:
        line = self._lines.get(timeout=max(0, deadline - time.monotonic()))
      except queue.Empty:
        raise LoadFailed(f"the load does not answer in {SERVED_S} s; so far: {lines[-3:]}") from None
      if line is None:
        raise LoadFailed(f"the load ended: {lines[-5:]}")
      if line == "done":
        self._owed -= 1
        return lines
      lines.append(line)

  def settle(self):
    """Nothing is under way, and it waits for an order."""
    while self._owed:
      self.answer()
    self.order("stop")

  def order(self, order):
    self.tell(order)
    return self.answer()

  def end(self):
    """What it knows is saved."""
    self._process.stdin.close()
    self._process.wait(timeout=60)

  def kill(self):
    if self._process.poll() is None:
      self._process.kill()
      self._process.wait()


class IoFaults:
  """One after the other. `faults`: cube-faults.py's, for what both do."""
  COLUMNS = {"times": "times", "met": "met", "ended": "OSD ended", "abandoned": "cube given up",
             "confined": "as it should be", "wrong": "objects wrong", "lost": "lost", "seconds": "seconds"}

  def __init__(self, scenario, cluster, faults):
    self.scenario = scenario
    self.cluster = cluster
    self.faults = faults
    self.rng = scenario.rng
    self.table = {}
    self._row = collections.Counter()
    self._failed = 0  # I/Os, by the fault under way
    self._starts_with_fault = STARTS_WITH_FAULT
    self._load = None
    self._pgs = set()

  def check(self, good, claim, detail=""):
    """Only what fails is told: there are hundreds of faults."""
    if good:
      self.scenario.held += 1
    else:
      self.scenario.check(False, f"{self.faults.what}: {claim}", detail)
    return good

  # -- all of them -------------------------------------------------------------------------------------------

  def run(self, plan, seconds):
    """`plan`: (kind, cube) each, as far as the time reaches."""
    begun = time.monotonic()
    deadline = begun + seconds
    self._pgs = set().union(*(self.faults.pg_states(osd) for osd in range(OSDS)))
    self._load = ServedLoad(self.faults.acked_load("serve"))
    done = 0
    try:
      for kind, cube in plan:
        if time.monotonic() > deadline:
          self.scenario.say(f"the time is over after {done} of {len(plan)} faults")
          break
        self._one(kind, cube)
        done += 1
        if self.has_lost():
          self.scenario.say("what was acknowledged is not there: no use to go on")
          return
        if done % SCRUB_EACH == 0:
          self._scrub()
      self._load.end()
      self.faults.all_right("after all faults below running OSDs")
    except LoadFailed as error:
      self.check(False, "the load goes on", str(error))
    finally:
      self._load.kill()
      self._clear_all()
      met = sum(row["met"] for row in self.table.values())
      self.scenario.check(2 * met > done, f"{done} faults of I/O in {time.monotonic() - begun:.0f} s, {met} of them met")

  def has_lost(self):
    return any(row["wrong"] or row["lost"] for row in self.table.values())

  def _clear_all(self):
    for osd in range(OSDS):
      with contextlib.suppress(UserError):
        self.cluster.disk(osd).clear()

  def _scrub(self):
    self.faults.what = "scrub"
    self.faults.all_right("objects that were written once", changing=False)
    self.scenario.deep_scrub()

  # -- one of them -------------------------------------------------------------------------------------------

  def _one(self, kind, cube):
    begun = time.monotonic()
    self._row = self.table.setdefault(kind.name, collections.Counter())
    self._row["times"] += 1
    failures = self.scenario.failures
    osd = self._osd_with(cube)
    self.faults.what = f"{kind.name}: cube {cube} of osd.{osd}"
    told = "?"
    try:
      told = self._fault(kind, osd, cube)
    except (UserError, OSError, sysroot.CommandFailed, subprocess.SubprocessError, admin_socket.NotAnswering) as error:
      self.check(False, "goes to its end", f"{type(error).__name__}: {str(error)[:600]}\n{self._last_words(osd)}")
      self._rescue(osd)
    took = time.monotonic() - begun
    self._row["seconds"] += took
    good = self.scenario.failures == failures
    self._row["confined"] += good
    self.scenario.say(f"{'ok  ' if good else 'FAIL'} {self.faults.what}: {told} ({took:.1f} s)")

  def _last_words(self, osd):
    """What the OSD's log says last of errors."""
    lines = self.cluster.log_tail(f"osd.{osd}", 20_000).splitlines()
    told = [line for line in lines if not line.startswith(" ") and ("FATAL" in line or " -1 " in line[:60])]
    return "\n".join(line[:400] for line in told[-6:])

  def _osd_with(self, cube):
    """One of which placement groups lie in this cube: if it can be, with a primary among them, which clients read."""
    found = []
    for osd in self.rng.sample(range(OSDS), OSDS):
      homes, states = self.cluster.homes(osd), self.faults.pg_states(osd)
      there = [states[pg][0] for pg, home in homes.items() if home == cube and pg in states]
      if any(state.startswith("Started/Primary") for state in there):
        return osd
      found += [osd] if there else []
    if found:
      return found[0]
    osd = self.rng.randrange(OSDS)
    self.cluster.stop_osd(osd)
    self.faults.remake(osd)
    return osd

  def _rescue(self, osd):
    """The next fault shall find all as it should be."""
    self._clear_all()
    if self.cluster.osd_alive(osd):
      self.cluster.kill_osd(osd)
    self._remount_if_broken(osd)
    self.faults.remake(osd)
    self._load.settle()

  def _fault(self, kind, osd, cube):
    self._failed = 0
    self._starts_with_fault = kind.starts_with_fault
    homes = self.cluster.homes(osd)
    nth = self.rng.randint(1, kind.nth_max)
    self._load.order("load")
    time.sleep(self.rng.uniform(0.1, 0.5))
    ended, took = 0, 0
    if kind.at_start:
      # Only after a crash a start reads data.
      self.rng.choice((self.cluster.stop_osd, self.cluster.kill_osd)[kind.file == "data":])(osd)
      file = self._set(kind, osd, cube, nth)
      ended, took = self._start(osd, cube, homes)
    else:
      file = self._meet(kind, osd, cube, nth)
      if self.cluster.osd_crashed(osd):
        ended, took = self._start(osd, cube, homes, 1)
    # It may end later: for a replica's read, or when the load goes on.
    if kind.is_read_running:
      self._compare(self._load.answer(), "meanwhile")
    else:
      self._stop_load()
    if self.cluster.osd_crashed(osd):
      ended, took = self._start(osd, cube, homes, ended + 1)
    self._clear(osd)
    if self.cluster.osd_crashed(osd):
      ended, took = self._start(osd, cube, homes, ended + 1)
    self._until_clean()
    self._compare(self._load.order("verify"), "at the end")
    abandoned = self._judge(kind, osd, cube, homes, ended, took)
    self._row["met"] += self._failed > 0
    self._row["ended"] += ended > 0
    self._row["abandoned"] += abandoned
    told = f"failed {self._failed} times" if self._failed else "not met"
    if ended:
      told += f", ended {ended} times"
    if took:
      told += f", others active after {took:.1f} s"
    return f"{file}, number {nth}: {told}" + (", cube given up" if abandoned else "")

  def _clear(self, osd):
    self._failed += self.cluster.disk(osd).clear()

  def _set(self, kind, osd, cube, nth):
    """Tells the disk; which file it is."""
    folder = self.faults.cube_dir(osd, cube)
    if kind.file == "log":
      files = sorted((folder / "log").glob("*.log"))
    elif kind.file == "data":
      containers = [path for path in (folder / "containers").iterdir() if path.name[0].isdigit()]
      files = sorted(path for path in containers if path.stat().st_blocks)
      if self.rng.random() < 0.5:
        files = [self.rng.choice(files)]
    else:
      files = [folder / ("containers/header" if kind.file == "header" else kind.file)]
    if kind.at_start:
      for file in files:
        forget_cached(file)
    self._clear(osd)
    self.cluster.disk(osd).fail(kind.io, [span for file in files for span in ranges_of(file)], nth,
                                ALWAYS if kind.always else 1)
    return files[0].name if len(files) == 1 else f"{len(files)} files"

  def _meet(self, kind, osd, cube, nth):
    """Sets the fault, and asks for what fails until it has; what _set() says."""
    disk = self.cluster.disk(osd)
    if kind.is_read_running:
      self._stop_load()
    if kind.file == "tree":
      # What a compaction frees is the file system's again, and another file's soon. So that comes first.
      self.cluster.ask_osd(osd, "compact", timeout=60)
    begun = asked = time.monotonic()
    file = self._set(kind, osd, cube, nth)
    if kind.io == "read":
      self._load.tell("verify")
    self._provoke(kind, osd)
    while time.monotonic() - begun < MEET_S and not self.cluster.osd_crashed(osd):
      if disk.failed():
        # The OSD may be ending, or go on.
        end = time.monotonic() + LINGER_S
        while time.monotonic() < end and not self.cluster.osd_crashed(osd):
          time.sleep(0.05)
        break
      if kind.io == "read" and self._load.is_idle():
        break
      if kind.io != "read" and time.monotonic() - asked > 1:
        asked = time.monotonic()
        file = self._set(kind, osd, cube, nth)  # the file may lie elsewhere now
        self._provoke(kind, osd)
      time.sleep(0.05)
    return file

  def _provoke(self, kind, osd):
    with contextlib.suppress(admin_socket.NotAnswering):  # it may have ended
      if kind.file in ("tree", "manifest"):
        self.cluster.ask_osd(osd, "compact", timeout=60)
      if kind.io == "read":
        self.cluster.ask_osd(osd, "flush_store_cache")

  def _start(self, osd, cube, homes, ended=0):
    """Until it runs: (how often it ended in all, seconds until groups of its other cubes are active)."""
    others = [pg for pg, home in homes.items() if home != cube]
    while True:
      if ended >= self._starts_with_fault:
        self._clear(osd)
      self._remount_if_broken(osd)
      begun = time.monotonic()
      try:
        self.cluster.start_osd(osd, self.faults.INCOMPLETE)
        self.cluster.wait_up(osds=[osd])
        while True:
          states = self.faults.pg_states(osd)
          if all(self.faults.is_active(states.get(pg, ("absent", []))[0]) for pg in others):
            return ended, time.monotonic() - begun
          if time.monotonic() - begun > 60:
            raise UserError(f"groups of other cubes are not active after a minute: {states}")
          time.sleep(0.05)
      except (UserError, admin_socket.NotAnswering):
        time.sleep(0.2)  # it may be about to end
        if self.cluster.osd_alive(osd) or ended > self._starts_with_fault:
          raise
        ended += 1

  def _remount_if_broken(self, osd):
    """A file system whose journal could not be synced refuses to be written."""
    probe = self.cluster.osd_dir(osd) / "probe"
    try:
      probe.touch()
      probe.unlink()
    except OSError:
      self._clear(osd)
      unmount(self.cluster.osd_dir(osd))
      self.cluster.disk(osd).mount(self.cluster.osd_dir(osd), self.cluster.spec.fs)

  def _stop_load(self):
    said = self._load.order("stop")
    self.check(not said, "no operation failed", "\n".join(said))

  def _compare(self, lines, when):
    bad = [line for line in lines if line.startswith("acked")]
    lost = [line for line in bad if "found nothing" in line or "ObjectNotFound" in line]
    self._row["lost"] += len(lost)
    self._row["wrong"] += len(bad) - len(lost)
    self.check(not bad and lines, f"{when}: {lines[-1] if lines else 'nothing'}", "\n".join(bad[:10]))

  def _until_clean(self, timeout=120):
    """By the OSDs themselves: the manager's statistics come seconds later."""
    deadline = time.monotonic() + timeout
    while True:
      missing = self._not_clean()
      if not missing:
        return
      if time.monotonic() > deadline:
        raise UserError(f"not active+clean after {timeout} s: {missing}")
      time.sleep(0.1)

  def _not_clean(self):
    """Groups of which not one OSD is a clean primary, and all others active replicas."""
    primaries, replicas = set(), collections.Counter()
    for osd in range(OSDS):
      for pg, (state, _) in self.faults.pg_states(osd).items():
        if state == "Started/Primary/Active/Clean":
          primaries.add(pg)
        replicas[pg] += state.startswith("Started/ReplicaActive")
    return sorted(pg for pg in self._pgs if pg not in primaries or replicas[pg] != OSDS - 1)

  # -- what should have come of it ---------------------------------------------------------------------------

  def _judge(self, kind, osd, cube, homes, ended, took):
    """Whether the cube was given up."""
    mark = self.faults.mark(osd, cube)
    abandoned = mark.startswith("abandoned: ")
    marks = self.faults.marks(osd)
    if kind.is_confined:
      self.check(marks == ([f"cube_{cube}_failed"] if mark else []), "no other cube is marked", str(marks))
      self.faults.others_untouched(osd, cube, homes, self.check)
    else:
      self.check(not marks, "a sync that failed costs no cube", f"{marks}: {mark}")
    if took:
      self._judge_time(osd, took)
    self._judge_osd(kind, ended, mark)
    if mark:
      self._make_whole(osd, cube, abandoned)
    return abandoned

  def _judge_time(self, osd, took):
    """What is whole is there as soon as after any start."""
    bar_s = self.faults.bar_s
    for _ in range(2):
      if took <= self.scenario.start_s + bar_s:
        break
      # The machine may be slower than when that was measured: the same without a fault, under load as well.
      homes = self.cluster.homes(osd)
      self._load.order("load")
      self.cluster.kill_osd(osd)
      time.sleep(1)
      self.scenario.start_s = self._start(osd, None, homes)[1]
      self._stop_load()
      self._until_clean()
    self.check(took <= self.scenario.start_s + bar_s,
               f"groups of its other cubes are active {took:.1f} s after its start; without a fault "
               f"{self.scenario.start_s:.1f} s")

  def _judge_osd(self, kind, ended, mark):
    if not self._failed:
      self.check(not ended, "nothing failed, and the OSD lives")
    elif kind.costs_cube:
      self.check(mark.startswith("abandoned: "), "the OSD serves the other cubes", mark or f"it ended {ended} times")
    elif kind.file == "data" and kind.io == "read":
      self.check(not ended and not mark, "an unreadable block ends no OSD", f"ended {ended} times, {mark}")
    elif kind.io == "write":
      # One that does not let a start write its log does not open; while it serves a failed write is no damage.
      self.check(not mark or (kind.file == "log" and (kind.at_start or kind.always)), "a failed write is no damage", mark)

  def _make_whole(self, osd, cube, abandoned):
    """The cube made anew, and groups in it again."""
    self.cluster.stop_osd(osd)
    if abandoned:
      status, said = self.faults.tool(osd, "reset", "--cube", cube)
      self.check(status == 0 and not self.faults.marks(osd), "reset makes the cube anew", f"exit {status}: {said[-500:]}")
      status, said = self.faults.tool(osd, "balance")
      self.check(status == 0, "balance puts groups into it", f"exit {status}: {said[-500:]}")
    self.cluster.start_osd(osd, self.faults.INCOMPLETE)
    self.cluster.wait_up(osds=[osd])
    self.check(not self.faults.marks(osd), "no mark is left", str(self.faults.marks(osd)))
    self._until_clean()
