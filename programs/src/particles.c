// Particles in a field on a grid: each reads the cells around it and adds to them; roots and quotients.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 700, PARTICLES = 900000, STEPS = 8 };

static struct { float x, y, vx, vy; } particle[PARTICLES];
static double charge[SIDE][SIDE], field[SIDE][SIDE];

static float inside(float x) {
    const float most = SIDE - 3;
    return x < 1 ? 1 : x > most ? most : x;
}

int main(void) {
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < PARTICLES; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        particle[i].x = inside(state % 100000 * (SIDE / 1e5f));
        particle[i].y = inside(state / 100000 % 100000 * (SIDE / 1e5f));
    }
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < PARTICLES; i++) {
            const int x = particle[i].x, y = particle[i].y;
            const double fx = particle[i].x - x, fy = particle[i].y - y;
            charge[x][y] += (1 - fx) * (1 - fy), charge[x + 1][y] += fx * (1 - fy);
            charge[x][y + 1] += (1 - fx) * fy, charge[x + 1][y + 1] += fx * fy;
        }
        for (int x = 1; x < SIDE - 1; x++)
            for (int y = 1; y < SIDE - 1; y++)
                field[x][y] = 0.25 * (field[x - 1][y] + field[x][y - 1] + field[x + 1][y] + field[x][y + 1])
                              + charge[x][y], charge[x][y] = 0;
        for (int i = 0; i < PARTICLES; i++) {
            const int x = particle[i].x, y = particle[i].y;
            const float ax = field[x + 1][y] - field[x - 1][y], ay = field[x][y + 1] - field[x][y - 1];
            particle[i].vx += 0.01f * ax, particle[i].vy += 0.01f * ay;
            // As fast as light at most.
            const float speed = sqrtf(1 + particle[i].vx * particle[i].vx + particle[i].vy * particle[i].vy);
            particle[i].x = inside(particle[i].x + particle[i].vx / speed);
            particle[i].y = inside(particle[i].y + particle[i].vy / speed);
        }
    }
    double sum = 0;
    for (int i = 0; i < PARTICLES; i++) sum += particle[i].x * particle[i].vy;
    printf("%.9g\n", sum);
    return 0;
}
