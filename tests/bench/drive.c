/* Runs commands and measures them.
 *
 *   drive time RUNS WARM -- NAME IN OUT PROGRAM ARG... [-- NAME IN OUT ...]
 *       all of them in turn (A B C A B C ...), first WARM rounds that do not
 *       count and then RUNS that do; a command that is named "first" runs only
 *       once, before them; prints for each, in nanoseconds:
 *       NAME MEDIAN FASTEST SLOWEST_OF_90_PERCENT LOW HIGH, the last two being
 *       what 5 and 95 percent of the rounds do not exceed of its time by the
 *       first one's; on one processor, unless this program has to feed or to
 *       read beside a command
 *   drive peak IN OUT PROGRAM ARG...
 *       one run that does not count and one that is stopped at its end; prints
 *       the peak of resident memory in KiB, from the kernel's account of that
 *       address space, and ru_maxrss, which begins at the size of this program
 *   drive burst COUNT IN STATE PROGRAM ARG...
 *       one run alone, then COUNT at once that get their input at the same
 *       moment, beside a reader of the record that they all write; prints
 *       LOST TORN READS TIMEOUTS OTHER_FAULTS TEMPS NANOSECONDS CREATE, the last
 *       being what it takes there, with nobody else about, to make a file
 *   drive seen RUNS AGENTS PROGRAM ARG...
 *       starts the program, which lives until its input ends, and asks AGENTS,
 *       which is tongs-agents, to wait for its session; prints MEDIAN
 *       SLOWEST_OF_95_PERCENT of the nanoseconds until the answer is read
 *
 * IN is "-" for an empty input or a file whose bytes come through a pipe; OUT
 * is "null" or "pipe", which is read here. A time is from before the start of
 * the process until it was waited for. A command that fails ends everything.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define MAX_COMMANDS 8
#define MAX_BURST 1000
/* What a pipe holds, so that it can be filled before its reader starts. */
#define PIPE_BYTES (64 << 10)

struct command {
    const char *name;
    const char *in;
    size_t in_size;
    int out_pipe;
    char **argv;
    uint64_t *times;
    long maxrss;
};

static int null_fd;
static char buffer[PIPE_BYTES];

static void die(const char *what)
{
    perror(what);
    exit(74);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The file is mapped and not read, so that this program stays small. */
static void input(struct command *c, const char *path)
{
    struct stat status;
    int fd;
    c->in = NULL;
    c->in_size = 0;
    if (strcmp(path, "-") == 0)
        return;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0)
        die(path);
    c->in_size = (size_t)status.st_size;
    c->in = mmap(NULL, c->in_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (c->in == MAP_FAILED)
        die(path);
    close(fd);
}

static void output(struct command *c, const char *word)
{
    c->out_pipe = strcmp(word, "pipe") == 0;
}

/* A reader that went away is the reader's affair. */
static void feed(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, bytes, size < PIPE_BYTES ? size : PIPE_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        bytes += n;
        size -= (size_t)n;
    }
    close(fd);
}

static void ended(const struct command *c, int status)
{
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "drive: '%s' ended with status %#x\n", c->argv[0], (unsigned)status);
        exit(70);
    }
}

static void pipe_or_die(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) < 0)
        die("pipe");
}

static void actions(posix_spawn_file_actions_t *a, int in, int out)
{
    if (posix_spawn_file_actions_init(a) || posix_spawn_file_actions_adddup2(a, in, 0)
        || posix_spawn_file_actions_adddup2(a, out, 1)
        || posix_spawn_file_actions_adddup2(a, null_fd, 2))
        die("posix_spawn_file_actions");
}

static uint64_t run(struct command *c)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, status, error;
    int fits = c->in_size <= PIPE_BYTES;
    posix_spawn_file_actions_t spawned;
    struct rusage used;
    uint64_t start;
    pid_t pid;

    if (c->in) {
        pipe_or_die(in);
        if (fits)
            feed(in[1], c->in, c->in_size);
    }
    if (c->out_pipe)
        pipe_or_die(out);
    actions(&spawned, c->in ? in[0] : null_fd, c->out_pipe ? out[1] : null_fd);

    start = now();
    error = posix_spawn(&pid, c->argv[0], &spawned, NULL, c->argv, environ);
    if (error) {
        errno = error;
        die(c->argv[0]);
    }
    if (c->in) {
        close(in[0]);
        if (!fits)
            feed(in[1], c->in, c->in_size);
    }
    if (c->out_pipe) {
        close(out[1]);
        while (read(out[0], buffer, sizeof buffer) > 0)
            ;
        close(out[0]);
    }
    if (wait4(pid, &status, 0, &used) < 0)
        die("wait4");
    start = now() - start;

    posix_spawn_file_actions_destroy(&spawned);
    ended(c, status);
    if (used.ru_maxrss > c->maxrss)
        c->maxrss = used.ru_maxrss;
    return start;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Each round's time of a command by that of another one, in order. */
