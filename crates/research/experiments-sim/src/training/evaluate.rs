//! From runs to a model, and how good it is.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use symbiont_model::{Components, Holdout, Model, SmtMode, TrainedMode, Training};
use symbiont_policy::{PairCourse, PairSlowdowns};
use symbiont_topology::CoreKind;
use symbiont_training::{
    Observation, Profile, Together, TrainingSet, Validation, align, fit_throttling,
};

use super::gains::{CapturedGain, WORKLOADS, captured};
use super::options::TrainingOptions;
use super::plan::TrainingRun;
use super::watch::WatchedRun;
use symbiont_campaign::Error;

/// What a training gave.
#[derive(Debug)]
pub struct TrainingResult {
    /// The model, fitted on everything, with its cross-validated errors.
    pub model: Model,
    /// Mean slowdowns of pairs against running alone.
    pub slowdowns: PairSlowdowns,
    /// How good it is, by mode.
    pub modes: BTreeMap<SmtMode, Evaluation>,
}

/// How good the model of one mode is.
#[derive(Debug)]
pub struct Evaluation {
    /// The observations that it was fitted on.
    pub observations: Vec<Observation>,
    /// Quanta that were left out: a thread slept, or its run alone did not
    /// reach so far.
    pub left_out: (usize, usize),
    /// Errors on programs that were left out.
    pub programs: Validation,
    /// Errors on combinations that were left out.
    pub combinations: Validation,
    /// Errors on programs that were left out, of slowdowns against isolated runs that are predicted from
    /// isolated stacks: what the paper compares throttled stacks with (section 3.2).
    pub isolated: Validation,
    /// What pairing by it gains; of pairs only.
    pub captured: Vec<CapturedGain>,
    /// Mean throttled over isolated CPI.
    pub throttled: f64,
    /// By how much processes of no-operations slow each program down, in parts of its throttled
    /// speed; nothing where that cannot be known.
    pub nops: Vec<f64>,
}

/// Fits and validates. `made` names machine, core and catalogue. From when `stop` becomes true nothing more is fitted.
///
/// # Errors
/// When runs are missing, or no model can be fitted on them.
pub fn evaluate(
    runs: &BTreeMap<TrainingRun, WatchedRun>,
    options: &TrainingOptions,
    (made, components, training): ((String, CoreKind, String), Components, Training),
    stop: &AtomicBool,
) -> Result<TrainingResult, Error> {
    let TrainingOptions { size, weighting, .. } = options;
    let isolated = alone(runs, 1)?;
    let (mut fitted, mut modes) = (BTreeMap::new(), BTreeMap::new());
    for width in size.widths() {
        let Some(mode) = SmtMode::of(width) else { continue };
        let throttled = alone(runs, width)?;
        let (observations, left_out) = observe(runs, width, &throttled)?;
        let ratios: Vec<(symbiont_model::Shares, f64)> = ratios(runs, width, &isolated)?
            .into_iter()
            .map(|(_, stack, ratio)| (stack, ratio))
            .collect();
        let throttling = fit_throttling(&ratios).map_err(Error::evaluation)?;
        let mean = ratios.iter().map(|(_, ratio)| ratio).sum::<f64>() / ratios.len() as f64;
        let (from_isolated, _) = observe(runs, width, &isolated)?;
        let (fit, programs, combinations, isolated, captured) = {
            let set = TrainingSet::new(mode, &observations, *weighting)
                .map_err(Error::evaluation)?
                .until(stop);
            let validate = |holdout| set.cross_validate(holdout).map_err(Error::evaluation);
            let unthrottled = TrainingSet::new(mode, &from_isolated, *weighting)
                .map_err(Error::evaluation)?
                .until(stop);
            let pairs = width == 2;
            let workloads = if pairs { WORKLOADS } else { 0 };
            // All of them take long, and none needs another.
            std::thread::scope(|scope| {
                let programs = scope.spawn(|| validate(Holdout::Programs));
                let combinations = scope.spawn(|| validate(Holdout::Combinations));
                let isolated = scope.spawn(|| {
                    unthrottled.cross_validate(Holdout::Programs).map_err(Error::evaluation)
                });
                let captured = scope.spawn(|| captured(&set, workloads).map_err(Error::evaluation));
                let fit = set.fit().map_err(Error::evaluation)?;
                Ok::<_, Error>((
                    fit,
                    end(programs)?,
                    end(combinations)?,
                    end(isolated)?,
                    end(captured)?,
                ))
            })?
        };
        let scores = [(&programs, Holdout::Programs), (&combinations, Holdout::Combinations)]
            .into_iter()
            .flat_map(|(validation, holdout)| validation.scores(&components, holdout));
        let scores = scores.collect();
        fitted.insert(mode, TrainedMode { fit, throttling: Some(throttling), scores });
        modes.insert(
            mode,
            Evaluation {
                observations,
                left_out,
                programs,
                combinations,
                isolated,
                captured,
                throttled: mean,
                nops: nops(runs, width, &throttled)?,
            },
        );
    }
    let (machine, core, catalogue) = made;
    let slowdowns = slowdowns(runs, (&training.programs, size.quantum), &machine, &isolated)?;
    let model = Model { machine, core, catalogue, components, training, modes: fitted };
    Ok(TrainingResult { model, slowdowns, modes })
}

