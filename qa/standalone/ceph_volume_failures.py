# SPDX-License-Identifier: LGPL-2.1-or-later
"""What `ceph-volume swimstore create` leaves behind when one of its steps fails, and of encrypted OSDs what a kernel shows."""

import contextlib
import json
import os
import pathlib
import shutil

from ceph_volume_host import OSDS, PROGRAM, create, devices_listed, enabled, is_empty, swimstore, wait_up
from own_host_inside import ceph, must, report, run, stop

OTHER_FSID = "3f2504e0-4f89-41d3-9a0c-0305e82c3309"
BROKEN = pathlib.Path("/run/broken")
# In the place of a program: what is asked of it fails, without having done anything, or when it is done.
STUB = """#!/bin/sh
case " $* " in
{pattern})
  {work}
  ;;
esac
exec {real} "$@"
"""
FAILS = "echo 'it is broken' >&2; exit 5"
WORKS = {"before": FAILS, "after": "{real} \"$@\"; " + FAILS,
         "ends ceph-volume": "kill -TERM $PPID; sleep 2; exec {real} \"$@\""}
# {step: (program, what it is asked)}
STEPS = {
    "the key": ("ceph-authtool", "*gen-print-key*"),
    "the number": ("ceph", "*' osd new '*"),
    "mkfs": ("mkfs.ext4", "*"),
    "mount": ("mount", "*noatime*"),
    "chown": ("chown", "*"),
    "ceph-osd --mkfs": ("ceph-osd", "*' --mkfs '*"),
    "enabling it": ("systemctl", "*' enable ceph-volume'*"),
    "enabling it for now": ("systemctl", "*' enable --runtime '*"),
    "starting it": ("systemctl", "*' start '*"),
}
QUICK = (("the number", "after"), ("mkfs", "after"), ("mount", "after"), ("ceph-osd --mkfs", "after"), ("starting it", "after"),
         ("mkfs", "ends ceph-volume"))


@contextlib.contextmanager
def broken(program, pattern, how):
  real = PROGRAM if program == "ceph-osd" else shutil.which(program)
  BROKEN.mkdir(exist_ok=True)
  stub = BROKEN / program
  stub.write_text(STUB.format(pattern=pattern, real=real, work=WORKS.get(how, how).format(real=real)))
  stub.chmod(0o755)
  before = dict(os.environ)
  os.environ["PATH"] = f"{BROKEN}:{os.environ['PATH']}"
  if program == "ceph-osd":
    os.environ["SWIMSTORE_CEPH_OSD"] = str(stub)
  try:
    yield
  finally:
    os.environ.clear()
    os.environ.update(before)
    stub.unlink()


def traces():
  """Of an OSD, wherever one leaves some."""
  return {"numbers": sorted((entry["osd"], entry["uuid"], *entry["state"]) for entry in ceph("osd", "dump")["osds"]),
          "keys": sorted(entry["entity"] for entry in ceph("auth", "ls")["auth_dump"]),
          "secrets": sorted(ceph("config-key", "ls")),
          "tree": sorted(node["name"] for node in ceph("osd", "tree")["nodes"]),
          "folders": sorted(path.name for path in OSDS.iterdir()),
          "mounts": sorted(line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()),
          "units": enabled(),
          "now": sorted(path.name for path in pathlib.Path("/run/systemd/system").glob("*.wants/*")),
          "mappings": sorted(path.name for path in pathlib.Path("/dev/mapper").glob("swimstore-*"))}


def check_nothing_left(device, step, how, *options):
  before = traces()
  with broken(*STEPS[step], how):
    done = create(device, *options)
  after = traces()
  different = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
  what = f"{step}, {how}: " if how != "ends ceph-volume" else f"SIGTERM at {step}: "
  told = how == "ends ceph-volume" or "it is broken" in done.stdout and "exit 5" in done.stdout.strip().splitlines()[-1]
  report(done.returncode != 0 and told and "not taken back" not in done.stdout, f"{what}create fails, and says why", done.stdout)
  report(not different and is_empty(device), f"{what}nothing is left of it",
         f"{different}; {run('wipefs', device).stdout}; {done.stdout}")


def check_stranger(device):
  """Somebody makes a file system on the device while create is at work: it stays, and what was done is taken back."""
  for what, step, how in (
      ("while the monitors are asked", "the number", f"mkfs.ext4 -q -L home {device}; exec {{real}} \"$@\""),
      ("where mkfs fails", "mkfs", f"{{real}} -q -F -L home {device}; {FAILS}")):
    before = traces()
    with broken(*STEPS[step], how):
      done = create(device)
    label = run("blkid", "-c", "/dev/null", "-o", "value", "-s", "LABEL", device).stdout.strip()
    report(done.returncode == 1 and label == "home" and traces() == before,
           f"a file system that somebody makes {what} is left alone", f"{label} {done.stdout}")
    must("wipefs", "--quiet", "--all", device)


