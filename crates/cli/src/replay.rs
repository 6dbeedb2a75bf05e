//! `symbiont replay`: a policy decides again over a recording.
//!
//! # Problem
//! A recording says what was measured and decided. One wants to see what a policy, or a model, makes
//! of it later and elsewhere.
//!
//! # Approach
//! The recording is a machine ([`symbiont_trace::Replay`]) under the usual controller. Each step is
//! compared with the recorded quantum: [`differences`] counts decisions that differ, [`prediction`]
//! compares predicted with measured slowdowns, [`recording`] collects what the file holds. Samples
//! were taken under the recorded placement, so no figure here says how fast another would have been.
//!
//! # Properties
//! - The recorded policy decides over its recording as it did (`replay_of_the_recorded_policy_agrees`).
//! - What is damaged is refused with file and line (`replay_refuses_what_is_no_recording`).

mod differences;
mod prediction;
mod recording;
mod text;

use anyhow::Context;
use serde::Serialize;
use symbiont_control::{ControlError, Controller, Summary, SummaryReport};
use symbiont_counters::catalogue::Catalogue;
use symbiont_machine::Machine;
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::{Entry, Policy, Settings, find};
use symbiont_trace::{Header, Reader, Replay, TraceError};

use crate::args;
use crate::knowledge::{self, Fitting};
use differences::{Difference, Differences};
use prediction::{Prediction, Predictions};
use recording::{Holdings, RecordingReport};

/// What no replay can show.
const LIMITS: &str = "All samples were taken under the recorded placement, so a replay does not say what \
                      another placement would have gained: it tests models, it does not rank policies.";

/// All that is reported.
#[derive(Debug, Serialize)]
struct ReplayReport {
    symbiont: &'static str,
    file: String,
    recording: RecordingReport,
    policy: &'static str,
    limits: &'static str,
    /// Where the programs ran in the recording, and what the policy decides.
    decided: SummaryReport,
    /// How its decisions differ from the recorded ones, by program.
    differences: Vec<Difference>,
    /// Predicted and measured slowdowns, by program; empty where there is nothing to compare.
    predictions: Vec<Prediction>,
}

/// Replays a recording and reports.
pub fn run(args: &args::Replay) -> anyhow::Result<()> {
    let reader = Reader::open(&args.file)?;
    let header = reader.header().clone();
    let name = args.policy.as_deref().unwrap_or(&header.policy);
    let entry = find(name)?;
    let fitting = || fitting(args, &header);
    let settings = args.options.settings(entry)?;
    let settings = knowledge::add(&args.knowledge, fitting, entry, settings)?;
    let report = replay(Replay::new(reader), entry, &settings, &args.file.display().to_string())?;
    if args.json {
        say!("{}", crate::out::json(&report)?);
    } else {
        say_all!("{}", text::text(&report));
    }
    Ok(())
}

/// The recorded machine, which models have to fit. Its catalogue is in the recording.
fn fitting(args: &args::Replay, header: &Header) -> anyhow::Result<Fitting> {
    let mut reader = Reader::open(&args.file)?;
    let counting = loop {
        match reader.next_quantum()? {
            None => break None,
            Some(quantum) if quantum.sample.counting.is_some() => break quantum.sample.counting,
            Some(_) => {}
        }
    };
    let catalogue = match counting {
        Some(counting) => Catalogue::parse(&counting.catalogue, &counting.text)
            .with_context(|| format!("{}: the catalogue in it", reader.name()))?,
        None if args.knowledge.model.is_empty() => {
            Catalogue::named("software").context("there is no catalogue of software events")??
        }
        None => anyhow::bail!("{}: it counts no events, which models predict from", reader.name()),
    };
    Ok(Fitting::recorded(&header.topology, header.processor.clone(), catalogue))
}

fn replay(
    machine: Replay,
    entry: &'static Entry,
    settings: &Settings,
    file: &str,
) -> anyhow::Result<ReplayReport> {
    let header = machine.header().clone();
    let policy: Box<dyn Policy> = (entry.make)(settings);
    let mut summary = Summary::new(&header.topology);
    let mut holdings = Holdings::new(&header);
    let mut differences = Differences::default();
    let mut predictions = Predictions::new(&header.topology);
    let mut controller = Controller::new(machine, policy, Planner::new(Bounds::none()));
    while !controller.machine().ended() {
        controller.step().map_err(|error| cannot(error, file))?;
        let (Some(step), Some(recorded)) = (controller.last(), controller.machine().recorded())
        else {
            break;
        };
        summary.add(&step.sample, &step.characterizations, &step.placement);
        holdings.add(recorded);
        differences.add(&step.sample, &recorded.placement, &step.placement);
        predictions.add(step);
    }
    let decided = summary.report();
    Ok(ReplayReport {
        symbiont: env!("CARGO_PKG_VERSION"),
        file: file.to_owned(),
        recording: holdings.report(&decided, controller.machine().truncated()),
        policy: entry.name,
        limits: LIMITS,
        differences: differences.report(),
        predictions: predictions.report(),
        decided,
    })
}

fn cannot(error: ControlError<TraceError>, file: &str) -> anyhow::Error {
    match error {
        ControlError::MissingSignal { policy, signal, why } => anyhow::anyhow!(
            "{file}: policy '{policy}' needs {signal}, which was not recorded ({why}); a recording \
             holds what the policy that ran needed"
        ),
        ControlError::Catalogue(why) => anyhow::anyhow!("{file}: the event catalogue in it: {why}"),
        error => error.into(),
    }
}
