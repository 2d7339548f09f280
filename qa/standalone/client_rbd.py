# SPDX-License-Identifier: LGPL-2.1-or-later
"""A user of RBD images: fio, by librbd.

What fio writes follows from its options. So the same job writes a file, which says what an image, a snapshot or a clone
should hold. Another job's blocks carry checksums of their own, and their places.
"""

import rbd_image
from client_user import ClientUser

SNAPSHOT = "first"
# The buffers' content follows from the seed and the depth, whatever the engine. By default the time would be in it.
DEPTH = 16
FIO = f"{rbd_image.FIO} --iodepth={DEPTH} --allrandrepeat=1 --scramble_buffers=0"
WRITES = "--rw=randwrite --bsrange=4k-64k"
DISCARDS = "--rw=randtrim --bs=64k"
CHECKED = WRITES + " --verify=crc32c --verify_fatal=1 --verify_dump=0 --verify_state_save=0 --randseed={seed}"


class RbdUser(ClientUser):
  """librbd asks the OSDs: there is nothing in front of them."""
  name = "RBD"
  folder_name = "rbd"
  pool = "images"
  data_pool = ""  # for the images' data, if it lies in another one

  def __init__(self, scenario, cluster, args):
    super().__init__(scenario, cluster, args)
    self.mib = args.rbd_mib
    self.model = self.folder / "model"
    self.seed = args.seed
    self.image = ""

  def begin(self):
    self.folder.mkdir()
    self._shell(f"""set -e
      ceph osd pool create {self.pool} {self.args.pg_num}
      rbd pool init {self.pool}""")

  def prepare(self, name):
    self.image, self.seed = name, self.seed + 10
    self._write_file(self.model, "psync", f"{WRITES} --randseed={self.seed}")

  def use(self):
    """Returns what is measured, {what: (value, unit)}."""
    self._shell(f"rbd create --size {self.mib}M {self._data_pool()} {self._spec()}")
    written = self._fio(self.image, f"{WRITES} --randseed={self.seed}")
    self._shell(f"""set -e
      rbd snap create --no-progress {self._spec()}@{SNAPSHOT}
      rbd snap protect {self._spec()}@{SNAPSHOT}
      rbd clone {self._data_pool()} {self._spec()}@{SNAPSHOT} {self._spec()}.clone
      cp {self.model} {self.model}.clone""")
    checked = self._fio(self.image, CHECKED.format(seed=self.seed + 1))
    self._change_clone()
    return {"fio writes 4-64 KiB at random, 16 in flight": (written["write"]["bw_bytes"] / 1e6, "MB/s"),
            "the same over a snapshot": (checked["write"]["bw_bytes"] / 1e6, "MB/s"),
            "fio reads and verifies it": (checked["read"]["bw_bytes"] / 1e6, "MB/s")}

  def _change_clone(self):
    """Writes to half of it, and discards a quarter, both in the file as well."""
    writes = f"{WRITES} --randseed={self.seed + 2} --io_size={self.mib // 2}M"
    discards = f"{DISCARDS} --randseed={self.seed + 3} --io_size={self.mib // 4}M"
    for engine, options in (("psync", writes), ("falloc", discards)):
      self._write_file(f"{self.model}.clone", engine, options)
      self._fio(f"{self.image}.clone", options)

  def read_back(self, when):
    for what, exported, wanted in (("snapshot", f"{self._spec()}@{SNAPSHOT}", self.model),
                                   ("clone", f"{self._spec()}.clone", f"{self.model}.clone")):
      out = self._shell(f"""set -o pipefail
        rbd export --no-progress {exported} - | cmp - {wanted} 2>&1 && echo same || true""")
      self.scenario.check(out == "same\n", f"rbd: the {what} holds what the same job wrote to a file, {when}", out[-500:])
    self._fio(self.image, CHECKED.format(seed=self.seed + 1) + " --verify_only=1")
    self.scenario.check(True, f"rbd: fio finds each block of the image right, {when}")

  def remove(self):
    self._shell(f"""set -e
      rbd rm --no-progress {self._spec()}.clone
      rbd snap unprotect {self._spec()}@{SNAPSHOT}
      rbd snap purge --no-progress {self._spec()}
      rbd rm --no-progress {self._spec()}""")

  def _data_pool(self):
    return f"--data-pool {self.data_pool}" if self.data_pool else ""

  def _spec(self):
    return f"{self.pool}/{self.image}"

  def _write_file(self, path, engine, options):
    self._shell(f"{FIO} --ioengine={engine} --filename={path} --size={self.mib}M {options} >/dev/null")

  def _fio(self, image, options):
    return rbd_image.fio(self.cluster, self.pool, image, options, program=FIO)

  def _shell(self, script):
    return self.cluster.shell(script, timeout=900)
