//! What is kept of a finished run.

use serde::{Deserialize, Serialize};
use symbiont_synth::Report;

use super::plan::PhasesRun;
use crate::harness::ManagerFigures;

/// What the serial program reported of its work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Time that the work took, in seconds.
    pub seconds: f64,
    /// The last digest, in hexadecimal digits.
    pub digest: String,
}

/// One finished run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhasesRecord {
    /// The run.
    pub run: PhasesRun,
    /// Seconds that it took, with everything around it.
    pub wall_s: f64,
    /// What the programs reported, in the order of the run.
    pub programs: Vec<Report>,
    /// What the serial one of the real programs reported, in their part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real: Option<Timed>,
    /// What the manager reported; absent for runs alone.
    pub managed: Option<ManagerFigures>,
}

/// All synthetic runs as a CSV table: a line for each program of each run.
#[must_use]
pub fn csv(records: &[PhasesRecord]) -> String {
    let head = "run,part,round,policy,grouping,ratio,co_runner,seed,elapsed_s,iterations_per_s,\
                serial_per_s,parallel_per_s,progress_per_s,cpu_s,sleeps,preemptions\n";
    let mut text = head.to_owned();
    for record in records {
        let id = record.run.id();
        let (policy, grouping) =
            record.run.what.managed().map_or(("", ""), |(policy, g)| (policy, g.id()));
        for (slot, program) in record.programs.iter().enumerate() {
            let co_runner = record
                .programs
                .iter()
                .enumerate()
                .find(|(other, _)| *other != slot)
                .map_or(String::new(), |(_, other)| other.ratio.to_string());
            let optional = |value: Option<u64>| value.map_or(String::new(), |v| v.to_string());
            let cells = [
                id.clone(),
                record.run.part.id().to_owned(),
                record.run.round.to_string(),
                policy.to_owned(),
                grouping.to_owned(),
                program.ratio.to_string(),
                co_runner,
                program.seed.to_string(),
                program.elapsed_s.to_string(),
                program.iterations_per_s.to_string(),
                program.serial.iterations_per_s.to_string(),
                program.parallel.iterations_per_s.to_string(),
                program.progress_per_s().to_string(),
                program.cpu_s.map_or(String::new(), |s| s.to_string()),
                optional(program.voluntary_switches),
                optional(program.involuntary_switches),
            ];
            text += &cells.join(",");
            text.push('\n');
        }
    }
    text
}
