//! `symbiont slurm`: releases jobs of a cluster until it is ended, or says why some were released.

mod guard;
mod log;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use symbiont_jobs::{Rules, Store};
use symbiont_model::{Model, ModelError, Problem};
use symbiont_slurm::{
    Cluster, Commands, DecisionLog, Journal, NodeDaemons, NodePoller, ReleaseOptions, Releaser,
    StoreLock, check_partition, check_qos, explain_wait, model_doubt,
};

use self::guard::Guard;
use self::log::Log;
use crate::args::{AskNodes, Slurm, SlurmCommand, SlurmFiles, SlurmWhy};
use crate::signals::heeded;
use crate::state_files::default_store;

/// How often released jobs are checked for their start, once the queue is no longer looked at.
const SETTLES_EVERY: Duration = Duration::from_secs(1);
/// How long a store may be in use by the guard of an earlier releaser.
const TAKES_TURNS: Duration = Duration::from_secs(6);
/// How long each command of Slurm is waited for where a user does so: one that is tried again by hand, if at all.
const WAITED_FOR: Duration = Duration::from_secs(20);
/// How often the daemons of nodes are asked.
const ASKED_EVERY: Duration = Duration::from_secs(30);

/// Releases jobs, or says why some were.
pub fn slurm(args: &Slurm) -> anyhow::Result<()> {
    let (store, decisions) = files(&args.files)?;
    match &args.command {
        Some(SlurmCommand::Why(args)) => why(args, &DecisionLog::new(&decisions)),
        None if args.guard => guard::guard(&store),
        None => release(args, &store, DecisionLog::new(&decisions)),
    }
}

fn files(args: &SlurmFiles) -> anyhow::Result<(PathBuf, PathBuf)> {
    let store = args.store.clone().map_or_else(default_store, Ok)?;
    let next_to_it = || store.with_file_name("slurm.jsonl");
    let decisions = args.decisions.clone().unwrap_or_else(next_to_it);
    Ok((store, decisions))
}

fn release(args: &Slurm, store: &Path, decisions: DecisionLog) -> anyhow::Result<()> {
    let ends = Arc::new(AtomicBool::new(false));
    for signal in heeded([SIGINT, SIGTERM]) {
        signal_hook::flag::register(signal, Arc::clone(&ends))?;
    }
    for file in args.metrics.as_deref().into_iter().chain([decisions.path()]) {
        let what = || format!("cannot write {}", file.display());
        symbiont_safe_open::output::check(file).with_context(what)?;
    }
    let mut commands = Commands::until(Arc::clone(&ends));
    if args.once || args.dry_run {
        commands = commands.named(WAITED_FOR, say_slow);
    }
    check_names(args, &mut commands)?;
    let _lock = if args.dry_run { None } else { Some(StoreLock::of(store, TAKES_TURNS)?) };
    let _guard = if args.dry_run { None } else { Some(Guard::of(store)?) };
    let mut releaser = releaser(args, store, commands)?;
    let mut log = Log::new(decisions, args.metrics.clone(), args.dry_run);
    let looked = look(args, &mut releaser, &mut log, &ends);
    log.decisions(&releaser.finish(now_s()));
    log.troubles(&mut releaser);
    looked
}

/// Slurm's commands try again by themselves, and are silent meanwhile.
fn say_slow(command: &str, limit: Duration) {
    note!(
        "symbiont: waits for {command}, which has not answered yet; {} s at most",
        limit.as_secs()
    );
}

/// Refuses a partition or a QOS that Slurm does not know.
fn check_names(args: &Slurm, commands: &mut Commands) -> anyhow::Result<()> {
    if let Some(name) = &args.partition {
        check_partition(name, &commands.partitions()?)?;
    }
    if let Some(name) = &args.qos {
        if let Some(line) = check_qos(name, &commands.qos()?)? {
            note!("symbiont: {line}");
        }
    }
    Ok(())
}

fn releaser(
    args: &Slurm,
    store_path: &Path,
    commands: Commands,
) -> anyhow::Result<Releaser<Commands>> {
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
    let (store, journal) = (Store::new(store_path), Journal::next_to(store_path));
    let (known, assignments) = (store.read()?, journal.read()?);
    let releaser = Releaser::new(commands, options, store, known, (journal, assignments));
    let AskNodes { model: path, ask_nodes } = &args.ask;
    if !*ask_nodes && path.is_none() {
        return Ok(releaser);
    }
    let model = path.as_deref().map(read_model).transpose()?;
    for (path, doubt) in path.iter().zip(model.as_ref().and_then(model_doubt)) {
        note!("symbiont: {}: {doubt}", path.display());
    }
    let poller = NodePoller::start(args.node_port, ASKED_EVERY)?;
    Ok(releaser.with_daemons(NodeDaemons::new(model, poller)))
}

/// Looks at the queue until it is to end; once, if that is asked for: then it waits until what it released has started
/// or is undone.
fn look(
    args: &Slurm,
    releaser: &mut Releaser<impl Cluster>,
    log: &mut Log,
    ends: &AtomicBool,
) -> anyhow::Result<()> {
    let is_once = args.once || args.dry_run;
    while !ends.load(Ordering::Relaxed) {
        let begin = Instant::now();
        let result = releaser.step(now_s());
        releaser.metrics.took_s = begin.elapsed().as_secs_f64();
        match result {
            Ok(made) => log.answer(&made),
            Err(_) if ends.load(Ordering::Relaxed) => break,
            Err(error) if is_once => return Err(error.into()),
            Err(error) => {
                releaser.metrics.errors += 1;
                log.no_answer(&error, args.interval);
            }
        }
        log.troubles(releaser);
        log.metrics(&releaser.metrics);
        if is_once {
            break;
        }
        pause(args.interval, ends);
    }
    while args.once && !args.dry_run && !releaser.on_their_way().is_empty() {
        pause(SETTLES_EVERY, ends);
        match releaser.settle(now_s()) {
            Ok(made) => log.decisions(&made),
            Err(_) => break,
        }
    }
    Ok(())
}

/// The model of the nodes' processor, which need not be this machine's.
fn read_model(path: &Path) -> anyhow::Result<Model> {
    let wrong = |problem| ModelError { path: path.to_owned(), problem };
    let text =
        symbiont_safe_open::read_to_string(path).map_err(|error| wrong(Problem::Io(error)))?;
    Ok(Model::parse(&text).map_err(wrong)?)
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

fn why(args: &SlurmWhy, decisions: &DecisionLog) -> anyhow::Result<()> {
    let made = decisions.of(args.job)?;
    if args.json {
        say!("{}", crate::out::json(&made)?);
        return Ok(());
    }
    made.iter().for_each(|decision| say!("{}", decision.text()));
    if !made.is_empty() {
        return Ok(());
    }
    let queue = Commands::default().named(WAITED_FOR, say_slow).jobs()?;
    say!("{}", explain_wait(args.job, &queue, now_s())?);
    Ok(())
}
