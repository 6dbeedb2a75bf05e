//! What the model of Morad et al. says of a cell on the CPUs of a machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use symbiont_linux::slow::SlowCpu;
use symbiont_report::theory;
use symbiont_synth::Ratio;

/// The CPUs of the machine, as the model sees them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cpus {
    /// How many: the n of the paper.
    pub count: u32,
    /// How many times as fast as the others one of them is: the a of the paper;
    /// none if they differ in another way.
    pub large: Option<f64>,
    /// How many CPUs' time is left to programs: less where a CPU is made slow by
    /// taking it away for a part of the time.
    pub left: f64,
}

impl Cpus {
    /// CPUs that are all alike.
    #[must_use]
    pub fn alike(count: u32) -> Self {
        Self { count, large: Some(1.0), left: f64::from(count) }
    }

    /// CPUs of which these are slowed down.
    #[must_use]
    pub fn slowed(count: u32, slow: &[SlowCpu]) -> Self {
        let factor = slow.first().map_or(1.0, SlowCpu::factor);
        let which: BTreeMap<_, _> = slow.iter().map(|slow| (slow.cpu(), slow.factor())).collect();
        let alike = slow.iter().all(|slow| slow.factor() == factor);
        let all_but_one = u32::try_from(which.len() + 1) == Ok(count);
        let covered = slow.is_empty() || (alike && all_but_one);
        let taken: f64 = which.values().map(|factor| 1.0 - 1.0 / factor).sum();
        Self { count, large: covered.then_some(factor), left: f64::from(count) - taken }
    }

    /// The machine of the model; none if it does not cover it.
    #[must_use]
    pub fn model(self) -> Option<theory::Multiprocessor> {
        theory::Multiprocessor::new(self.count, self.large?).ok()
    }
}

/// What the model of Morad et al. says of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Mean speedup of each program: Tables 1 and 3 for pure programs, their
    /// combination by a chain of joint states for mixed ones.
    pub speedup: [f64; 2],
    /// Least and largest speedup of each; only for pure programs.
    pub range: Option<[(f64, f64); 2]>,
    /// Fairness of the mean speedups.
    pub fairness: f64,
    /// In units of one thread on the idle machine.
    pub throughput: f64,
}

pub(super) fn prediction(
    scheduler: theory::Scheduler,
    cpus: Cpus,
    ratios: [Ratio; 2],
) -> Option<Prediction> {
    let machine = cpus.model()?;
    let program = |ratio: Ratio| {
        theory::Program::new(ratio.parallel_share(), 1.0 - ratio.parallel_share()).ok()
    };
    let predicted = theory::predict(scheduler, machine, program(ratios[0])?, program(ratios[1])?);
    let range = match ratios.map(pure) {
        [Some(own), Some(other)] => {
            let state = theory::JointState { own, other };
            let of = |state| {
                let speedups = theory::speedups(scheduler, machine, state);
                (speedups.min, speedups.max)
            };
            Some([of(state), of(state.reversed())])
        }
        _ => None,
    };
    Some(Prediction {
        speedup: predicted.speedup,
        range,
        fairness: predicted.fairness(),
        // Of the model in threads on a small CPU, here on the fastest.
        throughput: predicted.throughput / cpus.large?,
    })
}

/// The only phase of a pure program.
fn pure(ratio: Ratio) -> Option<theory::Phase> {
    match ratio {
        Ratio::PARALLEL => Some(theory::Phase::Parallel),
        Ratio::SERIAL => Some(theory::Phase::Serial),
        _ => None,
    }
}
