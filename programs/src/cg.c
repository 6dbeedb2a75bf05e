/* Conjugate gradients on a sparse matrix with 27 random entries a row:
 * irregular reads of a vector of 4 MB, streamed reads of a matrix of 170 MB. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 1 << 19, PER_ROW = 27, ROUNDS = 20 };

static double *vector(void) {
    double *v = calloc(ROWS, sizeof *v);
    if (!v) exit(1);
    return v;
}

static double dot(const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < ROWS; i++) sum += a[i] * b[i];
    return sum;
}

int main(void) {
    uint32_t *column = malloc((size_t)ROWS * PER_ROW * sizeof *column);
    double *entry = malloc((size_t)ROWS * PER_ROW * sizeof *entry);
    if (!column || !entry) return 1;
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < (size_t)ROWS * PER_ROW; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        column[i] = state % ROWS;
        entry[i] = -1e-3 * (state >> 40 & 255) / 255;
    }
    double *x = vector(), *r = vector(), *p = vector(), *q = vector();
    for (int i = 0; i < ROWS; i++) r[i] = p[i] = 1 + i % 7;
    double norm = dot(r, r);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t row = 0; row < ROWS; row++) {
            double sum = 4 * p[row];
            for (size_t k = row * PER_ROW; k < (row + 1) * PER_ROW; k++)
                sum += entry[k] * p[column[k]];
            q[row] = sum;
        }
        double step = norm / dot(p, q);
        for (int i = 0; i < ROWS; i++) x[i] += step * p[i], r[i] -= step * q[i];
        double next = dot(r, r), ratio = next / norm;
        for (int i = 0; i < ROWS; i++) p[i] = r[i] + ratio * p[i];
        norm = next;
    }
    printf("%.9g\n", norm);
    return 0;
}
