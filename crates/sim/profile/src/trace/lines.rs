//! The lines that were used before a window.
//!
//! They are stored in the order of use, as differences of line numbers: a stream packs to almost nothing.

use super::chunk::{Kind, append};
use super::error::Fault;

/// Most lines that are kept of each kind: 64 MiB of data.
pub const MOST_LINES: usize = 1 << 20;
/// Lines of one chunk.
const PER_CHUNK: usize = 1 << 17;

/// A line that was used before a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Virtual address / 64.
    pub line: u64,
    /// Was it written lately: in the last 50 million instructions in which
    /// anything of its page was used? Never set for instructions.
    pub written: bool,
}

/// Which lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Data,
    Code,
}

/// Appends chunks of lines, the least recently used first. `number` counts them.
pub(super) fn encode(
    out: &mut Vec<u8>,
    number: &mut u32,
    of: Of,
    lines: &[Line],
) -> Result<(), String> {
    let failed = |error: postcard::Error| error.to_string();
    for lines in lines.chunks(PER_CHUNK) {
        let mut content = vec![u8::from(of == Of::Code)];
        let mut before = 0_u64;
        for line in lines {
            let step = line.line.wrapping_sub(before) as i64;
            before = line.line;
            let written = i64::from(line.written);
            content =
                postcard::to_extend(&(step.wrapping_mul(2) | written), content).map_err(failed)?;
        }
        append(out, Kind::Lines, *number, &content)?;
        *number += 1;
    }
    Ok(())
}

/// Adds the lines of a chunk to those of its kind.
pub(super) fn decode(
    content: &[u8],
    data: &mut Vec<Line>,
    code: &mut Vec<Line>,
) -> Result<(), Fault> {
    let (lines, mut rest) = match content {
        [0, rest @ ..] => (data, rest),
        [1, rest @ ..] => (code, rest),
        _ => return Err(Fault::damaged("lines of an unknown kind")),
    };
    let mut line = 0_u64;
    while !rest.is_empty() {
        let (step, behind) = postcard::take_from_bytes::<i64>(rest)?;
        rest = behind;
        line = line.wrapping_add((step >> 1) as u64);
        lines.push(Line { line, written: step & 1 == 1 });
    }
    if lines.len() > MOST_LINES {
        return Err(Fault::damaged("more lines than are ever kept"));
    }
    Ok(())
}
