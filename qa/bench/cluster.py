# SPDX-License-Identifier: LGPL-2.1-or-later
"""A Ceph cluster on this machine: one mon, one mgr, some OSDs, all on loopback, all in one directory.

  DIR/cluster.json   what was asked for; written before anything is attached, so that stop() can always tidy up
  DIR/ceph.conf      for `ceph -c`
  DIR/osd.N.img      backing file of OSD N's loop device (none for memstore)
  DIR/osd.N          OSD N's directory; the mount point of its own file system where the store needs one
  DIR/osd.N.metadata(.img)  the same of a device for its metadata, where one is asked for
  DIR/{mon,mgr,log,run}

Daemons belong to the cluster by their pid files, and a pid counts only if that process's command line names this
DIR: after a reboot the number may be somebody else's.
"""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
import uuid

import admin_socket
import ceph_conf
import ending
import images
import sysroot
from ceph_conf import MDS, RADOSGW
from cluster_spec import Spec
from fault_disk import FaultDisk
from loop_disk import LoopDisk, is_mounted, read_counters, share, unmount
from sysroot import UserError

SOCKET_PATH_MAX = 107
START_SECONDS = 300  # of a daemon: an OSD may check its store first


def packaged_environment(root):
  """NAME=VALUE of the environment file of Ceph's units: the size of tcmalloc's cache."""
  file = sysroot.cache_dir() / root / "etc/default/ceph"
  return re.findall(r"^\w+=\S*$", file.read_text(), re.M) if file.exists() else []


STATE_FILE = "cluster.json"


