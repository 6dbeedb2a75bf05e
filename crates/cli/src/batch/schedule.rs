//! Which job is next.
//!
//! Chosen by [`choose_of_batch`]; of how long jobs take, and how much they disturb each other, is known what
//! the store says.

use std::collections::BTreeMap;

use symbiont_jobs::{
    BatchJob, CombinedPredictor, Flat, Numbering, Observations, ProgramKey, ProgramNumber, Reason,
    Release, SharedCores, choose_of_batch, learn,
};

use crate::args::Order;

/// A job that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// The number of its line.
    pub number: usize,
    /// Its program.
    pub key: ProgramKey,
    /// What it does.
    pub work: u64,
}

/// Chooses by what is known.
#[derive(Debug)]
pub struct Schedule {
    order: Order,
    slots: usize,
    cpus: f64,
    observations: Observations,
    /// The processor, and how many hardware threads share a core.
    cores: (String, usize),
    names: BTreeMap<ProgramKey, String>,
}

/// A choice, in the words of programs' keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The number of the job's line.
    pub number: usize,
    /// Its predicted slowdown.
    pub slowdown: f64,
    /// Why it, in words.
    pub reason: String,
}

impl Schedule {
    /// Of so many jobs at a time on so many CPUs.
    pub fn new(order: Order, slots: usize, cpus: f64, observations: Observations) -> Self {
        let (cores, names) = Default::default();
        Self { order, slots, cpus, observations, cores, names }
    }

    /// Knows also what was learned of jobs on one core of this processor, which so many share.
    #[must_use]
    pub fn on_cores(self, processor: &str, width: usize) -> Self {
        Self { cores: (processor.to_owned(), width), ..self }
    }

    /// Says what people call programs.
    #[must_use]
    pub fn named(self, names: BTreeMap<ProgramKey, String>) -> Self {
        Self { names, ..self }
    }

    /// Goes on with what is known now.
    pub fn learn(&mut self, observations: Observations) {
        self.observations = observations;
    }

    /// How long a job takes, as far as it ran before.
    pub fn expected_s(&self, job: &Waiting) -> Option<f64> {
        self.observations.records().get(&job.key)?.mean_time_s(job.work)
    }

    /// The jobs to start while these run.
    pub fn next(&self, waiting: &[Waiting], running: &[ProgramKey]) -> Vec<Start> {
        let mut numbering = Numbering::default();
        let programs: Vec<ProgramNumber> =
            running.iter().map(|key| numbering.number(key)).collect();
        let job = |job: &Waiting| BatchJob {
            id: job.number as u64,
            program: numbering.number(&job.key),
            expected_s: self.expected_s(job),
        };
        let jobs: Vec<BatchJob> = waiting.iter().map(job).collect();
        let (slots, by_length) = (self.slots, self.order != Order::FirstCome);
        let releases = match self.order {
            Order::FirstCome | Order::LongestFirst => {
                choose_of_batch(&jobs, programs, slots, by_length, &Flat)
            }
            Order::Partners => {
                let learned = learn(&self.observations, &mut numbering, self.cpus);
                let (processor, width) = &self.cores;
                let on_cores = SharedCores::new(&self.observations, &numbering, processor, *width);
                let combined = CombinedPredictor::of_run_times(learned).with_shared_cores(on_cores);
                choose_of_batch(&jobs, programs, slots, by_length, &combined)
            }
        };
        releases.iter().map(|release| self.explain(release, &numbering)).collect()
    }

    fn explain(&self, release: &Release, numbering: &Numbering) -> Start {
        let names = self.names(&release.co_runners, numbering);
        let next_to = if names.is_empty() { String::new() } else { format!(" next to {names}") };
        let reason = match &release.reason {
            Reason::Overdue { .. } => format!("it takes as long as the rest{next_to}"),
            Reason::First => match self.order {
                Order::FirstCome => format!("first of the file{next_to}"),
                _ => format!("first of those that wait{next_to}"),
            },
            Reason::Partner { first, first_cost, cost, .. } => format!(
                "partner of {names}: costs {cost:+.2} there against its average, line {first} \
                 {first_cost:+.2}"
            ),
        };
        let number = usize::try_from(release.job).unwrap_or(usize::MAX);
        Start { number, slowdown: release.slowdown, reason }
    }

