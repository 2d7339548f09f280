# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the first processes of the hosts of own_host.py share: claims, an empty host, a monitor and a manager with cephx, and
OSDs that are made, started and exchanged by the commands of the page."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "tools"))

import page_recipe  # noqa: E402
import unit_by_hand  # noqa: E402

RECIPE = "doc/swimstore-operations.rst"
PACKAGE = "ceph-osd-swimstore"
PROGRAMS = pathlib.Path("/usr/lib/ceph-swimstore")
CEPH_UID = 64045  # Debian gives it to all
OBJECTS = 16
CONF = """[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:3300]
public addr = 127.0.0.1
osd pool default size = 1
osd pool default min size = 1
osd crush chooseleaf type = 0
mon allow pool size one = true
mon data avail crit = 1
# The packaged ceph-osd ends without waiting for the thread that writes its log: what it said last may be lost.
log flush on exit = true
"""
DEVICES = ("null", "zero", "random", "urandom", "full", "loop-control")
# What is asked of systemd, whoever asks, is written down.
SYSTEMCTL = """#!/bin/sh
echo "$*" >>/run/systemctl.log
exec {program} "$@"
"""
APT = """APT::Get::Assume-Yes "true";
DPkg::Path "/run/programs:/usr/sbin:/usr/bin:/sbin:/bin";
"""
# Of the OSD with the number $ID.
WAIT = """
wait_up() {
  for ((i = 0; i < 120; ++i)); do
    ! ceph osd dump | grep -q "^osd[.]$ID up" || return 0
    ps -o stat= -p "$(cat /run/ceph-osd@$ID.service.pid)" | grep -qv Z || break
    sleep 0.5
  done
  tail -n 8 /run/ceph-osd@$ID.service.log /var/log/ceph/ceph-osd.$ID.log
  return 1
}"""


def report(good, what, detail=""):
  print(json.dumps({"good": bool(good), "what": what, "detail": str(detail)[-1500:]}), flush=True)
  return good


def run(*args, timeout=60, **keywords):
  return subprocess.run([str(arg) for arg in args], text=True, timeout=timeout, stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT, **({"stdin": subprocess.DEVNULL} if "input" not in keywords else {}), **keywords)


def must(*args, **keywords):
  done = run(*args, **keywords)
  if done.returncode != 0:
    raise RuntimeError(f"{' '.join(str(arg) for arg in args)}: exit {done.returncode}: {done.stdout[-1500:]}")
  return done.stdout


def ceph(*args):
  # What the program itself has to say of its work goes to the same stream, before and behind.
  return json.loads([line for line in must("ceph", "-f", "json", *args).splitlines() if line.startswith(("{", "["))][-1])


def until(condition, seconds):
  deadline = time.monotonic() + seconds
  while not condition():
    if time.monotonic() > deadline:
      return False
    time.sleep(0.5)
  return True


@contextlib.contextmanager
def claims():
  """What raises inside is a claim that failed; whatever the page or the host refuses, before anything is done."""
  try:
    page_recipe.check_root()
    for heading in (page_recipe.INSTALL, page_recipe.CREATE, page_recipe.MAKE, page_recipe.START, page_recipe.UPDATE,
                    page_recipe.REMOVE):
      recipe(heading, device="/dev/loop")
  except page_recipe.Refused as error:
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {error}")
  try:
    yield
  except (RuntimeError, OSError, subprocess.SubprocessError, StopIteration, page_recipe.Refused) as error:
    report(False, f"{pathlib.Path(sys.argv[0]).name} comes to its end", repr(error))


# -- the host ---------------------------------------------------------------------------------------------------------

