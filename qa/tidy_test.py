#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of tidy.py: each rule finds its fault, and is silent without it."""

import json
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tidy  # noqa: E402


class TidyTest(unittest.TestCase):
  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.root = pathlib.Path(folder.name)

  def write(self, name, text):
    path = self.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

  def found(self, check):
    return [(name, message) for name, _, message in check(tidy.Tree(self.root))]

  def assert_one(self, check, name, words):
    found = self.found(check)
    self.assertEqual([f[0] for f in found], [name], found)
    self.assertIn(words, found[0][1])

  def assert_none(self, check):
    self.assertEqual(self.found(check), [])


class Sizes(TidyTest):
  def test_a_long_file(self):
    self.write("src/os/vtkv/a.cc", "\n" * (tidy.LINES_MAX + 1))
    self.assert_one(tidy.check_sizes, "src/os/vtkv/a.cc", "split it")

  def test_the_longest_allowed(self):
    self.write("src/os/vtkv/a.cc", "\n" * tidy.LINES_MAX)
    self.assert_none(tidy.check_sizes)

  def test_a_long_file_with_a_reason(self):
    self.write("a.py", "# tidy: long " "because it is a table\n" + "\n" * tidy.LINES_MAX)
    self.assert_none(tidy.check_sizes)


class Layers(TidyTest):
  def test_an_include_upwards(self):
    self.write("src/os/vtkv/table/run.h", "")
    self.write("src/os/vtkv/span/block.h", '#include "vtkv/table/run.h"\n')
    self.assert_one(tidy.check_layers, "src/os/vtkv/span/block.h", "down only")

  def test_an_include_upwards_in_angle_brackets(self):
    self.write("src/os/swimstore/object/onode.h", "")
    self.write("src/os/swimstore/cube/cube.h", "#include <swimstore/object/onode.h>\n")
    self.assert_one(tidy.check_layers, "src/os/swimstore/cube/cube.h", "down only")

  def test_an_include_between_equals(self):
    self.write("src/os/vtkv/zone/zone_map.h", "")
    self.write("src/os/vtkv/mem/arena.h", '#include "vtkv/zone/zone_map.h"\n')
    self.assert_one(tidy.check_layers, "src/os/vtkv/mem/arena.h", "not above zone")

  def test_an_include_beside(self):
    self.write("src/os/vtkv/mem/entry.h", "")
    self.write("src/os/vtkv/mem/arena.h", '#include "vtkv/mem/entry.h"\n')
    self.assert_none(tidy.check_layers)

  def test_an_include_downwards(self):
    self.write("src/os/vtkv/span/block.h", "")
    self.write("src/os/vtkv/table/run.h", '#include "vtkv/span/block.h"\n')
    self.assert_none(tidy.check_layers)

  def test_a_public_header_is_for_all(self):
    self.write("src/os/vtkv/status.h", "")
    self.write("src/os/vtkv/util/coding.h", '#include "vtkv/status.h"\n')
    self.assert_none(tidy.check_layers)

  def test_ceph_in_vtkv(self):
    self.write("src/os/vtkv/db/db_impl.cc", '#include "include/buffer.h"\n')
    self.assert_one(tidy.check_layers, "src/os/vtkv/db/db_impl.cc", "no Ceph header")

  def test_ceph_in_the_adapter(self):
    self.write("src/os/vtkv/ceph/vtkv_store.cc", '#include "kv/KeyValueDB.h"\n')
    self.assert_none(tidy.check_layers)

  def test_swimstore_in_vtkv(self):
    self.write("src/os/swimstore/swimstore.h", "")
    self.write("src/os/vtkv/db/db_impl.cc", '#include "swimstore/swimstore.h"\n')
    self.assert_one(tidy.check_layers, "src/os/vtkv/db/db_impl.cc", "nothing of SwimStore")

  def test_a_public_header_stands_alone(self):
    self.write("src/os/vtkv/mem/arena.h", "")
    self.write("src/os/vtkv/db.cc", '#include "vtkv/mem/arena.h"\n')
    self.assert_none(tidy.check_layers)
    self.write("src/os/vtkv/db.h", '#include "vtkv/mem/arena.h"\n')
    self.assert_one(tidy.check_layers, "src/os/vtkv/db.h", "public header")

  def test_the_engine_s_own_folders(self):
    self.write("src/os/vtkv/tree/tree.h", "")
    self.write("src/os/vtkv/util/coding.h", "")
    self.write("src/os/vtkv/ceph/vtkv_store.h", "")
    self.write("src/os/swimstore/tool/a.cc", '#include "vtkv/tree/tree.h"\n')
    self.write("src/os/swimstore/cube/a.cc", '#include "vtkv/util/coding.h"\n')
    self.write("src/os/swimstore/ceph/a.cc", '#include "vtkv/ceph/vtkv_store.h"\n')
    self.assert_none(tidy.check_layers)
    self.write("src/os/swimstore/cube/b.cc", '#include "vtkv/tree/tree.h"\n')
    self.write("src/os/swimstore/ops/b.cc", '#include "vtkv/ceph/vtkv_store.h"\n')
    self.assertEqual([name for name, _ in self.found(tidy.check_layers)],
                     ["src/os/swimstore/cube/b.cc", "src/os/swimstore/ops/b.cc"])

  def test_how_env_does_it(self):
    self.write("src/os/vtkv/env/posix/posix_env.h", "")
    include = '#include "vtkv/env/posix/posix_env.h"'
    for name in ("vtkv/env/a.cc", "vtkv/testing/a.cc", "vtkv/tool/a.cc"):
      self.write("src/os/" + name, include + "\n")
    self.write("src/os/vtkv/db/a.cc", include + "  // tidy: allow it for a reason\n")
    self.assert_none(tidy.check_layers)
    self.write("src/os/vtkv/db/a.cc", include + "\n")
    self.assert_one(tidy.check_layers, "src/os/vtkv/db/a.cc", "env.h")

  def test_a_folder_without_a_rank(self):
    self.write("src/os/vtkv/misc/a.h", "")
    self.write("src/os/vtkv/db/b.h", '#include "vtkv/misc/a.h"\n')
    self.assert_one(tidy.check_layers, "src/os/vtkv/db/b.h", "no rank")


