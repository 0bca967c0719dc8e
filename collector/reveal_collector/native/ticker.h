/* The thread that runs a plan on the monotonic grid and delivers one slice a second. */
#ifndef REVEAL_TICKER_H
#define REVEAL_TICKER_H

#include "scan.h"

/* counts since the thread started */
struct counts {
    int64_t late_ticks;
    int64_t missed_ticks;
    int64_t skipped_slices; /* the host stood still */
    int64_t overruns;       /* slices not sampled, as no buffer was free */
};

/* Header of a slice.  All fields have one type, so that Python reads them in one call: code for
 * single fields would be cold in the caches each second. */
struct header {
    int64_t due;          /* monotonic ns of its first tick */
    int64_t start_ns;     /* the same on the wall clock */
    int64_t ticks;
    int64_t longest;      /* ns, maximum for one tick of owners that are read every tick */
    int64_t longest_slow; /* the same for the other owners */
    int64_t flagged;      /* number of owners with flags */
    struct counts counts; /* at the end of the slice */
    int64_t lateness[];   /* us, for each tick */
};

/* One second of ticks.  It belongs to the thread again once the caller waits for the next one. */
struct slice {
    struct header *header;
    int64_t *fast;  /* ticks x plan->shape.fast */
    int64_t *slow;
    int32_t *spent; /* ns, ticks x owners */
    uint8_t *flags; /* for each owner */
    int64_t name;   /* ring and position, as `reveal_ticker_wait` returns it */
    int32_t busy;
};

enum { NO_SLICE = -1, POSITIONS = 8, OWNERS = 1 << 20 };

enum { DEPTH = 5 }; /* four finished seconds and the current one */

struct ring {
    struct plan *plan;
    int32_t ticks;
    int32_t next;
    struct slice slices[DEPTH];
};

struct ticker;

/* A ring of some seconds of a plan's rows in memory of the caller; `number` increases. */
int64_t reveal_ring_bytes(const struct plan *plan, int32_t ticks);
struct ring *reveal_ring_new(struct plan *plan, int64_t number, int32_t ticks, uint8_t *memory);
/* The slice at this position, from 0 on. */
const struct slice *reveal_ring_slice(const struct ring *ring, int32_t position);
void reveal_ring_free(struct ring *ring);

/* Start the thread; phase and period in ns.  NULL on error, with errno. */
struct ticker *reveal_ticker_start(struct ring *ring, int64_t phase, int64_t period);
/* errno of the refused SCHED_FIFO (negative if nice -20 is used instead), or 0 */
int32_t reveal_ticker_refused(const struct ticker *ticker);
/* Use this ring from the next slice on; return a pending ring that is now unused, or NULL. */
struct ring *reveal_ticker_swap(struct ticker *ticker, struct ring *ring);
/* Wait for the next finished slice; return the number of its ring times POSITIONS plus its
 * position.  NO_SLICE after the timeout or a wake-up.  The slice before is free again. */
int64_t reveal_ticker_wait(struct ticker *ticker, int64_t timeout_ns);
/* End the current wait of another thread early, or its next one. */
void reveal_ticker_wake(struct ticker *ticker);
/* The source whose file the thread reads now, to find the one that hangs: the number of the ring
 * times OWNERS plus the owner; NO_SLICE while it reads none. */
int64_t reveal_ticker_reading(struct ticker *ticker);
/* Let the thread end after its current read, which may hang, without waiting for it. */
void reveal_ticker_end(struct ticker *ticker);
/* Whether the thread has ended. */
int32_t reveal_ticker_ended(struct ticker *ticker);
/* Stop within a tick; the current slice, as far as it was read, can still be waited for. */
void reveal_ticker_stop(struct ticker *ticker);
void reveal_ticker_free(struct ticker *ticker);

#endif
