/* Numerical kernels of the kinds of SciMark 2.0, with its sizes, and multiplications of small
 * matrices, as Peternier et al. use both (WorkOver, sections 5.2 and 5.6).
 *
 *   kernels NAME ROUNDS              one kernel: fft, sor, montecarlo, sparse, lu, matrix-integer,
 *                                    matrix-float
 *   kernels threads COUNT ROUNDS SEED [NAME...]
 *                                    threads that live on and run all kernels of SciMark (or these),
 *                                    ROUNDS times, each in an order of its own; prints JSON
 *   kernels check                    holds each kernel against a result that is known
 *
 * The algorithms are those of any textbook; results do not depend on threads or their order.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FFT_N = 1024, GRID = 100, SPARSE_N = 1000, SPARSE_NZ = 5000, LU_N = 100 };

/* Numbers in [0, 1) from a seed (a linear congruential generator of 64 bits). */
static double draw(unsigned long long *state) {
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(*state >> 11) * 0x1p-53;
}

static void fill(double *values, int count, unsigned long long seed) {
    for (int i = 0; i < count; i++) values[i] = draw(&seed);
}

/* Complex numbers, in place; direction -1 forward, 1 back, without scaling. */
static void transform(double *data, int n, int direction) {
    for (int i = 1, j = 0; i < n; i++) {
        int bit = n >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i < j)
            for (int part = 0; part < 2; part++) {
                double kept = data[2 * i + part];
                data[2 * i + part] = data[2 * j + part];
                data[2 * j + part] = kept;
            }
    }
    for (int length = 2; length <= n; length <<= 1) {
        double angle = direction * 2 * M_PI / length, re = cos(angle), im = sin(angle);
        for (int start = 0; start < n; start += length) {
            double wr = 1, wi = 0;
            for (int k = 0; k < length / 2; k++) {
                double *even = data + 2 * (start + k), *odd = even + length;
                double r = odd[0] * wr - odd[1] * wi, i = odd[0] * wi + odd[1] * wr;
                odd[0] = even[0] - r;
                odd[1] = even[1] - i;
                even[0] += r;
                even[1] += i;
                double next = wr * re - wi * im;
                wi = wr * im + wi * re;
                wr = next;
            }
        }
    }
}

/* One sweep of successive over-relaxation. */
static void relax(double (*grid)[GRID], double omega) {
    for (int i = 1; i < GRID - 1; i++)
        for (int j = 1; j < GRID - 1; j++)
            grid[i][j] = omega * 0.25 * (grid[i - 1][j] + grid[i + 1][j] + grid[i][j - 1] + grid[i][j + 1]) +
                         (1 - omega) * grid[i][j];
}

/* The area of a quarter of a circle, by chance. */
static double circle(int points, unsigned long long seed) {
    int inside = 0;
    for (int i = 0; i < points; i++) {
        double x = draw(&seed), y = draw(&seed);
        inside += x * x + y * y <= 1;
    }
    return 4.0 * inside / points;
}

/* Compressed rows. */
struct sparse {
    double value[SPARSE_NZ], x[SPARSE_N], y[SPARSE_N];
    int column[SPARSE_NZ], row[SPARSE_N + 1];
};

static void make_sparse(struct sparse *m, unsigned long long seed) {
    int each = SPARSE_NZ / SPARSE_N;
    for (int i = 0; i < SPARSE_N; i++) {
        m->row[i] = i * each;
        m->x[i] = draw(&seed);
        for (int k = 0; k < each; k++) {
            m->column[i * each + k] = (int)(draw(&seed) * SPARSE_N);
            m->value[i * each + k] = draw(&seed);
        }
    }
    m->row[SPARSE_N] = SPARSE_NZ;
}

static void multiply(struct sparse *m) {
    for (int i = 0; i < SPARSE_N; i++) {
        double sum = 0;
        for (int k = m->row[i]; k < m->row[i + 1]; k++) sum += m->value[k] * m->x[m->column[k]];
        m->y[i] = sum;
    }
}

