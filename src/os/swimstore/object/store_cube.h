// SPDX-License-Identifier: LGPL-2.1-or-later
// One cube of a mounted store, with what is in memory of it. Slots of two cubes have the same addresses, and while a
// collection moves an object lies in two: so each cube has caches of its own.
//
// Thread-safe.
#pragma once

#include "swimstore/cube/cube.h"
#include "swimstore/object/data_cache.h"
#include "swimstore/object/onode_cache.h"

namespace swimstore {

struct StoreCube {
  StoreCube(unsigned number, Cube& cube, size_t onode_cache_bytes, size_t data_cache_bytes)
      : number(number), cube(cube), onodes(cube.database(), onode_cache_bytes), data(data_cache_bytes) {}

  vtkv::DB& database() { return cube.database(); }
  ContainerSet& containers() { return cube.containers(); }

  const unsigned number;
  Cube& cube;
  OnodeCache onodes;
  DataCache data;
  InFlightData in_flight;
};

}  // namespace swimstore
