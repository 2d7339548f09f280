#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a compiler does not check: sizes, layers, doors to the operating system,
files that nothing builds, paths, links and functions in the documents, left-over notes.

Prints one line per finding and exits 1 if there is any.
"""

import argparse
import collections
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys

LINES_MAX = 600
PAGE_COLUMNS_MAX = 110

# A layer may include itself and lower ones. Equal ranks know nothing of each other.
# Headers at a folder's root are its public face: any layer may include them.
VTKV_RANKS = {"util": 0, "env": 1, "mem": 2, "zone": 2, "wal": 3, "span": 3, "blob": 4, "commit": 4, "table": 4, "compaction": 5,
              "tree": 6, "iter": 7, "gc": 8, "db": 9, "ceph": 10, "testing": 10, "tool": 11}
SWIMSTORE_RANKS = {"format": 0, "container": 1, "cube": 2, "ops": 3, "compression": 4, "directory": 4, "collection": 4, "host": 4,
                   "object": 5, "omap": 6, "transaction": 7, "fsck": 7, "maintenance": 8, "defragment": 9, "move": 9, "isolation": 10,
                   "admin": 10, "ceph": 10, "testing": 10, "tool": 11}
RANKS = {"src/os/vtkv": VTKV_RANKS, "src/os/swimstore": SWIMSTORE_RANKS}
# Of the engine's own folders the store may use these; its tools and tests any.
VTKV_FOLDERS_FOR_SWIMSTORE = {"": {"util", "env"}, "ceph": {"ceph"}}
# How env does it is for env alone.
HOST = "src/os/vtkv/env/posix/"

# More files than these in a folder, tests aside, and nobody reads its listing.
FILES_MAX = 25
FOLDERS_OF_MORE = {
    "src/os/swimstore/format": "a header and a source for each record of doc/on_disk_format.md",
    "src/os/vtkv/tool/bench": "a file for each engine and workload",
}

# The only door to the operating system is vtkv/env.
DOOR = "src/os/vtkv/env/"
DOOR_FREE_FOLDERS = ("/tool/", "/testing/")
OS_CALLS = [
    ("file I/O", re.compile(
        r"(?<![\w.>:])(?:::)(?:open|openat|close|read|write|pread|pwrite|preadv|pwritev|fsync|"
        r"fdatasync|syncfs|fallocate|ftruncate|truncate|unlink|rename|mkdir|rmdir|flock|fcntl|"
        r"ioctl|stat|fstat|statfs|fstatfs|mmap|opendir|readdir)\s*\(")),
    ("file I/O", re.compile(
        r"(?<![\w.>:])(?:pread|pwrite|preadv2?|pwritev2?|fsync|fdatasync|syncfs|fallocate|"
        r"posix_fallocate|ftruncate|fopen|sync_file_range|copy_file_range)\s*\(")),
    ("file I/O", re.compile(r"\bstd::(?:[io]?fstream|filesystem)\b|\bio_uring_\w+\s*\(")),
    ("a clock", re.compile(
        # Ceph's mono_clock feeds latency counters, and decides nothing.
        r"\b(?!mono_)\w*clock(?:_t)?::now\s*\(|\bceph_clock_now\s*\(|\b(?:clock_gettime|gettimeofday)\s*\(")),
    ("randomness", re.compile(r"\bstd::random_device\b|(?<![\w.>:])s?rand\s*\(|\bgetrandom\s*\(")),
    ("a sleep", re.compile(r"\bsleep_(?:for|until)\s*\(|(?<![\w.>:])(?:u|nano)?sleep\s*\(")),
]
ALLOW = re.compile(r"tidy: allow \S")

# Split so that this file does not find itself.
NOTE = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(?:ho" r"me|wo" r"rk|Us" r"ers)/\w")
MIRROR = re.compile(r"https?://[^\s/]+/(?:debian|ubuntu)\b")

# Words that the field's own replaced (doc/glossary.md), in lower case, as they would stand in a name or a sentence.
# What is plain English besides (place, part, lost) is not here: readers look for it. A line with 'tidy: allow' may keep
# one, as the refusal of an option's old name does.
OLD_WORDS = {
    r"range[_ -]?removal|removal_(?:blocks|workloads)|removals_min": "range tombstone",
    r"entrytype::removal": "tombstone",
    r"reducer": "compaction iterator",
    r"extent chunks?\b": "extent shard",
    r"flushes and merges|\ba merge or\b": "compaction",
    r"stitch_?merge|merge_?(?:choice|debt|pace|policy|shape|source)": "compaction",
    r"merge_(?:all|bytes|once)\b": "compaction",
    r"\bputs? again\b": "relocate",
    r"victim_?(?:plan|reader)": "GC candidate",
    r"condemn": "pending-free",
    r"\beras?\b|_era\b|\bera_": "reader epoch",
    r"\bsieved?\b": "index-filtered",
    r"scattered_?values": "fragmented values",
    r"_bulk\b|\bbulks\b|bulk_bytes": "write buffer",
    r"awaits_company": "group-commit delay",
    r"(?:request|next|m)_boundar(?:y|ies)|boundary_positions?\b|boundaries_before": "flush point",
    r"report_strays|\bstrays\b": "orphans",
    r"\*believe\b|bool believe\b": "assume_written",
    r"caretaker": "maintenance",
    r"horizon[_ ]?keeper": "idle committer",
    r"brake": "throttle",
    r"census": "reference audit",
    r"ledger": "delta",
    r"\bmend(?:s|ed|ing)?\b": "repair",
    r"\b(?:set|put|sets|puts)[_ ]?aside": "quarantine",
    r"(?:kv|cube|store)_?world": "workload",
    r"(?:kv|cube|store|crash)_?subject": "target",
    r"(?:log|entry|writer)_?place\b": "address",
    r"span_?part\b": "slice",
    r"checkpoint_?slot|manifest(?:'s)? slots?\b|slots? of the manifest": "manifest copy",
    r"\bstretch(?:es)?\b|_stretch|stretch_": "chunk (of a container), contiguous blocks, key range",
}
HAVE_OLD_WORDS = {"qa/tidy.py", "qa/tidy_test.py", "doc/changes.md"}  # the last says what became of them
# Between two words of a sentence: a line may end there, and a comment go on in the next one.
GAP = r"\s+(?:(?://+|#+|\*)\s+)?"


def across_lines(word):
  return re.sub(r"\[_ -?\]", lambda _: rf"(?:[_-]|{GAP})", word).replace(" ", GAP)


# Bytes of formats, whatever they read like.
CORPUS = "qa/fuzz/corpus/"

LICENCE = "SPDX-License-Identifier: LGPL-2.1-or-later"
LICENCE_SUFFIXES = {".cc", ".h", ".py", ".sh", ".cmake", ".pml"}

# Included by Ceph's files and the library's headers, not by ours.
SEAM_HEADERS = {"acconfig.h", "xxhash.h"}

# Built by a preset that needs another compiler.
BUILT_ELSEWHERE = {"src/os/vtkv/testing/fuzz/fuzz_main.cc", "src/os/swimstore/testing/fuzz/fuzz_main.cc"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.M)
TEXT_SUFFIXES = {".cc", ".h", ".py", ".sh", ".md", ".rst", ".cmake", ".txt", ".json", ".yaml",
                 ".yml", ".pml", ".conf", ".service", ""}


class Tree:
  """The files that are, or would be, in the repository."""

  def __init__(self, root):
    self.root = pathlib.Path(root)
    self.files = sorted(f for f in self._list() if (self.root / f).is_file())
    self._text = {}

  def _list(self):
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(self.root), "ls-files", "-co",
         "--exclude-standard"], capture_output=True, text=True)
    if done.returncode == 0:
      return done.stdout.splitlines()
    paths = (str(p.relative_to(self.root)) for p in self.root.rglob("*") if p.is_file())
    return [path for path in paths if not re.match(r"(?:build|build-[^/]*|\.git)/", path)]

  def text(self, name):
    if name not in self._text:
      self._text[name] = (self.root / name).read_text(errors="replace")
    return self._text[name]

  def matching(self, *patterns):
    return [f for f in self.files if any(fnmatch.fnmatch(f, p) for p in patterns)]


def is_text(name):
  return pathlib.PurePath(name).suffix in TEXT_SUFFIXES


def is_test(name):
  return name.endswith("_test.cc")


def line_of(text, offset):
  return text.count("\n", 0, offset) + 1


def check_sizes(tree):
  """A file past the limit says why it is one file ("tidy: long because ...")."""
  for name in tree.matching("*.cc", "*.h", "*.py", "*.sh"):
    lines = tree.text(name).count("\n")
    if lines > LINES_MAX and "tidy: long " + "because" not in tree.text(name):
      yield name, 1, (f"{lines} lines, more than {LINES_MAX}: split it by its second noun, "
                      "or say why not in a comment that starts 'tidy: long because'")


def layer_of(name):
  """(part, folder) of a source file; the folder is '' at the part's root."""
  for part in RANKS:
    if name.startswith(part + "/"):
      rest = name[len(part) + 1:]
      return part, rest.split("/")[0] if "/" in rest else ""
  return None, None


