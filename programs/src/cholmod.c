// Sparse factors by CHOLMOD, then many solutions by them: a Poisson equation in three dimensions.
#include <stdio.h>
#include <suitesparse/cholmod.h>

enum { SIDE = 20, SOLUTIONS = 40 };

static int place(int x, int y, int z) { return (x * SIDE + y) * SIDE + z; }

int main(void) {
    cholmod_common common;
    cholmod_start(&common);
    common.supernodal = CHOLMOD_SIMPLICIAL;
    common.nmethods = 1;
    common.method[0].ordering = CHOLMOD_AMD;
    const int n = SIDE * SIDE * SIDE;
    cholmod_triplet *entries = cholmod_allocate_triplet(n, n, 4 * n, 1, CHOLMOD_REAL, &common);
    int *row = entries->i, *column = entries->j, used = 0;
    double *value = entries->x;
    for (int x = 0; x < SIDE; x++)
        for (int y = 0; y < SIDE; y++)
            for (int z = 0; z < SIDE; z++) {
                const int at = place(x, y, z);
                row[used] = column[used] = at, value[used++] = 6.1;
                if (x + 1 < SIDE) row[used] = at, column[used] = place(x + 1, y, z), value[used++] = -1;
                if (y + 1 < SIDE) row[used] = at, column[used] = place(x, y + 1, z), value[used++] = -1;
                if (z + 1 < SIDE) row[used] = at, column[used] = place(x, y, z + 1), value[used++] = -1;
            }
    entries->nnz = used;
    cholmod_sparse *matrix = cholmod_triplet_to_sparse(entries, used, &common);
    cholmod_factor *factor = cholmod_analyze(matrix, &common);
    cholmod_factorize(matrix, factor, &common);
    cholmod_dense *right = cholmod_ones(n, 1, CHOLMOD_REAL, &common);
    for (int solution = 0; solution < SOLUTIONS; solution++) {
        cholmod_dense *next = cholmod_solve(CHOLMOD_A, factor, right, &common);
        cholmod_free_dense(&right, &common);
        right = next;
    }
    printf("%.12g\n", ((double *)right->x)[n / 2]);
    cholmod_free_dense(&right, &common);
    cholmod_finish(&common);
    return 0;
}
