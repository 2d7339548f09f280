# SPDX-License-Identifier: LGPL-2.1-or-later
"""The commands that a page tells its reader to type, taken out of its text.

A page marks what is to be typed: in reStructuredText `.. code-block:: sh`, in Markdown a fenced block ```sh, or ```console
where lines behind `$ ` are typed and the others are what is printed. A block that is not marked holds no command
(unmarked() finds the one that does). Mentions are commands in the middle of a sentence, in backquotes.
"""

import dataclasses
import pathlib
import re

# A mention or an unmarked line that begins with one of these is a command; so is one that begins with a script below qa/.
PROGRAMS = ("ceph", "rados", "rbd", "ceph-osd", "ceph-volume", "ceph-swimstore-tool", "ceph-objectstore-tool", "ceph-kvstore-tool",
            "vtkv-tool", "vtkv_bench", "swimstore_bench", "swimstore_crash_explorer", "apt-mark", "systemctl", "cmake", "ninja")
COMMAND_KINDS = ("sh", "console")


@dataclasses.dataclass(frozen=True)
class Block:
  kind: str  # "sh", "ini", …; "" when it is not marked
  line: int  # of the page, of the block's first line
  text: str


@dataclasses.dataclass(frozen=True)
class Command:
  line: int
  text: str
  printed: str = ""  # what the page says it prints


def pages(checkout):
  """Paths of the README and of doc/, without its pictures."""
  doc = sorted(path for path in (checkout / "doc").iterdir() if path.suffix in (".md", ".rst"))
  return [checkout / "README.md", *doc]


def is_command(text):
  first = text.split()[0] if text.split() else ""
  return first.removeprefix("build/bin/") in PROGRAMS or bool(re.fullmatch(r"qa/[\w/-]+\.(py|sh)", first))


def blocks(name, text):
  return list(_rst_blocks(text) if pathlib.PurePath(name).suffix == ".rst" else _markdown_blocks(text))


def _markdown_blocks(text):
  kind = None
  for number, line in enumerate(text.splitlines(), 1):
    if line.startswith("```"):
      if kind is None:
        kind, first, lines = line[3:].strip(), number + 1, []
      else:
        yield Block(kind, first, "\n".join(lines) + "\n")
        kind = None
    elif kind is not None:
      lines.append(line)


def _rst_blocks(text):
  lines = text.splitlines()
  at = 0
  while at < len(lines):
    line = lines[at]
    marked = re.fullmatch(r"\s*\.\. code-block:: (\S+)", line)
    at += 1
    if not marked and not line.rstrip().endswith("::"):
      continue
    indent = len(line) - len(line.lstrip())
    while at < len(lines) and not lines[at].strip():
      at += 1
    first = at
    while at < len(lines) and (not lines[at].strip() or len(lines[at]) - len(lines[at].lstrip()) > indent):
      at += 1
    block = lines[first:at]
    depth = min((len(inner) - len(inner.lstrip()) for inner in block if inner.strip()), default=0)
    yield Block(marked[1] if marked else "", first + 1, "\n".join(inner[depth:] for inner in block).rstrip() + "\n")


def commands(block):
  """Of a block of commands, one after the other: one command a line, and a line that ends in a backslash, `&&` or `||` goes on.
  What else a shell would read on for, a loop or a here-document, a page does without; the latter is refused."""
  found = []
  whole = ""
  for number, line in enumerate(block.text.splitlines(), block.line):
    if block.kind == "console" and not line.startswith("$ ") and not whole:
      if found:
        found[-1] = dataclasses.replace(found[-1], printed=f"{found[-1].printed}{line}\n")
      continue
    whole += line if whole or block.kind == "sh" else line[2:]
    if whole.endswith(("\\", "&&", "||")):
      whole += "\n"
      continue
    whole, text = "", re.sub(r"\s+# .*", "", whole).strip()
    if re.search(r"(?<!<)<<(?!<)", text):
      raise ValueError(f"line {number}: a here-document: write one command a line")
    if text and not text.startswith("#"):
      found.append(Command(number, text))
  return found


def unmarked(name, text):
  """Lines of blocks without a mark that are commands all the same."""
  return [f"{name}:{block.line}: {line.strip()}" for block in blocks(name, text) if block.kind not in COMMAND_KINDS
          for line in block.text.splitlines()
          if line.startswith("$ ") or (is_command(line) and not re.search(r"[─│┌┐└┘┴┬▼]", line))]


def mentions(name, text):
  """Commands with at least one argument, in backquotes, outside blocks."""
  rst = pathlib.PurePath(name).suffix == ".rst"
  for block in blocks(name, text):
    inside = text.splitlines()[block.line - 1:block.line - 1 + len(block.text.splitlines())]
    text = text.replace("\n".join(inside), "\n" * (len(inside) - 1))
  # A pair may go over the end of a line, not over the end of a paragraph.
  quoted = re.compile(r"``((?:[^`\n]|\n(?!\s*\n))+)``" if rst else r"(?<!`)`((?:[^`\n]|\n(?!\s*\n))+)`(?!`)")
  found = []
  for match in quoted.finditer(text):
    words = " ".join(match[1].split())
    if is_command(words) and " " in words:
      found.append(Command(text.count("\n", 0, match.start()) + 1, words))
  return found


def optional(text):
  """`a [b]` is `a` and `a b`."""
  match = re.search(r"\s*\[([^\]]+)\]", text)
  if not match:
    return [text]
  return [variant for middle in ("", f" {match[1]}") for variant in optional(text[:match.start()] + middle + text[match.end():])]


def table_rows(text):
  """(line, commands of the first cell, options that the second names) of a table `| command | what |`."""
  rows = []
  inside = False
  for number, line in enumerate(text.splitlines(), 1):
    cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")] if line.startswith("|") else []
    if cells == ["command", "what"]:
      inside = True
    elif inside and not cells:
      inside = False
    elif inside and len(cells) >= 2 and not set(cells[0]) <= set("|- "):
      rows.append((number, re.findall(r"`([^`]+)`", cells[0]), [option for option in re.findall(r"`(--[^`]+)`", cells[1])]))
  return rows
