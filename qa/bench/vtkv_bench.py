#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run build/bin/vtkv_bench on a loop device of its own, with direct I/O over a file written beforehand.

The device's statistics are then the engines' alone. Everything but the options below goes to vtkv_bench, whose --help
lists engines and workloads:

  qa/run-vtkv-bench.sh --suite gate --json gate.json --plot gate.png
  qa/run-vtkv-bench.sh --quick
  qa/run-vtkv-bench.sh --engines vtkv,rocksdb --workloads fillrandom,readrandom --value-sizes 64,1024
"""

import argparse
import fcntl
import pathlib
import shutil
import subprocess
import sys

import ending
import images
import sysroot
from loop_disk import FILE_SYSTEMS, mounted
from sysroot import UserError, say
from units import check_targets, parse_size

QUICK_DEVICE = "2G"  # as the scenarios have


def parse_args(argv):
  parser = argparse.ArgumentParser(prog="run-vtkv-bench.sh", description=__doc__, allow_abbrev=False,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--quick", action="store_true", help="a minute's smoke test: --suite quick on a small device")
  parser.add_argument("--device-size", help=f"of the loop device (default: 6G; with --quick {QUICK_DEVICE})")
  parser.add_argument("--fs", default="ext4", choices=FILE_SYSTEMS, help="on it (default: %(default)s)")
  parser.add_argument("--json", metavar="FILE", help="write the results there")
  parser.add_argument("--plot", metavar="FILE", help="draw them there, as PNG")
  parser.add_argument("--program", help="the vtkv_bench to run (default: this checkout's, which is built first)")
  parser.add_argument("--name", help="of the device's folder below SWIM_CACHE: two names can run side by side (default: "
                      "vtkv-bench; with --quick vtkv-bench-quick)")
  args, rest = parser.parse_known_args(argv)
  if any(word == "--path" or word.startswith("--path=") for word in rest):
    raise UserError("--path: the loop device is the place; run build/bin/vtkv_bench itself for another")
  # Not the large device's: it would be written anew each time.
  args.name = args.name or ("vtkv-bench-quick" if args.quick else "vtkv-bench")
  args.device_bytes = parse_size(args.device_size or (QUICK_DEVICE if args.quick else "6G"), "--device-size")
  check_targets(("--json", args.json), ("--plot", args.plot))
  return args, (["--suite", "quick"] if args.quick else []) + rest


def program(args):
  """The program, built where it is ours."""
  image = sysroot.cache_dir() / args.name / "disk.img"
  release = sysroot.release()
  sysroot.check_host("--loop", "--setup", release.set_up, "--images", images.missing_bytes([(image, args.device_bytes)]),
                     *(() if args.program else ("--build", release.build)))
  sysroot.prepare()
  if args.program:
    return pathlib.Path(args.program).resolve()
  build = (f"cmake --preset {release.preset} >&2 && "
           f"cmake --build {release.build} --target vtkv_bench --parallel $(nproc) >&2")
  found = sysroot.built("vtkv_bench")
  done = subprocess.run(sysroot.command(["bash", "-c", build]), cwd=sysroot.CHECKOUT, stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
  if done.returncode != 0:
    raise UserError(f"vtkv_bench does not build:\n{done.stdout[-2000:]}")
  return found


def measure(args, rest, bench, folder):
  results = folder / "results.json"
  results.unlink(missing_ok=True)
  command = [bench, "--path", folder / "mnt" / "data", "--json", results, *rest]
  code = subprocess.run(sysroot.command(command), stdin=subprocess.DEVNULL).returncode
  if results.exists():
    if args.json:
      shutil.copyfile(results, args.json)
    if args.plot:
      picture = folder / "results.png"
      sysroot.run(["python3", sysroot.CHECKOUT / "qa/bench/plot_vtkv.py", results, picture])
      shutil.copyfile(picture, args.plot)
  return code


def run(args, rest):
  bench = program(args)
  folder = sysroot.cache_dir() / args.name
  folder.mkdir(parents=True, exist_ok=True)
  with open(folder / "lock", "w") as lock:
    try:
      fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      say(f"another run on {folder} is under way; waiting for its end (--name takes another device)")
      fcntl.flock(lock, fcntl.LOCK_EX)
    with mounted(folder, args.device_bytes, args.fs, say):
      (folder / "mnt" / "data").mkdir()
      return measure(args, rest, bench, folder)


def main(argv):
  ending.arm()
  try:
    return run(*parse_args(argv))
  except (UserError, sysroot.CommandFailed) as error:
    print(f"run-vtkv-bench.sh: error: {error}", file=sys.stderr)
    return 2
  except KeyboardInterrupt:
    ending.end_processes()
    print("run-vtkv-bench.sh: interrupted", file=sys.stderr)
    return 130


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
