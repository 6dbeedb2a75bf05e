//! Where the accesses of a stream go, so that lines are used again as soon as
//! a profile says.
//!
//! # Approach
//! Time is counted in accesses. All lines that were used are kept in the order of their
//! last use. An access with reuse time t goes to the line that was used last about t
//! accesses ago; a cold one, or one whose line would be older than all that are kept, to a fresh
//! line. Within one pass through a micro-trace, equal lines of the trace are equal
//! lines here, and a line next to another that is used again as late is next to it here as well, so that
//! sequential runs stay sequential.
//!
//! Before time 0 lies a past that has just the profile's distribution: the k-th line back was
//! used at the time at which k distinct lines have been seen (F(t) = k).
//!
//! # Properties
//! `reuse_times_come_out_as_they_went_in`, `the_past_has_the_profiles_lines`.

use std::collections::{BTreeMap, HashMap};

use symbiont_profile::{ReuseBin, ReuseCurve};

/// When the stream starts.
const START: u64 = 1 << 40;
/// Reuse times below this belong to one spot of a program, not to a sweep.
const SHORT: u64 = 256;
/// Fresh lines keep so many low bits of the trace's own number: their sets.
const OWN_BITS: u32 = 24;

/// The lines (or pages) of one stream.
#[derive(Debug, Clone)]
pub(super) struct Places {
    now: u64,
    /// By last use, oldest first; without those of this pass.
    recent: BTreeMap<u64, u64>,
    /// The other way round.
    used: HashMap<u64, u64>,
    /// Of this pass: the trace's line → the place, its last use, its reuse time was short.
    pass: BTreeMap<u64, (u64, u64, bool)>,
    passes: u64,
    most: usize,
    /// Is nothing known that is older than what is kept?
    complete: bool,
}

impl Places {
    /// A stream whose past is of this distribution; keeps `most` lines.
    pub(super) fn new(curve: &ReuseCurve, most: usize) -> Self {
        let mut places = Self {
            now: START,
            recent: BTreeMap::new(),
            used: HashMap::new(),
            pass: BTreeMap::new(),
            passes: 0,
            most,
            complete: false,
        };
        let mut back = 0;
        for line in 0..most as u64 {
            let reach = curve.reach(line as f64 + 0.5);
            if !reach.is_finite() || reach >= START as f64 {
                places.complete = true;
                break;
            }
            // A cast from a float saturates. Each time is one line's.
            back = (reach as u64).max(back + 1);
            places.put(START.saturating_sub(back), line);
        }
        places
    }

    /// Lines of the past, the one used last at the end: how many accesses ago each was used.
    pub(super) fn past(&self) -> impl Iterator<Item = (u64, u64)> {
        self.recent.iter().map(|(time, line)| (self.now - time, *line))
    }

    fn put(&mut self, time: u64, line: u64) {
        if let Some(before) = self.used.insert(line, time) {
            self.recent.remove(&before);
        }
        self.recent.insert(time, line);
    }

    fn take(&mut self, line: u64) -> bool {
        let found = self.used.remove(&line);
        found.is_some_and(|time| self.recent.remove(&time).is_some())
    }

    /// The place of an access to the trace's `line`; `share` from 0 to 1 says where in its bin the
    /// reuse time lies.
    pub(super) fn access(&mut self, line: u64, reuse: ReuseBin, share: f64) -> u64 {
        self.now += 1;
        let now = self.now;
        if let Some(known) = self.pass.get_mut(&line) {
            known.1 = now;
            return known.0;
        }
        let back = reuse.shortest().zip(reuse.longest());
        let back = back.map(|(low, high)| low + (share * (high - low) as f64) as u64);
        let short = back.is_some_and(|back| back < SHORT);
        let place = self
            .next_to(line, short)
            .or_else(|| back.and_then(|back| self.about(now.saturating_sub(back))))
            .unwrap_or_else(|| self.fresh(line));
        self.take(place);
        self.pass.insert(line, (place, now, short));
        place
    }

