//! What ran next to what on a node, and for how long.
//!
//! ```text
//! at each start or end of a job: for each job i that runs, and each other job j
//!     overlap[i][program of j] += time since the last start or end
//! co-runners of i := overlap[i] / run time of i
//! ```

use std::collections::BTreeMap;

use crate::ProgramKey;

/// A job that runs.
#[derive(Debug)]
struct Running {
    key: ProgramKey,
    since_s: f64,
    /// Run time of other jobs meanwhile, by program, seconds.
    overlap: BTreeMap<ProgramKey, f64>,
}

/// The jobs that run on one node, by number.
#[derive(Debug, Default)]
pub struct Account {
    running: BTreeMap<u64, Running>,
    at_s: f64,
}

/// A run as it was observed on a node.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedRun {
    /// How long it took, seconds.
    pub elapsed_s: f64,
    /// How many jobs of each program ran meanwhile, averaged over its time.
    pub co_runners: Vec<(ProgramKey, f64)>,
}

impl Account {
    /// A job starts.
    pub fn start(&mut self, job: u64, key: &ProgramKey, now_s: f64) {
        self.advance(now_s);
        let running = Running { key: key.clone(), since_s: now_s, overlap: BTreeMap::new() };
        self.running.insert(job, running);
    }

    /// Does a job run?
    #[must_use]
    pub fn runs(&self, job: u64) -> bool {
        self.running.contains_key(&job)
    }

    /// A job ends; none: it never started.
    pub fn end(&mut self, job: u64, now_s: f64) -> Option<ObservedRun> {
        self.advance(now_s);
        let ended = self.running.remove(&job)?;
        let elapsed_s = (now_s - ended.since_s).max(0.0);
        let share = |(key, overlap): (ProgramKey, f64)| (key, overlap / elapsed_s.max(1e-9));
        Some(ObservedRun { elapsed_s, co_runners: ended.overlap.into_iter().map(share).collect() })
    }

    /// The jobs that run.
    pub fn running(&self) -> impl Iterator<Item = u64> {
        self.running.keys().copied()
    }

    fn advance(&mut self, now_s: f64) {
        let passed = (now_s - self.at_s).max(0.0);
        self.at_s = now_s;
        let keys: Vec<(u64, ProgramKey)> =
            self.running.iter().map(|(job, running)| (*job, running.key.clone())).collect();
        for (job, running) in &mut self.running {
            for (_, key) in keys.iter().filter(|(other, _)| other != job) {
                *running.overlap.entry(key.clone()).or_default() += passed;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(digest: &str) -> ProgramKey {
        ProgramKey { user: 0, digest: digest.to_owned() }
    }

    #[test]
    fn co_runners_count_for_the_share_of_the_time_that_they_ran() {
        let mut account = Account::default();
        account.start(1, &key("a"), 0.0);
        account.start(2, &key("b"), 1.0);
        account.start(3, &key("b"), 2.0);
        let b = account.end(2, 3.0).unwrap();
        assert_eq!(
            b,
            ObservedRun { elapsed_s: 2.0, co_runners: vec![(key("a"), 1.0), (key("b"), 0.5)] }
        );
        let a = account.end(1, 4.0).unwrap();
        assert_eq!(a, ObservedRun { elapsed_s: 4.0, co_runners: vec![(key("b"), 1.0)] });
        assert_eq!(account.end(1, 5.0), None);
    }
}
