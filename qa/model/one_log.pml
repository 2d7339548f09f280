/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The one-log protocol (doc/crash_consistency.md), checked apart from the code.
 *
 * One object per cube: every transaction writes it anew to a free slot and frees the old slot. A transaction is
 * one group: its data, its record and, at a segment's start, the segment's header go out together and land in
 * any order. What is on disk is a cell: durable content, and one write that is in flight or in a volatile cache.
 *
 *   flush       any of the writes in flight complete first; all that completed becomes durable. This is as
 *               general as separate completions, because only the order of completion and flush is ever asked.
 *   power loss  of the writes in doubt any subset survives; a record may be torn (header new, body not).
 *   death       of the process: writes in flight land in the cache, or never, or (lock) under its successor.
 *
 * Records have an identity, which stands for the header checksum (with its nonce) and for the crc of the data.
 * The model cheats nowhere else: recovery sees identities only where the real one sees checksums.
 *
 * D is durable_seq, W the watermark.
 *
 * Each rule of the protocol holds unless NO_<RULE> is defined. run.py lists them and says what must happen.
 *
 * Bounds: CUBES, TXNS, EMPTIES, CRASHES, PIPE (groups in flight per cube), SLOTS, SEGS, POS (records per segment).
 */
#ifndef CUBES
#define CUBES 1
#endif
#ifndef TXNS
#define TXNS 3
#endif
#ifndef EMPTIES
#define EMPTIES 1
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef PIPE
#define PIPE 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef SEGS
#define SEGS 3
#endif
#ifndef POS
#define POS 2
#endif
#define RECS (1 + CUBES + (TXNS + EMPTIES) * CUBES + (CRASHES + 1) * CUBES)
#ifndef TORN
#define TORN 64      /* record identity + TORN: the header is new, the body is not */
#endif
#define IN_USE 255

/* Sets of slots. */
#ifndef SET
#define SET byte
#endif
#define HAS(set, s) (((set) & (1 << (s))) != 0)

/* --- what is on disk ---------------------------------------------------------------------------------- */

#define LOGS (CUBES * SEGS * POS)
#define CELLS (LOGS + CUBES * SLOTS + CUBES * SEGS + CUBES)
#define LOG(c, s, n) (((c) * SEGS + (s)) * POS + (n))
#define SLOT(c, s) (LOGS + (c) * SLOTS + (s))
#define HEADER(c, s) (LOGS + CUBES * SLOTS + (c) * SEGS + (s)) /* holds the segment's epoch */
#define CHECKPOINT(c) (CELLS - CUBES + (c))                    /* holds the record it ends with */

byte durable[CELLS];
byte pending[CELLS]; /* 0: none */
bit cached[CELLS];   /* the pending one has completed: reads see it, a flush makes it durable */
#ifdef NO_LOCK
byte late[CELLS];    /* a dead process's write that may still land */
#endif
#define VISIBLE(i) (cached[i] -> pending[i] : durable[i])

/* What was written in records; never forgotten, and known to recovery only through a cell that holds it. */
typedef Record {
  byte seq;
  byte epoch;
  byte segment;
  byte next;      /* position after it */
  byte parent;    /* the record before it: its previous-checksum field names this one's checksum */
  byte checksum;  /* its identity, unless two records can be the same bytes */
  SET writes;     /* the slots that hold its data */
  SET frees;      /* the slots whose data nobody needs after it */
  byte durable_seq;
  byte sibling;   /* of a transaction that spans cubes: its record in the other one */
  bit dead;       /* a recovery that was served did not have it */
}
Record rec[RECS + 1];
byte records;

/* --- the process -------------------------------------------------------------------------------------- */

mtype = { recover, flush_first, end_recovery, running };
mtype phase = recover;
bit serving[CUBES];
byte newest[CUBES];            /* last record formed */
byte flight[CUBES * PIPE];     /* records not yet known to be durable, in order */
byte flying[CUBES];
byte D[CUBES];                 /* the sequence */
byte horizon[CUBES];           /* slots freed at or below it may be reused */
byte freed_at[CUBES * SLOTS];  /* 0: free; IN_USE */
byte next_epoch[CUBES];
byte known_epoch[CUBES * SEGS];
byte checkpoint[CUBES];        /* the newest durable one */

/* --- the environment, and what was promised ------------------------------------------------------------ */

byte txns, empties, crashes;
byte promised[CUBES];          /* the last record acknowledged or served */

byte i, c, o, s, n, id, seg, k, count, wanted; /* zero between steps */
SET taken, freed;                             /* likewise */
hidden byte cur, found, best, w;              /* used inside d_step only */
hidden byte owner[SLOTS];
hidden SET known;
hidden byte chain[CUBES * (RECS + 1)];
hidden byte chain_length[CUBES], W[CUBES], keep[CUBES], structural[CUBES];
hidden byte valid, changed, ok;
hidden byte lead[CUBES];

