#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Drop what OSDs and the kernel keep in memory of a store: drop_caches.py SOCKET...

The sockets are the OSDs' admin sockets. Exit status 1, and a line that says why, when a store cannot drop its caches
while it runs (KStore and MemStore cannot).
"""

import pathlib
import sys

import admin_socket


def main(sockets):
  for path in sockets:
    try:
      answer = admin_socket.ask(path, "cache drop", timeout=60)
    except admin_socket.NotAnswering as error:
      return f"drop_caches: {error}"
    if isinstance(answer, str) and "rror" in answer:
      return f"drop_caches: {path}: {answer.strip()}"
  pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
