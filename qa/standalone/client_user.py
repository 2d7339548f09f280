# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the users of a cluster have in common (sides.py).

begin() once, start() after each start of the OSDs; then for each name prepare(), use(), read_back() and remove(), with
before_restart() where all is started anew in between.
"""


class ClientUser:
  name = ""
  folder_name = ""  # below the cluster's, for what is local
  daemons = 0  # in front of the OSDs

  def __init__(self, scenario, cluster, args):
    self.scenario = scenario
    self.cluster = cluster
    self.args = args
    self.folder = cluster.dir / "run" / self.folder_name

  def start(self):
    """What is in front of the OSDs."""

  def before_restart(self):
    """Of the OSDs, and of what is in front of them."""
