/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The move of a collection while it is in use: clients change its objects between the batches of the copy
 * (doc/cubes.md, Moving a collection; src/os/swimstore/move/online_move.h). An object here stands for all of one hash,
 * which are copied together.
 *
 * No crashes: what each step leaves on disk is move.pml's.
 *
 * Each rule holds unless NO_<RULE> is defined; run.py lists them and says what must happen.
 */
#define OBJECTS 2
#ifndef WRITES
#define WRITES 4
#endif
#ifndef PASSES
#define PASSES 3
#endif

#define CHECK(condition, text) if :: (condition) :: else -> printf(text); assert(false) fi

/* The content of an object is the number of the write that it is of. */
byte in_old[OBJECTS], in_new[OBJECTS], written[OBJECTS];
bit noted[OBJECTS]; /* changed since the set was taken last */
bit is_noting, moved;
byte readers; /* of the collection's lock */
bit writer;

inline lock_shared() { atomic { !writer -> readers++ } }
inline unlock_shared() { readers-- }
inline lock() { atomic { !writer && readers == 0 -> writer = true } }
inline unlock() { writer = false }

inline write(object) {
  d_step {
    written[object]++;
    if
    :: moved -> in_new[object] = written[object]
    :: else -> in_old[object] = written[object]
    fi;
    printf("group: object %d is written\n", object)
  }
}

inline note(object) {
  d_step {
    if
    :: is_noting -> noted[object] = true
    :: else
    fi
  }
}

active proctype client() {
  byte writes, object;
  do
  :: writes < WRITES ->
    if
    :: object = 0
    :: object = 1
    fi;
    lock();
    write(object);
#ifdef NO_NOTED_WITH_THE_CHANGE
    unlock();
    note(object);
#else
#ifndef NO_CHANGES_NOTED
    note(object);
#endif
    unlock();
#endif
    writes++
  :: lock_shared();
    d_step {
      CHECK(moved || in_old[0] == written[0], "VIOLATION: a read before the move gets an older object\n");
      CHECK(!moved || (in_new[0] == written[0] && in_new[1] == written[1]),
            "VIOLATION: a read gets what was before the move, not what was written since\n")
    }
    unlock_shared()
  :: writes == WRITES && moved -> break
  od
}

byte content; /* read, and not yet written to the copy */

inline copy(one) {
  content = in_old[one];
  d_step { in_new[one] = content; content = 0; printf("cube NEW: object %d is copied\n", one) }
}

active proctype mover() {
  byte passes, i;
  bit taken[OBJECTS];

#ifndef NO_NOTED_FROM_THE_BEGINNING
  lock();
  is_noting = true;
  unlock();
#endif
  for (i : 0 .. OBJECTS - 1) {
    lock_shared();
    copy(i);
    unlock_shared() /* between two batches */
  }
  is_noting = true;
  do
  :: passes < PASSES -> /* one more */
    passes++;
    lock();
    d_step { for (i : 0 .. OBJECTS - 1) {
      taken[i] = noted[i];
#ifndef NO_TAKEN_BEFORE_COPIED
      noted[i] = false
#endif
    } }
    unlock();
    for (i : 0 .. OBJECTS - 1) {
      if
      :: taken[i] -> lock_shared(); copy(i); unlock_shared()
      :: else
      fi
    }
#ifdef NO_TAKEN_BEFORE_COPIED
    skip;
    d_step { for (i : 0 .. OBJECTS - 1) { noted[i] = noted[i] && !taken[i] } }
#endif
  :: passes < PASSES -> /* a last one that takes too long: what is not copied is noted again */
    passes++;
    lock();
    d_step { for (i : 0 .. OBJECTS - 1) { taken[i] = noted[i]; noted[i] = false } }
    if
    :: taken[0] -> copy(0)
    :: else
    fi;
#ifndef NO_REST_NOTED_AGAIN
    noted[1] = taken[1];
#endif
    unlock()
  :: break
  od;
  /* The last one. */
#ifndef NO_LAST_PASS_ALONE
  lock();
#endif
  for (i : 0 .. OBJECTS - 1) {
    if
    :: noted[i] -> noted[i] = false; copy(i)
    :: else
    fi
  }
#ifdef NO_LAST_PASS_ALONE
  lock();
#endif
  moved = true;
  printf("group: moved\n");
  unlock()
}
