#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Load that remembers what was acknowledged. Runs inside the sysroot, where python3-rados is.

  acked_load.py load CONF POOL MODEL SEED    writes until its stdin ends, then saves MODEL and exits at once
  acked_load.py verify CONF POOL MODEL SEED  reads every object, compares, saves MODEL as found
  acked_load.py serve CONF POOL MODEL SEED   for many of both, without a process for each: see serve()

Every operation changes data, one xattr and some omap keys of one object together. At most one operation of an object
is under way. So after a crash an object must be exactly in its acknowledged state, or, where an operation had been
sent and not acknowledged, in the state before or after the whole of it.
"""

import concurrent.futures
import os
import random
import sys
import threading
import time

import rados

from saved_model import SavedModel

OBJECTS = 200
IN_FLIGHT = 16
SNAPS = 2
DATA_BYTES_MAX = 256 << 10
OMAP_KEYS = 24
READERS = 8
ANSWERED_S = 60  # what is not answered by then never is


class State:
  """One object as it should be: data, xattr and omap; `data` None: it does not exist."""

  def __init__(self, data=None, version=0, omap=None):
    self.data = data
    self.version = version
    self.omap = omap or {}

  def __eq__(self, other):
    if self.data is None or other.data is None:
      return self.data is other.data
    return (self.data, self.version, self.omap) == (other.data, other.version, other.omap)

  def difference(self, found):
    if self.data is None or found.data is None:
      return f"expected {'nothing' if self.data is None else 'an object'}, found " \
             f"{'nothing' if found.data is None else 'an object'}"
    told = []
    if self.data != found.data:
      at = next((i for i, (a, b) in enumerate(zip(self.data, found.data)) if a != b), min(len(self.data), len(found.data)))
      told.append(f"data differs from byte {at} (lengths {len(self.data)}, {len(found.data)})")
    if self.version != found.version:
      told.append(f"xattr says version {found.version}, not {self.version}")
    if self.omap != found.omap:
      wrong = [key for key in self.omap.keys() | found.omap.keys() if self.omap.get(key) != found.omap.get(key)]
      told.append(f"omap differs at {sorted(wrong)[:3]}")
    return "; ".join(told)


class Model(SavedModel):
  def __init__(self):
    self.acked = [State() for _ in range(OBJECTS)]
    self.pending = {}  # object -> the state it has once the operation under way is done
    self.snaps = {}  # pool snapshot -> every object's state when it was taken
    self.versions = 0
    self.operations_acked = 0


def mutate(rng, before, version, op, ioctx):
  """Put one random change of `before` into `op`; returns the state after it."""
  exists = before.data is not None
  kind = rng.choice(("write_full", "write", "write", "append", "truncate", "zero", "remove") if exists
                    else ("write_full", "write"))
  if kind == "remove":
    op.remove()
    return State()
  data = before.data or b""
  length = rng.choice((rng.randrange(1, 5000), 4096, 8192, rng.randrange(1, 100_000)))
  payload = rng.randbytes(length)
  if kind == "write_full":
    op.write_full(payload)
    data = payload
  elif kind == "append" and len(data) + length <= DATA_BYTES_MAX:
    op.append(payload)
    data += payload
  elif kind == "truncate":
    size = rng.randrange(len(data) + 1)
    op.truncate(size)
    data = data[:size]
  elif kind == "zero" and len(data) > 2:
    # The same number twice: Reef's binding takes offset for length. Never to the end: an OSD truncates then.
    at = rng.randrange(1, (len(data) + 1) // 2)
    op.zero(at, at)
    data = data[:at] + bytes(at) + data[2 * at:]
  else:
    # Past the end at times: the hole between must read as zeros.
    at = rng.choice((0, 4096 * rng.randrange(8), rng.randrange(min(len(data) + 20_000, DATA_BYTES_MAX))))
    op.write(payload, at)
    data = data.ljust(at, b"\0")
    data = data[:at] + payload + data[at + length:]
  keys = {f"key{rng.randrange(OMAP_KEYS):03}": rng.randbytes(rng.choice((8, 200))) for _ in range(3)}
  ioctx.set_omap(op, tuple(keys), tuple(keys.values()))
  op.set_xattr("version", str(version).encode())
  return State(data, version, {**before.omap, **keys})


def take_snapshot(cluster, ioctx, model):
  """One more pool snapshot while nothing is under way, so that the load makes clones; the oldest goes."""
  name = f"at{model.versions}"
  if name in model.snaps:
    return
  ioctx.create_snap(name)
  model.snaps[name] = list(model.acked)
  if len(model.snaps) > SNAPS:
    oldest = next(iter(model.snaps))
    ioctx.remove_snap(oldest)
    del model.snaps[oldest]
  cluster.wait_for_latest_osdmap()


class Load:
  """Submits operations until it is told to stop. Acknowledgements are recorded by librados's own thread."""

  def __init__(self, ioctx, model, rng):
    self.failed = []
    self._ioctx, self._model, self._rng = ioctx, model, rng
    self._lock = threading.Lock()
    self._free = threading.Semaphore(IN_FLIGHT)
    self._told_to_stop = threading.Event()
    self._closed = False

  def stop(self):
    self._told_to_stop.set()
    self._free.release()

  def run(self):
    while not self._told_to_stop.is_set() and not self.failed:
      self._free.acquire()
      if self._told_to_stop.is_set():
        break
      with self._lock:
        idle = [number for number in range(OBJECTS) if number not in self._model.pending]
      self._submit(self._rng.choice(idle))

  def close(self):
    """What is not acknowledged now counts as under way."""
    with self._lock:
      self._closed = True

  def wait_for_answers(self):
    """Whether all came."""
    begun = time.monotonic()
    while time.monotonic() - begun < ANSWERED_S:
      with self._lock:
        if not self._model.pending:
          return True
      time.sleep(0.01)
    return False

  def _submit(self, number):
    model = self._model
    with rados.WriteOpCtx() as op:
      version = model.versions = model.versions + 1
      with self._lock:
        model.pending[number] = after = mutate(self._rng, model.acked[number], version, op, self._ioctx)

      def acknowledged(completion):
        result = completion.get_return_value()
        with self._lock:
          if self._closed:
            return
          if result < 0:
            self.failed.append(f"object {number}: error {result}")
          else:
            model.acked[number] = after
            model.operations_acked += 1
          del model.pending[number]
        self._free.release()

      self._ioctx.operate_aio_write_op(op, f"acked{number}", acknowledged)


