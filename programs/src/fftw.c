// A spectral solver of the heat equation: FFTW over a grid that no cache holds.
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <fftw3.h>

enum { SIDE = 150, STEPS = 2 };

int main(void) {
    const size_t cells = (size_t)SIDE * SIDE * SIDE;
    double complex *field = fftw_malloc(cells * sizeof *field);
    double complex *image = fftw_malloc(cells * sizeof *image);
    if (!field || !image) return 1;
    fftw_plan there = fftw_plan_dft_3d(SIDE, SIDE, SIDE, field, image, FFTW_FORWARD, FFTW_ESTIMATE);
    fftw_plan back = fftw_plan_dft_3d(SIDE, SIDE, SIDE, image, field, FFTW_BACKWARD, FFTW_ESTIMATE);
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < cells; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        field[i] = (double)(state >> 11) / 9007199254740992.0;
    }
    for (int step = 0; step < STEPS; step++) {
        fftw_execute(there);
        for (int x = 0; x < SIDE; x++)
            for (int y = 0; y < SIDE; y++)
                for (int z = 0; z < SIDE; z++) {
                    const int a = x > SIDE / 2 ? SIDE - x : x, b = y > SIDE / 2 ? SIDE - y : y,
                              c = z > SIDE / 2 ? SIDE - z : z;
                    image[((size_t)x * SIDE + y) * SIDE + z] /= (1 + 0.01 * (a * a + b * b + c * c)) * cells;
                }
        fftw_execute(back);
    }
    printf("%.12g\n", creal(field[12345]));
}
