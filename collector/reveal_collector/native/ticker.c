/* The tick thread.  Its mutex is locked for a few instructions only; see ticker.h. */
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

enum { HIGHEST_NICE = -20 }; /* nice */
enum { QUEUE = 16, STACK = 256 << 10 };

#define SECOND INT64_C(1000000000)

struct ticker {
    pthread_t thread;
    pthread_mutex_t mutex;
    struct ring *ring;
    struct ring *pending;
    struct slice *queue[QUEUE];
    int32_t first, queued;
    struct slice *current; /* the one that the last wait returned */
    struct counts counts;
    int64_t phase, period;
    int32_t refused; /* errno of SCHED_FIFO; negative if nice -20 is used instead */
    int running, woken, begun, ended;
    _Atomic uint32_t stopping; /* futex: wakes the thread that sleeps until a tick */
    _Atomic uint32_t news;     /* futex: incremented for the thread that waits for a slice */
};

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

/* Sleep while the word has this value; return 0 at the time `due` (monotonic ns).
 *
 * This takes one system call and one word.  The code and data of a condition variable are cold in
 * the caches after 100 ms: it made every tick 10 us slower. */
static int sleep_on(_Atomic uint32_t *word, uint32_t seen, int64_t due)
{
    const struct timespec until = as_timespec(due);
    const long waited = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen,
                                &until, NULL, FUTEX_BITSET_MATCH_ANY);
    return !(waited < 0 && errno == ETIMEDOUT);
}

static void wake(_Atomic uint32_t *word)
{
    (*word)++;
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX);
}

/* Sleep until the time; return 0 when the thread must stop. */
static int sleep_until(struct ticker *ticker, int64_t due)
{
    while (!ticker->stopping && sleep_on(&ticker->stopping, 0, due))
        ;
    return !ticker->stopping;
}

/* Skip whole slices that passed without a tick (a stopped guest): a gap instead of blank rows. */
static int64_t skip_standstill(struct ticker *ticker, int64_t due)
{
    const int64_t behind = (monotonic_ns() - due) / SECOND;
    if (behind <= 0)
        return due;
    pthread_mutex_lock(&ticker->mutex);
    ticker->counts.skipped_slices += behind;
    pthread_mutex_unlock(&ticker->mutex);
    return due + behind * SECOND;
}

/* Switch to the pending ring, if any, and return its next slice; NULL if all are in use. */
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
    slice->header->counts = ticker->counts;
    ticker->queue[(ticker->first + ticker->queued++) % QUEUE] = slice;
    pthread_mutex_unlock(&ticker->mutex);
    wake(&ticker->news);
}

/* Count a late tick; return its lateness in us. */
static int64_t note_lateness(struct ticker *ticker, int64_t late)
{
    if (late * 10 > ticker->period) {
        pthread_mutex_lock(&ticker->mutex);
        ticker->counts.late_ticks++;
        ticker->counts.missed_ticks += late >= ticker->period;
        pthread_mutex_unlock(&ticker->mutex);
    }
    return late / 1000 > INT32_MAX ? INT32_MAX : late / 1000;
}

static void note_spent(struct header *header, const struct shape *shape, const int32_t *spent)
{
    for (int32_t owner = 0; owner < shape->owners; owner++) {
        int64_t *longest = owner < shape->fast_owners ? &header->longest : &header->longest_slow;
        if (spent[owner] > *longest)
            *longest = spent[owner];
    }
}

static void take_tick(struct ticker *ticker, struct slice *slice, int64_t due)
{
    struct plan *plan = ticker->ring->plan;
    const struct shape *shape = &plan->shape;
    const int32_t tick = (int32_t)slice->header->ticks++;
    const int64_t now = monotonic_ns(), late = now > due ? now - due : 0;
    int64_t *row = slice->fast + (long)tick * shape->fast;
    int32_t *spent = slice->spent + (long)tick * shape->owners;
    memset(spent, 0, sizeof *spent * (size_t)shape->owners);
    slice->header->lateness[tick] = note_lateness(ticker, late);
    if (late >= ticker->period)
        reveal_blank(plan, row);
    else
        reveal_pass(plan, tick, row, slice->slow, spent);
    note_spent(slice->header, shape, spent);
}

static void begin_slice(struct ticker *ticker, struct slice *slice, int64_t due)
{
    const int64_t late = monotonic_ns() - due;
    memset(slice->header, 0, sizeof *slice->header);
    slice->header->due = due;
    slice->header->start_ns = wall_ns() - (late > 0 ? late : 0);
    reveal_begin(ticker->ring->plan, slice->slow);
}

static void end_slice(struct ticker *ticker, struct slice *slice)
{
    const struct plan *plan = ticker->ring->plan;
    memcpy(slice->flags, plan->flags, (size_t)plan->shape.owners);
    for (int32_t owner = 0; owner < plan->shape.owners; owner++)
        slice->header->flagged += plan->flags[owner] != 0;
    close_slice(ticker, slice);
}

