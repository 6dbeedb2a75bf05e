//! The daemon from its start to its end.

use std::any::Any;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use symbiont_control::{ControlError, Controller};
use symbiont_linux::actuate::{Lock, LockError, RestoreReport, restore};
use symbiont_linux::launch::{MANAGER_NICE, be_urgent, is_ignored};
use symbiont_linux::machine::{CountOptions, LinuxError, LinuxMachine, MachineOptions};
use symbiont_linux::observe::WatchOptions;
use symbiont_machine::{Ability, Class, Machine};
use symbiont_planner::Planner;
use symbiont_policy::{Classes, Policy};
use symbiont_topology::HostTopology;
use symbiont_wire::{Failure, Reloaded, Reply};

use crate::enrolments::{Enrolment, File};
use crate::hub::{Hub, Pending};
use crate::learned::LearnedFile;
use crate::masks::{doubted, suspected};
use crate::notices::Notices;
use crate::private::panic_message;
use crate::ruled::Ruled;
use crate::rules::{BAD_RULES, Rules};
use crate::service::{Effect, Managed, Service, Wanted};
use crate::{Config, OwnedProcess, Peer};

/// Longest time between two looks while nothing changes.
const LONGEST: Duration = Duration::from_secs(1);
/// Steps in a row that may fail until the daemon gives up.
const MOST_FAILURES: u32 = 10;

/// What notes about a shortage end with.
const SHORTAGE: &str = ", since descriptors are bounded";

/// The daemon cannot start, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another manager has the state directory.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The machine cannot be read or managed.
    #[error("{0}")]
    Machine(String),
    /// The policy cannot run as configured.
    #[error("policy '{policy}' cannot run here: {why}")]
    Policy {
        /// Its name.
        policy: String,
        /// Why not.
        why: String,
    },
    /// The loop panicked.
    #[error("it panicked, which is a defect of symbiont: {0}")]
    Panicked(String),
    /// The socket cannot be made.
    #[error("cannot listen at {path}: {source}")]
    Socket {
        /// Where.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
}

impl ServeError {
    fn panicked(panic: &(dyn Any + Send)) -> Self {
        Self::Panicked(panic_message(panic).to_owned())
    }
}

/// A policy, ready to decide.
pub struct Chosen {
    /// It.
    pub policy: Box<dyn Policy>,
    /// How often it decides unless the configuration says otherwise.
    pub quantum: Duration,
}

/// How the daemon runs.
pub struct Daemon<'a> {
    /// The configuration at the start.
    pub config: Config,
    /// Reads the configuration again.
    pub reread: &'a dyn Fn() -> Result<Config, String>,
    /// Makes the policy of a configuration.
    pub choose: &'a dyn Fn(&Config) -> Result<Chosen, String>,
    /// How events are counted.
    pub counting: CountOptions,
    /// Directories of rules, the most general one first.
    pub rules: Vec<PathBuf>,
    /// Where journal, lock and enrolments are.
    pub state_dir: PathBuf,
    /// What was learned of pairs of programs is kept here.
    pub learned: Option<LearnedFile>,
    /// Another place where it is published which manager manages what.
    pub published: Vec<PathBuf>,
    /// Where clients connect.
    pub socket: PathBuf,
    /// May other users connect?
    pub for_all_users: bool,
    /// Takes a line for the log.
    pub log: &'a mut dyn FnMut(&str),
    /// Is called when clients can connect.
    pub ready: &'a mut dyn FnMut(),
    /// Is called after each step of the loop: the watchdog's food.
    pub alive: &'a mut dyn FnMut(),
}

