# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ways to damage one cube of an OSD's store in its files, as a disk does it or an operator's slip."""

import mmap
import os
import shutil
import struct

UNIT = 4096
BLOCK_MAGIC = 0x6b62
BLOCK_VERSIONS = (1, 2)  # the second is compressed
BLOCK_KINDS = {"entries": 1, "index": 2, "tombstones": 3, "filter": 4, "descriptor": 5}
FEW = 16  # blocks of a kind: of a third of them none might be read
BITS_MAX = 8


def units_of(path, wanted):
  """Where in this file the units lie that are wanted."""
  if path.stat().st_size < UNIT:
    return []
  with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
    return [at for at in range(0, len(content) - UNIT + 1, UNIT) if wanted(content, at)]


def is_in_use(content, at):
  return content[at:at + UNIT] != bytes(UNIT)


def blocks_of(tree, *kinds):
  """Where in the tree's file a block of these kinds begins, wherever one was ever written."""
  numbers = [BLOCK_KINDS[kind] for kind in kinds]

  def is_block(content, at):
    magic, version, kind = struct.unpack_from("<4xHBB", content, at)
    return magic == BLOCK_MAGIC and version in BLOCK_VERSIONS and kind in numbers
  return units_of(tree, is_block)


def overwrite(path, places, rng):
  """Random bytes in place of these units."""
  with open(path, "r+b") as file:
    for at in places:
      file.seek(at)
      file.write(rng.randbytes(UNIT))
    file.flush()
    os.fsync(file.fileno())


def overwrite_blocks(tree, kinds, share, rng):
  """A share of the tree's blocks of these kinds, wherever one was ever written; all if FEW. Their number."""
  found = blocks_of(tree, *kinds)
  overwrite(tree, rng.sample(found, max(round(len(found) * share), min(FEW, len(found)))), rng)
  return len(found)


# What can be done to the cube in this directory while its OSD is stopped. Each says what it did.


def remove_directory(cube, _rng):
  shutil.rmtree(cube)
  return "its directory removed"


def remove_manifest(cube, _rng):
  (cube / "manifest").unlink()
  return "its manifest removed"


def overwrite_manifest(cube, rng):
  overwrite(cube / "manifest", units_of(cube / "manifest", lambda *_: True), rng)
  return "both copies of its manifest overwritten"


def overwrite_newest_segment(cube, rng):
  """With its header, or what lies behind that alone."""
  def epoch(segment):
    with open(segment, "rb") as file:
      return struct.unpack("<40xQ", file.read(48))[0]
  newest = max((cube / "log").glob("*.log"), key=epoch)
  begin = rng.choice((0, UNIT))
  used = [at for at in units_of(newest, is_in_use) if at >= begin]
  overwrite(newest, used, rng)
  return f"{len(used)} units of log/{newest.name} overwritten, from {begin} bytes on"


def overwrite_container_header(cube, rng):
  overwrite(cube / "containers" / "header", [0], rng)
  return "the header of its containers overwritten"


def overwrite_tree(cube, rng):
  found = units_of(cube / "tree", is_in_use)
  overwrite(cube / "tree", found, rng)
  return f"all {len(found)} units of its tree overwritten"


def overwrite_some_of_tree(cube, rng):
  found = units_of(cube / "tree", is_in_use)
  chosen = rng.sample(found, (len(found) + 2) // 3)
  overwrite(cube / "tree", chosen, rng)
  return f"{len(chosen)} of {len(found)} units of its tree overwritten"


def overwrite_entries(cube, rng):
  """The cube opens all the same: these are read when somebody asks for them."""
  found = overwrite_blocks(cube / "tree", ("entries",), 1 / 3, rng)
  return f"a third of {found} blocks of entries of its tree overwritten"


def flip_bits(cube, rng):
  """Of a file of metadata: read-errors.py does it to data."""
  segment = rng.choice(sorted((cube / "log").glob("*.log")))
  files = [cube / "manifest", cube / "tree", segment, cube / "containers" / "header"]
  path = rng.choice([file for file in files if units_of(file, is_in_use)])
  used = units_of(path, is_in_use)
  places = rng.sample(used, min(len(used), rng.randint(1, BITS_MAX)))
  with open(path, "r+b") as file:
    for unit in places:
      at = unit + rng.randrange(UNIT)
      file.seek(at)
      byte = file.read(1)[0]
      file.seek(at)
      file.write(bytes([byte ^ 1 << rng.randrange(8)]))
    file.flush()
    os.fsync(file.fileno())
  return f"{len(places)} bits of {path.relative_to(cube)} flipped"
