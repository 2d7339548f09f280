# SPDX-License-Identifier: LGPL-2.1-or-later
"""A store's superblock, as src/os/swimstore/format/superblock.h has it, for those who forge one."""

import struct

COPY_BYTES = 4096


def crc32c(data, crc=0):
  crc ^= 0xFFFFFFFF
  for byte in data:
    crc ^= byte
    for _ in range(8):
      crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
  return crc ^ 0xFFFFFFFF


def with_version(superblock, version):
  """Both copies, of this format version, under right checksums."""
  copy = bytearray(superblock[:COPY_BYTES])
  struct.pack_into("<I", copy, 8, version)
  feature_bytes = struct.unpack_from("<I", copy, 72)[0]
  struct.pack_into("<I", copy, 76, crc32c(copy[:76] + copy[80:80 + feature_bytes]))
  return bytes(copy) * 2