def own_devices(devices):
  """Whatever a command takes for a disk, those of the machine are not there."""
  dev = pathlib.Path("/run/dev")
  dev.mkdir()
  for path in (*(pathlib.Path("/dev", name) for name in DEVICES), *(pathlib.Path(device) for device in devices)):
    (dev / path.name).touch()
    must("mount", "--bind", path, dev / path.name)
  for name, target in {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}.items():
    (dev / name).symlink_to(f"/proc/self/fd{target}")
  (dev / "shm").mkdir(mode=0o1777)
  (dev / "pts").mkdir()
  must("mount", "-t", "devpts", "-o", "newinstance,ptmxmode=0666", "swim-host", dev / "pts")
  (dev / "ptmx").symlink_to("pts/ptmx")
  must("mount", "--rbind", dev, "/dev")
  there = sorted(path.name for path in pathlib.Path("/dev").iterdir() if path.is_block_device())
  if there != sorted(pathlib.Path(device).name for device in devices):
    raise page_recipe.Refused(f"/dev has the disks {there}")


def empty_host(devices):
  """As after the installation of Ceph's packages; systemd is there, for all who ask, in the form of unit_by_hand.py."""
  must("ip", "link", "set", "lo", "up")
  ceph_folders = sorted(path.name for path in pathlib.Path("/var/lib/ceph").iterdir())
  for folder in ("/etc/ceph", "/var/lib/ceph", "/var/log/ceph", "/run", "/etc/systemd/system"):
    must("mount", "-t", "tmpfs", "swim-host", folder)
  own_devices(devices)
  pathlib.Path("/etc/fstab").write_text("")
  pathlib.Path("/etc/default/ceph").write_text("# of the daemons\nSWIMSTORE_ANY_LIBRARY_BUILD=0\n")
  for folder in ("/run/ceph", "/var/log/ceph", "/var/lib/ceph", *(f"/var/lib/ceph/{name}" for name in ceph_folders)):
    pathlib.Path(folder).mkdir(exist_ok=True)
    os.chown(folder, CEPH_UID, CEPH_UID)
  pathlib.Path("/run/systemd/system").mkdir(parents=True)
  pathlib.Path("/usr/sbin/policy-rc.d").unlink()  # of the sysroot: nothing may be started there
  systemctl = pathlib.Path("/run/programs/systemctl")
  systemctl.parent.mkdir()
  systemctl.write_text(SYSTEMCTL.format(program=HERE / "unit_by_hand.py"))
  systemctl.chmod(0o755)
  pathlib.Path("/etc/apt/apt.conf.d/90host").write_text(APT)
  os.environ["PATH"] = f"{systemctl.parent}:{os.environ['PATH']}"
  os.environ["HOME"] = "/run"