class Folders(TidyTest):
  def setUp(self):
    super().setUp()
    patch = unittest.mock.patch.object(tidy, "FOLDERS_OF_MORE", {})
    patch.start()
    self.addCleanup(patch.stop)

  def test_a_reason_for_what_is_not_so(self):
    tidy.FOLDERS_OF_MORE["src/os/vtkv/mem"] = "one for each key"
    self.write("src/os/vtkv/mem/a.h", "")
    self.assert_one(tidy.check_folders, "src/os/vtkv/mem", "need not name it")
    for nth in range(tidy.FILES_MAX):
      self.write(f"src/os/vtkv/mem/a{nth}.h", "")
    self.assert_none(tidy.check_folders)

  def test_too_many_files(self):
    for nth in range(tidy.FILES_MAX):
      self.write(f"src/os/vtkv/mem/a{nth}.h", "")
      self.write(f"src/os/vtkv/mem/a{nth}_test.cc", "")
      self.write(f"src/os/vtkv/testing/a{nth}.h", "")
    self.assert_none(tidy.check_folders)
    self.write("src/os/vtkv/mem/one_more.cc", "")
    self.assert_one(tidy.check_folders, "src/os/vtkv/mem", "two rooms")


class Names(TidyTest):
  def test_two_meanings(self):
    self.write("src/os/vtkv/wal/pipeline.h", "class Pipeline final : public Base {\n};\n")
    self.write("src/os/swimstore/object/pipeline.h", "class Pipeline;\n  struct Pipeline {};\n")
    self.assert_none(tidy.check_names)
    self.write("src/os/swimstore/transaction/pipeline.h", "class Pipeline {\n};\n")
    # Whichever comes second.
    self.assert_one(tidy.check_names, "src/os/vtkv/wal/pipeline.h", "something else in src/os/swimstore")

  def test_every_form_of_a_definition(self):
    self.write("src/os/swimstore/ops/thing.h", "class Thing {\n};\n")
    for text in ('class CAPABILITY("mutex") Thing {', "class [[nodiscard]] Thing final {", "class Thing\n    : public Base {",
                 "enum Thing {", "enum class Thing : uint8_t {", "union Thing {", "struct alignas(64) Thing\n{"):
      with self.subTest(text=text):
        self.write("src/os/vtkv/wal/thing.h", text + "\n};\n")
        self.assert_one(tidy.check_names, "src/os/vtkv/wal/thing.h", "Thing is something else")
    self.write("src/os/vtkv/wal/thing.h", "struct Thing::Inner {\n};\nclass Thing;\nenum {\n};\n")
    self.assert_none(tidy.check_names)


