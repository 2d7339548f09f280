#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The part of pages.py that runs in the sysroot, as the first process of namespaces of its own for processes, mounts and the
network: here /etc/ceph, /var/lib/ceph, /opt and the like are empty folders that nobody else sees, as on a new host.

usage: pages_inside.py DEVICE ARCHIVE VERSION

Boots a monitor and a manager with cephx, makes an OSD on DEVICE by the commands of the page, and runs what the pages say
about a running OSD and about the tools. Prints one JSON object per claim: good, what, detail. Refuses to run anywhere else
than in such a place; of /dev there is only DEVICE, and what is no device of the machine.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "tools"))

import page_commands  # noqa: E402
import page_recipe  # noqa: E402
import pages_programs  # noqa: E402

RECIPE = "doc/swimstore-operations.rst"
INSTALLED = pathlib.Path("/opt/swimstore")
CEPH_UID = 64045  # Debian gives it to all
CONF = """[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:3300]
public addr = 127.0.0.1
osd pool default size = 1
osd pool default min size = 1
osd crush chooseleaf type = 0
mon allow pool size one = true
mon data avail crit = 1
"""
DEVICES = ("null", "zero", "random", "urandom", "full", "loop-control")
WAIT = """
wait_up() {
  for ((i = 0; i < 120; ++i)); do
    ! ceph osd stat | grep -q ' 1 up' || return 0
    ps -o stat= -p "$(cat /run/ceph-osd@*.pid)" | grep -qv Z || break
    sleep 0.5
  done
  tail -n 8 /run/ceph-osd@*.log /var/log/ceph/ceph-osd.*.log
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
  return json.loads(must("ceph", "-f", "json", *args).strip().splitlines()[-1])


def until(condition, seconds):
  deadline = time.monotonic() + seconds
  while not condition():
    if time.monotonic() > deadline:
      return False
    time.sleep(0.5)
  return True


# -- the host ---------------------------------------------------------------------------------------------------------

def own_devices(device):
  """Whatever a command takes for a disk, those of the machine are not there."""
  dev = pathlib.Path("/run/dev")
  dev.mkdir()
  for path in (*(pathlib.Path("/dev", name) for name in DEVICES), pathlib.Path(device)):
    (dev / path.name).touch()
    must("mount", "--bind", path, dev / path.name)
  for name, target in {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}.items():
    (dev / name).symlink_to(f"/proc/self/fd{target}")
  (dev / "shm").mkdir(mode=0o1777)
  (dev / "pts").mkdir()
  must("mount", "-t", "devpts", "-o", "newinstance,ptmxmode=0666", "swim-pages", dev / "pts")
  (dev / "ptmx").symlink_to("pts/ptmx")
  must("mount", "--rbind", dev, "/dev")
  there = sorted(path.name for path in pathlib.Path("/dev").iterdir() if path.is_block_device())
  if there != [pathlib.Path(device).name]:
    raise page_recipe.Refused(f"/dev has the disks {there}")


def empty_host(device):
  must("ip", "link", "set", "lo", "up")
  ceph_folders = sorted(path.name for path in pathlib.Path("/var/lib/ceph").iterdir())
  for folder in ("/opt", "/etc/ceph", "/var/lib/ceph", "/var/log/ceph", "/run", "/etc/systemd/system"):
    must("mount", "-t", "tmpfs", "swim-pages", folder)
  own_devices(device)
  pathlib.Path("/run/fstab").touch()
  must("mount", "--bind", "/run/fstab", "/etc/fstab")
  # What `apt-mark` marks is forgotten with us.
  must("cp", "-a", "/var/lib/dpkg", "/run/dpkg")
  must("mount", "--bind", "/run/dpkg", "/var/lib/dpkg")
  pathlib.Path("/run/environment").write_text("# of the daemons\nSWIMSTORE_ANY_LIBRARY_BUILD=0\n")
  must("mount", "--bind", "/run/environment", "/etc/default/ceph")
  for folder in ("/run/ceph", "/var/log/ceph", "/var/lib/ceph", *(f"/var/lib/ceph/{name}" for name in ceph_folders)):
    pathlib.Path(folder).mkdir(exist_ok=True)
    os.chown(folder, CEPH_UID, CEPH_UID)
  programs = pathlib.Path("/run/programs")
  programs.mkdir()
  (programs / "systemctl").symlink_to(HERE / "unit_by_hand.py")
  os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
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


# -- the recipe -------------------------------------------------------------------------------------------------------

def recipe(heading, **known):
  return page_recipe.section_commands(RECIPE, (CHECKOUT / RECIPE).read_text(), heading, **known)


def run_script(commands, what, after=(), end=""):
  """What it printed; each command's part begins with `@@` and its line of the page."""
  done = run("bash", "-c", "\n".join([WAIT, page_recipe.script(commands, after), end]), cwd="/run", timeout=240)
  ran = re.findall(r"^@@(\w+)$", done.stdout, re.M)
  if not report(done.returncode == 0 and ran[-1:] == ["done"], f"{RECIPE}: {len(ran) - 1} commands {what}",
                f"line {ran[-1:]}: {done.stdout}"):
    raise RuntimeError("there is no OSD to look at")
  return done.stdout


