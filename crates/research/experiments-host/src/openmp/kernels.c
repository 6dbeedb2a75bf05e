/*
 * Well-known OpenMP kernels, for programs that have serial and parallel phases of
 * their own accord:
 *
 *     kernels NAME STEPS START
 *
 * carries out STEPS steps of a kernel from the time of day START on (0: at once) and
 * prints when it began and ended, how long it was in parallel regions, the CPU time
 * that it took, and a checksum that depends on the kernel and STEPS alone. Loops are
 * scheduled dynamically, as Morad et al., section 3, have them, some rows at a time.
 *
 * Sizes: a parallel region takes some milliseconds. Waking a thread takes up to a tenth
 * of one where CPUs are virtual, and threads that take turns row by row fetch what others
 * have just written; programs of finer grain than these are slower with several threads
 * than with one.
 */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double in_parallel, entered;

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void enter(void) { entered = now(CLOCK_MONOTONIC); }
static void leave(void) { in_parallel += now(CLOCK_MONOTONIC) - entered; }

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double unit(uint64_t x) { return (mix(x) >> 11) * 0x1p-53; }

static double *reals(size_t n, uint64_t seed) {
    double *all = malloc(n * sizeof *all);
    if (!all) exit(2);
    for (size_t i = 0; i < n; i++) all[i] = unit(seed + i);
    return all;
}

/* Five-point stencil, 8 sweeps a step. */
static double jacobi(int steps) {
    enum { N = 1536 };
    double *a = reals(N * N, 1), *b = reals(N * N, 1);
    for (int s = 0; s < steps * 8; s++) {
        enter();
#pragma omp parallel for schedule(dynamic, 8)
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                b[i * N + j] = 0.25 * (a[(i - 1) * N + j] + a[(i + 1) * N + j] + a[i * N + j - 1] +
                                       a[i * N + j + 1]);
        leave();
        double *t = a;
        a = b, b = t;
    }
    return a[N * N / 2 + N / 3];
}

/* Conjugate gradients on a two-dimensional grid, 8 iterations a step; dot products are serial. */
static double cg(int steps) {
    enum { N = 1024, M = N * N };
    double *x = calloc(M, sizeof *x), *r = reals(M, 3), *p = malloc(M * sizeof *p), *q = calloc(M, sizeof *q);
    if (!x || !p || !q) exit(2);
    memcpy(p, r, M * sizeof *p);
    double rr = 0;
    for (int i = 0; i < M; i++) rr += r[i] * r[i];
    for (int s = 0; s < steps * 8; s++) {
        enter();
#pragma omp parallel for schedule(dynamic, 8)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                int k = i * N + j;
                double sum = 4.01 * p[k];
                if (i) sum -= p[k - N];
                if (i < N - 1) sum -= p[k + N];
                if (j) sum -= p[k - 1];
                if (j < N - 1) sum -= p[k + 1];
                q[k] = sum;
            }
        leave();
        double pq = 0, next = 0;
        for (int i = 0; i < M; i++) pq += p[i] * q[i];
        double alpha = rr / pq;
        for (int i = 0; i < M; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
            next += r[i] * r[i];
        }
        double beta = next / rr;
        rr = next;
        for (int i = 0; i < M; i++) p[i] = r[i] + beta * p[i];
        if (rr < 1e-9) {
            free(r);
            r = reals(M, 3 + s);
            memcpy(p, r, M * sizeof *p);
            memset(x, 0, M * sizeof *x);
            rr = 0;
            for (int i = 0; i < M; i++) rr += r[i] * r[i];
        }
    }
    return x[M / 2] + rr;
}

/* Blocked LU factorisation with partial pivoting: one thread factors each panel. */
static double lu(int steps) {
    enum { N = 768, B = 48 };
    double last = 0;
    for (int s = 0; s < steps; s++) {
        double *a = reals(N * N, 5 + s);
        for (int from = 0; from < N; from += B) {
            int to = from + B;
            for (int k = from; k < to; k++) {
                int pivot = k;
                for (int i = k + 1; i < N; i++)
                    if (fabs(a[i * N + k]) > fabs(a[pivot * N + k])) pivot = i;
                for (int j = 0; j < N; j++) {
                    double t = a[k * N + j];
                    a[k * N + j] = a[pivot * N + j];
                    a[pivot * N + j] = t;
                }
                for (int i = k + 1; i < N; i++) {
                    double f = a[i * N + k] /= a[k * N + k];
                    for (int j = k + 1; j < to; j++) a[i * N + j] -= f * a[k * N + j];
                }
            }
            for (int k = from; k < to; k++)
                for (int i = k + 1; i < to; i++)
                    for (int j = to; j < N; j++) a[i * N + j] -= a[i * N + k] * a[k * N + j];
            enter();
#pragma omp parallel for schedule(dynamic, 8)
            for (int i = to; i < N; i++)
                for (int k = from; k < to; k++) {
                    double f = a[i * N + k];
                    for (int j = to; j < N; j++) a[i * N + j] -= f * a[k * N + j];
                }
            leave();
        }
        last = a[N * N - 1];
        free(a);
    }
    return last;
}

