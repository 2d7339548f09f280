#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random overwrites of an RBD image, with snapshots, that remember what was acknowledged. Runs inside the sysroot, where
python3-rbd is.

  rbd_load.py fill CONF POOL MODEL MIB            makes the image and writes it from end to end
  rbd_load.py load CONF POOL MODEL SEED SNAP_S RATE
                                                  overwrites until its stdin ends, at most RATE times a second (0: as often
                                                  as it can); one more snapshot every SNAP_S seconds, the oldest goes; saves
                                                  MODEL, and MODEL.latencies: for every write, as doubles, the seconds from
                                                  the start and the milliseconds that it took
  rbd_load.py verify CONF POOL MODEL              reads the image and its snapshots and compares
  rbd_load.py held CONF POOL MODEL                prints the bytes that image and snapshots hold, shared ones once
  rbd_load.py trim CONF POOL MODEL                removes the snapshots

A block of 4 KiB says which one it is and how often it was written, so a lost, old or misplaced one is told.
"""

import array
import os
import random
import struct
import sys
import threading
import time

import rados
import rbd

from saved_model import SavedModel

IMAGE = "aged"
BLOCK = 4096
FILL_BYTES = 4 << 20
IN_FLIGHT = 16
SNAPSHOTS = 3
SIZES = (1, 1, 1, 1, 2, 4, 16)  # blocks of one write


def block_of(number, version):
  return struct.pack("<QQ", number, version) * (BLOCK // 16)


class Model(SavedModel):
  def __init__(self, blocks):
    self.versions = array.array("I", [1]) * blocks
    self.snapshots = {}  # name -> versions
    self.writes = 0


class Writer:
  """Keeps writes under way, never two of one block."""

  def __init__(self, image, model, rng):
    self.image = image
    self.model = model
    self.rng = rng
    self.failed = []
    self.latencies = array.array("d")
    self._lock = threading.Lock()
    self._done = threading.Condition(self._lock)
    self._busy = set()
    self._under_way = 0
    self._begun = time.monotonic()

  def write_one(self):
    count = self.rng.choice(SIZES)
    with self._lock:
      self._done.wait_for(lambda: self._under_way < IN_FLIGHT)
      while True:
        first = self.rng.randrange(len(self.model.versions) - count + 1)
        blocks = range(first, first + count)
        if self._busy.isdisjoint(blocks):
          break
      self._busy.update(blocks)
      self._under_way += 1
    data = b"".join(block_of(block, self.model.versions[block] + 1) for block in blocks)
    begun = time.monotonic()

    def acknowledged(completion):
      now = time.monotonic()
      with self._lock:
        if completion.get_return_value() < 0:
          self.failed.append(f"block {first}: error {completion.get_return_value()}")
        for block in blocks:
          self.model.versions[block] += 1
        self.model.writes += 1
        self.latencies.extend((begun - self._begun, (now - begun) * 1000))
        self._busy.difference_update(blocks)
        self._under_way -= 1
        self._done.notify_all()

    self.image.aio_write(data, first * BLOCK, acknowledged)

  def wait_for_all(self):
    with self._lock:
      self._done.wait_for(lambda: self._under_way == 0)


def take_snapshot(image, model, number):
  name = f"at{number}"
  image.create_snap(name)
  model.snapshots[name] = array.array("I", model.versions)
  if len(model.snapshots) > SNAPSHOTS:
    oldest = next(iter(model.snapshots))
    image.remove_snap(oldest)
    del model.snapshots[oldest]


def fill(ioctx, mib, path):
  rbd.RBD().create(ioctx, IMAGE, mib << 20, features=0, old_format=False)
  model = Model((mib << 20) // BLOCK)
  with rbd.Image(ioctx, IMAGE) as image:
    for at in range(0, mib << 20, FILL_BYTES):
      image.write(b"".join(block_of(block, 1) for block in range(at // BLOCK, (at + FILL_BYTES) // BLOCK)), at)
    image.flush()
  model.save(path)
  return []


class Pace:
  """At most so many a second, without making up for a pause; 0 sets no bound."""

  def __init__(self, rate):
    self._interval = 1 / rate if rate else 0
    self._next = time.monotonic()

  def wait(self):
    now = time.monotonic()
    if self._next > now:
      time.sleep(self._next - now)
    self._next = max(self._next, now) + self._interval


def load(ioctx, path, rng, snapshot_s, rate):
  model = Model.load(path)
  ended = threading.Event()
  threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
  with rbd.Image(ioctx, IMAGE) as image:
    writer = Writer(image, model, rng)
    print("loading", flush=True)
    pace = Pace(rate)
    next_snapshot = time.monotonic() + snapshot_s
    while not ended.is_set() and not writer.failed:
      pace.wait()
      writer.write_one()
      if time.monotonic() >= next_snapshot:
        writer.wait_for_all()
        take_snapshot(image, model, model.writes)
        next_snapshot = time.monotonic() + snapshot_s
    writer.wait_for_all()
  model.save(path)
  with open(path + ".latencies", "wb") as file:
    writer.latencies.tofile(file)
  return writer.failed


def compare(image, versions, where):
  wrong = []
  for first in range(0, len(versions), FILL_BYTES // BLOCK):
    data = image.read(first * BLOCK, FILL_BYTES)
    for block in range(first, first + FILL_BYTES // BLOCK):
      at = (block - first) * BLOCK
      if data[at:at + BLOCK] != block_of(block, versions[block]):
        wrong.append(f"{where}: block {block} should have version {versions[block]}, "
                     f"begins with {struct.unpack_from('<QQ', data, at)}")
  return wrong


def verify(ioctx, path):
  model = Model.load(path)
  wrong = []
  for name, versions in [(None, model.versions), *model.snapshots.items()]:
    with rbd.Image(ioctx, IMAGE, snapshot=name, read_only=True) as image:
      wrong += compare(image, versions, name or "image")
  print(f"{len(model.versions)} blocks, {len(model.snapshots)} snapshots, {model.writes} writes, {len(wrong)} wrong")
  return wrong


def held(_, path):
  model = Model.load(path)
  ages = [*model.snapshots.values(), model.versions]
  blocks = len(ages[0]) + sum(sum(map(int.__ne__, before, after)) for before, after in zip(ages, ages[1:]))
  print(blocks * BLOCK)
  return []


def trim(ioctx, path):
  model = Model.load(path)
  with rbd.Image(ioctx, IMAGE) as image:
    for name in model.snapshots:
      image.remove_snap(name)
  model.snapshots = {}
  model.save(path)
  return []


def main():
  mode, conf, pool, path, *more = sys.argv[1:]
  # Written through: the latency is the cluster's.
  cluster = rados.Rados(conffile=conf, conf={"rbd_cache": "false"})
  cluster.connect(timeout=30)
  ioctx = cluster.open_ioctx(pool)
  if mode == "fill":
    wrong = fill(ioctx, int(more[0]), path)
  elif mode == "load":
    wrong = load(ioctx, path, random.Random(int(more[0])), float(more[1]), float(more[2]))
  else:
    wrong = {"verify": verify, "held": held, "trim": trim}[mode](ioctx, path)
  for line in wrong[:10]:
    print(line)
  sys.stdout.flush()
  os._exit(1 if wrong else 0)


if __name__ == "__main__":
  main()
