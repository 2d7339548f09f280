#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Objects of mixed sizes that come, change and go, and that know what they hold. Runs inside the sysroot,
where python3-rados is.

  aging_load.py fill CONF POOL MODEL SEED BYTES LOW HIGH   new objects of LOW to HIGH bytes, BYTES in all
  aging_load.py thin CONF POOL MODEL SEED   takes a snapshot, writes into a tenth of the objects, deletes a
                                            random half of all, removes the snapshot
  aging_load.py copy CONF POOL MODEL SEED   writes what there should be, in random order, each object once
  aging_load.py read CONF POOL MODEL SEED   reads all in random order and compares

Prints one JSON object: bytes and seconds of this run, objects and object_bytes that there are, and the first
errors. Exit status 1 when there are any.
"""

import json
import math
import os
import random
import struct
import sys
import threading
import time

import rados

from saved_model import SavedModel

IN_FLIGHT = 16
PATCHED_SHARE = 0.1
PATCH_BYTES_MAX = 64 << 10
ERRORS_MAX = 10
# What is never answered is an error, too: a full cluster lets writes wait.
OP_TIMEOUT_SECONDS = 90


def pattern(number, version, size):
  return (struct.pack("<QQ", number, version) * (size // 16 + 1))[:size]


class Object:
  def __init__(self, size):
    self.size = size
    self.patches = []  # offset, bytes: the n-th one has version n + 2

  def content(self, number):
    data = bytearray(pattern(number, 1, self.size))
    for nth, (offset, length) in enumerate(self.patches):
      data[offset:offset + length] = pattern(number, nth + 2, length)
    return bytes(data)


class Model(SavedModel):
  def __init__(self):
    self.objects = {}
    self.made = 0


class Operations:
  """Some operations under way at a time, the bytes they moved, and what failed."""

  def __init__(self, ioctx):
    self.ioctx = ioctx
    self.bytes = 0
    self.failed = {}
    self._free = threading.Semaphore(IN_FLIGHT)

  def write_full(self, number, data):
    self._begin(self.ioctx.aio_write_full, number, len(data), data)

  def write(self, number, data, offset):
    self._begin(self.ioctx.aio_write, number, len(data), data, offset)

  def remove(self, number):
    self._begin(self.ioctx.aio_remove, number, 0)

  def read(self, number, expected):
    def compare(completion, found):
      at = -1
      if completion.get_return_value() >= 0 and found != expected:
        shorter = min(len(found), len(expected))
        at = next((i for i in range(shorter) if found[i] != expected[i]), shorter)
      wrong = at >= 0 and f"differs from byte {at} (lengths {len(found)}, {len(expected)})"
      self._ended(number, completion, len(expected), wrong)
    self._free.acquire()
    self.ioctx.aio_read(name_of(number), len(expected) + 1, 0, compare)

  def finish(self):
    for _ in range(IN_FLIGHT):
      self._free.acquire()
    for _ in range(IN_FLIGHT):
      self._free.release()

  def _begin(self, start, number, count, *arguments):
    self._free.acquire()
    start(name_of(number), *arguments, oncomplete=lambda completion: self._ended(number, completion, count))

  def _ended(self, number, completion, count, wrong=None):
    """librados calls back from one thread."""
    result = completion.get_return_value()
    if result < 0 or wrong:
      self.failed[number] = wrong or f"error {result}"
    else:
      self.bytes += count
    self._free.release()


def name_of(number):
  return f"aged{number}"


def fill(operations, model, rng, wanted_bytes, low, high):
  begun_bytes = 0
  while begun_bytes < wanted_bytes and not operations.failed:
    made = Object(int(2 ** rng.uniform(math.log2(low), math.log2(high))))
    begun_bytes += made.size
    number, model.made = model.made, model.made + 1
    operations.write_full(number, made.content(number))
    model.objects[number] = made
  operations.finish()
  for number in operations.failed:
    del model.objects[number]


def thin(cluster, operations, model, rng):
  snapshot = f"before{model.made}"
  operations.ioctx.create_snap(snapshot)
  for number in rng.sample(sorted(model.objects), int(len(model.objects) * PATCHED_SHARE)):
    changed = model.objects[number]
    length = rng.randrange(1, min(changed.size, PATCH_BYTES_MAX) + 1)
    offset = rng.randrange(changed.size - length + 1)
    changed.patches.append((offset, length))
    operations.write(number, pattern(number, len(changed.patches) + 1, length), offset)
  operations.finish()
  for number in rng.sample(sorted(model.objects), len(model.objects) // 2):
    operations.remove(number)
    del model.objects[number]
  operations.finish()
  operations.ioctx.remove_snap(snapshot)
  cluster.wait_for_latest_osdmap()


def each(model, rng, act):
  """`act` on every object and what it should hold, in random order."""
  for number in rng.sample(sorted(model.objects), len(model.objects)):
    act(number, model.objects[number].content(number))


def main():
  mode, conf, pool, path, seed, *more = sys.argv[1:]
  cluster = rados.Rados(conffile=conf, conf={"rados_osd_op_timeout": str(OP_TIMEOUT_SECONDS)})
  cluster.connect(timeout=30)
  operations = Operations(cluster.open_ioctx(pool))
  model, rng = Model.open(path), random.Random(int(seed))
  begun = time.monotonic()
  if mode == "fill":
    fill(operations, model, rng, *(int(word) for word in more))
  elif mode == "thin":
    thin(cluster, operations, model, rng)
  else:
    each(model, rng, {"copy": operations.write_full, "read": operations.read}[mode])
    operations.finish()
  seconds = time.monotonic() - begun
  if mode in ("fill", "thin"):
    model.save(path)
  errors = [f"object {number}: {why}" for number, why in sorted(operations.failed.items())]
  print(json.dumps({"bytes": operations.bytes, "seconds": seconds, "objects": len(model.objects),
                    "object_bytes": sum(there.size for there in model.objects.values()),
                    "errors": errors[:ERRORS_MAX]}), flush=True)
  os._exit(1 if errors else 0)


main()
