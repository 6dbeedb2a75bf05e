//! StatCC: how threads share a cache.
//!
//! # Problem
//! Threads occupy a shared cache in proportion to how fast they bring in lines that stay, and how fast
//! they do so depends on what they have of it.
//!
//! # Approach
//! StatCC (Eklov et al., Fast Modeling of Shared Caches in Multicore Systems, HiPEAC 2011) couples the
//! miss ratios of co-runners to their CPI. Here the miss ratios are those of AET ([`super::aet`]), and the
//! CPI is solved for elsewhere ([`super::solve`]): at speeds IPCᵢ all lines are evicted at one age τ,
//!
//! ```text
//! solve Σᵢ Fᵢ(IPCᵢ · τ) = C for τ:      Newton steps on F over log t (on log F while far away),
//!                                       bisection where a step leaves the bracket
//! reachᵢ = IPCᵢ · τ                     missesᵢ = Mᵢ(reachᵢ)
//! ```
//!
//! *Filtering by the cache above.* A cache sees only what the one above misses, so a line's age counts
//! from when it was brought up, not from its last use: it is older by the time X during which it hit
//! above. A line stays F(R)/M(R) instructions above on average (Little's law; R the reach there, M the
//! misses per instruction), the last R of them unused: X is F(R)/M(R) − R on average. It is taken to be
//! exponential, or equal to its mean where that is short compared with τ. An access with reuse time r ≥ R hits below if
//! X + r ≤ τ, so the cache holds E[F(τ − X) − F(R) + M(R)·(X + R)] lines and misses E[M(τ − X)] per
//! instruction, with τ − X no less than R. Threads with many hits above lose what others gain.
//!
//! # Terms and units
//! Time: instructions of the thread, as log₂. Misses: per instruction.
//!
//! # Properties
//! - More cache never adds misses (`more_cache_never_adds_misses`).
//! - The reach of a thread alone is that of AET (`one_reach_is_looked_up`).
//! - A sharer never adds reach (`a_sharer_never_adds_reach`), and all shares together fill the cache
//!   (`shares_fill_the_cache`).
//! - Lines that hit above are older (`a_cache_below_others_keeps_lines_as_a_plain_one_does`).

use super::aet::{FOREVER, Footprint, STEPS};

/// Times during which a line hits above, over their mean, equally likely: the means of the four quarters of
/// an exponential distribution.
const USED_ABOVE: [f64; 4] = [0.1370, 0.4774, 0.9794, 2.4062];

/// What the cache above does to a thread's lines in this one: they are older than their last use.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Filter {
    /// Mean time during which lines hit above, instructions.
    used: f64,
    /// The reach of the cache above, instructions.
    reach: f64,
    /// Lines that it holds.
    lines: f64,
    /// What it misses per instruction.
    misses: f64,
}

/// The filter is ignored where lines hit above for less than this part of the reach above.
const NOTABLE: f64 = 0.02;
/// Where lines are in use above for less than this part of the time for which they are kept, all are as
/// if for the mean time: what a spread adds to F is half its variance times F″, about 0.1 %.
const BRIEF: f64 = 0.1;
/// Misses per instruction that all threads have above.
const RARELY: f64 = 1e-9;

impl Filter {
    /// Of a cache above with this reach, log₂ instructions.
    #[must_use]
    pub fn below(footprint: &Footprint, above: f64) -> Self {
        let above = above.clamp(0.0, FOREVER);
        let misses = footprint.misses(above) + RARELY;
        let (reach, lines) = (above.exp2(), footprint.lines(above));
        Self { used: (lines / misses - reach).max(0.0), reach, lines, misses }
    }

    fn is_notable(&self) -> bool {
        self.used > NOTABLE * self.reach
    }

    /// Is the time during which lines hit above short compared with `kept` instructions?
    fn is_brief(&self, kept: f64) -> bool {
        self.used < BRIEF * kept && kept - self.used > self.reach
    }
}

/// A thread that shares a cache.
#[derive(Debug, Clone, Copy)]
pub struct Sharer<'f> {
    /// What it touches.
    pub footprint: &'f Footprint,
    /// log₂ of its instructions per unit of time.
    pub speed: f64,
    /// By which cache above its accesses are filtered.
    pub filter: Filter,
    /// The part of its lines that no other sharer brings, from 0 to 1.
    pub part: f64,
}

