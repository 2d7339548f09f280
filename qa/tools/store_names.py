# SPDX-License-Identifier: LGPL-2.1-or-later
"""The names by which an operator meets SwimStore, and BlueStore, as their sources have them."""

import os
import pathlib
import re

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
SWIMSTORE = CHECKOUT / "src/os/swimstore"


def _sources(folder, pattern="*.cc"):
  """Of the product, as one text."""
  return "\n".join(path.read_text() for path in sorted(folder.rglob(pattern)) if not path.stem.endswith("_test"))


def options():
  """Without the old names of options, which are refused."""
  return set(re.findall(r'"(swimstore_\w+)"', (SWIMSTORE / "ops/options.cc").read_text()))


def alerts():
  return set(re.findall(r'"(SWIMSTORE_[A-Z_]+)"', _sources(SWIMSTORE))) - {"SWIMSTORE_ANY_LIBRARY_BUILD"}


def admin_commands():
  """As they are typed behind `ceph daemon osd.N`, without arguments."""
  declared = re.findall(r'register_command\(\s*"(swimstore [^"]+)"', _sources(SWIMSTORE))
  return {command.partition(" name=")[0] for command in declared}


def volume_commands():
  """Of `ceph-volume swimstore`."""
  table = re.search(r"COMMANDS = \{(.*?)\}", (SWIMSTORE / "deploy/ceph_volume_swimstore/main.py").read_text(), re.S)[1]
  return set(re.findall(r'"([\w-]+)":', table))


def tool_commands(usage):
  """Of what `ceph-swimstore-tool --help` prints."""
  table = re.split(r"^subcommands:\n", usage, maxsplit=1, flags=re.I | re.M)[-1]
  return set(re.findall(r"^  ([a-z][a-z-]+) +\S", table, re.M))


# -- BlueStore --------------------------------------------------------------------------------------------------------

def ceph_source():
  """None where it is not there."""
  source = pathlib.Path(os.environ.get("SWIM_CEPH_SOURCE", "/nowhere")) / "src"
  return source if source.is_dir() else None


def ceph_release(source):
  """As in "18.2"."""
  return re.search(r"^ *VERSION (\d+\.\d+)", (source.parent / "CMakeLists.txt").read_text(), re.M)[1]


def bluestore_options(source):
  text = "\n".join(path.read_text() for path in sorted((source / "common/options").glob("*.yaml.in")))
  return set(re.findall(r"^- name: ((?:bluestore|bluefs)_\w+)", text, re.M))


def pool_options(source):
  """Of BlueStore's."""
  return set(re.findall(r'\("((?:compression|csum)_\w+)"', (source / "osd/osd_types.cc").read_text()))


def bluestore_alerts(source):
  text = "\n".join((source / name).read_text() for name in ("os/bluestore/BlueStore.cc", "mon/PGMap.cc"))
  return set(re.findall(r'"((?:BLUESTORE|BLUEFS)_[A-Z_]+)"', text))


def bluestore_admin_commands(source):
  """Also those whose last word is the name of an allocator, without it."""
  found = set()
  for path in sorted((source / "os/bluestore").glob("*.cc")):
    for command in re.findall(r'register_command\(\s*(?:\(\s*)?"((?:bluestore|bluefs) [^"]+)"', path.read_text()):
      found.add(re.sub(r" name=.*", "", command).strip())
  return found


def bluestore_tool_commands(usage):
  return set(re.findall(r"[\w-]+", re.sub(r"\n\s+", " ", usage.partition("--command arg")[2]).partition("\n")[0]))


def ceph_volume_commands(source, kind):
  """Of `ceph-volume lvm` or `ceph-volume raw`."""
  text = (source / f"ceph-volume/ceph_volume/devices/{kind}/main.py").read_text()
  return set(re.findall(r"^ +'([\w-]+)':", re.search(r"mapper = \{(.*?)\}", text, re.S)[1], re.M))
