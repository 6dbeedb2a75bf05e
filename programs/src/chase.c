/* Follows one random cycle through 96 MB, with a little work at each stop. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 1 << 20, HOPS = 40000000 };
struct node { struct node *next; uint64_t value[11]; };

int main(void) {
    struct node *nodes = malloc(NODES * sizeof *nodes);
    uint32_t *order = malloc(NODES * sizeof *order);
    if (!nodes || !order) return 1;
    uint64_t state = 88172645463325252u;
    for (uint32_t i = 0; i < NODES; i++) order[i] = i;
    for (uint32_t i = NODES - 1; i > 0; i--) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        uint32_t j = state % (i + 1), kept = order[i];
        order[i] = order[j], order[j] = kept;
    }
    for (uint32_t i = 0; i < NODES; i++) {
        nodes[order[i]].next = &nodes[order[(i + 1) % NODES]];
        for (int k = 0; k < 11; k++) nodes[i].value[k] = i + k;
    }
    uint64_t sum = 0;
    struct node *at = nodes;
    for (long hop = 0; hop < HOPS; hop++) {
        for (int k = 0; k < 11; k += 3) sum = sum * 31 + at->value[k];
        at = at->next;
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