impl Sharer<'_> {
    /// Its reach, log₂ instructions, where lines are kept for 2^`time` units of time: the reach with
    /// which it misses as much.
    #[must_use]
    pub fn reach(&self, time: f64) -> f64 {
        let (footprint, filter, kept) = (self.footprint, self.filter, (time + self.speed).exp2());
        if !filter.is_notable() {
            return time + self.speed;
        }
        if filter.is_brief(kept) {
            return (kept - filter.used).log2();
        }
        let left = USED_ABOVE.map(|used| (kept - used * filter.used).max(filter.reach).log2());
        let misses: f64 = left.iter().map(|time| footprint.misses(*time)).sum();
        let mean = (kept - filter.used).max(filter.reach).log2();
        footprint.reach_within([left[3], left[0]], misses / left.len() as f64, mean)
    }

    /// Its lines in a cache that evicts at the age 2^`time`, and their increase per octave.
    fn lines_and_rise(&self, time: f64) -> (f64, f64) {
        let (lines, rise) = self.all_lines_and_rise(time);
        (self.part * lines, self.part * rise)
    }

    /// The same with the lines that other sharers bring in.
    fn all_lines_and_rise(&self, time: f64) -> (f64, f64) {
        let (footprint, filter, time) = (self.footprint, self.filter, time + self.speed);
        if !filter.is_notable() {
            return footprint.lines_and_rise(time);
        }
        let kept = time.exp2();
        let held = |used: f64| {
            let left = kept - used;
            if left > filter.reach {
                let (beyond, more) = footprint.lines_and_rise(left.log2());
                let lines = beyond - filter.lines + filter.misses * (used + filter.reach);
                (lines, more * kept / left)
            } else {
                let lines = filter.misses * kept;
                (lines, lines * std::f64::consts::LN_2)
            }
        };
        if filter.is_brief(kept) {
            return held(filter.used);
        }
        let all = USED_ABOVE.map(|used| held(used * filter.used));
        let (lines, rise) = all.iter().fold((0.0, 0.0), |(l, r), (more, up)| (l + more, r + up));
        (lines / all.len() as f64, rise / all.len() as f64)
    }

    /// Lines that it ever holds.
    fn most(&self) -> f64 {
        self.part * self.footprint.lines(FOREVER)
    }
}