class Doors(TidyTest):
  def check_line(self, line, name="src/os/vtkv/db/a.cc"):
    self.write(name, line + "\n")
    return self.found(tidy.check_doors)

  def test_each_kind(self):
    for line in ("int r = ::open(path, 0);", "fdatasync(fd);", "std::ofstream out(path);",
                 "io_uring_submit(&ring);", "auto t = std::chrono::steady_clock::now();",
                 "auto t = ceph_clock_now();", "std::random_device seed;", "int n = rand();",
                 "std::this_thread::sleep_for(1ms);", "usleep(5);"):
      with self.subTest(line=line):
        self.assertEqual(len(self.check_line(line)), 1)

  def test_methods_of_our_own_are_none(self):
    for line in ("m_file->fdatasync(done);", "env.open(path);", "reader.read(buffer);",
                 "m_db->write(batch);", "int operand(int n);", "file.fallocate(0, size);",
                 "auto start = ceph::mono_clock::now();"):
      with self.subTest(line=line):
        self.assertEqual(self.check_line(line), [])

  def test_env_is_the_door(self):
    self.assertEqual(self.check_line("::pread(fd, p, n, 0);", "src/os/vtkv/env/posix/posix_env.cc"), [])

  def test_a_comment_is_no_call(self):
    self.assertEqual(self.check_line("// one fdatasync(log) covers both"), [])

  def test_a_reason_allows_it(self):
    self.assertEqual(self.check_line("// tidy: allow statfs of a path\n::statfs(p, &s);"), [])


class Built(TidyTest):
  def check(self, built):
    commands = self.root / "compile_commands.json"
    commands.write_text(json.dumps(
        [{"directory": str(self.root), "file": name} for name in built]))
    return [(n, m) for n, _, m in tidy.check_built(tidy.Tree(self.root), commands)]

  def test_a_source_nobody_compiles(self):
    self.write("src/os/vtkv/a.cc", "")
    self.assertEqual(self.check([]), [("src/os/vtkv/a.cc", "no target builds it")])
    self.assertEqual(self.check(["src/os/vtkv/a.cc"]), [])

  def test_a_header_nobody_includes(self):
    self.write("src/os/vtkv/a.h", "")
    self.assertEqual(self.check([]), [("src/os/vtkv/a.h", "no source includes it")])
    self.write("src/os/vtkv/a.cc", '#include "vtkv/a.h"\n')
    self.assertEqual(self.check(["src/os/vtkv/a.cc"]), [])

  def test_a_header_that_a_model_includes(self):
    self.write("qa/model/traces.h", "")
    self.write("qa/model/trace.pml", "c_decl {\n\\#include \"traces.h\"\n}\n")
    self.assertEqual(self.check([]), [])


class Documents(TidyTest):
  def test_a_path_that_is_not_there(self):
    self.write("doc/README.md", "see `src/os/vtkv/{db,slice}.h`\n")
    self.write("src/os/vtkv/db.h", "")
    self.assert_one(tidy.check_documents, "doc/README.md", "src/os/vtkv/slice.h")

  def test_a_folder_and_a_pattern(self):
    self.write("doc/a.rst", "``src/os/vtkv/`` and ``src/os/vtkv/*.h``\n")
    self.write("src/os/vtkv/db.h", "")
    self.assert_none(tidy.check_documents)

  def test_a_short_path(self):
    self.write("src/os/vtkv/table/run.h", "")
    for path in ("table/run.h", "vtkv/table/run.h", "src/os/vtkv/table/run.h"):
      self.write("doc/a.md", f"see `{path}`\n")
      self.assert_none(tidy.check_documents)
    self.write("doc/a.md", "see `tree/runs.h`\n")
    self.assert_one(tidy.check_documents, "doc/a.md", "there is no tree/runs.h")


class Comments(TidyTest):
  def test_a_room_that_is_not_there(self):
    self.write("src/os/vtkv/gc/value_gc.h", "")
    self.write("src/os/vtkv/tree/tree.h", "// See gc/value_gc.h, vtkv/gc/value_gc.h and linux/magic.h.\n")
    self.assert_none(tidy.check_comments)
    self.write("src/os/vtkv/tree/tree.h", "// REQUIRES: nobody follows it (vlog/value_gc.h).\n")
    self.assert_one(tidy.check_comments, "src/os/vtkv/tree/tree.h", "there is no vlog/value_gc.h")


