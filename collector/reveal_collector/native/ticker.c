/* One thread, one mutex held for moments only; see ticker.h. */
#define _GNU_SOURCE
#include "ticker.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_OF_ORDINARY = -20 }; /* nice */
enum { DEPTH = 5, QUEUE = 16, STACK = 256 << 10 }; /* four seconds and the one being written */

#define SECOND INT64_C(1000000000)

struct ring {
    struct plan *plan;
    int64_t number;
    int32_t ticks;
    int32_t next;
    struct slice slices[DEPTH];
};

struct ticker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t finished; /* a slice is ready */
    struct ring *ring;
    struct ring *pending;
    struct slice *queue[QUEUE];
    int32_t first, queued;
    struct counts counts;
    int64_t phase, period;
    int32_t refused; /* real time: the error; below 0 where it runs at nice -20 instead */
    int running, woken, begun;
    _Atomic uint32_t stopping; /* a futex: who sleeps until a tick is woken by it */
};

static size_t rounded(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63; /* a cache line: neighbours are written by nobody else */
}

static void *cut_off(uint8_t **memory, size_t bytes)
{
    void *const part = *memory;
    *memory += rounded(bytes);
    return part;
}

struct sizes {
    size_t fast, slow, lateness, spent, flags;
};

static struct sizes sizes_of(const struct plan *plan, int32_t ticks)
{
    const struct shape *shape = &plan->shape;
    const size_t lateness = sizeof(int32_t) * (size_t)ticks, owners = (size_t)shape->owners;
    return (struct sizes){
        .fast = sizeof(int64_t) * (size_t)shape->fast * (size_t)ticks,
        .slow = sizeof(int64_t) * (size_t)shape->slow,
        .lateness = lateness,
        .spent = lateness * owners,
        .flags = owners,
    };
}

int64_t reveal_ring_bytes(const struct plan *plan, int32_t ticks)
{
    const struct sizes size = sizes_of(plan, ticks);
    return (int64_t)(DEPTH * (rounded(size.fast) + rounded(size.slow) + rounded(size.lateness) +
                              rounded(size.spent) + rounded(size.flags)));
}

struct ring *reveal_ring_new(struct plan *plan, int64_t number, int32_t ticks, uint8_t *memory)
{
    const struct sizes size = sizes_of(plan, ticks);
    struct ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return NULL;
    ring->plan = plan;
    ring->number = number;
    ring->ticks = ticks;
    for (int n = 0; n < DEPTH; n++)
        ring->slices[n] = (struct slice){
            .ring = number,
            .fast = cut_off(&memory, size.fast),
            .slow = cut_off(&memory, size.slow),
            .lateness = cut_off(&memory, size.lateness),
            .spent = cut_off(&memory, size.spent),
            .flags = cut_off(&memory, size.flags),
        };
    return ring;
}

void reveal_ring_free(struct ring *ring)
{
    free(ring);
}

static int64_t wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

static struct timespec as_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

/* Whether to go on once the time has come: no when the thread is to end.
 *
 * One system call and one word: a condition variable's own lines are cold after 100 ms, and made
 * every tick 10 us dearer. */
static int sleep_until(struct ticker *ticker, int64_t due)
{
    const struct timespec until = as_timespec(due);
    while (!ticker->stopping)
        if (syscall(SYS_futex, &ticker->stopping, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0,
                    &until, NULL, FUTEX_BITSET_MATCH_ANY) < 0 && errno == ETIMEDOUT)
            break;
    return !ticker->stopping;
}

static void stop_sleeping(struct ticker *ticker)
{
    ticker->stopping = 1;
    syscall(SYS_futex, &ticker->stopping, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX);
}

/* Whole slices that went by are a gap: no blank rows for a guest that was stopped. */
static int64_t past_standstill(struct ticker *ticker, int64_t due)
{
    const int64_t behind = (monotonic_ns() - due) / SECOND;
    if (behind <= 0)
        return due;
    pthread_mutex_lock(&ticker->mutex);
    ticker->counts.skipped_slices += behind;
    pthread_mutex_unlock(&ticker->mutex);
    return due + behind * SECOND;
}

