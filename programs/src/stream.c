/* Copy, scale, add and triad over three arrays of 64 MB. */
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 8 << 20, ROUNDS = 14 };

int main(void) {
    double *a = malloc(LENGTH * sizeof *a), *b = malloc(LENGTH * sizeof *b),
           *c = malloc(LENGTH * sizeof *c);
    if (!a || !b || !c) return 1;
    for (long i = 0; i < LENGTH; i++) a[i] = 1, b[i] = 2, c[i] = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (long i = 0; i < LENGTH; i++) c[i] = a[i];
        for (long i = 0; i < LENGTH; i++) b[i] = 3 * c[i];
        for (long i = 0; i < LENGTH; i++) c[i] = a[i] + b[i];
        for (long i = 0; i < LENGTH; i++) a[i] = b[i] + 0.25 * c[i];
        for (long i = 0; i < LENGTH; i += 512) a[i] *= 1e-1;
    }
    printf("%.9g\n", a[LENGTH / 3]);
    return 0;
}
