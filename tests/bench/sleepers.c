/* sleepers N FILE: starts N processes that do nothing, makes FILE when all are
 * there, and ends them all when it is told to end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int count, started = 0, signal_number, file;
    pid_t *pids;
    sigset_t ends;
    if (argc != 3 || (count = atoi(argv[1])) <= 0)
        return 64;
    pids = calloc(count, sizeof *pids);
    if (!pids)
        return 74;
    /* A shell starts what runs beside it with interrupts ignored. */
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (; started < count; started++) {
        pids[started] = fork();
        if (pids[started] == 0) {
            /* Should the parent be killed outright. */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                pause();
        }
        if (pids[started] < 0)
            break;
    }
    if (started == count) {
        file = open(argv[2], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (file >= 0) {
            close(file);
            sigwait(&ends, &signal_number);
        }
    } else {
        perror("sleepers: fork");
    }
    for (int i = 0; i < started; i++)
        kill(pids[i], SIGKILL);
    for (int i = 0; i < started; i++)
        waitpid(pids[i], NULL, 0);
    return started == count ? 0 : 75;
}