/* --- traces ---------------------------------------------------------------------------------------------- */

/* one_log_trace.pml says of each step whether it is what the code did next, and of each choice whether the code chose
 * so. Here all is allowed. */
#ifndef TRACE
#define CHECK(condition, text) if :: (condition) :: else -> printf(text); assert(false) fi
#define SEEN_RECORD true
#define SEEN_CHECKPOINT true
#define SEEN_FLUSH true
#define SEEN_RECOVERY_RECORD true
#define SEEN_POWER_LOSS true
#define SEEN_DEATH true
#define RECORD_AGREES skip
#define FLUSHED_HERE true         /* cell i became durable */
#define NOT_FLUSHED_HERE true
#define LEFT_HERE true            /* a crash left in cell i what is there now */
#define BOTH_GONE_HERE false      /* of the two records that cell i could hold, it left neither */
#define SAID_DURABLE(d) d         /* a record may say less than is durable, but not more */
#define LEFT_SEGMENT false        /* for the next one, although it has room */
#define EARLIER_CHECKPOINT(id) false
#define NEXT_EVENT skip
#endif

/* --- writing --------------------------------------------------------------------------------------------- */

/* The device may have destaged what lay in its cache before. */
inline put(cell, value) {
  if
  :: pending[cell] != 0 && pending[cell] < TORN -> durable[cell] = pending[cell]
  :: true
  fi;
  pending[cell] = value;
  cached[cell] = 0
}

#ifdef NO_RECYCLE_RULE
#define OLDEST_NEEDED(cube) (pending[CHECKPOINT(cube)] -> pending[CHECKPOINT(cube)] : checkpoint[cube])
#else
#define OLDEST_NEEDED(cube) checkpoint[cube]
#endif
#define IS_SPARE(cube, s) ((s) != rec[newest[cube]].segment && \
  known_epoch[(cube) * SEGS + (s)] < rec[OLDEST_NEEDED(cube)].epoch)

/* Any segment that nobody needs; the last one is kept for a recovery. seg: SEGS when there is none. */
inline choose_segment(cube, for_recovery) {
  seg = SEGS; count = 0; s = 0;
  do
  :: s < SEGS && IS_SPARE(cube, s) -> count++; s++
  :: s < SEGS && !IS_SPARE(cube, s) -> s++
  :: s == SEGS -> break
  od;
  s = 0;
  if
  :: count < 2 && !(for_recovery || count == 0)
  :: count == 0
  :: count >= 2 || (for_recovery && count > 0) ->
    do
    :: IS_SPARE(cube, s) -> seg = s; break
    :: s < SEGS - 1 -> s++
    :: s == SEGS - 1 && !IS_SPARE(cube, s) -> seg = SEGS; break
    od
  fi;
  s = 0; count = 0
}

#define ROOM(cube) (rec[newest[cube]].next < POS && !LEFT_SEGMENT)

/* A record after the newest one. REQUIRES: seg, when there is no room in the current segment. */
inline form(cube, its_writes, its_frees, its_durable_seq) {
  records++;
  id = records;
  rec[id].seq = rec[newest[cube]].seq + 1;
  rec[id].parent = newest[cube];
  rec[id].checksum = id;
  rec[id].durable_seq = its_durable_seq;
  rec[id].writes = its_writes;
  rec[id].frees = its_frees;
  if
  :: ROOM(cube) ->
    rec[id].segment = rec[newest[cube]].segment;
    rec[id].epoch = rec[newest[cube]].epoch;
    rec[id].next = rec[newest[cube]].next + 1
  :: else ->
    rec[id].segment = seg;
    rec[id].epoch = next_epoch[cube];
    next_epoch[cube]++;
    rec[id].next = 1;
    known_epoch[cube * SEGS + seg] = rec[id].epoch;
    put(HEADER(cube, seg), rec[id].epoch)
  fi;
  put(LOG(cube, rec[id].segment, rec[id].next - 1), id);
#ifndef TRACE
  k = 0;
  do
  :: k < SLOTS -> if :: HAS(its_writes, k) -> put(SLOT(cube, k), id) :: else fi; k++
  :: else -> break
  od;
  k = 0;
#endif
  newest[cube] = id;
  flight[cube * PIPE + flying[cube]] = id;
  flying[cube]++
}

#ifdef NO_WATERMARK_BEHIND_FLUSH
#define DURABLE_SEQ(cube) rec[newest[cube]].seq
#else
#define DURABLE_SEQ(cube) SAID_DURABLE(D[cube])
#endif

