//! Loops of known speed, by which a processor is measured.
//!
//! # Approach
//! Each is a loop in assembly that only one thing limits, the one that it is named after: chains of operations by
//! their latency, independent operations by the units, branches by the predictor, chases through memory by one
//! level of the caches. An add takes one cycle, so that a chain of adds gives the clock: the others are timed
//! together with it, and time stolen by a hypervisor cancels out.
//!
//! The loops exist for x86-64 only. A chase can go on from where it stopped ([`Memory::go_on`]), so that short
//! pieces of it go through all of its memory as well.
//!
//! # Properties
//! `every_kernel_ends_after_its_rounds`, `a_chase_meets_every_line_once`, `a_chase_goes_on_from_where_it_was`.
#![expect(unsafe_code, reason = "what is executed can be said by assembly only")]

use std::time::Duration;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::time::{ClockId, clock_gettime};

/// A loop of known speed.
#[derive(Debug, Clone, Copy)]
pub struct LoopKernel {
    /// Its name, which says what it does.
    pub name: &'static str,
    /// Operations of a round: those that it is named after, without the loop and its counter.
    pub operations: u64,
    /// Instructions of a round, on average.
    pub instructions: f64,
    /// Bytes of memory that it goes through.
    pub bytes: usize,
    /// Bytes of them in a round; 0: the same all the time.
    round_bytes: usize,
    /// Is its memory in pages of 2 MiB?
    pub huge: bool,
    /// Does it follow pointers through all lines?
    chases: bool,
    run: unsafe fn(u64, *mut u64, *mut u64) -> *mut u64,
}

/// Bytes of a line, and of the pages that the buffer begins with.
const LINE: usize = 64;
const HUGE: usize = 2 << 20;

/// The loop of a kernel: `body` is executed in each round. It may use rax, rcx (7 as it begins), rdx (1), r8 to r11,
/// xmm0 and xmm1 (1.0), and 64 KiB at rdi; r8 begins with rdi, rax with `first`. Gives rax as it ends.
macro_rules! rounds {
    ($name:ident: $($body:literal),+) => {
        #[cfg(target_arch = "x86_64")]
        unsafe fn $name(rounds: u64, memory: *mut u64, first: *mut u64) -> *mut u64 {
            let last: *mut u64;
            // SAFETY: all registers that change are named; memory is the caller's, as long as said.
            unsafe {
                std::arch::asm!(
                    "2:",
                    $($body,)+
                    "sub rsi, 1",
                    "jnz 2b",
                    inout("rsi") rounds.max(1) => _,
                    inout("rdi") memory => _,
                    inout("rax") first => last,
                    inout("r8") memory => _,
                    inout("rcx") 7_u64 => _,
                    inout("rdx") 1_u64 => _,
                    out("r9") _, out("r10") _, out("r11") _,
                    inout("xmm0") 1.0_f64 => _,
                    inout("xmm1") 1.0_f64 => _,
                );
            }
            last
        }
    };
}

rounds!(adds: ".rept 64", "add rax, rdx", ".endr");
rounds!(multiplies: ".rept 32", "imul rax, rdx", ".endr");
rounds!(independent_adds: ".rept 16", "add rax, rdx", "add r9, rdx", "add r10, rdx", "add r11, rdx", ".endr");
rounds!(fp_adds: ".rept 32", "addsd xmm0, xmm1", ".endr");
rounds!(fp_multiplies: ".rept 32", "mulsd xmm0, xmm1", ".endr");
rounds!(fp_divisions: ".rept 16", "divsd xmm0, xmm1", ".endr");
rounds!(divisions: ".rept 8", "mov rax, r8", "xor edx, edx", "div rcx", ".endr");
rounds!(same_address: ".rept 16", "mov rax, [rdi]", "add rax, rdx", "mov [rdi], rax", ".endr");
rounds!(indexed_address:
    "lea r8, [rdi - 56]", ".rept 16", "mov rax, [rdi]", "add rax, rdx", "mov [r8 + rcx*8], rax", ".endr");
rounds!(partly_stored: ".rept 16", "mov rax, [rdi]", "add eax, edx", "mov [rdi], eax", ".endr");
rounds!(loads: ".rept 16", "mov rax, [rdi]", "mov r9, [rdi + 8]", "mov r10, [rdi + 16]", "mov r11, [rdi + 24]", ".endr");
rounds!(stores: ".rept 16", "mov [rdi], rdx", "mov [rdi + 64], rdx", "mov [rdi + 128], rdx", "mov [rdi + 192], rdx", ".endr");
rounds!(taken_jumps: ".rept 16", "jmp 3f", ".balign 64", "3:", ".endr");
// Two no-operations of 9 and 2 bytes fill each call's 16.
rounds!(calls:
    "jmp 4f", ".balign 64", "3:", "ret", ".balign 64", "4:", ".rept 16", "call 3b",
    ".byte 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0", ".byte 0x66, 0x90", ".endr");
