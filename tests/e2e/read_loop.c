/* Reads memory with vector loads on n threads, each in 1 to 8 streams; each line "passes streams" on stdin is one
   burst, answered with bytes/s. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef uint64_t lanes __attribute__((vector_size(32)));

struct slice {
    pthread_t thread;
    const unsigned char *start;
    size_t n_bytes;
    long passes;
    size_t streams;
    double begin_s, end_s;
    uint64_t sum;
};

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t read_once(const unsigned char *start, size_t n_bytes) {
    const lanes *p = (const lanes *)start, *end = (const lanes *)(start + n_bytes);
    lanes a = {0}, b = {0}, c = {0}, d = {0};
    for (; p < end; p += 8) {
        a |= p[0]; b |= p[1]; c |= p[2]; d |= p[3];
        a |= p[4]; b |= p[5]; c |= p[6]; d |= p[7];
    }
    a |= b | c | d;
    return a[0] | a[1] | a[2] | a[3];
}

static inline __attribute__((always_inline)) uint64_t read_streams(const unsigned char *start, size_t n_bytes, size_t n) {
    const size_t part = n_bytes / n;
    lanes a = {0}, b = {0}, c = {0}, d = {0};
    for (size_t at = 0; at < part; at += 128)
        for (size_t i = 0; i < n; i++) {
            const lanes *p = (const lanes *)(start + i * part + at);
            a |= p[0]; b |= p[1]; c |= p[2]; d |= p[3];
        }
    a |= b | c | d;
    return a[0] | a[1] | a[2] | a[3];
}

static uint64_t read_in(size_t streams, const unsigned char *start, size_t n_bytes) {
    switch (streams) {
    case 2: return read_streams(start, n_bytes, 2);
    case 4: return read_streams(start, n_bytes, 4);
    case 8: return read_streams(start, n_bytes, 8);
    default: return read_once(start, n_bytes);
    }
}

static void *work(void *argument) {
    struct slice *s = argument;
    s->begin_s = now_s();
    for (long i = 0; i < s->passes; i++) s->sum |= read_in(s->streams, s->start, s->n_bytes);
    s->end_s = now_s();
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int n_threads = atoi(argv[1]);
    size_t n_bytes = strtoull(argv[2], NULL, 10) / (size_t)n_threads / 2097152 * 2097152 * (size_t)n_threads;
    unsigned char *memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 3;
#ifdef MADV_HUGEPAGE
    madvise(memory, n_bytes, MADV_HUGEPAGE);
#endif
    memset(memory, 0, n_bytes);
    struct slice *slices = calloc((size_t)n_threads, sizeof *slices);
    long passes;
    size_t streams;
    while (scanf("%ld %zu", &passes, &streams) == 2) {
        double first = 1e300, last = 0;
        for (int i = 0; i < n_threads; i++) {
            slices[i].start = memory + n_bytes / (size_t)n_threads * (size_t)i;
            slices[i].n_bytes = n_bytes / (size_t)n_threads;
            slices[i].passes = passes;
            slices[i].streams = streams;
            pthread_create(&slices[i].thread, NULL, work, &slices[i]);
        }
        for (int i = 0; i < n_threads; i++) {
            pthread_join(slices[i].thread, NULL);
            if (slices[i].begin_s < first) first = slices[i].begin_s;
            if (slices[i].end_s > last) last = slices[i].end_s;
            if (slices[i].sum) return 4;
        }
        printf("%.6e\n", (double)n_bytes * (double)passes / (last - first));
        fflush(stdout);
    }
    return 0;
}