def boot_cluster():
  """As Ceph's manual has it, with keyrings; `auth … = cephx` is the default."""
  fsid = str(uuid.uuid4())
  pathlib.Path("/etc/ceph/ceph.conf").write_text(CONF.format(fsid=fsid))
  admin, keys = "/etc/ceph/ceph.client.admin.keyring", "/run/mon.keyring"
  must("ceph-authtool", "--create-keyring", keys, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
  must("ceph-authtool", "--create-keyring", admin, "--gen-key", "-n", "client.admin",
       *(word for who in ("mon", "osd", "mds", "mgr") for word in ("--cap", who, "allow *")))
  must("ceph-authtool", keys, "--import-keyring", admin)
  must("monmaptool", "--create", "--fsid", fsid, "--addv", "a", "[v2:127.0.0.1:3300]", "/run/monmap")
  must("ceph-mon", "-i", "a", "--mkfs", "--monmap", "/run/monmap", "--keyring", keys)
  must("ceph-mon", "-i", "a", cwd="/")
  data = pathlib.Path("/var/lib/ceph/mgr/ceph-x")
  data.mkdir()
  key = must("ceph", "auth", "get-or-create", "mgr.x", "mon", "allow profile mgr", "osd", "allow *", "mds", "allow *")
  (data / "keyring").write_text(key)
  must("ceph-mgr", "-i", "x", cwd="/")
  stranger = run("ceph", "--connect-timeout", "5", "-n", "client.stranger", "-k", "/dev/null", "status")
  report(stranger.returncode != 0, "the cluster asks for keys: a client without one is refused", stranger.stdout)


# -- the page's commands ----------------------------------------------------------------------------------------------

def recipe(heading, **known):
  return page_recipe.section_commands(RECIPE, (CHECKOUT / RECIPE).read_text(), heading, **known)


def run_script(commands, what, after=(), end=""):
  """What it printed; each command's part begins with `@@` and its line of the page."""
  done = run("bash", "-c", "\n".join([WAIT, page_recipe.script(commands, after), end]), cwd="/run", timeout=240)
  ran = re.findall(r"^@@(\w+)$", done.stdout, re.M)
  if not report(done.returncode == 0 and ran[-1:] == ["done"], f"{RECIPE}: {len(ran) - 1} commands {what}",
                f"line {ran[-1:]}: {done.stdout}"):
    raise RuntimeError("there is no use to go on")
  return done.stdout


def install(package):
  """What apt-get and the package said."""
  for old in pathlib.Path("/run").glob(f"{PACKAGE}_*.deb"):
    old.unlink()
  shutil.copy(package, "/run")
  said = run_script(recipe(page_recipe.INSTALL), "install the package")
  report(is_held(), "the package is on hold")
  return said


def is_held():
  return must("apt-mark", "showhold").split() == [PACKAGE]


def make_osd(device):
  """What was printed, its number and its uuid."""
  commands = [*recipe(page_recipe.MAKE, device=device), *recipe(page_recipe.START)]
  started = "wait_up || exit 1\necho class $(ceph osd crush get-device-class osd.$ID)"
  said = run_script(commands, "make an OSD and start it", {"systemctl enable --now": started}, "echo $ID $UUID")
  return said, *said.split()[-2:]


def update_osd(osd):
  """By the page: what is stopped, exchanged and started, and what is left of it."""
  before = pid_of(osd)
  said = run_script(recipe(page_recipe.UPDATE, osd=osd), "update it", end="sleep 1; wait_up || exit 1")
  report(pid_of(osd) != before and "noout" not in ceph("osd", "dump")["flags"] and is_held(),
         "it was started again, the package is on hold, noout is unset")
  return said


# -- OSDs -------------------------------------------------------------------------------------------------------------

def pid_of(osd):
  return int(pathlib.Path(f"/run/ceph-osd@{osd}.service.pid").read_text())


def runs(osd):
  return unit_by_hand.is_running(pid_of(osd))


def stop(*osds):
  for osd in osds:
    must("systemctl", "stop", f"ceph-osd@{osd}", timeout=120)
  numbers = {int(osd) for osd in osds}
  down = until(lambda: not any(entry["up"] and entry["osd"] in numbers for entry in ceph("osd", "dump")["osds"]), 60)
  report(down, f"stopped: {', '.join(f'osd.{osd}' for osd in osds)}")


def put_objects(pool):
  put = run("bash", "-c", f"""set -e -o pipefail
    mkdir /run/{pool}
    for i in $(seq {OBJECTS}); do
      head -c $((i * 20011)) /dev/urandom >/run/{pool}/$i
      timeout 60 rados -p {pool} put $i /run/{pool}/$i
      rados -p {pool} setomapval $i key value.$i
    done""", timeout=120)
  report(put.returncode == 0, f"{OBJECTS} objects are written to {pool}", put.stdout)


def check_objects(pool, when):
  got = run("bash", "-c", f"""set -e -o pipefail
    test "$(timeout 60 rados -p {pool} ls | wc -l)" -eq {OBJECTS}
    for i in $(seq {OBJECTS}); do
      timeout 60 rados -p {pool} get $i - | cmp - /run/{pool}/$i
      rados -p {pool} getomapval $i key /run/value >/dev/null
      test "$(cat /run/value)" = value.$i
    done""", timeout=120)
  report(got.returncode == 0, f"the {OBJECTS} objects of {pool} read as they were written: {when}", got.stdout)