/* Gravity between all pairs. */
static double nbody(int steps) {
    enum { N = 2000 };
    double *x = reals(3 * N, 7), *v = calloc(3 * N, sizeof *v), *f = calloc(3 * N, sizeof *f);
    if (!v || !f) exit(2);
    for (int s = 0; s < steps; s++) {
        enter();
#pragma omp parallel for schedule(dynamic, 8)
        for (int i = 0; i < N; i++) {
            double sum[3] = {0};
            for (int j = 0; j < N; j++) {
                double d[3], r = 1e-3;
                for (int k = 0; k < 3; k++) d[k] = x[3 * j + k] - x[3 * i + k], r += d[k] * d[k];
                double w = 1 / (r * sqrt(r));
                for (int k = 0; k < 3; k++) sum[k] += w * d[k];
            }
            for (int k = 0; k < 3; k++) f[3 * i + k] = sum[k];
        }
        leave();
        for (int i = 0; i < 3 * N; i++) v[i] += 1e-9 * f[i], x[i] += 1e-3 * v[i];
    }
    return x[N];
}

/* Frames of the Mandelbrot set; a serial pass makes a histogram of each. */
static double mandelbrot(int steps) {
    enum { N = 256, DEEP = 160 };
    static uint8_t image[N * N];
    static uint64_t counts[256];
    for (int s = 0; s < steps; s++) {
        double zoom = 1.0 / (1 + s % 20);
        enter();
#pragma omp parallel for schedule(dynamic, 8)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                double cx = -0.743 + zoom * (j - N / 2) * 3 / N, cy = 0.131 + zoom * (i - N / 2) * 3 / N;
                double x = 0, y = 0;
                int n = 0;
                for (; n < DEEP && x * x + y * y < 4; n++) {
                    double t = x * x - y * y + cx;
                    y = 2 * x * y + cy, x = t;
                }
                image[i * N + j] = n;
            }
        leave();
        for (int pass = 0; pass < 40; pass++)
            for (int i = 0; i < N * N; i++) counts[image[i]] += mix(i + pass) & 7;
    }
    double sum = 0;
    for (int i = 0; i < 256; i++) sum += counts[i] * (double)i;
    return sum;
}

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Blocks are sorted in parallel, then merged by one thread. */
static double sort(int steps) {
    enum { BLOCKS = 16, LENGTH = 16384, N = BLOCKS * LENGTH };
    static uint32_t data[N], merged[N];
    double sum = 0;
    for (int s = 0; s < steps; s++) {
        for (int i = 0; i < N; i++) data[i] = mix((uint64_t)s * N + i);
        enter();
#pragma omp parallel for schedule(dynamic)
        for (int b = 0; b < BLOCKS; b++) qsort(data + b * LENGTH, LENGTH, sizeof *data, by_value);
        leave();
        int at[BLOCKS] = {0};
        for (int i = 0; i < N; i++) {
            int best = -1;
            for (int b = 0; b < BLOCKS; b++)
                if (at[b] < LENGTH && (best < 0 || data[b * LENGTH + at[b]] < data[best * LENGTH + at[best]]))
                    best = b;
            merged[i] = data[best * LENGTH + at[best]++];
        }
        sum += merged[N / 2];
    }
    return sum;
}

/* Game of Life, 8 generations a step. */
static double life(int steps) {
    enum { N = 1024 };
    static uint8_t a[N * N], b[N * N];
    for (int i = 0; i < N * N; i++) a[i] = mix(i) & 1;
    uint8_t *from = a, *to = b;
    for (int s = 0; s < steps * 8; s++) {
        enter();
#pragma omp parallel for schedule(dynamic, 8)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                int n = 0;
                for (int di = N - 1; di <= N + 1; di++)
                    for (int dj = N - 1; dj <= N + 1; dj++) n += from[(i + di) % N * N + (j + dj) % N];
                int alive = from[i * N + j];
                n -= alive;
                to[i * N + j] = n == 3 || (alive && n == 2);
            }
        leave();
        uint8_t *t = from;
        from = to, to = t;
    }
    double sum = 0;
    for (int i = 0; i < N * N; i++) sum += from[i] * (double)(i % 97);
    return sum;
}

