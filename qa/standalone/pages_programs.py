# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the pages say about programs that need no cluster: the tools, run on a store; scripts and tests, asked by --help
whether they know each option that a page gives them, for they would run for minutes and more."""

import json
import os
import pathlib
import re
import shlex
import subprocess

import page_commands

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path("/usr/lib/ceph-swimstore")
OBJECT = "object"  # one that the store holds
ARCHIVE, OTHER_FILE, DATABASE = "/run/archive", "/run/file", "/run/page-database"
METADATA = "/run/page-metadata"
# An option that the page names without its value, or whose value must be another than that of its neighbours.
VALUES = {"--bytes-per-second N": "--bytes-per-second 0", "--block-bytes": "--block-bytes 4096",
          "--log-segment-bytes": "--log-segment-bytes 16777216", "--zone-bytes": "--zone-bytes 8388608"}
# What a whole store answers to a command that is for another one, or for another file system than that of /run.
REFUSED = {"reset": "is not abandoned", "move": "has one cube", "add-cubes": "not over 0",
           "move-metadata PATH --to DIRECTORY": "lies on a file system other than ext4"}
# A cluster is asked; a placeholder; no program of ours.
NOT_ASKED = ("ceph", "rados", "rbd", "CMD", "mkdir", "apt-get", "clangd")
# What a script does not know itself it hands on.
HANDED_ON = {"qa/run-vtkv-bench.sh": CHECKOUT / "build/bin/vtkv_bench"}


def run(words, **keywords):
  return subprocess.run([str(word) for word in words], text=True, timeout=120, stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT, **({"stdin": subprocess.DEVNULL} if "input" not in keywords else {}), **keywords)


class Programs:
  def __init__(self, report):
    self._report = report
    self._help = {}

  # -- tools on a store -----------------------------------------------------------------------------------------------

  def check_swimstore_tool(self, text, data):
    """Each row of the page's table, with each option that it names, on a store of an OSD that is stopped."""
    tool = BIN / "ceph-swimstore-tool"
    fsid = json.loads(run([tool, "info", data, "--format", "json"]).stdout)["fsid"]
    collection = json.loads(run([tool, "list", data, "--collections", "--format", "json"]).stdout)["collections"][0]["collection"]
    known = {"PATH": data, "UUID": fsid, "OBJECT": OBJECT, "NAME": collection, "N": "0", "64K/17": "4K/0",
             "DIRECTORY": METADATA}
    for line, variant in self._variants(text):
      files = {"FILE": ARCHIVE if variant.split()[0] in ("export", "import") else OTHER_FILE}
      pathlib.Path(files["FILE"] if "--out" in variant else OTHER_FILE).unlink(missing_ok=True)
      done = run([tool, *_filled(variant, known | files)])
      refused = REFUSED.get(variant, REFUSED.get(variant.split()[0]))
      self._report(refused in done.stdout if refused else done.returncode in (0, 1),
                   f"doc/ceph-swimstore-tool.md:{line}: {variant}", done.stdout)
    self._check_options("doc/ceph-swimstore-tool.md", text, tool)

  def check_vtkv_tool(self, text):
    """What the page shows of the tool first, compared with what it prints; then each row, as above."""
    tool = BIN / "vtkv-tool"
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    for block in page_commands.blocks("vtkv-tool.md", text):
      for command in page_commands.commands(block) if block.kind == "console" else ():
        done = run(["bash", "-c", command.text.replace("/tmp/db", DATABASE)], env=environment)
        self._report(done.returncode == 0 and done.stdout == command.printed, f"doc/vtkv-tool.md:{command.line}: {command.text}",
                     done.stdout)
    scanned = run([tool, "scan", DATABASE]).stdout
    run([tool, "compact", DATABASE])
    runs = json.loads(run([tool, "--json", "dump", "run", DATABASE]).stdout)["runs"]
    known = {"KEY": "a key", "VALUE": "a value", "FILE": OTHER_FILE, "ID": str(runs[0]["run"]), "N": "1", "G": "0.5"}
    for number, (line, variant) in enumerate(self._variants(text)):
      database = f"{DATABASE}.{number}" if variant.startswith("create ") else DATABASE
      done = run([tool, *_filled(variant, known | {"DIR": database})], input=scanned)
      self._report(done.returncode in (0, 1), f"doc/vtkv-tool.md:{line}: {variant}", done.stdout)
    self._check_options("doc/vtkv-tool.md", text, tool, BIN / "ceph-kvstore-tool")
    listed = re.search(r"`build/bin/ceph-kvstore-tool vtkv DIRECTORY COMMAND`(.*?) and the rest", text, re.S)[1]
    usage = run([BIN / "ceph-kvstore-tool", "--help"]).stdout
    for name in re.findall(r"`([^`]+)`", listed):
      self._report(re.search(rf"^\s+{re.escape(name)}\b", usage, re.M), f"doc/vtkv-tool.md: ceph-kvstore-tool knows {name}", usage)

  @staticmethod
  def _variants(text):
    return [(line, variant) for line, commands, options in page_commands.table_rows(text) for command in commands
            for variant in (command, *(f"{command} {VALUES.get(option, option)}" for option in options))]

  def _check_options(self, name, text, tool, *others):
    """Options that the page names anywhere are in the help of the tool or of a command of it."""
    told = "".join(self.help_of([program]) for program in (tool, *others))
    for _, commands, _ in page_commands.table_rows(text):
      for command in commands:
        words = [word for word in command.split() if re.fullmatch(r"[a-z-]+", word) and not word.startswith("-")]
        told += self.help_of([tool, *words])
    for option in sorted(set(re.findall(r"`(--[a-z-]+)", text))):
      self._report(re.search(rf"{option}\b(?!-)", told), f"{name}: {option} is in the tool's help")

  # -- scripts and tests ----------------------------------------------------------------------------------------------

  def help_of(self, words):
    key = tuple(str(word) for word in words)
    if key not in self._help:
      done = run([*key, "--help"], cwd=CHECKOUT)
      self._help[key] = done.stdout if done.returncode == 0 else ""
    return self._help[key]

  def check_scripts(self, name, text, blocks=True):
    """All of a page that is not said to ceph; `blocks`: also what stands in blocks."""
    found = page_commands.mentions(name, text)
    for block in page_commands.blocks(name, text) if blocks else ():
      found += page_commands.commands(block) if block.kind == "sh" else ()
    for command in found:
      for simple in re.split(r" && |; ", command.text.replace("\\\n", " ")):
        words = shlex.split(simple)
        while words and (words[0] == "qa/enter.sh" or "=" in words[0]):
          words = words[1:]
        if words and words[0] not in NOT_ASKED:
          wrong = self._wrong(words)
          self._report(not wrong, f"{name}:{command.line}: {simple}", wrong)

  def _wrong(self, words):
    """What its program would not know of a command; empty when nothing."""
    program = words[0]
    if program == "cmake":
      presets = json.loads((CHECKOUT / "CMakePresets.json").read_text())["configurePresets"]
      return "" if words[1] != "--preset" or words[2] in [preset["name"] for preset in presets] else f"no preset {words[2]}"
    if program == "ninja":
      return " ".join(f"no target {target}" for target in words[3:] if not self._is_target(target))
    if program in ("apt-mark", "systemctl"):  # not ours that stands for systemctl here
      told = self.help_of([f"/usr/bin/{program}"])
      return "" if len(words) < 2 or re.search(rf"^\s*{re.escape(words[1])}\b", told, re.M) else f"no command {words[1]}"
    if program == "ceph-volume":  # the packaged one, which loads ours
      named = [word for word in words[:3] if re.fullmatch(r"[a-z-]+", word) and not word.startswith("-")]
      told = self.help_of(named)
      return " ".join(option for option in words if option.startswith("--") and option not in told) if told else f"no {named}"
    name = pathlib.PurePath(program).name
    if not program.startswith("qa/"):
      if not self._is_target(name):
        return f"no program {name}"
      program = CHECKOUT / "build/bin" / name
      if not program.exists():  # of another preset, or a test program
        return ""
    elif not os.access(CHECKOUT / program, os.X_OK):
      return "no such program"
    return self._unknown_options(program, words[1:])

  def _unknown_options(self, program, arguments):
    plain = [word for word in arguments if re.fullmatch(r"[a-z][a-z-]*", word)]
    told = "".join(self.help_of([one]) for one in (program, HANDED_ON.get(program)) if one)
    told += "".join(self.help_of([program, *plain[:count]]) for count in (1, 2) if plain[count - 1:])
    options = [word.partition("=")[0] for word in arguments if word.startswith("--") and not word.startswith("--gtest_")]
    return " ".join(f"{option} is not in its help" for option in options
                    if option not in ("--", "--help") and not option.startswith("--swimstore_")
                    and not re.search(rf"{re.escape(option)}\b(?!-)", told))

  @staticmethod
  def _is_target(name):
    lists = [CHECKOUT / "CMakeLists.txt", *(CHECKOUT / "qa").rglob("*.cmake")]
    return any(re.search(rf"[(\s]{re.escape(name)}[\s)]", path.read_text()) for path in lists)


def _filled(command, known):
  return [known.get(word, word) for word in shlex.split(command)]
