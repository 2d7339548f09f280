# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads, writes and syncs of one cube's files fail below its OSD, while that serves or when it starts.

For cube-faults.py. The disks are fault_disk's: they fail what touches the blocks of one file, the n-th time or
always. Whatever becomes of the OSD, it is started again: a few times with a fault that stays, then without.
"""

import collections
import contextlib
import dataclasses
import json
import os
import subprocess
import time

import admin_socket
import sysroot
from bit_rot import repair_by_scrub
from fault_disk import ALWAYS, ranges_of
from loop_disk import unmount
from served_load import LoadFailed, ServedLoad
from sysroot import UserError

OSDS = 3
STARTS_WITH_FAULT = 2
STARTS_UNREADABLE = 4  # one that meets the damage a block at a time
MEET_S = 4  # that a fault may wait for what it fails
TRIED_ENOUGH = 3  # that a kind has to be met once
LINGER_S = 1  # that one which stays goes on when the OSD lives
SCRUB_EACH = 40  # faults
TRIED_AGAIN = "has failed ("  # what the OSD's log says of work in the background

TROUBLE = (UserError, OSError, sysroot.CommandFailed, subprocess.SubprocessError, admin_socket.NotAnswering, ValueError,
           LookupError)


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
    """Few are asked of some files, and at some times."""
    if self.file == "header" or (self.file == "data" and self.at_start):
      return 1
    return 2 if self.file in ("manifest", "tree") or self.io == "read" else 4

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


@dataclasses.dataclass
class Course:
  """Of a fault: what came of it so far."""
  file: str = ""  # in which it is
  failed: int = 0  # I/Os
  ended: int = 0  # times
  took: float = 0  # seconds of the slowest start, until groups of the other cubes were active; 0: none
  filled_before: set = dataclasses.field(default_factory=set)  # groups backfilled on the OSD as it runs, by then
  filled: set = dataclasses.field(default_factory=set)  # and since
  log_bytes: int = 0  # of the OSD, before
  abandoned: bool = False

  def __str__(self):
    told = f"{self.file}: " + (f"failed {self.failed} times" if self.failed else "not met")
    if self.ended:
      told += f", ended {self.ended} times"
    if self.took:
      told += f", others active after {self.took:.1f} s"
    return told + (", cube given up" if self.abandoned else "")


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
    self._course = Course()  # of the fault under way
    self._starts_with_fault = STARTS_WITH_FAULT
    self._load = None
    self._pgs = set()
    self._osd = None  # the one below which the fault is
    self._unread = set()  # OSDs below which reads of data have failed since the last scrub

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
        if done % SCRUB_EACH == 0:
          self._scrub()
        if self.has_lost():
          self.scenario.say("what was acknowledged is not there: no use to go on")
          return
      self._load.end()
      self.faults.what = "after all faults below running OSDs"
      self.faults.all_right("at the end")
      self._deep_scrub()
    except (LoadFailed, *TROUBLE) as error:
      self.check(False, "the next fault can be tried", f"{type(error).__name__}: {str(error)[:600]}")
    finally:
      self._load.kill()
      self._clear_all()
      met = sum(row["met"] for row in self.table.values())
      unmet = [name for name, row in self.table.items() if row["times"] >= TRIED_ENOUGH and not row["met"]]
      self.scenario.check(not unmet, f"each kind of fault that was tried {TRIED_ENOUGH} times was met once", str(unmet))
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
    self._deep_scrub()

  def _deep_scrub(self):
    """A block that cannot be read to be merged with a write stays unreadable until it is repaired, also in a clone that
    shares it. Clients are served by the other copies; so a scrub may be the first to find it, and nothing else."""
    errors = self.scenario.deep_scrub_errors()
    if errors and self._unread:
      self.check(self._are_unmerged(errors), "a scrub finds but blocks that could not be merged with a write", str(errors))
      repair_by_scrub(self.scenario, self.cluster, set(errors), f"what could not be merged on {sorted(self._unread)}")
    self._unread.clear()
    self._row["wrong"] += self.scenario.deep_scrub()

  def _are_unmerged(self, pgs):
    """All errors are reads of OSDs below which reads of data have failed since the last scrub."""
    for pg in pgs:
      found = json.loads(self.cluster.client("rados", "list-inconsistent-obj", pg, "--format=json"))["inconsistents"]
      bad = [shard for item in found for shard in item["shards"] if shard["errors"]]
      if (not bad or any(item["errors"] for item in found) or
          any(shard["errors"] != ["read_error"] or shard["osd"] not in self._unread for shard in bad)):
        return False
    return True

  # -- one of them -------------------------------------------------------------------------------------------

  def _one(self, kind, cube):
    begun = time.monotonic()
    # What is found later, by a scrub or at the end, counts for the last fault before.
    self._row = self.faults.row = self.table.setdefault(kind.name, collections.Counter())
    self._row["times"] += 1
    failures = self.scenario.failures
    osd = self._osd = self._osd_with(cube)
    self.faults.what = f"{kind.name}: cube {cube} of osd.{osd}"
    self._course = Course()
    try:
      self._fault(kind, osd, cube)
    except TROUBLE as error:
      self.check(False, "goes to its end", f"{type(error).__name__}: {str(error)[:600]}\n{self._last_words(osd)}")
      self._rescue(osd)
    took = time.monotonic() - begun
    self._row["seconds"] += took
    good = self.scenario.failures == failures
    self._row["confined"] += good
    self.scenario.say(f"{'ok  ' if good else 'FAIL'} {self.faults.what}: {self._course} ({took:.1f} s)")

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
    course = self._course
    course.log_bytes = self._log(osd).stat().st_size
    self._starts_with_fault = kind.starts_with_fault
    course.filled_before = self.faults.backfilled(self.faults.pg_states(osd))
    homes = self.cluster.homes(osd)
    nth = self.rng.randint(1, kind.nth_max)
    self._load.order("load")
    time.sleep(self.rng.uniform(0.1, 0.5))
    if kind.at_start:
      if kind.file == "tree":
        self.cluster.ask_osd(osd, "compact", timeout=60)  # there is one
      # Only after a crash a start reads data.
      self.rng.choice((self.cluster.stop_osd, self.cluster.kill_osd)[kind.file == "data":])(osd)
      self._set(kind, osd, cube, nth)
      self._start(osd, cube, homes)
    else:
      self._meet(kind, osd, cube, nth)
      self._start_if_ended(osd, cube, homes)
    # It may end later: for a replica's read, or when the load goes on.
    if kind.is_read_running:
      self._compare(self._load.answer(), "meanwhile")
    else:
      self._stop_load()
    with contextlib.suppress(admin_socket.NotAnswering):  # it may have ended, and what it did is lost with it
      self._note_filled(self.faults.pg_states(osd))
    self._start_if_ended(osd, cube, homes)
    self._clear(osd)
    self._start_if_ended(osd, cube, homes)
    try:
      self._until_clean()
    except admin_socket.NotAnswering:  # it was ending when the fault was taken away
      time.sleep(LINGER_S)
      self._start_if_ended(osd, cube, homes)
      self._until_clean()
    self._forget_cached()
    self._compare(self._load.order("verify"), "at the end")
    self._judge(kind, osd, cube, homes)
    self._row["met"] += course.failed > 0
    if course.failed and kind.file == "data" and kind.io == "read":
      # Ceph's OSD ends where it is to send a clone to a peer and cannot read it (18.2.7, ObcLockManager).
      self._unread.add(osd)
      self._deep_scrub()
    self._row["ended"] += course.ended > 0
    self._row["abandoned"] += course.abandoned

  def _forget_cached(self):
    """What is verified now is read from the disks."""
    for osd in range(OSDS):
      self.cluster.ask_osd(osd, "flush_store_cache")

  def _log(self, osd):
    return self.cluster.dir / "log" / f"osd.{osd}.log"

  def _clear(self, osd):
    self._course.failed += self.cluster.disk(osd).clear()

  def _set(self, kind, osd, cube, nth):
    """Tells the disk."""
    folder = self.faults.cube_dir(osd, cube)
    if kind.file == "log":
      files = sorted((folder / "log").glob("*.log"))
    elif kind.file == "data":
      containers = [path for path in (folder / "containers").iterdir() if path.name[0].isdigit()]
      files = sorted(path for path in containers if path.stat().st_blocks)
    else:
      files = [folder / ("containers/header" if kind.file == "header" else kind.file)]
    if kind.at_start:
      for file in files:
        forget_cached(file)
    ranges = {file: ranges_of(file) for file in files}
    there = [file for file in files if ranges[file]]
    if not there:
      raise UserError(f"nothing of {kind.file} lies on the disk: {[file.name for file in files]}")
    if kind.file == "data" and not kind.at_start and self.rng.random() < 0.5:
      there = [self.rng.choice(there)]
    self._clear(osd)
    self.cluster.disk(osd).fail(kind.io, [span for file in there for span in ranges[file]], nth,
                                ALWAYS if kind.always else 1)
    self._course.file = (there[0].name if len(there) == 1 else f"{len(there)} files") + f", number {nth}"

  def _meet(self, kind, osd, cube, nth):
    """Sets the fault, and asks for what fails until it has."""
    disk = self.cluster.disk(osd)
    if kind.is_read_running:
      self._stop_load()
    if kind.file == "tree":
      # What a compaction frees is the file system's again, and another file's soon. So that comes first.
      self.cluster.ask_osd(osd, "compact", timeout=60)
    begun = asked = time.monotonic()
    self._set(kind, osd, cube, nth)
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
        self._set(kind, osd, cube, nth)  # the file may lie elsewhere now
        self._provoke(kind, osd)
      time.sleep(0.05)

  def _provoke(self, kind, osd):
    with contextlib.suppress(admin_socket.NotAnswering):  # it may have ended
      if kind.file in ("tree", "manifest"):
        self.cluster.ask_osd(osd, "compact", timeout=60)
      if kind.io == "read":
        self.cluster.ask_osd(osd, "flush_store_cache")

  def _start_if_ended(self, osd, cube, homes):
    if self.cluster.osd_crashed(osd):
      self._course.ended += 1
      self._start(osd, cube, homes)

  def _start(self, osd, cube, homes):
    """Until it runs; the seconds until groups of its other cubes are active."""
    course = self._course
    others = [pg for pg, home in homes.items() if home != cube]
    while True:
      if course.ended >= self._starts_with_fault:
        self._clear(osd)
      self._remount_if_broken(osd)
      begun = time.monotonic()
      try:
        self.cluster.start_osd(osd, self.faults.INCOMPLETE)
        self.cluster.wait_up(osds=[osd])
        while True:
          states = self.faults.pg_states(osd)
          course.filled |= self.faults.backfilled(states)
          course.filled_before = set()  # it tells those since its start
          took = time.monotonic() - begun
          if all(self.faults.is_active(states.get(pg, ("absent", []))[0]) for pg in others):
            course.took = max(course.took, took)
            return took
          if took > 60:
            raise UserError(f"groups of other cubes are not active after a minute: {states}")
          time.sleep(0.05)
      except (UserError, admin_socket.NotAnswering):
        time.sleep(0.2)  # it may be about to end
        if self.cluster.osd_alive(osd) or course.ended > self._starts_with_fault:
          raise
        course.ended += 1

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

  def _note_filled(self, states):
    self._course.filled |= self.faults.backfilled(states) - self._course.filled_before

  def _not_clean(self):
    """Groups of which not one OSD is a clean primary, and all others active replicas."""
    primaries, replicas = set(), collections.Counter()
    for osd in range(OSDS):
      states = self.faults.pg_states(osd)
      if osd == self._osd:
        self._note_filled(states)
      for pg, (state, _) in states.items():
        if state == "Started/Primary/Active/Clean":
          primaries.add(pg)
        replicas[pg] += state.startswith("Started/ReplicaActive")
    return sorted(pg for pg in self._pgs if pg not in primaries or replicas[pg] != OSDS - 1)

  # -- what should have come of it ---------------------------------------------------------------------------

  def _judge(self, kind, osd, cube, homes):
    course = self._course
    mark = self.faults.mark(osd, cube)
    course.abandoned = mark.startswith("abandoned: ")
    marks = self.faults.marks(osd)
    if kind.is_confined:
      self.check(marks == ([f"cube_{cube}_failed"] if mark else []), "no other cube is marked", str(marks))
      self._note_filled(self.faults.pg_states(osd))
      self.faults.others_untouched(osd, cube, homes, self.check, course.filled)
    else:
      self.check(not marks, "a sync that failed costs no cube", f"{marks}: {mark}")
    self._judge_osd(kind, osd, mark)
    if course.took:
      self._judge_time(osd, course.took)
    if mark:
      self._make_whole(osd, cube, course.abandoned)

  def _judge_time(self, osd, took):
    """What is whole is there as soon as after any start."""
    bar_s, without_s = self.faults.bar_s, self.scenario.start_s
    for _ in range(2):
      if took <= without_s + bar_s:
        break
      # The machine may be slower than when that was measured: the same without a fault, under load as well.
      homes = self.cluster.homes(osd)
      self._load.order("load")
      self.cluster.kill_osd(osd)
      time.sleep(1)
      course, self._course = self._course, Course()
      without_s = max(without_s, self._start(osd, None, homes))
      self._stop_load()
      self._until_clean()
      self.check(not self._course.ended, "without a fault it starts")
      self._course = course
    self.check(took <= without_s + bar_s,
               f"groups of its other cubes are active {took:.1f} s after its start; without a fault {without_s:.1f} s")

  def _judge_osd(self, kind, osd, mark):
    """What doc/cubes.md says of a fault that was met."""
    course = self._course
    told = f"it ended {course.ended} times; {mark or 'no mark'}"
    if not course.failed:
      self.check(not course.ended and not mark, "nothing failed, and the OSD lives", told)
    elif kind.io == "read":
      self._judge_read(kind, mark, told)
    elif kind.io == "sync":
      self.check(course.ended, "a sync that fails ends the OSD", told)
    else:
      self._judge_write(kind, osd, mark, told)

  def _judge_read(self, kind, mark, told):
    ended, abandoned = self._course.ended > 0, mark.startswith("abandoned: ")
    if kind.costs_cube:
      self.check(abandoned, "the OSD serves the other cubes", told)
    elif kind.file == "data":
      self.check(not ended and not mark, "an unreadable block of data ends no OSD", told)
    elif not kind.always:
      self.check(not ended and not mark, "a read that fails once is tried again", told)
    else:
      # What only a compaction reads ends nothing.
      self.check(abandoned if ended else not mark, "the OSD ended and gave the cube up, or neither", told)

  def _judge_write(self, kind, osd, mark, told):
    if kind.at_start:
      # A cube that cannot write its log does not open.
      self.check(mark.startswith("abandoned: ") if kind.always else not mark, "a start writes the log, or gives the cube up",
                 told)
      return
    # Of what is written in the background some is tried again, which the log tells: a compaction, and zeros.
    self.check(self._course.ended or (kind.file != "manifest" and self._tried_again(osd)),
               "a failed write ends the OSD, unless it is told and tried again", told)
    self.check(not mark or (kind.file == "log" and kind.always and mark.startswith("abandoned: ")),
               "a failed write is no damage", told)

  def _tried_again(self, osd):
    """Whether the OSD's log tells, since the fault, of work in the background that failed."""
    with open(self._log(osd), errors="replace") as file:
      file.seek(self._course.log_bytes)
      return any(TRIED_AGAIN in line for line in file)

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
