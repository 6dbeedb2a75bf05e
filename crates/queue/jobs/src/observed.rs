//! What is known of programs: their runs, their CPI stacks, and what they did to each other on shared cores.
//!
//! Of each kind a bounded number is kept: the latest runs, the co-runners that were there longest, the programs that
//! were seen last. Stacks, and what was learned on cores, are means by CPU time, in which all that was counted before
//! weighs as [`STACK_MEMORY_S`] at most.
//!
//! # Terms and units
//! *Program*: an executable, by a digest, and the user that runs it ([`ProgramKey`]). *Work*: what a program is asked
//! to do, by a digest of its command line or script. Times are in seconds; points in time in seconds since 1970.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::ProgramKey;

/// How many runs of a program are kept, the latest.
pub const MOST_RUNS: usize = 32;
/// How many programs are kept, those that were seen last.
pub const MOST_PROGRAMS: usize = 2048;
/// How many co-runners of a run are kept, those that ran next to it longest.
const MOST_CO_RUNNERS: usize = 16;
/// How many programs are kept with which one shared cores, those that did so longest.
const MOST_NEXT_TO: usize = 64;

/// A run that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompletedRun {
    /// When it ended.
    pub ended_s: u64,
    /// What it was asked to do, by a digest.
    pub work: u64,
    /// How long it took.
    pub elapsed_s: f64,
    /// The error of that.
    #[serde(default)]
    pub error_s: f64,
    /// CPU time of all its processes, where it is known.
    pub cpu_s: Option<f64>,
    /// How many jobs of each program ran meanwhile, averaged over its time.
    pub co_runners: Vec<(ProgramKey, f64)>,
}

/// A CPI stack, averaged over what was counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    /// The processor on which it was counted, as its firmware names it.
    #[serde(default)]
    pub processor: String,
    /// Cycles per instruction by cause, as shares of their sum.
    pub components: BTreeMap<String, f64>,
    /// The CPU time over which it is the mean, seconds.
    pub counted_s: f64,
}

/// The CPU time as which all that was counted before weighs at most, seconds.
const STACK_MEMORY_S: f64 = 600.0;

/// What a co-runner on a core does to a program, as the manager of a node has learned it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NextTo {
    /// The processor on which it was learned, as its firmware names it.
    pub processor: String,
    /// What it adds to the natural logarithm of the program's instructions per cycle; comparable with other co-runners
    /// of the same program only.
    pub ln: f64,
    /// CPU time of the program next to it, seconds.
    pub together_s: f64,
}

/// All that is known of one program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramRecord {
    /// Its name for people.
    pub name: String,
    /// When it was last seen.
    pub seen_s: u64,
    /// Its latest runs, oldest first.
    pub runs: VecDeque<CompletedRun>,
    /// Its CPI stack, where events are counted.
    pub stack: Option<Stack>,
    /// What programs did to it with which it shared cores, where that is learned.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub next_to: BTreeMap<ProgramKey, NextTo>,
}

/// What is known of all programs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observations {
    programs: BTreeMap<ProgramKey, ProgramRecord>,
}

impl Observations {
    pub(crate) fn from_records(programs: BTreeMap<ProgramKey, ProgramRecord>) -> Self {
        let mut all = Self { programs };
        for record in all.programs.values_mut() {
            record.bound();
        }
        all.forget_old();
        all
    }

    /// What is known of each program, by its key.
    #[must_use]
    pub fn records(&self) -> &BTreeMap<ProgramKey, ProgramRecord> {
        &self.programs
    }