inline free_slots(cube) {
  k = 0;
  do
  :: k < SLOTS ->
    if
    :: freed_at[cube * SLOTS + k] != IN_USE &&
#ifdef NO_REUSE_RULE
       true ->
#else
#ifdef NO_REUSE_AFTER_RECORD
       freed_at[cube * SLOTS + k] <= D[cube] ->
#else
       freed_at[cube * SLOTS + k] <= horizon[cube] ->
#endif
#endif
      freed_at[cube * SLOTS + k] = 0
    :: else
    fi;
    k++
  :: else -> break
  od;
  k = 0
}

#define MAY_TAKE(cube, s) (freed_at[(cube) * SLOTS + (s)] == 0)

/* Which slots a transaction takes and frees: any free one for the object, and the one that it had. */
#ifndef TRACE
inline choose_slots(cube) {
  if :: k = 0 :: k = 1 :: SLOTS == 3 -> k = SLOTS - 1 fi;
  MAY_TAKE(cube, k);
  taken = 1 << k;
  k = 0;
  do
  :: k < SLOTS -> if :: freed_at[cube * SLOTS + k] == IN_USE -> freed = freed | (1 << k) :: else fi; k++
  :: else -> break
  od;
  k = 0
}
#endif

/* A new record with its data. A slot that it takes and frees is free afterwards. */
inline form_write(cube) {
  form(cube, taken, freed, DURABLE_SEQ(cube));
  k = 0;
  do
  :: k < SLOTS ->
    if
    :: HAS(freed, k) -> freed_at[cube * SLOTS + k] = rec[newest[cube]].seq
    :: !HAS(freed, k) && HAS(taken, k) -> freed_at[cube * SLOTS + k] = IN_USE
    :: else
    fi;
    k++
  :: else -> break
  od;
  free_slots(cube);
  taken = 0; freed = 0; k = 0
}

/* --- flushes ---------------------------------------------------------------------------------------------- */

/* Is all of record r durable? ok says. */
inline is_whole(cube, r) {
  ok = durable[LOG(cube, rec[r].segment, rec[r].next - 1)] == r;
#ifndef NO_OWN_FLUSH
  ok = ok && durable[HEADER(cube, rec[r].segment)] == rec[r].epoch;
  k = 0;
  do
  :: k < SLOTS -> ok = ok && (!HAS(rec[r].writes, k) || durable[SLOT(cube, k)] == r); k++
  :: else -> break
  od;
  k = 0
#endif
}

/* How many of the cube's groups in flight D may move over, before participants are asked. */
inline count_flushed(cube) {
  lead[cube] = 0; n = 0;
  do
  :: n < flying[cube] ->
    is_whole(cube, flight[cube * PIPE + n]);
    if
    :: ok -> lead[cube] = n + 1
#ifdef NO_DURABLE_IN_ORDER
    :: else
#else
    :: else -> break
#endif
    fi;
    n++
  :: else -> break
  od;
  n = 0
}

/* The greatest fixed point over the cubes. */
inline ask_participants() {
#if CUBES == 2 && !defined(NO_PARTICIPANTS_DURABLE)
  do
  :: true ->
    changed = 0; c = 0;
    do
    :: c < CUBES ->
      n = 0;
      do
      :: n < lead[c] ->
        id = rec[flight[c * PIPE + n]].sibling;
        if
        :: id != 0 ->
          /* Is it among the other cube's that stay in flight? */
          k = lead[1 - c]; ok = 1;
          do
          :: k < flying[1 - c] -> if :: flight[(1 - c) * PIPE + k] == id -> ok = 0 :: else fi; k++
          :: else -> break
          od;
          if :: !ok -> lead[c] = n; changed = 1 :: else fi
        :: else
        fi;
        n++
      :: else -> break
      od;
      c++
    :: else -> break
    od;
    if :: !changed -> break :: else fi
  od;
  c = 0; n = 0; k = 0; id = 0
#else
  skip
#endif
}

/* Moves D over `lead` groups: acknowledged at once, which is the hardest promise to keep. */
inline advance(cube) {
  n = 0;
  do
  :: n < lead[cube] ->
    id = flight[cube * PIPE + n];
    D[cube] = rec[id].seq;
    if :: rec[id].durable_seq > horizon[cube] -> horizon[cube] = rec[id].durable_seq :: else fi;
    if :: serving[cube] && rec[id].seq > rec[promised[cube]].seq -> promised[cube] = id :: else fi;
    n++
  :: else -> break
  od;
  n = lead[cube];
  do
  :: n < flying[cube] -> flight[cube * PIPE + n - lead[cube]] = flight[cube * PIPE + n]; n++
  :: else -> break
  od;
  n = flying[cube] - lead[cube];
  do
  :: n < flying[cube] -> flight[cube * PIPE + n] = 0; n++
  :: else -> break
  od;
  flying[cube] = flying[cube] - lead[cube];
  if
  :: durable[CHECKPOINT(cube)] != checkpoint[cube] && phase == running ->
    checkpoint[cube] = durable[CHECKPOINT(cube)];
    if :: rec[checkpoint[cube]].seq > horizon[cube] -> horizon[cube] = rec[checkpoint[cube]].seq :: else fi
  :: else
  fi;
  free_slots(cube);
  lead[cube] = 0; n = 0; id = 0
}

