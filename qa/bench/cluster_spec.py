# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a cluster of cluster.py is made of."""

import dataclasses
import os

import sysroot
from loop_disk import FILE_SYSTEMS
from sysroot import UserError

# Where a store keeps its bytes: on a file system of its own, on the raw device (BlueStore's best case), in memory.
BACKING = {"swimstore": "fs", "kstore": "fs", "filestore": "fs", "bluestore": "raw", "memstore": "memory"}
FILESTORE_ROOT = "bookworm"
GIB = 1 << 30


@dataclasses.dataclass
class Spec:
  """What one cluster is made of."""
  store: str
  osds: int = 1
  size_bytes: int = 8 * GIB
  fs: str = "ext4"
  conf: dict = dataclasses.field(default_factory=dict)
  mon_conf: dict = dataclasses.field(default_factory=dict)
  mgr_conf: dict = dataclasses.field(default_factory=dict)
  osd_memory_target: int = 2 * GIB
  ceph_osd: str = ""
  mixed: list = dataclasses.field(default_factory=list)  # the store of each OSD, where not all have `store`
  fault_disks: bool = False  # devices that can be told to fail, or to be slow (fault_disk.py)
  metadata_bytes: int = 0  # of each OSD's second device, never one of those: log and tree, or BlueStore's block.db; 0: none

  def check(self):
    self.check_values()
    for osd in range(self.osds):
      if self.store_of(osd) == "swimstore" and not os.access(self.osd_binary(osd), os.X_OK):
        raise UserError(f"{self.osd_binary(osd)}: no such program; build it first (qa/run-make-check.sh --help)")

  def check_values(self):
    if self.store not in BACKING:
      raise UserError(f"--store {self.store}: unknown store; choose one of {', '.join(BACKING)}")
    if not 1 <= self.osds <= 16:
      raise UserError(f"--osds {self.osds}: give a number from 1 to 16")
    if self.mixed and (len(self.mixed) != self.osds or not set(self.mixed) <= BACKING.keys() - {"filestore"}):
      raise UserError(f"mixed stores {', '.join(self.mixed)}: name one for each of {self.osds} OSDs, not filestore "
                      "(its daemons are of another release)")
    if self.fs not in FILE_SYSTEMS:
      raise UserError(f"--fs {self.fs}: unknown file system; choose one of {', '.join(FILE_SYSTEMS)}")
    if not 2 * GIB <= self.size_bytes <= 1024 * GIB:
      raise UserError(f"--size {self.size_bytes}: an OSD's device needs 2 GiB or more, 1 TiB at most")

  def store_of(self, osd):
    return self.mixed[osd] if self.mixed else self.store

  def backing_of(self, osd):
    return BACKING[self.store_of(osd)]

  def osd_binary(self, osd=0, release=""):
    """`release`: another one of Ceph than that of the other commands; not where ceph_osd is set."""
    if self.ceph_osd:
      return self.ceph_osd
    return str(sysroot.built("ceph-osd", release)) if self.store_of(osd) == "swimstore" else "ceph-osd"

  def beside_osd(self, name, osd=0):
    """Another program from where the ceph-osd is: its folder for swimstore, the packages otherwise."""
    folder = os.path.dirname(self.osd_binary(osd))
    return os.path.join(folder, name) if folder else name

  def root(self):
    """The sysroot that has this store's daemons."""
    return FILESTORE_ROOT if self.store == "filestore" else None
