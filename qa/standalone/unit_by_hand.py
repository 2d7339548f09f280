#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What `systemctl` does with a unit, where no systemd runs: reads it with its drop-ins and runs what they say.

  unit_by_hand.py daemon-reload
  unit_by_hand.py enable [--now | --runtime] UNIT
  unit_by_hand.py disable [--runtime] UNIT
  unit_by_hand.py start UNIT
  unit_by_hand.py stop UNIT
  unit_by_hand.py reset-failed UNIT
  unit_by_hand.py is-active UNIT

Of a unit it obeys Environment, EnvironmentFile, ExecStartPre, ExecStart, LimitNOFILE, Type=oneshot, WantedBy, RequiresMountsFor,
for which it mounts what /etc/fstab has, and the specifiers %i and %%. The program runs as systemd would start it: in /, as root,
without the caller's environment. Its pid is left in /run/UNIT.pid, what it says in /run/UNIT.log. systemd-analyze looks at a unit
that stays first: a setting that systemd would not know is an error here.

What this cannot show is how the program does under the rest of the unit: PrivateTmp, ProtectSystem and its kin,
MemoryDenyWriteExecute, LockPersonality, RestrictSUIDSGID, TasksMax and LimitNPROC are not applied, dependencies and their order
but for RequiresMountsFor not either; nothing is started again (Restart, StartLimitBurst) or given up, so reset-failed has nothing to do.
"""

import os
import pathlib
import resource
import shlex
import signal
import subprocess
import sys
import time

FOLDERS = ("/etc/systemd/system", "/usr/lib/systemd/system")
RUNTIME_FOLDER = "/run/systemd/system"


class Unit:
  def __init__(self, name):
    self.name = name
    template, _, instance = name.partition("@")
    self.instance = instance.removesuffix(".service")
    self.settings = {}  # (section, key): values, in order
    self.path = None
    names = (name, f"{template}@.service")
    main = next((path for one in names for path in self._found(one) if path.is_file()), None)
    if main is None:
      sys.exit(f"Unit {name} not found")
    drop_ins = [path for one in reversed(names) for folder in self._found(f"{one}.d") for path in sorted(folder.glob("*.conf"))]
    self.path = main
    for path in (main, *drop_ins):
      self._read(path)

  @staticmethod
  def _found(name):
    return [path for folder in FOLDERS if (path := pathlib.Path(folder, name)).exists()]

  def _read(self, path):
    section = ""
    for line in path.read_text().replace("\\\n", " ").splitlines():
      line = line.strip()
      if not line or line[0] in "#;":
        continue
      if line.startswith("["):
        section = line.strip("[]")
        continue
      key, equals, value = line.partition("=")
      if not equals or not section:
        sys.exit(f"{path}: no setting: {line}")
      values = self.settings.setdefault((section, key.strip()), [])
      if value.strip():
        values.append(value.strip().replace("%i", self.instance).replace("%%", "%"))
      else:
        values.clear()  # as systemd has it: an empty one forgets those before

  def get(self, key, section="Service"):
    return self.settings.get((section, key), [])

  def environment(self):
    entries = [entry for value in self.get("Environment") for entry in shlex.split(value)]
    for value in self.get("EnvironmentFile"):  # systemd reads them behind Environment, and they win
      entries += self._entries_of(value)
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"} | dict(entry.split("=", 1) for entry in entries)

  def _entries_of(self, value):
    path = pathlib.Path(value.removeprefix("-"))
    if not path.exists():
      return [] if value.startswith("-") else sys.exit(f"{self.name}: no EnvironmentFile {path}")
    lines = (line.strip() for line in path.read_text().splitlines())
    return [word for line in lines if line and line[0] not in "#;" for word in shlex.split(line)[:1]]

  def command(self, value):
    words = shlex.split(value)
    for name, text in self.environment().items():
      words = [word.replace("${" + name + "}", text) for word in words]
    return words


def links(unit, folder):
  return [pathlib.Path(folder, f"{target}.wants", unit.name) for target in unit.get("WantedBy", "Install")]


def enable(unit, folder):
  for link in links(unit, folder):
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
      link.symlink_to(unit.path)


def disable(unit, folder):
  for link in links(unit, folder):
    link.unlink(missing_ok=True)


def mount_for(unit):
  """systemd has a unit for each line of /etc/fstab; what is not there is no mount, or somebody else's."""
  lines = (line.split() for line in pathlib.Path("/etc/fstab").read_text().splitlines())
  known = {words[1] for words in lines if len(words) > 1 and not words[0].startswith("#")}
  for where in unit.get("RequiresMountsFor", "Unit"):
    if where in known and not os.path.ismount(where):
      subprocess.run(["mount", where], stdin=subprocess.DEVNULL, check=True)