inline after_flush() {
  d_step {
    o = 0;
    do :: o < CUBES -> count_flushed(o); o++ :: else -> break od;
    ask_participants();
    o = 0;
    do :: o < CUBES -> advance(o); o++ :: else -> break od;
    o = 0
  }
}

inline flush() {
  i = 0;
  do
  :: i < CELLS ->
    if
    :: pending[i] != 0 && !cached[i] -> /* has not completed: not covered */
    :: pending[i] != 0 -> durable[i] = pending[i]; pending[i] = 0; cached[i] = 0
    :: pending[i] == 0
    fi;
    i++
  :: else -> break
  od;
  i = 0
}

/* Any of the writes in flight complete, then the flush. */
inline complete_some_and_flush() {
  i = 0;
  do
  :: i < CELLS ->
    if
    :: pending[i] == 0
    :: pending[i] != 0 && FLUSHED_HERE -> durable[i] = pending[i]; pending[i] = 0; cached[i] = 0
    :: pending[i] != 0 && !cached[i] && NOT_FLUSHED_HERE
    fi;
    i++
  :: else -> break
  od;
  i = 0
}

/* --- crashes ---------------------------------------------------------------------------------------------- */

inline forget_process() {
  d_step {
    c = 0;
    do
    :: c < CUBES ->
      serving[c] = 0; newest[c] = 0; flying[c] = 0; D[c] = 0; horizon[c] = 0; next_epoch[c] = 0; checkpoint[c] = 0;
      n = 0;
      do :: n < PIPE -> flight[c * PIPE + n] = 0; n++ :: else -> break od;
      n = 0;
      do :: n < SLOTS -> freed_at[c * SLOTS + n] = 0; n++ :: else -> break od;
      n = 0;
      do :: n < SEGS -> known_epoch[c * SEGS + n] = 0; n++ :: else -> break od;
      c++
    :: else -> break
    od;
    c = 0; n = 0;
    crashes++;
    phase = recover
  }
}

inline lose_power() {
  i = 0;
  do
  :: i < CELLS ->
    if
    :: pending[i] == 0
    :: pending[i] != 0
    :: pending[i] != 0 -> durable[i] = pending[i]
    :: i < LOGS && pending[i] != 0 -> durable[i] = pending[i] + TORN
    :: i < LOGS && pending[i] != 0 && BOTH_GONE_HERE -> durable[i] = 0
    fi;
    LEFT_HERE;
    pending[i] = 0; cached[i] = 0;
#ifdef NO_LOCK
    late[i] = 0;
#endif
    i++
  :: else -> break
  od;
  i = 0
}

inline kill_process() {
  i = 0;
  do
  :: i < CELLS ->
    if
    :: pending[i] == 0 || cached[i]
    :: pending[i] != 0 && !cached[i] -> cached[i] = 1
    :: pending[i] != 0 && !cached[i] -> pending[i] = 0
#ifdef NO_LOCK
    :: pending[i] != 0 && !cached[i] && late[i] == 0 -> late[i] = pending[i]; pending[i] = 0
#endif
    fi;
    i++
  :: else -> break
  od;
  i = 0
}

/* --- recovery --------------------------------------------------------------------------------------------- */

/* Rules 1 to 3: does what lies at that place continue the chain after cur? */
inline check_record(cube, where, place) {
  id = VISIBLE(LOG(cube, where, place));
  valid = 0;
#ifdef NO_BODY_CHECKSUM
  if :: id >= TORN -> id = id - TORN :: else fi;
#endif
  if
  :: id != 0 && id < TORN &&
#ifndef NO_SEGMENT_EPOCH
     rec[id].epoch == VISIBLE(HEADER(cube, where)) &&
#endif
#ifndef NO_PREVIOUS_CHECKSUM
     rec[rec[id].parent].checksum == rec[cur].checksum &&
#endif
     rec[id].seq == rec[cur].seq + 1 -> valid = 1
  :: else
  fi
}

#ifdef NO_TRUST_BELOW_WATERMARK
#define IS_CHECKED(cube, r) true
#else
#define IS_CHECKED(cube, r) (rec[r].seq > W[cube])
#endif