def check(device, quick):
  check_stranger(device)
  chosen = QUICK if quick else [(step, how) for step in STEPS for how in WORKS]
  for step, how in chosen:
    check_nothing_left(device, step, how)
  with broken("ceph", "*' osd '*", "before"):
    done = create(device, "--osd-id", 7)
  report(done.returncode == 1 and is_empty(device), "no monitor: nothing is written", done.stdout)
  elsewhere = must("ceph", "osd", "new", OTHER_FSID).strip()
  done = create(device, "--osd-fsid", OTHER_FSID)
  report(done.returncode == 1 and f"osd.{elsewhere} has the fsid {OTHER_FSID}" in done.stdout and
         elsewhere in must("ceph", "osd", "ls").split(), "the fsid of an OSD that is made elsewhere is refused, and that one stays", done.stdout)
  must("ceph", "osd", "purge", elsewhere, "--yes-i-really-mean-it")
  link = pathlib.Path("/run/by-id")
  link.symlink_to(device)
  done = swimstore("prepare", "--data", link)
  entry = devices_listed()[device]
  osd = entry["osd_id"]
  report(done.returncode == 0 and f"osd.{osd} is made on {link}" in done.stdout and entry["mounted"] and not entry["up"],
         "the same device is made an OSD then, by another name of it: prepare does not start it", f"{entry} {done.stdout}")
  done = swimstore("activate", osd, entry["osd_fsid"])
  report(done.returncode == 0, "activate does", done.stdout)
  wait_up(osd)
  refused = create(device)
  report(refused.returncode == 1, "once", refused.stdout)
  stop(osd)
  report(swimstore("deactivate", osd).returncode == 0, "it is deactivated")
  done = swimstore("zap", "--destroy", device)
  report(done.returncode == 0 and is_empty(device), "zap --destroy wipes it", done.stdout)
  must("ceph", "osd", "purge", osd, "--yes-i-really-mean-it")


def check_destroyed(device):
  """A number that was destroyed is so again, and keeps its place in the tree."""
  for step, how in (("mkfs", "before"), ("ceph-osd --mkfs", "after")):
    before = {node["id"]: node["status"] for node in ceph("osd", "tree")["nodes"] if node["type"] == "osd"}
    with broken(*STEPS[step], how):
      done = create(device, "--osd-id", 1)
    after = {node["id"]: node["status"] for node in ceph("osd", "tree")["nodes"] if node["type"] == "osd"}
    keys = [entry["entity"] for entry in ceph("auth", "ls")["auth_dump"]]
    report(done.returncode == 1 and before == after and after[1] == "destroyed" and "osd.1" not in keys and is_empty(device),
           f"{step}, {how}: a number that was destroyed is so again", f"{before} {after} {done.stdout}")


# -- encrypted ones ---------------------------------------------------------------------------------------------------

# Where there is no device mapper: the passphrase is tried on the header, and another device stands for what would be within.
STAND_IN = """#!/bin/sh
case " $* " in
*' --allow-discards '*' luksOpen '* | *' --allow-discards luksOpen '*)
  for name in "$@"; do :; done
  {real} --key-file - --test-passphrase luksOpen {device} || exit
  mkdir -p /dev/mapper
  exec ln -s {within} "/dev/mapper/$name"
  ;;
*' resize '*)
  exec {real} --key-file - --test-passphrase luksOpen {device}
  ;;
*' luksClose '*)
  exec rm "/dev/mapper/$2"
  ;;
esac
exec {real} "$@"
"""


def has_mapper():
  return " device-mapper\n" in pathlib.Path("/proc/misc").read_text()


@contextlib.contextmanager
def mapper(device, within):
  """Or what stands in for one."""
  if has_mapper():
    pathlib.Path("/dev/mapper").mkdir(exist_ok=True)
    minor = next(line.split()[0] for line in pathlib.Path("/proc/misc").read_text().splitlines() if "device-mapper" in line)
    os.mknod("/dev/mapper/control", 0o600 | 0o020000, os.makedev(10, int(minor)))
    yield "the device mapper"
    return
  BROKEN.mkdir(exist_ok=True)
  stub = BROKEN / "cryptsetup"
  stub.write_text(STAND_IN.format(real=shutil.which("cryptsetup"), device=device, within=within))
  stub.chmod(0o755)
  pathlib.Path("/run/misc").write_text(pathlib.Path("/proc/misc").read_text() + "236 device-mapper\n")
  must("mount", "--bind", "/run/misc", "/proc/misc")
  before = os.environ["PATH"]
  os.environ["PATH"] = f"{BROKEN}:{before}"
  try:
    yield "a stand-in for the device mapper, which this kernel has not: nothing is encrypted on the way"
  finally:
    os.environ["PATH"] = before
    must("umount", "/proc/misc")
    stub.unlink()


