/* SciMark-like kernels that fit the caches: fast Fourier transform, dense LU
 * decomposition, successive over-relaxation, Monte Carlo integration. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

enum { POINTS = 1 << 10, ORDER = 100, GRID = 100 };
static double re[POINTS], im[POINTS], matrix[ORDER][ORDER], grid[GRID][GRID];
static uint64_t state = 88172645463325252u;

static double draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

static void transform(void) {
    for (unsigned i = 1, j = 0; i < POINTS; i++) {
        unsigned bit = POINTS >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i < j) {
            double t = re[i];
            re[i] = re[j], re[j] = t;
            t = im[i], im[i] = im[j], im[j] = t;
        }
    }
    for (int length = 2; length <= POINTS; length <<= 1) {
        double angle = -6.283185307179586 / length, wr = cos(angle), wi = sin(angle);
        for (int i = 0; i < POINTS; i += length) {
            double cr = 1, ci = 0;
            for (int k = i; k < i + length / 2; k++) {
                int m = k + length / 2;
                double tr = re[m] * cr - im[m] * ci, ti = re[m] * ci + im[m] * cr;
                re[m] = re[k] - tr, im[m] = im[k] - ti;
                re[k] += tr, im[k] += ti;
                double next = cr * wr - ci * wi;
                ci = cr * wi + ci * wr, cr = next;
            }
        }
    }
}

static double decompose(void) {
    for (int i = 0; i < ORDER; i++)
        for (int j = 0; j < ORDER; j++) matrix[i][j] = draw() + (i == j ? ORDER : 0);
    for (int k = 0; k < ORDER; k++)
        for (int i = k + 1; i < ORDER; i++) {
            double factor = matrix[i][k] /= matrix[k][k];
            for (int j = k + 1; j < ORDER; j++) matrix[i][j] -= factor * matrix[k][j];
        }
    return matrix[ORDER - 1][ORDER - 1];
}

int main(void) {
    double sum = 0;
    for (int round = 0; round < 5; round++) {
        for (int n = 0; n < 400; n++) {
            for (int i = 0; i < POINTS; i++) re[i] = draw(), im[i] = 0;
            transform();
            sum += re[1];
        }
        for (int n = 0; n < 60; n++) sum += decompose();
        for (int n = 0; n < 2000; n++)
            for (int y = 1; y < GRID - 1; y++)
                for (int x = 1; x < GRID - 1; x++)
                    grid[y][x] = 0.3125 * (grid[y - 1][x] + grid[y + 1][x] + grid[y][x - 1] +
                                           grid[y][x + 1]) - 0.25 * grid[y][x] + 1e-3;
        long inside = 0;
        for (int n = 0; n < 4000000; n++) {
            double x = draw(), y = draw();
            inside += x * x + y * y <= 1;
        }
        sum += (double)inside * 1e-6 + grid[50][50];
    }
    printf("%.9g\n", sum);
    return 0;
}