/* Rule 4: is record r's data there? ok says. */
inline arrived(cube, r) {
  ok = 1; k = 0;
  do
  :: k < SLOTS -> ok = ok && (!HAS(rec[r].writes, k) || VISIBLE(SLOT(cube, k)) == r); k++
  :: else -> break
  od;
  k = 0
}

inline read_chain(cube) {
  cur = VISIBLE(CHECKPOINT(cube));
  chain[cube * (RECS + 1)] = cur;
  chain_length[cube] = 1;
  W[cube] = rec[cur].seq;
  keep[cube] = 0;
  do
  :: true ->
    found = 0;
    if
    :: rec[cur].next < POS ->
      check_record(cube, rec[cur].segment, rec[cur].next);
      if :: valid -> found = id :: else fi
    :: else
    fi;
    best = SEGS; s = 0;
    do
    :: found == 0 && s < SEGS ->
#ifdef NO_NEXT_SEGMENT_RULE
      /* The next epoch there is, whatever the segment holds. */
      if
      :: s != rec[cur].segment && VISIBLE(HEADER(cube, s)) > rec[cur].epoch &&
         (best == SEGS || VISIBLE(HEADER(cube, s)) < VISIBLE(HEADER(cube, best))) -> best = s
      :: else
      fi;
#else
      check_record(cube, s, 0);
      if
      :: s != rec[cur].segment && valid &&
#ifdef NO_GREATEST_EPOCH
         best == SEGS ->
#else
         (best == SEGS || VISIBLE(HEADER(cube, s)) > VISIBLE(HEADER(cube, best))) ->
#endif
        best = s
      :: else
      fi;
#endif
      s++
    :: else -> break
    od;
    if
    :: found == 0 && best < SEGS ->
      check_record(cube, best, 0);
      if :: valid -> found = id :: else fi
    :: else
    fi;
    if :: found == 0 -> break :: else fi;
#ifdef NO_TWO_PASSES
    /* What is known of W so far decides. */
    if :: rec[found].durable_seq > W[cube] -> W[cube] = rec[found].durable_seq :: else fi;
    arrived(cube, found);
    if :: IS_CHECKED(cube, found) && !ok -> break :: else fi;
#else
    if :: rec[found].durable_seq > W[cube] -> W[cube] = rec[found].durable_seq :: else fi;
#endif
    cur = found;
    chain[cube * (RECS + 1) + chain_length[cube]] = cur;
    chain_length[cube]++
  od;
  structural[cube] = rec[cur].seq;
  found = 0; best = 0; s = 0; cur = 0; id = 0
}

/* keep: how many records of the chain stay, the checkpoint's own included. */
inline check_data(cube) {
  n = 1;
  do
  :: n < chain_length[cube] ->
    id = chain[cube * (RECS + 1) + n];
#ifndef NO_EXTERNAL_CHECK
    arrived(cube, id);
    if :: IS_CHECKED(cube, id) && !ok -> break :: else fi;
#endif
    n++
  :: else -> break
  od;
  keep[cube] = n;
  n = 0; id = 0
}

inline check_participants() {
#if CUBES == 2 && !defined(NO_PARTICIPANTS)
  do
  :: true ->
    changed = 0; c = 0;
    do
    :: c < CUBES ->
      n = 1;
      do
      :: n < keep[c] ->
        id = rec[chain[c * (RECS + 1) + n]].sibling;
        if
        :: id != 0 && rec[chain[c * (RECS + 1) + n]].seq > W[c] &&
           rec[id].seq > rec[chain[(1 - c) * (RECS + 1)]].seq ->
          k = 1; ok = 0;
          do
          :: k < keep[1 - c] -> if :: chain[(1 - c) * (RECS + 1) + k] == id -> ok = 1 :: else fi; k++
          :: else -> break
          od;
          if :: !ok -> keep[c] = n; changed = 1 :: else fi
        :: else
        fi;
        n++
      :: else -> break
      od;
      c++
    :: else -> break
    od;
    if :: !changed -> break :: else fi
  od;
  c = 0; n = 0; k = 0; id = 0
#else
  skip
#endif
}

/* Is `wanted` at or before record `from` in its history? ok says. */
inline is_ancestor(from) {
  ok = 0; cur = from;
  do
  :: cur == wanted -> ok = 1; break
  :: cur == 0 -> break
  :: else -> cur = rec[cur].parent
  od;
  cur = 0
}

