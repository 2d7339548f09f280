#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fills pools to the brim, and empties them. Runs inside the sysroot, where python3-rados is.

  brim_load.py fill CONF POOL[,POOL...] IN_FLIGHT SEED  writes objects of mixed sizes, every second with omap, until the
                                                        cluster is full and takes no more
  brim_load.py empty CONF POOL[,POOL...] IN_FLIGHT      removes all of them, as a client may that makes room
"""

import json
import os
import random
import sys
import threading
import time

import rados

SIZES = (100, 4096, 12_288, 65_536, 300_001, 1 << 20, 4 << 20)
OMAP = ((4, 300), (100, 1000))  # keys, bytes of each value
# A full cluster holds writes back at the client: then no answer comes any more.
SILENCE_SECONDS = 15
FULL_FORCE = 128  # LIBRADOS_OPERATION_FULL_FORCE, as `rados rm` sets it


class UnderWay:
  """Operations that were sent; their answers are counted by librados's own threads."""

  def __init__(self, limit):
    self.limit = limit
    self.changed = threading.Condition()
    self.sent = self.answered = 0
    self.last_answer = time.monotonic()
    self.errors = []

  def send(self, ioctx, op, name, flags=0):
    def answered(completion):
      with self.changed:
        self.answered += 1
        self.last_answer = time.monotonic()
        if completion.get_return_value() < 0:
          self.errors.append(f"{name}: {completion.get_return_value()}")
        self.changed.notify()
    self.sent += 1
    ioctx.operate_aio_write_op(op, name, answered, flags=flags)

  def wait(self, most, silence):
    """Until at most so many are under way; False when no answer came for `silence` seconds."""
    with self.changed:
      while self.sent - self.answered > most:
        if time.monotonic() - self.last_answer > silence:
          return False
        self.changed.wait(0.5)
    return True


def fill(ioctxs, under_way, rng):
  written = number = 0
  while under_way.wait(under_way.limit - 1, SILENCE_SECONDS) and not under_way.errors:
    ioctx, takes_omap = rng.choice(ioctxs)
    payload = rng.randbytes(rng.choice(SIZES))
    with rados.WriteOpCtx() as op:
      op.write_full(payload)
      if takes_omap and rng.random() < 0.5:
        keys, value_bytes = rng.choice(OMAP)
        names = tuple(f"key{key:04}" for key in range(keys))
        ioctx.set_omap(op, names, tuple(rng.randbytes(value_bytes) for _ in names))
      under_way.send(ioctx, op, f"brim{number}")
    written += len(payload)
    number += 1
  return written


def empty(ioctxs, under_way):
  silence = 120
  for ioctx, _ in ioctxs:
    for found in list(ioctx.list_objects()):
      with rados.WriteOpCtx() as op:
        op.remove()
        under_way.send(ioctx, op, found.key, FULL_FORCE)
      if not under_way.wait(under_way.limit - 1, silence):
        return
  under_way.wait(0, silence)


def main():
  what, conf, pools, in_flight = sys.argv[1:5]
  cluster = rados.Rados(conffile=conf)
  cluster.connect()
  ioctxs = [(cluster.open_ioctx(pool), not pool.startswith("ec")) for pool in pools.split(",")]
  under_way = UnderWay(int(in_flight))
  written = 0
  if what == "fill":
    written = fill(ioctxs, under_way, random.Random(int(sys.argv[5])))
  else:
    empty(ioctxs, under_way)
  print(json.dumps({"sent": under_way.sent, "answered": under_way.answered, "written_bytes": written,
                    "errors": under_way.errors[:3]}), flush=True)
  os._exit(0)  # what the client holds back goes with it


main()