def resolve(tree, name, included):
  """The repository's own file an include means, or None."""
  beside = os.path.normpath(os.path.join(os.path.dirname(name), included))
  for candidate in ("src/os/" + included, beside):
    if candidate in tree.files:
      return candidate
  return None


def layer_fault(name, target):
  part, folder = layer_of(name)
  target_part, target_folder = layer_of(target)
  if target_part is None:
    return None
  if part == "src/os/vtkv" and target_part != part:
    return "vtkv knows nothing of SwimStore"
  if target_folder == "":
    return None
  if part == "src/os/vtkv" and folder == "" and name.endswith(".h"):
    return "a public header needs no folder's own one"
  if target.startswith(HOST) and not name.startswith(DOOR) and not any(f in name for f in DOOR_FREE_FOLDERS):
    return f"{HOST} is for {DOOR} alone: go through env.h, or give the reason in a comment 'tidy: allow ...'"
  if part != target_part:
    allowed = VTKV_FOLDERS_FOR_SWIMSTORE[""] | VTKV_FOLDERS_FOR_SWIMSTORE.get(folder, set())
    if target_folder in allowed or any(f in name for f in DOOR_FREE_FOLDERS):
      return None
    return f"{target_folder}/ is the engine's own: VTKV_FOLDERS_FOR_SWIMSTORE in qa/tidy.py has what the store may use"
  ranks = RANKS[part]
  for known in (folder, target_folder):
    if known and known not in ranks:
      return f"folder '{known}' has no rank: give it one in qa/tidy.py and in the architecture"
  if folder and folder != target_folder and ranks[target_folder] >= ranks[folder]:
    return f"{folder}/ is not above {target_folder}/: includes point down only"
  return None