/* The slots in use after record `from`: owner[s] is the record whose data slot s holds; 0: it is free. */
inline find_owners(from) {
  k = 0; known = 0;
  do :: k < SLOTS -> owner[k] = 0; k++ :: else -> break od;
  cur = from;
  do
  :: cur != 0 ->
    k = 0;
    do
    :: k < SLOTS ->
      if
      :: HAS(known, k)
      :: !HAS(known, k) && HAS(rec[cur].frees, k)
      :: !HAS(known, k) && !HAS(rec[cur].frees, k) && HAS(rec[cur].writes, k) -> owner[k] = cur
      :: else
      fi;
      k++
    :: else -> break
    od;
    known = known | rec[cur].frees | rec[cur].writes;
    cur = rec[cur].parent
  :: else -> break
  od;
  k = 0
}

/* The oracle. */
inline judge(cube) {
  w = chain[cube * (RECS + 1) + keep[cube] - 1];
  CHECK(rec[w].seq >= W[cube], "VIOLATION: recovery calls the log corrupt: it ends below its watermark\n");
  n = 1;
  do
  :: n < keep[cube] ->
    id = chain[cube * (RECS + 1) + n];
    CHECK(VISIBLE(LOG(cube, rec[id].segment, rec[id].next - 1)) == id, "VIOLATION: a torn record was taken for whole\n");
    CHECK(rec[id].parent == chain[cube * (RECS + 1) + n - 1], "VIOLATION: a record follows one that it was not written after\n");
    n++
  :: else -> break
  od;
  n = 0;
  wanted = promised[cube];
  is_ancestor(w);
  CHECK(ok, "VIOLATION: what was acknowledged or served is lost\n");
  cur = w;
  do
  :: cur != 0 -> CHECK(!rec[cur].dead, "VIOLATION: a transaction that a recovery had dropped is back\n"); cur = rec[cur].parent
  :: else -> break
  od;
  find_owners(w);
  do
  :: k < SLOTS ->
    CHECK(owner[k] == 0 || VISIBLE(SLOT(cube, k)) == owner[k], "VIOLATION: the object's slot does not hold its data\n");
    k++
  :: else -> break
  od;
  k = 0; wanted = 0; cur = 0; id = 0; w = 0
}

/* A valid record anywhere that knows of durable records beyond the end means lost records. */
inline judge_orphans(cube) {
  n = 0;
  do
  :: n < SEGS * POS ->
    id = VISIBLE(LOG(cube, 0, n));
    if
    :: id != 0 && id < TORN ->
      CHECK(rec[id].durable_seq <= structural[cube], "VIOLATION: recovery calls the log corrupt: a record knows of a longer one\n")
    :: else
    fi;
    n++
  :: else -> break
  od;
  n = 0; id = 0
}

#if CUBES == 2
/* Whole or not at all. */
inline judge_halves() {
  c = 0;
  do
  :: c < CUBES ->
    w = chain[c * (RECS + 1) + keep[c] - 1];
    do
    :: w != 0 ->
      if
      :: rec[w].sibling != 0 ->
        wanted = rec[w].sibling;
        is_ancestor(chain[(1 - c) * (RECS + 1) + keep[1 - c] - 1]);
        CHECK(ok, "VIOLATION: half of a transaction that spans cubes is there\n")
      :: else
      fi;
      w = rec[w].parent
    :: else -> break
    od;
    c++
  :: else -> break
  od;
  c = 0; wanted = 0; w = 0
}
#endif

/* The process's memory as recovery leaves it. */
inline load(cube) {
  newest[cube] = chain[cube * (RECS + 1) + keep[cube] - 1];
  checkpoint[cube] = chain[cube * (RECS + 1)];
  D[cube] = rec[newest[cube]].seq;
  horizon[cube] = D[cube];
  find_owners(newest[cube]);
  do
  :: k < SLOTS -> if :: owner[k] != 0 -> freed_at[cube * SLOTS + k] = IN_USE :: else fi; k++
  :: else -> break
  od;
  k = 0; s = 0; w = 0;
  do
  :: s < SEGS ->
    known_epoch[cube * SEGS + s] = VISIBLE(HEADER(cube, s));
    if :: known_epoch[cube * SEGS + s] > w -> w = known_epoch[cube * SEGS + s] :: else fi;
#ifndef NO_NEW_EPOCH
    n = 0;
    do
    :: n < POS ->
      id = VISIBLE(LOG(cube, s, n));
      if :: id >= TORN -> id = id - TORN :: else fi;
      if :: id != 0 && rec[id].epoch > w -> w = rec[id].epoch :: else fi;
      n++
    :: else -> break
    od;
#endif
    s++
  :: else -> break
  od;
  next_epoch[cube] = w + 1;
  s = 0; w = 0; n = 0; id = 0
}

inline forget_scratch() {
  c = 0;
  do
  :: c < CUBES ->
    chain_length[c] = 0; W[c] = 0; keep[c] = 0; structural[c] = 0; n = 0;
    do :: n <= RECS -> chain[c * (RECS + 1) + n] = 0; n++ :: else -> break od;
    c++
  :: else -> break
  od;
  c = 0; n = 0
}

