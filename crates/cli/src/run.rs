//! `symbiont run`: from the command line to programs that run managed.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use serde::Deserialize;
use symbiont_daemon::{Client, ManagerReport, Plan, Wakes, manage};
use symbiont_linux::actuate::{managed_by, visible_state_dirs};
use symbiont_linux::launch::{
    Command, Job, Manager, Notice, Supervised, Timeouts, exec_in_place, finish, let_writes_fail,
    supervise,
};
use symbiont_linux::machine::{CountOptions, Keeping};
use symbiont_linux::observe::Choice;
use symbiont_linux::perf::Sharing;
use symbiont_linux::slow::SlowCpu;
use symbiont_machine::Class;
use symbiont_planner::Bounds;
use symbiont_policy::{Settings, find};
use symbiont_safe_open::output::{self, Whole};
use symbiont_topology::HostTopology;
use symbiont_wire::{Request, Status};

use crate::args::{Actuator, EnrolBy, Narrow, ReportForm, Run, SeeBy, refuse_held_and_kept};
use crate::client::{self, Asked, enrol_with_daemon};
use crate::doctor::catalogue::read_or_find;
use crate::knowledge::{self, Fitting};
use crate::report::{JobReport, RunReport};
use crate::state_files::learned_file;
use crate::top::clean::clean;

/// Exit code for "symbiont itself was used wrongly", as `env` and `timeout` have it.
pub const MISUSED: u8 = 125;

/// Decides where neither the user nor a daemon says which policy.
const DEFAULT_POLICY: &str = symbiont_policy::DEFAULT;

/// A job file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobFile {
    #[serde(rename = "job", default)]
    jobs: Vec<Job>,
}

/// Runs what was asked for. Comes back only with an error; the exit status of
/// the programs is this process's.
pub fn run(args: &Run) -> anyhow::Result<()> {
    let_writes_fail();
    let jobs = match &args.jobs {
        Some(path) => read_jobs(path)?,
        None => vec![Job::from(Command::new(&args.command)?)],
    };
    let daemon = if args.own_manager { None } else { client::running(&args.state)? };
    if daemon.is_some() {
        refuse_what_a_daemon_cannot(args)?;
    }
    let mut plan = plan(args, &jobs)?;
    let silent = daemon.as_deref().and_then(|socket| client::silent(socket, args.patience));
    if let (Some(socket), None) = (&daemon, &silent) {
        client::agree(socket, args.policy.as_deref())?;
    }
    let report_file = args.report_file.as_deref().map(prepare).transpose()?;
    // Emptied only now, that nothing else is refused.
    let record = args.record.as_deref().map(|path| create_record(path, args)).transpose()?;
    plan.record = record.as_ref().zip(args.record.as_deref());
    let form = args.report.or(args.dry_run.then_some(ReportForm::Text));

    // A program that is managed already needs no second manager.
    let state_dirs = [vec![plan.state_dir.clone()], visible_state_dirs()].concat();
    let nested = managed_by(std::process::id(), &state_dirs)
        .map(|manager| client::managed_already(manager, daemon.as_deref()));
    let is_nested = nested.is_some();
    // Said once it is so.
    let (by_daemon, by_itself) = (daemon.clone(), own_manager_words(&plan));
    let manager = || by_daemon.as_deref().map_or_else(|| by_itself.clone(), daemon_words);
    let asked = Asked {
        policy: args.policy.clone(),
        class: if args.alone { Some(Class::Alone) } else { args.class },
        linger: args.linger,
        name: args.called.clone(),
        identity: args.identity.clone(),
    };
    let manage = move |manager: Manager| match (nested, &daemon) {
        (Some(already), _) => manager.fail(&already),
        (None, Some(socket)) => match &silent {
            Some(why) => manager.fail(why),
            None => enrol_with_daemon(manager, socket, &asked),
        },
        (None, None) => manage(manager, &plan),
    };
    let say = |said: Notice<'_>| match said {
        // A measurement with co-runners misleads.
        Notice::Unmanaged(why) if args.class() == Class::Alone => {
            notice(&format!("not run: {why}"));
            std::process::exit(MISUSED.into());
        }
        _ if args.quiet => {}
        // By another manager, not unmanaged.
        Notice::Unmanaged(already) if is_nested => notice(&already.to_string()),
        Notice::Managed(notes) => {
            if args.verbose {
                notice(&manager());
            }
            if !notes.is_empty() {
                notice(notes);
            }
        }
        said => notice(&said.to_string()),
    };
    let timeouts = args.patience.map_or_else(Timeouts::default, Timeouts::of);
    // What disturbed the measurement is known at the end.
    let is_measured = args.class() == Class::Alone;
    let speaks_at_the_end =
        args.jobs.is_some() || form.is_some() || args.record.is_some() || is_measured;
    if let (false, [job]) = (speaks_at_the_end, jobs.as_slice()) {
        let error = exec_in_place(&job.command, &[], timeouts, say, manage);
        notice(&error.to_string());
        std::process::exit(error.exit_code());
    }
    let keep: Vec<_> = record.iter().map(AsFd::as_fd).collect();
    let supervised = supervise(&jobs, &keep, timeouts, say, manage)?;
    match form {
        Some(form) => {
            if report_file.is_some() && !args.quiet {
                report_trouble(&supervised);
            }
            // The programs have ended as they have: what becomes of the report is not their fault.
            if let Err(why) = write_report(form, report_file, &supervised) {
                notice(&crate::words(&why));
            }
        }
        None if args.quiet => {}
        None => report_trouble(&supervised),
    }
    finish(&supervised.statuses)
}

