# SPDX-License-Identifier: LGPL-2.1-or-later
# What is installed in the roots. Sourced, never run.

# Ceph as an operator has it, and its own test programs.
CEPH_PACKAGES=(ceph-mon ceph-mgr ceph-osd ceph-common ceph-test
  ceph-mgr-modules-core librados-dev python3-rados python3-rbd rbd-nbd)

# Users' programs, and the daemons of theirs (qa/standalone/clients.py).
CLIENT_PACKAGES=(ceph-fuse ceph-mds fio radosgw s3cmd)

# What builds and tests this project.
TOOL_PACKAGES=(build-essential ca-certificates ccache cmake ninja-build pkgconf git
  gdb strace procps psmisc iproute2 util-linux file time
  xfsprogs e2fsprogs btrfs-progs fuse3 libfuse3-dev
  python3 python3-matplotlib
  liburing-dev libfmt-dev libgtest-dev libgmock-dev libbenchmark-dev libcli11-dev
  libisal-dev liblz4-dev libxxhash-dev libboost-dev spin
  librocksdb-dev rocksdb-tools libleveldb-dev liblmdb-dev
  dpkg-dev)

# What checks the source (qa/cmake/source_checks.cmake), and clangd for editors.
CHECKER_PACKAGES=(clang clang-format clang-tidy clangd flake8)

# What clang needs besides, for the fuzzers and for coverage.
CLANG_PACKAGES=(lld llvm libclang-rt-dev)

# FileStore is compared with its own, older release.
FILESTORE_PACKAGES=(ceph-mon ceph-mgr ceph-osd ceph-common ceph-mgr-modules-core
  python3-rados xfsprogs e2fsprogs btrfs-progs procps iproute2 util-linux)
