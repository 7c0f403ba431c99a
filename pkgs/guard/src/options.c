#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "guard.h"

static const char HELP[] =
    "guard: kills the engine's cgroup before the node's memory is gone\n"
    "\n"
    "  guard --startup FLOOR,LINE,INTERVAL --steady FLOOR,LINE,INTERVAL --closest MS --kill MS\n"
    "        --state FILE --flags FILE --cgroup DIR...\n"
    "  guard --explain ...            print what is promised with these options, and end\n"
    "  guard --simulate ...           decide over a trace on stdin, lines of MS KIB startup|steady: when it kills,\n"
    "                                 how much was available then, and how much when the kill has its effect\n"
    "  guard --enter DIR PROGRAM...   join the cgroup DIR and become PROGRAM\n"
    "\n"
    "  --startup, --steady   MiB of MemAvailable that are kept; MiB below which the engine is killed; the longest\n"
    "                        time between two samples, ms. steady counts while the supervisor says that it serves.\n"
    "  --closest MS          the shortest time between two samples\n"
    "  --kill MS             from a sample below the line until nothing of the engine allocates any more\n"
    "  --state FILE          where the last sample, the low-water marks and the last kill are written\n"
    "  --flags FILE          whose bytes are locked: 0 an engine runs, 1 it serves, 2 a guard watches\n"
    "  --cgroup DIR          the engine's; repeat it for other places, the first that is there counts\n"
    "  --meminfo FILE        in place of /proc/meminfo; it is kept open, so write into it, in one write\n"
    "\n"
    "Exit code 1: MemAvailable cannot be read, or the engine's cgroup is gone; the engine was killed, or its\n"
    "supervisor ends it now. 2: wrong options. 3: a file.\n";

static void refuse(const char *option, const char *found, const char *expected) {
    dprintf(STDERR_FILENO, "guard: %s: expected %s; found %s (guard --help)\n", option, expected, found);
    exit(2);
}

static int64_t number(const char *option, const char *text, char **end) {
    int64_t value = *text >= '0' && *text <= '9' ? strtoll(text, end, 10) : 0;
    /* Up to 2^20 (1 TiB, 17 minutes) no product with what memory may be (below 2^40 KiB) is too large. */
    if (value < 1 || value > 1 << 20) refuse(option, text, "a number from 1 to 1048576");
    return value;
}

static int64_t whole(const char *option, const char *text) {
    char *end = NULL;
    int64_t value = number(option, text, &end);
    if (*end != '\0') refuse(option, text, "a number");
    return value;
}

static struct level level(const char *option, const char *text) {
    int64_t values[3];
    const char *at = text;
    for (int i = 0; i < 3; i++) {
        char *end = NULL;
        values[i] = number(option, at, &end);
        if (*end != (i < 2 ? ',' : '\0')) refuse(option, text, "FLOOR,LINE,INTERVAL");
        at = end + 1;
    }
    if (values[1] <= values[0]) refuse(option, text, "a line above the floor");
    return (struct level){.floor = values[0], .line = values[1], .interval_ms = values[2]};
}

int64_t level_rate(const struct level *level, const struct options *options) {
    return (level->line - level->floor) * 1000 / (options->closest_ms + options->kill_ms);
}

int64_t level_pause(const struct level *level, const struct options *options, int64_t available_kib) {
    int64_t room = available_kib - level->line * KIB_PER_MIB;
    int64_t margin = (level->line - level->floor) * KIB_PER_MIB;
    int64_t pause = room * (options->closest_ms + options->kill_ms) / margin;
    if (pause > level->interval_ms) return level->interval_ms;
    return pause < options->closest_ms ? options->closest_ms : pause;
}

void options_parse(int argc, char **argv, struct options *options) {
    static const struct option known[] = {
        {"startup", required_argument, NULL, 's'}, {"steady", required_argument, NULL, 't'},
        {"closest", required_argument, NULL, 'c'}, {"kill", required_argument, NULL, 'k'},
        {"state", required_argument, NULL, 'o'},   {"flags", required_argument, NULL, 'f'},
        {"cgroup", required_argument, NULL, 'g'},  {"meminfo", required_argument, NULL, 'm'},
        {"enter", required_argument, NULL, 'e'},   {"explain", no_argument, NULL, 'x'},
        {"simulate", no_argument, NULL, 'i'},      {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *options = (struct options){.meminfo = "/proc/meminfo"};
    bool explain = false;
    for (int which; (which = getopt_long(argc, argv, "+", known, NULL)) != -1;) switch (which) {
            case 's': options->startup = level("--startup", optarg); break;
            case 't': options->steady = level("--steady", optarg); break;
            case 'c': options->closest_ms = whole("--closest", optarg); break;
            case 'k': options->kill_ms = whole("--kill", optarg); break;
            case 'o': options->state = optarg; break;
            case 'f': options->flags = optarg; break;
            case 'm': options->meminfo = optarg; break;
            case 'g':
                if (options->cgroups == CGROUPS) refuse("--cgroup", optarg, "four at most");
                options->cgroup[options->cgroups++] = optarg;
                break;
            case 'e':
                if (optind == argc) refuse("--enter", "nothing", "a program");
                exit(cgroup_enter(optarg, argv + optind));
            case 'x': explain = true; break;
            case 'i': options->simulate = true; break;
            case 'h': exit(write(STDOUT_FILENO, HELP, sizeof HELP - 1) < 0);
            default: exit(2);
        }
    if (optind < argc) refuse("guard", argv[optind], "options only");
    if (options->startup.line == 0) refuse("--startup", "nothing", "FLOOR,LINE,INTERVAL");
    if (options->steady.line == 0) refuse("--steady", "nothing", "FLOOR,LINE,INTERVAL");
    if (options->closest_ms == 0) refuse("--closest", "nothing", "MS");
    if (options->kill_ms == 0) refuse("--kill", "nothing", "MS");
    if (options->closest_ms > options->startup.interval_ms || options->closest_ms > options->steady.interval_ms)
        refuse("--closest", "a longer time", "at most the intervals");
    if (explain) {
        options_explain(options);
        exit(0);
    }
    if (options->simulate) return;
    if (options->state == NULL || options->flags == NULL || options->cgroups == 0)
        refuse("guard", "less", "--state, --flags and --cgroup");
}

void options_explain(const struct options *options) {
    const struct level *levels[] = {&options->startup, &options->steady};
    for (int i = 0; i < 2; i++)
        dprintf(STDOUT_FILENO,
                "%s: MemAvailable stays above %lld MiB as long as it falls by %lld MiB/s at most\n"
                "  = (line %lld MiB - floor) / (%lld ms between two close samples + %lld ms to kill);\n"
                "  sampled every %lld ms, and more often the nearer the line is\n",
                i == 0 ? "startup" : "steady", (long long)levels[i]->floor,
                (long long)level_rate(levels[i], options), (long long)levels[i]->line,
                (long long)options->closest_ms, (long long)options->kill_ms, (long long)levels[i]->interval_ms);
}