inline read_everything() {
  d_step {
    o = 0;
    do :: o < CUBES -> read_chain(o); o++ :: else -> break od;
    o = 0;
    do :: o < CUBES -> check_data(o); o++ :: else -> break od;
    check_participants();
    o = 0;
    do :: o < CUBES -> judge(o); judge_orphans(o); o++ :: else -> break od;
#if CUBES == 2
    judge_halves();
#endif
    o = 0;
    do
    :: o < CUBES -> printf("recovery of cube %d: W %d, ends at sequence %d\n", o, W[o], rec[chain[o * (RECS + 1) + keep[o] - 1]].seq); load(o); o++
    :: else -> break
    od;
    forget_scratch();
    o = 0; valid = 0; ok = 0; changed = 0;
    phase = flush_first
  }
}

/* Whatever is not in the history that is served now must never come back. */
inline serve(cube) {
  d_step {
    serving[cube] = 1;
    promised[cube] = newest[cube];
    printf("cube %d serves sequence %d\n", cube, rec[newest[cube]].seq)
  }
}

inline bury() {
  d_step {
    n = 1;
    do
    :: n <= records ->
      wanted = n; c = 0; changed = 0;
      do
      :: c < CUBES -> is_ancestor(newest[c]); changed = changed || ok; c++
      :: else -> break
      od;
      if :: !changed -> rec[n].dead = 1 :: else fi;
      n++
    :: else -> break
    od;
    n = 0; c = 0; wanted = 0; ok = 0; changed = 0
  }
}

/* Writes the recovery record of cube o. */
inline write_recovery_record(cube) {
  if
  :: !ROOM(cube) -> choose_segment(cube, true)
  :: else
  fi;
  if :: !ROOM(cube) && seg == SEGS -> goto stuck :: else fi;
  form(cube, 0, 0, D[cube]);
#ifdef NO_NONCE
  d_step {
    n = 1;
    do
    :: n < records ->
      if
      :: rec[n].seq == rec[records].seq && rec[n].parent == rec[records].parent && rec[n].writes == 0 &&
         rec[n].durable_seq == rec[records].durable_seq && rec[n].epoch == rec[records].epoch ->
        rec[records].checksum = rec[n].checksum
      :: else
      fi;
      n++
    :: else -> break
    od;
    n = 0
  }
#endif
  seg = 0; id = 0; count = 0
}

#define MAY_FORM(cube) (serving[cube] && flying[cube] < PIPE)

