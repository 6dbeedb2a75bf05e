//! A program of which it is known how many instructions it executes.
//!
//! Compilers do not tell, so it is written in machine code: it waits for a byte on
//! standard input, turns a loop, writes a byte to standard output, and waits again; at
//! the end of the input it exits.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::place::{Place, wait_until};

/// The program's name, as the kernel tells it.
const NAME: &str = "counted";
/// Where it is loaded.
const BASE: u64 = 0x1000_0000;
/// Sizes of the headers of file and segment.
const HEADERS: [u64; 2] = [64, 56];

/// Machine code for the architecture of this guest.
struct Code {
    /// The architecture's number in ELF files.
    machine: u16,
    /// Flags in ELF files.
    flags: u32,
    words: Vec<u32>,
    /// Instructions from one wait to the next.
    each_round: u64,
}

/// Arm Architecture Reference Manual for A-profile, chapter C6.
#[cfg(target_arch = "aarch64")]
fn code(turns: u32) -> Option<Code> {
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
    Some(Code { machine: 183, flags: 0, words, each_round })
}

#[cfg(not(target_arch = "aarch64"))]
fn code(_: u32) -> Option<Code> {
    None
}

/// An ELF file of one segment.
fn elf(code: &Code) -> Vec<u8> {
    let begin = HEADERS[0] + HEADERS[1];
    let size = begin + 4 * code.words.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    // An executable.
    file.extend(2_u16.to_le_bytes());
    file.extend(code.machine.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    for word in [BASE + begin, HEADERS[0], 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(code.flags.to_le_bytes());
    for half in [HEADERS[0] as u16, HEADERS[1] as u16, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    // To be loaded, readable and executable.
    for word in [1_u32, 5] {
        file.extend(word.to_le_bytes());
    }
    for word in [0, BASE, BASE, size, size, 1 << 16] {
        file.extend(word.to_le_bytes());
    }
    code.words.iter().for_each(|word| file.extend(word.to_le_bytes()));
    file
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
    pub fn start(place: &Place, turns: u32) -> Option<Self> {
        let code = code(turns)?;
        let path = place.path(NAME);
        fs::write(&path, elf(&code)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new(path);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let counted = Self { child, input, output, each_round: code.each_round };
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
