//! The occupancy of a cache while it changes.
//!
//! # Approach
//! After a migration, or with a new co-runner, a thread does not have its steady share of a cache at
//! once. A cache with least-recently-used replacement keeps what was used in the last T instructions, T
//! the steady reach. So a thread with less *fills* its share by what it touches: its reach rises by the
//! instructions that it executes until it is T, and until then it misses the lines that it fetches. A
//! thread with more than its steady share *decays* towards it as others fill the cache:
//! o(t + Δ) = o∞ + (o − o∞)·e^(−kΔ), k the misses of all sharers per line of the cache.
//!
//! Over a span the mean counts: the reach with the same misses. Where what is still to be fetched is
//! negligible against all misses of the span, that is the steady reach and is not sought.
//!
//! # Terms and units
//! Lines; ns; reaches are log₂ of instructions.
//!
//! # Properties
//! `a_cold_thread_misses_what_it_fetches`, `two_spans_are_one`,
//! `what_is_too_much_decays`, `what_has_no_effect_is_not_sought`.

use super::aet::Footprint;

/// Smallest significant difference of occupancies, as a share of the steady one.
const NOTABLE: f64 = 0.005;
/// More misses that have no effect: as a share of all of them, and per instruction.
const UNNOTICED: (f64, f64) = (1e-3, 1e-6);

/// Is the difference between two occupancies significant?
pub fn is_notable(before: f64, after: f64) -> bool {
    (before - after).abs() > NOTABLE * before.max(after)
}

/// A thread's part of a cache, over a span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheShare {
    /// The mean reach.
    pub reach: f64,
    /// Lines at the end.
    pub held: f64,
    /// Does it still change?
    pub changing: bool,
}

/// A thread that starts with another occupancy than its steady one.
#[derive(Debug, Clone, Copy)]
pub struct Transient<'a> {
    /// What it touches.
    pub footprint: &'a Footprint,
    /// Lines that it holds at the beginning.
    pub before: f64,
    /// Its reach in the long run.
    pub steady: f64,
    /// log₂ of its instructions per ns.
    pub speed: f64,
}

impl Transient<'_> {
    /// After `span` ns. `refill` gives the part of the cache's lines that all sharers replace per
    /// ns, if that matters.
    #[must_use]
    pub fn over(&self, span: f64, refill: impl FnOnce() -> f64) -> CacheShare {
        let Self { footprint, before, steady, .. } = *self;
        let part = footprint.lines(steady);
        if (before - part).abs() <= NOTABLE * part {
            return CacheShare { reach: steady, held: part, changing: false };
        }
        if before < part { self.grow(part, span) } else { self.shrink(part, span, refill()) }
    }

    fn grow(&self, part: f64, span: f64) -> CacheShare {
        let Self { footprint, before, steady, speed } = *self;
        let instructions = (speed.exp2() * span).max(1.0);
        let (long, missed) = (steady.exp2(), footprint.misses(steady));
        let unnoticed = (UNNOTICED.0 * missed + UNNOTICED.1) * instructions;
        if long <= instructions && part - before <= unnoticed {
            return CacheShare { reach: steady, held: part, changing: false };
        }
        let from = if before > 0.0 { footprint.reach(before).exp2() } else { 0.0 };
        let grown = (long - from).clamp(0.0, instructions);
        let held = footprint.lines((from + grown).max(1.0).log2()).min(part);
        let fetched = (held - before).max(0.0);
        let later = missed * (instructions - grown);
        let reach = footprint.reach_with_misses((fetched + later) / instructions);
        let changing = (held - part).abs() > NOTABLE * part;
        CacheShare { reach: reach.min(steady), held, changing }
    }

    fn shrink(&self, part: f64, span: f64, refill: f64) -> CacheShare {
        let (mean, held) = relax(self.before, part, refill, span);
        let changing = (held - part).abs() > NOTABLE * part;
        let reach = if mean - part <= NOTABLE * part {
            self.steady
        } else {
            self.footprint.reach(mean).max(self.steady)
        };
        CacheShare { reach, held, changing }
    }
}

