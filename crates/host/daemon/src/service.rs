//! Carries out what clients ask for, between two steps of the loop.

mod answers;
mod pods;
mod room;
mod running;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use serde::Serialize;
use symbiont_control::Controller;
use symbiont_linux::actuate::CpuQuotas;
use symbiont_linux::machine::LinuxMachine;
use symbiont_linux::perf::processor_name;
use symbiont_machine::{Class, ProgramId, UnknownClass};
use symbiont_wire::{
    Enrolled, Failure, INTERFACE, INTERFACE_NAME, Info, Reply, Request, SERVICE_NAME,
};

use crate::contained::{Contained, name_in};
use crate::hub::{Hub, Pending};
use crate::jobs::JobAccounts;
use crate::log::{Kind, Log};
use crate::metrics::Metrics;
use crate::process::owner_of;
use crate::programs::{ManagedProgram, Programs};
use crate::quiet::Watch;
use crate::snapshot::RecentMoves;
use crate::surroundings::Surroundings;
use crate::throttles::Throttles;
use crate::together::Together;
use crate::waits::Waiting;
use crate::{OwnedProcess, Owner, Peer, enrolments};

/// The machine that the daemon manages.
pub type MachineController = Controller<LinuxMachine<Hub>>;

/// What the daemon knows beyond its controller.
#[derive(Debug)]
pub struct Service {
    /// The programs.
    pub programs: Programs,
    /// The name of the policy.
    pub policy: String,
    /// Period of the loop.
    pub quantum: Duration,
    /// What limits it here; shown by `status`.
    pub notes: Notes,
    /// Where enrolments are kept for the next start.
    pub enrolments: enrolments::File,
    /// What is counted for Prometheus.
    pub metrics: Metrics,
    /// What jobs use and need.
    jobs: JobAccounts,
    /// The processor, as the firmware names it.
    processor: Option<String>,
    /// Which other threads run on the cores of programs that are measured.
    quiet: Watch,
    /// Which programs that are to answer at once wait for their CPUs.
    waiting: Waiting,
    /// Which programs wait as their quota of CPU time is used up.
    throttles: Throttles,
    quotas: CpuQuotas,
    together: Together<ProgramId>,
    /// The last moves; shown by `top`.
    recent_moves: RecentMoves,
    /// Programs whose first processes have ended; was a step made since?
    ending: BTreeMap<ProgramId, bool>,
    /// Processes that were detached since the last scan of the rules.
    detached: BTreeSet<u32>,
    /// First processes whose management is not published yet.
    new_roots: Vec<u32>,
    /// What came and went since the log was last written.
    pub log: Log,
    /// Moves that were refused until the last step, by reason.
    refusals: BTreeSet<String>,
    /// Did the log say once that priorities do not act?
    is_said_of_priorities: bool,
    /// Users and containers of this machine.
    pub around: Surroundings,
    /// The containers of programs.
    contained: Contained,
    started: Instant,
}

/// What limits the daemon here, and what went wrong lately, by what it is about.
#[derive(Debug, Default)]
pub struct Notes {
    /// What this machine does not allow.
    pub machine: Vec<String>,
    /// Threads for which there are no descriptors.
    pub shortages: Vec<String>,
    /// What was wanted of the machine, and cannot be had now.
    pub troubles: Vec<String>,
    /// Rules that cannot be used.
    pub rules: Vec<String>,
    /// Enrolments cannot be kept for the next start.
    pub enrolments: Option<String>,
    /// Priorities that are wanted, and do not act.
    pub priorities: Option<String>,
}

impl Notes {
    /// All of them.
    pub fn all(&self) -> Vec<String> {
        let shortages =
            self.shortages.iter().map(|line| format!("{line}, since descriptors are bounded"));
        let others = self.troubles.iter().chain(&self.rules);
        let others = others.chain(&self.enrolments).chain(&self.priorities).cloned();
        self.machine.iter().cloned().chain(shortages).chain(others).collect()
    }
}

/// What a client asks for when it hands over a program.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProgramRequest<'a> {
    /// Its name, for people.
    pub name: &'a str,
    /// Its purpose.
    pub class: Class,
    /// Did the client state the class? Where it did not, a rule decides.
    pub is_class_stated: bool,
    /// Are daemons that it leaves behind managed to their end?
    pub linger: bool,
    /// Its job, as the job manager numbers it.
    pub job: Option<u64>,
    /// The user that it will run as, where it is held back as root.
    pub user: Option<u32>,
    /// What it is known by from one run to the next; none: its name.
    pub identity: Option<&'a str>,
    /// What decided, as `a rule of FILE`; none: the peer asks.
    pub by: Option<&'a str>,
}

