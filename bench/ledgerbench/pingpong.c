/* Two threads of one CPU wake each other through pipes: `pingpong SECONDS PAUSE_US`.
 * Prints round trips and the CPU time of the process in ns. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int there[2], back[2];

static long long now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void *answer(void *unused)
{
    char byte;
    while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
        ;
    return unused;
}

int main(int count, char **arguments)
{
    double seconds = count > 1 ? atof(arguments[1]) : 1;
    useconds_t pause_us = count > 2 ? (useconds_t)atoi(arguments[2]) : 0;
    long long end, trips = 0;
    char byte = 0;
    cpu_set_t cpus;
    pthread_t thread;

    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
    if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, answer, NULL))
        return 1;
    end = now(CLOCK_MONOTONIC) + (long long)(seconds * 1e9);
    while (now(CLOCK_MONOTONIC) < end) {
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            return 1;
        trips++;
        if (pause_us)
            usleep(pause_us);
    }
    printf("%lld %lld\n", trips, now(CLOCK_PROCESS_CPUTIME_ID));
    return 0;
}