init {
  atomic {
    /* A store as it was made: the checkpoint of each cube is an empty record at the first segment's start. */
    do
    :: c < CUBES ->
      records++;
      rec[records].epoch = 1;
      rec[records].checksum = records;
      durable[HEADER(c, 0)] = 1;
      durable[CHECKPOINT(c)] = records;
      promised[c] = records;
      c++
    :: else -> break
    od;
    c = 0
  };

#ifdef TRACE
  choose_trace();
#endif
  do
#ifdef TRACE
  TRACE_STEPS
#endif
  /* A transaction in one cube. */
  :: atomic {
    phase == running && txns < TXNS && SEEN_RECORD ->
    if :: c = 0 :: CUBES == 2 -> c = CUBES - 1 fi;
    MAY_FORM(c);
    choose_slots(c);
    if :: !ROOM(c) -> choose_segment(c, false) :: else fi;
    ROOM(c) || seg < SEGS;
    form_write(c);
    RECORD_AGREES;
    txns++;
    printf("cube %d: record %d, sequence %d, slots %d, segment %d, durable_seq %d\n", c, newest[c], rec[newest[c]].seq, rec[newest[c]].writes, rec[newest[c]].segment, rec[newest[c]].durable_seq);
    c = 0; k = 0; seg = 0; n = 0; id = 0; count = 0;
    NEXT_EVENT
  }
#if CUBES == 2
  /* A transaction that spans both. */
  :: atomic {
    phase == running && txns < TXNS && MAY_FORM(0) && MAY_FORM(1) && ROOM(0) && ROOM(1);
    choose_slots(0);
    form_write(0);
    choose_slots(1);
    form_write(1);
    rec[newest[0]].sibling = newest[1];
    rec[newest[1]].sibling = newest[0];
    txns++;
    printf("both cubes: records %d and %d, sequences %d and %d, slots %d and %d\n", newest[0], newest[1], rec[newest[0]].seq, rec[newest[1]].seq, rec[newest[0]].writes, rec[newest[1]].writes);
    id = 0
  }
#endif
  /* A record without a transaction: what an idle store writes so that slots come free. */
  :: atomic {
    phase == running && empties < EMPTIES ->
    if :: c = 0 :: CUBES == 2 -> c = CUBES - 1 fi;
    MAY_FORM(c);
    if :: !ROOM(c) -> choose_segment(c, false) :: else fi;
    ROOM(c) || seg < SEGS;
    form(c, 0, 0, DURABLE_SEQ(c));
    empties++;
    printf("cube %d: empty record %d, sequence %d, segment %d, durable_seq %d\n", c, newest[c], rec[newest[c]].seq, rec[newest[c]].segment, rec[newest[c]].durable_seq);
    c = 0; seg = 0; id = 0; count = 0
  }
#ifdef NO_ACKNOWLEDGE_AFTER_FLUSH
  /* Written is taken for durable. */
  :: atomic {
    phase == running && flying[0] > 0 && serving[0] && rec[flight[0]].seq > rec[promised[0]].seq ->
    promised[0] = flight[0];
    printf("cube 0: sequence %d acknowledged\n", rec[flight[0]].seq)
  }
#endif
  /* A memtable reaches the tree. */
  :: atomic {
    phase == running && SEEN_CHECKPOINT ->
    if :: c = 0 :: CUBES == 2 -> c = CUBES - 1 fi;
    serving[c] && pending[CHECKPOINT(c)] == 0;
    id = newest[c];
#ifndef NO_MEMTABLE_RULE
    /* The newest record at or below D. */
    do :: rec[id].seq > D[c] || EARLIER_CHECKPOINT(id) -> id = rec[id].parent :: else -> break od;
#endif
    rec[id].seq > rec[checkpoint[c]].seq;
    pending[CHECKPOINT(c)] = id;
    printf("cube %d: checkpoint at sequence %d\n", c, rec[id].seq);
    c = 0; id = 0;
    NEXT_EVENT
  }
  :: atomic {
    phase == running && SEEN_FLUSH ->
    complete_some_and_flush();
    after_flush();
    printf("flush: D %d\n", D[0]);
    NEXT_EVENT
  }
#ifdef NO_LOCK
  :: atomic {
    i = 0;
    do
    :: i < CELLS - 1 -> i++
    :: late[i] != 0 && (pending[i] == 0 || cached[i]) -> break
    od;
    put(i, late[i]);
    cached[i] = 1;
    late[i] = 0;
    printf("a dead process's write lands in cell %d\n", i);
    i = 0
  }
#endif

  /* Recovery, with crashes between any two steps. */
  :: atomic {
    phase == recover -> read_everything()
  }
  :: atomic {
    phase == flush_first && SEEN_RECOVERY_RECORD ->
#ifndef NO_RECOVERY_FLUSH
    flush();
    printf("recovery flushes everything\n");
#endif
    phase = end_recovery;
#ifdef NO_RECOVERY_RECORD
    c = 0;
    do :: c < CUBES -> serve(c); c++ :: else -> break od;
    bury();
    c = 0;
    phase = running
#else
    o = 0;
    do
    :: o < CUBES ->
      write_recovery_record(o);
      RECORD_AGREES;
      printf("cube %d: recovery record %d, sequence %d, segment %d\n", o, newest[o], rec[newest[o]].seq, rec[newest[o]].segment);
      o++
    :: else -> break
    od;
    o = 0;
    NEXT_EVENT
#endif
  }
  :: atomic {
    phase == end_recovery && SEEN_FLUSH ->
#ifndef NO_RECOVERY_RECORD_FLUSH
    complete_some_and_flush();
    after_flush();
#endif
#if CUBES == 2 && defined(NO_SERVE_TOGETHER)
    o = 0;
    do
    :: o < CUBES -> if :: flying[o] == 0 && !serving[o] -> serve(o) :: else fi; o++
    :: else -> break
    od;
    o = 0;
    if :: serving[0] || serving[1] -> bury(); phase = running :: else fi
#else
    if
#ifdef NO_RECOVERY_RECORD_FLUSH
    :: true ->
#else
    :: flying[0] == 0 && flying[CUBES - 1] == 0 ->
#endif
      o = 0;
      do :: o < CUBES -> serve(o); o++ :: else -> break od;
      o = 0;
      bury();
      phase = running
    :: else
    fi
#endif
    ;
    NEXT_EVENT
  }

  :: atomic {
    phase != recover && crashes < CRASHES && SEEN_POWER_LOSS ->
    lose_power();
    printf("power is lost\n");
    forget_process();
    NEXT_EVENT
  }
  :: atomic {
    phase != recover && crashes < CRASHES && SEEN_DEATH ->
    kill_process();
    printf("the process dies\n");
    forget_process()
  }
  od;
stuck:
  skip
}