    /// The processor on which programs shared cores for the longest time; none: they shared none.
    #[must_use]
    pub fn processor_of_most_pairs(&self) -> Option<&str> {
        let mut times: BTreeMap<&str, f64> = BTreeMap::new();
        for next in self.programs.values().flat_map(|record| record.next_to.values()) {
            *times.entry(next.processor.as_str()).or_default() += next.together_s;
        }
        times.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(processor, _)| processor)
    }

    /// Adds a run.
    pub fn add_run(&mut self, key: &ProgramKey, name: &str, run: CompletedRun) {
        let ended_s = run.ended_s;
        let record = self.seen(key, name, ended_s);
        record.runs.push_back(run);
        record.bound();
        self.forget_old();
    }

    /// Adds its CPU time to a run that was added without.
    pub fn add_cpu_time(&mut self, key: &ProgramKey, ended_s: u64, work: u64, cpu_s: f64) {
        let Some(record) = self.programs.get_mut(key) else { return };
        let is_it = |run: &&mut CompletedRun| {
            (run.ended_s, run.work) == (ended_s, work) && run.cpu_s.is_none()
        };
        if let Some(run) = record.runs.iter_mut().find(is_it) {
            run.cpu_s = Some(cpu_s);
        }
    }

    /// Adds what was counted of a program over a part of its CPU time.
    pub fn add_stack(&mut self, key: &ProgramKey, name: &str, at_s: u64, counted: &Stack) {
        let weighs = counted.counted_s.is_finite() && counted.counted_s > 0.0;
        let all_finite = counted.components.values().all(|part| part.is_finite() && *part >= 0.0);
        if !weighs || !all_finite || counted.components.is_empty() {
            return;
        }
        let stack = self.seen(key, name, at_s).stack.get_or_insert_default();
        let is_same = stack.processor == counted.processor
            && stack.components.keys().eq(counted.components.keys());
        // What was counted on another processor, or by another catalogue, cannot be averaged with it.
        if !is_same {
            *stack = counted.clone();
        } else {
            let all = stack.counted_s + counted.counted_s;
            for (part, new) in stack.components.values_mut().zip(counted.components.values()) {
                *part += (new - *part) * counted.counted_s / all;
            }
            stack.counted_s = all.min(STACK_MEMORY_S);
        }
        self.forget_old();
    }

    /// Adds what was learned of a program next to another one over a part of its CPU time.
    pub fn add_next_to(
        &mut self,
        (key, name): (&ProgramKey, &str),
        other: &ProgramKey,
        at_s: u64,
        learned: &NextTo,
    ) {
        let weighs = learned.together_s.is_finite() && learned.together_s > 0.0;
        if !weighs || !learned.ln.is_finite() {
            return;
        }
        let record = self.seen(key, name, at_s);
        let next = record.next_to.entry(other.clone()).or_default();
        if next.processor == learned.processor {
            let all = next.together_s + learned.together_s;
            next.ln += (learned.ln - next.ln) * learned.together_s / all;
            next.together_s = all.min(STACK_MEMORY_S);
        } else {
            // On another processor it is another pair.
            *next = learned.clone();
        }
        record.bound();
        self.forget_old();
    }

    fn seen(&mut self, key: &ProgramKey, name: &str, at_s: u64) -> &mut ProgramRecord {
        let record = self.programs.entry(key.clone()).or_default();
        if !name.is_empty() {
            record.name = name.chars().take(64).collect();
        }
        record.seen_s = record.seen_s.max(at_s);
        record
    }

    fn forget_old(&mut self) {
        let excess = self.programs.len().saturating_sub(MOST_PROGRAMS);
        if excess == 0 {
            return;
        }
        let mut by_age: Vec<(u64, ProgramKey)> =
            self.programs.iter().map(|(key, record)| (record.seen_s, key.clone())).collect();
        by_age.sort_unstable();
        for (_, key) in by_age.into_iter().take(excess) {
            self.programs.remove(&key);
        }
    }
}

impl ProgramRecord {
    fn bound(&mut self) {
        while self.runs.len() > MOST_RUNS {
            self.runs.pop_front();
        }
        for run in &mut self.runs {
            run.co_runners.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            run.co_runners.truncate(MOST_CO_RUNNERS);
        }
        while self.next_to.len() > MOST_NEXT_TO {
            let shortest =
                self.next_to.iter().min_by(|(_, a), (_, b)| a.together_s.total_cmp(&b.together_s));
            let Some(key) = shortest.map(|(key, _)| key.clone()) else { break };
            self.next_to.remove(&key);
        }
    }

    /// CPU time / time over those of its runs whose CPU time is known.
    #[must_use]
    pub fn cpus(&self) -> Option<f64> {
        let known = self.runs.iter().filter_map(|run| Some((run.cpu_s?, run.elapsed_s)));
        let (cpu, elapsed) = known.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (elapsed > 0.0 && cpu.is_finite()).then(|| cpu / elapsed)
    }