rounds!(pattern: ".rept 4", "sub rcx, 1", "jnz 3f", "mov ecx, 7", "3:", ".endr");
rounds!(random:
    "mov r9, 6364136223846793005", ".rept 4", "imul rax, r9", "add rax, 12345", "jns 3f", "add r10, rdx", "3:", ".endr");
rounds!(chase: ".rept 16", "mov rax, [rax]", ".endr");
rounds!(sum:
    ".rept 8", "add r9, [r8]", "add r10, [r8 + 8]", "add r9, [r8 + 16]", "add r10, [r8 + 24]", "add r9, [r8 + 32]",
    "add r10, [r8 + 40]", "add r9, [r8 + 48]", "add r10, [r8 + 56]", "add r8, 64", ".endr",
    // Begins again after 64 MiB.
    "mov r11, r8", "sub r11, rdi", "shr r11, 26", "test r11, r11", "cmovnz r8, rdi");

#[cfg(target_arch = "x86_64")]
const fn kernel(
    name: &'static str,
    operations: u64,
    each: f64,
    run: unsafe fn(u64, *mut u64, *mut u64) -> *mut u64,
) -> LoopKernel {
    // Each round counts and jumps.
    let instructions = operations as f64 * each + 2.0;
    let (bytes, round_bytes) = (64 << 10, 0);
    LoopKernel {
        name,
        operations,
        instructions,
        bytes,
        round_bytes,
        huge: false,
        chases: false,
        run,
    }
}

#[cfg(target_arch = "x86_64")]
const fn chasing(name: &'static str, bytes: usize, huge: bool) -> LoopKernel {
    let round_bytes = 16 * LINE;
    LoopKernel { bytes, round_bytes, huge, chases: true, ..kernel(name, 16, 1.0, chase) }
}

/// All kernels. The first takes a cycle for each operation.
#[cfg(target_arch = "x86_64")]
pub const KERNELS: &[LoopKernel] = &[
    kernel("dependent adds", 64, 1.0, adds),
    kernel("dependent multiplies", 32, 1.0, multiplies),
    kernel("FP add chain", 32, 1.0, fp_adds),
    kernel("FP multiply chain", 32, 1.0, fp_multiplies),
    kernel("FP division chain", 16, 1.0, fp_divisions),
    kernel("divisions", 8, 3.0, divisions),
    kernel("chain through memory by the same register", 16, 3.0, same_address),
    kernel("chain through memory by other registers", 16, 3.0 + 1.0 / 16.0, indexed_address),
    kernel("chain through memory half stored", 16, 3.0, partly_stored),
    kernel("independent adds", 64, 1.0, independent_adds),
    kernel("independent loads", 64, 1.0, loads),
    kernel("stores", 64, 1.0, stores),
    kernel("taken jumps", 16, 1.0, taken_jumps),
    kernel("calls and returns", 16, 4.0 + 1.0 / 16.0, calls),
    kernel("branch on a pattern of 7", 4, 2.0 + 1.0 / 7.0, pattern),
    kernel("branch on a random bit", 4, 3.75, random),
    chasing("pointer chase in 16 KiB", 16 << 10, false),
    chasing("pointer chase in 256 KiB", 256 << 10, false),
    chasing("pointer chase in 4 MiB", 4 << 20, false),
    chasing("pointer chase in 4 MiB of huge pages", 4 << 20, true),
    chasing("pointer chase in 64 MiB", 64 << 20, false),
    chasing("pointer chase in 64 MiB of huge pages", 64 << 20, true),
    chasing("pointer chase in 512 MiB of huge pages", 512 << 20, true),
    LoopKernel {
        bytes: 64 << 20,
        round_bytes: 8 * LINE,
        ..kernel("sum of 64 MiB", 64, 1.0 + 13.0 / 64.0, sum)
    },
];

/// No kernels: this is no x86-64.
#[cfg(not(target_arch = "x86_64"))]
pub const KERNELS: &[LoopKernel] = &[];

/// The memory that a kernel works on.
#[derive(Debug)]
pub struct Memory {
    start: *mut u64,
    mapped: (*mut std::ffi::c_void, usize),
    /// It is as long as this kernel needs, and linked for it.
    kernel: LoopKernel,
    /// Where a chase goes on.
    at: *mut u64,
}

