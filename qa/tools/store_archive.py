# SPDX-License-Identifier: LGPL-2.1-or-later
"""What `ceph-swimstore-tool export` writes (doc/on_disk_format.md, Archive), made and read by a test."""

import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
from superblock import crc32c  # noqa: E402


def varint(number):
  out = b""
  while number >= 0x80:
    out += bytes([number & 0x7f | 0x80])
    number >>= 7
  return out + bytes([number])


def prefixed(data):
  return varint(len(data)) + data


def begin():
  """The header of version 1."""
  header = b"SWIMARCH" + struct.pack("<I", 1)
  return header + struct.pack("<I", crc32c(header))


def end(objects):
  return record(b"Z", struct.pack("<Q", objects))


def record(kind, body):
  head = kind + struct.pack("<I", len(body))
  return head + struct.pack("<I", crc32c(head + body)) + body


def get_varint(data, at):
  value = shift = 0
  while data[at] & 0x80:
    value, shift, at = value | (data[at] & 0x7f) << shift, shift + 7, at + 1
  return value | data[at] << shift, at + 1


def parse(archive):
  """What is in an archive, and not called doubtful there: object key and size to its data and its other records."""
  has_seed = struct.unpack_from("<I", archive, 8)[0] >= 3
  objects, position, current = {}, 28 if has_seed else 16, None
  while position < len(archive):
    kind, length = archive[position:position + 1], struct.unpack_from("<I", archive, position + 1)[0]
    body = archive[position + 9:position + 9 + length]
    position += 9 + length
    if kind == b"O":
      length, at = get_varint(body, 0)
      name = body[:get_varint(body, at + length)[1]]
      current = objects[name] = {"data": bytearray(), "rest": []}
    elif kind == b"Q":
      del objects[name]
    elif kind == b"D":
      offset = struct.unpack_from("<Q", body)[0]
      assert offset == len(current["data"])
      current["data"] += body[8:]
    elif kind in b"AHME":
      current["rest"].append((kind, body))
  return objects