static double *ratios(const struct command *c, const struct command *to, long runs)
{
    double *all = calloc((size_t)runs, sizeof *all);
    if (!all)
        die("calloc");
    for (long i = 0; i < runs; i++)
        all[i] = (double)c->times[i] / (double)to->times[i];
    qsort(all, (size_t)runs, sizeof *all, by_value);
    return all;
}

static int counts(const struct command *c)
{
    return strcmp(c->name, "first") != 0;
}

/* Keeps this program and what it starts on one processor: they never run at
 * the same time, and waking an idle processor of a virtual machine can take
 * milliseconds. */
static void stay(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
}

static int time_all(int argc, char **argv)
{
    struct command commands[MAX_COMMANDS] = {0};
    struct command *first = NULL;
    double *by_first[MAX_COMMANDS];
    long runs, warm;
    int count = 0, at = 2, alone = 1;
    if (argc < 2 || (runs = atol(argv[0])) < 1 || (warm = atol(argv[1])) < 0)
        return 64;
    while (at < argc) {
        struct command *c = &commands[count];
        if (count == MAX_COMMANDS || strcmp(argv[at], "--") != 0 || argc - at < 5)
            return 64;
        argv[at++] = NULL;
        c->name = argv[at++];
        input(c, argv[at++]);
        output(c, argv[at++]);
        c->argv = argv + at;
        c->times = calloc((size_t)runs, sizeof *c->times);
        if (!c->times)
            die("calloc");
        while (at < argc && strcmp(argv[at], "--") != 0)
            at++;
        alone &= !c->out_pipe && c->in_size <= PIPE_BYTES;
        count++;
    }
    if (alone)
        stay();
    for (int k = 0; k < count; k++)
        if (!counts(&commands[k]))
            run(&commands[k]);
    for (long i = -warm; i < runs; i++)
        for (int k = 0; k < count; k++)
            if (counts(&commands[k])) {
                uint64_t took = run(&commands[k]);
                if (i >= 0)
                    commands[k].times[i] = took;
            }
    for (int k = 0; k < count; k++)
        if (counts(&commands[k])) {
            first = first ? first : &commands[k];
            by_first[k] = ratios(&commands[k], first, runs);
        }
    for (int k = 0; k < count; k++) {
        struct command *c = &commands[k];
        if (!counts(c))
            continue;
        qsort(c->times, (size_t)runs, sizeof *c->times, by_size);
        printf("%s %llu %llu %llu %.4g %.4g\n", c->name, (unsigned long long)c->times[runs / 2],
               (unsigned long long)c->times[0], (unsigned long long)c->times[(runs * 9 - 1) / 10],
               by_first[k][(runs - 1) / 20], by_first[k][(runs * 95 - 1) / 100]);
    }
    return 0;
}

static long peak_of(pid_t pid)
{
    char path[64], line[256];
    long peak = -1;
    FILE *file;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %ld", &peak) == 1)
            break;
    if (file)
        fclose(file);
    return peak;
}

/* The address space is gone when wait4 tells of the end, so the process is
 * stopped just before that. */
