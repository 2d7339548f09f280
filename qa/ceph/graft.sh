#!/bin/sh
# usage: graft.sh TREE
#
# Puts SwimStore and vtkv into a full Ceph tree, as an ordinary back end of it.
# Doing it again brings the tree up to date; see graft.py for what it changes.
exec python3 "$(dirname "$0")/graft.py" "$@"
