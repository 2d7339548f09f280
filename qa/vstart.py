#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Start, stop or look at a Ceph cluster on this machine.

  qa/vstart.py start --store swimstore --osds 3
  qa/vstart.py status
  qa/vstart.py stop

The daemons come from the sysroot (qa/enter.sh), ceph-osd for swimstore from build/bin; with SWIM_RELEASE=tentacle
in the environment those of Ceph 20.2, from build-tentacle/bin. Every OSD has a loop device of
its own; everything lives in one directory. `start` on a stopped cluster takes it up again with its data, unless
--new is given.
"""

import argparse
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "bench"))

import ending  # noqa: E402
import images  # noqa: E402
import sysroot  # noqa: E402
from cluster import Cluster  # noqa: E402
from cluster_spec import BACKING, Spec  # noqa: E402
from loop_disk import FILE_SYSTEMS  # noqa: E402
from units import parse_size  # noqa: E402


def parse_args(argv):
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  commands = parser.add_subparsers(dest="command", required=True)
  shared = argparse.ArgumentParser(add_help=False)
  shared.add_argument("--name", default="default", help="which cluster, where several are kept (default: %(default)s)")
  shared.add_argument("--dir", help="its directory (default: vstart/NAME below SWIM_CACHE)")
  start = commands.add_parser("start", parents=[shared], help="make and start a cluster, or start a stopped one")
  start.add_argument("--store", help=f"one of {', '.join(BACKING)} (default: swimstore)")
  start.add_argument("--osds", type=int, help="number of OSDs (default: 1)")
  start.add_argument("--size", help="size of each OSD's device, such as 8G (the default)")
  start.add_argument("--fs", help=f"file system below the store: {' or '.join(FILE_SYSTEMS)} (default: ext4)")
  start.add_argument("--conf", action="append", default=[], metavar="K=V", help="an option for the [osd] section")
  start.add_argument("--osd-memory-target", default="2G", help="the same for every store (default: %(default)s)")
  start.add_argument("--ceph-osd", default="", help="the ceph-osd to run instead of the usual one")
  start.add_argument("--new", action="store_true", help="delete what the directory holds and begin empty")
  stop = commands.add_parser("stop", parents=[shared], help="end the daemons, unmount, detach")
  stop.add_argument("--remove", action="store_true", help="delete the data as well")
  commands.add_parser("status", parents=[shared], help="what runs, and what Ceph says of it")
  return parser.parse_args(argv)


def spec_of(args):
  conf = {}
  for entry in args.conf:
    key, equals, value = entry.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z0-9_ -]+", key) or "\n" in value:
      raise sysroot.UserError(f"--conf {entry}: write it as option=value")
    conf[key.strip()] = value.strip()
  return Spec(store=args.store or "swimstore", osds=1 if args.osds is None else args.osds,
              size_bytes=parse_size(args.size or "8G", "--size"), fs=args.fs or "ext4", conf=conf,
              osd_memory_target=parse_size(args.osd_memory_target, "--osd-memory-target"), ceph_osd=args.ceph_osd)


def start(cluster, args):
  if cluster.running():
    raise sysroot.UserError(f"{cluster.dir}: a {cluster.spec.store} cluster runs here; stop it first")
  try:
    make_or_resume(cluster, args)
  except KeyboardInterrupt:
    ending.end_processes()
    if cluster.can_resume():
      cluster.stop()
    else:
      cluster.remove()
    raise
  print(f"{cluster.spec.store}: {cluster.spec.osds} OSD(s) active in {cluster.dir}")
  for osd in range(cluster.spec.osds):
    print(f"  osd.{osd}  {cluster.disk(osd).device() or 'in memory'}  {cluster.osd_dir(osd)}")
  print("run a command against it:")
  for command in ("ceph status", "rados lspools"):
    program, rest = command.split()
    print(f"  qa/enter.sh {program} -c {cluster.dir}/ceph.conf {rest}")


def make_or_resume(cluster, args):
  asked = args.store or args.osds or args.size or args.fs or args.conf or args.ceph_osd
  if cluster.can_resume() and not args.new:
    if asked and spec_of(args) != cluster.spec:
      raise sysroot.UserError(f"{cluster.dir}: holds a stopped {cluster.spec.store} cluster of {cluster.spec.osds} "
                              "OSD(s) made with other options; add --new to delete it, or choose another --name")
    check_host(cluster.spec, 0)
    sysroot.prepare(cluster.spec.root())
    cluster.resume()
  else:
    spec = spec_of(args)
    spec.check()
    check_host(spec, images.missing_bytes(cluster.wanted_images(spec)))
    sysroot.prepare(spec.root())
    cluster.create(spec)


def check_host(spec, image_bytes):
  sysroot.check_host("--loop", "--setup", "filestore" if spec.root() else sysroot.release().set_up, "--images", image_bytes)


def status(cluster):
  if not cluster.state:
    raise sysroot.UserError(f"{cluster.dir}: holds no cluster; start one first")
  running = cluster.running()
  wanted = 2 + cluster.spec.osds
  print(f"{cluster.spec.store} in {cluster.dir}: {len(running)} of {wanted} daemons run: {' '.join(running) or '-'}")
  if "mon.a" in running:
    print(cluster.ceph("--connect-timeout", "10", "status"), end="")
  return 0 if len(running) == wanted else 1


def main(argv):
  args = parse_args(argv)
  ending.arm()
  try:
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", args.name):
      raise sysroot.UserError(f"--name {args.name}: use letters, digits, dot, dash and underscore")
    cluster = Cluster(args.dir or sysroot.cache_dir() / "vstart" / args.name)
    if args.command == "start":
      start(cluster, args)
    elif args.command == "status":
      return status(cluster)
    elif not cluster.state:
      print(f"{cluster.dir}: holds no cluster; nothing to stop")
    elif args.remove:
      cluster.remove()
    else:
      cluster.stop()
  except (sysroot.UserError, sysroot.CommandFailed, OSError) as error:
    print(f"vstart: {error}", file=sys.stderr)
    return 1
  except KeyboardInterrupt:
    print("vstart: interrupted", file=sys.stderr)
    return 130
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
