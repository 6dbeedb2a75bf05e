/* Prints how many processors and threads OpenMP finds. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    int team = 0;
#pragma omp parallel
#pragma omp single
    team = omp_get_num_threads();
    printf("%d %d %d\n", omp_get_num_procs(), omp_get_max_threads(), team);
    return 0;
}