/// Runs until a signal (SIGTERM, SIGINT) asks it to end; then everything is as before. SIGHUP has
/// the configuration read again.
///
/// # Errors
/// When it cannot start, when the machine cannot be watched any more, or when the loop panics;
/// everything is restored then, and what was enrolled is noted for the next start.
pub fn serve(mut daemon: Daemon<'_>) -> Result<RestoreReport, ServeError> {
    // First: what a killed daemon left is restored among threads that may all be ready.
    let urgent = be_urgent();
    let mut lock = Lock::acquire(&daemon.state_dir, &daemon.published)?;
    let machine_trouble = |error: &dyn std::fmt::Display| ServeError::Machine(error.to_string());
    let host = HostTopology::read().map_err(|error| machine_trouble(&error))?;
    let restored = restore(&host, &daemon.state_dir).map_err(|error| machine_trouble(&error))?;
    for failed in &restored.report.failed {
        (daemon.log)(&format!("not restored after a crash: {failed}"));
    }
    let enrolments = File::new(&daemon.state_dir);
    let before = enrolments.read().unwrap_or_else(|why| {
        (daemon.log)(&why);
        Vec::new()
    });

    let chosen = choose(&daemon, &daemon.config)?;
    let quantum = daemon.config.quantum.unwrap_or(chosen.quantum);
    let (socket, listener) = Socket::listen(&daemon.socket, daemon.for_all_users)?;
    let (end, reload) = signals().map_err(|error| machine_trouble(&error))?;
    let hub = Hub::new(listener, end, reload);
    let options = MachineOptions {
        state_dir: daemon.state_dir.clone(),
        watch: WatchOptions::default(),
        counting: daemon.counting.clone(),
    };
    let machine =
        LinuxMachine::new(host, options, hub).map_err(|(error, _)| machine_trouble(&error))?;
    let mut managed = Controller::new(machine, chosen.policy, Planner::new(daemon.config.bounds()));
    managed.set_holding(daemon.config.narrow);
    let mut service = Service::new(&daemon.config.policy, quantum, enrolments);
    step(&mut managed, &daemon.config.policy)?;
    service.notes = limits(managed.machine());
    if let Err(refused) = urgent {
        service.notes.push(format!(
            "symbiontd may answer late where hundreds of threads are ready: no nice value of \
             {MANAGER_NICE} for itself: {refused}"
        ));
    }
    service.metrics.publish_to(&daemon.config.metrics);
    enrol_again(&mut service, &mut managed, before, daemon.log);
    let mut ruled = Ruled::new(Rules::of(daemon.rules.clone()));
    read_rules(&mut ruled, &mut service, &mut managed, daemon.log);
    (daemon.ready)();

    // After any end of the loop, applied changes must be restored.
    let looped =
        AssertUnwindSafe(|| run(&mut daemon, &mut managed, &mut service, &mut ruled, &mut lock));
    let ended = catch_unwind(looped).unwrap_or_else(|panic| Err(ServeError::panicked(&*panic)));
    let learned = ended.as_ref().ok().and_then(|()| managed.policy().learned());
    let (report, _) = managed.into_machine().restore_all();
    drop(socket);
    if ended.is_ok() {
        service.enrolments.remove();
    }
    let kept = daemon.learned.zip(learned).map(|(file, learned)| file.write(learned));
    if let Some(Err(why)) = kept {
        (daemon.log)(&why);
    }
    ended.map(|()| report)
}

/// The loop: a step, then requests until the next one is due.
fn run(
    daemon: &mut Daemon<'_>,
    managed: &mut Managed,
    service: &mut Service,
    ruled: &mut Ruled,
    lock: &mut Lock,
) -> Result<(), ServeError> {
    let mut kept = Instant::now();
    let mut pause = Pause::default();
    let mut failures = 0;
    let mut notices = Notices::new(managed.machine().topology().cpus());
    while !managed.machine().ended() {
        match step(managed, &service.policy) {
            Ok(()) => failures = 0,
            Err(error) => {
                failures += 1;
                (daemon.log)(&format!("a quantum was lost: {error}"));
                if failures == MOST_FAILURES {
                    return Err(error);
                }
            }
        }
        for line in notice(&mut notices, managed).into_iter().chain(service.after_step(managed)) {
            (daemon.log)(&line);
        }
        ruled.leave(service.take_detached());
        ruled.apply(service, managed).iter().for_each(|line| (daemon.log)(line));
        service.log.take().iter().for_each(|line| (daemon.log)(line));
        for root in service.take_new_roots() {
            if let Err(error) = lock.manages(root) {
                (daemon.log)(&error.to_string());
            }
        }
        if kept.elapsed() >= LONGEST {
            kept = Instant::now();
            let shortages = managed.machine().shortages();
            service.notes.retain(|note| !note.ends_with(SHORTAGE));
            service.notes.extend(shortages.iter().map(|line| format!("{line}{SHORTAGE}")));
            if let Some(line) = notices.shortages(&shortages) {
                (daemon.log)(&line);
            }
            if let Err(error) = lock.keep() {
                (daemon.log)(&error.to_string());
            }
            let learned = || managed.policy().learned();
            let kept = daemon.learned.as_mut().map_or(Ok(()), |file| file.keep(learned, kept));
            if let Err(why) = kept {
                (daemon.log)(&why);
                daemon.learned = None;
            }
        }
        (daemon.alive)();
        show_life(&daemon.socket);
        let quantum = pause.next(service.quantum, is_busy(managed));
        while !managed.machine().ended() {
            managed.machine_mut().wait(quantum).map_err(|error| lost(&error))?;
            let hub = managed.machine_mut().waiter_mut();
            hub.take_log().iter().for_each(|line| (daemon.log)(line));
            let asked = hub.take_pending();
            let signalled = hub.take_reload();
            if signalled {
                let lines = match read_again(daemon, managed, service, ruled) {
                    Ok(reloaded) => reloaded.notes,
                    Err(why) => vec![format!("the configuration stays: {why}")],
                };
                lines.iter().for_each(|line| (daemon.log)(line));
            }
            let effects: Vec<_> = asked
                .into_iter()
                .map(|call| answer(daemon, managed, service, ruled, call))
                .collect();
            service.log.take().iter().for_each(|line| (daemon.log)(line));
            if effects.contains(&Effect::Step) || (effects.is_empty() && !signalled) {
                break;
            }
        }
    }
    Ok(())
}

