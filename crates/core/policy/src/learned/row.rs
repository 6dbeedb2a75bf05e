//! What is known of the speeds of threads of one kind: each thread's speed alone, and what each kind of co-runner
//! takes from it, with all covariances.
//!
//! ```text
//! ln IPC = b(thread) + Σ over co-runners: share of time × r(kind of the co-runner) + noise
//! ```
//!
//! It is a Kalman filter: exact for this model where noise is normal. Speeds alone walk at random, the rest
//! stays. Units: natural logarithms of instructions per cycle.
//!
//! Properties: pairs that were seen are distinguished (`contrasts_are_learned_without_speeds_alone`); variances never
//! become negative and rows stay bounded (`rows_stay_bounded_and_sound`).

use symbiont_machine::ThreadId;
use symbiont_topology::CoreKind;

/// A program on cores of one type.
pub(super) type Origin = (String, CoreKind);

/// Threads that slow others down, and are slowed down, alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Kind(pub u32);

/// Kinds of co-runners that a row knows at most.
const MOST_KINDS: usize = 32;
/// Threads that it knows at most; others of its kind teach nothing meanwhile.
const MOST_THREADS: usize = 16;
/// Quanta after which a thread that was not seen makes room for another one.
const UNSEEN: u64 = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Term {
    /// ln IPC of a thread alone.
    Alone(ThreadId),
    /// What a co-runner of this kind adds to it, where it runs all the time.
    Next(Kind),
}

/// A normal distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Belief {
    pub mean: f64,
    pub variance: f64,
}

/// What one kind takes from another, against the co-runner that this one has now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OneWay {
    /// What it adds to ln IPC.
    pub mean: f64,
    /// Variance of the difference to the present co-runner.
    pub contrast: f64,
}

/// Which terms make up an observation, and how much of each.
#[derive(Debug, Clone)]
pub(super) struct Parts(Vec<(usize, f64)>);

/// What a row expects of an observation.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    /// Of ln IPC, without noise.
    pub belief: Belief,
    /// Covariance of each term with it.
    covariances: Vec<f64>,
}

/// The filter.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    terms: Vec<Term>,
    means: Vec<f64>,
    /// When each was seen last, in quanta.
    seen: Vec<u64>,
    /// Row by row.
    covariances: Vec<f64>,
}

impl Row {
    fn find(&self, term: Term) -> Option<usize> {
        self.terms.iter().position(|known| *known == term)
    }

    /// Is this thread's speed alone estimated?
    pub fn knows(&self, thread: ThreadId) -> bool {
        self.find(Term::Alone(thread)).is_some()
    }

    /// What is known of a kind of co-runners.
    pub fn next_to(&self, kind: Kind) -> Option<Belief> {
        let at = self.find(Term::Next(kind))?;
        Some(Belief { mean: self.means[at], variance: self.covariance(at, at).max(0.0) })
    }

