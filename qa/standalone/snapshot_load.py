#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Objects that are long and thin, and many snapshots of them: much metadata beside little data. Runs inside the sysroot, where
python3-rados is.

  snapshot_load.py CONF POOL OBJECTS SNAPSHOTS SHARDS

Each object has one block of 4 KiB in each of SHARDS extent shards of 64 KiB. After each snapshot a block of each object is written
anew, so that OBJECTS * (SNAPSHOTS + 1) objects are stored, which share their blocks. Ends with status 1 after an error.
"""

import collections
import os
import sys

import rados

IN_FLIGHT = 64
BLOCK, SHARD = 4 << 10, 64 << 10


class Writer:
  """So many writes at a time; an error of one is raised."""

  def __init__(self, ioctx):
    self._ioctx = ioctx
    self._under_way = collections.deque()

  def write(self, number, offsets):
    with rados.WriteOpCtx() as op:
      for offset in offsets:
        op.write(os.urandom(BLOCK), offset)
      self._under_way.append(self._ioctx.operate_aio_write_op(op, f"object{number}"))
    if len(self._under_way) >= IN_FLIGHT:
      self._take_one()

  def finish(self):
    while self._under_way:
      self._take_one()

  def _take_one(self):
    completion = self._under_way.popleft()
    completion.wait_for_complete()
    if completion.get_return_value() < 0:
      raise rados.OSError(f"a write failed: {os.strerror(-completion.get_return_value())}")


def main():
  conf, pool, *numbers = sys.argv[1:]
  objects, snapshots, shards = (int(number) for number in numbers)
  cluster = rados.Rados(conffile=conf, conf={"rados_osd_op_timeout": "120"})
  cluster.connect(timeout=30)
  ioctx = cluster.open_ioctx(pool)
  writer = Writer(ioctx)
  for number in range(objects):
    writer.write(number, range(0, shards * SHARD, SHARD))
  writer.finish()
  taken = []
  for nth in range(snapshots):
    taken.insert(0, ioctx.create_self_managed_snap())
    ioctx.set_self_managed_snap_write(taken)
    for number in range(objects):
      writer.write(number, [nth % shards * SHARD])
    writer.finish()
  os._exit(0)  # librados' own end takes long


main()
