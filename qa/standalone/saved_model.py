# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a load knows of the cluster, kept from one run of it to the next in a file that is whole or not there."""

import os
import pickle


class SavedModel:
  @classmethod
  def load(cls, path):
    """What was saved."""
    with open(path, "rb") as file:
      return pickle.load(file)

  @classmethod
  def open(cls, path):
    """What was saved; a new one, if nothing was."""
    try:
      return cls.load(path)
    except FileNotFoundError:
      return cls()

  def save(self, path):
    with open(path + ".partial", "wb") as file:
      pickle.dump(self, file)
      os.fsync(file.fileno())
    os.rename(path + ".partial", path)
