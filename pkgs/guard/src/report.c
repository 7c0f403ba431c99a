#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "guard.h"

#define SIZE 1024 /* of the state file, always: a reader of half a write sees two numbers that differ */
#define LACKS 4

static int file = -1;
static int64_t sequence;
static const char *lacks[LACKS];
static int lacking;

/* A text that grows in place; what does not fit is cut. */
static char text[SIZE];
static size_t used;

static void put(const char *piece) {
    size_t size = strlen(piece);
    if (size > SIZE - used) size = SIZE - used;
    memcpy(text + used, piece, size);
    used += size;
}

static void put_number(int64_t value) {
    char digits[24], *at = digits + sizeof digits;
    bool minus = value < 0;
    *--at = '\0';
    do *--at = (char)('0' + (minus ? -(value % 10) : value % 10));
    while ((value /= 10) != 0);
    if (minus) *--at = '-';
    put(at);
}

static void field(const char *name, int64_t value) {
    put(",\"");
    put(name);
    put("\":");
    put_number(value);
}

/* null in place of a negative value */
static void field_or_null(const char *name, int64_t value) {
    if (value >= 0) {
        field(name, value);
        return;
    }
    put(",\"");
    put(name);
    put("\":null");
}

static void levels(const char *phase, const struct level *level) {
    put("\"phase\":\"");
    put(phase);
    put("\"");
    field("floor_mib", level->floor);
    field("line_mib", level->line);
}

/* The number after `key` in what an earlier guard wrote; -1 when there is none. */
static int64_t earlier(const char *from, const char *key) {
    const char *at = strstr(from, key);
    return at == NULL || at[strlen(key)] < '0' || at[strlen(key)] > '9' ? -1 : atoll(at + strlen(key));
}

/* Its last kill: why the engine is gone must not be forgotten with the guard that ended over it. */
static struct kill earlier_kill(int64_t now_ms) {
    const char *at = strstr(text, "\"kill\":{");
    if (at == NULL) return (struct kill){0};
    return (struct kill){
        .available = earlier(at, "\"available_kib\":"),
        .unix_ms = earlier(at, "\"unix_ms\":"),
        .began_ms = now_ms,
        .gone_ms = earlier(at, "\"gone_ms\":"),
        .phase = strstr(at, "\"phase\":\"steady\"") == NULL ? "startup" : "steady",
        .level = {.floor = earlier(at, "\"floor_mib\":"), .line = earlier(at, "\"line_mib\":")},
    };
}

bool report_open(const char *path, struct state *state) {
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) return false;
    /* The journal's socket may be full when memory is short; a line is then lost, the state is not. */
    fcntl(STDERR_FILENO, F_SETFL, fcntl(STDERR_FILENO, F_GETFL) | O_NONBLOCK);
    ssize_t size = pread(file, text, SIZE - 1, 0);
    text[size < 0 ? 0 : size] = '\0';
    state->lowest = earlier(text, "\"low_water_kib\":");
    state->kills = earlier(text, "\"kills\":");
    state->kill = earlier_kill(state->now_ms);
    if (state->kills < 0) state->kills = 0;
    return true;
}

void report_lack(const char *what) {
    if (lacking < LACKS) lacks[lacking++] = what;
}

void report_state(const struct state *state) {
    used = 0;
    sequence++;
    put("{\"schema\":\"sparkserve.guard/1\"");
    field("seq", sequence);
    field("pid", getpid());
    field("monotonic_ms", state->now_ms);
    put(",");
    levels(state->phase, state->level);
    put(state->engine ? ",\"engine\":true" : ",\"engine\":false");
    put(state->reach ? ",\"reach\":true" : ",\"reach\":false");
    field_or_null("available_kib", state->available);
    field_or_null("low_water_kib", state->lowest);
    field_or_null("low_water_engine_kib", state->lowest_engine);
    field("kills", state->kills);
    put(",\"kill\":");
    if (state->kill.phase == NULL) {
        put("null");
    } else {
        put("{");
        levels(state->kill.phase, &state->kill.level);
        field("unix_ms", state->kill.unix_ms);
        field_or_null("available_kib", state->kill.available);
        field_or_null("gone_ms", state->kill.gone_ms);
        put("}");
    }
    put(",\"lacks\":[");
    for (int i = 0; i < lacking; i++) {
        put(i == 0 ? "\"" : ",\"");
        put(lacks[i]);
        put("\"");
    }
    put("]");
    field("end", sequence);
    put("}");
    memset(text + used, ' ', SIZE - used);
    text[SIZE - 1] = '\n';
    static bool failing;
    bool written = pwrite(file, text, SIZE, 0) == SIZE;
    /* Once: near the line this would be 200 lines a second. */
    if (!written && !failing) report_line("<3>The state file cannot be written.");
    failing = !written;
}

void report_line(const char *line) {
    char copy[256];
    size_t size = strlen(line);
    if (size > sizeof copy - 1) size = sizeof copy - 1;
    memcpy(copy, line, size);
    copy[size] = '\n';
    if (write(STDERR_FILENO, copy, size + 1) < 0) return;
}

void report_kill(const struct state *state) {
    const struct kill *kill = &state->kill;
    used = 0;
    put("<2>The engine was killed: MemAvailable ");
    if (kill->available < 0) {
        put("cannot be read");
    } else {
        put_number(kill->available / KIB_PER_MIB);
        put(" MiB, killed below ");
        put_number(kill->level.line);
        put(" MiB to keep ");
        put_number(kill->level.floor);
        put(" MiB (");
        put(kill->phase);
        put(")");
    }
    put(".");
    text[used] = '\0';
    report_line(text);
}

void notify(const char *message) {
    static struct sockaddr_un address = {.sun_family = AF_UNIX};
    static int socket_fd = -1;
    const char *path = getenv("NOTIFY_SOCKET");
    if (path == NULL || strlen(path) >= sizeof address.sun_path) return;
    if (socket_fd < 0) {
        socket_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        memcpy(address.sun_path, path, strlen(path));
        if (*path == '@') address.sun_path[0] = '\0'; /* an abstract one */
    }
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    sendto(socket_fd, message, strlen(message), MSG_NOSIGNAL, (struct sockaddr *)&address, size);
}
