//! The chunks of which a file consists.
//!
//! ```text
//! chunk = kind (1 byte), number (4), length of the content packed (4) and unpacked (4),
//!         CRC-32 of all that and of the packed content (4), content (packed with DEFLATE)
//! ```
//!
//! All numbers are stored least significant byte first.

use std::io::{Read, Write};

use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::Fault;

/// Kinds of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// [`super::About`]: the first of a file.
    About = 1,
    /// [`super::WindowInfo`]; the chunks of that window follow, numbered from 1.
    Window = 2,
    /// Lines that were used before a window.
    Lines = 3,
    /// Blocks that the next events execute for the first time.
    Code = 4,
    /// Executions of blocks.
    Events = 5,
    /// How many windows there are: the last of a file.
    End = 6,
}

/// Bytes of a chunk's head.
pub(super) const HEAD: u64 = 17;
/// Longest content of a chunk, unpacked.
pub(super) const LONGEST: u32 = 4 << 20;

/// What stands before a chunk's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: u8,
    pub(super) number: u32,
    /// Bytes that follow.
    pub(super) packed: u32,
    unpacked: u32,
    sum: u32,
}

impl Head {
    fn checked(&self) -> [u8; 13] {
        let mut bytes = [self.kind; 13];
        let numbers = [self.number, self.packed, self.unpacked];
        for (place, number) in bytes[1..].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn sum_with(&self, packed: &[u8]) -> u32 {
        let mut crc = Crc::new();
        crc.update(&self.checked());
        crc.update(packed);
        crc.sum()
    }

    pub(super) fn is(&self, kind: Kind) -> bool {
        self.kind == kind as u8
    }

    /// Reads a head.
    pub(super) fn read(file: &mut impl Read) -> Result<Self, Fault> {
        let mut bytes = [0; HEAD as usize];
        file.read_exact(&mut bytes)?;
        let [kind, numbers @ ..] = bytes;
        let mut next = numbers
            .chunks_exact(4)
            .map(|chunk| u32::from_le_bytes(chunk.try_into().unwrap_or_default()));
        let mut number = || next.next().unwrap_or_default();
        let head =
            Self { kind, number: number(), packed: number(), unpacked: number(), sum: number() };
        if head.unpacked > LONGEST || head.packed > 2 * LONGEST {
            return Err(Fault::damaged("a chunk claims to be longer than any is"));
        }
        Ok(head)
    }

    /// Reads the content that follows.
    pub(super) fn content(&self, file: &mut impl Read) -> Result<Vec<u8>, Fault> {
        let mut packed = Vec::new();
        file.take(u64::from(self.packed)).read_to_end(&mut packed)?;
        if packed.len() != self.packed as usize {
            return Err(Fault::damaged("it ends too early"));
        }
        if self.sum != self.sum_with(&packed) {
            return Err(Fault::damaged("a checksum does not fit: bytes were changed"));
        }
        let mut content = Vec::new();
        // One byte more than promised, to see whether there is more.
        DeflateDecoder::new(packed.as_slice())
            .take(u64::from(self.unpacked) + 1)
            .read_to_end(&mut content)
            .map_err(|error| Fault::damaged(format!("it cannot be unpacked: {error}")))?;
        if content.len() != self.unpacked as usize {
            return Err(Fault::damaged("a chunk has another length than it claims"));
        }
        Ok(content)
    }

    /// Reads a content that is one value.
    pub(super) fn value<T: DeserializeOwned>(&self, file: &mut impl Read) -> Result<T, Fault> {
        Ok(postcard::from_bytes(&self.content(file)?)?)
    }
}

/// Appends a chunk; the error says why none can be made of this content.
pub(super) fn append(
    out: &mut Vec<u8>,
    kind: Kind,
    number: u32,
    content: &[u8],
) -> Result<(), String> {
    let long = |_| "a chunk would be too long".to_owned();
    let unpacked = u32::try_from(content.len()).map_err(long)?;
    if unpacked > LONGEST {
        return Err("a chunk would be too long".to_owned());
    }
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::default());
    let packed = packer.write_all(content).and_then(|()| packer.finish());
    let packed = packed.map_err(|error| error.to_string())?;
    let length = u32::try_from(packed.len()).map_err(long)?;
    let mut head = Head { kind: kind as u8, number, packed: length, unpacked, sum: 0 };
    head.sum = head.sum_with(&packed);
    out.extend(head.checked());
    out.extend(head.sum.to_le_bytes());
    out.extend(packed);
    Ok(())
}

/// As [`append`], of one value.
pub(super) fn append_value<T: Serialize>(
    out: &mut Vec<u8>,
    kind: Kind,
    number: u32,
    value: &T,
) -> Result<(), String> {
    let content = postcard::to_stdvec(value).map_err(|error| error.to_string())?;
    append(out, kind, number, &content)
}
