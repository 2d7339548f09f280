#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""One cube of one OSD's store is damaged: the OSD serves what lies in its other cubes, and no object is lost.

The files of a cube are removed, overwritten or have bits flipped while their OSD is stopped, or blocks of its
tree are overwritten below the running OSD until that ends. Then the OSD starts again, told by
swimstore_mount_damaged_cubes=incomplete to do without. Each time: every acknowledged object reads right, at
once and when all placement groups are clean; the groups of its other cubes lie where they lay, and are not
filled anew; mark and alert name the cube, until it is reset. By default the OSD refuses to start.

First placement groups move between the cubes of an OSD under load, a few as they are told and then those that
`balance` chooses.

At last the history in which a lost cube is dangerous: what was written last lay there alone, or lies on an
OSD that is down, and one with an older copy is up. The group has to wait. Where nothing is known of a group,
for it was removed from the OSD, the older copy is served: so the test would notice.
"""

import collections
import contextlib
import dataclasses
import json
import pathlib
import random
import subprocess
import time

import cube_damage
import scenario as scenario_module
import admin_socket
import cube_io_faults
import sysroot
from cube_history import History
from scenario import CRASH_MARKS, UserError

OSDS = 3
CUBES = 4  # that hold placement groups: 1 to 4
PGS, PGS_QUICK = 32, 16
MOVED = 3
POOL = "acked"
MON_CONF = {"paxos propose interval": 0.1}  # a start waits for some maps: a second each, otherwise
LOAD = pathlib.Path(__file__).resolve().parent / "acked_load.py"
STILL_LOAD = LOAD.parent / "many_objects.py"
STILL_OBJECTS = 200  # that are written once: what is known of them lies in the tree
ALERT = "SWIMSTORE_CUBE_FAILED"
LAST_WORDS = "metadata cannot be read"
STARTS_MAX = 4  # until an OSD that meets the damage a block at a time has given the cube up
BAR_S = 5  # of a start with a damaged cube, beyond one without
QUICK_BAR_S = 60  # the test command shares its machine with others: there this bounds the wait, and no more


@dataclasses.dataclass
class Kind:
  name: str
  damage: object = None  # of cube_damage, while the OSD is stopped
  refused: bool = False  # whatever else is in the cube, it does not open
  settled: bool = False  # the tree holds all that there is
  blocks: tuple = ()  # of the tree, below the running OSD


STOPPED = (
    Kind("directory removed", cube_damage.remove_directory, refused=True),
    Kind("manifest removed", cube_damage.remove_manifest, refused=True),
    Kind("manifest overwritten", cube_damage.overwrite_manifest, refused=True),
    Kind("newest log segment overwritten", cube_damage.overwrite_newest_segment),
    Kind("containers' header overwritten", cube_damage.overwrite_container_header, refused=True),
    Kind("tree overwritten", cube_damage.overwrite_tree, settled=True),
    Kind("a third of the tree overwritten", cube_damage.overwrite_some_of_tree, settled=True),
    Kind("a third of the tree's entries overwritten", cube_damage.overwrite_entries, settled=True),
    Kind("bits flipped", cube_damage.flip_bits))
RUNNING = (
    Kind("running: a third of the entries overwritten", blocks=("entries",)),
    Kind("running: a third of the indexes overwritten", blocks=("index",)))


class Row(collections.Counter):
  """Of the table at the end."""
  COLUMNS = {"times": "times", "confined": "confined to the cube", "whole": "of these, cube found whole",
             "wrong": "objects wrong", "lost": "lost"}


class Faults:
  """Faults of one cube after the other, under one model of what was acknowledged."""
  INCOMPLETE = "--swimstore_mount_damaged_cubes=incomplete"

  def __init__(self, scenario, cluster):
    self.scenario = scenario
    self.cluster = cluster
    self.rng = scenario.rng
    self.table = {}
    self.what = ""  # the fault under way
    self._model = cluster.dir / "run" / "acked.model"
    self.row = Row()

  def check(self, good, claim, detail=""):
    return self.scenario.check(good, f"{self.what}: {claim}", detail)

  @property
  def bar_s(self):
    return QUICK_BAR_S if self.scenario.args.quick else BAR_S

  # -- load --------------------------------------------------------------------------------------------------

  def acked_load(self, mode):
    return sysroot.command(["python3", LOAD, mode, self.cluster.dir / "ceph.conf", POOL, self._model,
                            self.rng.randrange(1 << 32)])

  @contextlib.contextmanager
  def load(self):
    """Meanwhile objects change; then it is known what was acknowledged."""
    client = subprocess.Popen(self.acked_load("load"), text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
      if client.stdout.readline().strip() != "loading":
        raise UserError(f"the load does not start: {client.communicate()[0].strip()}")
      try:
        yield
      finally:
        said, _ = client.communicate(timeout=60)  # whatever came in between: what it did has to be known
    finally:
      if client.poll() is None:
        client.kill()
        client.wait()
    if client.returncode != 0:
      self.check(False, "no operation failed", said.strip())
    time.sleep(1)  # what the client sent last may still be under way

  def all_right(self, when, changing=True):
    """Reads every object and compares it with what was acknowledged; or only those that do not change."""
    if changing:
      self._all_changing_right(when)
    answers = self.still_load("read")
    self.row["lost"] += answers["absent"]
    self.row["wrong"] += answers["wrong"] + answers["refused"]
    if answers["right"] != STILL_OBJECTS:
      self.check(False, f"{when}: {STILL_OBJECTS} objects that were written once", str(answers))

  def _all_changing_right(self, when):
    done = subprocess.run(self.acked_load("verify"), text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900)
    lines = done.stdout.strip().splitlines() or ["no output"]
    bad = [line for line in lines if line.startswith("acked")]
    lost = [line for line in bad if "found nothing" in line or "ObjectNotFound" in line]
    self.row["lost"] += len(lost)
    self.row["wrong"] += len(bad) - len(lost)
    self.check(done.returncode == 0, f"{when}: {lines[-1]}", "\n".join(lines[:10]))

  def still_load(self, mode):
    done = subprocess.run(sysroot.command(["python3", STILL_LOAD, mode, self.cluster.dir / "ceph.conf", POOL,
                                           STILL_OBJECTS, 0]),
                          text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=900)
    try:
      return json.loads(done.stdout)
    except ValueError:
      raise UserError(f"many_objects.py {mode}: {(done.stderr.strip() or done.stdout)[-500:]}") from None

  # -- what the OSD says -------------------------------------------------------------------------------------

  def mark(self, osd, cube):
    path = self.cluster.osd_dir(osd) / f"cube_{cube}_failed"
    return path.read_text(errors="replace").strip() if path.exists() else ""

  def marks(self, osd):
    return sorted(path.name for path in self.cluster.osd_dir(osd).glob("cube_*_failed"))

  def pg_states(self, osd):
    """{placement group: (its state on this OSD now, those before since the OSD started)}"""
    def before(pg):
      return [state["state"] for epochs in pg["history"] for state in epochs["states"]]
    answer = self.cluster.ask_osd(osd, "dump_pgstate_history")
    return {pg["pg"]: (pg["currently"], before(pg)) for pg in answer["pgs"]}

  @staticmethod
  def is_active(state):
    """The group takes part, as a primary or as a replica."""
    return (state.startswith(("Started/Primary/Active", "Started/ReplicaActive"))
            and not state.endswith("Activating"))

  def alert(self):
    """The alert's text; empty: there is none."""
    found = self.cluster.ceph_json("health", "detail")["checks"].get(ALERT)
    return " ".join(line["message"] for line in found["detail"]) if found else ""

  def tool(self, osd, *words):
    """ceph-swimstore-tool on the stopped OSD's store: (exit status, what it says)"""
    program = self.cluster.spec.beside_osd("ceph-swimstore-tool", osd)
    command, *options = words
    done = sysroot.run([program, command, self.cluster.osd_dir(osd), *options], check=False, timeout=300)
    return done.returncode, done.stdout + done.stderr

  # -- starting and waiting ----------------------------------------------------------------------------------

  def start(self, osd, cube):
    """And again when it ends for its damaged cube, as an init system does it."""
    for _ in range(STARTS_MAX):
      try:
        self.cluster.start_osd(osd, self.INCOMPLETE)
        self.cluster.wait_up(osds=[osd])
        return
      except UserError:
        if self.cluster.osd_alive(osd) or not self.mark(osd, cube).startswith("suspect"):
          raise
        self.scenario.say(f"       osd.{osd} ended while it started; its mark: {self.mark(osd, cube)}")
    raise UserError(f"osd.{osd} ended {STARTS_MAX} times for cube {cube}, which it has marked each time")

  def ended_for(self, osd, cube):
    """Check that it ended because it could not read this cube's metadata, and says so."""
    mark = self.mark(osd, cube)
    self.check(mark.startswith("suspect: "),
               f"osd.{osd} ended and marked cube {cube}",
               f"{self.marks(osd)}: {mark!r}\n" + self.cluster.log_tail(f"osd.{osd}", 40))
    folder = f"cubes/{cube}/"
    # Not once more in the list of recent events that follows, which is indented.
    said = [line for line in self.cluster.log_tail(f"osd.{osd}", 20_000).splitlines()
            if f"FATAL: {LAST_WORDS}" in line and not line.startswith(" ")]
    self.check(said and folder in said[-1], f"its last words name {folder}", "\n".join(said))

  def go_on(self, osd, cube):
    """One that met the damage only now is started again."""
    if self.cluster.osd_crashed(osd):
      self.ended_for(osd, cube)
      self.start(osd, cube)
      return True
    return False

  def until_clean(self, osd, cube, timeout=300):
    deadline = time.monotonic() + timeout
    self.cluster.flush_pg_stats()
    while True:
      if self.go_on(osd, cube):
        self.cluster.flush_pg_stats()
      states = self.cluster.pg_states()
      if states and all(state.startswith("active+clean") for state in states):
        break
      if time.monotonic() > deadline:
        raise UserError(f"PGs not active+clean after {timeout} s: {states or 'no statistics'}")
      time.sleep(1)
    self.check(True, "all placement groups are active+clean")

  def start_timed(self, osd, cube, pgs):
    """Starts it; returns the seconds until these groups take part again."""
    begun = time.monotonic()
    self.start(osd, cube)
    while True:
      states = self.pg_states(osd)
      waiting = [pg for pg in pgs if not self.is_active(states.get(pg, ("absent", []))[0])]
      took = time.monotonic() - begun
      if not waiting:
        return took
      if took > 120 or self.cluster.osd_crashed(osd):
        raise UserError(f"osd.{osd}: {len(waiting)} placement groups of other cubes not active after "
                        f"{took:.0f} s, such as {waiting[0]}: {states.get(waiting[0])}")
      time.sleep(0.1)

  # -- a fault -----------------------------------------------------------------------------------------------

  def victim(self):
    """An OSD and a cube of it that holds placement groups, as another of its cubes does."""
    osd = self.rng.randrange(OSDS)
    if len(set(self.cluster.homes(osd).values())) < 2:
      self.scenario.say(f"osd.{osd}: all placement groups lie in one cube; it is made anew")
      self.cluster.stop_osd(osd)
      self.remake(osd)
    return osd, self.rng.choice(sorted(set(self.cluster.homes(osd).values())))

  def remake(self, osd):
    self.cluster.ceph("osd", "down", str(osd))  # a monitor may not know yet
    self.cluster.remake_osd(osd)
    self.cluster.wait_up()
    self.cluster.wait_clean(300)

  def cube_dir(self, osd, cube):
    return self.cluster.osd_dir(osd) / "cubes" / str(cube)

  def settle(self, osd):
    """The OSD's metadata lies in its tree, and not in memory."""
    self.cluster.ask_osd(osd, "compact", timeout=60)
    self.cluster.ask_osd(osd, "flush_store_cache")

  def run(self, kind, refused_first=False):
    """One fault of this kind. One that does not go as it should leaves a new OSD for the next."""
    self.row = self.table.setdefault(kind.name, Row())
    self.row["times"] += 1
    failures = self.scenario.failures
    osd, cube = self.victim()
    self.what = f"{kind.name}: cube {cube} of osd.{osd}"
    whole = False
    try:
      if kind.blocks:
        homes = self._damage_running(kind, osd, cube)
      else:
        homes = self._damage_stopped(kind, osd, cube, refused_first)
      whole = self._serves_on(osd, cube, homes)
    except (UserError, sysroot.CommandFailed, subprocess.SubprocessError, admin_socket.NotAnswering) as error:
      self.check(False, "goes to its end", str(error))
    if self.scenario.failures == failures:
      self.row["confined"] += 1
      self.row["whole"] += whole
    elif not self.row["wrong"] and not self.row["lost"]:
      self._after_failure(osd)

  def _after_failure(self, osd):
    self.scenario.say(f"osd.{osd} is made anew, for the next fault")
    if self.cluster.osd_alive(osd):
      self.cluster.kill_osd(osd)
    self.remake(osd)

  def _damage_stopped(self, kind, osd, cube, refused_first):
    with self.load():
      time.sleep(self.rng.uniform(0.5, 2.5))
    self.cluster.wait_clean()
    if kind.settled:
      self.settle(osd)
    homes = self.cluster.homes(osd)
    self.rng.choice((self.cluster.stop_osd, self.cluster.kill_osd))(osd)
    did = kind.damage(self.cube_dir(osd, cube), self.rng)
    self.scenario.say(f"{contents(osd, cube, homes)}: {did}")
    if refused_first:
      self._is_refused(osd, cube, homes)
    self.start(osd, cube)
    return homes

  def _is_refused(self, osd, cube, homes):
    """With the option's default."""
    log = self.cluster.dir / "log" / f"osd.{osd}.log"
    before = log.stat().st_size
    said = ""
    try:
      self.cluster.start_osd(osd, "--log-flush-on-exit")
      self.cluster.wait_up(osds=[osd])
      self.check(False, "by default the OSD refuses to start")
    except UserError as error:
      said = str(error)
    self.cluster.stop_osd(osd)
    with open(log, errors="replace") as file:
      file.seek(before)
      said += file.read()
    self.check(not any(mark in said for mark in CRASH_MARKS), "it refuses without a crash", said[-1500:])
    lines = {line[line.index("mount:"):] for line in said.splitlines() if "mount:" in line}
    line = lines.pop() if len(lines) == 1 else ""
    count = list(homes.values()).count(cube)
    wanted = (f"cube {cube}", f"{count} placement groups", "swimstore_mount_damaged_cubes=incomplete",
              "ceph-swimstore-tool")
    self.check(all(words in line for words in wanted),
               f"by default it refuses to start; one line says {', '.join(wanted)}", line or said[-1500:])
    self.scenario.say(f"       {line}")

  def _damage_running(self, kind, osd, cube):
    homes = self.cluster.homes(osd)
    with self.load():
      time.sleep(self.rng.uniform(0.5, 2.5))
      self.settle(osd)
      tree = self.cube_dir(osd, cube) / "tree"
      blocks = cube_damage.overwrite_blocks(tree, kind.blocks, 1 / 3, self.rng)
      self.scenario.say(f"{contents(osd, cube, homes)}: a third of {blocks} blocks overwritten")
      begun = time.monotonic()
      with contextlib.suppress(admin_socket.NotAnswering):  # it may have ended already
        self.cluster.ask_osd(osd, "flush_store_cache")
      # A replica's copies are read, too.
      self.cluster.shell("\n".join(f"ceph pg deep-scrub {pg}" for pg, home in homes.items() if home == cube))
      self._until_ended(osd)
      self.scenario.say(f"       osd.{osd} ended within {time.monotonic() - begun:.1f} s")
      self.ended_for(osd, cube)
      time.sleep(self.rng.uniform(0, 2))
      others = [pg for pg, home in homes.items() if home != cube]
      took = self.start_timed(osd, cube, others)
      self.check(took <= self.scenario.start_s + self.bar_s,
                 f"{len(others)} placement groups of its other cubes are active {took:.1f} s after its start "
                 f"({self.scenario.start_s:.1f} s without a fault, and {self.bar_s} s)")
    return homes

  def _until_ended(self, osd, timeout=60):
    begun = time.monotonic()
    while not self.cluster.osd_crashed(osd):
      if time.monotonic() - begun > timeout:
        raise UserError(f"osd.{osd} does not end though its metadata is damaged, in {timeout} s")
      time.sleep(0.1)

  def _serves_on(self, osd, cube, homes):
    """All that is claimed of an OSD that started with a damaged cube. Whether that was found whole."""
    self.all_right("at once")
    self.until_clean(osd, cube)
    self.all_right("when all are clean")
    self.go_on(osd, cube)
    if not self.mark(osd, cube) and self._is_whole(osd, cube, homes):
      return True
    mark = self.mark(osd, cube)
    self.check(mark.startswith("abandoned: ") and len(self.marks(osd)) == 1,
               "the mark says abandoned, and why", f"{self.marks(osd)}: {mark!r}")
    self.scenario.say(f"       {mark}")
    self._made_anew(osd, cube, homes)
    self.others_untouched(osd, cube, homes)
    self.scenario.until(self.alert, 60, f"{self.what}: the health of the cluster tells of it ({ALERT})")
    self.check(f"cube {cube}" in self.alert(), "the alert names the cube", self.alert())
    self.reset(osd, cube)
    return False

  def _is_whole(self, osd, cube, homes):
    """None of the damage was met. Where fsck finds some, the cube is marked by hand: then the start does."""
    self.others_untouched(osd, cube, homes)
    self.cluster.stop_osd(osd)
    status, said = self.tool(osd, "fsck")
    deep_status, deep_said = self.tool(osd, "fsck", "--deep")
    if status == 1:
      (self.cluster.osd_dir(osd) / f"cube_{cube}_failed").write_text("suspect: fsck found errors\n")
      self.start(osd, cube)
      self.until_clean(osd, cube)
      self.all_right("once its cube was marked for what fsck found")
      return False
    self.check(status == 0 and deep_status in (0, 1), "fsck comes to its end",
               f"exit {status}, with --deep {deep_status}: {said[-500:]}{deep_said[-500:]}")
    found = deep_said.strip().splitlines()[0] if deep_status else "nothing"
    self.scenario.say(f"       the OSD met none of it; fsck finds nothing, fsck --deep: {found}")
    if deep_status:  # of what is never read: the checks after the next fault would find it
      self.remake(osd)
    else:
      self.start(osd, cube)
      self.until_clean(osd, cube)
    return True

  def others_untouched(self, osd, cube, homes, check=None, filled=None):
    """Groups of the other cubes lie where they lay, with what they held.

    `filled`: those that were backfilled on it (default: since it started).
    """
    check = check or self.check
    others = {pg: home for pg, home in homes.items() if home != cube}
    filled = sorted((self._filled(osd) if filled is None else filled) & others.keys())
    now = self.cluster.homes(osd)
    moved = {pg: (home, now.get(pg)) for pg, home in others.items() if now.get(pg) != home}
    check(not moved, f"the {len(others)} groups of its other cubes lie where they lay", str(moved))
    check(not filled, "none of these was filled anew", str(filled))

  def _made_anew(self, osd, cube, homes):
    gone = {pg for pg, home in homes.items() if home == cube}
    empty = sorted(gone - self._filled(osd))
    now = self.cluster.homes(osd)
    wrong = {pg: now.get(pg) for pg in gone if now.get(pg) in (None, 0, cube)}
    self.check(not wrong, f"the {len(gone)} of this cube were made anew in others", str(wrong))
    self.check(not empty, "and filled by their peers", str(empty))

  def _filled(self, osd):
    """Groups that were backfilled on it since it started."""
    return self.backfilled(self.pg_states(osd))

  @staticmethod
  def backfilled(states):
    """Those groups of pg_states() that were. A primary's state tells of its peers' copies."""
    return {pg for pg, (_, before) in states.items()
            if any("Replica" in state and "Backfill" in state for state in before)}

  def reset(self, osd, cube):
    self.cluster.stop_osd(osd)
    status, said = self.tool(osd, "reset", "--cube", cube)
    self.check(status == 0 and not self.marks(osd), "reset makes the cube anew and removes the mark",
               f"exit {status}, {self.marks(osd)}: {said[-500:]}")
    status, said = self.tool(osd, "fsck", "--deep")
    self.check(status == 0, "a deep fsck finds nothing", f"exit {status}: {said[-1500:]}")
    self.start(osd, cube)
    self.until_clean(osd, cube)
    self.scenario.until(lambda: not self.alert(), 60, f"{self.what}: after the reset the alert is gone")

  def has_lost(self):
    return any(row["wrong"] or row["lost"] for row in self.table.values())


