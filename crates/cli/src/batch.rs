//! `symbiont batch`: many commands on this machine, a few at a time, the best partners together.

mod bar;
mod bells;
mod cores;
mod dry_run;
mod execution;
mod halt;
mod job_file;
mod job_log;
mod keeper;
mod line;
mod progress;
mod record;
mod resume;
mod room;
mod runner;
mod schedule;
mod summary;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;
pub use halt::Halt;
pub use keeper::keep;
use symbiont_jobs::{Identities, Identity, Store, digest_of_text, work};
use symbiont_topology::{HostTopology, counted};

use self::bar::{Screen, Wanted};
use self::bells::Bells;
use self::cores::Cores;
use self::execution::{Execution, Rules, State};
use self::job_log::JobLog;
use self::line::Line;
use self::progress::Progress;
use self::resume::{Assignment, Earlier, assign};
use self::runner::{Runner, Surroundings};
use self::schedule::{Schedule, Waiting};
use self::template::Template;
use crate::args::Batch;
use crate::client::{self, sockets};
use crate::knowledge::{UNKNOWN, processor};
use crate::state_files::default_store;

/// Where is kept what is known of programs. A folder is made for the usual place only: one that is missing on the
/// command line was rather mistyped.
fn store(args: &Batch) -> anyhow::Result<PathBuf> {
    let Some(file) = &args.store else { return default_store() };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(missing) = folder.filter(|folder| !folder.is_dir()) {
        anyhow::bail!("--store {}: there is no folder {}", file.display(), missing.display());
    }
    match symbiont_safe_open::open(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            anyhow::bail!("--store {}: {error}", file.display());
        }
        _ => {}
    }
    Ok(file.clone())
}

/// Runs the jobs of a file.
pub fn batch(args: &Batch) -> anyhow::Result<()> {
    let template =
        (!args.template.is_empty()).then(|| Template::new(&args.template)).transpose()?;
    let lines = job_file::read(args.file.as_deref(), template.as_ref())?;
    if lines.is_empty() {
        note!("symbiont: nothing is on standard input, and nothing is run");
        return Ok(());
    }
    let noted = args.progress.clone().or_else(|| default_progress(args.file.as_deref()?));
    anyhow::ensure!(
        !args.resume || noted.is_some(),
        "--resume takes --progress FILE where the jobs are not those of a file"
    );
    let store = Store::new(&store(args)?);
    let known = store.read().unwrap_or_else(|error| {
        note!("symbiont: {error}");
        Default::default()
    });
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let slots = args.jobs.slots(cpus);
    let processor = processor().unwrap_or_else(|| UNKNOWN.to_owned());
    // Where the topology cannot be read, no two jobs are taken to share a core.
    let width = HostTopology::read().map_or(1, |host| host.smt_width());
    let schedule = Schedule::new(args.order, slots, cpus as f64, known).on_cores(&processor, width);
    let jobs = jobs(lines, &std::env::current_dir().unwrap_or_default());
    let name = |job: &Job| (job.identity.key.clone(), job.identity.name.clone());
    let schedule = schedule.named(jobs.values().map(name).collect());
    let digests = || jobs.values().map(|job| (job.line.number, job.digest.as_str()));
    if args.dry_run {
        let noted = noted.filter(|_| args.resume);
        let records = noted.as_deref().map_or_else(|| Ok(Vec::new()), progress::records)?;
        let done = assign(digests(), &resume::well(&records), &[]).done;
        say_all!("{}", dry_run::text(&schedule, &jobs, waiting(&jobs, &done)));
        return Ok(());
    }
    let bells = Bells::new().context("cannot take over signals")?;
    let mut progress = match &noted {
        Some(path) => Progress::open(path)?,
        None => Progress::in_memory().context("cannot note progress")?,
    };
    let earlier = earlier(&mut progress, args.resume)?;
    let running: Vec<&str> = earlier.running.iter().map(|one| one.begun.job.as_str()).collect();
    let assignment = assign(digests(), &earlier.well, &running);
    let surroundings = Surroundings::new(args, earlier.names)?;
    let mut left = assignment.done.clone();
    left.extend(assignment.running.iter().map(|(number, _)| *number));
    let waiting = waiting(&jobs, &left);
    let log = args.joblog.as_deref().map(|path| JobLog::open(path, args.resume)).transpose()?;
    let rules = Rules { slots, retries: args.retries, halt: args.halt };
    let cores = Cores::new(sockets(&args.state)?, processor);
    let runner = Runner::new(bells);
    let state = State { store, schedule, surroundings, runner, progress, cores };
    let screen = Screen::new(Wanted {
        bar: args.bar,
        is_kept: args.output.is_some(),
        quiet: args.quiet,
        verbose: args.verbose,
        color: args.color,
    });
    if args.verbose {
        let daemon = client::running(&args.state)?;
        let by =
            daemon.map(|socket| format!("symbiontd manages the jobs, at {}", socket.display()));
        screen.say(&format!(
            "symbiont: {}; {slots} at a time",
            by.as_deref().unwrap_or("no daemon runs here: nothing places the jobs")
        ));
    }
    let mut execution = Execution::new(rules, jobs, state, log, screen, assignment.done.len());
    join(&mut execution, assignment, earlier.running);
    let summary = execution.run(waiting)?;
    if !args.quiet || summary.exit_code() != 0 {
        note!("symbiont: {}", summary.text());
    }
    if args.json {
        say!("{}", crate::out::json(&summary)?);
    }
    std::process::exit(summary.exit_code());
}

