/* The same decisions over a trace in place of memory, and with its clock in place of ours. */
#include <stdio.h>
#include <string.h>

#include "guard.h"

#define POINTS 100000

static struct point {
    int64_t ms;
    int64_t kib;
    bool steady;
} points[POINTS];
static int count;

static bool trace(FILE *from) {
    long long ms, kib;
    char phase[16];
    for (int got; (got = fscanf(from, "%lld %lld %15s", &ms, &kib, phase)) != EOF; count++) {
        bool steady = got == 3 && strcmp(phase, "steady") == 0;
        if (got != 3 || !(steady || strcmp(phase, "startup") == 0) || count == POINTS) return false;
        /* 12 days and 8 TiB: products of the two are not too large. */
        if (ms < 0 || ms >= 1 << 30 || kib < 0 || kib >= 1LL << 33) return false;
        if (count > 0 && ms <= points[count - 1].ms) return false;
        points[count] = (struct point){.ms = ms, .kib = kib, .steady = steady};
    }
    return count > 0;
}

/* Between two points memory is on a straight line, and the phase is that of the first. */
static struct point at(int64_t ms) {
    static int i;
    while (i > 0 && points[i].ms > ms) i--;
    while (i < count - 1 && points[i + 1].ms <= ms) i++;
    struct point now = points[i];
    if (i < count - 1 && ms > now.ms) {
        const struct point *next = &points[i + 1];
        now.kib += (next->kib - now.kib) * (ms - now.ms) / (next->ms - now.ms);
    }
    now.ms = ms;
    return now;
}

int simulate(const struct options *options) {
    if (!trace(stdin)) {
        fprintf(stderr, "guard: --simulate: expected lines of MS KIB startup|steady, the first number growing\n");
        return 2;
    }
    long long samples = 0;
    for (int64_t ms = points[0].ms; ms <= points[count - 1].ms; samples++) {
        struct point now = at(ms);
        const struct level *level = now.steady ? &options->steady : &options->startup;
        if (now.kib < level->line * KIB_PER_MIB) {
            printf("{\"killed\":true,\"ms\":%lld,\"phase\":\"%s\",\"available_kib\":%lld,\"after_kib\":%lld,"
                   "\"floor_mib\":%lld,\"line_mib\":%lld,\"samples\":%lld}\n",
                   (long long)ms, now.steady ? "steady" : "startup", (long long)now.kib,
                   (long long)at(ms + options->kill_ms).kib, (long long)level->floor, (long long)level->line,
                   samples + 1);
            return 0;
        }
        ms += level_pause(level, options, now.kib);
    }
    printf("{\"killed\":false,\"samples\":%lld}\n", samples);
    return 0;
}
