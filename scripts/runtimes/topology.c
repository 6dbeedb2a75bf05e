/* hwloc: fifty topologies, one after the other, while other threads run. To look at CPUs, hwloc binds the calling
   thread to each of them and sets its mask back to what it read before: by /proc and /sys in turn with by binding. */
#define _GNU_SOURCE
#include <hwloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile int is_over;

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

static int load(void) {
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) || hwloc_topology_load(topology))
        return -1;
    int found = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    hwloc_topology_destroy(topology);
    return found;
}

/* Looks at the clock now and then: a look is dear on a machine that is emulated. */
static void work(double seconds) {
    for (double end = now() + seconds; now() < end;)
        for (volatile int i = 0; i < 10000; i++)
            ;
}

static void *spin(void *unused) {
    (void)unused;
    while (!is_over)
        ;
    return NULL;
}

int main(int count, char **args) {
    if (count != 3)
        return 2;
    say("start", "own mask", own_mask());
    work(atof(args[1]));
    say("serial", "own mask", own_mask());
    pthread_t thread;
    if (pthread_create(&thread, NULL, spin, NULL))
        return 1;
    double wait = atof(args[2]) / 50;
    for (int i = 0; i < 50; i++) {
        work(wait);
        setenv("HWLOC_COMPONENTS", i % 2 ? "x86,stop" : "linux,stop", 1);
        say("parallel", "PUs", load());
        say("parallel", "own mask", own_mask());
    }
    is_over = 1;
    pthread_join(thread, NULL);
    say("end", "own mask", own_mask());
    return 0;
}