class Links(TidyTest):
  def check_link(self, link):
    self.write("README.md", "# Home\n")
    self.write("src/os/a.cc", "")
    self.write("doc/b.md", "# B\n\n```\n# no heading\n```\n\n## A `word`: e, f\n\n## Twice\n\n## Twice\n")
    self.write("doc/a.md", f"# A\n\nsee [it]({link})\n\n```\na[0](no.link)\n```\n")
    return [message for name, message in self.found(tidy.check_links) if name == "doc/a.md"]

  def test_what_is_there(self):
    for link in ("b.md", "../README.md", "b.md#a-word-e-f", "#a", "https://example.org/x.md#y", "<b.md>",
                 "<b.md#twice>", "b.md#twice-1", "../src/os", "../src/os/"):
      with self.subTest(link=link):
        self.assertEqual(self.check_link(link), [])

  def test_what_is_not_there(self):
    for link, message in (("c.md", "doc/c.md, which is not there"), ("b.md#word", "doc/b.md has no heading #word"),
                          ("b.md#no-heading", "no heading"), ("b.md#twice-2", "no heading"), ("<c.md>", "not there"),
                          ("../src/o", "not there"), ("#b", "doc/a.md has no heading #b")):
      with self.subTest(link=link):
        self.assertIn(message, self.check_link(link)[0])


class Walks(TidyTest):
  def check_row(self, row):
    self.write("src/os/vtkv/table/run.cc",
               "Run::Run(int n)\n    : m_n(n) {}\nRun::~Run() {}\nStatus Run::declared();\nstatic int here(Key a,\n"
               "                Key b) {\n}\nint Run::Inner::get(Key key) const {\n}\n"
               "Status Run::get(Key key) { return seek(key); }  // Run::put(Key)\n")
    self.write("doc/walk.md", f"| | file | function | what happens |\n|---|---|---|---|\n| 1 | {row} |\n")
    return self.found(tidy.check_walks)

  def test_what_is_there(self):
    for function in ("Run::get", "here()", "Run::Inner::get", "Run::~Run", "Run::Run"):
      self.assertEqual(self.check_row(f"`table/run.cc` | `{function}` | `Run::get` and `table/run.h` are words"), [])

  def test_a_declaration_in_a_header(self):
    self.write("src/os/vtkv/table/run.h", "class Run final : public Base {\n  Status get(Key key) override;\n};\n")
    self.assertEqual(self.check_row("`table/run.h` | `Run::get` | it reads"), [])
    for function in ("Run::put", "Base::get"):
      self.assertEqual(len(self.check_row(f"`table/run.h` | `{function}` | it reads")), 1)

  def test_a_function_that_is_not_there(self):
    for function in ("Run::put", "Tree::get", "Run::Status", "put()", "Run::seek", "seek()", "Run::declared"):
      with self.subTest(function=function):
        found = self.check_row(f"`table/run.cc` | `{function}` | it reads")
        self.assertEqual(found, [("doc/walk.md", f"src/os/vtkv/table/run.cc has no {function}")])

  def test_a_function_in_the_words_beside_it(self):
    self.assertEqual(len(self.check_row("`table/run.cc` | `Run::get` | then `Run::put`")), 1)

  def test_a_step_without_a_file_or_function(self):
    for row in ("run.cc | `Run::get` | it reads", "`table/run.cc` | get | it reads"):
      self.assertEqual(len(self.check_row(row)), 1)

  def test_other_tables_name_what_they_like(self):
    self.write("doc/a.md", "| folder | what |\n|---|---|\n| `table/run.cc` | `Run::get` |\n")
    self.assert_none(tidy.check_walks)