def check_encrypted(device, within):
  if not has_mapper():
    refused = create(device, "--dmcrypt")
    report(refused.returncode == 1 and "'modprobe dm-crypt'" in refused.stdout and is_empty(device),
           "without a device mapper --dmcrypt is refused", refused.stdout)
  with mapper(device, within) as kind:
    before = traces()
    with broken("ceph-osd", "*' --mkfs '*", "after"):
      done = create(device, "--dmcrypt")
    report(done.returncode == 1 and traces() == before and is_empty(device),
           f"encrypted, ceph-osd --mkfs, after: nothing is left ({kind})", done.stdout)
    must("wipefs", "--quiet", "--all", within)  # of a stand-in
    done = create(device, "--dmcrypt", "--fs", "xfs")
    if not report(done.returncode == 0, f"an encrypted OSD ({kind})", done.stdout):
      return
    check_keys(device)
    done = swimstore("grow", devices_listed()[device]["osd_id"])
    report(done.returncode == 0 and "fills its device already" in done.stdout, "grow asks the monitors for the key", done.stdout)
    bring_up_again(device, within)


def check_keys(device):
  entry = devices_listed()[device]
  osd, fsid = entry["osd_id"], entry["osd_fsid"]
  wait_up(osd)
  report(entry["encrypted"] and entry["fs"] == "xfs" and entry["up"] and entry["mounted"] == f"{OSDS}/ceph-{osd}",
         "list shows that it is encrypted, and what is within", entry)
  passphrase = must("ceph", "config-key", "get", f"dm-crypt/osd/{fsid}/luks").strip()
  tried = run("cryptsetup", "--key-file", "-", "--test-passphrase", "luksOpen", device, "x", input=passphrase)
  report(tried.returncode == 0, "the key of the monitors' dm-crypt/osd/FSID/luks opens it", tried.stdout)
  wrong = run("cryptsetup", "--key-file", "-", "--test-passphrase", "luksOpen", device, "x", input="another")
  report(wrong.returncode != 0, "another does not")
  token = json.loads(must("cryptsetup", "token", "export", "--token-id", "0", device))
  lockbox = next(entry for entry in ceph("auth", "ls")["auth_dump"] if entry["entity"] == f"client.osd-lockbox.{fsid}")
  report(token["lockbox_secret"] == lockbox["key"] and lockbox["caps"]["mon"].startswith("allow command \"config-key get\""),
         "the header brings the key of the lockbox along, which may read that, and nothing else", lockbox["caps"])
  log = pathlib.Path("/var/log/ceph/ceph-volume.log").read_text()
  report(passphrase not in log and lockbox["key"] not in log, "neither is in the log of ceph-volume")


def bring_up_again(device, within):
  """Where the host was started again, and where nothing is known of it but its disk; then it is zapped."""
  entry = devices_listed()[device]
  osd, fsid = entry["osd_id"], entry["osd_fsid"]
  stop(osd)
  must("umount", OSDS / f"ceph-{osd}")
  must("cryptsetup", "luksClose", f"swimstore-{fsid}")
  done = swimstore("trigger", f"{osd}-{fsid}")
  report(done.returncode == 0, "trigger opens, mounts and starts it, with the key that the monitors have", done.stdout)
  wait_up(osd)
  stop(osd)
  done = swimstore("deactivate", osd)
  report(done.returncode == 0 and not pathlib.Path(f"/dev/mapper/swimstore-{fsid}").exists(), "deactivate closes it", done.stdout)
  listed = devices_listed()[device]
  report(listed | {"mounted": "", "up": False} == listed and listed["fs"] == "xfs", "closed, list knows it by its header", listed)
  must("ceph", "config-key", "rm", f"dm-crypt/osd/{fsid}/luks")
  refused = swimstore("activate", osd, fsid)
  report(refused.returncode == 1 and "it was destroyed or purged" in refused.stdout and
         f"client.osd-lockbox.{fsid} does not get the key dm-crypt/osd/{fsid}/luks" in refused.stdout and
         not pathlib.Path(f"/dev/mapper/swimstore-{fsid}").exists() and not (OSDS / f"ceph-{osd}").exists(),
         "without the key of the monitors it stays closed", refused.stdout)
  done = swimstore("zap", "--osd-id", osd, "--destroy")
  report(done.returncode == 0 and f"holds osd.{osd} of SwimStore, encrypted, fsid {fsid}" in done.stdout and is_empty(device),
         "zap says what it was, and wipes it", done.stdout)
