/*
 * Programs that scripts/soak-faults.sh manages.
 *   exec MS COMMAND...      three busy threads; after MS ms of CPU time one that does not lead executes COMMAND
 *   spawn MS N COMMAND...   N processes, each executes COMMAND in a child after MS ms of CPU time,
 *                           and waits for it
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long ms;
static char **command;

/* Spins until the process has used so much CPU time more: a busy machine makes no difference. */
static void busy(long for_ms)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < for_ms);
}

static void *spin(void *unused)
{
    for (;;)
        busy(1000);
    return unused;
}

static void *replace(void *unused)
{
    busy(ms);
    execvp(command[0], command);
    perror(command[0]);
    exit(127);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int children;
    if (argc >= 4 && strcmp(argv[1], "exec") == 0) {
        ms = atol(argv[2]);
        command = argv + 3;
        if (pthread_create(&thread, NULL, spin, NULL) || pthread_create(&thread, NULL, replace, NULL))
            return 1;
        spin(NULL);
    }
    if (argc >= 5 && strcmp(argv[1], "spawn") == 0) {
        command = argv + 4;
        for (children = atoi(argv[3]); children > 0; children--) {
            if (fork() > 0)
                continue;
            busy(atol(argv[2]));
            if (fork() == 0) {
                execvp(command[0], command);
                _exit(127);
            }
            wait(NULL);
            _exit(0);
        }
        while (wait(NULL) > 0)
            ;
        return 0;
    }
    fprintf(stderr, "usage: see soak-faults.c\n");
    return 2;
}
