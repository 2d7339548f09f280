/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A placement group on two OSDs, of which the first may lose the cube that the group lies in (doc/cubes.md, What does a
 * fault concern; src/os/swimstore/isolation).
 *
 * Ceph's part is what PeeringState makes of it: a group may start where somebody who was in its last interval is up;
 * it starts from a copy that was started in the last epoch that anyone remembers, or it waits ("incomplete").
 *
 * Each rule holds unless NO_<RULE> is defined; run.py lists them and says what must happen.
 */
#ifndef EPOCHS
#define EPOCHS 4
#endif

#define CHECK(condition, text) if :: (condition) :: else -> printf(text); assert(false) fi

/* OSD 0 has cubes. */
bit up[2];
bit has_copy[2];
byte started[2];    /* the epoch that this copy was last started in; 0: never */
byte remembered[2]; /* the last epoch, of any copy, that it knows of */
byte version[2];    /* of its objects */
bit in_last[2];     /* it was in the last interval in which writes were possible */
byte witness;       /* durable in cube 0 */
byte acknowledged, epoch, needed, best, osd;
#define NOBODY 2

inline start(one) {
  if
  :: up[one] ->
    has_copy[one] = true;
    version[one] = version[best];
    started[one] = epoch;
    remembered[one] = epoch;
    in_last[one] = true
  :: else -> in_last[one] = false
  fi
}

active proctype group() {
  d_step {
    epoch = 1;
    up[0] = true; up[1] = true;
    has_copy[0] = true; has_copy[1] = true;
    started[0] = 1; started[1] = 1;
    remembered[0] = 1; remembered[1] = 1;
    in_last[0] = true; in_last[1] = true;
    witness = 1
  }
  do
  :: epoch == EPOCHS -> break
  :: epoch < EPOCHS ->
    /* Another interval: any of them is up. */
    if
    :: up[0] = true; up[1] = true; printf("both OSDs are up\n")
    :: up[0] = true; up[1] = false; printf("OSD 0 is up alone\n")
    :: up[0] = false; up[1] = true; printf("OSD 1 is up alone\n")
    fi;
    epoch++;
    /* While it was down, or as it ends, the first may lose the cube. */
    if
    :: has_copy[0] ->
      if
      :: true
      :: d_step {
          has_copy[0] = false;
          version[0] = 0;
          started[0] = 0;
#ifdef NO_GROUP_REMADE
          remembered[0] = 0;
#else
          remembered[0] = witness;
#endif
          printf("OSD 0 loses the cube; its group remembers epoch %d\n", remembered[0])
        }
      fi
    :: else
    fi;
    if
    :: (up[0] && in_last[0]) || (up[1] && in_last[1]) ->
      d_step {
        needed = 0;
        best = NOBODY;
        for (osd : 0 .. 1) {
          if
          :: up[osd] && remembered[osd] > needed -> needed = remembered[osd]
          :: else
          fi
        }
        for (osd : 0 .. 1) {
          if
          :: up[osd] && has_copy[osd] && started[osd] >= needed &&
             (best == NOBODY || version[osd] > version[best]) -> best = osd
          :: else
          fi
        }
        osd = 0
      }
      if
      :: best == NOBODY -> printf("group waits: no copy is new enough\n")
      :: else ->
        CHECK(version[best] >= acknowledged, "VIOLATION: the group starts from a copy without an acknowledged write\n");
        /* The first writes its witness, and what it witnesses when that is durable. */
        if
        :: !up[0] -> skip
        :: up[0] -> witness = epoch
#ifdef NO_WITNESS_AWAITED
        :: up[0] -> skip /* a crash takes it */
#endif
        fi;
        if
        :: up[0] && !up[1] && witness == epoch -> /* a crash in between: nothing was started */
          printf("power loss between witness and group\n")
        :: true ->
          d_step {
            start(0);
            start(1);
            printf("group starts in epoch %d, from version %d\n", epoch, version[best])
          }
          d_step {
            acknowledged++;
            for (osd : 0 .. 1) {
              if
              :: up[osd] -> version[osd] = acknowledged
              :: else
              fi
            }
            osd = 0;
            printf("group acknowledges version %d\n", acknowledged)
          }
        fi
      fi
    :: else -> printf("group waits: nobody is up who was in the last interval\n")
    fi
  od
}
