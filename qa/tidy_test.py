#!/usr/bin/env python3
"""Tests of tidy.py: each rule finds its fault, and is silent without it."""

import json
import pathlib
import sys
import tempfile
import unittest

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
        self.write("src/os/vtkv/tree/run.h", "")
        self.write("src/os/vtkv/span/block.h", '#include "vtkv/tree/run.h"\n')
        self.assert_one(tidy.check_layers, "src/os/vtkv/span/block.h", "down only")

    def test_an_include_upwards_in_angle_brackets(self):
        self.write("src/os/swimstore/store/onode.h", "")
        self.write("src/os/swimstore/cube/cube.h", "#include <swimstore/store/onode.h>\n")
        self.assert_one(tidy.check_layers, "src/os/swimstore/cube/cube.h", "down only")

    def test_an_include_downwards(self):
        self.write("src/os/vtkv/span/block.h", "")
        self.write("src/os/vtkv/tree/run.h", '#include "vtkv/span/block.h"\n')
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

    def test_a_folder_without_a_rank(self):
        self.write("src/os/vtkv/misc/a.h", "")
        self.write("src/os/vtkv/db/b.h", '#include "vtkv/misc/a.h"\n')
        self.assert_one(tidy.check_layers, "src/os/vtkv/db/b.h", "no rank")


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
        self.assertEqual(self.check_line("::pread(fd, p, n, 0);", "src/os/vtkv/env/posix_env.cc"), [])

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


class Pages(TidyTest):
    def test_a_long_line(self):
        self.write("doc/a.md", "words " * 19 + "\n")
        self.assert_one(tidy.check_pages, "doc/a.md", "114 columns")

    def test_what_cannot_be_broken(self):
        row, command = "| " + "words " * 30 + "|", "`" + "a long command " * 10 + "`,"
        self.write("doc/a.md", f"{'words ' * 18}\n{row}\n{command}\n```\n{'words ' * 30}\n```\n")
        self.assert_none(tidy.check_pages)


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


if __name__ == "__main__":
    unittest.main()