/// What changed around the programs with the last step.
fn notice(notices: &mut Notices, managed: &Managed) -> Vec<String> {
    let mut lines: Vec<String> =
        notices.topology(&managed.machine().topology().cpus()).into_iter().collect();
    // A line for each thread, since each may be another program's.
    let machine = managed.machine();
    lines.extend(machine.suspects().chunks(1).filter_map(suspected));
    lines.extend(machine.doubts().chunks(1).filter_map(doubted));
    let Some(sample) = managed.last().map(|step| &step.sample) else { return lines };
    let program = |id| sample.programs.iter().find(|program| program.id == id);
    let programs = sample.threads.iter().filter_map(|t| Some((t.id.process, program(t.program)?)));
    let mut changed = managed.externally_changed().peekable();
    // Nothing was changed as a rule: then names are not looked up.
    let programs = if changed.peek().is_some() { programs.collect() } else { BTreeMap::new() };
    lines.extend(notices.externally_changed(changed, &programs));
    lines
}

fn answer(
    daemon: &mut Daemon<'_>,
    managed: &mut Managed,
    service: &mut Service,
    ruled: &mut Ruled,
    mut call: Pending,
) -> Effect {
    let (mut replies, effect) = service.carry_out(managed, &mut call);
    if effect == Effect::Reload {
        let asked = format!("as user {} asks", call.peer.uid);
        replies = vec![match read_again(daemon, managed, service, ruled) {
            Ok(reloaded) => {
                (daemon.log)(&format!("read again, {asked}: {}", reloaded.notes.join("; ")));
                Reply::of(&reloaded)
            }
            Err(reason) => {
                (daemon.log)(&format!(
                    "to be read again, {asked}: the configuration stays: {reason}"
                ));
                Failure::Refused { reason }.into()
            }
        }];
    }
    managed.machine_mut().waiter_mut().answer(&call, &replies);
    effect
}

/// Reads the configuration again; one that cannot be used changes nothing. Rules are files of their own:
/// those that cannot be used are named.
fn read_again(
    daemon: &mut Daemon<'_>,
    managed: &mut Managed,
    service: &mut Service,
    ruled: &mut Ruled,
) -> Result<Reloaded, String> {
    let config = (daemon.reread)()?;
    // The new policy begins with it.
    keep_learned(daemon, managed);
    let chosen = choose(daemon, &config).map_err(|error| error.to_string())?;
    let quantum = config.quantum.unwrap_or(chosen.quantum);
    managed
        .replace(chosen.policy, Planner::new(config.bounds()))
        .map_err(|error| error.to_string())?;
    managed.set_holding(config.narrow);
    service.policy.clone_from(&config.policy);
    service.quantum = quantum;
    service.metrics.publish_to(&config.metrics);
    let failed = read_rules(ruled, service, managed, daemon.log);
    let said = format!("policy {}, quantum {quantum:?}, {}", config.policy, ruled.summary());
    daemon.config = config;
    Ok(Reloaded { notes: vec![said], failed })
}

/// Reads the rules; what is wrong with them is logged, and shown by `status` until it is mended.
fn read_rules(
    ruled: &mut Ruled,
    service: &mut Service,
    managed: &mut Managed,
    log: &mut dyn FnMut(&str),
) -> Vec<String> {
    let troubles = ruled.read(service, managed);
    troubles.iter().for_each(|line| log(line));
    service.notes.retain(|note| !note.starts_with(BAD_RULES));
    service.notes.extend(troubles.iter().filter(|line| line.starts_with(BAD_RULES)).cloned());
    troubles
}

/// Writes what was learned, without waiting for the disk.
fn keep_learned(daemon: &mut Daemon<'_>, managed: &Managed) {
    let file = daemon.learned.as_ref();
    if let Some(Err(why)) =
        file.zip(managed.policy().learned()).map(|(file, it)| file.write_soon(it))
    {
        (daemon.log)(&why);
        daemon.learned = None;
    }
}

fn choose(daemon: &Daemon<'_>, config: &Config) -> Result<Chosen, ServeError> {
    let chosen = (daemon.choose)(config);
    let chosen = chosen.map_err(|why| ServeError::Policy { policy: config.policy.clone(), why })?;
    Ok(Chosen { policy: Box::new(Classes::new(chosen.policy)), ..chosen })
}

