/* Lattice Boltzmann flow around an obstacle, nine velocities in a plane:
 * reads and writes 2 x 9 arrays of doubles, far larger than any cache. */
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 1024, HEIGHT = 512, STEPS = 12 };
static const int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
static const int cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
static const int back[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
static const double weight[9] = {4. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9,
                                 1. / 36, 1. / 36, 1. / 36, 1. / 36};

int main(void) {
    size_t cells = (size_t)WIDTH * HEIGHT;
    double *from = malloc(9 * cells * sizeof *from), *to = malloc(9 * cells * sizeof *to);
    if (!from || !to) return 1;
    for (int k = 0; k < 9; k++)
        for (size_t i = 0; i < cells; i++) from[k * cells + i] = weight[k] * (k == 1 ? 1.1 : 1.0);
    for (int step = 0; step < STEPS; step++) {
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                size_t here = (size_t)y * WIDTH + x;
                double f[9], rho = 0, ux = 0, uy = 0;
                for (int k = 0; k < 9; k++) {
                    int px = (x - cx[k] + WIDTH) % WIDTH, py = (y - cy[k] + HEIGHT) % HEIGHT;
                    f[k] = from[k * cells + (size_t)py * WIDTH + px];
                    rho += f[k];
                    ux += cx[k] * f[k];
                    uy += cy[k] * f[k];
                }
                int dx = x - WIDTH / 4, dy = y - HEIGHT / 2;
                if (dx * dx + dy * dy < 40 * 40) {
                    for (int k = 0; k < 9; k++) to[k * cells + here] = f[back[k]];
                    continue;
                }
                ux /= rho;
                uy /= rho;
                double square = 1.5 * (ux * ux + uy * uy);
                for (int k = 0; k < 9; k++) {
                    double along = 3 * (cx[k] * ux + cy[k] * uy);
                    double rest = weight[k] * rho * (1 + along + along * along / 2 - square);
                    to[k * cells + here] = f[k] + (rest - f[k]) / 0.6;
                }
            }
        double *other = from;
        from = to;
        to = other;
    }
    double sum = 0;
    for (size_t i = 0; i < cells; i++) sum += from[cells + i];
    printf("%.9f\n", sum);
    return 0;
}
