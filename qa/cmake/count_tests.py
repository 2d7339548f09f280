#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""usage: count_tests.py RESULTS.xml

Prints "PASSED FAILED" from ctest's JUnit file, then a line for each test that failed, and under the first of them the
end of what it said. A test that did not run has not passed: it counts as failed.
"""

import sys
import xml.etree.ElementTree

SHOWN_TESTS = 8
SHOWN_LINES = 15
LINE_LENGTH = 400


def count(root):
  """(passed, the test cases that failed)"""
  cases = list(root.iter("testcase"))
  failed = [case for case in cases if case.get("status") != "run"]
  return len(cases) - len(failed), failed


def describe(case, with_output):
  silent = "" if case.get("status") == "fail" else f": it did not run ({case.get('status')})"
  said = (case.findtext("system-out") or "").strip().splitlines() if with_output else []
  return [f"FAILED: {case.get('name')}{silent}", *(line[:LINE_LENGTH] for line in said[-SHOWN_LINES:])]


def main():
  if len(sys.argv) != 2:
    sys.exit(__doc__.splitlines()[0])
  passed, failed = count(xml.etree.ElementTree.parse(sys.argv[1]).getroot())
  print(passed, len(failed))
  for number, case in enumerate(failed):
    print("\n".join(describe(case, number < SHOWN_TESTS)))


if __name__ == "__main__":
  main()
