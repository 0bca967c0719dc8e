/* The thread that runs a plan on the monotonic grid and hands over one slice a second. */
#ifndef REVEAL_TICKER_H
#define REVEAL_TICKER_H

#include "scan.h"

/* counted since the thread began */
struct counts {
    int64_t late_ticks;
    int64_t missed_ticks;
    int64_t skipped_slices; /* the host stood still */
    int64_t overruns;       /* slices nobody fetched in time: not taken */
};

/* What is said of a slice, in the memory of its ring and all of one type: Python takes it in one
 * go, as each other way to look at a field is code that is cold after a second. */
struct said {
    int64_t due;          /* monotonic ns of its first tick */
    int64_t start_ns;     /* the same on the wall clock */
    int64_t ticks;
    int64_t longest;      /* ns, what an owner that is read every tick took for one */
    int64_t longest_slow; /* and one that is read once a slice */
    int64_t flagged;      /* owners with flags */
    struct counts counts; /* as they were at its end */
    int64_t lateness[];   /* us, a tick each */
};

/* What one second of ticks gave.  Belongs to the thread again once the next one is waited for. */
struct slice {
    struct said *said;
    int64_t *fast;  /* ticks x plan->shape.fast */
    int64_t *slow;
    int32_t *spent; /* ns, ticks x owners */
    uint8_t *flags; /* of each owner */
    int64_t name;   /* ring and place, as `reveal_ticker_wait` gives it */
    int32_t busy;
};

enum { NO_SLICE = -1, PLACES = 8 };

enum { DEPTH = 5 }; /* four seconds and the one being written */

struct ring {
    struct plan *plan;
    int32_t ticks;
    int32_t next;
    struct slice slices[DEPTH];
};

struct ticker;

/* Some seconds of a plan's rows in so many bytes of the caller's; number: counted up. */
int64_t reveal_ring_bytes(const struct plan *plan, int32_t ticks);
struct ring *reveal_ring_new(struct plan *plan, int64_t number, int32_t ticks, uint8_t *memory);
/* Where what it keeps at this place lies, from 0 on. */
const struct slice *reveal_ring_slice(const struct ring *ring, int32_t place);
void reveal_ring_free(struct ring *ring);

/* Start ticking; phase and period in ns.  NULL: errno says why. */
struct ticker *reveal_ticker_start(struct ring *ring, int64_t phase, int64_t period);
/* errno with which SCHED_FIFO was refused, or 0 */
int32_t reveal_ticker_refused(const struct ticker *ticker);
/* From the next slice on; gives back a ring that waited and will not be used, or NULL. */
struct ring *reveal_ticker_swap(struct ticker *ticker, struct ring *ring);
/* The next finished slice, waiting for it at most so long: the number of its ring times PLACES,
 * and its place there.  NO_SLICE: none, or woken.  The one before belongs to the thread again. */
int64_t reveal_ticker_wait(struct ticker *ticker, int64_t timeout_ns);
/* End the wait of another thread early, or its next one. */
void reveal_ticker_wake(struct ticker *ticker);
/* End within the tick; what the running slice holds so far can still be waited for. */
void reveal_ticker_stop(struct ticker *ticker);
void reveal_ticker_free(struct ticker *ticker);

#endif