/* Factors in place, with partial pivoting; 0 if singular. */
static int factor(double (*a)[LU_N], int *pivot) {
    for (int j = 0; j < LU_N; j++) {
        int p = j;
        for (int i = j + 1; i < LU_N; i++)
            if (fabs(a[i][j]) > fabs(a[p][j])) p = i;
        pivot[j] = p;
        if (a[p][j] == 0) return 0;
        if (p != j)
            for (int k = 0; k < LU_N; k++) {
                double kept = a[j][k];
                a[j][k] = a[p][k];
                a[p][k] = kept;
            }
        for (int i = j + 1; i < LU_N; i++) {
            double by = a[i][j] /= a[j][j];
            for (int k = j + 1; k < LU_N; k++) a[i][k] -= by * a[j][k];
        }
    }
    return 1;
}

/* Elements one by one: integer work in the integer units, as in the paper. */
#pragma GCC push_options
#pragma GCC optimize("no-tree-vectorize", "no-tree-slp-vectorize")
#define MATRIX(NAME, TYPE)                                                                      \
    static void NAME(const TYPE (*a)[4], const TYPE (*b)[4], TYPE (*c)[4]) {                    \
        for (int i = 0; i < 4; i++)                                                             \
            for (int j = 0; j < 4; j++) {                                                       \
                TYPE sum = 0;                                                                   \
                for (int k = 0; k < 4; k++) sum += a[i][k] * b[k][j];                           \
                c[i][j] = sum;                                                                  \
            }                                                                                   \
    }                                                                                           \
    /* The power of a matrix, for its last row. */                                              \
    static void NAME##_power(const TYPE (*a)[4], long count, TYPE (*c)[4]) {                    \
        TYPE now[4][4], next[4][4];                                                             \
        memcpy(now, a, sizeof now);                                                             \
        for (long i = 1; i < count; i++) {                                                      \
            NAME((const TYPE(*)[4])now, a, next);                                               \
            memcpy(now, next, sizeof now);                                                      \
        }                                                                                       \
        memcpy(c, now, sizeof now);                                                             \
    }
MATRIX(integers, unsigned)
MATRIX(floats, double)
#pragma GCC pop_options

