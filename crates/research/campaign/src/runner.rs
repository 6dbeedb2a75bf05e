//! The loop of every experiment.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::store::{Store, key};
use super::{Experiment, FinishedRun, FinishedRunOf};
use crate::{Error, Progress};

/// How often is looked whether the experiment is to stop.
const SLICE: Duration = Duration::from_millis(200);

/// Carries out all runs that are not kept in `folder`, and gives all in the order in which the experiment
/// asked for them. `workers`: runs at a time; 1 where runs disturb each other.
///
/// # Errors
/// When a run fails, the folder cannot be used, or the user stops it; finished runs are kept in each case.
pub fn carry_out<E: Experiment>(
    experiment: &E,
    folder: &Path,
    workers: usize,
    progress: &mut dyn Progress,
) -> Result<Vec<FinishedRunOf<E>>, Error> {
    let mut store = Store::open(folder, &experiment.name())?;
    let mut done: Vec<FinishedRunOf<E>> = Vec::new();
    let mut all_kept = true;
    loop {
        let runs = experiment.next(&done);
        if runs.is_empty() {
            if all_kept {
                progress.begin(done.len(), Some(done.len()), Duration::ZERO);
            }
            return Ok(done);
        }
        let keys = runs.iter().map(|run| key(experiment, run)).collect::<Result<Vec<_>, _>>()?;
        let mut records: Vec<Option<E::Record>> =
            keys.iter().map(|key| store.get::<E>(key)).collect();
        let left: Vec<usize> = records
            .iter()
            .enumerate()
            .filter(|(_, kept)| kept.is_none())
            .map(|(at, _)| at)
            .collect();
        if !left.is_empty() {
            all_kept = false;
            let cost: Duration = left.iter().map(|&at| experiment.cost(&runs[at])).sum();
            let known = done.len() + runs.len();
            progress.begin(known, Some(known - left.len()), cost / workers.max(1) as u32);
            round(experiment, &runs, &left, workers, progress, &mut |at, record| {
                let key = keys.get(at).cloned().unwrap_or_default();
                records[at] = Some(store.put::<E>(key, &runs[at], &record)?);
                Ok(())
            })?;
        }
        let finished = runs.into_iter().zip(records);
        done.extend(
            finished.filter_map(|(run, record)| Some(FinishedRun { run, record: record? })),
        );
    }
}

/// What a worker reports of the run of this number.
enum Message<Record> {
    Begins(usize),
    TriedAgain(usize, Error),
    Ended(usize, Result<Record, Error>),
}

/// Carries out some of the runs by several workers; `keep` gets each record, in no order.
fn round<E: Experiment>(
    experiment: &E,
    runs: &[E::Run],
    left: &[usize],
    workers: usize,
    progress: &mut dyn Progress,
    keep: &mut dyn FnMut(usize, E::Record) -> Result<(), Error>,
) -> Result<(), Error> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let work = |sender: mpsc::Sender<Message<E::Record>>| {
        // The receiver outlives all workers.
        let report = |message| sender.send(message).unwrap_or_default();
        while !stop.load(Ordering::Relaxed) {
            let Some(&at) = left.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            let Some(run) = runs.get(at) else { break };
            report(Message::Begins(at));
            let again = |error| report(Message::TriedAgain(at, error));
            report(Message::Ended(at, attempt(experiment, run, &stop, &again)));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..workers.clamp(1, left.len().max(1)) {
            let sender = sender.clone();
            scope.spawn(|| work(sender));
        }
        drop(sender);
        let mut outcome = Ok(());
        loop {
            if outcome.is_ok() && progress.cancelled() {
                outcome = Err(Error::Cancelled);
            }
            stop.store(outcome.is_err(), Ordering::Relaxed);
            match receiver.recv_timeout(SLICE) {
                Ok(Message::Begins(at)) => progress.running(&runs[at].to_string()),
                Ok(Message::TriedAgain(at, error)) => {
                    progress.note(&format!("{}: trying again, as {error}", runs[at]));
                }
                Ok(Message::Ended(at, Ok(record))) => {
                    outcome = outcome.and(keep(at, record));
                    progress.done();
                }
                Ok(Message::Ended(_, Err(error))) => outcome = outcome.and(Err(error)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return outcome,
            }
        }
    })
}

/// May the next attempt succeed? Not where the user stopped it, nor where it was given more and more time.
fn may_pass(error: &Error) -> bool {
    !matches!(error, Error::Cancelled | Error::Busy { .. })
}

/// Carries out a run, and again if it fails, as often as the experiment says.
fn attempt<E: Experiment>(
    experiment: &E,
    run: &E::Run,
    stop: &AtomicBool,
    again: &dyn Fn(Error),
) -> Result<E::Record, Error> {
    let attempts = experiment.attempts();
    for _ in 1..attempts {
        match experiment.carry_out(run, stop) {
            Err(error) if may_pass(&error) && !stop.load(Ordering::Relaxed) => again(error),
            other => return other,
        }
    }
    match experiment.carry_out(run, stop) {
        Err(error) if attempts > 1 && may_pass(&error) => {
            Err(Error::Hopeless { run: run.to_string(), attempts, source: Box::new(error) })
        }
        other => other,
    }
}
