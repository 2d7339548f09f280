/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The move of a collection from one cube to another, for a transaction that ends it there (doc/cubes.md, Moving a
 * collection; src/os/swimstore/move).
 *
 * Each cube commits and recovers by itself: a crash leaves a prefix of what was submitted to it, and all that is
 * durable. That a log keeps this promise is one_log.pml's.
 *
 * Each rule holds unless NO_<RULE> is defined; run.py lists them and says what must happen.
 */
#ifndef CRASHES
#define CRASHES 2
#endif
#define STEPS 12 /* of a cube, in all */

#define CHECK(condition, text) if :: (condition) :: else -> printf(text); assert(false) fi

mtype = { none, mark, copies, record, unmark_record, leave, leave_unmarked, swept, ended };

#define OLD 0
#define NEW 1

mtype log_of[2 * STEPS];
#define STEP(cube, n) log_of[(cube) * STEPS + (n)]
byte submitted[2], durable[2];

/* What a cube's steps make of it. */
bit has_record[2], has_objects[2], is_marked[2];
bit was_ended; /* the transaction that asked for the move has committed */
bit promised;  /* and was acknowledged */
byte crashes, cube, n, keep;

inline apply(where, step) {
  if
  :: step == mark -> is_marked[where] = true
  :: step == copies -> has_objects[where] = true
  :: step == record -> has_record[where] = true
  :: step == unmark_record -> has_record[where] = true; is_marked[where] = false
  :: step == leave -> has_record[where] = false; is_marked[where] = true
  :: step == leave_unmarked -> has_record[where] = false
  :: step == swept -> has_objects[where] = false; is_marked[where] = false
  :: step == ended -> has_record[where] = false; has_objects[where] = false; was_ended = true
  :: else
  fi
}

inline submit(where, step) {
  d_step {
    STEP(where, submitted[where]) = step;
    submitted[where]++;
    apply(where, step);
    printf("cube %d: %e\n", where, step)
  }
}

inline wait_for(where) { d_step { durable[where] = submitted[where]; printf("cube %d: durable\n", where) } }

/* A crash may come here; it keeps of each cube what is durable and some more. */
#define OR_CRASH(next) if :: next :: crashes < CRASHES -> goto crash fi

active proctype store() {
  atomic { submit(OLD, copies); submit(OLD, record); wait_for(OLD) }

move:
  if
  :: has_record[OLD] && !has_record[NEW] ->
#ifndef NO_NEW_COPY_MARKED
    OR_CRASH(submit(NEW, mark));
#endif
#ifdef NO_RECORD_AFTER_COPIES
    OR_CRASH(submit(NEW, unmark_record));
    OR_CRASH(submit(NEW, copies))
#else
    OR_CRASH(submit(NEW, copies));
    OR_CRASH(submit(NEW, unmark_record))
#endif
  :: else
  fi;
  if
  :: has_record[OLD] && has_record[NEW] ->
#ifndef NO_NEW_RECORD_DURABLE_FIRST
    OR_CRASH(wait_for(NEW));
#endif
#ifdef NO_OLD_COPY_MARKED
    OR_CRASH(submit(OLD, leave_unmarked));
#else
    OR_CRASH(submit(OLD, leave));
#endif
#ifndef NO_OLD_RECORD_GONE_FIRST
    OR_CRASH(wait_for(OLD))
#endif
  :: else
  fi;
  OR_CRASH(skip);
  if
  :: has_record[NEW] && !was_ended -> submit(NEW, ended)
  :: else
  fi;
  OR_CRASH(wait_for(NEW));
  promised = true;
  OR_CRASH(submit(OLD, swept));
  goto end;

crash:
  skip;
  d_step {
    crashes++;
    printf("power loss\n");
    has_record[OLD] = false; has_objects[OLD] = false; is_marked[OLD] = false;
    has_record[NEW] = false; has_objects[NEW] = false; is_marked[NEW] = false;
    was_ended = false
  }
  for (cube : OLD .. NEW) {
    keep = durable[cube];
    do
    :: keep < submitted[cube] -> keep++
    :: break
    od;
    skip;
    d_step {
      for (n : 0 .. STEPS - 1) {
        if
        :: n < keep -> apply(cube, STEP(cube, n))
        :: else -> STEP(cube, n) = none
        fi
      }
      submitted[cube] = keep;
      durable[cube] = keep
    }
  }
  skip;
  d_step {
    n = 0; cube = 0; keep = 0;
    CHECK(!promised || was_ended, "VIOLATION: the transaction was acknowledged, and did not happen\n");
    CHECK(!was_ended || !(has_record[OLD] || has_record[NEW]), "VIOLATION: a collection that was ended is there\n");
    CHECK(was_ended || has_record[OLD] || has_record[NEW], "VIOLATION: the collection is gone\n");
    CHECK(!has_record[NEW] || has_objects[NEW], "VIOLATION: the collection is there without its objects\n");
    CHECK(!has_objects[NEW] || has_record[NEW] || is_marked[NEW],
          "VIOLATION: objects in the new cube that nobody owns, and nobody removes\n");
    CHECK(!has_objects[OLD] || has_record[OLD] || is_marked[OLD],
          "VIOLATION: objects in the old cube that nobody owns, and nobody removes\n")
  }
  /* The mount removes what lies in unowned ranges, and goes on where there are two records. */
  if
  :: is_marked[NEW] && !has_record[NEW] -> submit(NEW, swept)
  :: else
  fi;
  if
  :: is_marked[OLD] && !has_record[OLD] -> submit(OLD, swept)
  :: else
  fi;
  if
  :: was_ended -> goto end
  :: else -> goto move
  fi;
end:
  skip
}
