# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ask a daemon through its admin socket, without starting a `ceph` process for it."""

import json
import socket
import struct


class NotAnswering(Exception):
  pass


def ask(path, prefix, timeout=10, **arguments):
  """Send one command; returns the decoded JSON (or the text where the answer is none)."""
  request = json.dumps({"prefix": prefix, "format": "json", **arguments}).encode() + b"\0"
  try:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as conn:
      conn.settimeout(timeout)
      conn.connect(str(path))
      conn.sendall(request)
      length, = struct.unpack(">I", _read(conn, 4))
      answer = _read(conn, length).decode()
  except OSError as error:
    raise NotAnswering(f"{path}: {error}") from error
  try:
    return json.loads(answer)
  except json.JSONDecodeError:
    return answer


def _read(conn, length):
  got = bytearray()
  while len(got) < length:
    received = conn.recv(length - len(got))
    if not received:
      raise OSError("closed in the middle of an answer")
    got += received
  return bytes(got)
