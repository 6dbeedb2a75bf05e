//! Synthetic traces, for tests.

use std::path::PathBuf;

use symbiont_profile::trace::{
    About, Code, DataAccess, FLAGS, Leaves, Line, StaticInstruction, StaticOp, TraceFile,
    WindowEncoder, write,
};
use symbiont_profile::{OpClass, Operand};
use tempfile::TempDir;

/// Instructions, and operations, of a synthetic window.
pub const PASS: usize = 40_000;

/// A trace that is gone with this.
pub struct SyntheticTrace {
    dir: TempDir,
}

impl SyntheticTrace {
    fn path(&self) -> PathBuf {
        self.dir.path().join("chase.trace")
    }

    pub fn file(&self) -> TraceFile {
        TraceFile::open(&self.path()).unwrap()
    }

    /// Changes a byte in the middle of its last chunk of events.
    pub fn damage(&self) {
        let mut bytes = std::fs::read(self.path()).unwrap();
        let at = bytes.len() - 60;
        bytes[at] ^= 0x55;
        std::fs::write(self.path(), bytes).unwrap();
    }
}

/// A loop of a load, which makes the address of the next, and a branch: [`PASS`] instructions,
/// half of which warm up. The loads go round `lines` lines, `bytes` apart; those with
/// even numbers were used before.
pub fn chase(lines: u64, bytes: u64) -> SyntheticTrace {
    let one = |class, reads: &[u8], writes: &[u8]| StaticInstruction {
        length: 4,
        ops: vec![StaticOp {
            class,
            reads: reads.to_vec(),
            writes: writes.to_vec(),
            operand: Operand::default(),
        }],
    };
    let code = || Code {
        start: 0x40_1000,
        leaves: Leaves::Conditionally,
        instructions: vec![one(OpClass::Load, &[3], &[3]), one(OpClass::Branch, &[FLAGS], &[])],
    };
    let start = 0x10_0000_u64;
    let address = |n: u64| start + n % lines * bytes;
    let used = |n: &u64| (address(*n) >> 6) % 2 == 0;
    let line = |n| Line { line: address(n) >> 6, written: false };
    let before: Vec<Line> = (0..lines).filter(used).map(line).collect();
    let before_code = [Line { line: 0x40_1000 >> 6, written: false }];
    let mut encoder = WindowEncoder::new(0, 0, &before, &before_code).unwrap();
    for n in 0..PASS as u64 / 2 {
        let access = DataAccess { instruction: 0, class: OpClass::Load, address: address(n) };
        encoder.executed(0, code, false, &[access]).unwrap();
    }
    let window = encoder.finish(Some(0x40_1008)).unwrap();
    let dir = TempDir::new().unwrap();
    let made = SyntheticTrace { dir };
    let text = |text: &str| text.to_owned();
    let about = About {
        program: text("chase"),
        command: vec![text("chase")],
        digest: text("00"),
        instructions: PASS as u64,
        gaps: Vec::new(),
    };
    let windows = std::iter::once(Ok((0, 1.0, PASS as u64 / 2, window)));
    write(&made.path(), &about, windows).unwrap();
    made
}
