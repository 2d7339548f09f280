# SPDX-License-Identifier: LGPL-2.1-or-later
"""What ends a command. ceph-volume prints the class and the text, in one line, and exits with 1."""


class Refused(RuntimeError):
  """Nothing was done; the text names what was found and the remedy."""


class Failed(RuntimeError):
  """A program that was called, or what it made, is not as it should be. `code`, `said`: how it ended, and its last
  line, where that is known. `by_hand`: the text names a command for the device, to be typed before this is tried again."""

  def __init__(self, text, code=None, said="", by_hand=False):
    super().__init__(text)
    self.code = code
    self.said = said
    self.by_hand = by_hand
