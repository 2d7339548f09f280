// SPDX-License-Identifier: LGPL-2.1-or-later
/* Traces of the code, read by the program that Spin makes of one_log_trace.pml.
 *
 * The file "traces" holds numbers: how many traces; of each how many events; of each event its kind, how many
 * arguments, the arguments. check_traces.py writes it. At the end a line is printed for each trace: how many of its
 * events the model went along with at most, whether it went along with all, and what its oracle said. */
#include <stdio.h>
#include <stdlib.h>

enum { RECORD, RECOVERY_RECORD, DATA, CHECKPOINT_AT, FLUSH, ACKNOWLEDGE, ERASE, CRASH, UNFLUSHED, REFUSED };
/* Arguments of a record. */
enum { ID, PREDECESSOR, SEQUENCE, SEGMENT, BLOCK, EPOCH, DURABLE, WRITES, FREES };
/* What a crash leaves in a cell, when no value says it. */
enum { ANYTHING = 255, NOT_THE_LATEST = 254 };
/* Whose data it is when no record was formed for it. */
enum { NO_RECORD = 127 };

struct event {
  int kind, count, *arguments;
};
struct story {
  int length, reached, accepted;
  const char* note;
  struct event* events;
};
static struct story* stories;
static int story_count;

static int next_number(FILE* file) {
  int number;
  if (fscanf(file, "%d", &number) != 1) {
    fprintf(stderr, "the file of traces ends too early\n");
    exit(3);
  }
  return number;
}

static void print_verdicts(void) {
  for (int i = 0; i < story_count; i++) {
    printf("verdict %d %d %s\n", stories[i].reached, stories[i].accepted, stories[i].note ? stories[i].note : "");
  }
}

static void load_traces(void) {
  if (stories) {
    return;
  }
  FILE* file = fopen("traces", "r");
  if (!file) {
    perror("traces");
    exit(3);
  }
  story_count = next_number(file);
  stories = calloc(story_count, sizeof(struct story));
  for (int i = 0; i < story_count; i++) {
    stories[i].length = next_number(file);
    stories[i].events = calloc(stories[i].length, sizeof(struct event));
    for (int j = 0; j < stories[i].length; j++) {
      struct event* event = &stories[i].events[j];
      event->kind = next_number(file);
      event->count = next_number(file);
      event->arguments = calloc(event->count, sizeof(int));
      for (int k = 0; k < event->count; k++) {
        event->arguments[k] = next_number(file);
      }
    }
  }
  fclose(file);
  atexit(print_verdicts);
}

static void next_event(int story, int event) {
  if (event > stories[story].reached) {
    stories[story].reached = event;
  }
}
static void accept(int story) { stories[story].accepted = 1; }
static void note(int story, const char* text) { stories[story].note = text; }

static int is(int story, int event, int kind) {
  return event < stories[story].length && stories[story].events[event].kind == kind;
}
static int argument(int story, int event, int n) { return stories[story].events[event].arguments[n]; }
static int lists(int story, int event, int cell) {
  const struct event* flush = &stories[story].events[event];
  for (int i = 0; i < flush->count; i++) {
    if (flush->arguments[i] == cell) {
      return 1;
    }
  }
  return 0;
}

#define ARGUMENT(n) argument(now.story, now.event, n)
#define IS_RECORD is(now.story, now.event, RECORD)
#define IS_RECOVERY_RECORD is(now.story, now.event, RECOVERY_RECORD)
#define IS_DATA is(now.story, now.event, DATA)
#define IS_CHECKPOINT is(now.story, now.event, CHECKPOINT_AT)
#define IS_FLUSH is(now.story, now.event, FLUSH)
#define IS_ACKNOWLEDGMENT is(now.story, now.event, ACKNOWLEDGE)
#define IS_ERASURE is(now.story, now.event, ERASE)
#define IS_CRASH is(now.story, now.event, CRASH)
#define IS_END (now.event == stories[now.story].length)
#define IS_NOT_LAST (now.story + 1 < story_count)
#define IS_FLUSHED lists(now.story, now.event, now.i)
#define IS_LEFT                                                            \
  (ARGUMENT(now.i) == ANYTHING || ARGUMENT(now.i) == now.durable[now.i] || \
   (ARGUMENT(now.i) == NOT_THE_LATEST &&                                   \
    (now.pending[now.i] == 0 || now.pending[now.i] == NO_RECORD || now.durable[now.i] != now.pending[now.i])))
#define IS_GONE (ARGUMENT(now.i) == 0)
#define LEAVES_SEGMENT (ARGUMENT(SEGMENT) != now.rec[now.newest[0]].segment)
#define IS_BEYOND_CHECKPOINT (now.id != 0 && now.id != ARGUMENT(0))
#define RECORD_IS_AS_SEEN                                                                                 \
  (now.records == ARGUMENT(ID) && now.rec[now.records].parent == ARGUMENT(PREDECESSOR) &&                 \
   now.rec[now.records].seq == ARGUMENT(SEQUENCE) && now.rec[now.records].segment == ARGUMENT(SEGMENT) && \
   now.rec[now.records].next == ARGUMENT(BLOCK) + 1 && now.rec[now.records].epoch == ARGUMENT(EPOCH) &&   \
   now.rec[now.records].durable_seq == ARGUMENT(DURABLE))