def ends_of(device):
  """Where every label lies, and where mkfs begins to write."""
  digest = hashlib.sha256()
  with open(device, "rb") as disk:
    for offset, whence in ((0, os.SEEK_SET), (-(64 << 20), os.SEEK_END)):
      disk.seek(offset, whence)
      digest.update(disk.read(64 << 20))
  return digest.hexdigest()


def check_somebodys_disk(device):
  """On a disk that somebody uses the block changes nothing, whether there is a terminal, where mkfs would ask, or not."""
  pathlib.Path("/run/make").write_text(page_recipe.script(recipe(page_recipe.MAKE, device=device)))
  somebody = {"a file system": lambda: must("mkfs.ext4", "-q", "-F", device),
              "partitions": lambda: write_partitions(device)}
  terminals = {"no terminal": ["bash", "/run/make"],
               "on a terminal, answer N": ["script", "-qec", "bash /run/make", "/dev/null"]}
  for what, write in somebody.items():
    must("wipefs", "--quiet", "--all", device)
    write()
    before = state(device)
    for where, asked in terminals.items():
      done = run(*asked, input="N\n" * 20)
      report(done.returncode == 1 and "@@" in done.stdout and "@@done" not in done.stdout and state(device) == before,
             f"{RECIPE}: 'Make an OSD' on a disk with {what} changes nothing ({where})", done.stdout)
  must("wipefs", "--quiet", "--all", device)


def write_partitions(device):
  """A table of one, of 100 MiB behind the first; it has no UUID by which it would be noticed."""
  entry = struct.pack("<B3xB3xII", 0, 0x83, 2048, 204800)
  with open(device, "r+b") as disk:
    disk.write(bytes(446) + entry + bytes(48) + b"\x55\xaa")


def state(device):
  return (ends_of(device), pathlib.Path("/etc/fstab").read_text(), ceph("osd", "ls"),
          sorted(pathlib.Path("/var/lib/ceph/osd").iterdir()))


def make_osd(device, archive, version):
  shutil.copy(archive, "/run/swimstore.tar.gz")
  commands = recipe(page_recipe.INSTALL, version=version)
  run_script(commands, "install the programs")
  held = must("apt-mark", "showhold").split()
  report(held == ["ceph-osd", "librados2"], "the packages are on hold", held)
  check_somebodys_disk(device)
  commands = [*recipe(page_recipe.MAKE, device=device), *recipe(page_recipe.START)]
  started = "wait_up || exit 1\necho class $(ceph osd crush get-device-class osd.$ID)"
  said = run_script(commands, "make an OSD and start it", {"systemctl enable --now": started}, "echo $ID $UUID")
  report("\nclass nvme\n" in said, "its device class is the one that was chosen before it started", said)
  report(re.search(r'"osd_objectstore": "swimstore"', said), "the page's `ceph osd metadata` shows swimstore", said)
  return said.split()[-2:]


def update_osd(osd, version):
  """By the page, with the same build: what is stopped, exchanged and started, and what is left of it."""
  before = pathlib.Path(f"/run/ceph-osd@{osd}.service.pid").read_text()
  run_script(recipe(page_recipe.UPDATE, version=version, osd=osd), "update it", end="sleep 1; wait_up || exit 1")
  report(pathlib.Path(f"/run/ceph-osd@{osd}.service.pid").read_text() != before and
         "noout" not in ceph("osd", "dump")["flags"] and must("apt-mark", "showhold").split() == ["ceph-osd", "librados2"],
         "it was started again, the packages are on hold, noout is unset")


