/* `crowd sleep THREADS MILLISECONDS`: threads that sleep and wake up, until the process is killed.
 * `crowd spawn COUNT`: so many processes that end at once, one after the other. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct timespec pause_time;

static void *sleep_again(void *unused)
{
    for (;;)
        nanosleep(&pause_time, NULL);
    return unused;
}

static int sleep_threads(int count, long milliseconds)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pause_time.tv_sec = milliseconds / 1000;
    pause_time.tv_nsec = milliseconds % 1000 * 1000000;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    while (count-- > 1)
        if (pthread_create(&thread, &attributes, sleep_again, NULL))
            return 1;
    sleep_again(NULL);
    return 0;
}

static int spawn(long count)
{
    while (count-- > 0) {
        pid_t child = vfork();

        if (child == 0)
            _exit(0);
        if (child < 0 || waitpid(child, NULL, 0) != child)
            return 1;
    }
    return 0;
}

int main(int count, char **arguments)
{
    if (count == 4 && !strcmp(arguments[1], "sleep"))
        return sleep_threads(atoi(arguments[2]), atol(arguments[3]));
    if (count == 3 && !strcmp(arguments[1], "spawn"))
        return spawn(atol(arguments[2]));
    fprintf(stderr, "crowd: usage: crowd sleep THREADS MILLISECONDS | crowd spawn COUNT\n");
    return 2;
}
