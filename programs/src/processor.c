/* The emulator's processor for programs that run natively: to be loaded before all other libraries. What they ask
 * of the processor (cpuid) is answered as the emulator does, so that they choose the code that was profiled. The
 * C library asks before this is there: what it chooses is set by GLIBC_TUNABLES.
 *
 * With -DTABLE it is a program that prints the answers, to be run under the emulator; they are included below as
 * answers.h. Linux on processors whose cpuid can fault (arch_prctl(2), ARCH_SET_CPUID) only. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

struct answer {
    unsigned leaf, subleaf, eax, ebx, ecx, edx;
};

#ifdef TABLE

/* All leaves; of those that have subleaves as many as are known of. */
int main(void) {
    for (unsigned first = 0; first <= 0x80000000; first += 0x80000000) {
        unsigned last = __get_cpuid_max(first, NULL);
        for (unsigned leaf = first; leaf <= last; leaf++) {
            unsigned subleaves = leaf == 4 || leaf == 7 || leaf == 0xb || leaf == 0xd ? 16 : 1;
            for (unsigned subleaf = 0; subleaf < subleaves; subleaf++) {
                struct answer it = {leaf, subleaf, 0, 0, 0, 0};
                __cpuid_count(leaf, subleaf, it.eax, it.ebx, it.ecx, it.edx);
                printf("{%#x, %u, %#x, %#x, %#x, %#x},\n", leaf, subleaf, it.eax, it.ebx, it.ecx, it.edx);
            }
        }
        if (first) break;
    }
}

#else

static const struct answer answers[] = {
#include "answers.h"
};

/* The C library's own, found by the constructor. */
static int (*set)(int, const struct sigaction *, struct sigaction *);

static void answer(int signal_number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)registers[REG_RIP];
    if (info->si_code != SI_KERNEL || at[0] != 0x0f || at[1] != 0xa2) {
        /* Not cpuid: it faults again, and ends as it would have. */
        struct sigaction ends = {.sa_handler = SIG_DFL};
        set(signal_number, &ends, NULL);
        return;
    }
    unsigned leaf = registers[REG_RAX], subleaf = registers[REG_RCX];
    struct answer found = {0};
    for (size_t n = 0; n < sizeof answers / sizeof *answers; n++) {
        /* Leaves without subleaves have one row. */
        int only = n + 1 == sizeof answers / sizeof *answers || answers[n + 1].leaf != leaf;
        int first = n == 0 || answers[n - 1].leaf != leaf;
        if (answers[n].leaf == leaf && (answers[n].subleaf == subleaf || (first && only))) found = answers[n];
    }
    registers[REG_RAX] = found.eax;
    registers[REG_RBX] = found.ebx;
    registers[REG_RCX] = found.ecx;
    registers[REG_RDX] = found.edx;
    registers[REG_RIP] += 2;
}

/* Handlers of the program's own are not set for this signal: it would handle questions as crashes. */
int sigaction(int number, const struct sigaction *restrict to, struct sigaction *restrict was) {
    return set(number, number == SIGSEGV ? NULL : to, was);
}

static sighandler_t old(int number, sighandler_t to, int flags) {
    struct sigaction action = {.sa_handler = to, .sa_flags = flags}, was;
    return sigaction(number, &action, &was) ? SIG_ERR : was.sa_handler;
}

sighandler_t signal(int number, sighandler_t to) {
    return old(number, to, SA_RESTART);
}

/* The same, for those compiled for System V's. */
sighandler_t __sysv_signal(int number, sighandler_t to) {
    return old(number, to, SA_RESETHAND | SA_NODEFER);
}

__attribute__((constructor)) static void begin(void) {
    enum { ARCH_SET_CPUID = 0x1012 };
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
    set = (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
    if (set(SIGSEGV, &action, NULL) || syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0)) {
        static const char why[] = "processor.so: this machine's cpuid cannot be answered\n";
        if (write(STDERR_FILENO, why, sizeof why - 1) < 0) abort();
        _exit(125);
    }
}

#endif
