/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Does the model allow what the code did? one_log.pml, held to traces of the code (traces.h, check_traces.py).
 * D is durable_seq, W the watermark.
 *
 * The rules are the model's own text. What is here says which step the code did next and what it chose where the
 * model may choose; a trace is allowed when its end can be reached. Where the code does more than the model, that is
 * said here as well, and nothing else is:
 *
 *   data goes out before its record     so taking a slot is a step of its own. The record's identity is known then.
 *   any number of slots in a record     the model's sets of slots, which it uses for one slot taken and one freed
 *   D moves with every flush            as in the model: what is durable, not what the code has looked at by then.
 *                                       A record may say less, a checkpoint may lie lower, never more or higher.
 *   a segment is left with room in it   for one that is primed. Recovery does not ask why.
 *   spare segments are zeroed           nobody reads them: the model goes on with what they held.
 *   a torn write leaves neither header  or the old one over a new body: nothing valid either way.
 *
 * Bounds come from check_traces.py: SLOTS, SEGS, POS, TXNS (records of a trace), CRASHES, PIPE.
 */
#define TRACE
#define CUBES 1
#define EMPTIES 0   /* a record without data is a transaction that takes no slot */
#define TORN 128
#define SET int

c_decl {
\#include "traces.h"
};

short story, event;  /* which trace, and how far it is followed */
byte claimed;        /* the D that the next record names */
bit broken;          /* the model's own oracle found a promise broken */

/* C macros stand for what needs an argument: Spin takes a call for a side effect. */
#define SEEN_RECORD (!broken && c_expr { IS_RECORD })
#define SEEN_CHECKPOINT (!broken && c_expr { IS_CHECKPOINT })
#define SEEN_FLUSH (!broken && c_expr { IS_FLUSH })
#define SEEN_RECOVERY_RECORD (!broken && c_expr { IS_RECOVERY_RECORD })
#define SEEN_POWER_LOSS (!broken && c_expr { IS_CRASH })
#define SEEN_DEATH false
#define FLUSHED_HERE c_expr { IS_FLUSHED }
#define NOT_FLUSHED_HERE c_expr { !IS_FLUSHED }
#define LEFT_HERE c_expr { IS_LEFT }
#define BOTH_GONE_HERE c_expr { IS_GONE }
#define SAID_DURABLE(d) claimed
#define LEFT_SEGMENT c_expr { LEAVES_SEGMENT }
#define EARLIER_CHECKPOINT(id) c_expr { IS_BEYOND_CHECKPOINT }
#define RECORD_AGREES c_expr { RECORD_IS_AS_SEEN }
#define NEXT_EVENT c_code { next_event(now.story, ++now.event); }
#define CHECK(condition, text) if :: (condition) :: else -> broken = 1; c_code { note(now.story, text); } fi

inline choose_trace() {
  c_code { load_traces(); };
  do
  :: c_expr { IS_NOT_LAST } -> story++
  :: break
  od
}

inline choose_slots(cube) {
  c_code { now.taken = ARGUMENT(WRITES); now.freed = ARGUMENT(FREES); now.claimed = ARGUMENT(DURABLE); };
  if :: claimed > D[cube] -> claimed = D[cube] :: else fi
}

#define TRACE_STEPS \
  :: atomic { \
    phase == running && !broken && c_expr { IS_DATA } -> \
    c_code { now.k = ARGUMENT(0); now.id = ARGUMENT(1); }; \
    MAY_TAKE(0, k); \
    put(SLOT(0, k), id); \
    freed_at[k] = IN_USE; \
    k = 0; id = 0; \
    NEXT_EVENT \
  } \
  :: atomic { \
    phase == running && !broken && c_expr { IS_ACKNOWLEDGMENT } -> \
    c_code { now.id = ARGUMENT(0); }; \
    id != 0 && rec[id].seq <= D[0]; \
    id = 0; \
    NEXT_EVENT \
  } \
  :: atomic { \
    phase == running && !broken && c_expr { IS_ERASURE } -> \
    c_code { now.s = ARGUMENT(0); }; \
    IS_SPARE(0, s); \
    s = 0; \
    NEXT_EVENT \
  } \
  :: atomic { \
    !broken && c_expr { IS_END } -> \
    c_code { accept(now.story); }; \
    break \
  }

#include "one_log.pml"
