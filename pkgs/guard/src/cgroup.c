#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"

#define PASSES 100

static struct {
    char folder[PATH_MAX];
    char kill[PATH_MAX];
    char events[PATH_MAX];
} places[CGROUPS];
static int count;

/* Open ahead of need: a path lookup may wait for memory. Version 2 has `order` and `events`; of version 1 the folder
 * is open, and the list of processes anew for each reading: the kernel keeps an open one as it was. */
static int order = -1, events = -1, folder = -1;
static char text[4096];

void cgroup_set(const struct options *options) {
    count = options->cgroups;
    for (int i = 0; i < count; i++) {
        snprintf(places[i].folder, PATH_MAX, "%.4000s", options->cgroup[i]);
        snprintf(places[i].kill, PATH_MAX, "%.4000s/cgroup.kill", options->cgroup[i]);
        snprintf(places[i].events, PATH_MAX, "%.4000s/cgroup.events", options->cgroup[i]);
    }
}

static void drop(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

void cgroup_forget(void) {
    drop(&order);
    drop(&events);
    drop(&folder);
}

static bool reach(void) {
    for (int i = 0; i < count && order < 0 && folder < 0; i++) {
        order = open(places[i].kill, O_WRONLY | O_CLOEXEC);
        if (order < 0) {
            folder = open(places[i].folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
            continue;
        }
        events = open(places[i].events, O_RDONLY | O_CLOEXEC);
        if (events < 0) drop(&order); /* it was removed in between */
    }
    return order >= 0 || folder >= 0;
}

/* The processes of version 1; the caller closes it. -1 for a cgroup that was removed. */
static int list(void) { return openat(folder, "cgroup.procs", O_RDONLY | O_CLOEXEC); }

bool cgroup_there(void) {
    if (!reach()) return false;
    int file = order >= 0 ? -1 : list();
    bool gone = order >= 0 ? pread(events, text, 1, 0) < 0 : file < 0;
    drop(&file);
    if (!gone) return true;
    cgroup_forget(); /* there may be a new one */
    return reach();
}

bool cgroup_populated(void) {
    if (!cgroup_there()) return false;
    int file = order >= 0 ? events : list();
    ssize_t size = pread(file, text, sizeof text - 1, 0);
    if (order < 0) {
        drop(&file);
        return size != 0;
    }
    text[size < 0 ? 0 : size] = '\0';
    return strstr(text, "populated 0") == NULL;
}

/* Version 1 has no order for all: SIGKILL to each process that is listed. How many took it; -1 without a list. */
static int kill_listed(void) {
    int64_t pid = 0;
    int taken = 0, file = list();
    if (file < 0) return -1;
    for (ssize_t size; (size = read(file, text, sizeof text)) > 0;)
        for (ssize_t i = 0; i < size; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = 10 * pid + (text[i] - '0');
                continue;
            }
            if (pid > 1 && pid < INT_MAX && pid != getpid() && kill((pid_t)pid, SIGKILL) == 0) taken++;
            pid = 0;
        }
    drop(&file);
    return taken;
}

void cgroup_kill(void) {
    for (int tries = 0; tries < 2 && reach(); tries++) {
        if (order >= 0 ? write(order, "1", 1) == 1 : kill_listed() >= 0) break;
        cgroup_forget();
    }
    /* A child that was forked while the list was read is on the next one. */
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int pass = 0; pass < PASSES && folder >= 0 && kill_listed() > 0; pass++) nanosleep(&pause, NULL);
}

int cgroup_enter(const char *where, char **argv) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.4000s/cgroup.procs", where);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1) {
        dprintf(STDERR_FILENO, "guard: %s: %s\n", path, strerror(errno));
        return 126;
    }
    execv(argv[0], argv);
    dprintf(STDERR_FILENO, "guard: %s: %s\n", argv[0], strerror(errno));
    return 127;
}