class Formats(TidyTest):
  """One structure that has all it needs; each test takes something away."""

  PAGE = ("# Bytes\n\n## Thing\n\n| OFFSET | TYPE | FIELD | MEANING |\n|---|---|---|---|\n| 0 | u8 | a | |\n\n"
          "```hex thing\n01  a\n```\n")
  HEADER = ('// A thing: doc/on_disk_format.md, "Thing".\nstruct thing_t {\n  uint8_t a;\n};\n'
            "static_assert(sizeof(thing_t) == 1);\n")
  TEST = 'TEST(Thing, ThingIsAsOnThePage) {\n  FormatCheck<Thing> check("Thing", encode, decode);\n}\n'

  def setUp(self):
    super().setUp()
    self.write("doc/on_disk_format.md", self.PAGE)
    self.write("src/os/vtkv/wal/thing.h", self.HEADER)
    self.write("src/os/vtkv/wal/thing_test.cc", self.TEST)

  def test_what_has_all(self):
    self.assert_none(tidy.check_formats)

  def test_a_structure_that_is_not_on_the_page(self):
    for text in ("struct thing_t {\n};\nstatic_assert(sizeof(thing_t) == 1);\n",
                 "struct Thing {\n  std::string encode() const;\n};\n",
                 "std::string thing_key(int number);\n",
                 "constexpr char kMagic[8] = {'T'};\n"):
      self.write("src/os/vtkv/wal/thing.h", text)
      self.assert_one(tidy.check_formats, "src/os/vtkv/wal/thing.h", "1 durable structures, and 0 sections")

  def test_a_second_structure_in_a_file(self):
    self.write("src/os/vtkv/wal/thing.h", self.HEADER + "void encode_other(std::string* out);\n")
    self.assert_one(tidy.check_formats, "src/os/vtkv/wal/thing.h", "2 durable structures, and 1 sections")

  def test_a_magic_in_a_source(self):
    self.write("src/os/vtkv/wal/thing.cc", "constexpr char kMagic[8] = {'T'};\n")
    self.assert_none(tidy.check_formats)  # its header names the section
    self.write("src/os/vtkv/wal/other.cc", "constexpr char kMagic[8] = {'T'};\n")
    self.assert_one(tidy.check_formats, "src/os/vtkv/wal/other.cc", "name each in a comment")

  def test_a_section_that_is_not_there(self):
    self.write("src/os/vtkv/wal/thing.h", self.HEADER.replace('"Thing"', '"Thing", "Another\n// thing"'))
    self.assert_one(tidy.check_formats, "src/os/vtkv/wal/thing.h", 'no section "Another thing"')

  def test_a_section_without_a_test(self):
    for test in (self.TEST.replace("IsAsOnThePage", "IsFine"), self.TEST.replace('"Thing"', '"Other"')):
      self.write("src/os/vtkv/wal/thing_test.cc", test)
      self.assert_one(tidy.check_formats, "doc/on_disk_format.md", "'Thing' against the code")

  def test_a_section_without_an_example(self):
    self.write("doc/on_disk_format.md", self.PAGE.replace("```hex thing", "```text"))
    self.assert_one(tidy.check_formats, "doc/on_disk_format.md", "lacks an example")

  def test_a_name_twice(self):
    self.write("doc/on_disk_format.md", self.PAGE + "```hex thing\n02  a\n```\n")
    self.assert_one(tidy.check_formats, "doc/on_disk_format.md", "a second example 'thing'")
    self.write("doc/on_disk_format.md", self.PAGE + "## Thing\n")
    self.assert_one(tidy.check_formats, "doc/on_disk_format.md", "a second heading 'Thing'")


class Pages(TidyTest):
  def test_a_long_line(self):
    self.write("doc/a.md", "words " * 19 + "\n")
    self.assert_one(tidy.check_pages, "doc/a.md", "114 columns")

  def test_what_cannot_be_broken(self):
    row, command = "| " + "words " * 30 + "|", "`" + "a long command " * 10 + "`,"
    self.write("doc/a.md", f"{'words ' * 18}\n{row}\n{command}\n```\n{'words ' * 30}\n```\n")
    self.assert_none(tidy.check_pages)


class Licence(TidyTest):
  def test_a_source_without_its_line(self):
    self.write("a.cc", "// What it is for.\n")
    self.assert_one(tidy.check_licence, "a.cc", "no line")

  def test_a_script_without_its_line(self):
    self.write(".ci/run", "#!/bin/sh\ntrue\n# " + tidy.LICENCE + "\n")
    self.assert_one(tidy.check_licence, ".ci/run", "no line")

  def test_another_licence(self):
    self.write("CMakeLists.txt", "# SPDX-License-Identifier: MIT\n")
    self.assert_one(tidy.check_licence, "CMakeLists.txt", "no line")

  def test_each_comment(self):
    self.write("a.h", f"// {tidy.LICENCE}\n#pragma once\n")
    self.write("a.py", f"#!/usr/bin/env python3\n# {tidy.LICENCE}\n")
    self.write("a.pml", f"/* {tidy.LICENCE} */\n")
    self.write("doc/a.md", "# A page\n")
    self.assert_none(tidy.check_licence)


