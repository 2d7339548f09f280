#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""usage: count_tests.py RESULTS.xml

Prints "PASSED FAILED" from ctest's JUnit file. A test that did not run has not
passed: it counts as failed, and is named on standard error.
"""

import sys
import xml.etree.ElementTree


def count(root):
  passed, failed, silent = 0, 0, []
  for case in root.iter("testcase"):
    status = case.get("status")
    if status == "run":
      passed += 1
    else:
      failed += 1
      if status != "fail":
        silent.append(f"{case.get('name')} ({status})")
  return passed, failed, silent


def main():
  if len(sys.argv) != 2:
    sys.exit(__doc__.splitlines()[0])
  passed, failed, silent = count(xml.etree.ElementTree.parse(sys.argv[1]).getroot())
  for name in silent:
    print(f"did not run: {name}", file=sys.stderr)
  print(passed, failed)


if __name__ == "__main__":
  main()