    fn names(&self, programs: &[ProgramNumber], numbering: &Numbering) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for program in programs {
            let name = numbering.key(*program).and_then(|key| self.names.get(key));
            let name = name.map_or("another program", String::as_str);
            *counts.entry(name).or_default() += 1;
        }
        let one = |(name, count): (&str, usize)| match count {
            1 => name.to_owned(),
            _ => format!("{count} of {name}"),
        };
        counts.into_iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use symbiont_jobs::{CompletedRun, NextTo};

    use super::*;

    fn key(digest: &str) -> ProgramKey {
        ProgramKey { user: 0, digest: digest.to_owned() }
    }

    fn waiting(number: usize, digest: &str) -> Waiting {
        Waiting { number, key: key(digest), work: 1 }
    }

    /// a and b disturb their own kind; each takes 10 s.
    fn known() -> Observations {
        let mut all = Observations::default();
        let pairs = [("a", "a", 15.0), ("a", "b", 10.0), ("b", "a", 10.0), ("b", "b", 15.0)];
        for (at, (program, other, elapsed_s)) in (0..).zip(pairs.repeat(3)) {
            let co_runners = vec![(key(other), 1.0)];
            let (error_s, cpu_s) = (0.0, Some(elapsed_s));
            let run = CompletedRun { ended_s: at, work: 1, elapsed_s, error_s, cpu_s, co_runners };
            all.add_run(&key(program), program, run);
        }
        all
    }

    fn start(order: Order, waiting: &[Waiting], running: &[ProgramKey]) -> Vec<usize> {
        let schedule = Schedule::new(order, 2, 8.0, known());
        schedule.next(waiting, running).iter().map(|start| start.number).collect()
    }

    #[test]
    fn the_best_partner_of_what_runs_starts() {
        let jobs =
            [waiting(1, "a"), waiting(2, "b"), waiting(3, "a"), waiting(4, "b"), waiting(5, "b")];
        assert_eq!(start(Order::Partners, &jobs, &[key("a")]), [2]);
        assert_eq!(start(Order::Partners, &jobs, &[key("b")]), [1]);
        assert_eq!(start(Order::FirstCome, &jobs, &[key("a")]), [1]);
    }

    #[test]
    fn what_was_learned_on_cores_decides_where_cores_are_shared() {
        // No pair differs in run times; on cores a suits b.
        let mut known = Observations::default();
        for (program, other, ln) in
            [("a", "a", -0.5), ("a", "b", -0.1), ("b", "a", -0.1), ("b", "b", -0.5)]
        {
            let next = NextTo { processor: "P".to_owned(), ln, together_s: 60.0 };
            known.add_next_to((&key(program), program), &key(other), 1, &next);
        }
        let jobs = [waiting(1, "a"), waiting(2, "b")];
        let start = |processor, width| {
            let schedule = Schedule::new(Order::Partners, 2, 8.0, known.clone());
            let schedule = schedule.on_cores(processor, width);
            schedule.next(&jobs, &[key("a")])[0].number
        };
        assert_eq!(start("P", 2), 2);
        assert_eq!((start("P", 1), start("Q", 2)), (1, 1), "not known there");
    }

    #[test]
    fn without_knowledge_jobs_start_in_the_order_of_the_file() {
        let jobs = [waiting(1, "x"), waiting(2, "y"), waiting(3, "x")];
        let schedule = Schedule::new(Order::Partners, 2, 2.0, Observations::default());
        let started: Vec<_> = schedule.next(&jobs, &[]).iter().map(|s| s.number).collect();
        assert_eq!(started, [1, 2]);
    }

    #[test]
    fn a_job_as_long_as_the_rest_starts_at_once() {
        let mut known = known();
        let run = CompletedRun {
            ended_s: 99,
            work: 1,
            elapsed_s: 90.0,
            error_s: 0.0,
            cpu_s: None,
            co_runners: Vec::new(),
        };
        known.add_run(&key("c"), "c", run);
        let jobs = [waiting(1, "b"), waiting(2, "a"), waiting(3, "c")];
        let schedule = Schedule::new(Order::Partners, 2, 8.0, known);
        assert_eq!(schedule.next(&jobs, &[key("a")])[0].number, 3);
    }
}
