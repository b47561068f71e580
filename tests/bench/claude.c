/* Stands for an agent: a living process of its name whose grandchildren are
 * the hooks. Runs the command line that it is given and ends as that did. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int status = 0;
    pid_t pid;
    if (argc < 2)
        return 64;
    /* Whoever kills one of the chain ends what hangs below it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execv(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return 74;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