static const unsigned FIBONACCI[4][4] = {{1, 1, 0, 0}, {1, 0, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};

static void turn(double degrees, double (*m)[4]) {
    double angle = degrees * M_PI / 180;
    double turned[4][4] = {{cos(angle), -sin(angle), 0, 0}, {sin(angle), cos(angle), 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
    memcpy(m, turned, sizeof turned);
}

/* One round of a kernel, some milliseconds; gives a number that depends on all of its work. */
static double fft(void) {
    static const int TIMES = 25;
    double data[2 * FFT_N], sum = 0;
    unsigned long long seed = 1;
    fill(data, 2 * FFT_N, seed);
    for (int time = 0; time < TIMES; time++) {
        transform(data, FFT_N, -1);
        sum += data[2];
        transform(data, FFT_N, 1);
        for (int i = 0; i < 2 * FFT_N; i++) data[i] /= FFT_N;
    }
    return sum;
}

static double sor(void) {
    double grid[GRID][GRID];
    unsigned long long seed = 2;
    fill(&grid[0][0], GRID * GRID, seed);
    for (int sweep = 0; sweep < 40; sweep++) relax(grid, 1.25);
    return grid[GRID / 2][GRID / 2];
}

static double montecarlo(void) { return circle(300000, 3); }

static double sparse(void) {
    static _Thread_local struct sparse m;
    make_sparse(&m, 4);
    double sum = 0;
    for (int time = 0; time < 300; time++) {
        multiply(&m);
        m.x[time % SPARSE_N] = m.y[time % SPARSE_N] * 0.01;
        sum += m.y[time % SPARSE_N];
    }
    return sum;
}

static double lu(void) {
    double a[LU_N][LU_N], sum = 0;
    int pivot[LU_N];
    for (int time = 0; time < 6; time++) {
        unsigned long long seed = 5 + time;
        fill(&a[0][0], LU_N * LU_N, seed);
        factor(a, pivot);
        sum += a[LU_N - 1][LU_N - 1];
    }
    return sum;
}

static double matrix_integer(void) {
    unsigned last[4][4];
    integers_power(FIBONACCI, 60000, last);
    return last[0][1];
}

static double matrix_float(void) {
    double one[4][4], last[4][4];
    turn(1, one);
    floats_power((const double(*)[4])one, 60000, last);
    return last[0][1];
}

static const struct kernel {
    const char *name;
    double (*run)(void);
} KERNELS[] = {{"fft", fft}, {"sor", sor}, {"montecarlo", montecarlo}, {"sparse", sparse}, {"lu", lu},
               {"matrix-integer", matrix_integer}, {"matrix-float", matrix_float}};
enum { ALL = sizeof KERNELS / sizeof KERNELS[0], SCIMARK = 5 };

static int find(const char *name) {
    for (int k = 0; k < ALL; k++)
        if (!strcmp(KERNELS[k].name, name)) return k;
    fprintf(stderr, "kernels: no kernel is called '%s'\n", name);
    exit(2);
}

static long count(const char *text) {
    char *end;
    long number = strtol(text, &end, 10);
    if (*end || end == text || number < 1 || number > 1000000) {
        fprintf(stderr, "kernels: '%s' is no number from 1 to 1000000\n", text);
        exit(2);
    }
    return number;
}

/* What the threads run. */
static struct plan {
    long rounds;
    int kernels, of[ALL];
    pthread_barrier_t start;
} plan;

struct worker {
    pthread_t thread;
    unsigned long long seed;
    double seconds[ALL], result[ALL];
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static void *work(void *given) {
    struct worker *own = given;
    int order[ALL];
    memcpy(order, plan.of, sizeof order);
    pthread_barrier_wait(&plan.start);
    for (long round = 0; round < plan.rounds; round++) {
        for (int at = plan.kernels - 1; at > 0; at--) {
            int other = (int)(draw(&own->seed) * (at + 1)), kept = order[at];
            order[at] = order[other];
            order[other] = kept;
        }
        for (int at = 0; at < plan.kernels; at++) {
            double begin = now();
            own->result[order[at]] += KERNELS[order[at]].run();
            own->seconds[order[at]] += now() - begin;
        }
    }
    return NULL;
}

static int threads(long workers, unsigned long long seed) {
    struct worker *all = calloc(workers, sizeof *all);
    if (!all || pthread_barrier_init(&plan.start, NULL, workers)) return 1;
    double begin = now();
    for (long at = 0; at < workers; at++) {
        all[at].seed = seed * 1000003 + at;
        if (pthread_create(&all[at].thread, NULL, work, &all[at])) {
            fprintf(stderr, "kernels: the system refuses thread %ld\n", at + 1);
            exit(1);
        }
    }
    for (long at = 0; at < workers; at++) pthread_join(all[at].thread, NULL);
    double seconds = now() - begin;
    printf("{\"threads\": %ld, \"rounds\": %ld, \"seconds\": %.6f, \"kernels\": [", workers, plan.rounds, seconds);
    for (int at = 0; at < plan.kernels; at++) {
        int k = plan.of[at];
        double took = 0;
        for (long w = 0; w < workers; w++) {
            took += all[w].seconds[k];
            if (all[w].result[k] != all[0].result[k]) {
                fprintf(stderr, "kernels: threads disagree on %s\n", KERNELS[k].name);
                exit(1);
            }
        }
        printf("%s{\"name\": \"%s\", \"rounds_per_s\": %.6f, \"result\": %.17g}", at ? ", " : "", KERNELS[k].name,
               workers * plan.rounds / took, all[0].result[k]);
    }
    puts("]}");
    free(all);
    return 0;
}

static int failed;

static void expect(const char *what, double error, double most) {
    int right = error <= most;
    printf("%s: error %.3g, at most %.3g allowed: %s\n", what, error, most, right ? "right" : "WRONG");
    failed |= !right;
}

static void check(void) {
    double data[2 * FFT_N], before[2 * FFT_N], error = 0;
    for (int i = 0; i < FFT_N; i++) {
        data[2 * i] = cos(2 * M_PI * 5 * i / FFT_N);
        data[2 * i + 1] = 0;
    }
    memcpy(before, data, sizeof data);
    transform(data, FFT_N, -1);
    for (int i = 0; i < FFT_N; i++) {
        double wanted = i == 5 || i == FFT_N - 5 ? FFT_N / 2 : 0;
        error = fmax(error, hypot(data[2 * i] - wanted, data[2 * i + 1]));
    }
    expect("fft of a cosine", error, 1e-9);
    transform(data, FFT_N, 1);
    error = 0;
    for (int i = 0; i < 2 * FFT_N; i++) error = fmax(error, fabs(data[i] / FFT_N - before[i]));
    expect("fft and back", error, 1e-12);

    double grid[GRID][GRID];
    for (int i = 0; i < GRID; i++)
        for (int j = 0; j < GRID; j++) grid[i][j] = i && j && i < GRID - 1 && j < GRID - 1 ? 0 : i + 2 * j;
    for (int sweep = 0; sweep < 20000; sweep++) relax(grid, 1.25);
    error = 0;
    for (int i = 0; i < GRID; i++)
        for (int j = 0; j < GRID; j++) error = fmax(error, fabs(grid[i][j] - i - 2 * j));
    expect("sor to a plane, which is harmonic", error, 1e-6);

    expect("montecarlo: pi", fabs(circle(4000000, 3) - M_PI), 0.004);

    static struct sparse m;
    static double dense[SPARSE_N][SPARSE_N];
    make_sparse(&m, 4);
    for (int i = 0; i < SPARSE_N; i++)
        for (int k = m.row[i]; k < m.row[i + 1]; k++) dense[i][m.column[k]] += m.value[k];
    multiply(&m);
    error = 0;
    for (int i = 0; i < SPARSE_N; i++) {
        double sum = 0;
        for (int j = 0; j < SPARSE_N; j++) sum += dense[i][j] * m.x[j];
        error = fmax(error, fabs(sum - m.y[i]));
    }
    expect("sparse as dense", error, 1e-12);

    double a[LU_N][LU_N], factors[LU_N][LU_N];
    int pivot[LU_N];
    unsigned long long seed = 5;
    fill(&a[0][0], LU_N * LU_N, seed);
    memcpy(factors, a, sizeof a);
    int regular = factor(factors, pivot);
    for (int j = 0; j < LU_N; j++)
        for (int k = 0; k < LU_N && pivot[j] != j; k++) {
            double kept = a[j][k];
            a[j][k] = a[pivot[j]][k];
            a[pivot[j]][k] = kept;
        }
    error = regular ? 0 : 1;
    for (int i = 0; i < LU_N; i++)
        for (int j = 0; j < LU_N; j++) {
            double sum = 0;
            for (int k = 0; k <= i && k <= j; k++) sum += (k == i ? 1 : factors[i][k]) * factors[k][j];
            error = fmax(error, fabs(sum - a[i][j]));
        }
    expect("lu: L U = P A", error, 1e-12);

    unsigned fibonacci[4][4];
    integers_power(FIBONACCI, 30, fibonacci);
    expect("matrix-integer: the 30th Fibonacci number", fabs(fibonacci[0][1] - 832040.0), 0);
    double one[4][4], round[4][4];
    turn(1, one);
    floats_power((const double(*)[4])one, 360, round);
    expect("matrix-float: once around", fabs(round[0][0] - 1) + fabs(round[0][1]), 1e-11);
}

int main(int words, char **word) {
    if (words == 2 && !strcmp(word[1], "check")) {
        check();
        return failed;
    }
    if (words == 3) {
        double result = 0;
        const struct kernel *kernel = &KERNELS[find(word[1])];
        for (long rounds = count(word[2]); rounds > 0; rounds--) result += kernel->run();
        printf("%.17g\n", result);
        return 0;
    }
    if (words >= 5 && !strcmp(word[1], "threads")) {
        plan.rounds = count(word[3]);
        for (int at = 5; at < words && plan.kernels < ALL; at++) plan.of[plan.kernels++] = find(word[at]);
        for (int k = 0; k < SCIMARK && words == 5; k++) plan.of[plan.kernels++] = k;
        return threads(count(word[2]), strtoull(word[4], NULL, 10));
    }
    fputs("usage: kernels NAME ROUNDS | threads COUNT ROUNDS SEED [NAME...] | check\n", stderr);
    return 2;
}
