# SPDX-License-Identifier: LGPL-2.1-or-later
"""The ceph.conf of a cluster of cluster.py."""

RADOSGW = "client.rgw.x"
MDS = "mds.a"


def text(directory, spec, state):
  """`spec`: its Spec; `state`: fsid and mon_port."""
  conf = {
      "fsid": state["fsid"], "mon host": f"[v2:127.0.0.1:{state['mon_port']}]",
      "auth cluster required": "none", "auth service required": "none", "auth client required": "none",
      "run dir": directory / "run", "pid file": f"{directory}/run/$name.pid",
      "admin socket": f"{directory}/run/$name.asok", "log file": f"{directory}/log/$name.log",
      "crash dir": f"{directory}/log", "mon cluster log file": f"{directory}/log/cluster.log",
      "osd pool default size": min(3, spec.osds), "osd pool default min size": 1,
      "osd crush chooseleaf type": 0, "osd pool default pg autoscale mode": "off",
      "mon allow pool size one": "true", "mon allow pool delete": "true",
      "mon warn on pool no redundancy": "false", "mon max pg per osd": 1000,
      "mon warn on insecure global id reclaim allowed": "false",
      "mgr initial modules": "",
      # The host's own disk is shared with the user: its fill level is not this cluster's business.
      "mon data avail warn": 2, "mon data avail crit": 1,
  }
  osd = {
      "public addr": "127.0.0.1", "cluster addr": "127.0.0.1",
      "osd objectstore": spec.store, "osd data": f"{directory}/osd.$id",
      "osd memory target": spec.osd_memory_target,
      # Without these the scheduler measures the device at boot, or throttles the run to a guess.
      "osd mclock skip benchmark": "true", "osd mclock max capacity iops hdd": 1000000,
      "osd mclock max capacity iops ssd": 1000000,
  }
  if spec.store == "filestore":
    osd |= {"osd journal": f"{directory}/osd.$id/journal", "osd journal size": 1024,
            # What FileStore asks for on ext4: its extended attributes are small there.
            "osd max object name len": 256, "osd max object namespace len": 64}
  if spec.store == "kstore":
    osd["enable experimental unrecoverable data corrupting features"] = "kstore"
  if spec.store == "memstore":
    osd["memstore device bytes"] = spec.size_bytes
  if spec.metadata_bytes and spec.backing_of(0) == "fs":
    osd["swimstore metadata path"] = f"{directory}/osd.$id.metadata/store"
  mgr = {"mgr data": f"{directory}/mgr.x", "public addr": "127.0.0.1"}
  client = {"log file": "/dev/null", "admin socket": "", "pid file": ""}
  # By default it talks to the monitor encrypted, for which it would need cephx.
  rgw = {name: conf[name] for name in client} | {"rgw data": f"{directory}/rgw", "ms mon client mode": "crc"}
  written = ""
  for section, entries in (("global", conf), ("client", client), ("mon", {"mon data": f"{directory}/mon.a"} | spec.mon_conf),
                           ("mgr", mgr | spec.mgr_conf), ("osd", osd | spec.conf), ("mds", {"mds data": f"{directory}/mds"}),
                           (RADOSGW, rgw)):
    written += f"[{section}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items()) + "\n"
  for osd, store in enumerate(spec.mixed):
    written += f"[osd.{osd}]\nosd objectstore = {store}\n\n"
  return written