def check_osd(osd, osd_uuid):
  data = pathlib.Path(f"/var/lib/ceph/osd/ceph-{osd}")
  metadata = ceph("osd", "metadata", osd)
  report(metadata["osd_objectstore"] == "swimstore", "osd objectstore = swimstore in `ceph osd metadata`", metadata)
  entry = next(entry for entry in ceph("osd", "dump")["osds"] if entry["osd"] == int(osd))
  report(entry["up"] and entry["in"] and entry["uuid"] == osd_uuid, "the OSD is up and in, under its uuid", entry)
  node = next(node for node in ceph("osd", "tree")["nodes"] if node["id"] == int(osd))
  space = os.statvfs(data)
  tib = space.f_blocks * space.f_frsize / (1 << 40)
  # ext4 itself keeps 4096 blocks back, whatever it is told.
  report(space.f_bfree - space.f_bavail < space.f_blocks / 50, "nothing of its file system is kept for root", space)
  report(abs(node["crush_weight"] - tib) < 0.1 * tib + 0.0001, "its weight is what it can use of its file system, in TiB",
         f"{node['crush_weight']}, {tib}")
  report(node.get("device_class") == "ssd", "its device class is the one that it was given later", node)
  caps = ceph("auth", "get", f"osd.{osd}")[0]
  report(caps["key"] in (data / "keyring").read_text(), "its keyring holds the key that the monitor knows")
  pid = pathlib.Path(f"/run/ceph-osd@{osd}.service.pid").read_text()
  status = pathlib.Path(f"/proc/{pid}/status").read_text()
  report(os.readlink(f"/proc/{pid}/exe") == str(INSTALLED / "bin/ceph-osd") and f"Uid:\t{CEPH_UID}\t" in status,
         "the unit's ExecStart runs the installed program as user ceph")
  environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
  report(b"SWIMSTORE_ANY_LIBRARY_BUILD=0" in environment, "what stands in /etc/default/ceph is in its environment", environment)
  strangers = must("find", data, "!", "-user", "ceph")
  report(not strangers, "everything in its directory belongs to ceph", strangers)
  must("ceph", "osd", "pool", "create", "pages", "8", "8")
  put = run("bash", "-c", """set -e -o pipefail
    head -c 300000 /dev/urandom >/run/object
    timeout 60 rados -p pages put object /run/object
    rados -p pages setomapval object key value
    rados -p pages get object - | cmp - /run/object""")
  report(put.returncode == 0, "an object is written and read through it", put.stdout)


def check_drop_in():
  text = (CHECKOUT / RECIPE).read_text()
  shown = next(block.text for block in page_commands.blocks(RECIPE, text) if block.kind == "ini" and "ExecStart" in block.text)
  installed = (INSTALLED / "share/swimstore/ceph-osd.service.conf").read_text()
  report(shown.strip() in installed, "the drop-in that is installed is the one that the page shows", installed)


def check_libraries():
  """All libraries come with the packages that the page names."""
  install = recipe(page_recipe.INSTALL)[1].text
  named = [word.partition("=")[0] for word in re.search(r"apt-get install --simulate (.*) &&", install)[1].split()]
  tree = must("apt-cache", "depends", "--recurse", "--installed", "--no-recommends", "--no-suggests", "--no-conflicts",
              "--no-breaks", "--no-replaces", "--no-enhances", *named)
  known = {line.split()[-1].strip("<>").partition(":")[0] for line in tree.splitlines()}
  for program in sorted((INSTALLED / "bin").iterdir()):
    lines = must("ldd", program).splitlines()
    files = [os.path.realpath(line.split()[2]) for line in lines if "=> /" in line]
    owners = {line.split(":")[0] for line in must("dpkg", "-S", *files).splitlines()}
    report(not any("not found" in line for line in lines) and owners <= known,
           f"{program.name}'s libraries are in the packages that the page names", owners - known)


# -- a running OSD ----------------------------------------------------------------------------------------------------

def pages():
  return [(path.name if path.parent == CHECKOUT else f"doc/{path.name}", path.read_text())
          for path in page_commands.pages(CHECKOUT)]


def check_ceph_commands(osd):
  done = set()
  for name, text in pages():
    found = [(command.line, variant) for command in page_commands.mentions(name, text)
             if command.text.split()[0] in ("ceph", "rados") for variant in page_commands.optional(command.text)]
    found += [(line, f"ceph daemon osd.N {command}") for line, command in swimstore_commands(text)]
    for line, command in sorted(found):
      if command not in done:
        done.add(command)
        check_ceph_command(f"{name}:{line}", command, osd)


