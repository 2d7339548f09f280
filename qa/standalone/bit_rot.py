# SPDX-License-Identifier: LGPL-2.1-or-later
"""A byte that changes on the disk of an OSD that is down, and its repair by a scrub."""

import mmap

from scenario import UserError

BLOCK_BYTES = 4096


def rot(cluster, osd, block):
  """Flips a byte of this block, wherever the OSD's files hold it."""
  cluster.ceph("osd", "set", "noout")
  cluster.stop_osd(osd)
  _flip_byte(cluster, osd, block)
  cluster.start_osd(osd)
  cluster.wait_up()
  cluster.ceph("osd", "unset", "noout")
  cluster.wait_clean()


def _flip_byte(cluster, osd, block):
  for path in sorted(path for path in cluster.osd_dir(osd).rglob("*") if path.is_file() and path.stat().st_size > 0):
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as bytes_of_file:
      at = bytes_of_file.find(block)
      if at >= 0:
        bytes_of_file[at + len(block) // 2] ^= 0x40
        bytes_of_file.flush()
        return
  raise UserError(f"osd.{osd}: its files do not hold the block that was to be damaged")


def repair_by_scrub(scenario, cluster, pgs, what):
  """Checks that a deep scrub finds errors in these PGs, and that `pg repair` fixes them."""
  def inconsistent():
    return {pg["pgid"] for pg in cluster.ceph_json("pg", "dump", "pgs")["pg_stats"] if "inconsistent" in pg["state"]}

  def found():
    for pg in pgs - inconsistent():
      cluster.ceph("pg", "deep-scrub", pg)
    return pgs <= inconsistent()

  def fixed():
    # Asked for again: a scrub that is about to begin when it is asked for takes its place.
    for pg in pgs & inconsistent():
      cluster.ceph("pg", "repair", pg)
      cluster.wait_clean()
    return not inconsistent()
  scenario.until(found, 120, f"deep scrub finds {what}")
  scenario.until(fixed, 120, "pg repair fixes them")
