/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cubes that share the flushes of their device (src/os/vtkv/env/shared_flush.h).
 *
 * A cube writes, asks for a flush when the write has completed, and acknowledges when it was served. What has completed
 * lies in a volatile cache until a flush that began later has ended. A failed flush may drop the cache, and tells one.
 *
 * Each rule holds unless NO_<RULE> is defined; run.py lists them and says what must happen.
 */
#ifndef CUBES
#define CUBES 3
#endif
#ifndef WRITES
#define WRITES 2 /* of each cube */
#endif

#define CHECK(condition, text) if :: (condition) :: else -> printf(text); assert(false) fi

mtype = { idle, writing, waiting, served };
mtype state[CUBES];
byte completed[CUBES]; /* the newest write that the cube knows to be in the cache, or durable */
byte covered[CUBES];   /* by the flush under way */
byte dropped[CUBES];   /* up to this write a failed flush has lost what was not durable */
byte durable[CUBES];
byte acknowledged[CUBES];
bit flying, failed;
byte c, asked;

active proctype cubes() {
  for (c : 0 .. CUBES - 1) { state[c] = idle }
  c = 0;
  do
  :: c < CUBES - 1 -> c++ /* another one's turn */
  :: c > 0 -> c = 0
  :: state[c] == idle && completed[c] < WRITES && !failed ->
    state[c] = writing;
    printf("cube %d writes %d\n", c, completed[c] + 1)
  :: state[c] == writing -> d_step {
      completed[c]++;
      state[c] = waiting;
      printf("cube %d has written %d, and waits for a flush\n", c, completed[c])
    }
#ifdef NO_FLUSH_BEGINS_LATER
  :: state[c] == waiting && flying -> state[c] = served; printf("cube %d waits for the flush under way\n", c)
#endif
  :: state[c] == waiting && !flying && !failed -> d_step {
      flying = true;
      printf("flush: begins\n");
      for (asked : 0 .. CUBES - 1) {
        covered[asked] = completed[asked];
        if
        :: state[asked] == waiting -> state[asked] = served
        :: else
        fi
      }
      asked = 0
    }
  :: flying -> d_step {
      flying = false;
      printf("flush: ends\n");
      for (asked : 0 .. CUBES - 1) {
        if
        :: covered[asked] > durable[asked] && dropped[asked] <= durable[asked] -> durable[asked] = covered[asked]
        :: else
        fi;
        if
        :: state[asked] == served ->
          state[asked] = idle;
          acknowledged[asked] = completed[asked];
          printf("cube %d acknowledges %d\n", asked, acknowledged[asked])
        :: else
        fi
      }
      asked = 0
    }
  :: flying -> d_step {
      flying = false;
      printf("flush: fails\n");
#ifndef NO_FAILURE_IS_FINAL
      failed = true;
#endif
      for (asked : 0 .. CUBES - 1) {
        dropped[asked] = completed[asked];
        if
        :: state[asked] == served -> state[asked] = waiting
        :: else
        fi
      }
      asked = 0
    }
  :: true -> break
  od;
  skip;
  d_step {
    printf("power loss\n");
    for (c : 0 .. CUBES - 1) {
      CHECK(durable[c] >= acknowledged[c], "VIOLATION: an acknowledged write is lost\n")
    }
  }
}
