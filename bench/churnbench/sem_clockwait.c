/*
 * Waits of Python for locks, on a clock that libfaketime makes faster.
 *
 * libfaketime 0.9.10 does not replace sem_clockwait(3).  Its deadline is one of the simulated
 * clock; this waits for the time that is left on it, divided by the speed, on the real clock.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000LL

static long long nanoseconds(const struct timespec *time)
{
	return time->tv_sec * NS + time->tv_nsec;
}

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *deadline)
{
	static int (*wait)(sem_t *, clockid_t, const struct timespec *);
	const char *speed = getenv("REVEAL_SPEED");
	struct timespec now, real;
	long long left, due;

	if (!wait)
		wait = dlsym(RTLD_NEXT, "sem_clockwait");
	clock_gettime(clock, &now);
	left = nanoseconds(deadline) - nanoseconds(&now);
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
	due = nanoseconds(&real) + (long long)(left / (speed ? atof(speed) : 1.0));
	real.tv_sec = due / NS;
	real.tv_nsec = due % NS;
	return wait(semaphore, CLOCK_REALTIME, &real);
}