def check_layers(tree):
  for name in tree.matching("src/os/*.cc", "src/os/*.h"):
    text = tree.text(name)
    for match in INCLUDE.finditer(text):
      included = match.group(1) or match.group(2)
      target = resolve(tree, name, included)
      line = line_of(text, match.start())
      if target is None:
        if match.group(1) and name.startswith("src/os/vtkv/") and not name.startswith("src/os/vtkv/ceph/"):
          yield name, line, f'"{included}" is no file of vtkv: vtkv includes no Ceph header'
        continue
      fault = None if is_test(name) else layer_fault(name, target)
      if fault and not ALLOW.search(text.splitlines()[line - 1]):
        yield name, line, f'"{included}": {fault}'


def is_product(name):
  return not is_test(name) and "/testing/" not in name


def check_folders(tree):
  count = collections.Counter(os.path.dirname(name) for name in tree.matching("src/os/*.cc", "src/os/*.h")
                              if is_product(name))
  for folder, files in sorted(count.items()):
    if files > FILES_MAX and folder not in FOLDERS_OF_MORE:
      yield folder, 1, f"{files} files, more than {FILES_MAX}: make two rooms of it, or say why not in qa/tidy.py"
  for folder in FOLDERS_OF_MORE:
    if count[folder] <= FILES_MAX:
      yield folder, 1, f"{count[folder]} files: FOLDERS_OF_MORE in qa/tidy.py need not name it"


