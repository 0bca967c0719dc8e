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

/* What one second of ticks gave.  Belongs to the thread again once released. */
struct slice {
    int64_t due;      /* monotonic ns of its first tick */
    int64_t start_ns; /* the same on the wall clock */
    int64_t ring;     /* the number of the ring it lies in */
    int64_t *fast;    /* ticks x plan->shape.fast */
    int64_t *slow;
    int32_t *lateness; /* us, a tick each */
    int32_t *spent;    /* ns, ticks x owners */
    uint8_t *flags;    /* of each owner */
    struct counts counts; /* as they were at its end */
    int32_t ticks;
    int32_t longest; /* ns, of spent */
    int32_t busy;
};

struct ring;
struct ticker;

/* Some seconds of a plan's rows in so many bytes of the caller's; number: counted up. */
int64_t reveal_ring_bytes(const struct plan *plan, int32_t ticks);
struct ring *reveal_ring_new(struct plan *plan, int64_t number, int32_t ticks, uint8_t *memory);
void reveal_ring_free(struct ring *ring);

/* Start ticking; phase and period in ns.  NULL: errno says why. */
struct ticker *reveal_ticker_start(struct ring *ring, int64_t phase, int64_t period);
/* errno with which SCHED_FIFO was refused, or 0 */
int32_t reveal_ticker_refused(const struct ticker *ticker);
/* From the next slice on; gives back a ring that waited and will not be used, or NULL. */
struct ring *reveal_ticker_swap(struct ticker *ticker, struct ring *ring);
/* The next finished slice, waiting for it at most so long; NULL: none, or woken. */
struct slice *reveal_ticker_wait(struct ticker *ticker, int64_t timeout_ns);
/* End the wait of another thread early, or its next one. */
void reveal_ticker_wake(struct ticker *ticker);
void reveal_ticker_release(struct ticker *ticker, struct slice *slice);
/* End within the tick; what the running slice holds so far can still be waited for. */
void reveal_ticker_stop(struct ticker *ticker);
void reveal_ticker_free(struct ticker *ticker);

#endif