/// Which daemon manages, by which policy.
fn daemon_words(socket: &Path) -> String {
    let ask = || {
        let status = Client::connect(socket).ok()?.call_more::<Status>(Request::Status {}).ok()?;
        status.into_iter().next()
    };
    match ask() {
        Some(Status { pid, policy, .. }) => {
            format!("symbiontd manages it (process {pid}), by policy {policy}")
        }
        None => format!("symbiontd manages it, at {}", socket.display()),
    }
}

fn own_manager_words(plan: &Plan<'_>) -> String {
    let (policy, quantum) = (plan.policy.name, plan.quantum);
    format!("a manager of its own manages it, by policy {policy}, every {quantum:?}")
}

/// A daemon places all programs of a machine by one policy: nothing of a run of its own.
fn refuse_what_a_daemon_cannot(args: &Run) -> anyhow::Result<()> {
    let own = [
        (args.record.is_some(), "--record"),
        (args.dry_run, "--dry-run"),
        (args.quantum.is_some(), "--quantum"),
        (!args.options.parameters.set.is_empty(), "--set"),
        (!args.slower.is_empty(), "--slower"),
        (args.see_by == SeeBy::Tracepoints, "--see-by"),
        (args.narrow != Narrow::AsDecided, "--narrow"),
        (args.actuator != Actuator::Nudges, "--actuator"),
        (!args.knowledge.model.is_empty(), "--model"),
        (args.knowledge.slowdowns.is_some(), "--slowdowns"),
        (args.activity.are_given(), "--vectors"),
    ];
    match own.iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, option)) => anyhow::bail!(
            "{option} needs a manager of its own, but symbiontd manages the programs of this \
             machine; leave the option out, or stop the daemon meanwhile"
        ),
    }
}

fn plan<'a>(args: &'a Run, jobs: &[Job]) -> anyhow::Result<Plan<'a>> {
    let policy = find(args.policy.as_deref().unwrap_or(DEFAULT_POLICY))?;
    let settings = args.options.settings(policy)?;
    let settings = Settings { activity: args.activity.activity(jobs)?, ..settings };
    check_slower(&args.slower)?;
    refuse_held_and_kept(args.narrow.into(), args.actuator.into())?;
    let (settings, learned, trouble) = knowledge::learned(policy, settings, learned_file());
    trouble.iter().filter(|_| !args.quiet).for_each(|line| notice(line));
    let here = || {
        let host = HostTopology::read().context("cannot read this machine's topology")?;
        let catalogue = args.catalogue.as_deref().map(read_or_find).transpose()?;
        Fitting::here(&host, catalogue)
    };
    Ok(Plan {
        policy,
        settings: knowledge::add(&args.knowledge, here, policy, settings)?,
        quantum: args.quantum.unwrap_or(policy.quantum),
        bounds: Bounds { hold: args.hold, budget: args.budget },
        holding: args.narrow.into(),
        // One that only looks loads nothing.
        keeping: if args.dry_run { Keeping::Nudges } else { args.actuator.into() },
        choice: match args.enrol_by {
            EnrolBy::Auto => Choice::Best,
            EnrolBy::Scan => Choice::Scan,
        },
        counting: counting(args)?,
        dry_run: args.dry_run,
        class: args.class(),
        linger: args.linger,
        summarise: args.report.is_some() || args.dry_run,
        wakes: match args.see_by {
            SeeBy::Accounts => Wakes::Quanta,
            SeeBy::Tracepoints => Wakes::Phases,
        },
        slower: args.slower.clone(),
        state_dir: args.state.dir()?,
        learned,
        processor: knowledge::processor(),
        record: None,
    })
}

/// A CPU that is not there is no slower than the machine says.
fn check_slower(slower: &[SlowCpu]) -> anyhow::Result<()> {
    if slower.is_empty() {
        return Ok(());
    }
    let cpus = HostTopology::read().context("cannot read this machine's topology")?.cpus();
    for slow in slower {
        let cpu = slow.cpu();
        let there = cpus.contains(cpu);
        anyhow::ensure!(there, "--slower {slow}: no CPU {} is online, there are {cpus}", cpu.0);
    }
    Ok(())
}