/* The ring to use from now on and its next slice; NULL where nobody fetched the old ones. */
static struct slice *open_slice(struct ticker *ticker)
{
    pthread_mutex_lock(&ticker->mutex);
    if (ticker->pending) {
        ticker->ring = ticker->pending;
        ticker->pending = NULL;
    }
    struct ring *ring = ticker->ring;
    struct slice *slice = ring->slices + ring->next;
    if (slice->busy || ticker->queued == QUEUE) {
        slice = NULL;
        ticker->counts.overruns++;
    } else
        ring->next = (ring->next + 1) % DEPTH;
    pthread_mutex_unlock(&ticker->mutex);
    return slice;
}

static void close_slice(struct ticker *ticker, struct slice *slice)
{
    pthread_mutex_lock(&ticker->mutex);
    slice->busy = 1;
    slice->counts = ticker->counts;
    ticker->queue[(ticker->first + ticker->queued++) % QUEUE] = slice;
    pthread_cond_signal(&ticker->finished);
    pthread_mutex_unlock(&ticker->mutex);
}

/* How late a tick is, in us; counted. */
static int32_t note_lateness(struct ticker *ticker, int64_t late)
{
    if (late * 10 > ticker->period) {
        pthread_mutex_lock(&ticker->mutex);
        ticker->counts.late_ticks++;
        ticker->counts.missed_ticks += late >= ticker->period;
        pthread_mutex_unlock(&ticker->mutex);
    }
    return (int32_t)(late / 1000 > INT32_MAX ? INT32_MAX : late / 1000);
}

static void take_tick(struct ticker *ticker, struct slice *slice, int64_t due)
{
    struct plan *plan = ticker->ring->plan;
    const struct shape *shape = &plan->shape;
    const int32_t tick = slice->ticks++;
    const int64_t now = monotonic_ns(), late = now > due ? now - due : 0;
    int64_t *row = slice->fast + (long)tick * shape->fast;
    int32_t *spent = slice->spent + (long)tick * shape->owners;
    memset(spent, 0, sizeof *spent * (size_t)shape->owners);
    slice->lateness[tick] = note_lateness(ticker, late);
    if (late >= ticker->period)
        reveal_blank(plan, row);
    else
        reveal_pass(plan, tick, row, slice->slow, spent);
    for (int32_t owner = 0; owner < shape->owners; owner++)
        if (spent[owner] > slice->longest)
            slice->longest = spent[owner];
}

/* One slice from its first tick to its end; gives the next one's beginning. */
static int64_t take_slice(struct ticker *ticker, int64_t due)
{
    due = past_standstill(ticker, due);
    if (!sleep_until(ticker, due))
        return due;
    struct slice *slice = open_slice(ticker);
    if (!slice)
        return due + SECOND;
    struct plan *plan = ticker->ring->plan;
    const int64_t late = monotonic_ns() - due;
    slice->due = due;
    slice->start_ns = wall_ns() - (late > 0 ? late : 0);
    slice->ticks = slice->longest = 0;
    reveal_begin(plan, slice->slow);
    for (int32_t tick = 0; tick < ticker->ring->ticks; tick++) {
        const int64_t at = due + tick * ticker->period;
        if (!sleep_until(ticker, at))
            break;
        take_tick(ticker, slice, at);
    }
    memcpy(slice->flags, plan->flags, (size_t)plan->shape.owners);
    close_slice(ticker, slice);
    return due + SECOND;
}

/* The nice value is a thread's own: only it can say whether it got one. */
static void begin(struct ticker *ticker)
{
    pthread_mutex_lock(&ticker->mutex);
    if (ticker->refused && setpriority(PRIO_PROCESS, 0, FIRST_OF_ORDINARY) == 0)
        ticker->refused = -ticker->refused;
    ticker->begun = 1;
    pthread_cond_broadcast(&ticker->finished);
    pthread_mutex_unlock(&ticker->mutex);
}

static void wait_until_begun(struct ticker *ticker)
{
    pthread_mutex_lock(&ticker->mutex);
    while (!ticker->begun)
        pthread_cond_wait(&ticker->finished, &ticker->mutex);
    pthread_mutex_unlock(&ticker->mutex);
}