/// Characters of a name.
const MOST_NAME: usize = 256;
/// Characters of an identity.
const MOST_IDENTITY: usize = 64;

impl<'a> ProgramRequest<'a> {
    fn new(name: &'a str, class: Option<&str>, linger: bool) -> Result<Self, Failure> {
        let is_class_stated = class.is_some();
        let class = class.map(str::parse).transpose();
        let class =
            class.map_err(|error: UnknownClass| Failure::Refused { reason: error.to_string() })?;
        let class = class.unwrap_or_default();
        Ok(Self { name, class, is_class_stated, linger, ..Self::default() })
    }
}

/// The effect of a call besides its replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// There is something new to place: the next step shall come at once.
    Step,
    /// It is not carried out yet: the call is to come up again soon.
    Later,
    /// The same, after a step.
    StepFirst,
    /// The configuration is to be read again, and the call answered with what comes of it.
    Reload,
}

impl Service {
    /// Manages nothing yet.
    #[must_use]
    pub fn new(policy: &str, quantum: Duration, enrolments: enrolments::File) -> Self {
        Self {
            programs: Programs::new(),
            policy: policy.to_owned(),
            quantum,
            notes: Notes::default(),
            enrolments,
            metrics: Metrics::new(),
            jobs: JobAccounts::default(),
            processor: processor_name(
                &std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default(),
            ),
            quiet: Watch::default(),
            waiting: Waiting::default(),
            throttles: Throttles::default(),
            quotas: CpuQuotas::discover(),
            together: Together::default(),
            recent_moves: RecentMoves::default(),
            ending: BTreeMap::new(),
            detached: BTreeSet::new(),
            new_roots: Vec::new(),
            log: Log::default(),
            refusals: BTreeSet::new(),
            is_said_of_priorities: false,
            around: Surroundings::find(),
            contained: Contained::default(),
            started: Instant::now(),
        }
    }

