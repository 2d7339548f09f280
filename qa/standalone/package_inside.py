#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The part of package.py that runs on a host of its own (own_host.py).

usage: package_inside.py PACKAGE DEVICE DEVICE

Prints one JSON object per claim: good, what, detail.
"""

import os
import pathlib
import re
import shlex
import signal
import sys

import own_host_inside as host
import page_recipe
from own_host_inside import PACKAGE, PROGRAMS, ceph, check_objects, must, put_objects, report, run, stop, until
from unit_by_hand import is_running

LAUNCHER = PROGRAMS / "ceph-osd-launcher"
UNIT = pathlib.Path("/usr/lib/systemd/system/ceph-osd@.service")
OSDS = pathlib.Path("/var/lib/ceph/osd")
WANTED = pathlib.Path("/etc/systemd/system/ceph-osd.target.wants")
SYSTEMCTL_LOG = pathlib.Path("/run/systemctl.log")
# All that the package may hold, but for folders.
OWN_PATHS = (r"/usr/lib/ceph-swimstore/[\w-]+", r"/usr/bin/(ceph-swimstore-tool|vtkv-tool)",
             r"/usr/lib/systemd/system/ceph-osd@\.service\.d/10-swimstore\.conf", rf"/usr/share/doc/{PACKAGE}/.+",
             rf"/usr/share/{PACKAGE}/swimstore-(dashboard\.json|rules\.yml)",
             rf"/usr/share/lintian/overrides/{PACKAGE}", r"/usr/share/man/man[78]/.+\.gz",
             r"/usr/lib/python3/dist-packages/ceph_volume_swimstore.+")
# Other OSDs of the host, and files that only look like one of a SwimStore.
OTHERS = {"bluestore": "bluestore\n", "no type": None, "an empty one": "", "a longer name": "swimstore2\n",
          "a shorter name": "swim\n", "two names": "swimstore bluestore\n", "two lines": "swimstore\nbluestore\n",
          "a blank before": " swimstore\n", "capitals": "SwimStore\n"}
STUB = """#!/bin/sh
echo "{name}"
for argument in "$@"; do echo "<$argument>"; done
"""


# -- the package ------------------------------------------------------------------------------------------------------

def check_package(package):
  """Before it is installed."""
  installed = must("dpkg-query", "-W", "-f", "${Version}", "librados2")
  depends = [word.strip() for word in must("dpkg-deb", "-f", package, "Depends").split(",")]
  for name in ("ceph-osd", "librados2"):
    of_it = [word for word in depends if word.split()[0] == name]
    report(of_it == [f"{name} (= {installed})"], f"it depends on the {name} of its build alone", depends)
  lines = [line.split(None, 5)[5].partition(" -> ")[0].removeprefix(".") for line in must("dpkg-deb", "-c", package).splitlines()]
  files = [path for path in lines if not path.endswith("/")]
  strangers = [path for path in files if not any(re.fullmatch(own, path) for own in OWN_PATHS)]
  report(not strangers and len(files) > 15, "it holds programs, unit, pages and nothing else", strangers or files)
  there = [path for path in files if os.path.lexists(path)]
  report(not there, "nothing of it is there before", there)


def check_programs():
  """All libraries come with the packages that it depends on, and are looked for nowhere else."""
  tree = must("apt-cache", "depends", "--recurse", "--installed", "--no-recommends", "--no-suggests", "--no-conflicts",
              "--no-breaks", "--no-replaces", "--no-enhances", PACKAGE)
  known = {line.split()[-1].strip("<>").partition(":")[0] for line in tree.splitlines()}
  programs = sorted(path for path in PROGRAMS.iterdir() if path != LAUNCHER)
  report(len(programs) == 5, "it has five programs", programs)
  for program in programs:
    lines = must("ldd", program).splitlines()
    files = [os.path.realpath(line.split()[2]) for line in lines if "=> /" in line]
    owners = {line.split(":")[0] for line in must("dpkg", "-S", *files).splitlines()}
    report(not any("not found" in line for line in lines) and owners <= known,
           f"{program.name}'s libraries are in the packages that it depends on", owners - known)
    searched = re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", must("readelf", "-d", program))
    report(all(folder.startswith("/usr/lib/") for path in searched for folder in path.split(":")),
           f"{program.name} looks for libraries in system folders alone", searched)
    # kvstore-tool has Ceph's --help, which needs a command before it.
    done = run(program, "--version" if program.name in ("ceph-osd", "vtkv-tool") else "--help")
    report(done.stdout and "error while loading" not in done.stdout, f"{program.name} starts", done.stdout)
  for tool in ("ceph-swimstore-tool", "vtkv-tool"):
    report("usage" in run(f"/usr/bin/{tool}", "--help").stdout.lower(), f"{tool} is in PATH")


def check_plugin():
  """Where the package has one."""
  if "/dist-packages/" in must("dpkg", "-L", PACKAGE):
    said = run("ceph-volume", "--help").stdout
    report(re.search(r"^swimstore\b", said, re.M), "ceph-volume finds the plug-in", said)


def check_hold():
  """A newer ceph-osd in the archive, made up: neither upgrade takes it, and the package stays."""
  folder = pathlib.Path("/run/archive")
  control = folder / "newer/DEBIAN/control"
  control.parent.mkdir(parents=True)
  control.write_text("Package: ceph-osd\nVersion: 99\nArchitecture: amd64\nMaintainer: nobody\nDescription: newer\n")
  must("dpkg-deb", "--build", folder / "newer", folder)
  must("bash", "-c", "dpkg-scanpackages . >Packages", cwd=folder)
  pathlib.Path("/run/sources.list").write_text(f"deb [trusted=yes] file:{folder} ./\n")
  only_it = ("-o", "Dir::Etc::SourceList=/run/sources.list", "-o", "Dir::Etc::SourceParts=-", "-o", "APT::Get::List-Cleanup=0")
  must("apt-get", *only_it, "update")
  for command in ("upgrade", "dist-upgrade"):
    said = must("apt-get", *only_it, "--simulate", command)
    report("Inst ceph-osd" not in said and "Remv" not in said, f"{command} leaves a newer ceph-osd alone", said)
  must("apt-mark", "unhold", PACKAGE)
  without = must("apt-get", *only_it, "--simulate", "dist-upgrade")
  must("apt-mark", "hold", PACKAGE)
  kept_back = re.search(r"^The following packages have been kept back:\n +ceph-osd$", without, re.M)
  report(kept_back or f"Remv {PACKAGE}" in without,
         f"without the hold dist-upgrade would {'leave both as they are' if kept_back else 'remove it'}", without)


# -- who runs what ----------------------------------------------------------------------------------------------------

def command_of(pid):
  return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]


def packaged_arguments(osd):
  """What the packaged unit gives its program."""
  words = re.search(r"^ExecStart=(.*)$", UNIT.read_text(), re.M)[1]
  return shlex.split(words.replace("${CLUSTER}", "ceph").replace("%i", osd))[1:]


def but_for_cluster(arguments):
  """Its name, ceph unless it is told: the packaged unit of Ceph 20.2 leaves it out."""
  return shlex.split(shlex.join(arguments).replace("--cluster ceph ", ""))


def check_process(osd, program, what):
  pid = host.pid_of(osd)
  runs, arguments = os.readlink(f"/proc/{pid}/exe"), command_of(pid)[1:]
  same = but_for_cluster(arguments) == but_for_cluster(packaged_arguments(osd))
  report(runs == program and same, what, f"{runs} {arguments}")


def check_launcher():
  """With programs in the place of both that say what they were given."""
  stubs = {"/usr/bin/ceph-osd": "packaged", str(PROGRAMS / "ceph-osd"): "ours"}
  for path, name in stubs.items():
    stub = pathlib.Path(f"/run/stub.{name}")
    stub.write_text(STUB.format(name=name))
    stub.chmod(0o755)
    must("mount", "--bind", stub, path)
  arguments = ["-f", "--id", "3", "a b", "", "*", "$HOME", "--", "-n"]
  given = "".join(f"<{argument}>\n" for argument in arguments)
  directory = pathlib.Path("/run/an osd")
  directory.mkdir()
  for what, text in {"swimstore": "swimstore\n", "swimstore, without the end of the line": "swimstore"}.items():
    (directory / "type").write_text(text)
    said = run(LAUNCHER, directory, *arguments).stdout
    report(said == f"ours\n{given}", f"the launcher runs our program where the type is {what}", said)
  for what, text in OTHERS.items():
    (directory / "type").unlink(missing_ok=True)
    if text is not None:
      (directory / "type").write_text(text)
    said = run(LAUNCHER, directory, *arguments).stdout
    report(said == f"packaged\n{given}", f"the launcher runs the packaged program where the type is {what}", said)
  odd = pathlib.Path("/run/odd")
  (odd / "type").mkdir(parents=True)
  for what, where in {"whose type is a folder": odd, "that is not there": "/run/none"}.items():
    said = run(LAUNCHER, where, *arguments).stdout
    report(said == f"packaged\n{given}", f"the launcher runs the packaged program for a directory {what}", said)
  for path in stubs:
    must("umount", path)


# -- OSDs -------------------------------------------------------------------------------------------------------------

def wait_up(osd):
  done = run("bash", "-c", f"{host.WAIT}\nID={osd}\nwait_up", timeout=90)
  return report(done.returncode == 0, f"osd.{osd} is up", done.stdout)


def make_bluestore(device):
  """By the packaged program, as ceph-volume would; in a file, on a file system of its own. Started by the unit."""
  osd_uuid, key = must("cat", "/proc/sys/kernel/random/uuid").strip(), must("ceph-authtool", "--gen-print-key").strip()
  osd = must("ceph", "osd", "new", osd_uuid, "-i", "-", input=f'{{"cephx_secret": "{key}"}}').strip().splitlines()[-1]
  directory = OSDS / f"ceph-{osd}"
  directory.mkdir()
  must("mkfs.ext4", "-q", device)
  with open("/etc/fstab", "a") as fstab:
    fstab.write(f"{device} {directory} ext4 nofail 0 2\n")
  must("mount", directory)
  must("ceph-authtool", directory / "keyring", "--create-keyring", "--name", f"osd.{osd}", "--add-key", key)
  must("chown", "-R", "ceph:ceph", directory)
  must("/usr/bin/ceph-osd", "-i", osd, "--mkfs", "--osd-uuid", osd_uuid, "--osd-objectstore", "bluestore",
       "--bluestore-block-size", 1 << 30, "--setuser", "ceph", "--setgroup", "ceph")
  must("systemctl", "enable", "--now", f"ceph-osd@{osd}")
  return osd


def make_pool(name, osd):
  """Whose objects are on this OSD alone."""
  must("ceph", "osd", "crush", "rm-device-class", f"osd.{osd}")
  must("ceph", "osd", "crush", "set-device-class", name, f"osd.{osd}")
  must("ceph", "osd", "crush", "rule", "create-replicated", name, "default", "osd", name)
  must("ceph", "osd", "pool", "create", name, "8", "8", "replicated", name)
  put_objects(name)


def start_host_again(*osds):
  """Nothing runs, nothing is mounted, /run/*.pid of before is gone; then what is enabled is started."""
  stop(*osds)
  for name in ("ceph-mgr", "ceph-mon"):
    pid = int(must("pidof", name))
    os.kill(pid, signal.SIGTERM)
    report(until(lambda pid=pid: not is_running(pid), 30), f"{name} ends")
  for osd in osds:
    must("umount", OSDS / f"ceph-{osd}")
    report(not list((OSDS / f"ceph-{osd}").iterdir()), f"the directory of osd.{osd} is empty, not mounted")
    pathlib.Path(f"/run/ceph-osd@{osd}.service.pid").unlink()
  must("ceph-mon", "-i", "a", cwd="/")
  must("ceph-mgr", "-i", "x", cwd="/")
  enabled = sorted(path.name for path in WANTED.iterdir())
  report(enabled == sorted(f"ceph-osd@{osd}.service" for osd in osds), "both units are enabled", enabled)
  for name in enabled:
    must("systemctl", "start", name)
  for osd in osds:
    wait_up(osd)


def names_of(osd):
  return set(must("find", OSDS / f"ceph-{osd}").splitlines())


def files_of(osd):
  return must("find", OSDS / f"ceph-{osd}", "-printf", "%p %s %T@ %C@ %u %m\n")


# -- exchange, removal ------------------------------------------------------------------------------------------------

def asked_of_systemd(work):
  """What `work` returns, and what was asked of systemd meanwhile."""
  before = SYSTEMCTL_LOG.read_text() if SYSTEMCTL_LOG.exists() else ""
  result = work()
  return result, (SYSTEMCTL_LOG.read_text() if SYSTEMCTL_LOG.exists() else "").removeprefix(before).split("\n")[:-1]


def newer(package, suffix):
  """The same, under a later version."""
  folder = pathlib.Path(f"/run/newer.{suffix}")
  must("dpkg-deb", "--raw-extract", package, folder)
  control = folder / "DEBIAN/control"
  control.write_text(re.sub(r"^Version: .*$", rf"\g<0>.newer.{suffix}", control.read_text(), flags=re.M))
  made = pathlib.Path(f"/run/{PACKAGE}_newer.{suffix}_amd64.deb")
  must("dpkg-deb", "--root-owner-group", "-Znone", "--build", folder, made, timeout=120)
  return made


def version():
  return must("dpkg-query", "-W", "-f", "${Version}", PACKAGE)


def named(said):
  """The OSDs that the package's scripts name."""
  return sorted({name for line in said.splitlines() if line.startswith(f"{PACKAGE}:") for name in re.findall(r"osd\.\d+", line)})


def exchange_below(package, osd, other):
  """Below running OSDs; then by the page, which stops the one that it is about."""
  pids = [host.pid_of(osd), host.pid_of(other)]
  must("apt-mark", "unhold", PACKAGE)
  said, asked = asked_of_systemd(lambda: must("apt-get", "install", newer(package, 1), timeout=120))
  report(version().endswith(".newer.1"), "a newer package takes its place", f"{version()}: {said}")
  report(named(said) == [f"osd.{osd}"] and "until they are restarted" in said,
         "the OSD that must be started again is named, and no other", said)
  report([host.pid_of(osd), host.pid_of(other)] == pids and host.runs(osd) and host.runs(other) and
         asked == ["--system daemon-reload"], "no OSD was started or stopped; systemd read its units again", asked)
  check_objects("ours", "the former program runs on")
  for old in pathlib.Path("/run").glob(f"{PACKAGE}_*.deb"):
    old.unlink()
  newer(package, 2)
  said = host.update_osd(osd)
  report(version().endswith(".newer.2"), "the page's update takes the next one", f"{version()}: {said}")
  report(not named(said), "of an OSD that is stopped meanwhile nothing is said", said)
  check_process(osd, str(PROGRAMS / "ceph-osd"), "the new program runs it")
  check_objects("ours", "after the update")


def remove(osd, other):
  names = names_of(osd)
  said, asked = asked_of_systemd(lambda: host.run_script(host.recipe(page_recipe.REMOVE), "remove the package"))
  report(named(said) == [f"osd.{osd}"] and "cannot start" in said, "the OSD that cannot start any more is named, and no other",
         said)
  report(host.runs(osd) and host.runs(other) and asked == ["--system daemon-reload"],
         "no OSD was stopped; systemd read its units again", asked)
  left = [path for path in (PROGRAMS, LAUNCHER, "/usr/bin/ceph-swimstore-tool", f"{UNIT}.d") if os.path.lexists(path)]
  report(not left, "the package's files are gone", left)
  report(names_of(osd) >= names, "all files of its store are there", names - names_of(osd))
  check_objects("ours", "the package is removed, the OSD runs on")
  stop(osd, other)
  before = files_of(osd)
  must("systemctl", "start", f"ceph-osd@{osd}")
  log = pathlib.Path(f"/run/ceph-osd@{osd}.service.log")
  refused = until(lambda: "unable to create object store" in log.read_text() and not host.runs(osd), 60)
  report(refused, "the packaged program refuses the store", log.read_text())
  must("dpkg", "--purge", PACKAGE)
  report(files_of(osd) == before, "its store is as it was", files_of(osd))
  must("systemctl", "start", f"ceph-osd@{other}")
  if wait_up(other):
    check_process(other, "/usr/bin/ceph-osd", "the packaged unit alone starts the other OSD")
    check_objects("other", "without the package")


def main(argv):
  package, *devices = argv
  with host.claims():
    host.empty_host(devices)
    check_package(package)
    host.boot_cluster()
    _, asked = asked_of_systemd(lambda: host.install(package))
    report(asked == ["--system daemon-reload"], "its installation asks of systemd to read its units again, no more", asked)
    check_programs()
    check_plugin()
    check_hold()
    check_launcher()
    _, osd, _ = host.make_osd(devices[0])
    other = make_bluestore(devices[1])
    wait_up(other)
    check_process(osd, str(PROGRAMS / "ceph-osd"), "the unit runs our program for a SwimStore, with the packaged unit's arguments")
    check_process(other, "/usr/bin/ceph-osd", "the unit runs the packaged program for a BlueStore, with the same arguments")
    stores = {entry["id"]: entry["osd_objectstore"] for entry in ceph("osd", "metadata")}
    report(stores == {int(osd): "swimstore", int(other): "bluestore"}, "each says which store it has", stores)
    make_pool("ours", osd)
    make_pool("other", other)
    start_host_again(osd, other)
    for name in ("ours", "other"):
      check_objects(name, "the host was started again")
    exchange_below(package, osd, other)
    remove(osd, other)
    host.install(package)
    must("systemctl", "start", f"ceph-osd@{osd}")
    if wait_up(osd):
      check_process(osd, str(PROGRAMS / "ceph-osd"), "installed again, our program runs it")
      check_objects("ours", "the package is installed again")


if __name__ == "__main__":
  main(sys.argv[1:])