def contents(osd, cube, homes):
  return f"osd.{osd}, cube {cube} with {list(homes.values()).count(cube)} of {len(homes)} placement groups"


def evenly(rng, kinds, count):
  """So many of them, each as often as the others."""
  return [*kinds * (count // len(kinds)), *rng.sample(kinds, count % len(kinds))]


def choose_kinds(rng, count):
  """A quarter of them below a running OSD. The first is one that the OSD cannot but refuse by default."""
  if count == 0:
    return []
  first = rng.choice([kind for kind in STOPPED if kind.refused])
  below = min(max(1, round(count / 4)), count - 1)
  others = evenly(rng, STOPPED, count - 1 - below) + evenly(rng, RUNNING, below)
  rng.shuffle(others)
  return [first, *others]


def run(scenario):
  args = scenario.args
  count = args.faults if args.faults is not None else 3 if args.quick else 40
  scenario.rng = random.Random(args.seed)
  plan = io_plan(scenario)
  scenario.say(f"{count} damages, {len(plan)} faults of I/O, seed {args.seed}")
  # `incomplete` is given to each start: so the option's default can be tried, too.
  cluster = scenario.start(osds=OSDS, conf={"swimstore cubes": CUBES, "log max recent": 500},
                           mon_conf=MON_CONF, fault_disks=True)
  cluster.create_pool(POOL, pg_num=PGS_QUICK if args.quick or not count else PGS, size=OSDS)
  cluster.wait_clean()
  faults = Faults(scenario, cluster)
  without_fault(scenario, cluster, faults)
  moved_in_use(scenario, cluster, faults)
  if plan:
    below = cube_io_faults.IoFaults(scenario, cluster, faults)
    try:
      below.run(plan, args.minutes * 60)
    finally:
      scenario_module.print_table(below.table, below.COLUMNS, "kind of fault")
    if below.has_lost():
      return
    cluster.wait_clean()
  try:
    for nth, kind in enumerate(choose_kinds(scenario.rng, count)):
      scenario.say(f"damage {nth + 1}/{count}")
      faults.run(kind, refused_first=nth == 0)
      if faults.has_lost():
        return
  finally:
    scenario_module.print_table(faults.table, Row.COLUMNS, "kind of fault")
  if count:
    History(scenario, cluster, faults).run()
    scenario.deep_scrub()
  scenario.check_daemons()


def io_plan(scenario):
  """[(kind, cube)]: so many in each cube, in any order."""
  if scenario.args.quick and scenario.args.per_cube is None:
    return [(kind, scenario.rng.randint(1, CUBES)) for kind in cube_io_faults.QUICK]
  kinds = [kind for kind in cube_io_faults.KINDS if scenario.args.only in kind.name]
  per_cube = 10 if scenario.args.per_cube is None else scenario.args.per_cube
  plan = [(kind, cube) for cube in range(1, CUBES + 1) for kind in evenly(scenario.rng, kinds, per_cube)]
  scenario.rng.shuffle(plan)
  return plan


def without_fault(scenario, cluster, faults):
  """A restart under load, for comparison."""
  faults.what = "without a fault"
  faults.still_load("write")
  with faults.load():
    time.sleep(2)
    pgs = cluster.homes(0)
    cluster.stop_osd(0)
    scenario.start_s = faults.start_timed(0, 0, pgs)
  scenario.say(f"without a fault an OSD's groups are active {scenario.start_s:.1f} s after its start")
  faults.until_clean(0, 0)
  faults.all_right("at first")


def moved_in_use(scenario, cluster, faults):
  """Groups go to other cubes while clients change them: so many to one that a balance has something to do."""
  osd = scenario.rng.randrange(OSDS)
  faults.what = f"moves under load, osd.{osd}"

  def carry_out(command, **arguments):
    cluster.ask_osd(osd, command, **arguments)
    scenario.until(lambda: not is_moving(report()), 60, f"{faults.what}: {command} comes to its end")
    return report()

  def report():
    return cluster.ask_osd(osd, "swimstore status")["move"]

  with faults.load():
    homes = cluster.homes(osd)
    cube = scenario.rng.choice(sorted(set(homes.values())))
    others = [pg for pg, home in sorted(homes.items()) if home != cube]
    chosen = scenario.rng.sample(others, MOVED)
    for pg in chosen:
      told = carry_out("swimstore move", collection=pg, cube=cube)
      faults.check(told["state"] == "done", f"{pg} was moved, {told['copied_bytes']} bytes in {told['pass']} passes",
                   str(told))
    homes = cluster.homes(osd)
    faults.check(all(homes.get(pg) == cube for pg in chosen), f"{MOVED} groups lie in cube {cube}", str(homes))
    told = carry_out("swimstore balance")
    faults.check(told["state"] == "done" and "error" not in told and told["done"] == len(told["plan"]) > 0,
                 f"a balance moved {told['done']} groups", str(told))
    now = cluster.homes(osd)
    fewer = list(now.values()).count(cube) < list(homes.values()).count(cube)
    faults.check(len(now) == len(homes) and fewer, f"cube {cube} has fewer", str(now))
  faults.all_right("afterwards")


def is_moving(report):
  return report["state"] in ("moving", "measuring")


if __name__ == "__main__":
  scenario_module.main("cube-faults", run, __doc__, stores=("swimstore",), options=(
      (("--faults",), {"type": int, "help": "how many damages of files, and the history, unless 0 "
                                            "(default: 40; with --quick 3)"}),
      (("--per-cube",), {"type": int, "help": "how many faults of I/O in each of the four cubes (default: 10; "
                                              "with --quick 3 in all)"}),
      (("--only",), {"default": "", "help": "faults of I/O of whose kind this is a part, such as 'write of log'"}),
      (("--minutes",), {"type": float, "default": 120, "help": "for faults of I/O (default: %(default)s)"}),
      (("--seed",), {"type": int, "default": random.randrange(1 << 32),
                     "help": "of kinds, places and moments"})))
