//! Sequential streams in a micro-trace, and which of their accesses a prefetcher covers.
//!
//! # Problem
//! A prefetcher follows a limited number of streams, of all threads of a core together. Which accesses it
//! covers depends on the co-runners.
//!
//! # Approach
//! A *run*: at least three consecutive lines, up or down, each first touched after the one before. A
//! prefetcher detects a run at its second line and from then on requests two lines at each, until it is
//! its full distance ahead. A run whose first line is touched sooner than its spacing began before the
//! micro-trace.
//!
//! *Overshoot*: at the end of a run, or of two lines that looked like the start of one, the lines requested
//! ahead are useless: they cost bandwidth and space in the caches. A run that may still go on when
//! the micro-trace ends has no overshoot.
//!
//! *Slow runs* progress while much else happens: within a micro-trace they touch one line or two, prefetched
//! long before. They show in the reuse times of larger blocks. Take pairs of lines, 128 bytes. An access to
//! a line not used for long *opens* a pair if the pair has not been used recently but its page has, and
//! *completes* it if the pair has. Runs do both equally often; where data are scattered, pages have not been
//! used recently; where they are scattered within few pages, pairs are rarely completed. So as many of the
//! more frequent kind as there are of the other are taken to be of runs, spread evenly ([`slow_runs`]).
//!
//! *Rests*: a prefetcher whose table is full forgets the least recently touched stream. How long ago the run
//! of a covered access was touched ([`LastTouch`]) is compared with the reach of the table of streams, as reuse
//! times are with that of a cache: lines that start a run ([`begun`]) and lines that continue one touch it.
//!
//! # Properties
//! `a_run_is_prefetched_from_its_third_line`, `a_run_that_began_earlier_is_covered`,
//! `scattered_lines_are_not_covered`, `what_ends_is_overshot`; `slow_runs_are_covered`,
//! `lines_scattered_within_a_page_or_in_pairs_are_not_taken_for_slow_runs`.

use std::collections::HashMap;

use symbiont_profile::{Access, MicroTrace, ReuseBin};

/// Lines that make a run.
const SHORTEST: usize = 3;

/// No prefetch covers this access.
pub const NO_TRIGGER: u32 = 0;
/// Prefetched before the micro-trace began.
pub const EARLIER: u32 = u32::MAX;

/// How long ago the run of an access was touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastTouch {
    /// So many operations before it.
    Operations(u32),
    /// As long ago as its pair of lines.
    Pair,
    /// As long ago as its page, about.
    Page,
}

/// How a prefetch covers an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coverage {
    /// How many operations before it that was triggered, or [`EARLIER`].
    pub trigger: u32,
    /// How long ago its stream was touched: it is forgotten if the table of streams does not reach so far.
    pub rested: LastTouch,
}

/// Accesses that open a line of a run, by the operation's index.
pub type CoveredAccesses = HashMap<u32, Coverage>;

/// For each access that opens a line of a run: how its prefetch covers it.
///
/// `accesses`: operation and line, in program order. `ahead`: lines that the
/// prefetcher runs ahead; 0: there is none.
#[must_use]
pub fn triggers(accesses: &[(u32, u64)], ahead: u32) -> CoveredAccesses {
    let mut found = CoveredAccesses::new();
    if ahead > 0 {
        let runs = runs(accesses);
        let long = runs.iter().filter(|run| run.len() >= SHORTEST);
        long.for_each(|run| cover(run, ahead as usize, &mut found));
    }
    found
}

/// Lines that follow each other, two or more, each first touched after the one before: the operations that
/// did.
fn runs(accesses: &[(u32, u64)]) -> Vec<Vec<u32>> {
    let mut runs = Vec::new();
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
            if run.len() > 1 {
                runs.push(run);
            }
        }
    }
    runs
}

/// Operations from one line of a run to the next.
fn spacing(run: &[u32]) -> u32 {
    (run[run.len() - 1] - run[0]) / (run.len() as u32 - 1)
}

/// Operations that turn a single line into a run.
pub fn begun(accesses: &[(u32, u64)]) -> impl Iterator<Item = u32> {
    let begins = |run: &Vec<u32>| run[0] > spacing(run);
    runs(accesses).into_iter().filter(begins).map(|run| run[1])
}