def swimstore_commands(text):
  """`swimstore fsck stop`: of the admin socket, without what stands before it."""
  return [(text.count("\n", 0, match.start()) + 1, match[1])
          for match in re.finditer(r"(?<!`)``?(swimstore [a-z ]+)``?(?!`)", text)]


def check_ceph_command(where, text, osd):
  words = [{"COLLECTION": "1.0_head", "CUBE": "1"}.get(word, word) for word in text.replace("osd.N", f"osd.{osd}").split()]
  if words == ["ceph", "daemon"]:  # a sentence about it
    report(re.search(r"^\s*daemon ", run("ceph", "--help").stdout, re.M), f"{where}: {text}: ceph knows it")
  elif words[:2] == ["ceph", "daemon"]:
    done = run(*words)
    for _ in range(60):
      if "under way" not in done.stdout:  # a check that the page's command before has begun
        break
      time.sleep(1)
      done = run(*words)
    # It exits with 0 whenever the OSD answers. This one has nowhere to move anything to.
    has_one_cube = words[4:5] in (["move"], ["balance"]) and "the store has one cube" in done.stdout
    report(done.returncode == 0 and (has_one_cube or not done.stdout.startswith("ERROR")), f"{where}: {text}", done.stdout)
  elif words[:3] == ["ceph", "osd", "metadata"] or words == ["ceph", "osd", "df"]:
    done = run(*(osd if word == "N" else word for word in words))
    report(done.returncode == 0, f"{where}: {text}", done.stdout)
  elif words[:4] == ["ceph", "osd", "pool", "set"]:
    done = run(*({"POOL": "pages", "OPTION": "compression_mode"}.get(word, word) for word in words))
    report(done.returncode == 0, f"{where}: {text}", done.stdout)
  elif words[-1] == "swimstore_...":
    words[-1:] = ["swimstore_throttle_bytes", "1000000"]
    refused, done = run(*words), run(*words, "--force")
    report(refused.returncode != 0 and done.returncode == 0, f"{where}: {text}: asks for --force", refused.stdout + done.stdout)
  elif words[0] == "rados":
    report(re.search(rf"^\s*{re.escape(words[1])}\b", run("rados", "--help").stdout, re.M), f"{where}: {text}: rados knows it")
  else:
    # Named without what it is done to, or of a module that does not load here: is it in the tables of commands?
    prefix = " ".join(words[1:])
    known = run("ceph", *words[1:], "--help").stdout.splitlines()
    modules = run("grep", "-rlF", prefix, "/usr/share/ceph/mgr", "--include=module.py").stdout
    report(any(line.startswith(prefix) for line in known) or modules, f"{where}: {text}: the monitor or manager knows it",
           "\n".join(known))


def stop_osd(osd):
  pid = int(pathlib.Path(f"/run/ceph-osd@{osd}.service.pid").read_text())
  os.kill(pid, 15)
  report(until(lambda: run("ps", "-o", "stat=", "-p", pid).stdout.strip()[:1] in ("", "Z"), 60), "the OSD ends")


def check_programs(osd):
  programs = pages_programs.Programs(report)
  texts = dict(pages())
  programs.check_swimstore_tool(texts["doc/ceph-swimstore-tool.md"], f"/var/lib/ceph/osd/ceph-{osd}")
  programs.check_vtkv_tool(texts["doc/vtkv-tool.md"])
  for name, text in texts.items():
    programs.check_scripts(name, text, blocks=name != RECIPE)


def main(argv):
  device, archive, version = argv
  try:
    page_recipe.check_root(os.environ.get("SWIM_CACHE", "/"))
    for heading in (page_recipe.INSTALL, page_recipe.MAKE, page_recipe.START, page_recipe.UPDATE):
      recipe(heading, device=device)  # before the first command is run
  except page_recipe.Refused as error:
    sys.exit(f"pages_inside.py: {error}")
  try:
    empty_host(device)
    boot_cluster()
    osd, osd_uuid = make_osd(device, archive, version)
    check_osd(osd, osd_uuid)
    update_osd(osd, version)
    check_drop_in()
    check_libraries()
    check_ceph_commands(osd)
    stop_osd(osd)
    check_programs(osd)
  except (RuntimeError, OSError, subprocess.SubprocessError, StopIteration, page_recipe.Refused) as error:
    report(False, "the pages' commands are run to the end", repr(error))


if __name__ == "__main__":
  main(sys.argv[1:])