fn default_progress(file: &Path) -> Option<PathBuf> {
    // Next to a pipe is no place for it, nor in /dev, whatever /dev/stdin is.
    let is_elsewhere = ["/dev", "/proc"].iter().any(|folder| file.starts_with(folder));
    if is_elsewhere || !std::fs::metadata(file).is_ok_and(|data| data.is_file()) {
        return None;
    }
    let mut name = (file != Path::new("-")).then(|| file.as_os_str().to_owned())?;
    name.push(".progress");
    Some(PathBuf::from(name))
}

/// The commands as jobs that run in this folder.
fn jobs(lines: Vec<Line>, here: &Path) -> BTreeMap<usize, Job> {
    let user = rustix::process::geteuid().as_raw();
    let mut identities = Identities::new(&std::env::var("PATH").unwrap_or_default());
    let job = |line: Line| {
        let identity = identities.of(user, &line.text());
        let text = format!("{}\0{}", here.display(), line.unique_text());
        let (work, digest) = (work(&text), digest_of_text(&text));
        (line.number, Job { line, identity, work, digest })
    };
    lines.into_iter().map(job).collect()
}

/// All jobs but some.
fn waiting(jobs: &BTreeMap<usize, Job>, but: &BTreeSet<usize>) -> Vec<Waiting> {
    jobs.values().filter(|job| !but.contains(&job.line.number)).map(Job::waiting).collect()
}

/// What an earlier batch has left of the jobs; forgotten, unless it is to be resumed.
fn earlier(progress: &mut Progress, resume: bool) -> anyhow::Result<Earlier> {
    let what = || format!("cannot resume from {}", progress.name());
    let earlier = resume::earlier(progress).with_context(what)?;
    if resume {
        for name in &earlier.unknown {
            note!("symbiont: how job {name} of an earlier run ended is not known: it runs again");
        }
        return Ok(earlier);
    }
    if let Some(first) = earlier.running.first() {
        anyhow::bail!(
            "an earlier run of {} left {} running (first process: {}); --resume goes on from there",
            progress.name(),
            counted(earlier.running.len(), "job"),
            first.process.pid
        );
    }
    let what = format!("cannot empty {}", progress.name());
    progress.clear().context(what)?;
    Ok(Earlier::default())
}

/// Has the jobs waited for that an earlier batch has started.
fn join(execution: &mut Execution, assignment: Assignment, running: Vec<resume::Survivor>) {
    for place in assignment.others {
        if let Some(other) = running.get(place) {
            note!(
                "symbiont: a job of an earlier run that is not in the file runs on (process {})",
                other.process.pid
            );
        }
    }
    let numbers: BTreeMap<usize, usize> =
        assignment.running.iter().map(|(number, place)| (*place, *number)).collect();
    for (place, survivor) in running.into_iter().enumerate() {
        if let Some(number) = numbers.get(&place) {
            execution.join(*number, survivor);
        }
    }
}

/// A job of the file.
#[derive(Debug)]
struct Job {
    line: Line,
    identity: Identity,
    work: u64,
    /// Of what it does, by which an earlier run of it is known.
    digest: String,
}

impl Job {
    fn waiting(&self) -> Waiting {
        let (number, key) = (self.line.number, self.identity.key.clone());
        Waiting { number, key, work: self.work }
    }
}
