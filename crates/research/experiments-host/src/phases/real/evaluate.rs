//! From times to speedups.

use serde::{Deserialize, Serialize};
use symbiont_synth::Ratio;

use crate::phases::plan::{BASELINE, Grouping, Part, TRIED};
use crate::phases::prediction::{Cpus, prediction};
use crate::phases::record::PhasesRecord;
use symbiont_campaign::Error;
use symbiont_report::metrics;
use symbiont_report::stats::{self, Estimate};
use symbiont_report::theory::Scheduler;

/// The figures of the real programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Real {
    /// Time of the serial program alone, in seconds.
    pub alone_s: Estimate,
    /// Side by side, in each grouping.
    pub cells: Vec<RealCell>,
}

/// The serial program co-running with the parallel one in one grouping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RealCell {
    /// In whose sessions.
    pub grouping: Grouping,
    /// Under [`BASELINE`].
    pub baseline: Outcome,
    /// Under [`TRIED`].
    pub tried: Outcome,
}

/// The serial program co-running with the parallel one under one policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its time, in seconds.
    pub time_s: Estimate,
    /// Its speedup (eq. 5).
    pub speedup: Estimate,
    /// What the model says of it; absent on machines with one CPU.
    pub predicted: Option<f64>,
    /// Jitter of its times (eq. 6); absent for a single run.
    pub jitter: Option<Estimate>,
}

impl RealCell {
    /// The outcomes with their policies, in the order of tables.
    #[must_use]
    pub fn outcomes(&self) -> [(&'static str, &Outcome); 2] {
        [(BASELINE, &self.baseline), (TRIED, &self.tried)]
    }
}

/// The figures of the real programs, if any of them ran. `cpus`: the n and the
/// a of the paper, `seed` that of the bootstraps.
///
/// # Errors
/// When a run is missing: alone, or in a grouping under each policy.
pub fn evaluate(records: &[PhasesRecord], cpus: Cpus, seed: u64) -> Result<Option<Real>, Error> {
    let times = |wanted: Option<(&str, Grouping)>| -> Vec<f64> {
        let real = records.iter().filter(|record| record.run.part == Part::Real);
        real.filter(|record| record.run.what.managed() == wanted)
            .filter_map(|record| Some(record.real.as_ref()?.seconds))
            .collect()
    };
    if records.iter().all(|record| record.run.part != Part::Real) {
        return Ok(None);
    }
    let alone = times(None);
    let outcome =
        |policy: &str, scheduler: Scheduler, grouping: Grouping| -> Result<Outcome, Error> {
            let together = times(Some((policy, grouping)));
            let predicted = prediction(scheduler, cpus, [Ratio::PARALLEL, Ratio::SERIAL]);
            let jitter = |times: &[f64]| metrics::jitter(times).unwrap_or(f64::NAN);
            Ok(Outcome {
                time_s: stats::mean_estimate(&together)?,
                speedup: stats::ratio_of_means(&alone, &together)?,
                predicted: predicted.map(|prediction| prediction.speedup[1]),
                jitter: metrics::jitter(&together)
                    .map(|_| stats::bootstrap(&together, jitter, seed).map_err(Error::from))
                    .transpose()?,
            })
        };
    let cells = Grouping::ALL.into_iter().map(|grouping| {
        Ok(RealCell {
            grouping,
            baseline: outcome(BASELINE, Scheduler::Baseline, grouping)?,
            tried: outcome(TRIED, Scheduler::Proposed, grouping)?,
        })
    });
    Ok(Some(Real {
        alone_s: stats::mean_estimate(&alone)?,
        cells: cells.collect::<Result<_, Error>>()?,
    }))
}
