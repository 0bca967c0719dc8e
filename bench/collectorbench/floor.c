/* The kernel's own price of reading telemetry: every file kept open, read whole with pread at a
 * fixed rate, nothing parsed.  The denominator of "x floor".
 *
 *   cc -O2 -o floor floor.c && ./floor HZ SECONDS FILE...
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };

static long read_whole(int fd, char *into)
{
    long at = 0, got;
    while (at < CHUNK && (got = pread(fd, into + at, CHUNK - at, at)) > 0)
        at += got;
    return at;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: floor HZ SECONDS FILE...\n");
        return 2;
    }
    const double hz = atof(argv[1]);
    const long passes = (long)(hz * atof(argv[2])), step = (long)(1e9 / hz);
    const int files = argc - 3;
    int *fds = malloc(files * sizeof *fds);
    char *text = malloc(CHUNK);
    for (int i = 0; i < files; i++)
        fds[i] = open(argv[3 + i], O_RDONLY | O_CLOEXEC);
    struct timespec tick;
    clock_gettime(CLOCK_MONOTONIC, &tick);
    long bytes = 0;
    for (long pass = 0; pass < passes; pass++) {
        tick.tv_nsec += step;
        tick.tv_sec += tick.tv_nsec / 1000000000L;
        tick.tv_nsec %= 1000000000L;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &tick, NULL);
        for (int i = 0; i < files; i++)
            if (fds[i] >= 0)
                bytes += read_whole(fds[i], text);
    }
    printf("%ld bytes a pass\n", passes ? bytes / passes : 0);
    return 0;
}
