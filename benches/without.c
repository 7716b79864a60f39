// Hides instruction sets from the program that it is preloaded into (Linux, x86-64), so that
// libraries choose their code as on a processor without them:
//   WITHOUT=avx512,gfni,vaes LD_PRELOAD=without.so PROGRAM
//
// The kernel makes CPUID trap (arch_prctl(2), ARCH_SET_CPUID). The trap's handler answers with the
// real result less the bits that are hidden. glibc has chosen its functions before: hide the sets
// from it by GLIBC_TUNABLES. Threads inherit the trap; child processes set it by their own preload.
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define ARCH_SET_CPUID 0x1012

// Bits of leaf 7: EBX and ECX of subleaf 0, EAX of subleaf 1.
static unsigned hidden_ebx, hidden_ecx, hidden_edx, hidden_eax1;

static void on_trap(int number, siginfo_t *info, void *context) {
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)regs[REG_RIP];
    if (info->si_code <= 0 || code[0] != 0x0f || code[1] != 0xa2) {
        // Another fault: it comes again, and ends the program.
        signal(number, SIG_DFL);
        return;
    }
    unsigned leaf = regs[REG_RAX], sub = regs[REG_RCX], a, b, c, d;
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
    __cpuid_count(leaf, sub, a, b, c, d);
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
    if (leaf == 7 && sub == 0) {
        b &= ~hidden_ebx;
        c &= ~hidden_ecx;
        d &= ~hidden_edx;
    } else if (leaf == 7 && sub == 1) {
        a &= ~hidden_eax1;
    }
    regs[REG_RAX] = a;
    regs[REG_RBX] = b;
    regs[REG_RCX] = c;
    regs[REG_RDX] = d;
    regs[REG_RIP] += 2;
}

__attribute__((constructor)) static void hide(void) {
    const char *names = getenv("WITHOUT");
    if (!names) return;
    if (strstr(names, "avx512")) {
        // F, DQ, IFMA, PF, ER, CD, BW, VL; VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ; 4VNNIW, 4FMAPS,
        // VP2INTERSECT, FP16; BF16.
        hidden_ebx |= 1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31;
        hidden_ecx |= 1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14;
        hidden_edx |= 1u << 2 | 1u << 3 | 1u << 8 | 1u << 23;
        hidden_eax1 |= 1u << 5;
    }
    if (strstr(names, "gfni")) hidden_ecx |= 1u << 8;
    if (strstr(names, "vaes")) hidden_ecx |= 1u << 9 | 1u << 10; // and VPCLMULQDQ, which came with it
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0)) {
        perror("without: this processor or kernel cannot make CPUID trap");
        exit(1);
    }
}