def start(unit):
  if is_active(unit.name):
    return
  if unit.get("Type") == ["oneshot"]:
    with open(f"/run/{unit.name}.log", "w") as log:
      subprocess.run(unit.command(unit.get("ExecStart")[0]), env=unit.environment(), cwd="/", stdout=log, stderr=log,
                     stdin=subprocess.DEVNULL, check=True)
    return
  verify(unit.name)
  mount_for(unit)
  if len(unit.get("ExecStart")) != 1:
    sys.exit(f"{unit.name}: {len(unit.get('ExecStart'))} ExecStart, of which a simple service has one")

  def limit():
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # a container may allow less than the unit asks for
    for value in unit.get("LimitNOFILE"):
      resource.setrlimit(resource.RLIMIT_NOFILE, (min(int(value), allowed),) * 2)

  with open(f"/run/{unit.name}.log", "w") as log:
    for value in unit.get("ExecStartPre"):
      subprocess.run(unit.command(value), env=unit.environment(), cwd="/", stdin=subprocess.DEVNULL, check=True)
    process = subprocess.Popen(unit.command(unit.get("ExecStart")[0]), env=unit.environment(), cwd="/", stdout=log, stderr=log,
                               stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=limit)
  pathlib.Path(f"/run/{unit.name}.pid").write_text(str(process.pid))


def verify(name):
  done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", name], text=True,
                        stderr=subprocess.STDOUT, stdout=subprocess.PIPE)
  if done.returncode != 0 or done.stdout:
    sys.exit(f"systemd-analyze verify {name}: exit {done.returncode}: {done.stdout}")


def is_active(name):
  try:
    return is_running(int(pathlib.Path(f"/run/{name}.pid").read_text()))
  except FileNotFoundError:
    return False


def stop(name):
  """As systemd does: nothing where it does not run; SIGTERM, then patience, but SIGKILL after 90 s is not for us to hide."""
  if not is_active(name):
    return
  pid = int(pathlib.Path(f"/run/{name}.pid").read_text())
  os.kill(pid, signal.SIGTERM)
  deadline = time.monotonic() + 90
  while is_running(pid):
    if time.monotonic() > deadline:
      sys.exit(f"{name}: process {pid} does not end")
    time.sleep(0.1)


def is_running(pid):
  """One that nobody has waited for is none."""
  try:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
  except (FileNotFoundError, ProcessLookupError):
    return False


def main(argv):
  if argv in (["daemon-reload"], ["--system", "daemon-reload"]):
    return
  command, options, names = argv[0] if argv else "", argv[1:-1], argv[-1:]
  known = {"enable": ([], ["--now"], ["--runtime"]), "disable": ([], ["--runtime"]), "start": ([],), "stop": ([],),
           "is-active": ([],), "reset-failed": ([],)}
  if options not in known.get(command, ()) or not names:
    sys.exit(f"unknown: systemctl {' '.join(argv)}")
  name = names[0] if names[0].endswith(".service") else f"{names[0]}.service"
  folder = RUNTIME_FOLDER if options == ["--runtime"] else FOLDERS[0]
  if command == "stop":
    stop(name)
  elif command == "is-active":
    sys.exit(0 if is_active(name) else 3)
  elif command == "disable":
    disable(Unit(name), folder)
  elif command == "enable":
    enable(Unit(name), folder)
  if command == "start" or options == ["--now"]:
    start(Unit(name))


if __name__ == "__main__":
  main(sys.argv[1:])
