# SPDX-License-Identifier: LGPL-2.1-or-later
"""A user of CephFS, by ceph-fuse: fs_load.py says what is done."""

import json
import pathlib

import sysroot
from client_user import ClientUser

LOAD = pathlib.Path(__file__).resolve().parent / "fs_load.py"


class FsUser(ClientUser):
  name = "CephFS"
  folder_name = "fs"
  daemons = 1

  def __init__(self, scenario, cluster, args):
    super().__init__(scenario, cluster, args)
    self.directory = ""
    self.seed = args.seed

  def begin(self):
    self.folder.mkdir()
    self.cluster.shell(f"""set -e
      tar -cf {self.folder}/tree.tar -C "$SWIM_CEPH_SOURCE/src" {" ".join(self.args.trees)}
      ceph osd pool create fs.meta {self.args.pg_num // 2}
      ceph osd pool create fs.data {self.args.pg_num}
      ceph fs new fs fs.meta fs.data""")

  def start(self):
    self.cluster.start_mds()
    self.scenario.until(self._is_active, 120, "cephfs: the MDS is active")

  def _is_active(self):
    state = self.cluster.ceph_json("fs", "dump")["filesystems"][0]["mdsmap"]
    return [mds["state"] for mds in state["info"].values()] == ["up:active"]

  def before_restart(self):
    """Names and sizes come from their objects, not from the journal."""
    self.cluster.ceph("tell", "mds.a", "flush", "journal")

  def prepare(self, name):
    self.directory, self.seed = name, self.seed + 1
    sysroot.run(["python3", LOAD, "prepare", self.folder, name, *self.args.builds], timeout=600)

  def use(self):
    done, found = self._load("use", self.seed, self.args.fs_operations, *self.args.builds)
    operations = sum(found["operations"].values())
    self.scenario.check(done.returncode == 0 and operations == self.args.fs_operations,
                        f"cephfs: {operations} random operations answer as on the local file system",
                        done.stdout + done.stderr)
    seconds = found["seconds"]
    return {f"untar of {' and '.join(self.args.trees)}": (seconds["untar"], "s"),
            f"make in {' and '.join(self.args.builds)}": (seconds["build"], "s"),
            f"{operations} random operations": (seconds["operations"], "s")}

  def read_back(self, when):
    done, found = self._load("verify")
    self.scenario.check(done.returncode == 0 and found["names"] > 50 and found["in_snapshot"] > found["names"],
                        f"cephfs: mounted anew, {found['names']} files and directories, and {found['in_snapshot']} of the "
                        f"snapshot, are as they should be, {when}", done.stdout + done.stderr)

  def remove(self):
    self._load("remove")

  def _load(self, mode, *more):
    """The CompletedProcess, and what it found."""
    done = sysroot.run(["python3", LOAD, mode, self.cluster.dir / "ceph.conf", self.folder, self.directory, *more],
                       timeout=900, check=False)
    if not done.stdout.startswith("{"):
      raise sysroot.CommandFailed([LOAD.name, mode], f"exit {done.returncode}: {done.stderr[-1500:]}")
    return done, json.loads(done.stdout)