static void *run(void *argument)
{
    struct ticker *ticker = argument;
    const int64_t now = monotonic_ns();
    begin(ticker);
    int64_t due = now - (now - ticker->phase) % SECOND + SECOND;
    while (!ticker->stopping)
        due = take_slice(ticker, due);
    return NULL;
}

/* Signals are for the threads of Python; real time where the kernel lets us. */
static int start_thread(struct ticker *ticker)
{
    pthread_attr_t attributes;
    const struct sched_param lowest = {.sched_priority = 1};
    sigset_t all, before;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &lowest);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&ticker->thread, &attributes, run, ticker);
    if (error == EPERM) {
        ticker->refused = error;
        pthread_attr_setinheritsched(&attributes, PTHREAD_INHERIT_SCHED);
        error = pthread_create(&ticker->thread, &attributes, run, ticker);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

static void prepare_locks(struct ticker *ticker)
{
    pthread_mutexattr_t inherit;
    pthread_condattr_t monotonic;
    pthread_mutexattr_init(&inherit);
    pthread_mutexattr_setprotocol(&inherit, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&ticker->mutex, &inherit);
    pthread_mutexattr_destroy(&inherit);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&ticker->finished, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

struct ticker *reveal_ticker_start(struct ring *ring, int64_t phase, int64_t period)
{
    struct ticker *ticker = calloc(1, sizeof *ticker);
    if (!ticker)
        return NULL;
    ticker->ring = ring;
    ticker->phase = phase;
    ticker->period = period;
    prepare_locks(ticker);
    const int error = start_thread(ticker);
    if (error) {
        reveal_ticker_free(ticker);
        errno = error;
        return NULL;
    }
    ticker->running = 1;
    wait_until_begun(ticker);
    return ticker;
}

int32_t reveal_ticker_refused(const struct ticker *ticker)
{
    return ticker->refused;
}

struct ring *reveal_ticker_swap(struct ticker *ticker, struct ring *ring)
{
    pthread_mutex_lock(&ticker->mutex);
    struct ring *unused = ticker->pending;
    ticker->pending = ring;
    pthread_mutex_unlock(&ticker->mutex);
    return unused;
}

struct slice *reveal_ticker_wait(struct ticker *ticker, int64_t timeout_ns)
{
    const struct timespec until = as_timespec(monotonic_ns() + timeout_ns);
    struct slice *slice = NULL;
    int waited = 0;
    pthread_mutex_lock(&ticker->mutex);
    while (ticker->queued == 0 && !ticker->stopping && !ticker->woken && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&ticker->finished, &ticker->mutex, &until);
    if (ticker->queued == 0)
        ticker->woken = 0;
    if (ticker->queued > 0) {
        slice = ticker->queue[ticker->first];
        ticker->first = (ticker->first + 1) % QUEUE;
        ticker->queued--;
    }
    pthread_mutex_unlock(&ticker->mutex);
    return slice;
}

void reveal_ticker_wake(struct ticker *ticker)
{
    pthread_mutex_lock(&ticker->mutex);
    ticker->woken = 1;
    pthread_cond_broadcast(&ticker->finished);
    pthread_mutex_unlock(&ticker->mutex);
}

void reveal_ticker_release(struct ticker *ticker, struct slice *slice)
{
    pthread_mutex_lock(&ticker->mutex);
    slice->busy = 0;
    pthread_mutex_unlock(&ticker->mutex);
}

void reveal_ticker_stop(struct ticker *ticker)
{
    pthread_mutex_lock(&ticker->mutex);
    stop_sleeping(ticker); /* under the mutex, or who waits for a slice could miss it */
    pthread_cond_broadcast(&ticker->finished);
    pthread_mutex_unlock(&ticker->mutex);
    if (ticker->running)
        pthread_join(ticker->thread, NULL);
    ticker->running = 0;
}

void reveal_ticker_free(struct ticker *ticker)
{
    pthread_mutex_destroy(&ticker->mutex);
    pthread_cond_destroy(&ticker->finished);
    free(ticker);
}
