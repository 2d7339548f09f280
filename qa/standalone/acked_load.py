#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Load that remembers what was acknowledged. Runs inside the sysroot, where python3-rados is.

  acked_load.py load CONF POOL MODEL SEED    writes until its stdin ends, then saves MODEL and exits at once
  acked_load.py verify CONF POOL MODEL SEED  reads every object, compares, saves MODEL as found

Every operation changes data, one xattr and some omap keys of one object together. At most one operation of an object
is under way. So after a crash an object must be exactly in its acknowledged state, or, where an operation had been
sent and not acknowledged, in the state before or after the whole of it.
"""

import os
import random
import sys
import threading

import rados

from saved_model import SavedModel

OBJECTS = 200
IN_FLIGHT = 16
SNAPS = 2
DATA_BYTES_MAX = 256 << 10
OMAP_KEYS = 24


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


def load(ioctx, model, rng):
  """Submit until stdin ends. Acknowledgements are recorded by librados's own thread."""
  lock = threading.Lock()
  free = threading.Semaphore(IN_FLIGHT)
  ended = threading.Event()
  closed = threading.Event()
  threading.Thread(target=lambda: (sys.stdin.read(), ended.set(), free.release()), daemon=True).start()
  failed = []

  def submit(number):
    with rados.WriteOpCtx() as op:
      version = model.versions = model.versions + 1
      with lock:
        model.pending[number] = after = mutate(rng, model.acked[number], version, op, ioctx)

      def acknowledged(completion):
        result = completion.get_return_value()
        with lock:
          if closed.is_set():
            return  # the model is being saved: there it counts as under way
          if result < 0:
            failed.append(f"object {number}: error {result}")
          else:
            model.acked[number] = after
            model.operations_acked += 1
          del model.pending[number]
        free.release()

      ioctx.operate_aio_write_op(op, f"acked{number}", acknowledged)

  print("loading", flush=True)
  while not ended.is_set() and not failed:
    free.acquire()
    if ended.is_set():
      break
    with lock:
      idle = [number for number in range(OBJECTS) if number not in model.pending]
    submit(rng.choice(idle))
  with lock:
    closed.set()
    return model, failed


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
  wrong = 0
  for number in range(OBJECTS):
    allowed = [model.acked[number]] + ([model.pending[number]] if number in model.pending else [])
    found = check(ioctx, number, allowed, "")
    wrong += found is None
    model.acked[number] = found or allowed[0]
  for name, states in model.snaps.items():
    ioctx.set_read(ioctx.lookup_snap(name).snap_id)
    wrong += sum(check(ioctx, number, [state], f" in snapshot {name}") is None for number, state in enumerate(states))
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
  if mode == "load":
    take_snapshot(cluster, ioctx, model)
    model, failed = load(ioctx, model, random.Random(int(seed)))
    model.save(path)
    for line in failed:
      print(line)
    sys.stdout.flush()
    # Not waiting for the operations under way: their OSD may be dead on purpose.
    os._exit(1 if failed else 0)
  wrong = verify(ioctx, model)
  model.save(path)
  sys.stdout.flush()
  os._exit(1 if wrong else 0)


main()