/// log₂ of the age τ at which a cache of `lines` evicts the lines of these threads. `guess` is where to
/// begin.
///
/// If everything that they touch fits, the result is so long that no line is
/// missed.
#[must_use]
pub fn eviction_time(lines: f64, threads: &[Sharer<'_>], guess: Option<f64>) -> f64 {
    let held = |time: f64| {
        threads.iter().fold((0.0, 0.0), |(lines, rise), sharer| {
            let (more, slope) = sharer.lines_and_rise(time);
            (lines + more, rise + slope)
        })
    };
    // Every thread's own time lies in the curve over this range of τ.
    let slowest = threads.iter().map(|thread| thread.speed).fold(f64::INFINITY, f64::min);
    let (mut low, mut high) = (-8.0 - slowest.max(0.0), FOREVER - slowest);
    // At that end each thread has touched all that it ever does.
    let most: f64 = threads.iter().map(Sharer::most).sum();
    if !slowest.is_finite() || most <= lines {
        return high;
    }
    let mut time = guess.unwrap_or((low + high) / 2.0).clamp(low, high);
    for _ in 0..60 {
        let (now, rise) = held(time);
        if (now - lines).abs() <= 3e-5 * lines {
            break;
        }
        if now < lines {
            low = time;
        } else {
            high = time;
        }
        // Between two points of all curves F is straight; over longer ways log F is nearer to it:
        // d(log₂ F)/dt = F'/(F·ln 2).
        let straight = (lines - now) / rise;
        let step = if straight.abs() < 0.5 / STEPS as f64 {
            straight
        } else {
            (lines / now).log2() * now * std::f64::consts::LN_2 / rise
        };
        let next = time + step;
        time = if next > low && next < high { next } else { (low + high) / 2.0 };
        if high - low < 1e-7 {
            break;
        }
    }
    time
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, VecDeque};

    use proptest::prelude::*;
    use symbiont_profile::{ReuseBin, ReuseHistogram};

    use super::super::aet::Stream;
    use super::super::aet::tests::any_footprint;
    use super::*;

    /// A footprint, a speed, and how far caches above reach.
    type Shares = (Footprint, f64, Option<f64>);

    fn any_sharer() -> impl Strategy<Value = Shares> {
        (any_footprint(), -4.0_f64..2.0, prop::option::of(0.0_f64..30.0))
    }

    fn sharer((footprint, speed, above): &Shares) -> Sharer<'_> {
        let filter = |above| Filter::below(footprint, above);
        Sharer {
            footprint,
            speed: *speed,
            filter: above.map(filter).unwrap_or_default(),
            part: 1.0,
        }
    }

    proptest! {
        #[test]
        fn more_cache_never_adds_misses(
            threads in prop::collection::vec(any_sharer(), 1..5),
            lines in 16.0_f64..1e6, more in 1.0_f64..8.0,
        ) {
            let threads: Vec<_> = threads.iter().map(sharer).collect();
            let small = eviction_time(lines, &threads, None);
            let large = eviction_time(lines * more, &threads, Some(small));
            for sharer in &threads {
                let misses = |time| sharer.footprint.misses(sharer.reach(time));
                prop_assert!(misses(large) <= misses(small) * 1.001 + 1e-9);
            }
        }

        #[test]
        fn a_sharer_never_adds_reach(
            own in any_sharer(), other in any_sharer(), lines in 16.0_f64..1e6,
        ) {
            let (own, other) = (sharer(&own), sharer(&other));
            let alone = eviction_time(lines, &[own], None);
            let shared = eviction_time(lines, &[own, other], None);
            let misses = |time| own.footprint.misses(own.reach(time));
            prop_assert!(misses(shared) >= misses(alone) * 0.999 - 1e-9);
        }

        #[test]
        fn one_reach_is_looked_up(footprint in any_footprint(), lines in 0.01_f64..1e6) {
            let own = Sharer { footprint: &footprint, speed: 0.0, filter: Filter::default(), part: 1.0 };
            let alone = eviction_time(lines, &[own], None);
            let touched = footprint.lines(footprint.reach(lines));
            prop_assert!((footprint.lines(alone) / touched - 1.0).abs() < 1e-3);
        }

        #[test]
        fn shares_fill_the_cache(
            threads in prop::collection::vec(any_sharer(), 1..9),
            lines in 16.0_f64..1e6, guess in prop::option::of(0.0_f64..40.0),
        ) {
            let threads: Vec<_> = threads.iter().map(sharer).collect();
            let time = eviction_time(lines, &threads, guess);
            let held: f64 = threads.iter().map(|s| s.lines_and_rise(time).0).sum();
            prop_assert!(held <= lines * 1.001);
            let most: f64 = threads.iter().map(Sharer::most).sum();
            prop_assert!(held >= lines.min(most) * 0.999, "{held} of {lines}");
        }
    }

    /// A plain cache with least-recently-used replacement.
    struct Lru(VecDeque<u64>, usize);

    impl Lru {
        /// Uses a line; was it there?
        fn used(&mut self, line: u64) -> bool {
            let found = self.0.iter().position(|there| *there == line);
            found.and_then(|at| self.0.remove(at));
            self.0.push_back(line);
            if self.0.len() > self.1 {
                self.0.pop_front();
            }
            found.is_some()
        }
    }

    fn footprint_of(lines: impl Iterator<Item = u64>, instructions: u64) -> Footprint {
        let (mut last, mut histogram) = (HashMap::new(), ReuseHistogram::default());
        for (at, line) in (0_u64..).zip(lines) {
            let before = last.insert(line, at);
            histogram.add(before.map_or(ReuseBin::COLD, |before| ReuseBin::of(at - before)), 1);
            histogram.accesses += 1;
        }
        Footprint::new(&[&Stream::new(&histogram, instructions)])
    }

    /// Two threads in turn, one with a cache of its own above one that they share.
    #[test]
    fn a_cache_below_others_keeps_lines_as_a_plain_one_does() {
        const EACH: u64 = 400_000;
        let mut random = 1_u64;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        // Lines in a band that moves on slowly, used often while they are in it; and now and then any
        // of the others again. The other thread never uses a line twice.
        let first: Vec<u64> = (0..EACH)
            .map(|at| if draw(50) == 0 { draw(400) } else { (at / 100 + draw(40)) % 400 })
            .collect();
        let (mut above, mut below) = (Lru(VecDeque::new(), 64), Lru(VecDeque::new(), 512));
        let (mut missed, mut both) = (0, 0);
        for (at, own) in (0..).zip(&first) {
            if !above.used(*own) {
                missed += 1;
                both += u32::from(!below.used(*own));
            }
            if at % 20 == 0 {
                below.used(1000 + at);
            }
        }
        let own = footprint_of(first.iter().copied(), EACH);
        let other = footprint_of((0..EACH / 20).map(|at| 1000 + at), EACH);
        let reach = own.reach(64.0);
        let misses = |filter| {
            let own = Sharer { footprint: &own, speed: 0.0, filter, part: 1.0 };
            let other =
                Sharer { footprint: &other, speed: 0.0, filter: Filter::default(), part: 1.0 };
            let time = eviction_time(512.0, &[own, other], None);
            own.footprint.misses(own.reach(time)) * EACH as f64
        };
        let filter = Filter::below(&own, reach);
        let (plainly, filtered, both) =
            (misses(Filter::default()), misses(filter), f64::from(both));
        println!("{both} misses below: {filtered:.0}, by uses alone {plainly:.0}");
        assert!((own.misses(reach) * EACH as f64 / f64::from(missed) - 1.0).abs() < 0.1);
        assert!((filtered / both - 1.0).abs() < 0.5 * (plainly / both - 1.0).abs());
    }
}
