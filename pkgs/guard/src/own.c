#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "guard.h"

#define STACK (64 << 10) /* more than the deepest call of a turn */

/* The number after `key` in a file of /proc; `missing` when there is none. */
static long proc(const char *path, const char *key, long missing) {
    static char text[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[size < 0 ? 0 : size] = '\0';
    const char *at = strstr(text, key);
    return size <= 0 || at == NULL ? missing : strtol(at + strlen(key), NULL, 10);
}

static void touch_stack(void) {
    volatile char pages[STACK];
    for (size_t i = 0; i < sizeof pages; i += 512) pages[i] = 0;
}

/* What systemd shows is what was asked for; a container does not always give it. So ask the kernel. */
void own_up(void) {
    const struct sched_param lowest = {.sched_priority = 1};
    sched_setscheduler(0, SCHED_FIFO, &lowest);
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    mlockall(MCL_CURRENT | MCL_FUTURE);
    touch_stack();
    if (proc("/proc/self/status", "\nVmLck:", 0) < STACK / 1024) report_lack("locked memory");
    if (proc("/proc/self/oom_score_adj", "", 0) != -1000) report_lack("oom_score_adj -1000");
    if (sched_getscheduler(0) != SCHED_FIFO) report_lack("real-time priority");
}
