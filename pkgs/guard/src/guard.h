/* The memory guard: kills the engine's cgroup before the memory that the whole node needs is gone.
 *
 * Everything that a turn of its loop uses is static: it allocates nothing, and calls nothing that does.
 * What it promises, and why that holds: docs/guard.md.
 */
#ifndef GUARD_H
#define GUARD_H

#include <stdbool.h>
#include <stdint.h>

#define KIB_PER_MIB 1024
#define UNREADABLE (-1)
#define CGROUPS 4

/* Memory of the node in MiB: kept above `floor`; the engine is killed below `line`. */
struct level {
    int64_t floor;
    int64_t line;
    int64_t interval_ms; /* the longest time between two samples */
};

struct options {
    struct level startup;
    struct level steady;
    int64_t closest_ms; /* the shortest time between two samples */
    int64_t kill_ms;    /* from a sample below the line until nothing of the engine allocates any more */
    const char *meminfo;
    const char *state;
    const char *flags;
    const char *cgroup[CGROUPS]; /* where the engine's may be; the first that is there counts */
    int cgroups;
    bool simulate;
};

/* options.c */
void options_parse(int argc, char **argv, struct options *options); /* exits on what it does not understand */
void options_explain(const struct options *options);
int64_t level_rate(const struct level *level, const struct options *options); /* MiB a second, rounded down */
/* In how many ms memory that falls at that rate is at the line; not less than the shortest step. */
int64_t level_pause(const struct level *level, const struct options *options, int64_t available_kib);

/* simulate.c */
int simulate(const struct options *options);

/* meminfo.c */
int64_t meminfo_available(int fd); /* KiB, or UNREADABLE */

/* cgroup.c */
void cgroup_set(const struct options *options);
void cgroup_forget(void);    /* the engine's may be another one now */
bool cgroup_there(void);
bool cgroup_populated(void); /* also when that cannot be told */
void cgroup_kill(void);
int cgroup_enter(const char *where, char **argv); /* returns only when it fails */

/* flags.c: locks that the kernel takes away from whoever dies */
bool flags_open(const char *path);
bool flags_guard(void); /* says that this guard watches; false when another one does */
bool flags_engine(void);
bool flags_steady(void);

/* report.c */
struct kill {
    int64_t available; /* KiB, or UNREADABLE */
    int64_t unix_ms;
    int64_t began_ms; /* monotonic, as all times that have no name */
    int64_t gone_ms;  /* from then until the cgroup was empty; -1 before */
    const char *phase;
    struct level level;
};

struct state {
    const char *phase;
    const struct level *level;
    bool engine;
    bool reach; /* the engine's cgroup is there */
    int64_t now_ms;
    int64_t available;
    int64_t lowest;        /* since the node's boot */
    int64_t lowest_engine; /* since the engine's start, -1 before the first */
    int64_t kills;
    struct kill kill; /* the last one */
};

bool report_open(const char *path, struct state *state); /* goes on from what an earlier guard left there */
void report_lack(const char *what);
void report_state(const struct state *state);
void report_kill(const struct state *state);
void report_line(const char *text);
void notify(const char *message);

/* own.c */
void own_up(void); /* memory, priority, protection: what is not there is reported */

#endif
