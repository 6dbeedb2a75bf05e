// A road-like graph, numbered at random, is cut in parts by METIS: many small steps over 10 MB.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <metis.h>

enum { SIDE = 330, NODES = SIDE * SIDE, EDGES = 3 * NODES };

static uint64_t state = 88172645463325252u;
static idx_t from[EDGES], to[EDGES], name[NODES], first[NODES + 2], near[2 * EDGES], part[NODES];
static int edges;

static int draw(int limit) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (int)(state % (uint64_t)limit);
}

static void connect(int a, int b) {
    if (a != b && b < NODES) from[edges] = name[a], to[edges++] = name[b];
}

int main(void) {
    for (int i = 0; i < NODES; i++) {
        const int other = draw(i + 1);
        name[i] = name[other], name[other] = i;
    }
    for (int at = 0; at < NODES; at++) {
        if (at % SIDE + 1 < SIDE && draw(10)) connect(at, at + 1);
        if (draw(10)) connect(at, at + SIDE);
        if (!draw(4)) connect(at, at + SIDE * (1 + draw(40)) + draw(40));
        if (!draw(16)) connect(at, draw(NODES));
    }
    for (int e = 0; e < edges; e++) first[from[e] + 2]++, first[to[e] + 2]++;
    for (int i = 2; i < NODES + 2; i++) first[i] += first[i - 1];
    for (int e = 0; e < edges; e++) {
        near[first[from[e] + 1]++] = to[e];
        near[first[to[e] + 1]++] = from[e];
    }
    idx_t nodes = NODES, weights = 1, parts = 48, cut;
    if (METIS_PartGraphKway(&nodes, &weights, first, near, NULL, NULL, NULL, &parts, NULL, NULL, NULL,
                            &cut, part) != METIS_OK)
        return 1;
    printf("%d edges, %d cut\n", edges, (int)cut);
    return 0;
}