static int peak(int argc, char **argv)
{
    struct command c = {0};
    int in[2] = {-1, -1}, status;
    long kib = -1;
    pid_t pid, feeder = 0;
    if (argc < 3)
        return 64;
    input(&c, argv[0]);
    output(&c, argv[1]);
    c.argv = argv + 2;
    run(&c);
    if (c.in)
        pipe_or_die(in);
    pid = fork();
    if (pid == 0) {
        dup2(c.in ? in[0] : null_fd, 0);
        dup2(null_fd, 1);
        dup2(null_fd, 2);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
            execv(c.argv[0], c.argv);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        die("fork");
    /* Stopped at the start of the program, if this may be traced at all. */
    if (WIFSTOPPED(status)) {
        ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(long)(PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL));
        if (c.in) {
            feeder = fork();
            if (feeder == 0) {
                close(in[0]);
                feed(in[1], c.in, c.in_size);
                _exit(0);
            }
            close(in[0]);
            close(in[1]);
        }
        ptrace(PTRACE_CONT, pid, NULL, NULL);
        while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
            long signal = WSTOPSIG(status);
            if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8)) {
                kib = peak_of(pid);
                signal = 0;
            }
            ptrace(PTRACE_CONT, pid, NULL, (void *)signal);
        }
        if (feeder > 0)
            waitpid(feeder, NULL, 0);
        ended(&c, status);
    }
    printf("%ld %ld\n", kib, c.maxrss);
    return 0;
}

/* Whether these bytes are one whole JSON object, by its brackets and quotes. */
static int whole(const char *bytes, ssize_t size)
{
    int depth = 0, quoted = 0;
    if (size < 2 || bytes[0] != '{')
        return 0;
    for (ssize_t i = 0; i < size; i++) {
        char c = bytes[i];
        if (quoted) {
            if (c == '\\')
                i++;
            else if (c == '"')
                quoted = 0;
            else if ((unsigned char)c < ' ')
                return 0;
        } else if (c == '"') {
            quoted = 1;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (--depth == 0)
                return i == size - 1;
        }
    }
    return 0;
}

static ssize_t read_record(const char *path, char *to, size_t room)
{
    struct stat status;
    ssize_t size = -1;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0 && (size = read(fd, to, room)) != status.st_size)
        size = -1;
    close(fd);
    return size;
}

struct shared {
    volatile int stop;
    long reads, torn;
};

/* How many names of the directory begin and end so; the last one is kept. */
static long names(const char *dir, const char *begin, const char *end, char *name, size_t room)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    long count = 0;
    if (!d)
        die(dir);
    while ((entry = readdir(d))) {
        size_t size = strlen(entry->d_name), tail = strlen(end);
        if (strncmp(entry->d_name, begin, strlen(begin)) != 0 || size < tail
            || strcmp(entry->d_name + size - tail, end) != 0)
            continue;
        count++;
        if (name)
            snprintf(name, room, "%s/%s", dir, entry->d_name);
    }
    closedir(d);
    return count;
}

/* A file system may be slow at this for reasons of its own: ext4 looks at every
 * inode that was freed in the last half minute before it takes one. */
static uint64_t create_time(const char *dir)
{
    uint64_t times[9];
    char path[8192];
    snprintf(path, sizeof path, "%s/probe", dir);
    for (int i = 0; i < 9; i++) {
        uint64_t start = now();
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        times[i] = now() - start;
        if (fd < 0)
            die(path);
        close(fd);
        unlink(path);
    }
    qsort(times, 9, sizeof *times, by_size);
    return times[4];
}

