# SPDX-License-Identifier: LGPL-2.1-or-later
"""What people write on command lines: sizes, and where results go."""

import os
import pathlib
import re

from sysroot import UserError

_FACTOR = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(text, what):
  """'64K' -> 65536. `what` is the option, for the error."""
  match = re.fullmatch(r"(\d+)([KMGT]?)(i?B)?", text.strip(), re.IGNORECASE)
  if not match or int(match[1]) == 0:
    raise UserError(f"{what} {text}: not a size; write it like 4096, 64K or 8G")
  return int(match[1]) * _FACTOR[match[2].upper()]


def show_size(size_bytes):
  for unit in "GMK":
    if size_bytes % _FACTOR[unit] == 0:
      return f"{size_bytes // _FACTOR[unit]}{unit}"
  return str(size_bytes)


def check_targets(*targets):
  """Before hours of measuring: (option, path or None) of what is to be written at the end."""
  for option, target in targets:
    if target and not os.access(pathlib.Path(target).resolve().parent, os.W_OK):
      raise UserError(f"{option} {target}: its directory does not exist or cannot be written; choose another place")
