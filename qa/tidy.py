#!/usr/bin/env python3
"""What a compiler does not check: sizes, layers, doors to the operating system,
files that nothing builds, paths in the documents, left-over notes.

Prints one line per finding and exits 1 if there is any.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys

LINES_MAX = 600
PAGE_COLUMNS_MAX = 110

# A layer may include its own and lower ones; equal ranks may include each other.
# Headers at a folder's root are its public face: any layer may include them.
VTKV_RANKS = {"util": 0, "env": 1, "mem": 2, "vlog": 2, "zone": 2, "span": 3, "tree": 4,
              "iter": 6, "db": 6, "ceph": 7, "testing": 7, "tool": 8}
SWIMSTORE_RANKS = {"format": 0, "container": 0, "recovery": 1, "cube": 1,
                   "ops": 2, "commit": 2, "store": 2, "fsck": 3, "testing": 4, "tool": 5}
RANKS = {"src/os/vtkv": VTKV_RANKS, "src/os/swimstore": SWIMSTORE_RANKS}

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
        return [str(p.relative_to(self.root)) for p in self.root.rglob("*") if p.is_file()]

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
        # A root .cc and a public header may use what they are the face of.
        return None
    if part != target_part:
        return None
    ranks = RANKS[part]
    for known in (folder, target_folder):
        if known and known not in ranks:
            return f"folder '{known}' has no rank: give it one in qa/tidy.py and in the architecture"
    if folder and ranks[target_folder] > ranks[folder]:
        return f"{folder}/ is below {target_folder}/: includes point down only"
    return None


def check_layers(tree):
    for name in tree.matching("src/os/*.cc", "src/os/*.h"):
        text = tree.text(name)
        for match in INCLUDE.finditer(text):
            included = match.group(1) or match.group(2)
            target = resolve(tree, name, included)
            line = line_of(text, match.start())
            if target is None:
                if (match.group(1) and name.startswith("src/os/vtkv/") and
                        not name.startswith("src/os/vtkv/ceph/")):
                    yield name, line, f'"{included}" is no file of vtkv: vtkv includes no Ceph header'
                continue
            fault = None if is_test(name) else layer_fault(name, target)
            if fault:
                yield name, line, f'"{included}": {fault}'


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


def check_documents(tree):
    """A path in a document, in backticks, exists."""
    pattern = re.compile(r"`((?:src|qa|doc|\.ci)/[\w./{},*-]*\w[\w./{},*-]*)`")
    for name in tree.matching("doc/*.md", "doc/*.rst", "*.md"):
        text = tree.text(name)
        for match in pattern.finditer(text):
            for path in expand_braces(match.group(1)):
                if not list(tree.root.glob(path.rstrip("/."))):
                    yield name, line_of(text, match.start()), f"there is no {path}"


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


def check_notes(tree):
    rules = [(NOTE, "a note for later: do it, or make it an issue"),
             (MACHINE_PATH, "a path of one machine"),
             (MIRROR, "a mirror's address: take it from the host's apt")]
    for name in filter(is_text, tree.files):
        text = tree.text(name)
        for pattern, message in rules:
            for match in pattern.finditer(text):
                yield name, line_of(text, match.start()), f"'{match.group(0)}': {message}"


def findings(tree, compile_commands=None):
    for check in (check_sizes, check_layers, check_doors, check_documents, check_pages, check_notes):
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