    /// The place next to that of a neighbour in this pass.
    fn next_to(&self, line: u64, short: bool) -> Option<u64> {
        if short {
            return None;
        }
        let neighbour = |of: u64, step: i64| {
            let (place, _, short) = self.pass.get(&of)?;
            let place = place.checked_add_signed(step)?;
            // Not one that another line of this pass has.
            let free = self.used.contains_key(&place) || place >> OWN_BITS > 0;
            (!short && free).then_some(place)
        };
        let below = line.checked_sub(1).and_then(|of| neighbour(of, 1));
        below.or_else(|| line.checked_add(1).and_then(|of| neighbour(of, -1)))
    }

    /// The line that was used last at about this time.
    fn about(&self, time: u64) -> Option<u64> {
        let before = self.recent.range(..=time).next_back();
        let after = self.recent.range(time..).next();
        match (before, after) {
            (Some((before, line)), Some((after, other))) => {
                Some(if time - before <= after - time { *line } else { *other })
            }
            (Some((_, line)), None) => Some(*line),
            // Older than all that is kept.
            (None, Some((_, line))) => self.complete.then_some(*line),
            (None, None) => None,
        }
    }

    fn fresh(&self, line: u64) -> u64 {
        (self.passes + 1) << OWN_BITS | (line & ((1 << OWN_BITS) - 1))
    }

    /// A pass through a micro-trace is over.
    pub(super) fn end_pass(&mut self) {
        self.passes += 1;
        for (place, time, _) in std::mem::take(&mut self.pass).into_values() {
            self.put(time, place);
        }
        while self.recent.len() > self.most {
            let Some((_, line)) = self.recent.pop_first() else { break };
            self.used.remove(&line);
            self.complete = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use symbiont_profile::ReuseHistogram;

    use super::*;

    fn histogram(bins: &[(u64, u64)], cold: u64) -> ReuseHistogram {
        let mut histogram = ReuseHistogram::default();
        bins.iter().for_each(|(time, count)| histogram.add(ReuseBin::of(*time), *count));
        histogram.add(ReuseBin::COLD, cold);
        histogram.accesses = histogram.sampled();
        histogram
    }

    #[test]
    fn the_past_has_the_profiles_lines() {
        // 900 of 1000 accesses are to what was used 10 accesses ago, others 5,000.
        let curve = histogram(&[(10, 900), (5000, 100)], 0).curve();
        let places = Places::new(&curve, 10_000);
        let lines = curve.integral(1e9);
        assert!((places.past().count() as f64 - lines).abs() < 2.0, "{lines}");
        let within = places.past().filter(|(back, _)| *back <= 1000).count() as f64;
        assert!((within - curve.integral(1000.0)).abs() < 2.0, "{within}");
    }

    #[test]
    fn reuse_times_come_out_as_they_went_in() {
        let curve = histogram(&[(8, 700), (1000, 200)], 100).curve();
        let mut places = Places::new(&curve, 4_000);
        let (mut last, mut seen) = (HashMap::new(), HashSet::new());
        let (mut short, mut long, mut cold) = (0, 0, 0);
        let times = [8, 8, 1000, 8, 8, 0, 8, 8, 1000, 8];
        for n in 0..20_000_u64 {
            let time = times[n as usize % times.len()];
            let bin = if time == 0 { ReuseBin::COLD } else { ReuseBin::of(time) };
            // Lines of the trace far from each other, each once a pass.
            let line = places.access(n * 7, bin, 0.5);
            if let Some(before) = last.insert(line, n) {
                match n - before {
                    0..=30 => short += 1,
                    700..=1400 => long += 1,
                    _ => {}
                }
            } else if seen.insert(line) && line >> OWN_BITS > 0 {
                cold += 1;
            }
            places.end_pass();
        }
        assert!(cold >= 2_000, "{cold}");
        assert!(short > 13_000, "{short}");
        assert!(long > 3_000, "{long}");
    }
}
