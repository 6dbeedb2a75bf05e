//! The daemon while it runs: the loop, and what it does between two steps.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use symbiont_control::ControlError;
use symbiont_linux::actuate::Lock;
use symbiont_linux::machine::LinuxError;
use symbiont_machine::{Class, Machine};
use symbiont_planner::Planner;
use symbiont_wire::{Failure, Reloaded, Reply};

use super::socket::show_life;
use super::{Daemon, ServeError, choose};
use crate::enrolments::Enrolment;
use crate::hub::Pending;
use crate::masks::{doubted, suspected};
use crate::notices::Notices;
use crate::ruled::{RuledPrograms, Trouble};
use crate::service::{Effect, MachineController, ProgramRequest, Service};
use crate::{OwnedProcess, Peer};

/// Longest time between two looks while nothing changes.
const LONGEST: Duration = Duration::from_secs(1);
/// Steps in a row that may fail until the daemon gives up.
const MOST_FAILURES: u32 = 10;

/// The daemon while it runs.
pub(super) struct Server<'a> {
    pub daemon: Daemon<'a>,
    pub managed: MachineController,
    pub service: Service,
    pub ruled: RuledPrograms,
    pub lock: Lock,
}

impl Server<'_> {
    /// The loop: a step, then requests until the next one is due.
    pub fn run(&mut self) -> Result<(), ServeError> {
        let mut kept = Instant::now();
        let mut pause = Pause::default();
        let mut failures = 0;
        let mut notices = Notices::new(self.managed.machine().topology().cpus());
        while !self.managed.machine().ended() {
            match self.step() {
                Ok(()) => failures = 0,
                Err(error) => {
                    failures += 1;
                    self.log([format!("a quantum was lost: {error}")]);
                    if failures == MOST_FAILURES {
                        return Err(error);
                    }
                }
            }
            self.look_around(&mut notices);
            if kept.elapsed() >= LONGEST {
                self.keep(&mut notices, kept);
                kept = Instant::now();
            }
            (self.daemon.alive)();
            show_life(&self.daemon.socket);
            self.answer_for(pause.next(self.service.quantum, is_busy(&self.managed)))?;
        }
        Ok(())
    }

    /// One step of the loop.
    pub fn step(&mut self) -> Result<(), ServeError> {
        match self.managed.step() {
            Ok(_) => Ok(()),
            Err(ControlError::MissingSignal { signal, why, .. }) => Err(ServeError::Policy {
                policy: self.service.policy.clone(),
                why: format!("it needs {signal}, but {why}"),
            }),
            Err(error) => Err(ServeError::Machine(error.to_string())),
        }
    }

    /// Writes lines to the log.
    fn log(&mut self, lines: impl IntoIterator<Item = String>) {
        lines.into_iter().for_each(|line| (self.daemon.log)(&line));
    }

    /// What follows from a step: what changed around the programs, what rules want now.
    fn look_around(&mut self, notices: &mut Notices) {
        let lines = notice(notices, &self.managed);
        self.log(lines);
        let lines = self.service.after_step(&mut self.managed);
        self.log(lines);
        self.publish_roots();
        let detached = self.service.take_detached();
        if let Err(error) = self.lock.releases(&detached) {
            self.log([error.to_string()]);
        }
        self.ruled.leave(detached);
        let lines = self.ruled.apply(&mut self.service, &mut self.managed);
        self.log(lines);
        let lines = self.service.log.take();
        self.log(lines);
        self.publish_roots();
    }

    /// Publishes that what was enrolled lately is managed.
    fn publish_roots(&mut self) {
        for root in self.service.take_new_roots() {
            if let Err(error) = self.lock.manages(root) {
                self.log([error.to_string()]);
            }
        }
    }

    /// Writes what is to outlive a crash. `kept`: when that was done last.
    fn keep(&mut self, notices: &mut Notices, kept: Instant) {
        let shortages = self.managed.machine().shortages();
        self.log(notices.shortages(&shortages));
        self.service.notes.shortages = shortages;
        let troubles = self.managed.machine().troubles();
        self.log(notices.troubles(&troubles));
        self.service.notes.troubles = troubles;
        if let Err(error) = self.lock.keep() {
            self.log([error.to_string()]);
        }
        let news = self.service.metrics.news();
        self.log(news);
        let learned = || self.managed.policy().learned();
        let file = self.daemon.learned.as_mut();
        if let Err(why) = file.map_or(Ok(()), |file| file.keep(learned, kept)) {
            self.log([why]);
            self.daemon.learned = None;
        }
    }

    /// Carries out what clients ask for, until the next step is due.
    fn answer_for(&mut self, quantum: Duration) -> Result<(), ServeError> {
        while !self.managed.machine().ended() {
            self.managed.machine_mut().wait(quantum).map_err(|error| lost(&error))?;
            let hub = self.managed.machine_mut().waiter_mut();
            let (lines, asked, signalled) = (hub.take_log(), hub.take_pending(), hub.take_reload());
            self.log(lines);
            if signalled {
                let lines = match self.read_again() {
                    Ok(reloaded) => reloaded.notes,
                    Err(why) => vec![format!("the configuration stays: {why}")],
                };
                self.log(lines);
            }
            let effects: Vec<_> = asked.into_iter().map(|call| self.answer(call)).collect();
            let lines = self.service.log.take();
            self.log(lines);
            let is_due = [Effect::Step, Effect::StepFirst].iter().any(|due| effects.contains(due));
            if is_due || (effects.is_empty() && !signalled) {
                break;
            }
        }
        Ok(())
    }

    fn answer(&mut self, mut call: Pending) -> Effect {
        if self.managed.machine_mut().waiter_mut().is_given_up(&call) {
            return Effect::None;
        }
        let (mut replies, effect) = self.service.carry_out(&mut self.managed, &mut call);
        if effect == Effect::Reload {
            let asked = format!("as user {} asks", call.peer.uid);
            let (line, reply) = match self.read_again() {
                Ok(reloaded) => (
                    format!("read again, {asked}: {}", reloaded.notes.join("; ")),
                    Reply::of(&reloaded),
                ),
                Err(reason) => (
                    format!("to be read again, {asked}: the configuration stays: {reason}"),
                    Failure::Refused { reason }.into(),
                ),
            };
            self.log([line]);
            replies = vec![reply];
        }
        let hub = self.managed.machine_mut().waiter_mut();
        match effect {
            Effect::Later | Effect::StepFirst => hub.postpone(call),
            _ => hub.answer(&call, &replies),
        }
        effect
    }

    /// Reads the configuration again; one that cannot be used changes nothing. Rules are files of their own:
    /// those that cannot be used are named.
    fn read_again(&mut self) -> Result<Reloaded, String> {
        let mut config = (self.daemon.reread)()?;
        let kept = config.keep_actuator(&self.daemon.config)?;
        // The new policy begins with it.
        self.keep_learned();
        let chosen = choose(&self.daemon, &config).map_err(|error| error.to_string())?;
        let quantum = config.quantum.unwrap_or(chosen.quantum);
        self.managed
            .replace(chosen.policy, Planner::new(config.bounds()))
            .map_err(|error| error.to_string())?;
        self.managed.set_holding(config.narrow);
        self.service.policy.clone_from(&config.policy);
        self.service.quantum = quantum;
        self.service.metrics.publish_to(&config.metrics);
        self.ruled.configure(&mut self.service, &config.containers);
        let failed = self.read_rules();
        let rules = self.ruled.summary();
        let mut notes = vec![format!("policy {}, quantum {quantum:?}, {rules}", config.policy)];
        notes.extend(kept);
        self.daemon.config = config;
        Ok(Reloaded { notes, failed })
    }

    /// Reads the rules; what is wrong with them is logged, and shown by `status` until it is mended.
    pub fn read_rules(&mut self) -> Vec<String> {
        let Trouble { bad_files, not_restored } =
            self.ruled.read(&mut self.service, &mut self.managed);
        self.service.notes.rules.clone_from(&bad_files);
        let troubles = [bad_files, not_restored].concat();
        self.log(troubles.clone());
        troubles
    }

    /// Writes what was learned, without waiting for the disk.
    fn keep_learned(&mut self) {
        let file = self.daemon.learned.as_ref();
        let written =
            file.zip(self.managed.policy().learned()).map(|(file, it)| file.write_soon(it));
        if let Some(Err(why)) = written {
            self.log([why]);
            self.daemon.learned = None;
        }
    }

    /// Manages what lives of the programs that were managed before a crash; what rules wanted is left to them.
    pub fn enrol_again(&mut self, before: Vec<Enrolment>) {
        let asked = before.into_iter().filter(|enrolment| !enrolment.is_ruled);
        for Enrolment { name, uid, class, job, identity, processes, .. } in asked {
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
            let (name, linger) = (name.as_str(), true);
            let wanted = ProgramRequest {
                name,
                class,
                is_class_stated,
                linger,
                job,
                identity,
                ..ProgramRequest::default()
            };
            let line = match self.service.take_in(&mut self.managed, peer, wanted, alive) {
                Ok(_) => format!("{name} of user {uid} is managed again"),
                Err(failure) => format!("{name} of user {uid} is not managed again: {failure}"),
            };
            self.log([line]);
        }
    }
}

/// What changed around the programs with the last step.
fn notice(notices: &mut Notices, managed: &MachineController) -> Vec<String> {
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

fn lost(error: &LinuxError) -> ServeError {
    ServeError::Machine(error.to_string())
}

/// Is there anything that could need another place?
fn is_busy(managed: &MachineController) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_looks_less_often_while_nothing_is_ready() {
        let quantum = Duration::from_millis(100);
        let mut pause = Pause::default();
        assert_eq!(pause.next(quantum, true), quantum);
        let idle: Vec<_> = (0..9).map(|_| pause.next(quantum, false).as_millis()).collect();
        assert_eq!(idle, [100, 100, 100, 200, 400, 800, 1000, 1000, 1000]);
        assert_eq!(pause.next(quantum, true), quantum);
        let slow = Duration::from_secs(5);
        assert_eq!(pause.next(slow, false), slow, "never more often than the policy asks for");
    }
}
