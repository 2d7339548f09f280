# SPDX-License-Identifier: LGPL-2.1-or-later
"""What scenarios do with an RBD image, from inside the sysroot: fio by librbd, and a checksum of all of it."""

import json

SECONDS_MAX = 900
# The blocks are the same each time, and are filled anew for each write.
FIO = "fio --name=load --output-format=json --thread --randrepeat=1 --refill_buffers=1"


def fio(cluster, pool, image, options, program=FIO):
  """What fio tells of its one job: {"read": …, "write": …}."""
  out = cluster.shell(f"{program} --ioengine=rbd --clientname=admin --pool={pool} --rbdname={image} {options}",
                      timeout=SECONDS_MAX)
  return json.loads(out[out.index("{"):])["jobs"][0]


def checksum(cluster, image):
  """`image`: POOL/IMAGE, or a snapshot of it."""
  return cluster.shell(f"set -o pipefail; rbd export --no-progress {image} - | md5sum", timeout=SECONDS_MAX)
