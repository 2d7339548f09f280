#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The part of pages.py that runs on a host of its own (own_host.py).

usage: pages_inside.py PACKAGE DEVICE

Makes an OSD on DEVICE by the commands of the page, and runs what the pages say about a running OSD and about the tools. Prints
one JSON object per claim: good, what, detail. Refuses to run anywhere else than on such a host; of /dev there is only DEVICE,
and what is no device of the machine.
"""

import hashlib
import itertools
import os
import pathlib
import re
import struct
import sys
import time

import own_host_inside as host
import page_commands
import page_recipe
import pages_programs
from own_host_inside import CEPH_UID, CHECKOUT, RECIPE, ceph, must, report, run, until


# -- the recipe -------------------------------------------------------------------------------------------------------

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
  pathlib.Path("/run/make").write_text(page_recipe.script(host.recipe(page_recipe.MAKE, device=device)))
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
             f"{RECIPE}: 'Make it by hand' on a disk with {what} changes nothing ({where})", done.stdout)
  must("wipefs", "--quiet", "--all", device)


def write_partitions(device):
  """A table of one, of 100 MiB behind the first; it has no UUID by which it would be noticed."""
  entry = struct.pack("<B3xB3xII", 0, 0x83, 2048, 204800)
  with open(device, "r+b") as disk:
    disk.write(bytes(446) + entry + bytes(48) + b"\x55\xaa")


def state(device):
  return (ends_of(device), pathlib.Path("/etc/fstab").read_text(), ceph("osd", "ls"),
          sorted(pathlib.Path("/var/lib/ceph/osd").iterdir()))


def make_osd(device):
  said, osd, osd_uuid = host.make_osd(device)
  report("\nclass nvme\n" in said, "its device class is the one that was chosen before it started", said)
  report(re.search(r'"osd_objectstore": "swimstore"', said), "the page's `ceph osd metadata` shows swimstore", said)
  return osd, osd_uuid


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
  pid = host.pid_of(osd)
  status = pathlib.Path(f"/proc/{pid}/status").read_text()
  report(os.readlink(f"/proc/{pid}/exe") == str(host.PROGRAMS / "ceph-osd") and f"Uid:\t{CEPH_UID}\t" in status,
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
  installed = pathlib.Path("/usr/lib/systemd/system/ceph-osd@.service.d/10-swimstore.conf").read_text()
  report(shown.strip() in installed, "the drop-in that is installed is the one that the page shows", installed)


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
  elif words[:3] == ["ceph", "osd", "metadata"] or words in (["ceph", "osd", "df"], ["ceph", "osd", "lspools"]):
    done = run(*(osd if word == "N" else word for word in words))
    report(done.returncode == 0, f"{where}: {text}", done.stdout)
  elif words[:4] == ["ceph", "osd", "pool", "set"]:
    done = run(*({"POOL": "pages", "OPTION": "compression_mode"}.get(word, word) for word in words))
    report(done.returncode == 0, f"{where}: {text}", done.stdout)
  elif words[-1] == "swimstore_...":
    words[-1:] = ["swimstore_throttle_bytes", "1000000"]
    refused, done = run(*words), run(*words, "--force")
    report(refused.returncode != 0 and done.returncode == 0, f"{where}: {text}: asks for --force", refused.stdout + done.stdout)
  elif (words[:3] == ["ceph", "config", "set"] and len(words) == 6) or words[:4] == ["ceph", "mgr", "module", "enable"]:
    done = run(*words, "--force")  # of a module that does not load here
    report(done.returncode == 0, f"{where}: {text}", done.stdout)
  elif words[0] == "rados":
    report(re.search(rf"^\s*{re.escape(words[1])}\b", run("rados", "--help").stdout, re.M), f"{where}: {text}: rados knows it")
  else:
    # Named without what it is done to, or of a module that does not load here: is it in the tables of commands?
    named = list(itertools.takewhile(lambda word: re.fullmatch(r"[a-z][\w-]*", word), words[1:]))
    prefix = " ".join(named)
    known = run("ceph", *named, "--help").stdout.splitlines()
    shown = re.sub(r"\s", "", "".join(line[:40] for line in known))  # usage, in a column that breaks its words
    options = all(word in shown for word in words if word.startswith("--"))
    modules = run("grep", "-rlF", prefix, "/usr/share/ceph/mgr", "--include=module.py").stdout
    report(any(line.startswith(prefix) for line in known) and options or modules, f"{where}: {text}: the monitor or manager knows it",
           "\n".join(known))


def stop_osd(osd):
  os.kill(host.pid_of(osd), 15)
  report(until(lambda: not host.runs(osd), 60), "the OSD ends")


def check_programs(osd):
  programs = pages_programs.Programs(report)
  texts = dict(pages())
  programs.check_swimstore_tool(texts["doc/ceph-swimstore-tool.md"], f"/var/lib/ceph/osd/ceph-{osd}")
  programs.check_vtkv_tool(texts["doc/vtkv-tool.md"])
  for name, text in texts.items():
    programs.check_scripts(name, text, blocks=name != RECIPE)


def main(argv):
  package, device = argv
  with host.claims():
    host.empty_host([device])
    host.boot_cluster()
    host.install(package)
    check_somebodys_disk(device)
    osd, osd_uuid = make_osd(device)
    check_osd(osd, osd_uuid)
    host.update_osd(osd)
    check_drop_in()
    check_ceph_commands(osd)
    stop_osd(osd)
    check_programs(osd)
    host.run_script(host.recipe(page_recipe.REMOVE), "remove the package")


if __name__ == "__main__":
  main(sys.argv[1:])
