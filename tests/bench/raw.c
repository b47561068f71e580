/* raw DIRECTORY: opens, asks the size of, reads and writes to standard output
 * every record of a directory, and does nothing else: the least that a reader
 * of all records can do with one read a record. */
#include "bare.h"
#include <sys/stat.h>

static char entries[32 << 10];
static char record[(64 << 10) + 1];
static struct stat status;

struct entry {
    unsigned long inode;
    long next;
    unsigned short size;
    unsigned char type;
    char name[];
};

/* fleet-v1-*.json; the names of locks begin with a dot. */
static int is_record(const char *name)
{
    size_t end = 0;
    while (name[end])
        end++;
    return name[0] != '.' && end > 5 && name[end - 5] == '.' && name[end - 4] == 'j';
}

PROGRAM
{
    const char *path = (const char *)stack[2];
    long dir = CALL3(openat, AT_FDCWD, path, DIR_FLAGS);
    long got;
    if (dir < 0)
        leave(1);
    while ((got = CALL3(getdents64, dir, entries, sizeof entries)) > 0) {
        long at = 0;
        while (at < got) {
            const struct entry *entry = (const struct entry *)(entries + at);
            long file, size;
            at += entry->size;
            if (!is_record(entry->name))
                continue;
            file = CALL3(openat, dir, entry->name, READ_FLAGS);
            CALL2(fstat, file, &status);
            size = CALL3(read, file, record, sizeof record);
            if (size < 0 || CALL3(write, 1, record, size) != size)
                leave(1);
            CALL1(close, file);
        }
    }
    leave(got < 0);
}
