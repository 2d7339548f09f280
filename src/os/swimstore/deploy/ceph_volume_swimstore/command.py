# SPDX-License-Identifier: LGPL-2.1-or-later
"""Calls of other programs: shown, logged by ceph-volume, and never without a look at how they ended."""

import os

from ceph_volume import process

from .errors import Failed


def call(*words, stdin=None, show=True, good=(0,), secret=False, **keywords):
  """What it printed, in English whoever asks. `good`: ends that are none to complain of; `secret`: what it prints goes to no log."""
  words = [str(word) for word in words]
  try:
    # An empty line: who asks a question gets no answer, instead of waiting for one.
    out, err, code = process.call(list(words), stdin=stdin or "\n", show_command=show, verbose_on_failure=show,
                                  logfile_verbose=not secret,
                                  env=os.environ | {"LC_ALL": "C.UTF-8", "LANGUAGE": ""}, **keywords)
  except FileNotFoundError:
    raise Failed(f"{words[0]} is not there: install it") from None
  except UnicodeDecodeError as error:
    what = "something" if secret else repr(error.object[:80])
    raise Failed(f"{' '.join(words)}: it prints {what}, which is no UTF-8") from error
  if code not in good:
    lines = (line.strip() for line in reversed(err or out))
    said = next((line for line in lines if line and not line.startswith("dmesg(1) may have")), "it says nothing")
    raise Failed(f"{' '.join(words)}: exit {code}: {said}", code, said)
  return "\n".join(out)