/// What a thread came to.
pub(super) fn end<T>(thread: ScopedJoinHandle<'_, Result<T, Error>>) -> Result<T, Error> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Each program alone, with the core set up for so many threads.
pub(super) fn alone(
    runs: &BTreeMap<TrainingRun, WatchedRun>,
    width: usize,
) -> Result<BTreeMap<&str, Profile>, Error> {
    let mut profiles = BTreeMap::new();
    for (run, ran) in runs {
        let TrainingRun::Alone { program, width: w } = run else { continue };
        if let (true, [quanta]) = (*w == width, ran.programs.as_slice()) {
            let profile =
                Profile::new(quanta).map_err(|why| Error::evaluation(format!("{run}: {why}")))?;
            profiles.insert(program.as_str(), profile);
        }
    }
    Ok(profiles)
}

pub(super) fn profile<'p>(
    profiles: &'p BTreeMap<&str, Profile>,
    program: &str,
) -> Result<&'p Profile, Error> {
    profiles
        .get(program)
        .ok_or_else(|| Error::evaluation(format!("there is no run of {program} alone")))
}

/// Quanta of groups aligned with the same instructions alone; how many were idle and
/// how many not covered.
pub(super) fn observe(
    runs: &BTreeMap<TrainingRun, WatchedRun>,
    width: usize,
    throttled: &BTreeMap<&str, Profile>,
) -> Result<(Vec<Observation>, (usize, usize)), Error> {
    let (mut observations, mut idle, mut uncovered) = (Vec::new(), 0, 0);
    for (run, ran) in runs {
        let TrainingRun::Together(programs) = run else { continue };
        if programs.len() != width || ran.programs.len() != width {
            continue;
        }
        let mut group = Vec::with_capacity(width);
        for (program, quanta) in programs.iter().zip(&ran.programs) {
            let alone = profile(throttled, program)?;
            group.push(Together { program, alone, start: 0.0, quanta });
        }
        let aligned = align(&group);
        observations.extend(aligned.observations);
        idle += aligned.idle;
        uncovered += aligned.uncovered;
    }
    Ok((observations, (idle, uncovered)))
}

/// Throttled stacks with throttled over isolated CPI of the same instructions, by program.
pub(super) fn ratios(
    runs: &BTreeMap<TrainingRun, WatchedRun>,
    width: usize,
    isolated: &BTreeMap<&str, Profile>,
) -> Result<Vec<(String, symbiont_model::Shares, f64)>, Error> {
    let mut ratios = Vec::new();
    for (run, ran) in runs {
        let TrainingRun::Alone { program, width: w } = run else { continue };
        let (true, [quanta]) = (*w == width, ran.programs.as_slice()) else { continue };
        let alone = profile(isolated, program)?;
        let mut at = 0.0;
        for quantum in quanta {
            let from = at;
            at += quantum.instructions;
            if let (Some(stack), Ok(alone)) = (&quantum.stack, alone.over(from, at)) {
                ratios.push((program.clone(), stack.shares(), stack.cpi() / alone.cpi()));
            }
        }
    }
    Ok(ratios)
}