/* Run the ticks of one slice; return the start of the next one. */
static int64_t take_slice(struct ticker *ticker, int64_t due)
{
    due = skip_standstill(ticker, due);
    if (!sleep_until(ticker, due))
        return due;
    struct slice *slice = open_slice(ticker);
    if (!slice)
        return due + SECOND;
    begin_slice(ticker, slice, due);
    for (int32_t tick = 0; tick < ticker->ring->ticks; tick++) {
        const int64_t at = due + tick * ticker->period;
        if (!sleep_until(ticker, at))
            break;
        take_tick(ticker, slice, at);
    }
    end_slice(ticker, slice);
    return due + SECOND;
}

/* The nice value belongs to the thread: only the thread itself can set it. */
static void begin(struct ticker *ticker)
{
    pthread_mutex_lock(&ticker->mutex);
    if (ticker->refused && setpriority(PRIO_PROCESS, 0, HIGHEST_NICE) == 0)
        ticker->refused = -ticker->refused;
    ticker->begun = 1;
    pthread_mutex_unlock(&ticker->mutex);
    wake(&ticker->news);
}

static int has_begun(struct ticker *ticker)
{
    pthread_mutex_lock(&ticker->mutex);
    const int begun = ticker->begun;
    pthread_mutex_unlock(&ticker->mutex);
    return begun;
}

static void wait_until_begun(struct ticker *ticker)
{
    for (uint32_t seen = ticker->news; !has_begun(ticker); seen = ticker->news)
        sleep_on(&ticker->news, seen, monotonic_ns() + SECOND);
}

static void *run(void *argument)
{
    struct ticker *ticker = argument;
    const int64_t now = monotonic_ns();
    begin(ticker);
    int64_t due = now - (now - ticker->phase) % SECOND + SECOND;
    while (!ticker->stopping)
        due = take_slice(ticker, due);
    pthread_mutex_lock(&ticker->mutex);
    ticker->ended = 1;
    pthread_mutex_unlock(&ticker->mutex);
    wake(&ticker->news);
    return NULL;
}

/* Block all signals, which Python's threads handle; use SCHED_FIFO if the kernel permits it. */
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

static void prepare_lock(struct ticker *ticker)
{
    pthread_mutexattr_t inherit;
    pthread_mutexattr_init(&inherit);
    pthread_mutexattr_setprotocol(&inherit, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&ticker->mutex, &inherit);
    pthread_mutexattr_destroy(&inherit);
}

struct ticker *reveal_ticker_start(struct ring *ring, int64_t phase, int64_t period)
{
    struct ticker *ticker = calloc(1, sizeof *ticker);
    if (!ticker)
        return NULL;
    ticker->ring = ring;
    ticker->phase = phase;
    ticker->period = period;
    prepare_lock(ticker);
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

/* Free the slice returned last; return the next one, if any. */
static struct slice *next_slice(struct ticker *ticker)
{
    struct slice *slice = NULL;
    if (ticker->current)
        ticker->current->busy = 0;
    if (ticker->queued > 0) {
        slice = ticker->queue[ticker->first];
        ticker->first = (ticker->first + 1) % QUEUE;
        ticker->queued--;
    }
    ticker->current = slice;
    return slice;
}

int64_t reveal_ticker_wait(struct ticker *ticker, int64_t timeout_ns)
{
    const int64_t until = monotonic_ns() + timeout_ns;
    for (int patient = 1;;) {
        const uint32_t seen = ticker->news;
        pthread_mutex_lock(&ticker->mutex);
        const struct slice *slice = next_slice(ticker);
        const int over = !patient || ticker->ended || ticker->woken;
        if (!slice && over)
            ticker->woken = 0;
        pthread_mutex_unlock(&ticker->mutex);
        if (slice)
            return slice->name;
        if (over)
            return NO_SLICE;
        patient = sleep_on(&ticker->news, seen, until);
    }
}

void reveal_ticker_wake(struct ticker *ticker)
{
    pthread_mutex_lock(&ticker->mutex);
    ticker->woken = 1;
    pthread_mutex_unlock(&ticker->mutex);
    wake(&ticker->news);
}

int64_t reveal_ticker_reading(struct ticker *ticker)
{
    pthread_mutex_lock(&ticker->mutex);
    const struct ring *ring = ticker->ring;
    pthread_mutex_unlock(&ticker->mutex);
    const int32_t reading = __atomic_load_n(&ring->plan->reading, __ATOMIC_RELAXED);
    return reading ? ring->slices[0].name / POSITIONS * OWNERS + reading - 1 : NO_SLICE;
}

void reveal_ticker_end(struct ticker *ticker)
{
    wake(&ticker->stopping);
}

int32_t reveal_ticker_ended(struct ticker *ticker)
{
    pthread_mutex_lock(&ticker->mutex);
    const int ended = ticker->ended;
    pthread_mutex_unlock(&ticker->mutex);
    return ended;
}

void reveal_ticker_stop(struct ticker *ticker)
{
    wake(&ticker->stopping);
    if (ticker->running)
        pthread_join(ticker->thread, NULL);
    ticker->running = 0;
}

void reveal_ticker_free(struct ticker *ticker)
{
    pthread_mutex_destroy(&ticker->mutex);
    free(ticker);
}
