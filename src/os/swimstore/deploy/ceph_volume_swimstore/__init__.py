# SPDX-License-Identifier: LGPL-2.1-or-later
"""`ceph-volume swimstore`: makes OSDs of SwimStore and brings them up at each start of a host.

What is needed to bring an OSD up lies on its device, nothing on the host, so that a disk may move to another one:

  plain      the file system has the label `swim-ID` and the OSD's fsid as its UUID
  encrypted  the LUKS2 header has them; a token in it has the rest (crypt.py); the file system within has neither

and the OSD's own files in it: type, whoami, fsid, ceph_fsid, keyring.
"""

__version__ = "0.9.0"
