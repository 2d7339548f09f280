#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of graft.py on the files of a real Ceph tree (SWIM_CEPH_SOURCE)."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import graft  # noqa: E402

SOURCE = pathlib.Path(os.environ.get("SWIM_CEPH_SOURCE", "/nonexistent"))


class GraftTest(unittest.TestCase):
  def setUp(self):
    self.assertTrue(SOURCE.is_dir(), "set SWIM_CEPH_SOURCE to a Ceph tree")
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.tree = pathlib.Path(folder.name) / "ceph"
    for name in {edit[0] for edit in graft.EDITS}:
      (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
      shutil.copy(SOURCE / name, self.tree / name)
    self.checkout = pathlib.Path(folder.name) / "checkout"
    for name in ("src/os/swimstore/swimstore.h", "src/os/vtkv/ceph/vtkv_store.h"):
      (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
      (self.checkout / name).write_text("// " + name + "\n")

  def content(self):
    return {p: p.read_bytes() for p in self.tree.rglob("*") if p.is_file()}

  def test_every_edit_is_made(self):
    graft.graft(self.tree, self.checkout)
    for name, made, _, _ in graft.EDITS:
      with self.subTest(name=name, made=made):
        self.assertRegex((self.tree / name).read_text(), made)

  def test_a_second_run_changes_nothing(self):
    self.assertNotEqual(graft.graft(self.tree, self.checkout), [])
    first = self.content()
    self.assertEqual(graft.graft(self.tree, self.checkout), [])
    self.assertEqual(self.content(), first)

  def test_one_file_alone_leaves_the_tree_as_it_is(self):
    before = self.content()
    text = graft.graft_one(self.tree, "src/tools/ceph_kvstore_tool.cc")
    self.assertIn('type != "vtkv" &&', text)
    self.assertEqual(self.content(), before)
    with self.assertRaisesRegex(graft.GraftError, "nothing is to be edited"):
      graft.graft_one(self.tree, "src/os/Transaction.cc")

  def test_a_guard_is_never_put_into_another(self):
    text = graft.graft_one(self.tree, "src/tools/kvstore_tool.cc")
    depth = [0]
    for line in text.splitlines():
      if line.startswith("#if"):
        depth.append(depth[-1] + 1)
      elif line.startswith("#endif"):
        depth.append(depth[-1] - 1)
    self.assertEqual((max(depth), depth[-1]), (1, 0))

  def test_all_three_store_suites_get_the_parameter(self):
    graft.graft(self.tree, self.checkout)
    text = (self.tree / "src/test/objectstore/store_test.cc").read_text()
    self.assertEqual(text.count('    "memstore",\n    "swimstore",\n'), 3)

  def test_a_file_removed_here_goes_there_too(self):
    extra = self.checkout / "src/os/swimstore/old.cc"
    extra.write_text("")
    graft.graft(self.tree, self.checkout)
    self.assertTrue((self.tree / "src/os/swimstore/old.cc").exists())
    extra.unlink()
    graft.graft(self.tree, self.checkout)
    self.assertFalse((self.tree / "src/os/swimstore/old.cc").exists())

  def test_the_lists_find_the_sources_wherever_the_tree_lies(self):
    tree = self.tree.parent / "swimstore/ceph/testing/source"
    self.tree.parent.mkdir(exist_ok=True)
    shutil.copytree(self.tree, tree)
    product = {"src/os/swimstore/swimstore.cc", "src/os/vtkv/env/posix/posix_env.cc",
               "src/os/vtkv/program_version.cc"}
    others = {"src/os/swimstore/ceph/option_install.cc", "src/os/swimstore/ops/options.cc",
              "src/os/swimstore/testing/a.cc", "src/os/vtkv/tool/a.cc", "src/os/vtkv/mem/a_test.cc"}
    for name in product | others:
      (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
      (self.checkout / name).write_text("")
    graft.graft(tree, self.checkout)
    for name, variable in (("src/os/swimstore.cmake", "swimstore_srcs"), ("src/kv/vtkv.cmake", "vtkv_srcs")):
      text = (tree / name).read_text().replace(" CONFIGURE_DEPENDS", "")  # a script cannot have it
      script = tree / name.replace(".cmake", "_only.cmake")
      script.write_text(text[:text.index("target_sources(")] + f'message("${{{variable}}}")\n')
      said = subprocess.run(["cmake", "-P", script], check=True, capture_output=True, text=True).stderr
      product -= {path.removeprefix(f"{tree}/") for path in said.strip().split(";")}
      for other in others:
        self.assertNotIn(other, said)
    self.assertEqual(product, set())

  def test_a_tree_that_does_not_fit_is_left_alone(self):
    (self.tree / "src/common/subsys.h").write_text("// another file\n")
    before = self.content()
    with self.assertRaisesRegex(graft.GraftError, "subsys.h"):
      graft.graft(self.tree, self.checkout)
    self.assertEqual(self.content(), before)

  def test_a_folder_that_is_no_ceph_tree(self):
    with self.assertRaisesRegex(graft.GraftError, "no Ceph source tree"):
      graft.graft(self.checkout, self.checkout)


if __name__ == "__main__":
  unittest.main()