# With or without attributes and macros before the name, and a base behind it, on the same line or the next.
DEFINITION = re.compile(r"^(?:class|struct|union|enum(?: class| struct)?)\s+"
                        r"(?:(?:alignas\([^()]*\)|\[\[[^\]]*\]\]|[A-Z][A-Z0-9_]*(?:\([^()]*\))?)\s+)*"
                        r"(\w+)(?:\s+final)?(?:\s*:(?!:)[^;{]*)?\s*\{", re.M)


def check_names(tree):
  """A name that headers of both parts may use means one thing."""
  first = {}
  for name in tree.matching("src/os/*.h"):
    if not is_product(name) or "/tool/" in name:
      continue
    text = without_comments(tree.text(name))
    for match in DEFINITION.finditer(text):
      other = first.setdefault(match.group(1), name)
      if other != name:
        yield name, line_of(text, match.start()), f"{match.group(1)} is something else in {other}"


def without_comments(text):
  """The text with comments and string literals blanked, line by line the same."""
  pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
  return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def check_doors(tree):
  for name in tree.matching("src/os/*.cc", "src/os/*.h"):
    if name.startswith(DOOR) or is_test(name) or any(f in name for f in DOOR_FREE_FOLDERS):
      continue
    lines = tree.text(name).splitlines()
    for number, line in enumerate(without_comments(tree.text(name)).splitlines(), 1):
      for what, pattern in OS_CALLS:
        near = "\n".join(lines[max(0, number - 2):number])
        if pattern.search(line) and not ALLOW.search(near):
          yield name, number, (f"{what} outside {DOOR}: go through env, or give the "
                               "reason in a comment 'tidy: allow ...'")
          break


def check_built(tree, compile_commands):
  """Every .cc is compiled, every header included by somebody."""
  built = {os.path.realpath(os.path.join(entry["directory"], entry["file"]))
           for entry in json.loads(pathlib.Path(compile_commands).read_text())}
  sources = tree.matching("src/*.cc", "qa/*.cc", "src/*.h", "qa/*.h")
  included = set()
  # A model in Promela includes C, too: \#include.
  for name in [*sources, *tree.matching("qa/*.pml")]:
    for match in INCLUDE.finditer(tree.text(name).replace("\\#", "#")):
      included.add(os.path.basename(match.group(1) or match.group(2)))
  lists = "\n".join(tree.text(f) for f in tree.matching("CMakeLists.txt", "*.cmake"))
  for name in sources:
    if name in BUILT_ELSEWHERE:
      continue
    base = os.path.basename(name)
    if name.endswith(".cc"):
      if os.path.realpath(tree.root / name) not in built:
        yield name, 1, "no target builds it"
    elif base not in included and base not in lists and base not in SEAM_HEADERS:
      yield name, 1, "no source includes it"


def expand_braces(path):
  match = re.search(r"\{([^{}]*)\}", path)
  if not match:
    return [path]
  return [p for part in match.group(1).split(",")
          for p in expand_braces(path[:match.start()] + part.strip() + path[match.end():])]


def source_path(tree, path):
  """The file that a page means by db/a.h, vtkv/db/a.h or src/os/vtkv/db/a.h; None: there is none."""
  for base in ("", "src/os/", *(f"{part}/" for part in RANKS)):
    if base + path in tree.files:
      return base + path
  return None


def check_documents(tree):
  """A path in a document, in backticks, exists."""
  pattern = re.compile(r"`((?:src|qa|doc|\.ci)/[\w./{},*-]*\w[\w./{},*-]*)`")
  short = re.compile(r"`((?!(?:src|qa|doc)/)\w+/[\w/]+\.(?:cc|h))`")
  for name in tree.matching("doc/*.md", "doc/*.rst", "*.md"):
    text = tree.text(name)
    for match in pattern.finditer(text):
      for path in expand_braces(match.group(1)):
        if not list(tree.root.glob(path.rstrip("/."))):
          yield name, line_of(text, match.start()), f"there is no {path}"
    for match in short.finditer(text):
      if not source_path(tree, match.group(1)):
        yield name, line_of(text, match.start()), f"there is no {match.group(1)} below src/os"


def without_code(text):
  """A Markdown page with its blocks of code blanked, line by line the same."""
  return re.sub(r"^```.*?^```", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.M | re.S)