class Whitespace(TidyTest):
  def test_blanks_at_an_end(self):
    self.write("a.sh", "true \nfalse\n")
    self.assert_one(tidy.check_whitespace, "a.sh", "end of the line")

  def test_no_newline_at_the_end(self):
    self.write("a.sh", "true")
    self.assert_one(tidy.check_whitespace, "a.sh", "end of the file")

  def test_bytes_of_a_format(self):
    self.write("qa/fuzz/corpus/key/seed_0", "k \n ")
    self.assert_none(tidy.check_whitespace)


class Notes(TidyTest):
  def test_a_note_for_later(self):
    self.write("a.cc", "// TO" "DO: later\n")
    self.assert_one(tidy.check_notes, "a.cc", "for later")

  def test_a_machine_path(self):
    self.write("a.sh", "cd /ho" "me/me/swimstore\n")
    self.assert_one(tidy.check_notes, "a.sh", "one machine")

  def test_a_mirror(self):
    self.write("a.sh", "deb http://mirror.example/" "debian trixie main\n")
    self.assert_one(tidy.check_notes, "a.sh", "mirror")

  def test_the_folder_of_that_name_below_another(self):
    self.write("a.sh", "cd $SWIM_CACHE/wo" "rk/a\n")
    self.assert_none(tidy.check_notes)


class Words(TidyTest):
  def test_an_old_word(self):
    self.write("src/os/vtkv/a.h", "class Reducer;\n")
    self.assert_one(tidy.check_words, "src/os/vtkv/a.h", "say compaction iterator")

  def test_in_a_sentence_and_in_a_file_name(self):
    self.write("doc/a.md", "one\nwhat is put again, mended or set aside\n")
    self.write("qa/ledger.py", "")
    self.assertEqual([(n, line) for n, line, _ in sorted(tidy.check_words(tidy.Tree(self.root)))],
                     [("doc/a.md", 2)] * 3 + [("qa/ledger.py", 1)])

  def test_across_the_end_of_a_line(self):
    self.write("src/os/vtkv/a.h", "// An entry, or a range\n// removal of many.\n")
    self.assert_one(tidy.check_words, "src/os/vtkv/a.h", "'range // removal': say range tombstone")
    self.write("src/os/vtkv/a.h", "")
    self.write("doc/a.md", "After flushes\nand merges of runs, an extent\nchunk.\n")
    self.assertEqual([message for _, message in self.found(tidy.check_words)],
                     ["'extent chunk': say extent shard", "'flushes and merges': say compaction"])

  def test_bytes_of_a_format(self):
    self.write("qa/fuzz/corpus/key/seed_0", "condemn the reducer\n")
    self.assert_none(tidy.check_words)

  def test_a_boundary_of_another_kind(self):
    self.write("src/os/vtkv/a.h", "uint64_t page_boundary;\n")
    self.assert_none(tidy.check_words)
    self.write("src/os/vtkv/a.h", "uint64_t next_boundary;\n")
    self.assert_one(tidy.check_words, "src/os/vtkv/a.h", "flush point")

  def test_every_pattern_is_in_lower_case(self):
    for word in tidy.OLD_WORDS:
      self.assertEqual(word, word.lower())

  def test_what_only_looks_like_one(self):
    self.write("src/os/vtkv/a.h", "bool operator<(const Opera&);  // amends, recommended, erased, stretched\n")
    self.assert_none(tidy.check_words)

  def test_the_refusal_of_an_old_name(self):
    self.write("src/os/vtkv/a.cc", '{"swim_brake", "swim_throttle"},  // tidy: allow an old name\n')
    self.assert_none(tidy.check_words)


class Programs(TidyTest):
  def test_dashes_and_underscores(self):
    self.write("qa/run-a-test.sh", "")
    self.write("qa/build-deb.sh", "")
    self.write("qa/standalone/full-disk.py", "import scenario\n")
    self.write("qa/standalone/rbd_load.py", "import rados\n")
    self.write("qa/setup/check_host.sh", "")
    self.assert_none(tidy.check_programs)

  def test_a_command_with_underscores(self):
    self.write("qa/run_a_test.sh", "")
    self.assert_one(tidy.check_programs, "qa/run_a_test.sh", "dashes")

  def test_a_scenario_with_underscores(self):
    self.write("qa/standalone/full_disk.py", "import scenario\n")
    self.assert_one(tidy.check_programs, "qa/standalone/full_disk.py", "dashes")

  def test_a_helper_with_dashes(self):
    self.write("qa/bench/drop-caches.py", "")
    self.assert_one(tidy.check_programs, "qa/bench/drop-caches.py", "underscores")


if __name__ == "__main__":
  unittest.main()
