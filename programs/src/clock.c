/* A clock that stands still, to be loaded before the C library: programs that print how long they
 * took execute the same instructions each time then. For programs that wait for no time to pass. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

/* The start of 2020, and of all processes. */
enum { SECONDS = 1577836800 };

int clock_gettime(clockid_t which, struct timespec *to) {
    *to = (struct timespec){.tv_sec = which == CLOCK_REALTIME ? SECONDS : 0};
    return 0;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone) {
    *to = (struct timeval){.tv_sec = SECONDS};
    if (zone) memset(zone, 0, sizeof(struct timezone));
    return 0;
}

time_t time(time_t *to) {
    if (to) *to = SECONDS;
    return SECONDS;
}

clock_t clock(void) {
    return 0;
}

clock_t times(struct tms *to) {
    if (to) *to = (struct tms){0};
    return 0;
}

int getrusage(int who, struct rusage *to) {
    (void)who;
    memset(to, 0, sizeof *to);
    return 0;
}
