#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many small objects, each with data, an xattr and omap that follow from its number and generation. Runs inside the
sysroot, where python3-rados is.

  many_objects.py write CONF POOL COUNT GENERATION   writes all of them, anew from generation 1 on
  many_objects.py read CONF POOL COUNT GENERATION    reads all of them

Prints one JSON object: how many are right, absent, wrong (other bytes) and refused (an error), and examples of the
last three. Exit status 1 when not all are right.
"""

import collections
import json
import os
import random
import sys

import rados

IN_FLIGHT = 32
BYTES = 5000
OMAP_KEYS = 8
EXAMPLES = 3


def content(number, generation):
  rng = random.Random(number * 1000 + generation)
  return rng.randbytes(BYTES), {f"key{key}": rng.randbytes(60) for key in range(OMAP_KEYS)}


class Answers:
  def __init__(self):
    self.counts = collections.Counter(right=0, absent=0, wrong=0, refused=0)
    self.examples = []

  def add(self, what, example):
    self.counts[what] += 1
    if what != "right" and len(self.examples) < EXAMPLES:
      self.examples.append(f"{example}: {what}")


def name_of(number):
  return f"object{number}"


def result_of(error):
  return "right" if error == 0 else "absent" if error == -2 else "refused"


def write_all(ioctx, count, generation):
  answers = Answers()
  under_way = collections.deque()

  def take_one():
    number, completion = under_way.popleft()
    completion.wait_for_complete()
    answers.add(result_of(completion.get_return_value()), name_of(number))

  for number in range(count):
    data, omap = content(number, generation)
    with rados.WriteOpCtx() as op:
      if generation == 0:
        op.write_full(data)
      else:
        op.write(data, 0)  # a change of the object that is there
      op.set_xattr("number", str(number).encode())
      ioctx.set_omap(op, tuple(omap), tuple(omap.values()))
      under_way.append((number, ioctx.operate_aio_write_op(op, name_of(number))))
    if len(under_way) >= IN_FLIGHT:
      take_one()
  while under_way:
    take_one()
  return answers


def read_one(ioctx, number, generation):
  data, omap = content(number, generation)
  with rados.ReadOpCtx() as op:
    found, _ = ioctx.get_omap_vals(op, "", "", OMAP_KEYS * 2)
    ioctx.operate_read_op(op, name_of(number))
    same = dict(found) == omap
  same &= ioctx.read(name_of(number), BYTES + 1) == data
  return same and ioctx.get_xattr(name_of(number), "number") == str(number).encode()


def read_all(ioctx, count, generation):
  answers = Answers()
  for number in range(count):
    try:
      answers.add("right" if read_one(ioctx, number, generation) else "wrong", name_of(number))
    except rados.ObjectNotFound:
      answers.add("absent", name_of(number))
    except rados.Error as error:
      answers.add("refused", f"{name_of(number)} ({error})")
  return answers


def main():
  mode, conf, pool, count, generation = sys.argv[1:]
  # What is never answered is a failure, too.
  cluster = rados.Rados(conffile=conf, conf={"rados_osd_op_timeout": "90"})
  cluster.connect(timeout=30)
  ioctx = cluster.open_ioctx(pool)
  answers = {"write": write_all, "read": read_all}[mode](ioctx, int(count), int(generation))
  print(json.dumps({**answers.counts, "examples": answers.examples}), flush=True)
  os._exit(0 if answers.counts["right"] == int(count) else 1)


main()