def check_comments(tree):
  """A source that a comment names, by its room, exists."""
  pattern = re.compile(r"(?<![\w./-])(?!linux/)((?:\w+/)+\w+\.(?:cc|h))\b")
  for name in tree.matching("src/os/*.cc", "src/os/*.h"):
    text = tree.text(name)
    for comment in re.finditer(r"//[^\n]*", text):
      for path in pattern.findall(comment.group(0)):
        if not source_path(tree, path):
          yield name, line_of(text, comment.start()), f"there is no {path} below src/os"


def anchors_of(text):
  """Of a Markdown page's headings, as GitHub makes them: of equal ones the second ends in -1."""
  found = collections.Counter()
  anchors = set()
  for heading in re.findall(r"^#+ (.*?)\s*$", without_code(text), re.M):
    anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    anchors.add(f"{anchor}-{found[anchor]}" if found[anchor] else anchor)
    found[anchor] += 1
  return anchors


def check_links(tree):
  """A Markdown page's link leads to a file or a folder, and to a heading of it."""
  pattern = re.compile(r"\]\(<?(?![a-z]+:)([^)#\s<>]*)(?:#([^)\s>]+))?>?\)")
  for name in tree.matching("*.md"):
    for match in pattern.finditer(without_code(tree.text(name))):
      path, anchor = match.groups()
      target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
      if target not in tree.files and not any(file.startswith(target + "/") for file in tree.files):
        yield name, line_of(tree.text(name), match.start()), f"the link leads to {target}, which is not there"
      elif anchor and target.endswith(".md") and anchor not in anchors_of(tree.text(target)):
        yield name, line_of(tree.text(name), match.start()), f"{target} has no heading #{anchor}"


