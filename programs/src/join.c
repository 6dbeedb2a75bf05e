// A hash join: 4 MB of rows are filled into a table of 16 MB that lookups, eight at a time, then
// find; rows that match are written out.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUILD = 1 << 19, PROBE = 12 << 20, SLOTS = 1 << 21, AT_ONCE = 8 };

static uint32_t hash(uint32_t key) {
    key ^= key >> 16, key *= 0x7feb352dU, key ^= key >> 15, key *= 0x846ca68bU;
    return key ^ key >> 16;
}

int main(void) {
    uint64_t *table = calloc(SLOTS, sizeof *table), *out = malloc(PROBE * sizeof *out);
    if (!table || !out) return 1;
    uint32_t state = 12345;
    for (int i = 0; i < BUILD; i++) {
        state = state * 1664525 + 1013904223;
        const uint32_t key = (state >> 12) + 1;
        uint32_t at = hash(key) % SLOTS;
        while (table[at]) at = (at + 1) % SLOTS;
        table[at] = (uint64_t)key << 32 | (uint32_t)i;
    }
    size_t found = 0;
    for (int i = 0; i < PROBE; i += AT_ONCE) {
        uint32_t key[AT_ONCE], at[AT_ONCE];
        for (int j = 0; j < AT_ONCE; j++) {
            state = state * 1664525 + 1013904223;
            key[j] = (state >> 12) + 1, at[j] = hash(key[j]) % SLOTS;
        }
        for (int j = 0; j < AT_ONCE; j++)
            while (table[at[j]]) {
                if (table[at[j]] >> 32 == key[j]) { out[found++] = table[at[j]] ^ i; break; }
                at[j] = (at[j] + 1) % SLOTS;
            }
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < found; i += 64) sum += out[i];
    printf("%zu rows, %llu\n", found, (unsigned long long)sum);
    return 0;
}