    /// How long a work took, averaged over its runs; none: it did not run.
    #[must_use]
    pub fn mean_time_s(&self, work: u64) -> Option<f64> {
        let times: Vec<f64> =
            self.runs.iter().filter(|run| run.work == work).map(|run| run.elapsed_s).collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(digest: &str) -> ProgramKey {
        ProgramKey { user: 1000, digest: digest.to_owned() }
    }

    fn run(ended_s: u64, elapsed_s: f64, co_runners: &[(&str, f64)]) -> CompletedRun {
        let co_runners = co_runners.iter().map(|(digest, share)| (key(digest), *share)).collect();
        let cpu_s = Some(elapsed_s);
        CompletedRun { ended_s, work: 7, elapsed_s, error_s: 0.0, cpu_s, co_runners }
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_oldest_goes() {
        let mut all = Observations::default();
        for at in 0..(MOST_PROGRAMS as u64 + 3) {
            all.add_run(&key(&format!("{at:x}")), "p", run(at, 1.0, &[]));
        }
        assert_eq!(all.records().len(), MOST_PROGRAMS);
        assert!(!all.records().contains_key(&key("2")) && all.records().contains_key(&key("3")));
        let last = key("3");
        for at in 0..(MOST_RUNS as u64 + 5) {
            all.add_run(&last, "p", run(at, 2.0, &[]));
        }
        assert_eq!(all.records()[&last].runs.len(), MOST_RUNS);
        assert_eq!(all.records()[&last].runs[0].ended_s, 5);
    }

    #[test]
    fn stacks_are_averaged_by_the_time_they_stand_for() {
        let stack = |memory: f64, counted_s| Stack {
            processor: "A processor".to_owned(),
            components: [("memory".to_owned(), memory)].into(),
            counted_s,
        };
        let mut all = Observations::default();
        all.add_stack(&key("a"), "a", 1, &stack(1.0, 3.0));
        all.add_stack(&key("a"), "a", 2, &stack(2.0, 1.0));
        all.add_stack(&key("a"), "a", 3, &stack(f64::NAN, 1.0));
        let kept = all.records()[&key("a")].stack.clone().unwrap();
        assert_eq!((kept.components["memory"], kept.counted_s), (1.25, 4.0));
        let other = Stack { processor: "Another processor".to_owned(), ..stack(3.0, 1.0) };
        all.add_stack(&key("a"), "a", 4, &other);
        assert_eq!(all.records()[&key("a")].stack, Some(other), "it replaces the other one's");
    }

    #[test]
    fn what_cores_have_shown_of_pairs_is_averaged_by_processor_and_bounded() {
        let learned =
            |ln, together_s| NextTo { processor: "A processor".to_owned(), ln, together_s };
        let (mut all, a, b) = (Observations::default(), key("a"), key("b"));
        all.add_next_to((&a, "a"), &b, 1, &learned(-0.1, 3.0));
        all.add_next_to((&a, "a"), &b, 2, &learned(-0.5, 1.0));
        for odd in [learned(f64::NAN, 1.0), learned(-0.5, 0.0), learned(-0.5, f64::INFINITY)] {
            all.add_next_to((&a, "a"), &b, 3, &odd);
        }
        let kept = all.records()[&a].next_to[&b].clone();
        assert!((kept.ln + 0.2).abs() < 1e-12 && kept.together_s == 4.0, "{kept:?}");
        let other = NextTo { processor: "Another processor".to_owned(), ..learned(-0.3, 1.0) };
        all.add_next_to((&a, "a"), &b, 4, &other);
        assert_eq!(all.records()[&a].next_to[&b], other);
        assert_eq!(all.processor_of_most_pairs(), Some("Another processor"));
        for at in 0..MOST_NEXT_TO {
            all.add_next_to((&a, "a"), &key(&format!("{at:x}0")), 5, &learned(-0.1, 2.0));
        }
        assert_eq!(all.processor_of_most_pairs(), Some("A processor"));
        let kept = &all.records()[&a].next_to;
        assert!(kept.len() == MOST_NEXT_TO && !kept.contains_key(&b), "the shortest went");
    }

    #[test]
    fn cpus_and_times_are_means_over_the_runs() {
        let mut all = Observations::default();
        all.add_run(&key("a"), "a", run(1, 4.0, &[]));
        all.add_run(&key("a"), "a", CompletedRun { cpu_s: Some(4.0), ..run(2, 2.0, &[]) });
        all.add_run(&key("a"), "a", CompletedRun { cpu_s: None, ..run(3, 3.0, &[]) });
        let record = &all.records()[&key("a")];
        assert_eq!(record.cpus(), Some(8.0 / 6.0));
        all.add_cpu_time(&key("a"), 3, 8, 9.0);
        all.add_cpu_time(&key("b"), 3, 7, 9.0);
        all.add_cpu_time(&key("a"), 3, 7, 1.0);
        all.add_cpu_time(&key("a"), 3, 7, 9.0);
        let record = &all.records()[&key("a")];
        assert_eq!(
            record.cpus(),
            Some(1.0),
            "one run of another time, work or program is not meant"
        );
        assert_eq!((record.mean_time_s(7), record.mean_time_s(8)), (Some(3.0), None));
    }
}