def cells_of(line):
  return [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []


def walk_rows(text):
  """(line, row) of the tables whose columns are called file and function: what is in them, by column."""
  columns = []
  for number, line in enumerate(text.splitlines(), 1):
    cells = cells_of(line)
    if not cells:
      columns = []
    elif not columns:
      columns = cells
    elif {"file", "function"} <= set(columns) and not set("".join(cells)) <= set("-: "):
      yield number, dict(zip(columns, cells))


def is_defined_in(path, source, name):
  """Class::function or function(): a source defines it, from the start of a line; a header declares it in its class."""
  *classes, function = name.removesuffix("()").split("::")
  code = without_comments(source)
  if path.endswith(".h"):
    return (re.search(rf"\b{function}\s*\(", code) is not None
            and all(re.search(rf"^\s*(?:class|struct)\b[^;:{{]*\b{one}\b[^;]*\{{", code, re.M) for one in classes))
  qualified = r"\s*::\s*".join(map(re.escape, [*classes, function]))
  return re.search(rf"^(?!\s)(?:[^\n;(={{]*[\s*&])?{qualified}\s*\([^;{{]*\)[^;{{]*(?:\{{|:\s)", code, re.M) is not None


def check_walks(tree):
  """What a table of steps names is in the file that it names beside it."""
  named = re.compile(r"`(\w+(?:::~?\w+)+|\w+\(\))`")
  for name in tree.matching("doc/*.md", "*.md"):
    for line, row in walk_rows(tree.text(name)):
      path = re.fullmatch(r"`([\w./-]+)`", row["file"])
      if not path or not named.search(row["function"]):
        yield name, line, "a step names one file, and a function of it as `Class::function` or `function()`"
        continue
      target = source_path(tree, path[1])
      for function in named.findall(" ".join(row.values())):
        # Where there is no such file, check_documents has told.
        if target and not is_defined_in(target, tree.text(target), function):
          yield name, line, f"{target} has no {function}"


# Every durable byte is described on this page, and nowhere else.
FORMAT_PAGE = "doc/on_disk_format.md"
FORMAT_COLUMNS = ["OFFSET", "TYPE", "FIELD", "MEANING"]
# What in a product source is a durable structure: a magic number, a struct that is written as it lies in memory, and in
# a header a function that encodes.
MAGIC = re.compile(r"^[^\n/]*\bk\w*Magic\b[^;=()\n]*=\s", re.M)
LAYOUT = re.compile(r"\bsizeof\((?!u?int\d+_t)(\w+_t|Layout)\) ==")
ENCODER = re.compile(r"^ *(?:static )?(?:(?:std::string|void) (?:encode(?:_\w+)?|serialized)|std::string \w+_key)\(",
                     re.M)
NO_FORMATS = {
    "src/os/vtkv/util/coding.h": "what structures are made of: the page's conventions",
    "src/os/vtkv/env/posix/file_system_info.cc": "the number of another's format",
    "src/os/vtkv/tree/manifest.h": "the structure is in manifest_format.h",
    "src/os/swimstore/fsck/fsck.h": "a key in words, for messages",
}
POINTER = re.compile(re.escape(FORMAT_PAGE) + r",((?:\s+(?://\s*)?(?:and\s+)?\"[^\"]+\",?)+)")


def format_sections(text):
  """Of the page: (line, heading, whether it has a structure's table, the names of its examples), in order."""
  sections = []
  in_code = False
  for number, line in enumerate(text.splitlines(), 1):
    if line.startswith("```"):
      if not in_code and line.startswith("```hex ") and sections:
        sections[-1][3].append(line[len("```hex "):])
      in_code = not in_code
    elif not in_code and line.startswith("#"):
      sections.append([number, line.lstrip("#").strip(), False, []])
    elif not in_code and sections and cells_of(line) == FORMAT_COLUMNS:
      sections[-1][2] = True
  return sections


def sections_named(text):
  """The headings of the page that comments point to: the page's path, then each in quotes."""
  return {re.sub(r"\s+(?://\s*)?", " ", name)
          for match in POINTER.finditer(text) for name in re.findall(r'"([^"]+)"', match.group(1))}


def check_formats(tree):
  """Each durable structure has a section of the page, which the source names, and each section a test."""
  if FORMAT_PAGE not in tree.files:
    return
  sections = format_sections(tree.text(FORMAT_PAGE))
  yield from format_page_faults(sections)
  headings = {heading for _, heading, _, _ in sections}
  for name in tree.matching("src/os/*.h", "src/os/*.cc"):
    if not is_product(name) or name in NO_FORMATS:
      continue
    text = tree.text(name)
    for missing in sorted(sections_named(text) - headings):
      yield name, 1, f'{FORMAT_PAGE} has no section "{missing}"'
    found = [*MAGIC.finditer(text), *LAYOUT.finditer(text)]
    structures = len(set(LAYOUT.findall(text)))
    if name.endswith(".h"):
      found += ENCODER.finditer(text)
      structures += len(ENCODER.findall(text))
    pointed = sections_named(text)
    header = name.removesuffix(".cc") + ".h"
    if name.endswith(".cc") and header in tree.files:
      pointed |= sections_named(tree.text(header))
    if found and len(pointed & headings) < max(structures, 1):
      line = line_of(text, min(match.start() for match in found))
      yield name, line, (f"{max(structures, 1)} durable structures, and {len(pointed & headings)} sections of "
                         f'{FORMAT_PAGE} named: name each in a comment, {FORMAT_PAGE}, "Section"')
  yield from untested_sections(tree, sections)


def format_page_faults(sections):
  seen = set()
  for line, heading, is_structure, examples in sections:
    for name in [("heading", heading), *(("example", example) for example in examples)]:
      if name in seen:
        yield FORMAT_PAGE, line, f"a second {name[0]} '{name[1]}'"
      seen.add(name)
    if is_structure != bool(examples):
      yield FORMAT_PAGE, line, f"'{heading}' lacks an example, or the table of what its example shows"


def untested_sections(tree, sections):
  tested = set()
  for name in filter(is_test, tree.matching("src/os/*.cc")):
    for test in re.split(r"^(?=TEST)", tree.text(name), flags=re.M):
      if re.match(r"TEST\w*\(\w+,\s*\w*AsOnThePage\)", test):
        tested |= set(re.findall(r'"([^"\n]+)"', test))
  for line, heading, is_structure, _ in sections:
    if is_structure and heading not in tested:
      yield FORMAT_PAGE, line, f"no test '…AsOnThePage' holds '{heading}' against the code"


def check_pages(tree):
  """A page's lines can be read in a terminal; rows of tables, code and a command in backticks may be longer."""
  for name in tree.matching("doc/*.md", "doc/*.rst", "*.md"):
    in_code = False
    for number, line in enumerate(tree.text(name).splitlines(), 1):
      in_code ^= line.startswith("```")
      if in_code or line.lstrip().startswith("|"):
        continue
      if len(line) > PAGE_COLUMNS_MAX and len(re.sub(r"`[^`]*(`|$)", "", line)) > PAGE_COLUMNS_MAX // 2:
        yield name, number, f"{len(line)} columns, more than {PAGE_COLUMNS_MAX}"


def check_licence(tree):
  """A source's first line names its licence; a script's second, behind the one that names its interpreter."""
  for name in tree.files:
    path = pathlib.PurePath(name)
    is_script = tree.text(name).startswith("#!")
    if is_script or path.suffix in LICENCE_SUFFIXES or path.name == "CMakeLists.txt":
      lines = tree.text(name).splitlines()[is_script:]
      if not lines or LICENCE not in lines[0]:
        yield name, 1 + is_script, f"there is no line '{LICENCE}'"


def check_whitespace(tree):
  """As .editorconfig has it."""
  for name in filter(is_text, tree.files):
    text = tree.text(name)
    if name.startswith(CORPUS) or not text:
      continue
    for match in re.finditer(r"[ \t\r]+$", text, re.M):
      yield name, line_of(text, match.start()), "blanks at the end of the line"
    if not text.endswith("\n"):
      yield name, line_of(text, len(text)), "no newline at the end of the file"


def check_notes(tree):
  rules = [(NOTE, "a note for later: do it, or make it an issue"),
           (MACHINE_PATH, "a path of one machine"),
           (MIRROR, "a mirror's address: take it from the host's apt")]
  for name in filter(is_text, tree.files):
    text = tree.text(name)
    for pattern, message in rules:
      for match in pattern.finditer(text):
        yield name, line_of(text, match.start()), f"'{match.group(0)}': {message}"


def check_words(tree):
  """No word that was replaced comes back, in a name, a sentence or a file's name."""
  for name in tree.matching("src/*", "qa/*", "doc/*", "README.md", "CMakeLists.txt"):
    if not is_text(name) or name in HAVE_OLD_WORDS or name.startswith(CORPUS):
      continue
    lines = [name, *tree.text(name).splitlines()]
    text = "\n".join(lines).lower()
    for word, instead in OLD_WORDS.items():
      for match in re.finditer(across_lines(word), text):
        line = line_of(text, match.start()) - 1
        if not ALLOW.search(lines[line]):
          yield name, max(line, 1), f"'{' '.join(match.group(0).split())}': say {instead}"


def check_programs(tree):
  """In qa, a command or a scenario has dashes in its name, what others import or call underscores."""
  for name in tree.matching("qa/*.py", "qa/*.sh"):
    base = os.path.basename(name)
    is_command = re.fullmatch(r"qa/(?:run|build)[-_][\w-]*\.sh", name)
    if "_" in base and (is_command or re.search(r"^import scenario\b", tree.text(name), re.M)):
      yield name, 1, "a command or a scenario has dashes in its name"
    elif "-" in base and not is_command and os.path.dirname(name) != "qa/standalone":
      yield name, 1, "what others import or call has underscores in its name"


CHECKS = (check_sizes, check_folders, check_layers, check_names, check_doors, check_documents, check_comments,
          check_links, check_walks, check_formats, check_pages, check_licence, check_whitespace, check_notes, check_words,
          check_programs)


def findings(tree, compile_commands=None):
  for check in CHECKS:
    yield from check(tree)
  if compile_commands:
    yield from check_built(tree, compile_commands)


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
  parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent,
                      help="the checkout (default: this one)")
  parser.add_argument("--compile-commands", metavar="FILE",
                      help="compile_commands.json of a complete build: check that all is built")
  args = parser.parse_args()
  if args.compile_commands and not os.path.exists(args.compile_commands):
    sys.exit(f"tidy.py: error: there is no {args.compile_commands}: run cmake first")
  count = 0
  for name, line, message in sorted(findings(Tree(args.root), args.compile_commands)):
    print(f"{name}:{line}: {message}")
    count += 1
  print(f"tidy: {count} finding{'' if count == 1 else 's'}")
  return 1 if count else 0


if __name__ == "__main__":
  sys.exit(main())
