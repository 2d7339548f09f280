# SPDX-License-Identifier: LGPL-2.1-or-later
"""How things are called: labels, mappings, folders. Knows nothing of a host, nor of ceph_volume."""

import re
import uuid

from .errors import Refused

LABEL = re.compile(r"swim-(0|[1-9]\d*)")
LABEL_MAX = 12  # of xfs; ext4 and LUKS2 have more
SUBSYSTEM = "swimstore"  # of the LUKS2 header
FILE_SYSTEMS = ("ext4", "xfs")
LUKS = "crypto_LUKS"


def label_of(osd_id):
  label = f"swim-{int(osd_id)}"
  if len(label) > LABEL_MAX:
    raise Refused(f"osd.{osd_id}: the number is too long for the label of a file system")
  return label


def id_of_label(label):
  """None: no label of ours."""
  match = LABEL.fullmatch(label or "")
  return int(match[1]) if match else None


def mapping_of(osd_fsid):
  """Of an encrypted OSD, below /dev/mapper."""
  return f"swimstore-{osd_fsid}"


def folder_of(cluster, osd_id):
  return f"/var/lib/ceph/osd/{cluster}-{osd_id}"


def id_of_folder(cluster, path):
  """None: no OSD's."""
  match = re.fullmatch(rf"/var/lib/ceph/osd/{re.escape(cluster)}-(\d+)", path)
  return int(match[1]) if match else None


def valid_fsid(text):
  try:
    return str(uuid.UUID(text))
  except ValueError:
    raise Refused(f"{text}: no UUID; leave --osd-fsid out, and one is made") from None


def parse_trigger(text):
  """`7-FSID`, as it stands in the name of the unit."""
  match = re.fullmatch(r"(\d+)-([0-9a-fA-F-]{36})", text or "")
  if not match:
    raise Refused(f"'{text}' is not ID-FSID, as in ceph-volume@swimstore-ID-FSID.service")
  return int(match[1]), valid_fsid(match[2])