    /// All kinds of co-runners that are known, with what they take.
    pub fn all(&self) -> impl Iterator<Item = (Kind, Belief)> + '_ {
        self.terms.iter().enumerate().filter_map(|(at, term)| match term {
            Term::Next(kind) => {
                let variance = self.covariance(at, at).max(0.0);
                Some((*kind, Belief { mean: self.means[at], variance }))
            }
            Term::Alone(_) => None,
        })
    }

    /// All kinds of co-runners that are known, with the variance of by how much each differs from the present one;
    /// with the variance of that one where it is not known. None: next to no one, whose difference is zero.
    pub fn contrasts(
        &self,
        present: Option<(Kind, f64)>,
    ) -> impl Iterator<Item = (Kind, OneWay)> + '_ {
        let at_present = present.and_then(|(kind, _)| self.find(Term::Next(kind)));
        let unknown = present.map_or(0.0, |(_, variance)| variance);
        let of_present = at_present.map_or(unknown, |present| self.covariance(present, present));
        let contrast = move |at: usize| {
            let both = at_present.map_or(0.0, |present| self.covariance(at, present));
            (self.covariance(at, at) + of_present - 2.0 * both).max(0.0)
        };
        self.terms.iter().enumerate().filter_map(move |(at, term)| match term {
            Term::Next(kind) => {
                Some((*kind, OneWay { mean: self.means[at], contrast: contrast(at) }))
            }
            Term::Alone(_) => None,
        })
    }

    /// All kinds of co-runners, each with half the variance of its difference to the one that it is compared with
    /// best; none of just one, which is compared with nothing.
    pub fn compared(&self) -> Vec<(Kind, Belief)> {
        let kinds: Vec<(Kind, usize)> = (self.terms.iter().enumerate())
            .filter_map(|(at, term)| match term {
                Term::Next(kind) => Some((*kind, at)),
                Term::Alone(_) => None,
            })
            .collect();
        let against = |one: usize, other: usize| {
            let all = self.covariance(one, one) + self.covariance(other, other);
            (all - 2.0 * self.covariance(one, other)).max(0.0)
        };
        let belief = |&(kind, at): &(Kind, usize)| {
            let others = kinds.iter().filter(|(other, _)| *other != kind);
            let least = others.map(|(_, other)| against(at, *other)).min_by(f64::total_cmp)?;
            Some((kind, Belief { mean: self.means[at], variance: least / 2.0 }))
        };
        kinds.iter().filter_map(belief).collect()
    }

    /// A thread that was not known, if there is room; its speed alone is known this well.
    pub fn add_thread(&mut self, thread: ThreadId, alone: Belief, now: u64) {
        let is_thread = |term: &Term| matches!(term, Term::Alone(_));
        if self.find(Term::Alone(thread)).is_none()
            && self.make_room(MOST_THREADS, is_thread, now.saturating_sub(UNSEEN))
        {
            self.add(Term::Alone(thread), alone, now);
        }
    }

    /// A kind of co-runners that was not known.
    pub fn add_kind(&mut self, kind: Kind, next: Belief, now: u64) {
        let is_kind = |term: &Term| matches!(term, Term::Next(_));
        if self.find(Term::Next(kind)).is_none() && self.make_room(MOST_KINDS, is_kind, u64::MAX) {
            self.add(Term::Next(kind), next, now);
        }
    }

    pub fn remove_thread(&mut self, thread: ThreadId) {
        self.remove(Term::Alone(thread));
    }

    pub fn remove_kind(&mut self, kind: Kind) {
        self.remove(Term::Next(kind));
    }

    /// The speed alone of a thread walks on: its variance grows by so much a quantum since it was seen.
    pub fn walk(&mut self, thread: ThreadId, variance: f64, now: u64) {
        if let Some(at) = self.find(Term::Alone(thread)) {
            let quanta = now.saturating_sub(self.seen[at]) as f64;
            *self.covariance_mut(at, at) += quanta * variance;
            self.seen[at] = now;
        }
    }

    /// A thread next to these, each for a share of the time; none where one is not known.
    pub fn parts(&self, thread: ThreadId, others: &[(Kind, f64)]) -> Option<Parts> {
        let alone = self.find(Term::Alone(thread)).map(|at| (at, 1.0));
        let next = others.iter().map(|(kind, share)| Some((self.find(Term::Next(*kind))?, *share)));
        std::iter::once(alone).chain(next).collect::<Option<Vec<_>>>().map(Parts)
    }

    pub fn predict(&self, parts: &Parts) -> Expected {
        let of =
            |row: usize| parts.0.iter().map(|&(at, much)| much * self.covariance(row, at)).sum();
        let covariances: Vec<f64> = (0..self.terms.len()).map(of).collect();
        let sum = |of: &[f64]| parts.0.iter().map(|&(at, much)| much * of[at]).sum::<f64>();
        let belief = Belief { mean: sum(&self.means), variance: sum(&covariances).max(0.0) };
        Expected { belief, covariances }
    }

    /// An observation of these parts was off by so much from what was expected.
    pub fn learn(&mut self, parts: &Parts, expected: &Expected, off: f64, noise: f64, now: u64) {
        let size = self.terms.len();
        let scale = (expected.belief.variance + noise).recip();
        for (row, covariance) in expected.covariances.iter().enumerate() {
            let gain = covariance * scale;
            self.means[row] += gain * off;
            let entries = &mut self.covariances[row * size..(row + 1) * size];
            for (entry, other) in entries.iter_mut().zip(&expected.covariances) {
                *entry -= gain * other;
            }
        }
        for (at, _) in &parts.0 {
            self.seen[*at] = now;
        }
    }

    fn covariance(&self, row: usize, column: usize) -> f64 {
        self.covariances[row * self.terms.len() + column]
    }

    fn covariance_mut(&mut self, row: usize, column: usize) -> &mut f64 {
        &mut self.covariances[row * self.terms.len() + column]
    }

    fn add(&mut self, term: Term, belief: Belief, now: u64) {
        let size = self.terms.len();
        let mut wider = Vec::with_capacity((size + 1) * (size + 1));
        for row in self.covariances.chunks(size.max(1)) {
            wider.extend_from_slice(row);
            wider.push(0.0);
        }
        wider.resize((size + 1) * (size + 1), 0.0);
        self.covariances = wider;
        self.terms.push(term);
        self.means.push(belief.mean);
        self.seen.push(now);
        *self.covariance_mut(size, size) = belief.variance;
    }

    fn remove(&mut self, term: Term) {
        let Some(gone) = self.find(term) else { return };
        let size = self.terms.len();
        let mut at = 0;
        self.covariances.retain(|_| {
            let (row, column) = (at / size, at % size);
            at += 1;
            row != gone && column != gone
        });
        self.terms.remove(gone);
        self.means.remove(gone);
        self.seen.remove(gone);
    }

    /// Forgets what was seen longest ago, if that was before a quantum, until fewer terms than this are such.
    fn make_room(&mut self, most: usize, is_such: impl Fn(&Term) -> bool, before: u64) -> bool {
        while self.terms.iter().filter(|term| is_such(term)).count() >= most {
            let such = self.terms.iter().zip(&self.seen).filter(|(term, _)| is_such(term));
            match such.min_by_key(|(_, seen)| **seen) {
                Some((&oldest, &seen)) if seen < before => self.remove(oldest),
                _ => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use symbiont_machine::test_support::thread;
    use symbiont_topology::CpuSet;

    use super::*;

    const NOISE: f64 = 0.03 * 0.03;
    const UNKNOWN: Belief = Belief { mean: 0.0, variance: 0.05 * 0.05 };

    fn id(at: u32) -> ThreadId {
        thread(at, at, &CpuSet::default()).id
    }

    fn observe(row: &mut Row, of: u32, next: u32, ipc: f64, now: u64) {
        let others = [(Kind(next), 1.0)];
        row.add_thread(id(of), Belief { mean: ipc, variance: 1.0 }, now);
        row.add_kind(Kind(next), UNKNOWN, now);
        row.walk(id(of), 1e-5, now);
        let Some(parts) = row.parts(id(of), &others) else { return };
        let expected = row.predict(&parts);
        row.learn(&parts, &expected, ipc - expected.belief.mean, NOISE, now);
    }

    #[test]
    fn contrasts_are_learned_without_speeds_alone() {
        // Two threads of one kind, of very different speed, next to two kinds.
        let mut row = Row::default();
        for now in 0..400 {
            let (next, of) = (now as u32 % 2, now as u32 / 2 % 2);
            let alone = [0.7, -0.4][of as usize];
            observe(&mut row, of, next, alone - [0.2, 0.3][next as usize], now);
        }
        let [one, two] = [0, 1].map(|kind| row.next_to(Kind(kind)).unwrap());
        assert!((one.mean - two.mean - 0.1).abs() < 0.01, "{one:?} {two:?}");
        let contrasts = |present| -> Vec<f64> {
            row.contrasts(present).map(|(_, one_way)| one_way.contrast).collect()
        };
        let to_one = contrasts(Some((Kind(0), 1.0)));
        assert!(to_one[0] < 1e-12 && to_one[1] < 1e-4, "{to_one:?}");
        assert!(one.variance > 10.0 * to_one[1], "{to_one:?} {one:?}");
        assert!(contrasts(Some((Kind(7), 1.0))).iter().all(|contrast| *contrast > 0.9));
        assert_eq!(contrasts(None), [one.variance, two.variance]);
    }

    proptest! {
        #[test]
        fn rows_stay_bounded_and_sound(
            events in proptest::collection::vec((0u32..20, 0u32..40, -3.0f64..3.0, 0u32..8), 1..300)
        ) {
            let mut row = Row::default();
            for (now, (of, next, ipc, what)) in events.into_iter().enumerate() {
                match what {
                    0 => row.remove_thread(id(of)),
                    1 => row.remove_kind(Kind(next)),
                    _ => observe(&mut row, of, next, ipc, now as u64),
                }
                let (threads, kinds): (Vec<Term>, Vec<Term>) =
                    row.terms.iter().copied().partition(|term| matches!(term, Term::Alone(_)));
                prop_assert!(threads.len() <= MOST_THREADS && kinds.len() <= MOST_KINDS);
                prop_assert_eq!(row.covariances.len(), row.terms.len().pow(2));
                for at in 0..row.terms.len() {
                    prop_assert!(row.covariance(at, at) > -1e-9 && row.means[at].is_finite());
                }
            }
        }
    }
}
