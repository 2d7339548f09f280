#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Put SwimStore and vtkv into a full Ceph tree (Reef or Tentacle).

The sources are copied to src/os; ObjectStore::create, KeyValueDB::create, the debug
subsystems, the options and their enumeration, the CMake lists, and the parameter
lists of store_test and test_kv learn of them. A second run changes nothing but what
has changed here.
"""

import argparse
import pathlib
import re
import sys

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src/os/swimstore", "src/os/vtkv")


class GraftError(Exception):
  pass


# An edit: a file; what its text matches when the edit is already made; what is
# looked for; what is put in its place (a template of re.sub).
EDITS = [
    ("src/os/ObjectStore.cc", r"swimstore/swimstore\.h",
     r'(#include "memstore/MemStore\.h"\n)',
     r'\1#include "swimstore/swimstore.h"\n'),
    ("src/os/ObjectStore.cc", r'type == "swimstore"',
     r'(  if \(type == "memstore"\) \{)',
     r'  if (type == "swimstore") {\n    return std::make_unique<SwimStore>(cct, data);\n  }\n\1'),
    # It warns of stores without checksums, and means all but one.
    ("src/osd/OSD.cc", r'get_type\(\) != "swimstore"',
     r'(\n +)(store->get_type\(\) != "bluestore"\) \{\n +clog->warn)',
     r'\1store->get_type() != "swimstore" &&\1\2'),
    ("src/common/subsys.h", r"SUBSYS\(swimstore,",
     r"(SUBSYS\(memstore, 1, 5\)\n)", r"\1SUBSYS(swimstore, 1, 3)\n"),
    ("src/common/options/global.yaml.in", r"- kstore\n  - swimstore",
     r"(- name: osd_objectstore\n(?:  .*\n)*?  - kstore\n)", r"\1  - swimstore\n"),
    ("src/common/options.cc", r"swimstore::option_table",
     r"const std::vector<Option> ceph_options = build_options\(\);",
     r"""static std::vector<Option> options_with_swimstore()
{
  std::vector<Option> options = build_options();
  for (auto& option : swimstore::option_table()) {
    options.push_back(std::move(option));
  }
  return options;
}

const std::vector<Option> ceph_options = options_with_swimstore();"""),
    ("src/common/options.cc", r"swimstore/ops/options\.h",
     r'(#include "common/options/build_options\.h"\n)',
     r'\1#include "os/swimstore/ops/options.h"\n'),
    ("src/common/options/CMakeLists.txt", r"swimstore/ops/options\.cc",
     r"(set\(common_options_srcs build_options\.cc)\)",
     r"\1\n  ${CMAKE_SOURCE_DIR}/src/os/swimstore/ops/options.cc)"),
    ("src/os/CMakeLists.txt", r"include\(swimstore\.cmake\)",
     r"(add_library\(os STATIC \$\{libos_srcs\}\)\n)", r"\1include(swimstore.cmake)\n"),
    # The engine is part of the kv library: programs with a KeyValueDB and no ObjectStore have it too.
    ("src/kv/CMakeLists.txt", r"include\(vtkv\.cmake\)",
     r"(target_link_libraries\(kv\n)", r"include(vtkv.cmake)\n\1"),
    ("src/kv/KeyValueDB.cc", r"vtkv_store\.h",
     r'(#include "RocksDBStore\.h"\n)', r'\1#include "vtkv/ceph/vtkv_store.h"\n'),
    ("src/kv/KeyValueDB.cc", r'new VtkvStore',
     r'(  if \(type == "rocksdb"\) \{\n    return new)',
     r'  if (type == "vtkv") {\n    return new VtkvStore(cct, dir, options);\n  }\n\1'),
    ("src/tools/ceph_kvstore_tool.cc", r'type != "vtkv"',
     r'(type != "rocksdb" &&)', r'type != "vtkv" && \1'),
    ("src/tools/ceph_kvstore_tool.cc", r"rocksdb\|vtkv\|bluestore-kv>",
     r"rocksdb\|bluestore-kv>", r"rocksdb|vtkv|bluestore-kv>"),
    # A type that is not built in was a null pointer to work with.
    ("src/tools/kvstore_tool.cc", r"cannot open a store of type",
     r"(    auto db_ptr = KeyValueDB::create\(g_ceph_context, type, path\);\n)",
     r"""\1    if (!db_ptr) {
      cerr << "cannot open a store of type " << type << ": it is not built in" << std::endl;
      exit(1);
    }