/// Mean over a span, and value at its end, of what relaxes from `now` to `end` at `rate`
/// per ns.
fn relax(now: f64, end: f64, rate: f64, span: f64) -> (f64, f64) {
    let steps = (rate * span).max(0.0);
    if steps < 1e-9 {
        return (now, now);
    }
    let left = (-steps).exp();
    (end + (now - end) * (1.0 - left) / steps, end + (now - end) * left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physics::aet::Stream;
    use symbiont_profile::{ReuseBin, ReuseHistogram};

    /// An access in two instructions, each line again after 4096 accesses.
    fn footprint() -> Footprint {
        let mut histogram = ReuseHistogram { accesses: 500_000, ..ReuseHistogram::default() };
        histogram.add(ReuseBin::of(4096), 1000);
        Footprint::new(&[&Stream::new(&histogram, 1_000_000)])
    }

    fn filling(footprint: &Footprint, before: f64) -> Transient<'_> {
        Transient { footprint, before, steady: 20.0, speed: 0.0 }
    }

    fn over(filling: &Transient<'_>, span: f64) -> CacheShare {
        filling.over(span, || 1e-4)
    }

    #[test]
    fn a_cold_thread_misses_what_it_fetches() {
        let footprint = footprint();
        // As many instructions as bring in half of what it uses.
        let part = over(&filling(&footprint, 0.0), 4096.0);
        assert!((part.held / 2048.0 - 1.0).abs() < 0.05 && part.changing);
        assert!((footprint.misses(part.reach) - 0.5).abs() < 0.05);
        // Long after, what it fetched once hardly counts.
        let part = over(&filling(&footprint, 0.0), 1e8);
        assert!(!part.changing && footprint.misses(part.reach) < 0.001);
    }

    #[test]
    fn two_spans_are_one() {
        let footprint = footprint();
        for (before, span) in [(0.0, 1000.0), (1000.0, 500.0), (60_000.0, 5_000.0)] {
            let once = over(&filling(&footprint, before), 2.0 * span);
            let half = over(&filling(&footprint, before), span);
            let twice = over(&filling(&footprint, half.held), span);
            assert!((once.held / twice.held - 1.0).abs() < 0.02, "{before}: {once:?} {twice:?}");
        }
    }

    /// One access in ten misses, for as long as it may.
    #[test]
    fn what_has_no_effect_is_not_sought() {
        let mut histogram = ReuseHistogram { accesses: 500_000, ..ReuseHistogram::default() };
        histogram.add(ReuseBin::of(64), 900);
        histogram.add(ReuseBin::of(1 << 16), 100);
        let footprint = Footprint::new(&[&Stream::new(&histogram, 1_000_000)]);
        let (part, missed) = (footprint.lines(11.0), footprint.misses(11.0));
        let span = 1e6;
        let few = 0.5e-3 * missed * span;
        for (missing, sought) in [(few, false), (part, true)] {
            let filling = Transient { steady: 11.0, ..filling(&footprint, part - missing) };
            let soon = over(&filling, span);
            assert!(!soon.changing && (soon.held / part - 1.0).abs() < 1e-6);
            assert_eq!(soon.reach < 11.0, sought, "{missing} of {part}: {soon:?}");
            assert!(footprint.misses(soon.reach) < missed * 1.01 + 1e-6);
        }
        assert!(few > 2.0 * NOTABLE * part && part > 3.0 * few, "{few} of {part}");
    }

    #[test]
    fn what_is_too_much_decays() {
        let footprint = footprint();
        let tight = Transient { steady: 10.0, ..filling(&footprint, 4000.0) };
        let (soon, late) = (over(&tight, 1000.0), over(&tight, 1e6));
        assert!(soon.held < 4000.0 && soon.held > late.held && soon.reach > late.reach);
        assert!((late.held / footprint.lines(10.0) - 1.0).abs() < 0.01);
        assert!((late.reach - 10.0).abs() < 0.2);
    }
}
