/* A file whose bytes are locked: 0 by the supervisor while an engine runs, 1 by the supervisor while that engine
 * serves, 2 by the guard while it watches. A lock ends with its process, however that ends, so that no flag says
 * more than is true. */
#include <fcntl.h>
#include <unistd.h>

#include "guard.h"

enum { ENGINE, STEADY, GUARD };

static int file = -1;

bool flags_open(const char *path) {
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    return file >= 0;
}

static struct flock byte(int which) {
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = which, .l_len = 1};
}

bool flags_guard(void) {
    const struct flock lock = byte(GUARD);
    return fcntl(file, F_SETLK, &lock) == 0;
}

static bool held(int which) {
    struct flock lock = byte(which);
    return fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool flags_engine(void) { return held(ENGINE); }
bool flags_steady(void) { return held(ENGINE) && held(STEADY); }
