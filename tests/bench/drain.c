/* Reads standard input to its end and drops it. */
#include "bare.h"

static char buffer[64 << 10];

PROGRAM
{
    (void)stack;
    while (CALL3(read, 0, buffer, sizeof buffer) > 0)
        ;
    leave(0);
}