class Cluster:
  def __init__(self, directory, say=print):
    self.dir = pathlib.Path(directory).resolve()
    self.say = say
    self.spec = None
    self.state = {}
    self._started = set()  # OSDs that are meant to run
    if self._state_file.exists():
      self._load()

  # -- life -------------------------------------------------------------------------------------------------------

  def create(self, spec):
    """A new, empty cluster in DIR, started. Backing files of the right size are used again."""
    spec.check()
    self._check_directory(spec)
    if self.state:
      self._forget()
    self.spec = spec
    images.check_room(self.wanted_images(spec))
    self.dir.mkdir(parents=True, exist_ok=True)
    self.state = {"fsid": str(uuid.uuid4()), "release": sysroot.release_name(), "mon_port": free_port(),
                  "osd_uuids": [str(uuid.uuid4()) for _ in range(spec.osds)]}
    self._save()
    try:
      for disk in self._write_images():
        disk.attach()
        disk.wipe()
      for osd in self._osds_on("fs"):
        for disk in self._disks(osd):
          disk.make_file_system(spec.fs, few_files=spec.store != "filestore")
      self._attach_all()
      (self.dir / "ceph.conf").write_text(ceph_conf.text(self.dir, self.spec, self.state))
      self._boot_mon(new=True)
      self._make_osds()
      for osd in range(spec.osds):
        self.start_osd(osd)
      self.wait_up()
      self.state["complete"] = True
      self._save()
    except BaseException:
      self.stop()
      raise

  def write_images(self, spec):
    """The slow part of create(), ahead of it. For a cluster that does not run."""
    self.stop()
    kept, self.spec = self.spec, spec
    try:
      self._write_images()
    finally:
      self.spec = kept

  def can_resume(self):
    """Whether DIR holds a stopped cluster with data: making it had succeeded, and its store outlives a stop."""
    return bool(self.state.get("complete")) and not self._osds_on("memory")

  def resume(self):
    """Start the stopped cluster that DIR holds, with its data."""
    if not self.can_resume():
      raise UserError(f"{self.dir}: holds no cluster that could be taken up again; make a new one")
    made_by = self.state.get("release", "reef")
    if made_by != sysroot.release_name():
      raise UserError(f"{self.dir}: its cluster is of {made_by}; set SWIM_RELEASE to that, or make a new one")
    try:
      self._attach_all()
      self._boot_mon(new=False)
      for osd in range(self.spec.osds):
        self.start_osd(osd)
      self.wait_up()
    except BaseException:
      self.stop()
      raise

  def stop(self):
    """End every daemon, unmount, detach. Safe to call at any time, any number of times."""
    if self.state:
      with ending.whole():
        self._stop()

  def _stop(self):
    self._started.clear()
    self.kill_front()
    daemons = [f"osd.{osd}" for osd in range(self.spec.osds)] + ["mgr.x", "mon.a"]
    for daemon in daemons:
      self._signal(daemon, signal.SIGTERM)
    for daemon in daemons:
      if not self._wait_gone(daemon, 20):
        self.say(f"{daemon} ignores SIGTERM; killing it")
        self._signal(daemon, signal.SIGKILL)
        self._wait_gone(daemon, 10)
      self._pid_file(daemon).unlink(missing_ok=True)
    for osd in range(self.spec.osds):
      unmount(self.osd_dir(osd))
      unmount(self.metadata_dir(osd))
    for osd in range(self.spec.osds):
      for disk in self._disks(osd):
        disk.detach()
    # Last: a loop device may hold its backing file through this mount.
    unmount(self.dir)

  def remove(self):
    """Stop, delete what the cluster stored, and give its images back."""
    with ending.whole():
      self._forget()
      for image in self.dir.glob("osd.*.img"):
        images.give_back(image)
      for image in self.dir.glob("osd.*.partial"):
        image.unlink()
      if self.dir.exists() and not any(self.dir.iterdir()):
        self.dir.rmdir()

  def _forget(self):
    self.stop()
    if not self.dir.exists():
      return
    for entry in self.dir.iterdir():
      if is_mounted(entry):
        raise UserError(f"{entry}: still mounted; unmount it first")
    names = ["mon.a", "mgr.x", "mds", "rgw", "log", "run", "ceph.conf"]
    names += [f"osd.{osd}{end}" for osd in range(self.spec.osds if self.spec else 0) for end in ("", ".metadata")]
    for name in names:
      path = self.dir / name
      shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    self._state_file.unlink(missing_ok=True)
    self.state = {}

  def trim(self):
    """Give the host what the OSDs' file systems have free: images that are kept to be looked at need no more."""
    for osd in self._osds_on("fs") if self.state else ():
      if is_mounted(self.osd_dir(osd)):
        subprocess.run(["fstrim", self.osd_dir(osd)], stderr=subprocess.DEVNULL, check=False)

  def running(self):
    """Names of the daemons that are alive."""
    if not self.state:
      return []
    daemons = ["mon.a", "mgr.x"] + [f"osd.{osd}" for osd in range(self.spec.osds)] + [MDS, RADOSGW]
    return [daemon for daemon in daemons if self._pid(daemon)]

  # -- what some clients need in front of the OSDs ----------------------------------------------------------------

  def start_mds(self):
    (self.dir / "mds").mkdir(exist_ok=True)
    self._spawn(MDS, ["ceph-mds", "-i", MDS.partition(".")[2]])

  def start_radosgw(self, port):
    """On loopback, without TLS."""
    (self.dir / "rgw").mkdir(exist_ok=True)
    self._spawn(RADOSGW, ["radosgw", "-n", RADOSGW, "--rgw-frontends", f"beast endpoint=127.0.0.1:{port}"])

  def kill_front(self):
    """Both, if they run. An MDS that is asked to end takes 10 s; neither has anything for itself."""
    for daemon in (RADOSGW, MDS):
      self._kill(daemon)

  # -- another release --------------------------------------------------------------------------------------------

  def change_release(self, daemon, release):
    """From its next start on `daemon`, such as osd.0, is of that release of Ceph."""
    self.state.setdefault("releases", {})[daemon] = release
    self._save()

  def restart_mon_and_mgr(self):
    for daemon in ("mgr.x", "mon.a"):
      self._end(daemon, 60)
    self._boot_mon(new=False)

  def _release_of(self, daemon):
    """Empty: that of the other commands."""
    return self.state.get("releases", {}).get(daemon, "")

  # -- single OSDs ------------------------------------------------------------------------------------------------

  def start_osd(self, osd, *options):
    """`options` go to the command line, such as --swimstore_fsck_on_mount=true."""
    self._spawn(f"osd.{osd}", [self._osd_binary(osd), "-i", osd, *options])
    self._started.add(osd)

  def kill_osd(self, osd):
    """kill -9, and wait until the process is gone."""
    self._started.discard(osd)
    self._kill(f"osd.{osd}")

  def freeze_osd(self, osd):
    """SIGSTOP, until thaw_osd()."""
    self._signal(f"osd.{osd}", signal.SIGSTOP)

  def thaw_osd(self, osd):
    self._signal(f"osd.{osd}", signal.SIGCONT)

  def stop_osd(self, osd, timeout=60):
    self._started.discard(osd)
    self._end(f"osd.{osd}", timeout)

  def remake_osd(self, osd):
    """A new, empty store in the place of a stopped one's, started. Ceph fills it."""
    if self.osd_alive(osd):
      raise UserError(f"osd.{osd} runs; stop it first")
    self._started.discard(osd)
    self._pid_file(f"osd.{osd}").unlink(missing_ok=True)
    for entry in self.osd_dir(osd).iterdir():
      if entry.name != "lost+found":
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    shutil.rmtree(self.metadata_dir(osd) / "store", ignore_errors=True)
    self.state["osd_uuids"][osd] = osd_uuid = str(uuid.uuid4())
    self._save()
    self.shell(f"set -e\nceph osd destroy {osd} --force --yes-i-really-mean-it\nceph osd new {osd_uuid} {osd}")
    self._make_osd(osd)
    self.start_osd(osd)

  def osd_alive(self, osd):
    return self._pid(f"osd.{osd}") is not None

  def osd_pid(self, osd):
    return self._pid(f"osd.{osd}")

  def osd_crashed(self, osd):
    """Ended without being told to. The pid file tells nothing: a daemon that gets a fatal signal removes it."""
    return osd in self._started and not self.osd_alive(osd)

  def wait_up(self, timeout=90, osds=None):
    """Until every OSD process, or each of these, says it is active: the monitor has taken it in then."""
    deadline = time.monotonic() + timeout
    for osd in range(self.spec.osds) if osds is None else osds:
      while True:
        if not self.osd_alive(osd):
          raise UserError(f"osd.{osd} ended while starting; the end of its log:\n{self.log_tail(f'osd.{osd}')}")
        try:
          status = self.ask_osd(osd, "status")
          # Text: the socket is there and does not know the command yet.
          if isinstance(status, dict) and status.get("state") == "active":
            break
        except admin_socket.NotAnswering:
          pass
        if time.monotonic() > deadline:
          raise UserError(f"osd.{osd} not active after {timeout} s; the end of its log:\n"
                          f"{self.log_tail(f'osd.{osd}')}")
        time.sleep(0.2)

  def socket(self, osd):
    return self.dir / "run" / f"osd.{osd}.asok"

  def ask_osd(self, osd, command, **arguments):
    return admin_socket.ask(self.socket(osd), command, **arguments)

  def homes(self, osd):
    """{placement group: its cube}, as the running OSD of a swimstore says it. It leaves out what is locked just then."""
    homes = {}
    for _ in range(8):
      status = self.ask_osd(osd, "swimstore status")
      homes |= {pg: cube["cube"] for cube in status["cubes"] for pg in cube.get("placement_groups", [])}
      time.sleep(0.05)
    return homes

  def osd_memory_bytes(self, osd):
    """What is resident of its process; 0 when it does not run."""
    try:
      return int(pathlib.Path(f"/proc/{self._pid(f'osd.{osd}')}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (FileNotFoundError, ProcessLookupError):
      return 0

  def osd_dir(self, osd):
    return self.dir / f"osd.{osd}"

  def wanted_images(self, spec):
    """What `spec` needs here, for images.check_room()."""
    osds = [osd for osd in range(spec.osds) if spec.backing_of(osd) != "memory"]
    return ([(self.dir / f"osd.{osd}.img", spec.size_bytes) for osd in osds] +
            [(self.dir / f"osd.{osd}.metadata.img", spec.metadata_bytes) for osd in osds if spec.metadata_bytes])

  def disk(self, osd):
    return (FaultDisk if self.spec.fault_disks else LoopDisk)(self.dir / f"osd.{osd}.img", self.spec.size_bytes)

  def metadata_disk(self, osd):
    return LoopDisk(self.dir / f"osd.{osd}.metadata.img", self.spec.metadata_bytes)

  def metadata_dir(self, osd):
    return self.dir / f"osd.{osd}.metadata"

  def _disks(self, osd):
    return [self.disk(osd), *([self.metadata_disk(osd)] if self.spec.metadata_bytes else [])]

  def devices(self):
    """Loop devices in use, by OSD; empty for memstore."""
    found = [disk.device() for osd in range(self.spec.osds) for disk in self._disks(osd)]
    return [device for device in found if device]

  def device_counters(self):
    return [read_counters(device) for device in self.devices()]

  # -- talking to it ----------------------------------------------------------------------------------------------

  def command_line(self, *args):
    """argv prefix for a client program inside the sysroot: command_line("rados", "df")."""
    return sysroot.command([args[0], "-c", self.dir / "ceph.conf", *args[1:]])

  def client(self, *args, check=True, timeout=120, stdin=None):
    """Run a client program (ceph, rados, rbd) against this cluster; returns its stdout."""
    return sysroot.run([args[0], "-c", self.dir / "ceph.conf", *args[1:]], check=check, timeout=timeout,
                       stdin=stdin).stdout

  def ceph(self, *args, timeout=120):
    return self.client("ceph", *args, timeout=timeout)

  def ceph_json(self, *args, timeout=120):
    return json.loads(self.client("ceph", "-f", "json", *args, timeout=timeout))

  def create_pool(self, name, pg_num=32, size=None, application="bench"):
    size = size or min(3, self.spec.osds)
    script = f"""set -e
      ceph osd pool create {name} {pg_num} {pg_num} replicated --size {size} --autoscale-mode off
      ceph osd pool set {name} min_size {max(1, size - 1)}
      ceph osd pool application enable {name} {application}"""
    if self.spec.root():
      script = script.replace(f" --size {size} --autoscale-mode off", "")
    self.shell(script)

  def create_ec_pool(self, name, overwrites=False, k=2, m=1):
    """For k + m OSDs, of which m may be lost."""
    script = f"""set -e
      ceph osd erasure-code-profile set {name} k={k} m={m} crush-failure-domain=osd
      ceph osd pool create {name} 8 8 erasure {name} --autoscale-mode off
      ceph osd pool application enable {name} bench"""
    self.shell(script + (f"\nceph osd pool set {name} allow_ec_overwrites true" if overwrites else ""))

  def shell(self, script, timeout=120, check=True):
    """A shell script inside, where ceph, rados and rbd know the cluster."""
    preface = f"export CEPH_CONF={self.dir}/ceph.conf\n"
    return sysroot.run(["bash", "-c", preface + script], timeout=timeout, check=check).stdout

  def pg_states(self):
    """{state: count} over all PGs, once the manager knows as many as the map has; else {}."""
    out = self.shell("ceph -f json status; echo; echo SPLIT; ceph -f json osd dump")
    status, osd_map = (json.loads(text) for text in out.split("SPLIT"))
    wanted = sum(pool["pg_num"] for pool in osd_map["pools"])
    states = {entry["state_name"]: entry["count"] for entry in status["pgmap"]["pgs_by_state"]}
    return states if sum(states.values()) == wanted else {}

  def wait_clean(self, timeout=180, what="active+clean"):
    """Until every PG is active+clean (scrubbing too counts), by statistics sent after this call."""
    deadline = time.monotonic() + timeout
    self.flush_pg_stats()
    while True:
      states = self.pg_states()
      if states and all(state.startswith("active+clean") for state in states):
        return states
      if time.monotonic() > deadline:
        raise UserError(f"PGs not {what} after {timeout} s: {states or 'no statistics'}")
      time.sleep(1)

  def flush_pg_stats(self, timeout=30):
    """Have every live OSD send its PG statistics, and wait until the manager has them."""
    wanted = {}
    for osd in range(self.spec.osds):
      try:
        answer = self.ask_osd(osd, "flush_pg_stats")
        wanted[osd] = int(answer["stat_seq"] if isinstance(answer, dict) else answer)
      except (admin_socket.NotAnswering, KeyError, ValueError, TypeError):
        continue
    deadline = time.monotonic() + timeout
    for osd, seq in wanted.items():
      while int(self.ceph("osd", "last-stat-seq", f"osd.{osd}").strip() or 0) < seq:
        if time.monotonic() > deadline:
          return
        time.sleep(0.5)

  def space(self):
    """What the OSDs' stores report, summed. An OSD looks anew once in each heartbeat interval."""
    self.flush_pg_stats()
    found = [entry["statfs"] for entry in self.ceph_json("pg", "dump", "osds")["osd_stats"]]
    return {what: sum(statfs[what] for statfs in found) for what in ("total", "available", "allocated", "data_stored")}

  def log_tail(self, daemon, lines=12):
    try:
      return "\n".join((self.dir / "log" / f"{daemon}.log").read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
      return "(no log)"

  # -- within -----------------------------------------------------------------------------------------------------

  @property
  def _state_file(self):
    return self.dir / STATE_FILE

  def _load(self):
    try:
      saved = json.loads(self._state_file.read_text())
      self.spec = Spec(**saved["spec"])
      self.state = saved["state"]
    except (ValueError, KeyError, TypeError) as error:
      raise UserError(f"{self._state_file}: not a cluster's state ({error}); "
                      "stop its daemons by hand and delete the directory") from error

  def _save(self):
    partial = self._state_file.with_suffix(".partial")
    partial.write_text(json.dumps({"spec": dataclasses.asdict(self.spec), "state": self.state}, indent=2))
    partial.rename(self._state_file)

  def _check_directory(self, spec):
    if not sysroot.is_visible_inside(self.dir):
      raise UserError(f"{self.dir}: not visible to the cluster's programs; choose a directory below "
                      f"{sysroot.cache_dir()} or {sysroot.CHECKOUT}")
    longest = self.dir / "run" / f"osd.{spec.osds}.asok"
    if len(str(longest)) > SOCKET_PATH_MAX:
      raise UserError(f"{self.dir}: too long for a socket's path; choose a shorter directory")
    if self.dir.exists() and not self.state and any(
            not entry.name.endswith((".img", ".partial")) for entry in self.dir.iterdir()):
      raise UserError(f"{self.dir}: not empty and not a cluster; choose another directory")
    if self.running():
      raise UserError(f"{self.dir}: a {self.spec.store} cluster runs here; stop it first")

  def _write_images(self):
    disks = [disk for osd in self._osds_on("fs", "raw") for disk in self._disks(osd)]
    for disk in disks:
      disk.write_image(self.say)
    return disks

  def _osds_on(self, *backings):
    return [osd for osd in range(self.spec.osds) if self.spec.backing_of(osd) in backings]

  def _attach_all(self):
    if self._osds_on("fs"):
      share(self.dir)
    for osd in range(self.spec.osds):
      backing = self.spec.backing_of(osd)
      if backing == "memory":
        self.osd_dir(osd).mkdir(exist_ok=True)
        continue
      places = (self.osd_dir(osd), "block"), (self.metadata_dir(osd), "block.db")
      for disk, (folder, link_name) in zip(self._disks(osd), places):
        device = disk.attach()
        if backing == "fs":
          disk.mount(folder, self.spec.fs)
        else:
          self.osd_dir(osd).mkdir(exist_ok=True)
          link = self.osd_dir(osd) / link_name
          link.unlink(missing_ok=True)
          link.symlink_to(device)

  def _boot_mon(self, new):
    for name in ("log", "run", "mon.a", "mgr.x"):
      (self.dir / name).mkdir(exist_ok=True)
    if new:
      # Without a map of its own making the monitor takes the standard port, whatever `mon host` says.
      monmap = self.dir / "run" / "monmap"
      sysroot.run(["monmaptool", "--create", "--clobber", "--fsid", self.state["fsid"], "--addv", "a",
                   f"[v2:127.0.0.1:{self.state['mon_port']}]", monmap], root=self.spec.root())
      self._inside("ceph-mon", "-i", "a", "--mkfs", "--monmap", monmap)
      monmap.unlink()
    self._spawn("mon.a", ["ceph-mon", "-i", "a"])
    self._spawn("mgr.x", ["ceph-mgr", "-i", "x"])

  def _make_osds(self):
    self.say(f"making {self.spec.osds} OSD(s): {', '.join(self.spec.mixed) or self.spec.store}")
    # Debian's Python refuses to load the manager's modules, none of which is needed here.
    self.shell("set -e\nceph health mute MGR_MODULE_DEPENDENCY --sticky 2>/dev/null\n" + "\n".join(
        f"ceph osd new {osd_uuid} {osd} >/dev/null" for osd, osd_uuid in enumerate(self.state["osd_uuids"])))
    for osd in range(self.spec.osds):
      self._make_osd(osd)

  def _make_osd(self, osd):
    self._inside(self._osd_binary(osd), "-i", osd, "--mkfs", "--osd-uuid", self.state["osd_uuids"][osd], daemon=f"osd.{osd}")

  def _osd_binary(self, osd):
    return self.spec.osd_binary(osd, self._release_of(f"osd.{osd}"))

  def _inside(self, program, *args, daemon="", timeout=120):
    release = self._release_of(daemon)
    root = sysroot.RELEASES[release].root if release else self.spec.root() or sysroot.release().root
    # In /, as an init system starts it: Debian's default of `osd class dir` is a relative path.
    return sysroot.run(["env", "-C", "/", *packaged_environment(root), program, "-c", self.dir / "ceph.conf", *args],
                       root=root, timeout=timeout)

  def _spawn(self, daemon, argv):
    """The program puts itself into the background once it has initialised; its pid file tells the rest."""
    if self._pid(daemon):
      raise UserError(f"{daemon} of {self.dir} runs already")
    self._pid_file(daemon).unlink(missing_ok=True)
    try:
      self._inside(*argv, daemon=daemon, timeout=START_SECONDS)
    except sysroot.CommandFailed as failed:
      raise UserError(f"{daemon} did not start; {failed}\n{self.log_tail(daemon)}") from failed

  def _end(self, daemon, timeout):
    self._signal(daemon, signal.SIGTERM)
    if not self._wait_gone(daemon, timeout):
      raise UserError(f"{daemon} did not end within {timeout} s; see {self.dir}/log")
    self._pid_file(daemon).unlink(missing_ok=True)

  def _kill(self, daemon):
    self._signal(daemon, signal.SIGKILL)
    if not self._wait_gone(daemon, 10):
      raise UserError(f"{daemon} outlives SIGKILL; see {self.dir}/log")
    self._pid_file(daemon).unlink(missing_ok=True)

  def _pid_file(self, daemon):
    return self.dir / "run" / f"{daemon}.pid"

  def _pid(self, daemon):
    try:
      pid = int(self._pid_file(daemon).read_text())
      words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError, ValueError):
      return None
    return pid if str(self.dir / "ceph.conf") in words else None

  def _signal(self, daemon, number):
    pid = self._pid(daemon)
    if pid:
      try:
        os.kill(pid, number)
      except ProcessLookupError:
        pass

  def _wait_gone(self, daemon, timeout):
    deadline = time.monotonic() + timeout
    while self._pid(daemon):
      if time.monotonic() > deadline:
        return False
      time.sleep(0.05)
    return True


def free_port():
  with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    return probe.getsockname()[1]