fn step(managed: &mut Managed, policy: &str) -> Result<(), ServeError> {
    match managed.step() {
        Ok(_) => Ok(()),
        Err(ControlError::MissingSignal { signal, why, .. }) => Err(ServeError::Policy {
            policy: policy.to_owned(),
            why: format!("it needs {signal}, but {why}"),
        }),
        Err(error) => Err(ServeError::Machine(error.to_string())),
    }
}

fn lost(error: &LinuxError) -> ServeError {
    ServeError::Machine(error.to_string())
}

/// What a user of `status` should know about this machine.
fn limits(machine: &LinuxMachine<Hub>) -> Vec<String> {
    let support = machine.support();
    [&support.affinity, &support.enrolment]
        .into_iter()
        .filter_map(Ability::why)
        .map(str::to_owned)
        .collect()
}

/// Manages what lives of the programs that were managed before a crash.
fn enrol_again(
    service: &mut Service,
    managed: &mut Managed,
    before: Vec<Enrolment>,
    log: &mut dyn FnMut(&str),
) {
    for Enrolment { name, uid, class, job, identity, processes } in before {
        let peer = Peer { uid, pid: 0 };
        let alive: Vec<OwnedProcess> = processes
            .iter()
            .filter_map(|birth| OwnedProcess::of(birth.hold()?).ok())
            .filter(|process| peer.may_manage(process.pid(), process.owner()).is_ok())
            .collect();
        if alive.is_empty() {
            continue;
        }
        let identity = identity.as_deref();
        let is_class_stated = class != Class::Normal;
        let (name, linger, user) = (name.as_str(), true, None);
        let wanted = Wanted { name, class, is_class_stated, linger, job, user, identity };
        match service.take_in(managed, peer, wanted, alive) {
            Ok(_) => log(&format!("{name} of user {uid} is managed again")),
            Err(failure) => log(&format!("{name} of user {uid} is not managed again: {failure}")),
        }
    }
}

/// Is there anything that could need another place?
fn is_busy(managed: &Managed) -> bool {
    let Some(step) = managed.last() else { return true };
    !step.plan.moves.is_empty() || step.characterizations.values().any(|last| last.ready > 0.02)
}

/// Looks less often while nothing is ready to run.
#[derive(Debug, Default)]
struct Pause {
    idle: u32,
}

impl Pause {
    fn next(&mut self, quantum: Duration, busy: bool) -> Duration {
        self.idle = if busy { 0 } else { (self.idle + 1).min(16) };
        // Three quanta as usual, then twice as long each time.
        let times = 1 << self.idle.saturating_sub(3);
        (quantum * times).min(LONGEST).max(quantum)
    }
}

/// Descriptors that are readable after a signal: one that asks to end, and SIGHUP.
fn signals() -> io::Result<(OwnedFd, OwnedFd)> {
    let (end, end_writer) = UnixStream::pair()?;
    // A shell's `&` has SIGINT ignored.
    for signal in [SIGTERM, SIGINT].into_iter().filter(|signal| !is_ignored(*signal)) {
        signal_hook::low_level::pipe::register(signal, end_writer.try_clone()?)?;
    }
    let (reload, reload_writer) = UnixStream::pair()?;
    reload.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGHUP, reload_writer)?;
    Ok((end.into(), reload.into()))
}

/// Marks the socket's name with the time: after a crash clients see by it how long ago the daemon died.
fn show_life(socket: &Path) {
    let now = Timestamps { last_access: UTIME_NOW, last_modification: UTIME_NOW };
    // Where that cannot be, clients wait for no next daemon.
    let _ = utimensat(CWD, socket, &now, AtFlags::empty());
}

const UTIME_NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };

/// The listening socket's name, which goes with this value.
#[derive(Debug)]
struct Socket(PathBuf);

impl Socket {
    fn listen(path: &Path, for_all_users: bool) -> Result<(Self, OwnedFd), ServeError> {
        let fail = |source| ServeError::Socket { path: path.to_owned(), source };
        // A daemon that listened here before is gone: the lock is ours. Its name stays until this
        // one listens, so that clients see that one will.
        let draft = path.with_file_name(".new");
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
        let listener = UnixListener::bind(&draft).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let mode = if for_all_users { 0o666 } else { 0o600 };
        let listens = fs::set_permissions(&draft, fs::Permissions::from_mode(mode))
            .and_then(|()| fs::rename(&draft, path));
        if let Err(error) = listens {
            let _ = fs::remove_file(&draft);
            return Err(fail(error));
        }
        let name = Self(path.to_owned());
        Ok((name, listener.into()))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // A name that stays refuses connections, and the next start removes it.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests;
