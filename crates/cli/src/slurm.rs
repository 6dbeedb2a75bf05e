//! `symbiont slurm`: which jobs of a cluster start together.

mod cluster;
mod command;
mod daemons;
mod decisions;
mod guard;
mod metrics;
mod nodes;
mod predicting;
mod released;
mod releaser;
mod stacks;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use symbiont_jobs::{Rules, Store};
use symbiont_model::{Model, ModelError, Problem};

use self::cluster::{Cluster, Commands};
use self::daemons::Daemons;
use self::decisions::{Decision, Decisions};
use self::guard::Guard;
use self::metrics::Metrics;
use self::nodes::Poller;
use self::released::Journal;
use self::releaser::{ReleaseOptions, Releaser};
use crate::args::{AskNodes, Slurm, SlurmCommand, SlurmFiles, SlurmWhy};
use crate::identity::default_store;
use crate::signals::heeded;

/// How often one that looks once looks whether jobs have started.
const SETTLES_EVERY: Duration = Duration::from_secs(1);
/// How long a store may be in use by a guard.
const TAKES_TURNS: Duration = Duration::from_secs(6);
/// How often the daemons of nodes are asked.
const ASKED_EVERY: Duration = Duration::from_secs(30);

/// Releases jobs, or says why some were.
pub fn slurm(args: &Slurm) -> anyhow::Result<()> {
    let (store, decisions) = files(&args.files)?;
    match &args.command {
        Some(SlurmCommand::Why(args)) => why(args, &Decisions::new(&decisions)),
        None if args.guard => guard::guard(&store),
        None => release(args, &store, &Decisions::new(&decisions)),
    }
}

fn files(args: &SlurmFiles) -> anyhow::Result<(PathBuf, PathBuf)> {
    let store = args.store.clone().map_or_else(default_store, Ok)?;
    let next_to_it = || store.with_file_name("slurm.jsonl");
    let decisions = args.decisions.clone().unwrap_or_else(next_to_it);
    Ok((store, decisions))
}

fn release(args: &Slurm, store_path: &Path, decisions: &Decisions) -> anyhow::Result<()> {
    let ends = Arc::new(AtomicBool::new(false));
    for signal in heeded([SIGINT, SIGTERM]) {
        signal_hook::flag::register(signal, Arc::clone(&ends))?;
    }
    let mut commands = Commands::until(Arc::clone(&ends));
    if let Some(wanted) = &args.partition {
        let there = commands.partitions()?;
        anyhow::ensure!(
            there.contains(wanted),
            "there is no partition '{wanted}'; there are {}",
            there.join(", ")
        );
    }
    if let Some(wanted) = &args.qos {
        if let Some(line) = check_qos(wanted, &commands.qos()?)? {
            note!("symbiont: {line}");
        }
    }
    let options = ReleaseOptions {
        partition: args.partition.clone(),
        qos: args.qos.clone(),
        rules: Rules {
            most_wait_s: args.max_wait.as_secs_f64(),
            window: args.window as usize,
            priority_spread: args.spread,
            ..Rules::default()
        },
        ahead: args.ahead.into(),
        first_come: args.first_come,
        dry_run: args.dry_run,
    };
    // Two that learn from one run would count it twice, and undo what the other has just done.
    let _alone = if args.dry_run { None } else { Some(lock(store_path, TAKES_TURNS)?) };
    let _guard = if args.dry_run { None } else { Some(Guard::of(store_path)?) };
    let (store, journal) = (Store::new(store_path), Journal::next_to(store_path));
    let (known, released) = (store.read()?, journal.read()?);
    let mut releaser = Releaser::new(commands, options, store, known, (journal, released));
    let AskNodes { model: path, ask_nodes } = &args.ask;
    if *ask_nodes || path.is_some() {
        let model = path.as_deref().map(read_model).transpose()?;
        for (path, doubt) in path.iter().zip(model.as_ref().and_then(doubt)) {
            note!("symbiont: {}: {doubt}", path.display());
        }
        let poller = Poller::start(args.node_port, ASKED_EVERY)?;
        releaser = releaser.with_daemons(Daemons::new(model, poller));
    }
    let is_once = args.once || args.dry_run;
    let mut said = Said::default();
    while !ends.load(Ordering::Relaxed) {
        let begin = Instant::now();
        let result = releaser.step(now_s());
        releaser.metrics.took_s = begin.elapsed().as_secs_f64();
        match result {
            Ok(made) => {
                said.ended("Slurm", "Slurm answers again");
                said.decisions(&made, decisions, args.dry_run);
            }
            Err(_) if ends.load(Ordering::Relaxed) => break,
            Err(error) if is_once => {
                said.decisions(&releaser.finish(now_s()), decisions, false);
                return Err(error.into());
            }
            Err(error) => {
                releaser.metrics.errors += 1;
                let again = format!("{error}; asks again every {} s", args.interval.as_secs_f64());
                said.trouble("Slurm", again);
            }
        }
        releaser.troubles.drain(..).for_each(|trouble| note!("symbiont: {trouble}"));
        said.metrics(args.metrics.as_deref(), &releaser.metrics);
        if is_once {
            break;
        }
        pause(args.interval, &ends);
    }
    // One that looks once sees to it that what it released starts, or is undone.
    while args.once && !args.dry_run && !releaser.on_their_way().is_empty() {
        pause(SETTLES_EVERY, &ends);
        match releaser.settle(now_s()) {
            Ok(made) => said.decisions(&made, decisions, false),
            Err(_) => break,
        }
    }
    said.decisions(&releaser.finish(now_s()), decisions, false);
    releaser.troubles.drain(..).for_each(|trouble| note!("symbiont: {trouble}"));
    Ok(())
}

