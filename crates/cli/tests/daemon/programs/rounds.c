/* Reads how many threads shall work, a number in each line, and says when they do. At 0 it prints
 * how many worked and what each of them computed, again and again. */
#include <omp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static volatile uint32_t seed = 1;

static uint32_t computed(void) {
    uint32_t x = seed;
    for (int round = 0; round < 1000000; round++)
        x = x * 1664525u + 1013904223u;
    return x;
}

static int next_count(void) {
    int count = 0;
    return scanf("%d", &count) == 1 ? count : 0;
}

int main(void) {
    const uint32_t first = computed();
    int count = next_count(), next = 0, most = 0;
    for (; count > 0; count = next) {
        atomic_int end = 0, working = 0;
        most = count;
        /* One thread more, which reads the next number meanwhile. */
#pragma omp parallel num_threads(count + 1)
        if (omp_get_thread_num() == 0) {
            while (atomic_load(&working) < count)
                ;
            printf("%d\n", count);
            fflush(stdout);
            next = next_count();
            atomic_store(&end, 1);
        } else {
            atomic_fetch_add(&working, 1);
            while (!atomic_load(&end))
                if (computed() != first)
                    exit(1);
        }
    }
    printf("%d %u\n", most, first);
    return 0;
}