/// Useless prefetches at the ends of runs: the operation that touched a run's first line,
/// and how many.
///
/// `covered`: what is known to be prefetched; `end`: operations of the micro-trace.
pub fn overshoots(
    accesses: &[(u32, u64)],
    covered: &CoveredAccesses,
    end: u32,
    ahead: u32,
) -> Vec<(u32, u32)> {
    let ends = |run: &Vec<u32>| {
        let (last, slow) = (run[run.len() - 1], run.len() < SHORTEST);
        let goes_on = slow && run.iter().any(|index| covered.contains_key(index));
        (!goes_on && last + spacing(run) < end).then(|| {
            let all = run[0] <= spacing(run);
            (run[0], if all { ahead } else { ahead.min(run.len() as u32) })
        })
    };
    if ahead == 0 { Vec::new() } else { runs(accesses).iter().filter_map(ends).collect() }
}

/// Triggers of a run's lines, given the operations that touched each first.
fn cover(run: &[u32], ahead: usize, found: &mut CoveredAccesses) {
    let began_earlier = run[0] <= spacing(run);
    for (place, &index) in run.iter().enumerate() {
        let trigger = match place.checked_sub(ahead) {
            Some(from) if began_earlier => index - run[from],
            None if began_earlier => EARLIER,
            // At each line from the second on two more are asked for.
            from if place >= 2 => index - run[from.unwrap_or(0).max(place / 2)],
            _ => continue,
        };
        let before = place.checked_sub(1).map(|before| run[before]);
        let rested = before.map_or(spacing(run), |before| index - before);
        found.insert(index, Coverage { trigger, rested: LastTouch::Operations(rested) });
    }
}

/// Accesses within which a run continues: a prefetcher that follows some streams forgets one that rests
/// for longer.
///
/// Assumed, for all machines: no description says how long a prefetcher remembers. 2,048 accesses
/// are those of some thousand instructions. A larger value takes slower runs to be prefetched, and more
/// lines whose neighbours were used by chance; a smaller one lets runs miss whose loops have long
/// bodies.
const OF_LATE: u64 = 1 << 11;
/// Accesses after which a line was not used for long: a core's first cache has lost it.
///
/// Assumed, for all machines: 16,384 accesses are many times as many as a first cache has lines (512
/// of 64 bytes in 32 KiB), since most accesses are to lines that are used again soon. A larger value
/// leaves out runs that come again sooner; a smaller one counts lines that the first cache still has,
/// of which a prefetch makes nothing better.
const FOR_LONG: u64 = 1 << 14;

/// The role of an access in a slow run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PairAccess {
    Opens,
    Completes,
}

/// Was a line not used for long?
pub fn for_long(bin: ReuseBin) -> bool {
    bin.shortest().is_none_or(|time| time >= FOR_LONG)
}

fn step(access: &Access) -> Option<PairAccess> {
    let of_late = |bin: ReuseBin| bin.longest().is_some_and(|time| time <= OF_LATE);
    if !for_long(access.reuse_64) {
        return None;
    }
    if of_late(access.reuse_128) {
        return Some(PairAccess::Completes);
    }
    (for_long(access.reuse_128) && of_late(access.reuse_page)).then_some(PairAccess::Opens)
}

