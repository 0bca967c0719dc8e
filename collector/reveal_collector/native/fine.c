/* The thread of the fine lane: reads a number from each of a few files, on a grid finer than the
 * ticks.
 *
 * The caller owns the rings: slots x ring of int64; step n is at index n % ring.  A failed reading
 * leaves an older step number at its index, which marks it as missing.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
#define TEXT 512

struct slot {
    int fd; /* -1: unused */
    int32_t skip;    /* bytes before the number */
    int64_t divisor; /* from the number's unit to us */
};

struct fine {
    pthread_t thread;
    pthread_mutex_t lock; /* protects slots, active and stopping */
    pthread_cond_t changed;
    int64_t *steps, *used;
    int64_t period;
    int32_t count, ring, active;
    int stopping;
    struct slot slots[];
};

static int64_t now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * SECOND + at.tv_nsec;
}

static int number(const struct slot *slot, int64_t *value)
{
    char text[TEXT];
    ssize_t got = pread(slot->fd, text, sizeof text, 0);
    ssize_t at = slot->skip;
    int64_t found = 0;
    if (got <= at || text[at] < '0' || text[at] > '9')
        return 0;
    for (; at < got && text[at] >= '0' && text[at] <= '9'; at++)
        if (__builtin_mul_overflow(found, 10, &found) ||
            __builtin_add_overflow(found, text[at] - '0', &found))
            return 0;
    *value = found / slot->divisor;
    return 1;
}

static void sample(struct fine *fine, int64_t step)
{
    for (int32_t at = 0; at < fine->count; at++) {
        int64_t index = (int64_t)at * fine->ring + step % fine->ring, value;
        if (fine->slots[at].fd < 0 || !number(&fine->slots[at], &value))
            continue;
        fine->used[index] = value;
        __atomic_store_n(&fine->steps[index], step, __ATOMIC_RELEASE);
    }
}

static void *run(void *given)
{
    struct fine *fine = given;
    struct sched_param first = {.sched_priority = 1};
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &first); /* if refused: readings may be late */
    pthread_mutex_lock(&fine->lock);
    while (!fine->stopping) {
        if (!fine->active) {
            pthread_cond_wait(&fine->changed, &fine->lock);
            continue;
        }
        int64_t step = now_ns() / fine->period + 1, due = step * fine->period;
        struct timespec at = {due / SECOND, due % SECOND};
        pthread_mutex_unlock(&fine->lock);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
            ;
        pthread_mutex_lock(&fine->lock);
        if (now_ns() < due + fine->period) /* a later reading would belong to another step */
            sample(fine, step);
    }
    pthread_mutex_unlock(&fine->lock);
    return NULL;
}

/* Start the thread; NULL without memory or a thread. */
struct fine *reveal_fine_start(int64_t *steps, int64_t *used, int32_t count, int32_t ring,
                               int64_t period)
{
    struct fine *fine = calloc(1, sizeof *fine + (size_t)count * sizeof(struct slot));
    if (!fine)
        return NULL;
    *fine = (struct fine){.steps = steps, .used = used, .period = period, .count = count,
                          .ring = ring};
    for (int32_t at = 0; at < count; at++)
        fine->slots[at].fd = -1;
    pthread_mutex_init(&fine->lock, NULL);
    pthread_cond_init(&fine->changed, NULL);
    if (pthread_create(&fine->thread, NULL, run, fine)) {
        free(fine);
        return NULL;
    }
    return fine;
}

/* Read this file from the next step on; -1 frees the slot.  The old file may be closed then. */
void reveal_fine_follow(struct fine *fine, int32_t at, int fd, int32_t skip, int64_t divisor)
{
    pthread_mutex_lock(&fine->lock);
    fine->active += (fd >= 0) - (fine->slots[at].fd >= 0);
    fine->slots[at] = (struct slot){fd, skip, divisor};
    pthread_cond_signal(&fine->changed);
    pthread_mutex_unlock(&fine->lock);
}

void reveal_fine_stop(struct fine *fine)
{
    pthread_mutex_lock(&fine->lock);
    fine->stopping = 1;
    pthread_cond_signal(&fine->changed);
    pthread_mutex_unlock(&fine->lock);
    pthread_join(fine->thread, NULL);
    pthread_cond_destroy(&fine->changed);
    pthread_mutex_destroy(&fine->lock);
    free(fine);
}
