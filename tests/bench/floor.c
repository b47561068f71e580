/* The hook's system calls and nothing else: the floor that the hook is measured
 * against. It makes the calls of one event of an existing record, in the
 * hook's order and with its flags, and really replaces a record, by itself, but
 * it does not parse, decide or hash. run.sh compares the two traces.
 *
 * ROOT, RECORD, RECORD_LOCK and IDENTITY_LOCK are given when it is compiled:
 * the state root and three names in its directory of records. */
#include "bare.h"
#include <asm/prctl.h>
#include <linux/time_types.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

#define EXCHANGE 2
#define UNBLOCK 1
#define BLOCK 0
#define SETMASK 2
#define ON_STACK 0x08000000UL
#define RESTORER 0x04000000UL
#define IGNORE ((void (*)(int))1)

struct action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

struct timer {
    struct { long sec, usec; } interval, value;
};

struct stack {
    void *sp;
    int flags;
    size_t size;
};

static char thread[256];
static char signal_stack[16 << 10];
static char payload[64 << 10];
static char record[(64 << 10) + 1];
static char text[4096];
static struct stat status;

void restore(void);
__asm__("restore:\n\tmov $15, %eax\n\tsyscall\n");

static void nothing(int signal)
{
    (void)signal;
}

static void handle(int signal, void (*handler)(int), unsigned long flags)
{
    struct action action = {handler, flags | RESTORER, restore, 0};
    CALL4(rt_sigaction, signal, &action, NULL, 8);
}

static void mask(int how, unsigned long set)
{
    CALL4(rt_sigprocmask, how, &set, NULL, 8);
}

static char *put(char *to, const char *from)
{
    while (*from)
        *to++ = *from++;
    *to = 0;
    return to;
}

static char *number(char *to, long value)
{
    char digits[20];
    int count = 0;
    do
        digits[count++] = '0' + value % 10;
    while (value /= 10);
    while (count)
        *to++ = digits[--count];
    *to = 0;
    return to;
}

static void proc(char *to, long pid, const char *file)
{
    put(number(put(to, "/proc/"), pid), file);
}

static long take(const char *path, size_t room)
{
    long file = CALL3(openat, AT_FDCWD, path, READ_FLAGS);
    long size = CALL3(read, file, text, room);
    CALL1(close, file);
    return size;
}

/* Reads a process's line and says which is its parent: the number after the
 * state, which stands after the last parenthesis. */
static long parent_of(long pid)
{
    char path[40];
    long size, at, parent = 0;
    proc(path, pid, "/stat");
    size = take(path, 1024);
    for (at = size - 1; at > 0 && text[at] != ')'; at--)
        ;
    for (at += 4; at < size && text[at] >= '0' && text[at] <= '9'; at++)
        parent = parent * 10 + (text[at] - '0');
    return parent;
}

static long lock(long dir, const char *name)
{
    long file = CALL4(openat, dir, name, O_RDWR | O_CREAT | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0600);
    CALL2(flock, file, LOCK_EX);
    CALL2(fstat, file, &status);
    CALL4(newfstatat, dir, name, &status, AT_SYMLINK_NOFOLLOW);
    return file;
}

PROGRAM
{
    static const int fatal[] = {1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 15, 24, 31};
    static const struct timer timer = {{0, 10000}, {0, 10000}};
    static const struct __kernel_timespec wait = {0, 2000000};
    struct stack handlers = {signal_stack, 0, sizeof signal_stack};
    struct pollfd input = {0, POLLIN, 0};
    struct __kernel_timespec time;
    char path[40], temp[40];
    unsigned long set = 0;
    long null, parent, agent, root, dir, identity, held, file, size;
    (void)stack;

    /* the start of the C library */
    CALL2(arch_prctl, ARCH_SET_FS, thread);
    CALL1(set_tid_address, thread);

    /* the time */
    CALL2(clock_gettime, 0, &time);
    CALL2(clock_gettime, 7, &time);
    CALL2(clock_gettime, 1, &time);

    /* the guard */
    null = CALL2(open, "/dev/null", O_RDWR | O_CLOEXEC);
    CALL2(dup2, null, 1);
    CALL2(dup2, null, 2);
    CALL2(sigaltstack, &handlers, NULL);
    handle(13, IGNORE, 0);
    handle(25, IGNORE, 0);
    handle(21, IGNORE, 0);
    mask(UNBLOCK, 3UL << 32);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        if (fatal[i] == 6)
            mask(BLOCK, ~0UL);
        handle(fatal[i], nothing, ON_STACK);
        if (fatal[i] == 6)
            mask(SETMASK, 0);
        set |= 1UL << (fatal[i] - 1);
    }
    handle(14, nothing, ON_STACK);
    mask(UNBLOCK, set | 1UL << 13);
    CALL3(setitimer, 0, &timer, NULL);
    CALL1(umask, 077);

    /* the event, and whose it is */
    CALL3(read, 0, payload, sizeof payload);
    parent = CALL0(getppid);
    take("/proc/sys/kernel/random/boot_id", 37);
    proc(path, parent, "/ns/pid");
    CALL4(newfstatat, AT_FDCWD, path, &status, 0);
    agent = parent_of(parent);
    parent_of(agent);
    proc(path, agent, "/cmdline");
    take(path, sizeof text);

    /* the store */
    root = CALL3(openat, AT_FDCWD, ROOT, DIR_FLAGS);
    CALL0(geteuid);
    CALL2(fstat, root, &status);
    CALL4(newfstatat, root, "..", &status, 0);
    dir = CALL3(openat, root, "sessions", DIR_FLAGS);
    CALL2(fstat, dir, &status);
    CALL2(clock_gettime, 1, &time);
    CALL4(newfstatat, dir, RECORD, &status, AT_SYMLINK_NOFOLLOW);

    /* the record, under its two locks */
    identity = lock(dir, IDENTITY_LOCK);
    held = lock(dir, RECORD_LOCK);
    file = CALL3(openat, dir, RECORD, READ_FLAGS);
    CALL2(fstat, file, &status);
    size = CALL3(read, file, record, sizeof record);
    CALL1(close, file);
    if (size <= 0)
        leave(1);
    put(number(put(temp, ".fleet-tmp-"), CALL0(getpid)), "-0.tmp");
    file = CALL4(openat, dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (CALL3(write, file, record, size) != size)
        leave(1);
    if (CALL5(renameat2, dir, temp, dir, RECORD, EXCHANGE) != 0)
        leave(1);
    CALL3(unlinkat, dir, temp, 0);
    CALL1(close, file);
    CALL1(close, held);
    CALL1(close, identity);

    /* what the harness still had to write */
    CALL5(ppoll, &input, 1, &wait, NULL, 8);
    leave(0);
}
