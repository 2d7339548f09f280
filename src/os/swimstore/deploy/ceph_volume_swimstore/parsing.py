# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the kernel and blkid print, taken apart. Pure: no file is opened here, and ceph_volume is not needed."""

import dataclasses
import json
import re

from . import names


@dataclasses.dataclass(frozen=True)
class Mount:
  device: str  # "8:17", major and minor
  path: str
  fs: str


@dataclasses.dataclass(frozen=True)
class Signature:
  kind: str  # as wipefs has it: ext4, LVM2_member, gpt …
  label: str
  uuid: str


def parse_blkid(text):
  """[{key: value}] of `blkid -o export`, a device each, with its DEVNAME."""
  blocks = (block.splitlines() for block in re.split(r"\n\s*\n", text) if block.strip())
  found = [dict(line.replace("\\", "").split("=", 1) for line in block if "=" in line) for block in blocks]
  return [entry for entry in found if "DEVNAME" in entry]


def parse_mountinfo(text):
  """/proc/self/mountinfo, in the order of mounting."""
  mounts = []
  for line in text.split("\n"):  # not splitlines() and split(): a name may hold a blank of Unicode's
    before, _, behind = line.partition(" - ")
    fields, kind = before.split(" "), behind.split(" ")
    if len(fields) < 6 or not kind[0]:
      continue
    path = re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), fields[4])
    mounts.append(Mount(fields[2], path, kind[0]))
  return mounts


def parse_swaps(text):
  """The devices of /proc/swaps."""
  return [line.split()[0] for line in text.splitlines()[1:] if line.split()]


def parse_locks(text):
  """{(major, minor, inode): process} of those who hold a lock by flock(), from /proc/locks; who waits has an arrow."""
  pattern = re.compile(r"^\d+: FLOCK\s+\w+\s+\w+\s+(-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) ", re.M)
  return {(int(major, 16), int(minor, 16), int(inode)): int(process)
          for process, major, minor, inode in pattern.findall(text)}


def parse_block(text):
  """The line that is all of a block as `xfs_db` or `debugfs` prints it, `000:  34 66 …  4f…` or `0000  3466 …  4f…`. ValueError
  where its end is not told: it goes on in another block, or `*` stands for what is like the line before."""
  told = text.partition("\n*\n")[0]
  found = bytes.fromhex("".join(re.findall(r"^[0-9a-f]+:?  ((?:[0-9a-f]{2} ?){1,16})", told, re.M)))
  if found and not found.endswith(b"\0"):
    raise ValueError("a line whose end is not told")
  return found.rstrip(b"\0").decode().removesuffix("\n")


def parse_wipefs(text):
  """Of `wipefs --json`, which prints nothing where it finds nothing. Both headers of LUKS2 count as one."""
  entries = json.loads(text)["signatures"] if text.strip() else []
  found = [Signature(entry["type"], entry.get("label") or "", entry.get("uuid") or "") for entry in entries]
  return [one for number, one in enumerate(found) if one.kind not in {earlier.kind for earlier in found[:number]}]


def swimstore_of(signatures):
  """(id, fsid, kind) of the SwimStore OSD that a device holds, and nothing else beside; None otherwise."""
  if len(signatures) != 1:
    return None
  (one,) = signatures
  osd_id = names.id_of_label(one.label)
  if osd_id is None or one.kind not in (*names.FILE_SYSTEMS, names.LUKS):
    return None
  return osd_id, one.uuid, one.kind


KINDS = {"LVM2_member": "a physical volume of LVM", "linux_raid_member": "a member of an MD RAID", "gpt": "a partition table (GPT)",
         "dos": "a partition table (MBR)", "PMBR": "a partition table (MBR of a GPT)", "swap": "swap space",
         "ceph_bluestore": "a BlueStore OSD", names.LUKS: "an encrypted volume (LUKS)", "zfs_member": "a member of a ZFS pool"}


def describe(signatures):
  """For the operator: `an ext4 file system 'home'`; empty when there is nothing."""
  osd = swimstore_of(signatures)
  if osd:
    osd_id, osd_fsid, kind = osd
    return f"osd.{osd_id} of SwimStore, {'encrypted, ' if kind == names.LUKS else f'{kind}, '}fsid {osd_fsid}"
  told = []
  for one in signatures:
    # wipefs tells no more of a file system than its type. "an xfs", as it is spoken.
    what = KINDS.get(one.kind, f"{'an' if one.kind[:1] in 'aefinx' else 'a'} {one.kind} file system")
    told.append(f"{what} '{one.label}'" if one.label else what)
  return " and ".join(told)


def size_in_words(size_bytes):
  for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
    if size_bytes < 1024 or unit == "TiB":
      return f"{size_bytes:.0f} B" if unit == "B" else f"{size_bytes:.1f} {unit}"
    size_bytes /= 1024
