#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of page_commands.py: which words of a page are commands."""

import pathlib
import unittest

import page_commands
from page_commands import Command

RST = """Make it
=======

Type, in ``/etc``::

    [osd]
    a = b

.. code-block:: sh

   first --one \\
     --two
   # nothing
   second   # why

   third

See ``ceph daemon osd.N
swimstore status`` and ``ceph`` and ``type``, then ``ceph osd df``.
"""

MD = """Text `qa/vstart.py start` and `src/os` and `ceph-osd` there.

```
 ceph-osd ── SwimStore
```

```sh
qa/run.sh --a      # comment
```

```console
$ tool a \\
  b
said
more
$ tool c
```

| command | what |
|---|---|
| `list DIR` | keys; `--from KEY` (included), `--reverse` |
| `put DIR KEY`, `remove DIR` | changes; prints `a` |

| option | value |
|---|---|
| `x` | `--y` |
"""


def of(name, text, kind):
  return [command for block in page_commands.blocks(name, text) if block.kind == kind
          for command in page_commands.commands(block)]


class PageCommands(unittest.TestCase):
  def test_a_block_is_taken_with_its_kind_and_without_its_indent(self):
    found = page_commands.blocks("a.rst", RST)
    self.assertEqual([block.kind for block in found], ["", "sh"])
    self.assertEqual(found[0].text, "[osd]\na = b\n")

  def test_lines_that_go_on_are_one_command_and_comments_none(self):
    self.assertEqual([command.text for command in of("a.rst", RST, "sh")], ["first --one \\\n  --two", "second", "third"])
    self.assertEqual(RST.splitlines()[of("a.rst", RST, "sh")[1].line - 1].split()[0], "second")
    self.assertEqual([command.text for command in of("a.md", MD, "sh")], ["qa/run.sh --a"])

  def test_a_list_goes_on_behind_its_operator(self):
    text = "```sh\na &&\nb ||\n  c\nd\n```\n"
    self.assertEqual([command.text for command in of("a.md", text, "sh")], ["a &&\nb ||\n  c", "d"])

  def test_a_here_document_is_refused(self):
    for begin in ("cat <<END", "cat <<-'END' >file", "cat << $END"):
      with self.assertRaisesRegex(ValueError, "line 2: a here-document"):
        of("a.md", f"```sh\n{begin}\na\nEND\n```\n", "sh")
    self.assertEqual(len(of("a.md", "```sh\ncat <<<END\n```\n", "sh")), 1)

  def test_what_is_printed_belongs_to_the_command_before_it(self):
    found = of("a.md", MD, "console")
    self.assertEqual([(command.text, command.printed) for command in found],
                     [("tool a \\\n  b", "said\nmore\n"), ("tool c", "")])

  def test_a_mention_needs_a_program_and_an_argument(self):
    self.assertEqual([command.text for command in page_commands.mentions("a.rst", RST)],
                     ["ceph daemon osd.N swimstore status", "ceph osd df"])
    self.assertEqual(page_commands.mentions("a.md", MD), [Command(1, "qa/vstart.py start")])

  def test_a_command_in_a_block_without_a_mark_is_found(self):
    self.assertEqual(page_commands.unmarked("a.md", MD), [])
    self.assertEqual(page_commands.unmarked("a.md", MD.replace("```sh", "```")), ["a.md:8: qa/run.sh --a      # comment"])
    self.assertEqual(page_commands.unmarked("a.rst", RST.replace("[osd]", "ceph status")), ["a.rst:6: ceph status"])

  def test_a_picture_beside_the_pages_is_none(self):
    checkout = pathlib.Path(__file__).resolve().parent.parent.parent
    self.assertTrue((checkout / "doc" / "rados_bench.png").exists())
    self.assertGreater(sum(len(page.read_text()) for page in page_commands.pages(checkout)), 0)

  def test_brackets_are_two_commands(self):
    self.assertEqual(page_commands.optional("a [--b] c"), ["a c", "a --b c"])
    self.assertEqual(page_commands.optional("a"), ["a"])

  def test_rows_of_commands_have_their_options(self):
    self.assertEqual(page_commands.table_rows(MD), [(21, ["list DIR"], ["--from KEY", "--reverse"]),
                                                    (22, ["put DIR KEY", "remove DIR"], [])])


if __name__ == "__main__":
  unittest.main()
