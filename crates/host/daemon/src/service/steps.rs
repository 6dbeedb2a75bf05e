//! What follows from each step: ended programs are released, figures counted, enrolments kept.

use std::time::Instant;

use symbiont_machine::{Ability, Change, Machine, ProgramId, Sample};
use symbiont_planner::Why;

use super::answers::scheduler_to_wire;
use super::pods::{ProgramStates, pods_of};
use super::{MachineController, Service};
use crate::jobs::JobOf;
use crate::log::Kind;
use crate::metrics::{Figures, Own};
use crate::occupants::Host;
use crate::programs::ManagedProgram;
use crate::quiet::quiet_words;
use crate::{OwnedProcess, explain, waits};

impl Service {
    /// Looks after a step what ended and what changed its user; gives lines for the log.
    pub fn after_step(&mut self, managed: &mut MachineController) -> Vec<String> {
        let mut log = Vec::new();
        let Some(step) = managed.last() else { return log };
        self.recent_moves.note(step, &self.programs);
        let sample = &step.sample;
        log.extend(self.look_for_intruders(managed, sample));
        self.throttles.check(sample, &step.characterizations, &mut self.quotas);
        for (id, waits) in self.waiting.check(sample, &step.characterizations, &mut Host) {
            let name = self.programs.get(id).map_or("", |program| program.name.as_str());
            log.push(waits::line(name, &waits, self.throttles.of(id)));
        }
        for why in managed.tally().refusals.keys() {
            // Once: `status` counts them.
            if !self.refusals.contains(why) {
                self.refusals.insert(why.clone());
                self.log.add(Kind::RefusedMove, format!("a move was refused: {why}"));
            }
        }
        log.extend(self.note_priorities(managed));
        for line in self.contained.refresh(&mut self.programs, &mut self.around, Instant::now()) {
            self.log.add(Kind::Unnamed, line);
        }
        self.ending.retain(|id, _| self.programs.get(*id).is_some());
        self.ending.values_mut().for_each(|is_seen| *is_seen = true);
        let ended = self.programs.ended(sample);
        let strangers = self.programs.strangers(sample);
        for id in ended {
            self.end(managed, id);
        }
        for id in self.programs.left_behind() {
            managed.machine_mut().release_daemons_of(id);
        }
        for (process, owner) in strangers {
            let report = managed.machine_mut().release(&[process].into());
            log.push(format!("process {process} {owner} now and is no longer managed"));
            log.extend(report.failed.iter().map(|failed| format!("not restored: {failed}")));
        }
        self.keep_enrolments(managed);
        self.observe(managed);
        log
    }

    /// Notes why priorities that are wanted do not act here, and says it in the log the first time: with each process
    /// that begins or ends to compete it may be so, or not so.
    fn note_priorities(&mut self, managed: &MachineController) -> Option<String> {
        let withheld = &managed.last()?.plan.withheld;
        let is_unsupported = withheld.iter().any(|it| {
            let is_priority = matches!(it.wanted.change, Change::Priority(_));
            is_priority && it.why == Why::Unsupported
        });
        let support = managed.machine().support();
        let why = || [&support.boost, &support.idle_class].into_iter().find_map(absent);
        self.notes.priorities = is_unsupported
            .then(why)
            .flatten()
            .map(|why| format!("threads are placed, but their priorities do not change: {why}"));
        let is_new = self.notes.priorities.is_some() && !self.is_said_of_priorities;
        self.is_said_of_priorities |= is_new;
        self.notes.priorities.clone().filter(|_| is_new)
    }

    /// A program has ended; daemons that it left behind are released with it.
    pub(super) fn end(&mut self, managed: &mut MachineController, id: ProgramId) {
        let report = managed.machine_mut().release_program(id);
        if let Some(line) = self.end_line(id) {
            self.log.add(Kind::Ended, line);
        }
        for failed in report.failed {
            self.log.add(Kind::Ended, format!("not restored: {failed}"));
        }
        self.programs.remove(id);
    }