def load(ioctx, model, rng):
  """Submit until stdin ends."""
  under_way = Load(ioctx, model, rng)
  threading.Thread(target=lambda: (sys.stdin.read(), under_way.stop()), daemon=True).start()
  print("loading", flush=True)
  under_way.run()
  under_way.close()
  return under_way.failed


def end_load(under_way, thread, model):
  under_way.stop()
  thread.join()
  if not under_way.wait_for_answers():
    print(f"acked: operations of objects {sorted(model.pending)[:5]} are not answered in {ANSWERED_S} s")
  under_way.close()
  for line in under_way.failed:
    print(line)


def serve(cluster, ioctx, model, rng):
  """Lines of stdin are orders; each is answered by lines of which the last is "done".

  load    begin to submit; a snapshot is taken first at times
  stop    end, and wait for all that is under way; nothing, if there is no load. Lines before the last: what failed
  verify  nothing is under way: read every object and compare; lines as of `verify`
  """
  under_way, thread, loads = None, None, 0
  for order in sys.stdin:
    if order.strip() == "load":
      if loads % 8 == 0:
        take_snapshot(cluster, ioctx, model)
      loads += 1
      under_way = Load(ioctx, model, rng)
      thread = threading.Thread(target=under_way.run, daemon=True)
      thread.start()
    elif order.strip() == "stop":
      if under_way:
        end_load(under_way, thread, model)
      under_way = None
    else:
      verify(ioctx, model)
    print("done", flush=True)


def read_state(ioctx, number):
  name = f"acked{number}"
  try:
    size, _ = ioctx.stat(name)
  except rados.ObjectNotFound:
    return State()
  data = ioctx.read(name, size + 1)
  version = int(ioctx.get_xattr(name, "version"))
  with rados.ReadOpCtx() as op:
    found, _ = ioctx.get_omap_vals(op, "", "", OMAP_KEYS * 2)
    ioctx.operate_read_op(op, name)
    return State(data, version, dict(found))


def verify(ioctx, model):
  """Returns the number of wrong objects, each of which is named."""
  with concurrent.futures.ThreadPoolExecutor(READERS) as readers:
    allowed = [[state] + ([model.pending[number]] if number in model.pending else [])
               for number, state in enumerate(model.acked)]
    found = list(readers.map(lambda number: check(ioctx, number, allowed[number], ""), range(OBJECTS)))
    wrong = sum(state is None for state in found)
    model.acked = [state or only[0] for state, only in zip(found, allowed)]
    for name, states in model.snaps.items():
      ioctx.set_read(ioctx.lookup_snap(name).snap_id)
      found = list(readers.map(lambda number: check(ioctx, number, [states[number]], f" in snapshot {name}"),
                               range(OBJECTS)))
      wrong += sum(state is None for state in found)
    ioctx.set_read(rados.LIBRADOS_SNAP_HEAD)
  there = sum(state.data is not None for state in model.acked)
  print(f"{there} objects, {len(model.snaps)} snapshots, {model.operations_acked} operations acknowledged so far, "
        f"{len(model.pending)} were under way, {wrong} wrong")
  model.pending = {}
  return wrong


def check(ioctx, number, allowed, where):
  """The object's state if it is one of the allowed, else None."""
  try:
    found = read_state(ioctx, number)
  except (rados.Error, KeyError) as error:
    print(f"acked{number}{where}: {error!r}")
    return None
  if any(state == found for state in allowed):
    return found
  print(f"acked{number}{where}: {allowed[0].difference(found)}"
        + (f"; or after the operation under way: {allowed[1].difference(found)}" if len(allowed) > 1 else ""))
  return None


def main():
  mode, conf, pool, path, seed = sys.argv[1:]
  # A read that never ends is a failure too. Writes wait: their OSD may just be dead.
  options = {"rados_osd_op_timeout": "60"} if mode == "verify" else {}
  cluster = rados.Rados(conffile=conf, conf=options)
  cluster.connect(timeout=30)
  ioctx = cluster.open_ioctx(pool)
  model = Model.open(path)
  rng = random.Random(int(seed))
  failed, wrong = [], 0
  if mode == "load":
    take_snapshot(cluster, ioctx, model)
    failed = load(ioctx, model, rng)
  elif mode == "serve":
    serve(cluster, ioctx, model, rng)
  else:
    wrong = verify(ioctx, model)
  model.save(path)
  for line in failed:
    print(line)
  sys.stdout.flush()
  # Not waiting for the operations under way: their OSD may be dead on purpose.
  os._exit(1 if failed or wrong else 0)


main()
