# SPDX-License-Identifier: LGPL-2.1-or-later
"""The history in which a lost cube is dangerous: nobody who is up has what was written last.

For cube-faults.py.
"""

import contextlib
import threading
import time

import cube_damage
import sysroot
from sysroot import UserError

OSDS = 3
PGS = 4  # of each pool: one for each cube
POOLS = ("held", "alone", "control")
PATIENCE_S = 20  # that clients ask for what nobody has


class History:
  """The OSD `a` loses a cube, and has what was written while `c` was down, and at last `b` as well.

  Three pools, each with one object of interest, of which c has version 1. "held": version 2 is on a and b.
  "alone": version 3 is on a, for this pool takes writes while one OSD is up. "control": as "held", but the
  group is removed from a, and the cube where it lay is whole.
  """

  def __init__(self, scenario, cluster, faults):
    self.scenario = scenario
    self.cluster = cluster
    self.faults = faults
    self.a, self.b, self.c = scenario.rng.sample(range(OSDS), OSDS)
    self.homes = {}  # of a's placement groups
    self.cube = 0  # that will be lost, with the objects of "held" and "alone"
    self.name = {}  # of each pool's object
    self.pg = {}

  def run(self):
    self.scenario.say(f"the newest copies: osd.{self.a}, then osd.{self.b}; an older one: osd.{self.c}")
    self.cluster.ceph("osd", "set", "noout")
    self._make_pools()
    self._write_while_others_are_down()
    self._lose()
    self._with_older_copy()
    self._with_newer_copy()
    self._tidy_up()

  # -- the pools' objects ------------------------------------------------------------------------------------

  def _make_pools(self):
    for pool in POOLS:
      self.cluster.create_pool(pool, pg_num=PGS, size=OSDS)  # which writes while two of the three are up
    self.cluster.ceph("osd", "pool", "set", "alone", "min_size", "1")
    self.cluster.wait_clean()
    self.homes = self.faults.cluster.homes(self.a)
    self._choose("held", lambda cube: True)
    self.cube = self.homes[self.pg["held"]]
    self._choose("alone", lambda cube: cube == self.cube)
    self._choose("control", lambda cube: cube != self.cube)
    self.scenario.say(f"groups {self.pg['held']} and {self.pg['alone']} in cube {self.cube} of osd.{self.a}, "
                      f"{self.pg['control']} in cube {self.homes[self.pg['control']]}")
    for pool in POOLS:
      self._write(pool, 1)

  def _choose(self, pool, fits):
    """An object of this pool whose group lies in a cube that fits."""
    for number in range(100):
      pg = self.cluster.ceph_json("osd", "map", pool, f"object{number}")["pgid"]
      if fits(self.homes[pg]):
        self.name[pool], self.pg[pool] = f"object{number}", pg
        return
    raise UserError(f"pool {pool}: no placement group lies in a cube as it is wanted: {self.homes}")

  def _write(self, pool, version):
    self.cluster.client("rados", "-p", pool, "put", self.name[pool], "-", stdin=f"version {version}")

  def _read(self, pool):
    """What a client gets; empty: no answer."""
    return self.cluster.client("rados", "--rados_osd_op_timeout", 4, "-p", pool, "get", self.name[pool], "-",
                               check=False)

  # -- the history -------------------------------------------------------------------------------------------

  def _stop(self, osd):
    self.cluster.stop_osd(osd)
    self.scenario.until(lambda: not self.cluster.ceph_json("osd", "dump")["osds"][osd]["up"], 60,
                        f"osd.{osd} is down")

  def _write_while_others_are_down(self):
    self._stop(self.c)
    for pool in POOLS:
      self._write(pool, 2)
    self._stop(self.b)
    self._write("alone", 3)
    self._stop(self.a)

  def _lose(self):
    program = self.cluster.spec.beside_osd("ceph-objectstore-tool", self.a)
    sysroot.run([program, "--data-path", self.cluster.osd_dir(self.a), "--type", "swimstore",
                 "--no-mon-config", "--op", "remove", "--pgid", self.pg["control"], "--force"], timeout=300)
    cube_damage.remove_directory(self.faults.cube_dir(self.a, self.cube), self.scenario.rng)

  def _states(self):
    self.cluster.flush_pg_stats()
    return {pg["pgid"]: pg["state"] for pg in self.cluster.ceph_json("pg", "dump", "pgs")["pg_stats"]}

  @contextlib.contextmanager
  def _asked(self, pools):
    """Meanwhile clients read the objects of these pools all the time: {pool: every answer}"""
    answers = {pool: set() for pool in pools}
    over = threading.Event()

    def ask(pool):
      while not over.is_set():
        answers[pool].add(self._read(pool))
    threads = [threading.Thread(target=ask, args=(pool,)) for pool in pools]
    for thread in threads:
      thread.start()
    try:
      yield answers
      time.sleep(0 if self.scenario.args.quick else PATIENCE_S)
    finally:
      over.set()
      for thread in threads:
        thread.join()

  def _waited(self, answers, when):
    """No answer is right: an older version is not, and nobody knows the newest."""
    states = self._states()
    for pool, got in answers.items():
      self.scenario.check(got == {""} and "incomplete" in states[self.pg[pool]],
                          f"{when}: the group waits, and no read got an answer ({pool})",
                          f"{states[self.pg[pool]]}: {got}")

  def _with_older_copy(self):
    when = f"osd.{self.a} without cube {self.cube}, osd.{self.c} with older copies"
    waiting = [self.pg[pool] for pool in ("held", "alone")]
    others = [pg for pg, cube in self.homes.items() if cube != self.cube]
    with self._asked(("held", "alone")) as answers:
      self.faults.start(self.c, self.cube)
      self.faults.start(self.a, self.cube)
      self.scenario.until(lambda: all("incomplete" in self._states()[pg] for pg in waiting), 60,
                          f"{when}: the groups in the lost cube are incomplete (held, alone)")
      self.scenario.until(lambda: all("active" in self._states()[pg] for pg in others), 240,
                          f"{when}: the {len(others)} groups of its other cubes are active")
      self.scenario.until(lambda: self._read("control") == "version 1", 240,
                          f"{when}: where nothing is known of the group, the older copy is served (control)")
    self._waited(answers, when)

  def _with_newer_copy(self):
    when = f"then osd.{self.b}"
    with self._asked(["alone"]) as answers:
      self.faults.start(self.b, self.cube)
      self.scenario.until(lambda: self._states()[self.pg["held"]].startswith("active+clean"), 240,
                          f"{when}: the group that it has is active+clean (held)")
      self.scenario.check(self._read("held") == "version 2", f"{when}: with what was written last (held)",
                          self._read("held"))
    self._waited(answers, when)
    self.scenario.check(self._read("control") == "version 1",
                        f"{when}: what was acknowledged is gone, though this OSD has it (control)",
                        self._read("control"))

  def _tidy_up(self):
    """The group that waits for ever goes with its pool."""
    self.cluster.shell("ceph osd unset noout\n" + "\n".join(
        f"ceph osd pool rm {pool} {pool} --yes-i-really-really-mean-it" for pool in POOLS))
    self.faults.what = f"cube {self.cube} of osd.{self.a}"
    self.faults.until_clean(self.a, self.cube)
    self.faults.all_right("when all are clean")