/// Adds the accesses of slow runs to those that are covered in each micro-trace.
pub fn slow_runs(pieces: &[MicroTrace], found: &mut [CoveredAccesses]) {
    let steps = |piece: &MicroTrace| {
        let steps = piece.ops.iter().zip(0..).filter(|(op, _)| op.class.is_memory());
        let steps = steps.filter_map(|(op, index)| Some((index, step(op.access.as_ref()?)?)));
        steps.collect::<Vec<(u32, PairAccess)>>()
    };
    let mut left: Vec<Vec<(u32, PairAccess)>> = pieces.iter().map(steps).collect();
    for (steps, found) in left.iter_mut().zip(&*found) {
        steps.retain(|(index, _)| !found.contains_key(index));
    }
    let count = |kind| left.iter().flatten().filter(|(_, step)| *step == kind).count() as f64;
    let both = count(PairAccess::Opens).min(count(PairAccess::Completes));
    for (kind, rested) in
        [(PairAccess::Opens, LastTouch::Page), (PairAccess::Completes, LastTouch::Pair)]
    {
        let part = both / count(kind).max(1.0);
        let mut due = 0.5;
        for (steps, found) in left.iter().zip(&mut *found) {
            for (index, _) in steps.iter().filter(|(_, step)| *step == kind) {
                due += part;
                if due >= 1.0 {
                    due -= 1.0;
                    found.insert(*index, Coverage { trigger: EARLIER, rested });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use symbiont_profile::{MicroOp, OpClass};

    use super::*;

    /// Loads whose line was not used for long, but its pair and its page so many accesses ago.
    fn loads(times: &[(u64, u64)]) -> MicroTrace {
        let load = |(line, (pair, page)): (u64, &(u64, u64))| MicroOp {
            access: Some(Access {
                line,
                reuse_64: ReuseBin::COLD,
                reuse_128: ReuseBin::of(*pair),
                reuse_page: ReuseBin::of(*page),
            }),
            ..MicroOp::plain(OpClass::Load)
        };
        MicroTrace { ops: (0..).zip(times).map(load).collect() }
    }

    /// How many accesses of two equal micro-traces are taken to be of slow runs.
    fn slow(times: &[(u64, u64)]) -> usize {
        let pieces = [loads(times), loads(times)];
        let mut found = vec![CoveredAccesses::new(); 2];
        slow_runs(&pieces, &mut found);
        found.iter().map(CoveredAccesses::len).sum()
    }

    const LONG_AGO: u64 = 1 << 20;

    #[test]
    fn slow_runs_are_covered() {
        let run = [(LONG_AGO, 40), (40, 40)];
        assert_eq!(slow(&run.repeat(10)), 40);
        // What a run in the micro-trace covers is not counted again.
        let known =
            CoveredAccesses::from([(1, Coverage { trigger: 7, rested: LastTouch::Operations(7) })]);
        let mut found = vec![known.clone()];
        slow_runs(&[loads(&run)], &mut found);
        assert_eq!(found, [known]);
    }

    #[test]
    fn lines_scattered_within_a_page_or_in_pairs_are_not_taken_for_slow_runs() {
        let within = [(LONG_AGO, 40); 9];
        assert_eq!(slow(&within), 0);
        // One pair in ten is completed by chance.
        assert_eq!(slow(&[&within[..], &[(300, 40)]].concat().repeat(10)), 40);
        let pairs = [(LONG_AGO, LONG_AGO), (10, 10)];
        assert_eq!(slow(&pairs.repeat(10)), 0);
    }

    fn lines(start: u32, lines: &[u64]) -> Vec<(u32, u64)> {
        lines.iter().zip(0..).map(|(line, i)| (start + 10 * i, *line)).collect()
    }

    #[test]
    fn a_run_is_prefetched_from_its_third_line() {
        let accesses = lines(500, &[7, 8, 9, 10, 11, 12]);
        let found = triggers(&accesses, 3);
        let ages: Vec<_> = accesses.iter().map(|(index, _)| found.get(index).copied()).collect();
        let of = |trigger| Some(Coverage { trigger, rested: LastTouch::Operations(10) });
        assert_eq!(ages, [None, None, of(10), of(20), of(20), of(30)]);
        assert_eq!(begun(&accesses).collect::<Vec<_>>(), [510]);
    }

    #[test]
    fn a_run_that_began_earlier_is_covered() {
        let accesses = lines(5, &[20, 19, 18, 17]);
        let found = triggers(&accesses, 2);
        let ages = accesses.iter().map(|(index, _)| (found[index].trigger, found[index].rested));
        let ten = LastTouch::Operations(10);
        assert!(ages.eq([(EARLIER, ten), (EARLIER, ten), (20, ten), (20, ten)]));
        assert_eq!(begun(&accesses).count(), 0);
    }

    #[test]
    fn what_ends_is_overshot() {
        let of = |lines: &[(u32, u64)], end| overshoots(lines, &CoveredAccesses::new(), end, 4);
        // Two lines that look like a run, and two runs; the last one goes on.
        let touched = [lines(100, &[40, 41]), lines(200, &[7, 8, 9]), lines(300, &[70, 69])];
        assert_eq!(of(&touched.concat(), 311), [(100, 2), (200, 3)]);
        // One that began earlier has all that it may ask for ahead of it.
        assert_eq!(of(&lines(5, &[20, 19, 18]), 500), [(5, 4)]);
        // Two lines of a slow run are not its end.
        let slow =
            CoveredAccesses::from([(110, Coverage { trigger: EARLIER, rested: LastTouch::Pair })]);
        assert!(overshoots(&touched[0], &slow, 500, 4).is_empty());
        assert!(overshoots(&touched[0], &CoveredAccesses::new(), 500, 0).is_empty());
    }

    #[test]
    fn scattered_lines_are_not_covered() {
        assert!(triggers(&lines(0, &[1, 5, 9, 2, 100, 6]), 4).is_empty());
        assert!(triggers(&lines(0, &[1, 2, 3, 4]), 0).is_empty());
    }
}
