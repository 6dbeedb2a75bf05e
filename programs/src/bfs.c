// Breadth-first searches of a random graph with hubs: independent reads of 60 MB, few operations.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 1 << 20, EDGES = 7 << 20, SEARCHES = 6 };

static uint64_t state = 88172645463325252u;

static uint32_t draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    // Every fourth end is among the first nodes.
    return (uint32_t)(state >> 20) % (state & 3 ? NODES : NODES / 64);
}

int main(void) {
    uint32_t *first = calloc(NODES + 2, sizeof *first), *to = malloc(EDGES * sizeof *to);
    uint32_t *from = malloc(EDGES * sizeof *from), *queue = malloc(NODES * sizeof *queue);
    int32_t *depth = malloc(NODES * sizeof *depth);
    if (!first || !to || !from || !queue || !depth) return 1;
    for (int e = 0; e < EDGES; e++) first[(from[e] = draw()) + 2]++;
    for (int n = 2; n <= NODES + 1; n++) first[n] += first[n - 1];
    for (int e = 0; e < EDGES; e++) to[first[from[e] + 1]++] = draw();
    for (int search = 0; search < SEARCHES; search++) {
        memset(depth, 0xff, NODES * sizeof *depth);
        uint32_t head = 0, tail = 0;
        queue[tail++] = draw();
        depth[queue[0]] = 0;
        while (head < tail) {
            const uint32_t at = queue[head++];
            for (uint32_t e = first[at]; e < first[at + 1]; e++)
                if (depth[to[e]] < 0) depth[to[e]] = depth[at] + 1, queue[tail++] = to[e];
        }
        printf("%u nodes, %d steps\n", tail, depth[queue[tail - 1]]);
    }
    return 0;
}
