#include <string.h>
#include <unistd.h>

#include "guard.h"

#define KEY "MemAvailable:"

/* Anything but "MemAvailable: <digits> kB" on a line of its own is unreadable: a number that is read wrongly
 * would leave the node without a guard. */
int64_t meminfo_available(int fd) {
    static char text[8192];
    ssize_t size = pread(fd, text, sizeof text - 1, 0);
    if (size <= 0) return UNREADABLE;
    text[size] = '\0';
    const char *at = text;
    while (strncmp(at, KEY, sizeof KEY - 1) != 0) {
        at = strchr(at, '\n');
        if (at == NULL) return UNREADABLE;
        at++;
    }
    at += sizeof KEY - 1;
    while (*at == ' ') at++;
    int64_t value = 0;
    int digits = 0;
    for (; *at >= '0' && *at <= '9' && digits < 12; at++, digits++) value = 10 * value + (*at - '0');
    return digits > 0 && strncmp(at, " kB\n", 4) == 0 ? value : UNREADABLE;
}
