//! Sums of one program or one thread.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use symbiont_machine::ProgramId;
use symbiont_topology::PuId;

use super::reasons::Reasons;

/// The sums that programs and threads share.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub run_time: Duration,
    /// Run time by CPU, as far as it is known where the thread ran.
    pub cpus: BTreeMap<PuId, Duration>,
    /// Thread quanta in which it is known where the thread ran.
    pub thread_quanta: u64,
    /// Those of them without a co-runner.
    pub alone: u64,
    /// Those of them with a co-runner of this program.
    pub with: BTreeMap<ProgramId, u64>,
    pub slowdown: Slowdown,
}

impl Sums {
    /// A thread ran for some time, co-running with threads of these programs.
    pub fn ran(&mut self, time: Duration, cpu: Option<PuId>, with: Option<&BTreeSet<ProgramId>>) {
        self.run_time += time;
        if let Some(cpu) = cpu {
            *self.cpus.entry(cpu).or_default() += time;
        }
        if let Some(with) = with {
            self.thread_quanta += 1;
            self.alone += u64::from(with.is_empty());
            for program in with {
                *self.with.entry(*program).or_default() += 1;
            }
        }
    }

    /// A slowdown was predicted, or none.
    pub fn predicted(&mut self, slowdown: Option<f64>) {
        if let Some(slowdown) = slowdown.filter(|slowdown| slowdown.is_finite()) {
            self.slowdown.add(slowdown);
        }
    }
}

/// Predictions, in sum and range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slowdown {
    pub count: u64,
    pub sum: f64,
    pub least: f64,
    pub most: f64,
}

impl Default for Slowdown {
    fn default() -> Self {
        Self { count: 0, sum: 0.0, least: f64::INFINITY, most: f64::NEG_INFINITY }
    }
}

impl Slowdown {
    fn add(&mut self, slowdown: f64) {
        self.count += 1;
        self.sum += slowdown;
        self.least = self.least.min(slowdown);
        self.most = self.most.max(slowdown);
    }
}

/// A program.
#[derive(Debug, Clone, Default)]
pub(super) struct ProgramAccount {
    pub name: String,
    /// Threads that were seen of it.
    pub threads: u64,
    /// Threads of it in one sample, at most.
    pub most_threads: u64,
    /// Time for which its threads were ready and did not run.
    pub wait_time: Duration,
    pub sums: Sums,
    pub reasons: Reasons,
}

/// A thread.
#[derive(Debug, Clone)]
pub(super) struct ThreadAccount {
    pub program: ProgramId,
    pub sums: Sums,
    /// The last one.
    pub reason: Cow<'static, str>,
}

impl ThreadAccount {
    pub fn of(program: ProgramId) -> Self {
        Self { program, sums: Sums::default(), reason: Cow::Borrowed("") }
    }
}
