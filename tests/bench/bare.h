/* System calls without a C library, for the programs that the bench measures
 * against: what is left is the kernel's own work. x86-64 only. */
#ifndef BARE_H
#define BARE_H

#include <asm/unistd.h>
#include <fcntl.h>
#include <stddef.h>

#ifndef __x86_64__
#error "written for x86-64"
#endif

static inline long call(long n, long a, long b, long c, long d, long e)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}

#define CALL0(n) call(__NR_##n, 0, 0, 0, 0, 0)
#define CALL1(n, a) call(__NR_##n, (long)(a), 0, 0, 0, 0)
#define CALL2(n, a, b) call(__NR_##n, (long)(a), (long)(b), 0, 0, 0)
#define CALL3(n, a, b, c) call(__NR_##n, (long)(a), (long)(b), (long)(c), 0, 0)
#define CALL4(n, a, b, c, d) call(__NR_##n, (long)(a), (long)(b), (long)(c), (long)(d), 0)
#define CALL5(n, a, b, c, d, e) call(__NR_##n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))

/* How tongs opens what it reads. */
#define READ_FLAGS (O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* The entry: the stack pointer is where argc lies. */
__attribute__((noreturn, used)) static void begin(long *stack);
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall begin\n");

#define PROGRAM \
    __attribute__((noreturn, used)) static void begin(long *stack)

__attribute__((noreturn)) static inline void leave(int status)
{
    for (;;)
        CALL1(exit_group, status);
}

#endif
