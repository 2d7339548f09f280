#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""One object with a large omap. Runs inside the sysroot, where python3-rados is.

  omap_load.py fill CONF POOL KEYS   sets so many, with values of 400 random bytes
  omap_load.py thin CONF POOL KEYS   removes every second thousand of them
"""

import random
import sys

import rados

OBJECT = "omap"
VALUE_BYTES = 400
KEYS_OF_OPERATION = 1000


def main():
  mode, conf, pool, keys = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
  with rados.Rados(conffile=conf) as cluster, cluster.open_ioctx(pool) as ioctx:
    for first in range(0, keys, KEYS_OF_OPERATION * (1 if mode == "fill" else 2)):
      names = tuple(f"key{n:08}" for n in range(first, min(keys, first + KEYS_OF_OPERATION)))
      with rados.WriteOpCtx() as op:
        if mode == "fill":
          ioctx.set_omap(op, names, tuple(random.randbytes(VALUE_BYTES) for _ in names))
        else:
          ioctx.remove_omap_keys(op, names)
        ioctx.operate_write_op(op, OBJECT)


if __name__ == "__main__":
  main()