/// What no-operations cost each program beyond the SMT mode.
fn nops(
    runs: &BTreeMap<TrainingRun, WatchedRun>,
    width: usize,
    throttled: &BTreeMap<&str, Profile>,
) -> Result<Vec<f64>, Error> {
    let mut costs = Vec::new();
    for (run, ran) in runs {
        let TrainingRun::Nops { program, width: w } = run else { continue };
        let (true, Some(quanta)) = (*w == width, ran.programs.first()) else { continue };
        let slowdown = mean_slowdown(quanta, profile(throttled, program)?);
        costs.extend(slowdown.map(|slowdown| slowdown - 1.0));
    }
    Ok(costs)
}

/// Mean slowdowns of pairs against isolated runs of the same instructions.
pub(super) fn slowdowns(
    runs: &BTreeMap<TrainingRun, WatchedRun>,
    (programs, quantum): (&[String], Duration),
    machine: &str,
    isolated: &BTreeMap<&str, Profile>,
) -> Result<PairSlowdowns, Error> {
    let place = |program: &String| programs.iter().position(|known| known == program);
    let mut table = vec![vec![f64::NAN; programs.len()]; programs.len()];
    let mut courses = vec![vec![Vec::new(); programs.len()]; programs.len()];
    for (run, ran) in runs {
        let (TrainingRun::Together(pair), [a, b]) = (run, ran.programs.as_slice()) else {
            continue;
        };
        let [one, other] = pair.as_slice() else { continue };
        for (victim, co_runner, quanta) in [(one, other, a), (other, one, b)] {
            let alone = profile(isolated, victim)?;
            let slowdown = mean_slowdown(quanta, alone)
                .ok_or_else(|| Error::evaluation(format!("{run}: {victim} was not measured")))?;
            let Some((row, column)) = place(victim).zip(place(co_runner)) else { continue };
            table[row][column] = slowdown;
            courses[row][column] = course(quanta, alone, slowdown);
        }
    }
    let slowdowns = PairSlowdowns::new(machine.to_owned(), programs.to_vec(), table)
        .map_err(Error::evaluation)?;
    let interval_ms = u32::try_from(quantum.as_millis()).unwrap_or(u32::MAX).max(1);
    slowdowns.over_time(PairCourse { interval_ms, slowdowns: courses }).map_err(Error::evaluation)
}

/// The slowdown in each quantum; the mean where a quantum was not measured.
fn course(quanta: &[symbiont_training::Quantum], alone: &Profile, mean: f64) -> Vec<f64> {
    let mut at = 0.0;
    let of = |quantum: &symbiont_training::Quantum| {
        let from = at;
        at += quantum.instructions;
        let alone = alone.over(from, at).ok();
        let both = quantum.stack.as_ref().zip(alone.as_ref());
        both.map_or(mean, |(together, alone)| together.cpi() / alone.cpi())
    };
    quanta.iter().map(of).collect()
}

/// Cycles with co-runners over cycles alone of the same instructions.
pub(super) fn mean_slowdown(quanta: &[symbiont_training::Quantum], alone: &Profile) -> Option<f64> {
    let (mut at, mut together, mut apart) = (0.0, 0.0, 0.0);
    for quantum in quanta {
        let from = at;
        at += quantum.instructions;
        if let (Some(stack), Ok(alone)) = (&quantum.stack, alone.over(from, at)) {
            together += stack.cpi() * quantum.instructions;
            apart += alone.cpi() * quantum.instructions;
        }
    }
    (apart > 0.0).then(|| together / apart)
}