/* Random points in a circle: parallel but for the sum of blocks. */
static double montecarlo(int steps) {
    enum { BLOCKS = 64, POINTS = 100000 };
    static uint64_t hits[BLOCKS];
    double sum = 0;
    for (int s = 0; s < steps; s++) {
        enter();
#pragma omp parallel for schedule(dynamic)
        for (int b = 0; b < BLOCKS; b++) {
            uint64_t in = 0;
            for (int i = 0; i < POINTS; i++) {
                uint64_t at = 2 * (((uint64_t)s * BLOCKS + b) * POINTS + i);
                double x = unit(at), y = unit(at + 1);
                in += x * x + y * y < 1;
            }
            hits[b] = in;
        }
        leave();
        for (int b = 0; b < BLOCKS; b++) sum += hits[b];
    }
    return sum;
}

/* Products of matrices, each made by one thread first. */
static double matmul(int steps) {
    enum { N = 320 };
    double sum = 0;
    for (int s = 0; s < steps; s++) {
        double *a = reals(N * N, 11 + s), *b = reals(N * N, 13 + s), *c = reals(N * N, 17 + s);
        enter();
#pragma omp parallel for schedule(dynamic, 8)
        for (int i = 0; i < N; i++)
            for (int k = 0; k < N; k++)
                for (int j = 0; j < N; j++) c[i * N + j] += a[i * N + k] * b[k * N + j];
        leave();
        sum += c[s % (N * N)];
        free(a), free(b), free(c);
    }
    return sum;
}

/* Breadth-first search level by level; one thread collects each next level. */
static double bfs(int steps) {
    enum { N = 600000, DEGREE = 8 };
    static int level[N], front[N];
    static uint8_t next[N];
    double sum = 0;
    for (int s = 0; s < steps; s++) {
        for (int i = 0; i < N; i++) level[i] = -1, next[i] = 0;
        int length = 1, depth = 0;
        front[0] = s % N, level[front[0]] = 0;
        while (length) {
            enter();
#pragma omp parallel for schedule(dynamic, 8)
            for (int block = 0; block < length; block += 64)
                for (int i = block; i < block + 64 && i < length; i++)
                    for (int k = 0; k < DEGREE; k++) {
                        int to = mix((uint64_t)front[i] * DEGREE + k) % N;
                        if (level[to] < 0) __atomic_store_n(&next[to], 1, __ATOMIC_RELAXED);
                    }
            leave();
            depth++, length = 0;
            for (int i = 0; i < N; i++)
                if (next[i]) next[i] = 0, level[i] = depth, front[length++] = i;
        }
        for (int i = 0; i < N; i++) sum += level[i];
    }
    return sum;
}

static const struct {
    const char *name;
    double (*run)(int);
} kernels[] = {{"jacobi", jacobi}, {"cg", cg},         {"lu", lu},     {"nbody", nbody},
               {"mandelbrot", mandelbrot}, {"sort", sort}, {"life", life}, {"montecarlo", montecarlo},
               {"matmul", matmul}, {"bfs", bfs}};

int main(int argc, char **argv) {
    for (size_t k = 0; argc == 4 && k < sizeof kernels / sizeof *kernels; k++) {
        if (strcmp(kernels[k].name, argv[1])) continue;
        double start = atof(argv[3]), wait;
        while ((wait = start - now(CLOCK_REALTIME)) > 0) {
            struct timespec t = {(time_t)wait, (long)((wait - floor(wait)) * 1e9)};
            nanosleep(&t, NULL);
        }
        double begin = now(CLOCK_REALTIME);
        double sum = kernels[k].run(atoi(argv[2]));
        double end = now(CLOCK_REALTIME);
        struct rusage used;
        getrusage(RUSAGE_SELF, &used);
        double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec +
                     (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
        printf("{\"begin\":%.6f,\"end\":%.6f,\"parallel_s\":%.6f,\"cpu_s\":%.6f,\"sum\":\"%.17g\"}\n",
               begin, end, in_parallel, cpu, sum);
        return 0;
    }
    fprintf(stderr, "usage: kernels NAME STEPS START\n");
    return 1;
}