/// How events are counted, where they are.
fn counting(args: &Run) -> anyhow::Result<CountOptions> {
    let catalogue = args.catalogue.as_deref().map(read_or_find).transpose()?;
    let sharing = if args.rotate { Sharing::ByQuantum } else { Sharing::Kernel };
    Ok(CountOptions { catalogue: catalogue.map(Arc::new), sharing, ..CountOptions::default() })
}

fn read_jobs(path: &Path) -> anyhow::Result<Vec<Job>> {
    let text = symbiont_safe_open::read_to_string(path)
        .with_context(|| format!("cannot read the job file {}", path.display()))?;
    let file: JobFile =
        toml::from_str(&text).with_context(|| format!("in the job file {}", path.display()))?;
    anyhow::ensure!(!file.jobs.is_empty(), "the job file {} has no [[job]]", path.display());
    Ok(file.jobs)
}

/// Where the report goes, and what errors call it.
fn prepare(path: &Path) -> anyhow::Result<(Whole, String)> {
    let name = path.display().to_string();
    let whole = Whole::prepare(path).with_context(|| format!("cannot create {name}"))?;
    Ok((whole, name))
}

/// A file for a recording, for which there is some room; where there is none, no new file is left.
fn create_record(path: &Path, args: &Run) -> anyhow::Result<File> {
    // A file that is new has a folder.
    let file_of = |path: &Path| {
        let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = std::fs::canonicalize(parent.unwrap_or(Path::new("."))).ok();
        let new = || Some(folder?.join(path.file_name()?));
        std::fs::canonicalize(path).ok().or_else(new).unwrap_or_else(|| path.to_owned())
    };
    let report = args.report_file.as_deref();
    let is_both = report.is_some_and(|report| file_of(report) == file_of(path)) && !is_stream(path);
    anyhow::ensure!(!is_both, "--record and --report-file name the same file, {}", path.display());
    let is_new = std::fs::symlink_metadata(path).is_err();
    let created = open_record(path);
    if is_new && created.is_err() {
        // Nothing is in it.
        let _ = output::remove(path);
    }
    created
}

/// Is it a pipe or a device, which keeps nothing?
fn is_stream(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|data| !data.is_file())
}

fn open_record(path: &Path) -> anyhow::Result<File> {
    const ROOM: &[u8] = &[0; 1 << 12];
    let mut file =
        output::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let kind = file.metadata().with_context(|| format!("cannot look at {}", path.display()))?;
    let tried = if kind.is_file() {
        file.write_all(ROOM).and_then(|()| file.set_len(0)).and_then(|()| file.rewind())
    } else {
        // Devices such as /dev/full refuse even this.
        file.write(&[]).map(drop)
    };
    tried.with_context(|| format!("cannot record to {}", path.display()))?;
    Ok(file)
}

fn notice(line: &str) {
    note!("symbiont: {line}");
}

/// What a user should know without having asked for a report.
fn report_trouble(outcome: &Supervised) {
    match &outcome.report {
        Ok(bytes) => {
            let report = serde_json::from_slice::<ManagerReport>(bytes).unwrap_or_default();
            report.trouble.iter().for_each(|trouble| notice(trouble));
            let words = |quiet| clean(&symbiont_daemon::quiet_words(quiet));
            report.quiet.iter().for_each(|quiet| notice(&words(quiet)));
        }
        Err(why) if outcome.managed => notice(&format!(
            "management ended early: {why}; `symbiont restore` restores what it left changed"
        )),
        // That was reported when it happened.
        Err(_) => {}
    }
}

fn write_report(
    form: ReportForm,
    file: Option<(Whole, String)>,
    outcome: &Supervised,
) -> anyhow::Result<()> {
    let managed = match &outcome.report {
        Ok(bytes) => serde_json::from_slice(bytes).map_err(|why| why.to_string()),
        Err(why) => Err(why.to_string()),
    };
    let (managed, unmanaged) = match managed {
        Ok(report) => (Some(report), None),
        Err(why) => (None, Some(why)),
    };
    let report = RunReport {
        symbiont: env!("CARGO_PKG_VERSION"),
        jobs: outcome.statuses.iter().map(JobReport::from).collect(),
        managed,
        unmanaged,
    };
    let text = match form {
        ReportForm::Text => crate::out::shown(&report.text()),
        ReportForm::Json => format!("{}\n", crate::out::json(&report)?),
    };
    let (written, name) = match file {
        Some((file, name)) => (file.write(0o644, text.as_bytes()), format!(" to {name}")),
        None => (std::io::stderr().write_all(text.as_bytes()), String::new()),
    };
    written.with_context(|| format!("cannot write the report{name}"))
}