    /// Processes that were detached since the last call.
    pub fn take_detached(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.detached)
    }

    /// First processes that were enrolled since the last call.
    pub fn take_new_roots(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.new_roots)
    }

    /// Carries out a call.
    pub fn carry_out(
        &mut self,
        managed: &mut MachineController,
        call: &mut Pending,
    ) -> (Vec<Reply>, Effect) {
        if let Some(effect) = self.waits_for_an_end(managed, call) {
            return (Vec::new(), effect);
        }
        let descriptors = std::mem::take(&mut call.descriptors);
        let peer = call.peer;
        let (done, effect) = match &call.request {
            Request::GetInfo {} => (Ok(Reply::of(&info())), Effect::None),
            Request::GetInterfaceDescription { interface } => {
                (description(interface), Effect::None)
            }
            Request::Enrol { name, policy, linger, class, job, user, identity } => {
                let agreed = self.agree(policy.as_deref()).and_then(|()| peer.may_state(*user));
                let wanted =
                    agreed.and_then(|()| ProgramRequest::new(name, class.as_deref(), *linger));
                let enrolled = wanted.and_then(|wanted| {
                    let wanted = ProgramRequest {
                        job: *job,
                        user: *user,
                        identity: identity.as_deref(),
                        ..wanted
                    };
                    self.enrol(managed, peer, wanted, descriptors)
                });
                (reply(enrolled), Effect::Step)
            }
            Request::Attach { name, class } => {
                // Daemons that it has, and makes later, are what is to be managed.
                let wanted = ProgramRequest::new(name, class.as_deref(), true);
                let attached =
                    wanted.and_then(|wanted| self.attach(managed, peer, wanted, descriptors));
                (reply(attached), Effect::Step)
            }
            Request::Detach {} => (reply(self.detach(managed, peer, descriptors)), Effect::Step),
            Request::Status {} => return (self.status(managed, peer, call.more), Effect::None),
            Request::Snapshot {} => return (self.snapshot(managed, peer, call.more), Effect::None),
            Request::Why { id } => (self.why(managed, peer, *id), Effect::None),
            Request::Reload {} if peer.is_root() || peer.uid == own_uid() => {
                return (Vec::new(), Effect::Reload);
            }
            Request::Reload {} => {
                let reason = "only the user that runs symbiontd may change its configuration";
                (Err(Failure::NotPermitted { reason: reason.to_owned() }), Effect::None)
            }
        };
        match done {
            Ok(reply) => (vec![reply], effect),
            Err(failure) => {
                // What is not known is asked for all the time, by numbers of processes that ended.
                if !matches!(failure, Failure::NotManaged { .. }) {
                    let (what, uid) = (asked(&call.request), peer.uid);
                    let line = format!("user {uid} asks {what}, which is refused: {failure}");
                    self.log.add(Kind::RefusedRequest, line);
                }
                (vec![failure.into()], Effect::None)
            }
        }
    }

    /// One policy places all programs.
    fn agree(&self, policy: Option<&str>) -> Result<(), Failure> {
        match policy {
            Some(asked) if asked != self.policy => Err(Failure::PolicyConflict {
                running: self.policy.clone(),
                asked: asked.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn enrol(
        &mut self,
        managed: &mut MachineController,
        peer: Peer,
        wanted: ProgramRequest<'_>,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Enrolled, Failure> {
        let roots = processes(peer, descriptors)?;
        let (id, notes) = self.take_in(managed, peer, wanted, roots)?;
        Ok(Enrolled { program: id.0, notes })
    }

    /// Enrols processes as one program; gives notes for the user. What another user runs among
    /// their descendants is not managed, unless root asks.
    pub fn take_in(
        &mut self,
        managed: &mut MachineController,
        peer: Peer,
        wanted: ProgramRequest<'_>,
        roots: Vec<OwnedProcess>,
    ) -> Result<(ProgramId, Vec<String>), Failure> {
        let pids: Vec<u32> = roots.iter().map(OwnedProcess::pid).collect();
        if wanted.class.keeps_cores() {
            self.end_what_is_over(managed);
        }
        let mut notes: Vec<String> = self.room(managed, wanted.class, &pids)?.into_iter().collect();
        self.programs.reserve(peer, managed.last().map(|step| &step.sample))?;
        let machine = managed.machine_mut();
        let container = pids.first().and_then(|first| self.around.container_of(*first));
        let name = name_in(wanted.name, container.as_deref());
        let name: String = name.chars().take(MOST_NAME).collect();
        // A line stays one line, in any reason.
        let shown = |c: char| if c.is_control() { '?' } else { c };
        let id = machine.add_program(&name.chars().map(shown).collect::<String>());
        machine.set_class(id, wanted.class);
        for root in &roots {
            let enrolled = machine.enrol_in(id, root.pid());
            // The number was the right process's only if that one still lives.
            let trouble = match (enrolled, root.has_ended()) {
                (Ok(()), false) => continue,
                (Err(error), false) => error.to_string(),
                (_, true) => format!("process {} has ended", root.pid()),
            };
            machine.release_program(id);
            self.programs.cancel(peer);
            return Err(Failure::Refused { reason: trouble });
        }
        let owners = owners(machine.processes_of(id));
        let owner = match (peer.is_root(), wanted.user) {
            (true, Some(user)) => user,
            (true, None) => Owner::of_all(&owners.values().copied().collect::<Vec<_>>()),
            (false, _) => {
                for (process, owner) in owners.iter().filter(|(_, owner)| !owner.is(peer.uid)) {
                    machine.release(&[*process].into());
                    notes.push(format!("process {process} {owner} and is not managed"));
                }
                peer.uid
            }
        };
        managed.machine_mut().set_user(id, owner);
        let is_digest = |text: &&str| {
            (1..=MOST_IDENTITY).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
        };
        let identity = wanted.identity.filter(is_digest).map(str::to_owned);
        if let Some(identity) = &identity {
            managed.machine_mut().set_identity(id, identity);
        }
        self.new_roots.extend(roots.iter().map(OwnedProcess::pid));
        let first = pids.first().copied().unwrap_or_default();
        let by = match wanted.by {
            Some(by) => format!("by {by}"),
            None => format!("as user {} asks", peer.uid),
        };
        let class = wanted.class;
        self.log.add(
            Kind::Managed,
            format!("{name} (process {first}, user {owner}) is managed, class {class}, {by}"),
        );
        let program = ManagedProgram {
            name,
            class: wanted.class,
            is_class_stated: wanted.is_class_stated,
            owner,
            enrolled_by: peer.uid,
            is_ruled: wanted.by.is_some(),
            linger: wanted.linger,
            job: wanted.job,
            identity,
            is_held_back: wanted.user.is_some(),
            roots,
            since: Instant::now(),
        };
        self.programs.insert(id, program);
        self.contained.insert(id, container, Instant::now());
        Ok((id, notes))
    }
}

/// A request in words, for the log.
fn asked(request: &Request) -> String {
    match request {
        Request::Enrol { name, .. } => format!("to manage {name}"),
        Request::Attach { name, .. } if name.is_empty() => {
            "to manage a process that runs already".to_owned()
        }
        Request::Attach { name, .. } => format!("to manage {name}, which runs already"),
        Request::Detach {} => "to release a process".to_owned(),
        Request::Reload {} => "to read the configuration again".to_owned(),
        Request::GetInterfaceDescription { interface } => format!("to describe {interface}"),
        Request::GetInfo {} | Request::Status {} | Request::Snapshot {} | Request::Why { .. } => {
            "to say what is managed".to_owned()
        }
    }
}

/// The processes that the descriptors name, each of which the peer may manage.
fn processes(peer: Peer, descriptors: Vec<OwnedFd>) -> Result<Vec<OwnedProcess>, Failure> {
    each_process(peer, descriptors)?.into_iter().collect()
}

/// Each process that the descriptors name, if the peer may manage it.
///
/// # Errors
/// When there is no descriptor.
fn each_process(
    peer: Peer,
    descriptors: Vec<OwnedFd>,
) -> Result<Vec<Result<OwnedProcess, Failure>>, Failure> {
    if descriptors.is_empty() {
        let reason = "a pidfd must come with this call, as SCM_RIGHTS".to_owned();
        return Err(Failure::Protocol { reason });
    }
    let named = descriptors.into_iter().map(|descriptor| {
        let process = OwnedProcess::of(descriptor)
            .map_err(|error| Failure::Refused { reason: error.to_string() })?;
        peer.may_manage(process.pid(), process.owner())?;
        if let Some(reason) = unmanageable(process.pid()) {
            return Err(Failure::Refused { reason });
        }
        Ok(process)
    });
    Ok(named.collect())
}

/// Why a process is never managed.
fn unmanageable(pid: u32) -> Option<String> {
    /// Of threads of the kernel (PF_KTHREAD, proc_pid_stat(5)).
    const KERNEL: u32 = 0x0020_0000;
    if pid == std::process::id() {
        return Some(format!("process {pid} is symbiontd itself"));
    }
    let number = i32::try_from(pid).ok()?;
    let stat = procfs::process::Process::new(number).and_then(|process| process.stat()).ok()?;
    (stat.flags & KERNEL != 0).then(|| format!("process {pid} is a thread of the kernel"))
}

/// Whose these processes are; without those that have ended.
fn owners(processes: BTreeSet<u32>) -> BTreeMap<u32, Owner> {
    processes.into_iter().filter_map(|pid| Some((pid, owner_of(pid).ok()?))).collect()
}

fn not_managed(id: u32) -> Failure {
    Failure::NotManaged { what: format!("no process or thread {id} of yours") }
}

fn reply<T: Serialize>(done: Result<T, Failure>) -> Result<Reply, Failure> {
    done.map(|results| Reply::of(&results))
}

/// The user whose daemon this is.
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn info() -> Info {
    Info {
        vendor: "Symbiont".to_owned(),
        product: "symbiontd".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        url: String::new(),
        interfaces: vec![SERVICE_NAME.to_owned(), INTERFACE_NAME.to_owned()],
    }
}

fn description(interface: &str) -> Result<Reply, Failure> {
    #[derive(Serialize)]
    struct Description {
        description: &'static str,
    }
    match interface {
        INTERFACE_NAME => Ok(Reply::of(&Description { description: INTERFACE })),
        other => Err(Failure::Refused { reason: format!("there is no interface {other} here") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_a_process_without_a_name_reads_as_a_sentence() {
        let attach = |name: &str| asked(&Request::Attach { name: name.to_owned(), class: None });
        assert_eq!(attach(""), "to manage a process that runs already");
        assert_eq!(attach("nginx"), "to manage nginx, which runs already");
    }
}