    /// That a program ended, with what is known of one that was measured.
    fn end_line(&self, id: ProgramId) -> Option<String> {
        let program = self.programs.get(id)?;
        let first = program.roots.first().map(OwnedProcess::pid).unwrap_or_default();
        let lasted = program.since.elapsed().as_secs_f64();
        let quiet = self.quiet.report(id).map(|quiet| format!("; {}", quiet_words(&quiet)));
        let (name, quiet) = (&program.name, quiet.unwrap_or_default());
        Some(format!("{name} (process {first}) has ended after {lasted:.1} s{quiet}"))
    }

    /// A line for each program that is measured and was quiet until now; others run on its cores.
    fn look_for_intruders(&mut self, managed: &MachineController, sample: &Sample) -> Vec<String> {
        let topology = managed.machine().topology();
        let intrusions = self.quiet.check(sample, managed.applied(), topology, &mut Host);
        let mut lines = Vec::new();
        for intrusion in intrusions.iter().filter(|intrusion| intrusion.begins) {
            let program = self.programs.get(intrusion.program);
            lines.push(intrusion.line(program.map_or("", |program| &program.name)));
        }
        lines
    }

    /// Counts the step for Prometheus.
    fn observe(&mut self, managed: &mut MachineController) {
        let connections = managed.machine_mut().waiter_mut().connected();
        let Some(step) = managed.last() else { return };
        let machine = managed.machine();
        let losses = machine.losses();
        let figures = Figures {
            moves: explain::moves(managed.tally()),
            reasons: explain::reasons(managed.tally()),
            waiting: self.waiting.count(),
            throttled: self.throttles.count(),
            quanta: managed.tally().quanta,
            quanta_late: machine.lateness().missed,
            threads_seen: managed.tally().threads,
            overruns: losses.overruns,
            missing: losses.missing,
            rescans: losses.rescans,
            unreadable: losses.unreadable,
            scheduler: machine.scheduled().map(scheduler_to_wire).unwrap_or_default(),
            programs: self.programs.iter().count(),
            threads: step.sample.threads.len(),
            placed: explain::placed(managed.applied()),
            held: explain::held(managed.applied()),
            strayed: managed.disagreements(),
            hardware_threads: machine.topology().cpus().len(),
            quantum: self.quantum,
            connections,
        };
        let slowdowns = explain::slowdowns(step, managed.applied(), managed.policy());
        let own = || Own::read(machine.cost().cpu);
        let topology = machine.topology();
        let programs = &self.programs;
        let managed_program = |id| programs.get(id).map(|_| id);
        self.together.observe(step, topology, managed.policy(), managed_program);
        self.together.retain(|id| programs.get(id).is_some());
        if self.metrics.reports_jobs() {
            let job =
                |program: &ManagedProgram| Some(JobOf { job: program.job?, user: program.owner });
            let programs = self.programs.iter().filter_map(|(id, one)| Some((id, job(one)?)));
            self.jobs.observe(step, topology, managed.policy(), &programs.collect());
        }
        let jobs = || self.jobs.report(self.processor.as_deref(), &self.policy, topology);
        let states = ProgramStates {
            contained: &self.contained,
            waiting: &self.waiting,
            throttles: &self.throttles,
        };
        let pods = || pods_of(programs, &states, step, managed.applied());
        self.metrics.observe(&self.policy, &figures, &slowdowns, own, jobs, pods);
    }

    /// Notes for the next start what is managed now.
    fn keep_enrolments(&mut self, managed: &MachineController) {
        let Some(step) = managed.last() else { return };
        let kept = self.enrolments.keep(&self.programs, &step.sample, Instant::now());
        self.notes.enrolments = kept
            .err()
            .map(|error| format!("after a crash programs would not be managed again: {error}"));
    }
}

fn absent(ability: &Ability) -> Option<&str> {
    ability.why().filter(|_| !ability.exists())
}
