//! Sequential streams in a micro-trace, and what a prefetcher makes of them.
//!
//! # Approach
//! A *run*: lines that follow each other, up or down, each first touched after the
//! one before; at least three of them. A prefetcher sees a run at its second line and
//! from then on asks for the line that lies so many lines ahead. A run whose
//! first line is touched before a line of it is due began before the micro-trace.
//!
//! # Properties
//! `a_run_is_prefetched_from_its_third_line`, `a_run_that_began_earlier_is_covered`,
//! `scattered_lines_are_not_covered`.

use std::collections::HashMap;

/// Lines that make a run.
const SHORTEST: usize = 3;

/// No prefetch covers this access.
pub const NO_TRIGGER: u32 = 0;
/// Prefetched before the micro-trace began.
pub const EARLIER: u32 = u32::MAX;

/// For each access that opens a line of a run (named by the operation's index): how many operations
/// before it its prefetch was triggered, or [`EARLIER`].
///
/// `accesses`: operation and line, in program order. `ahead`: lines that the
/// prefetcher runs ahead; 0: there is none.
#[must_use]
pub fn triggers(accesses: &[(u32, u64)], ahead: u32) -> HashMap<u32, u32> {
    let mut found = HashMap::new();
    if ahead == 0 {
        return found;
    }
    let mut first: HashMap<u64, u32> = HashMap::new();
    let mut order: Vec<(u32, u64)> = Vec::new();
    for &(index, line) in accesses {
        first.entry(line).or_insert_with(|| {
            order.push((index, line));
            index
        });
    }
    for &(index, line) in &order {
        for up in [true, false] {
            let next = |line: u64| if up { line.checked_add(1) } else { line.checked_sub(1) };
            let before = if up { line.checked_sub(1) } else { line.checked_add(1) };
            // Only from the start of a run.
            if before.and_then(|before| first.get(&before)).is_some_and(|&b| b < index) {
                continue;
            }
            let mut run = vec![index];
            let mut at = line;
            while let Some(after) = next(at) {
                match first.get(&after) {
                    Some(&touched) if touched > run[run.len() - 1] => run.push(touched),
                    _ => break,
                }
                at = after;
            }
            if run.len() >= SHORTEST {
                cover(&run, ahead as usize, &mut found);
            }
        }
    }
    found
}

/// Triggers of a run's lines, given the operations that touched each first.
fn cover(run: &[u32], ahead: usize, found: &mut HashMap<u32, u32>) {
    let length = run[run.len() - 1] - run[0];
    let spacing = length / (run.len() as u32 - 1);
    let began_earlier = run[0] <= spacing;
    for (place, &index) in run.iter().enumerate() {
        let trigger = match place.checked_sub(ahead) {
            Some(from) if began_earlier || from >= 1 => index - run[from],
            _ if began_earlier => EARLIER,
            _ if place >= 2 => index - run[1],
            _ => continue,
        };
        found.insert(index, trigger);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(start: u32, lines: &[u64]) -> Vec<(u32, u64)> {
        lines.iter().zip(0..).map(|(line, i)| (start + 10 * i, *line)).collect()
    }

    #[test]
    fn a_run_is_prefetched_from_its_third_line() {
        let found = triggers(&lines(500, &[7, 8, 9, 10, 11, 12]), 3);
        assert_eq!(found.get(&500), None);
        assert_eq!(found.get(&510), None);
        assert_eq!(found.get(&520), Some(&10));
        assert_eq!(found.get(&530), Some(&20));
        assert_eq!(found.get(&540), Some(&30));
        assert_eq!(found.get(&550), Some(&30));
    }

    #[test]
    fn a_run_that_began_earlier_is_covered() {
        let found = triggers(&lines(5, &[20, 19, 18, 17]), 2);
        assert_eq!(found.get(&5), Some(&EARLIER));
        assert_eq!(found.get(&15), Some(&EARLIER));
        assert_eq!(found.get(&25), Some(&20));
        assert_eq!(found.get(&35), Some(&20));
    }

    #[test]
    fn scattered_lines_are_not_covered() {
        assert!(triggers(&lines(0, &[1, 5, 9, 2, 100, 6]), 4).is_empty());
        assert!(triggers(&lines(0, &[1, 2, 3, 4]), 0).is_empty());
    }
}
