//! Numbers of programs, by which predictions name them, and what is learned of numbered programs.

use std::collections::BTreeMap;

use crate::{CoRun, Demand, Observations, ProgramKey, ProgramNumber, ProgramRecord, RunTimeModel};

/// Numbers programs, those first of which something is known.
#[derive(Debug, Clone, Default)]
pub struct Numbering {
    keys: Vec<ProgramKey>,
    numbers: BTreeMap<ProgramKey, ProgramNumber>,
}

impl Numbering {
    /// Numbers all programs of which something is known.
    #[must_use]
    pub fn of(observations: &Observations) -> Self {
        let mut all = Self::default();
        for key in observations.records().keys() {
            all.number(key);
        }
        all
    }

    /// The number of a program; a new one if it has none.
    pub fn number(&mut self, key: &ProgramKey) -> ProgramNumber {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let number = ProgramNumber(u32::try_from(self.keys.len()).unwrap_or(u32::MAX));
        self.keys.push(key.clone());
        self.numbers.insert(key.clone(), number);
        number
    }

    /// The number of a program, if it has one.
    #[must_use]
    pub fn get(&self, key: &ProgramKey) -> Option<ProgramNumber> {
        self.numbers.get(key).copied()
    }

    /// The program of a number.
    #[must_use]
    pub fn key(&self, program: ProgramNumber) -> Option<&ProgramKey> {
        self.keys.get(program.0 as usize)
    }

    /// All programs, in the order of their numbers.
    #[must_use]
    pub fn keys(&self) -> &[ProgramKey] {
        &self.keys
    }
}

/// Learns from all runs that are known, on machines of so many CPUs.
#[must_use]
pub fn learn(observations: &Observations, numbering: &mut Numbering, cpus: f64) -> RunTimeModel {
    let mut runs = Vec::new();
    // The same work of two programs is two works.
    let mut works: BTreeMap<(ProgramNumber, u64), u64> = BTreeMap::new();
    for (key, record) in observations.records() {
        let program = numbering.number(key);
        for run in &record.runs {
            let next = works.len() as u64;
            let work = *works.entry((program, run.work)).or_insert(next);
            let others = run.co_runners.iter();
            let co_runners = others.map(|(key, share)| (numbering.number(key), *share)).collect();
            let (elapsed_s, error_s) = (run.elapsed_s, run.error_s);
            runs.push(CoRun { program, work, elapsed_s, error_s, co_runners });
        }
    }
    let record = |key| observations.records().get(key);
    let used = numbering.keys.iter().map(|key| record(key).and_then(ProgramRecord::cpus)).collect();
    RunTimeModel::fit(&runs, Demand { used, cpus })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompletedRun, Predict};

    fn key(digest: &str) -> ProgramKey {
        ProgramKey { user: 1000, digest: digest.to_owned() }
    }

    fn run(ended_s: u64, elapsed_s: f64, other: &str) -> CompletedRun {
        let (cpu_s, co_runners) = (Some(elapsed_s), vec![(key(other), 1.0)]);
        CompletedRun { ended_s, work: 7, elapsed_s, error_s: 0.0, cpu_s, co_runners }
    }

    #[test]
    fn slowdowns_follow_from_the_runs_that_are_kept() {
        let mut all = Observations::default();
        for (at, (time, other)) in (0..).zip([(10.0, "c"), (14.0, "b"), (10.0, "c"), (14.0, "b")]) {
            all.add_run(&key("a"), "a", run(at, time, other));
        }
        let mut numbering = Numbering::of(&all);
        let learned = learn(&all, &mut numbering, 4.0);
        let mut slowdown = |other| {
            let other = numbering.number(&key(other));
            learned.slowdown(numbering.number(&key("a")), &[other])
        };
        assert!(slowdown("b") / slowdown("c") > 1.2);
    }
}
