/* OpenMP, of GNU or LLVM: the size of a team, omp_get_num_procs, and the mask of each thread. */
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void say(const char *phase, const char *of, int count) {
    printf("{\"phase\": \"%s\", \"of\": \"%s\", \"count\": %d}\n", phase, of, count);
    fflush(stdout);
}

static int own_mask(void) {
    cpu_set_t mask;
    return sched_getaffinity(0, sizeof mask, &mask) ? -1 : CPU_COUNT(&mask);
}

/* Looks at the clock now and then: a look is dear on a machine that is emulated. */
static void spin(double until) {
    while (now() < until)
        for (volatile int i = 0; i < 10000; i++)
            ;
}

int main(int count, char **args) {
    if (count != 3)
        return 2;
    say("start", "own mask", own_mask());
    for (double end = now() + atof(args[1]); now() < end;) {
        spin(now() + 1 < end ? now() + 1 : end);
        say("serial", "own mask", own_mask());
    }
    /* LLVM's looks at the machine here, at the first call. */
    say("parallel", "max_threads", omp_get_max_threads());
    say("parallel", "num_procs", omp_get_num_procs());
    double end = now() + atof(args[2]);
#pragma omp parallel
    {
#pragma omp single
        say("parallel", "team", omp_get_num_threads());
        spin(end);
    }
    say("end", "num_procs", omp_get_num_procs());
#pragma omp parallel
#pragma omp critical
    say("end", "mask of a worker", own_mask());
    return 0;
}
