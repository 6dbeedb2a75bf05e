//! The kernel's numbers of objects: `indexes=`.

use std::collections::BTreeSet;

use super::{Fault, Parsed};
use crate::cpuset::MAX_CPU;

/// Objects in a round, and how far apart they are.
#[derive(Clone, Copy)]
struct Loop {
    step: u32,
    count: u32,
}

/// The depth of a level, and how many objects it has in all.
pub(super) type Width = (usize, u32);

/// The number of each of so many objects. `width` is of the level that has a name.
pub(super) fn numbers(
    (byte, text): (usize, &str),
    total: u32,
    width: impl Fn(&str) -> Option<Width>,
) -> Parsed<Vec<u32>> {
    let fault = |reason: String| Fault::new(byte, reason);
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',') {
        let numbers: Vec<u32> = text
            .split(',')
            .map(|number| number.parse().ok().filter(|&number| number <= MAX_CPU))
            .collect::<Option<_>>()
            .ok_or_else(|| fault(format!("'{text}' is no list of numbers up to {MAX_CPU}")))?;
        if numbers.len() != total as usize {
            return Err(fault(format!("{} indexes for {total} objects", numbers.len())));
        }
        if numbers.iter().collect::<BTreeSet<_>>().len() != numbers.len() {
            return Err(fault(format!("'{text}' names a number twice")));
        }
        return Ok(numbers);
    }
    let loops = match text.starts_with(|c: char| c.is_ascii_digit()) {
        true => text.split(':').map(written).collect::<Option<Vec<_>>>(),
        false => text
            .split(':')
            .map(&width)
            .collect::<Option<Vec<_>>>()
            .map(|widths| nested(&widths, total)),
    };
    let loops = loops.ok_or_else(|| {
        fault(format!(
            "'{text}' is none of 0,2,1,3 and 2*4:1*2 and pack:core (levels above the PU)"
        ))
    })?;
    interleaved(loops, total)
        .ok_or_else(|| fault(format!("'{text}' does not number {total} objects from 0")))
}

/// `2*4`.
fn written(text: &str) -> Option<Loop> {
    let (step, count) = text.split_once('*')?;
    let number = |text: &str| text.parse().ok().filter(|&number: &u32| number > 0);
    Some(Loop { step: number(step)?, count: number(count)? })
}

/// Rounds over these levels.
fn nested(widths: &[Width], total: u32) -> Vec<Loop> {
    let above = |depth: usize| {
        let outer = widths.iter().filter(|(other, _)| *other < depth).max();
        outer.map_or(1, |(_, width)| *width)
    };
    let round = |&(depth, width): &Width| Loop {
        step: total / width.max(1),
        count: width / above(depth).max(1),
    };
    widths.iter().map(round).collect()
}

/// The first round counts fastest. A round over neighbours may be left out.
fn interleaved(mut loops: Vec<Loop>, total: u32) -> Option<Vec<u32>> {
    let covered = loops.iter().try_fold(1u32, |all, round| all.checked_mul(round.count))?;
    if covered == 0 || loops.iter().any(|round| round.step == 0) {
        return None;
    }
    if covered != total {
        let missing = total / covered;
        if missing == 0 || loops.iter().map(|round| round.step).min()? != missing {
            return None;
        }
        loops.push(Loop { step: 1, count: missing });
    }
    let number = |object: u32| {
        let mut times = 1u32;
        loops.iter().try_fold(0u32, |number, round| {
            let next = number.checked_add((object / round.step % round.count).checked_mul(times)?);
            times = times.checked_mul(round.count)?;
            next
        })
    };
    let numbers: Vec<u32> = (0..total).map(number).collect::<Option<_>>()?;
    let different: BTreeSet<u32> =
        numbers.iter().copied().filter(|&number| number < total).collect();
    (different.len() == numbers.len()).then_some(numbers)
}
