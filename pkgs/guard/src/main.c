#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"

#define ALIVE_MS 1000

static int64_t clock_ms(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void sleep_until(int64_t ms) {
    const struct timespec when = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0) continue;
}

static void lower(int64_t *lowest, int64_t value) {
    if (*lowest < 0 || value < *lowest) *lowest = value;
}

static int64_t pause_ms(const struct options *options, const struct state *state) {
    bool dying = state->kill.phase != NULL && state->kill.gone_ms < 0;
    return dying ? options->closest_ms : level_pause(state->level, options, state->available);
}

static void look(const struct options *options, struct state *state) {
    bool engine = flags_engine();
    bool steady = flags_steady();
    if (engine && !state->engine) {
        cgroup_forget();
        state->lowest_engine = -1;
    }
    state->engine = engine;
    state->phase = steady ? "steady" : "startup";
    state->level = steady ? &options->steady : &options->startup;
}

/* SIGKILL before anything is written or said; only whether there is somebody is read before. */
static void kill_engine(struct state *state) {
    bool there = cgroup_populated();
    cgroup_kill();
    bool pending = state->kill.phase != NULL && state->kill.gone_ms < 0;
    if (!there || pending) return;
    state->kills++;
    state->kill = (struct kill){
        .available = state->available,
        .unix_ms = clock_ms(CLOCK_REALTIME),
        .began_ms = state->now_ms,
        .gone_ms = -1,
        .phase = state->phase,
        .level = *state->level,
    };
    report_kill(state);
}

/* One sample and what follows from it. False when it cannot guard: then nothing may run here. */
static bool turn(const struct options *options, struct state *state, int meminfo) {
    state->now_ms = clock_ms(CLOCK_MONOTONIC);
    look(options, state);
    state->available = meminfo_available(meminfo);
    if (state->available < state->level->line * KIB_PER_MIB) kill_engine(state);
    if (state->available >= 0) {
        lower(&state->lowest, state->available);
        if (state->engine) lower(&state->lowest_engine, state->available);
    }
    if (state->kill.phase != NULL && state->kill.gone_ms < 0 && !cgroup_populated()) {
        state->kill.gone_ms = clock_ms(CLOCK_MONOTONIC) - state->kill.began_ms;
        report_line("<5>Nothing of the engine is left.");
    }
    state->reach = cgroup_there();
    report_state(state);
    if (state->available < 0) report_line("<2>MemAvailable cannot be read; without a guard no engine may run.");
    bool helpless = state->engine && !state->reach && state->available < state->level->line * KIB_PER_MIB;
    if (helpless) report_line("<2>The engine's cgroup is not there; its supervisor ends it without a guard.");
    return state->available >= 0 && !helpless;
}

int main(int argc, char **argv) {
    static struct options options;
    static struct state state = {.lowest_engine = -1};
    options_parse(argc, argv, &options);
    if (options.simulate) return simulate(&options);
    cgroup_set(&options);
    state.now_ms = clock_ms(CLOCK_MONOTONIC);
    if (!report_open(options.state, &state) || !flags_open(options.flags)) {
        report_line("<3>The state file or the flags file cannot be opened.");
        return 3;
    }
    int meminfo = open(options.meminfo, O_RDONLY | O_CLOEXEC);
    own_up();
    /* Before the first turn: a second guard may neither kill nor write. */
    if (!flags_guard()) {
        report_line("<3>Another guard watches.");
        return 3;
    }
    int64_t told = 0;
    while (turn(&options, &state, meminfo)) {
        if (told == 0) notify("READY=1");
        if (state.now_ms - told >= ALIVE_MS) {
            notify("WATCHDOG=1");
            told = state.now_ms;
        }
        sleep_until(state.now_ms + pause_ms(&options, &state));
    }
    return 1;
}
