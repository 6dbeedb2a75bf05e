//! The daemon from its start to its end.

mod server;
mod socket;

use std::any::Any;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

use server::Server;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use socket::Socket;
use symbiont_control::Controller;
use symbiont_linux::actuate::{Lock, LockError, RestoreReport, Restored, restore};
use symbiont_linux::launch::{MANAGER_NICE, be_urgent, is_ignored};
use symbiont_linux::machine::{CountOptions, LinuxMachine, MachineOptions};
use symbiont_linux::observe::WatchOptions;
use symbiont_machine::{Ability, Machine};
use symbiont_planner::Planner;
use symbiont_policy::{Classes, Policy};
use symbiont_topology::{HostTopology, counted};

use crate::Config;
use crate::enrolments::File;
use crate::hub::Hub;
use crate::learned::LearnedFile;
use crate::private::panic_message;
use crate::ruled::RuledPrograms;
use crate::rules::Rules;
use crate::service::Service;

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
        /// The path of the socket.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl ServeError {
    fn panicked(panic: &(dyn Any + Send)) -> Self {
        Self::Panicked(panic_message(panic).to_owned())
    }
}

/// A policy, ready to decide.
pub struct ChosenPolicy {
    /// The policy.
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
    pub choose: &'a dyn Fn(&Config) -> Result<ChosenPolicy, String>,
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
pub fn serve(daemon: Daemon<'_>) -> Result<RestoreReport, ServeError> {
    // First: what a killed daemon left is restored among threads that may all be ready.
    let urgent = be_urgent();
    let lock = Lock::acquire(&daemon.state_dir, &daemon.published)?;
    let machine_trouble = |error: &dyn std::fmt::Display| ServeError::Machine(error.to_string());
    let host = HostTopology::read().map_err(|error| machine_trouble(&error))?;
    let restored = restore(&host, &daemon.state_dir).map_err(|error| machine_trouble(&error))?;
    healed(&restored).iter().for_each(|line| (daemon.log)(line));
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
        keeping: daemon.config.actuator,
    };
    let machine =
        LinuxMachine::new(host, options, hub).map_err(|(error, _)| machine_trouble(&error))?;
    let mut managed = Controller::new(machine, chosen.policy, Planner::new(daemon.config.bounds()));
    managed.set_holding(daemon.config.narrow);
    let mut service = Service::new(&daemon.config.policy, quantum, enrolments);
    let mut ruled = RuledPrograms::new(Rules::of(daemon.rules.clone()));
    ruled.configure(&mut service, &daemon.config.containers);
    let mut server = Server { daemon, managed, service, ruled, lock };
    server.step()?;
    server.service.notes.machine = limits(server.managed.machine());
    if let Err(refused) = urgent {
        server.service.notes.machine.push(format!(
            "symbiontd may answer late where hundreds of threads are ready: no nice value of \
             {MANAGER_NICE} for itself: {refused}"
        ));
    }
    if let Some(why) = server.service.around.blind_spot() {
        (server.daemon.log)(why);
        server.service.notes.machine.push(why.to_owned());
    }
    server.service.metrics.publish_to(&server.daemon.config.metrics);
    server.enrol_again(before);
    server.read_rules();
    (server.daemon.ready)();

    // After any end of the loop, applied changes must be restored.
    let ended = catch_unwind(AssertUnwindSafe(|| server.run()));
    let ended = ended.unwrap_or_else(|panic| Err(ServeError::panicked(&*panic)));
    let Server { daemon, managed, service, lock, .. } = server;
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
    drop(lock);
    ended.map(|()| report)
}

fn choose(daemon: &Daemon<'_>, config: &Config) -> Result<ChosenPolicy, ServeError> {
    let chosen = (daemon.choose)(config);
    let chosen = chosen.map_err(|why| ServeError::Policy { policy: config.policy.clone(), why })?;
    Ok(ChosenPolicy { policy: Box::new(Classes::new(chosen.policy)), ..chosen })
}

/// What was restored after managers that were killed, as lines for the log.
fn healed(restored: &Restored) -> Vec<String> {
    let Restored { report, journals, stale, unusable, .. } = restored;
    let mut lines = Vec::new();
    if !journals.is_empty() || report.restored > 0 {
        let (threads, gone) = (counted(report.restored, "thread"), report.gone);
        let born = match report.descendants {
            0 => String::new(),
            born => format!(", {born} of them born of changed ones"),
        };
        lines.push(format!(
            "restored what a killed manager left changed: {threads}{born}; {gone} had exited"
        ));
    }
    lines.extend(
        stale
            .iter()
            .map(|path| format!("removed {}, all of whose threads are gone", path.display())),
    );
    lines.extend(
        report.left_alone.iter().map(|thread| format!("left alone after a crash: {thread}")),
    );
    lines
        .extend(report.failed.iter().map(|thread| format!("not restored after a crash: {thread}")));
    lines.extend(unusable.iter().map(|why| format!("not used after a crash: {why}")));
    lines
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

#[cfg(test)]
mod tests;
