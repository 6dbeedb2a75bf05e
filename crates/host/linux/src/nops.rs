//! A thread that executes nothing but no-operations: the co-runner that throttles a program to an SMT
//! mode without disturbing it (Feliu et al., section 3.2).
#![expect(unsafe_code, reason = "no-operations can be written in assembly only")]

/// Executes 64 no-operations where the processor's assembly is known here (x86-64 and 64-bit Arm). Elsewhere it
/// executes none, but the compiler may not leave out the call.
#[inline]
pub fn nops() {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: the instructions touch no register, no flag and no memory.
    unsafe {
        std::arch::asm!(".rept 64", "nop", ".endr", options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    std::hint::black_box(());
}