"""),
    # Tentacle has such a guard, with another function before this one.
    ("src/tools/kvstore_tool.cc", r"#ifdef WITH_BLUESTORE\n(?:void close_delete_bluestore|int StoreTool::load_bluestore)",
     r"(int StoreTool::load_bluestore\((?:.*\n)*?\}\n)", r"#ifdef WITH_BLUESTORE\n\1#endif\n"),
    ("src/tools/kvstore_tool.cc", r"if \(!other_ptr\)",
     r"(other_path\);\n)(  if \(int err = other_ptr->)",
     r"\1  if (!other_ptr) {\n    return -EOPNOTSUPP;\n  }\n\2"),
    ("src/test/objectstore/store_test.cc", r'"memstore",\n  +"swimstore"',
     r'(    "memstore",\n)', r'\1    "swimstore",\n'),
    ("src/test/objectstore/test_kv.cc", r'Values\("rocksdb", "vtkv"\)',
     r'(KVTest,\n +::testing::Values\("rocksdb")\)', r'\1, "vtkv")'),
]

# Paths below src/os are matched: the tree itself may lie below a folder of such a name.
SWIMSTORE_LIST = """\
# Written by SwimStore's graft script: SwimStore as part of the os library.
set(src_os ${CMAKE_CURRENT_LIST_DIR})
file(GLOB_RECURSE swimstore_srcs CONFIGURE_DEPENDS RELATIVE ${src_os} ${src_os}/swimstore/*.cc)
list(FILTER swimstore_srcs EXCLUDE REGEX "_test[.]cc$|/testing/|/tool/|^swimstore/ceph/|/program_version[.]cc$")
# The options belong to the common library, which every program has.
list(FILTER swimstore_srcs EXCLUDE REGEX "^swimstore/ops/options[.]cc$")
list(TRANSFORM swimstore_srcs PREPEND ${src_os}/)
target_sources(os PRIVATE ${swimstore_srcs})
set_source_files_properties(${swimstore_srcs} PROPERTIES
  COMPILE_DEFINITIONS "SWIM_SUBSYS=ceph_subsys_swimstore")
"""

VTKV_LIST = """\
# Written by SwimStore's graft script: vtkv as part of the kv library.
get_filename_component(src_os ${CMAKE_CURRENT_LIST_DIR}/../os ABSOLUTE)
file(GLOB_RECURSE vtkv_srcs CONFIGURE_DEPENDS RELATIVE ${src_os} ${src_os}/vtkv/*.cc)
list(FILTER vtkv_srcs EXCLUDE REGEX "_test[.]cc$|/testing/|/tool/|/examples/")
list(TRANSFORM vtkv_srcs PREPEND ${src_os}/)
target_sources(kv PRIVATE ${vtkv_srcs})
set_source_files_properties(${vtkv_srcs} PROPERTIES
  COMPILE_DEFINITIONS "SWIM_SUBSYS=ceph_subsys_swimstore")
# Its own headers, and SwimStore's, are included as "vtkv/..." and "swimstore/...".
target_include_directories(kv PUBLIC ${src_os})
find_package(PkgConfig REQUIRED)
pkg_check_modules(VTKV_URING REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(VTKV_ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(VTKV_LZ4 REQUIRED IMPORTED_TARGET liblz4)
target_link_libraries(kv PkgConfig::VTKV_URING PkgConfig::VTKV_ISAL PkgConfig::VTKV_LZ4 fmt::fmt)
"""


def copy_folder(source, target):
  """Make target a copy of source; files that are the same keep their times."""
  wanted = {p.relative_to(source) for p in source.rglob("*") if p.is_file()}
  if target.exists():
    for path in sorted(target.rglob("*"), reverse=True):
      if path.is_file() and path.relative_to(target) not in wanted:
        path.unlink()
  for name in wanted:
    write_if_changed(target / name, (source / name).read_bytes())


def write_if_changed(path, content):
  if path.exists() and path.read_bytes() == content:
    return False
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_bytes(content)
  return True


def edited(text, name, made, find, replace):
  if re.search(made, text):
    return text
  changed, count = re.subn(find, replace, text)
  if count == 0:
    raise GraftError(f"{name} does not look as expected (no match for {find!r}): "
                     "this is not a Reef or Tentacle tree, or it was changed there")
  return changed


def graft_one(tree, name):
  """The text of one of the tree's files, edited; the tree stays as it is."""
  edits = [edit for edit in EDITS if edit[0] == name]
  if not edits:
    raise GraftError(f"nothing is to be edited in {name}")
  text = (tree / name).read_text()
  for _, made, find, replace in edits:
    text = edited(text, name, made, find, replace)
  return text


def graft(tree, checkout=CHECKOUT):
  """Returns the names of the tree's own files that were changed."""
  if not (tree / "src/os/ObjectStore.cc").exists():
    raise GraftError(f"{tree} is no Ceph source tree (it has no src/os/ObjectStore.cc)")
  texts = {}
  for name, made, find, replace in EDITS:
    if name not in texts:
      texts[name] = (tree / name).read_text()
    texts[name] = edited(texts[name], name, made, find, replace)
  # Nothing is written before everything is known to fit.
  for folder in FOLDERS:
    copy_folder(checkout / folder, tree / folder)
  texts["src/os/swimstore.cmake"] = SWIMSTORE_LIST
  texts["src/kv/vtkv.cmake"] = VTKV_LIST
  return sorted(name for name, text in texts.items()
                if write_if_changed(tree / name, text.encode()))


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                   epilog=__doc__.split("\n\n")[1])
  parser.add_argument("tree", type=pathlib.Path, help="the Ceph source tree")
  parser.add_argument("--only", metavar="NAME", help="edit one file of the tree, into --output")
  parser.add_argument("--output", type=pathlib.Path, metavar="FILE",
                      help="where that one goes; the tree stays as it is")
  args = parser.parse_args()
  if (args.only is None) != (args.output is None):
    parser.error("--only and --output go together")
  try:
    if args.only:
      write_if_changed(args.output, graft_one(args.tree, args.only).encode())
      return
    changed = graft(args.tree)
  except (GraftError, OSError) as error:
    sys.exit(f"graft: error: {error}")
  for name in changed:
    print(f"changed {name}")
  print(f"SwimStore and vtkv are in {args.tree}/src/os")


if __name__ == "__main__":
  main()