/// What went wrong, each once until it is over: neither a full disk nor a Slurm that is gone ends the releaser.
#[derive(Debug, Default)]
struct Said(BTreeMap<&'static str, String>);

impl Said {
    fn trouble(&mut self, of: &'static str, line: String) {
        if self.0.get(of) != Some(&line) {
            note!("symbiont: {line}");
        }
        self.0.insert(of, line);
    }

    fn ended(&mut self, of: &'static str, line: &str) {
        if self.0.remove(of).is_some() {
            note!("symbiont: {line}");
        }
    }

    fn decisions(&mut self, made: &[Decision], file: &Decisions, dry_run: bool) {
        for decision in made {
            say!("{}", decision.text());
            match if dry_run { Ok(()) } else { file.note(decision) } {
                Ok(()) => self.ended("decisions", "decisions are noted again"),
                Err(error) => self.trouble("decisions", format!("{error:#}")),
            }
        }
    }

    fn metrics(&mut self, path: Option<&Path>, metrics: &Metrics) {
        let Some(path) = path else { return };
        match metrics.write(path) {
            Ok(()) => self.ended("metrics", "metrics are written again"),
            Err(error) => self.trouble("metrics", format!("{error:#}")),
        }
    }
}

/// Keeps other releasers off a store, until it is dropped; waits so long for one that ends.
fn lock(store: &Path, wait: Duration) -> anyhow::Result<File> {
    let path = store.with_extension("releaser");
    let trouble = || format!("cannot lock {}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(trouble)?;
    }
    let file = File::options().write(true).create(true).truncate(false).open(&path);
    let file = file.with_context(trouble)?;
    let begin = Instant::now();
    loop {
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) if begin.elapsed() < wait => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => anyhow::bail!(
                "another symbiont slurm uses the store {}; with --store it takes one of its own",
                store.display()
            ),
            Err(error) => return Err(error).with_context(trouble),
        }
    }
}

/// Refuses a QOS that Slurm does not know; a line where it cannot say.
fn check_qos(wanted: &str, there: &[String]) -> anyhow::Result<Option<String>> {
    if there.is_empty() {
        let why = "Slurm knows none, as without an accounting database";
        return Ok(Some(format!("it cannot be checked that there is a QOS '{wanted}': {why}")));
    }
    let known = there.iter().any(|name| name == wanted);
    anyhow::ensure!(known, "there is no QOS '{wanted}'; there are {}", there.join(", "));
    Ok(None)
}

/// The model of the nodes' processor, which need not be this machine's.
fn read_model(path: &Path) -> anyhow::Result<Model> {
    let wrong = |problem| ModelError { path: path.to_owned(), problem };
    let text =
        symbiont_safe_open::read_to_string(path).map_err(|error| wrong(Problem::Io(error)))?;
    Ok(Model::parse(&text).map_err(wrong)?)
}

/// Why a model may say little of the nodes' cores; none of one that was trained on hardware.
fn doubt(model: &Model) -> Option<String> {
    model.is_simulated().then(|| {
        format!(
            "trained on {}; simulated pair speeds do not choose pairs on real hardware (symbiont machines NAME)",
            model.machine
        )
    })
}

/// Sleeps, in pieces, so that a signal ends it soon.
fn pause(time: Duration, ends: &AtomicBool) {
    let begin = Instant::now();
    while !ends.load(Ordering::Relaxed) {
        let left = time.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn why(args: &SlurmWhy, decisions: &Decisions) -> anyhow::Result<()> {
    let made = decisions.of(args.job)?;
    if args.json {
        say!("{}", serde_json::to_string_pretty(&made)?);
        return Ok(());
    }
    made.iter().for_each(|decision| say!("{}", decision.text()));
    if !made.is_empty() {
        return Ok(());
    }
    let jobs = Commands::default().jobs()?;
    say!("{}", waits(args.job, &jobs, now_s())?);
    Ok(())
}

/// Why a job that was never released does not run.
fn waits(id: u64, jobs: &[symbiont_jobs::slurm::QueuedJob], now_s: f64) -> anyhow::Result<String> {
    let Some(job) = jobs.iter().find(|job| job.id == id) else {
        anyhow::bail!("job {id} is not in the queue, and no decision on it is noted");
    };
    if !job.waits_for_us() {
        return Ok(format!(
            "job {id} does not wait for Symbiont; Slurm's reason is {}",
            job.reason
        ));
    }
    let waits = |other: &&symbiont_jobs::slurm::QueuedJob| {
        other.waits_for_us() && other.partition == job.partition
    };
    let before = |other: &&symbiont_jobs::slurm::QueuedJob| other.priority > job.priority;
    let ahead = jobs.iter().filter(waits).filter(before).count();
    let latest = job.start_s.map_or_else(String::new, |start| {
        format!("; Slurm starts it by itself {:.0} s from now", (start - now_s).max(0.0))
    });
    Ok(format!(
        "job {id} waits for a node with room where it suits, for {:.0} s so far; {ahead} jobs of its \
         partition have a higher priority{latest}",
        now_s - job.submitted_s
    ))
}