static int burst(int argc, char **argv)
{
    static pid_t pids[MAX_BURST];
    static int feeds[MAX_BURST];
    struct command c = {0};
    struct shared *shared;
    char dir[4096], record[8192], line[512];
    const char *at;
    long count, seen = 0, timeouts = 0, faults = 0;
    uint64_t start, create;
    ssize_t size;
    pid_t reader;
    int status;
    FILE *log;

    if (argc < 4 || (count = atol(argv[0])) < 1 || count > MAX_BURST)
        return 64;
    input(&c, argv[1]);
    if (!c.in || c.in_size > PIPE_BYTES)
        return 64;
    c.argv = argv + 3;
    run(&c);
    snprintf(dir, sizeof dir, "%s/sessions", argv[2]);
    if (names(dir, "fleet-v1-", ".json", record, sizeof record) != 1) {
        fputs("drive: the first event left no record\n", stderr);
        return 70;
    }
    create = create_time(dir);

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("mmap");
    reader = fork();
    if (reader == 0) {
        const struct timespec pause = {0, 20000};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (!shared->stop) {
            shared->torn += !whole(buffer, read_record(record, buffer, sizeof buffer));
            shared->reads++;
            nanosleep(&pause, NULL);
        }
        _exit(0);
    }
    for (long i = 0; i < count; i++) {
        posix_spawn_file_actions_t spawned;
        int in[2];
        pipe_or_die(in);
        actions(&spawned, in[0], null_fd);
        if ((errno = posix_spawn(&pids[i], c.argv[0], &spawned, NULL, c.argv, environ)))
            die(c.argv[0]);
        posix_spawn_file_actions_destroy(&spawned);
        close(in[0]);
        feeds[i] = in[1];
    }
    start = now();
    for (long i = 0; i < count; i++)
        feed(feeds[i], c.in, c.in_size);
    for (long i = 0; i < count; i++) {
        if (waitpid(pids[i], &status, 0) < 0)
            die("waitpid");
        ended(&c, status);
    }
    start = now() - start;
    shared->stop = 1;
    waitpid(reader, NULL, 0);

    size = read_record(record, buffer, sizeof buffer - 1);
    buffer[size < 0 ? 0 : size] = 0;
    at = strstr(buffer, "\"arrival_sequence\":");
    if (at)
        seen = strtol(strchr(at, ':') + 1, NULL, 10);
    snprintf(record, sizeof record, "%s/hook-faults.log", argv[2]);
    log = fopen(record, "re");
    while (log && fgets(line, sizeof line, log)) {
        if (strstr(line, " lock-busy "))
            timeouts++;
        else
            faults++;
    }
    if (log)
        fclose(log);
    printf("%ld %ld %ld %ld %ld %ld %llu %llu\n", count + 1 - seen, shared->torn, shared->reads,
           timeouts, faults, names(dir, ".fleet-tmp-", "", NULL, 0), (unsigned long long)start,
           (unsigned long long)create);
    return 0;
}

static int seen(int argc, char **argv)
{
    long runs;
    uint64_t *times;
    if (argc < 3 || (runs = atol(argv[0])) < 1 || !(times = calloc((size_t)runs, sizeof *times)))
        return 64;
    for (long i = 0; i < runs; i++) {
        char number[16];
        char *wait[] = {argv[1], "wait", "--timeout", "10s", "--pid", number, NULL};
        struct command agent = {.argv = argv + 2}, waiter = {.argv = wait};
        posix_spawn_file_actions_t spawned;
        int in[2], out[2], status;
        pid_t pid, waits;

        pipe_or_die(in);
        pipe_or_die(out);
        times[i] = now();
        actions(&spawned, in[0], null_fd);
        if ((errno = posix_spawn(&pid, agent.argv[0], &spawned, NULL, agent.argv, environ)))
            die(agent.argv[0]);
        posix_spawn_file_actions_destroy(&spawned);
        snprintf(number, sizeof number, "%d", (int)pid);
        actions(&spawned, null_fd, out[1]);
        if ((errno = posix_spawn(&waits, wait[0], &spawned, NULL, wait, environ)))
            die(wait[0]);
        posix_spawn_file_actions_destroy(&spawned);
        close(out[1]);
        if (read(out[0], buffer, sizeof buffer) <= 0)
            fputs("drive: wait gave no answer\n", stderr);
        times[i] = now() - times[i];
        if (waitpid(waits, &status, 0) < 0)
            die("waitpid");
        ended(&waiter, status);
        close(out[0]);
        close(in[0]);
        close(in[1]);
        if (waitpid(pid, &status, 0) < 0)
            die("waitpid");
    }
    qsort(times, (size_t)runs, sizeof *times, by_size);
    printf("%llu %llu\n", (unsigned long long)times[runs / 2],
           (unsigned long long)times[(runs * 95 - 1) / 100]);
    return 0;
}

int main(int argc, char **argv)
{
    int done = 64;
    signal(SIGPIPE, SIG_IGN);
    /* In life a shell stands between a harness and its hook. */
    prctl(PR_SET_NAME, "sh");
    /* Where that is allowed. */
    setpriority(PRIO_PROCESS, 0, -19);
    null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0)
        die("/dev/null");
    if (argc > 1 && strcmp(argv[1], "time") == 0)
        done = time_all(argc - 2, argv + 2);
    else if (argc > 1 && strcmp(argv[1], "peak") == 0)
        done = peak(argc - 2, argv + 2);
    else if (argc > 1 && strcmp(argv[1], "burst") == 0)
        done = burst(argc - 2, argv + 2);
    else if (argc > 1 && strcmp(argv[1], "seen") == 0)
        done = seen(argc - 2, argv + 2);
    if (done == 64)
        fputs("drive: wrong usage, see the head of drive.c\n", stderr);
    return done;
}
