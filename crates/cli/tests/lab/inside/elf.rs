//! Programs that scenarios write themselves, in machine code.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Where they are loaded.
const BASE: u64 = 0x1000_0000;
/// Sizes of the headers of file and segment.
const HEADERS: [u64; 2] = [64, 56];
/// The address of the first byte.
pub const BEGIN: u64 = BASE + HEADERS[0] + HEADERS[1];

/// Machine code, and data behind it; executed from its first byte.
pub struct Code {
    /// The architecture's number in ELF files.
    pub machine: u16,
    /// Flags in ELF files.
    pub flags: u32,
    pub bytes: Vec<u8>,
}

impl Code {
    /// Writes a program.
    pub fn write(&self, path: &Path) {
        fs::write(path, self.elf()).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// An ELF file of one segment, which is read and executed.
    fn elf(&self) -> Vec<u8> {
        let size = HEADERS[0] + HEADERS[1] + self.bytes.len() as u64;
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        // An executable.
        file.extend(2_u16.to_le_bytes());
        file.extend(self.machine.to_le_bytes());
        file.extend(1_u32.to_le_bytes());
        for word in [BEGIN, HEADERS[0], 0] {
            file.extend(word.to_le_bytes());
        }
        file.extend(self.flags.to_le_bytes());
        for half in [HEADERS[0] as u16, HEADERS[1] as u16, 1, 0, 0, 0] {
            file.extend(half.to_le_bytes());
        }
        for word in [1_u32, 5] {
            file.extend(word.to_le_bytes());
        }
        for word in [0, BASE, BASE, size, size, 1 << 16] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&self.bytes);
        file
    }
}