impl Memory {
    /// Executes this many rounds of its kernel; gives the CPU time that the thread spent on them.
    #[must_use]
    pub fn time(&self, rounds: u64) -> Duration {
        let begin = cpu_time();
        // SAFETY: the memory is the kernel's own: it has all bytes and pointers that the loop goes through.
        unsafe { (self.kernel.run)(rounds, self.start, self.start) };
        cpu_time().saturating_sub(begin)
    }

    /// The same; a chase goes on from where it was, so that it goes through all its memory in time, however few
    /// rounds it executes at once.
    pub fn go_on(&mut self, rounds: u64) -> Duration {
        let begin = cpu_time();
        // SAFETY: as above; a chase that has executed some rounds is at a pointer of its memory.
        let last = unsafe { (self.kernel.run)(rounds, self.start, self.at) };
        if self.kernel.chases {
            self.at = last;
        }
        cpu_time().saturating_sub(begin)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's alone, which ends here. It cannot fail for a mapping that exists.
        let _ = unsafe { munmap(self.mapped.0, self.mapped.1) };
    }
}

impl LoopKernel {
    /// The kernel of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        KERNELS.iter().find(|kernel| kernel.name == name).copied()
    }

    /// Does it follow pointers, and go on from where it was ([`Memory::go_on`])?
    #[must_use]
    pub fn chases(&self) -> bool {
        self.chases
    }

    /// Rounds in which it goes through all of its bytes, at least one.
    #[must_use]
    pub fn pass(&self) -> u64 {
        self.bytes.checked_div(self.round_bytes).unwrap_or(1) as u64
    }

    /// Memory for it, touched and linked.
    ///
    /// # Errors
    /// When there is not enough.
    pub fn memory(&self) -> std::io::Result<Memory> {
        let length = self.bytes.next_multiple_of(HUGE) + HUGE;
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping, at an address that is not in use.
        let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), length, access, flags) }?;
        let start = mapped.map_addr(|address| address.next_multiple_of(HUGE)).cast::<u64>();
        let memory = Memory { start, mapped: (mapped, length), kernel: *self, at: start };
        let advice = if self.huge { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // Kernels without huge pages refuse it: the result is then for small ones.
        // SAFETY: advice on this mapping alone.
        let _ = unsafe { madvise(mapped, length, advice) };
        let lines = self.bytes / LINE;
        let words = LINE / size_of::<u64>();
        for (line, next) in successors(lines) {
            let next = if self.chases { start.wrapping_add(next * words) as u64 } else { 0 };
            let place = start.wrapping_add(line * words);
            // SAFETY: `line` is below the lines of the mapping, which begins before `start`.
            unsafe { place.write(next) };
        }
        Ok(memory)
    }
}

/// CPU time of this thread: others that had the CPU meanwhile do not count.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Each line and that which follows it: one circle through a power of two of lines, that looks random (a linear
/// congruential generator of full period; Knuth, The art of computer programming, 3.2.1.2).
fn successors(lines: usize) -> impl Iterator<Item = (usize, usize)> {
    let lines = lines.next_power_of_two();
    (0..lines).map(move |line| {
        let next = line.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (line, next & (lines - 1))
    })
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_ends_after_its_rounds() {
        for kernel in KERNELS {
            let memory = kernel.memory().unwrap();
            for rounds in [0, 1, 3000] {
                let _ = memory.time(rounds);
            }
            assert_eq!(LoopKernel::named(kernel.name).map(|it| it.name), Some(kernel.name));
        }
    }

    #[test]
    fn a_chase_goes_on_from_where_it_was() {
        let kernel = LoopKernel::named("pointer chase in 16 KiB").unwrap();
        let mut memory = kernel.memory().unwrap();
        let (line, lines) = (LINE / size_of::<u64>(), (16 << 10) / LINE);
        let successors: Vec<usize> = successors(lines).map(|(_, next)| next).collect();
        let mut at = 0;
        for rounds in [1, 3, 2] {
            let _ = memory.go_on(rounds);
            for _ in 0..16 * rounds {
                at = successors[at];
            }
            assert_eq!(memory.at, memory.start.wrapping_add(at * line));
        }
        let mut other = LoopKernel::named("independent adds").unwrap().memory().unwrap();
        let _ = other.go_on(3);
        assert_eq!(other.at, other.start);
    }

    #[test]
    fn a_chase_meets_every_line_once() {
        let next: Vec<usize> = successors(1 << 12).map(|(_, next)| next).collect();
        let mut at = 0;
        for met in 1..=next.len() {
            at = next[at];
            assert_eq!(at == 0, met == next.len());
        }
    }
}
