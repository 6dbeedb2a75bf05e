//! A program of which it is known how many instructions it executes.
//!
//! Compilers do not expose it, so it is written in machine code: it waits for a byte on
//! standard input, turns a loop, writes a byte to standard output, and waits again; at
//! the end of the input it exits.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::test_folder::{TestFolder, wait_until};

use super::elf::Code;

/// The program's name, as the kernel reports it.
const NAME: &str = "counted";
/// The program for the architecture of this guest.
struct Program {
    /// The architecture's number and flags in ELF files.
    machine: u16,
    flags: u32,
    words: Vec<u32>,
    /// Instructions from one wait to the next.
    each_round: u64,
}

/// Arm Architecture Reference Manual for A-profile, chapter C6.
#[cfg(target_arch = "aarch64")]
fn program(turns: u32) -> Option<Program> {
    let set = |register: u32, value: u32| 0xd280_0000 | value << 5 | register;
    let call = |number, file| [set(0, file), 0x9100_03e1, set(2, 1), set(8, number), 0xd400_0001];
    let (read, write) = (call(63, 0), call(64, 1));
    let turn = [set(3, turns & 0xffff), 0xf2a0_0003 | (turns >> 16) << 5, 0xf100_0463, 0x54ff_ffe1];
    // cbz over turn, write and the branch; b to the begin.
    let (end, again) = (0xb400_0000 | 11 << 5, 0x1400_0000 | (0x3ff_ffff & -15_i32 as u32));
    let exit = [set(0, 0), set(8, 93), 0xd400_0001];
    let words = [&read[..], &[end], &turn, &write, &[again], &exit].concat();
    // Both instructions of the loop, and all but exit once.
    let each_round = 2 * u64::from(turns) + 14;
    Some(Program { machine: 183, flags: 0, words, each_round })
}

/// Power ISA, book I, chapters 2 and 3; calls as in the kernel's
/// Documentation/arch/powerpc/syscall64-abi.rst.
#[cfg(target_arch = "powerpc64")]
fn program(turns: u32) -> Option<Program> {
    let set = |register: u32, value: u32| 14 << 26 | register << 21 | value;
    let call = |number, file| [set(3, file), 0x7c24_0b78, set(5, 1), set(0, number), 0x4400_0002];
    let (read, write) = (call(3, 0), call(4, 1));
    // cmpdi; beq over turn, write and the branch.
    let end = [0x2c23_0000, 0x4182_0000 | 12 << 2];
    let (high, low) = (turns >> 16, turns & 0xffff);
    // lis, ori, mtctr; nop, bdnz.
    let turn = [0x3cc0_0000 | high, 0x60c6_0000 | low, 0x7cc9_03a6, 0x6000_0000, 0x4200_fffc];
    // b to the begin.
    let again = [0x4800_0000 | (0x3ff_fffc & (-17_i32 as u32) << 2)];
    let exit = [set(3, 0), set(0, 1), 0x4400_0002];
    let words = [&read[..], &end, &turn, &write, &again, &exit].concat();
    let each_round = 2 * u64::from(turns) + 16;
    Some(Program { machine: 21, flags: 2, words, each_round })
}

#[cfg(not(any(target_arch = "aarch64", target_arch = "powerpc64")))]
fn program(_: u32) -> Option<Program> {
    None
}

/// The program, waiting.
pub struct Counted {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// Instructions of a round.
    pub each_round: u64,
}

impl Counted {
    /// Starts it; none where there is no machine code for this architecture.
    pub fn start(place: &TestFolder, turns: u32) -> Option<Self> {
        let Program { machine, flags, words, each_round } = program(turns)?;
        let path = place.path(NAME);
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Code { machine, flags, bytes }.write(&path);
        let mut command = Command::new(path);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let counted = Self { child, input, output, each_round };
        wait_until("it waits", || counted.waits());
        Some(counted)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Plays a round.
    pub fn round(&mut self) {
        self.input.write_all(b"?").unwrap();
        self.output.read_exact(&mut [0]).unwrap();
        wait_until("it waits", || self.waits());
    }

    fn waits(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        stat.contains(&format!("({NAME}) S"))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
