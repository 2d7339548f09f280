# SPDX-License-Identifier: LGPL-2.1-or-later
"""What ceph-volume loads: the entry point `swimstore` of the group ceph_volume_handlers."""

from ceph_volume import terminal

from . import activate, grow, listing, prepare, zap


class SwimStore:
  name = "swimstore"
  help = "OSDs of SwimStore, each on a file system of its own"
  help_menu = help  # of `ceph-volume --help`

  COMMANDS = {
      "create": prepare.Create,
      "prepare": prepare.Prepare,
      "activate": activate.Activate,
      "list": listing.List,
      "grow": grow.Grow,
      "trigger": activate.Trigger,
      "zap": zap.Zap,
      "deactivate": activate.Deactivate,
  }

  def __init__(self, argv):
    self.argv = argv

  def main(self):
    usage = f"usage: ceph-volume swimstore COMMAND [--help]\n\n{self.help}\n\n{terminal.subhelp(self.COMMANDS)}"
    if not self.argv or self.argv[0] in ("-h", "--help", "help"):
      print(usage)
      return
    command = self.COMMANDS.get(self.argv[0])
    if not command:
      raise SystemExit(f"ceph-volume swimstore: there is no command '{self.argv[0]}'\n\n{usage}")
    command(self.argv[1:]).main()
