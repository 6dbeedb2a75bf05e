//! What fuzzing needs to get past the checksums of a trace.

use super::VERSION;
use super::chunk::{Kind, append};

const KINDS: [Kind; 6] =
    [Kind::About, Kind::Window, Kind::Lines, Kind::Code, Kind::Events, Kind::End];

/// A file of chunks: of each the kind, the number and the length of the content (two bytes), a byte
/// each, then the content.
#[must_use]
pub fn chunks(mut rest: &[u8]) -> Vec<u8> {
    let mut file = [b"SYMBTRAC".as_slice(), &VERSION.to_le_bytes()].concat();
    while let [kind, number, low, high, behind @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(behind.len());
        let (content, after) = behind.split_at(length);
        rest = after;
        let kind = KINDS.into_iter().nth(usize::from(*kind) % KINDS.len()).unwrap_or(Kind::End);
        if append(&mut file, kind, (*number).into(), content).is_err() {
            break;
        }
    }
    file
}
