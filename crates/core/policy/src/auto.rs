//! `auto`: the best that the signals and the structure of a machine allow.
//!
//! # Problem
//! Which policy suits depends on the machine: how many hardware threads a core has, how caches and
//! memory are divided, what can be counted. A user should not have to know. And a placement that gains
//! on one load may lose on another.
//!
//! # Approach
//! Four levels, each above the next:
//! 1. `unmanaged`: CPUs that are shared with unmanaged load are avoided.
//! 2. `phases` ([`Phases`]): where a parallel program runs, a serial thread gets a core of its own, the
//!    fastest first.
//! 3. `domains`: each program stays in one LLC domain or NUMA node where its ready threads fit, and
//!    domains are balanced. Where caches are of unequal size, programs that miss in a smaller one go to a larger
//!    one (`caches`).
//! 4. `groups`: inside a domain, steady threads are grouped on cores by the best policy that the machine
//!    has the signals for (`choice`). Not where more threads are ready than there are hardware threads: the
//!    OS shares CPU time fairly, groups would not.
//!
//! `pays` compares each program's progress with and without its placement, and releases those
//! that lose. A thread that no level places is left to the OS.
//!
//! # Terms and units
//! *Ready* of a thread: share of its time, a mean over about half a second. *Steady*: ready for
//! at least three quarters of its time. Periods are counted by the lengths of the quanta.
//!
//! # Properties
//! - What is chosen follows signals, model and structure (`what_is_chosen_follows_the_machine`), and
//!   reasons and findings name it (`reasons_and_findings_name_the_choice`).
//! - Programs stay in domains, groups in cores (`programs_stay_in_domains_and_groups_in_cores`).
//! - Equal quanta move no thread, trials, turns on faster cores and what is learned apart
//!   (`equal_quanta_move_no_thread`, `what_is_learned_moves_threads_less_and_less`).
//! - A placement that does not pay is released, longer each time, and one that pays is kept
//!   (`a_placement_that_does_not_pay_is_released`, `a_placement_that_pays_is_kept`).
//! - CPUs with unmanaged load are avoided, and tried again (`cpus_with_unmanaged_load_are_avoided`).

mod caches;
mod choice;
mod domains;
mod groups;
mod pays;
#[cfg(test)]
mod tests;
mod unmanaged;

use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_machine::{
    Ability, Assignment, Placement, Priority, ProgramId, RunState, Signal, Support, Target,
    ThreadId,
};
use symbiont_topology::{CpuSet, Topology};

use crate::parameter::{Parameters, joined};
use crate::phases::reach;
use crate::view::{NOT_SETTLED, OFFLINE};
use crate::{
    Entry, Finding, Foresight, LearnedPairs, Phase, Phases, Policy, ProgramPhase, Requirements,
    Settings, ThreadView, View, fpu, learned, phases, symbiotic_online,
};
use caches::{Caches, Unequal};
use choice::Choice;
use domains::{Domain, DomainId, Homes, Load, domains};
use groups::{Groups, Held};
use pays::Pays;
use unmanaged::{Unmanaged, Usable};

pub(crate) const ENTRY: Entry = Entry {
    name: "auto",
    summary: "chooses by the machine: serial phases, NUMA and LLC domains, then groups on a core",
    paper: None,
    // That of `symbiotic`, the shortest of the policies that it chooses from; changes of phases that are
    // shorter are not worth moves at each of them.
    quantum: Duration::from_millis(100),
    boosts: true,
    parameters: PARAMETERS,
    make: |settings| Box::new(Auto::new(settings)),
};

/// Those of the policies that it asks.
const PARAMETERS: Parameters = &joined::<
    {
        phases::PARAMETERS.len()
            + learned::PARAMETERS.len()
            + fpu::PARAMETERS.len()
            + symbiotic_online::PARAMETERS.len()
    },
>(&[
    phases::PARAMETERS,
    learned::PARAMETERS,
    fpu::PARAMETERS,
    symbiotic_online::PARAMETERS,
]);

/// Time constant of the mean of ready shares.
const SMOOTHED: Duration = Duration::from_millis(500);
/// Least ready share of a thread that is kept on a core: others wake and sleep, and the OS finds them a
/// free CPU faster than the next quantum does.
const STEADY: f64 = 0.75;
/// Least number of ready threads of a program that is kept in a domain.
const BUSY: f64 = 0.1;

/// The policy.
pub struct Auto {
    settings: Settings,
    choice: Choice,
    counts_instructions: bool,
    ready: BTreeMap<ThreadId, f64>,
    unmanaged: Unmanaged,
    phases: Phases,
    caches: Caches,
    unequal: Unequal,
    homes: Homes,
    groups: Groups,
    pays: Pays,
    domains: usize,
}

/// What was decided about programs and cores, before single threads.
struct Decision<'d> {
    usable: Usable,
    /// Are CPUs with unmanaged load left out of these?
    avoids: bool,
    /// What `phases` decided, where it is asked.
    phases: Option<Placement>,
    /// Threads to which it gave cores of their own.
    owned: &'d BTreeMap<ThreadId, CpuSet>,
    /// What `phases` leaves of the machine.
    rest: CpuSet,
    domains: Vec<Domain>,
    caches: &'d Caches,
    homes: BTreeMap<ProgramId, DomainId>,
    groups: BTreeMap<ThreadId, Held>,
    pays: &'d Pays,
    chosen: &'static str,
}

impl Auto {
    /// With these settings; what a machine offers is not known yet.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            choice: Choice::without_counters(settings),
            counts_instructions: false,
            ready: BTreeMap::new(),
            unmanaged: Unmanaged::default(),
            phases: Phases::online(settings),
            caches: Caches::default(),
            unequal: Unequal::default(),
            homes: Homes::default(),
            groups: Groups::default(),
            pays: Pays::default(),
            domains: 0,
        }
    }

    /// The policy that groups threads on cores; none: no policy does.
    #[must_use]
    pub fn groups_by(&self) -> Option<&'static str> {
        self.choice.name()
    }

    fn smooth(&mut self, view: &View<'_>, over: Duration) {
        let weight = over.as_secs_f64() / (over + SMOOTHED).as_secs_f64();
        let mut ready = BTreeMap::new();
        for thread in &view.threads {
            let before = self.ready.get(&thread.id).copied();
            let mean = match (before, thread.did) {
                (Some(mean), Some(did)) => mean + weight * (did.ready - mean),
                (mean, did) => did.map(|did| did.ready).or(mean).unwrap_or_default(),
            };
            ready.insert(thread.id, mean);
        }
        self.ready = ready;
    }

    fn ready(&self, thread: &ThreadView<'_>) -> f64 {
        self.ready.get(&thread.id).copied().unwrap_or_default()
    }

    /// Threads that may be kept on a core.
    fn is_steady(&self, thread: &ThreadView<'_>) -> bool {
        thread.lifecycle.is_settled()
            && thread.state == RunState::Runnable
            && self.ready(thread) >= STEADY
    }

    /// What each program asks for, without threads that have cores of their own.
    fn loads(
        &self,
        view: &View<'_>,
        domains: &[Domain],
        owned: &BTreeMap<ThreadId, CpuSet>,
    ) -> BTreeMap<ProgramId, Load> {
        let mut loads: BTreeMap<ProgramId, Load> = BTreeMap::new();
        for thread in view.threads.iter().filter(|t| !owned.contains_key(&t.id)) {
            let ready = self.ready(thread);
            let allowed = view.allowed(thread);
            if ready <= 0.0 || allowed.is_empty() {
                continue;
            }
            let load = loads.entry(thread.program).or_default();
            load.ready += ready;
            if !load.allowed.contains(&allowed) {
                load.allowed.push(allowed);
            }
            let domain =
                domains.iter().find(|d| thread.cpu.is_some_and(|cpu| d.cpus.contains(cpu)));
            if let Some(domain) = domain {
                *load.there.entry(domain.id).or_default() += ready;
            }
        }
        loads.retain(|_, load| load.ready >= BUSY);
        for (program, load) in &mut loads {
            let lost = domains.iter().filter_map(|domain| {
                let lost = self.caches.loss(*program, domain.cache?)?;
                Some((domain.id, load.ready * lost))
            });
            load.lost = lost.collect();
        }
        loads
    }

    /// The threads that are grouped on cores, with the CPUs of their domains.
    fn shown(&self, view: &View<'_>, decision: &Decision<'_>) -> Vec<(usize, CpuSet)> {
        if decision.usable.crowded {
            return Vec::new();
        }
        let mut shown = Vec::new();
        let mut ready: Vec<(CpuSet, f64)> = Vec::new();
        for (at, thread) in view.threads.iter().enumerate() {
            let cpus = decision.within(view, thread);
            let free = decision.owned(thread).is_none() && !cpus.is_empty();
            if free {
                match ready.iter_mut().find(|(known, _)| *known == cpus) {
                    Some((_, sum)) => *sum += self.ready(thread),
                    None => ready.push((cpus.clone(), self.ready(thread))),
                }
            }
            // A trial hides nothing: what is measured meanwhile is of use.
            if free && self.is_steady(thread) && !decision.pays.is_released(thread.program) {
                shown.push((at, cpus));
            }
        }
        let crowded = |cpus: &CpuSet| {
            let there = ready.iter().filter(|(known, _)| !known.is_disjoint(cpus));
            there.map(|(_, sum)| sum).sum::<f64>() > cpus.len() as f64 + 0.5
        };
        let speeds = view.topology.speed_groups();
        let uneven = |cpus: &CpuSet| {
            let mut cores = (view.topology.cores().iter())
                .map(|core| (speeds.of_core(core), core.cpus.intersection(cpus).len()))
                .filter(|(_, width)| *width > 0);
            let first = cores.next();
            cores.any(|core| Some(core) != first)
        };
        shown.retain(|(_, cpus)| !crowded(cpus) && !uneven(cpus));
        shown
    }
}

impl Decision<'_> {
    /// The assignment of a thread that has a core of its own.
    fn owned(&self, thread: &ThreadView<'_>) -> Option<&Assignment> {
        self.phases.as_ref()?.get(&thread.id).filter(|_| self.owned.contains_key(&thread.id))
    }

    fn domain(&self, thread: &ThreadView<'_>) -> Option<&Domain> {
        let home = self.homes.get(&thread.program)?;
        self.domains.iter().find(|domain| domain.id == *home)
    }

    /// The CPUs that a thread without a core of its own shares with others; empty if none is left.
    fn within(&self, view: &View<'_>, thread: &ThreadView<'_>) -> CpuSet {
        let allowed = thread.allowed.intersection(&self.usable.cpus);
        let allowed = if allowed.is_empty() { view.allowed(thread) } else { allowed };
        let rest = match allowed.intersection(&self.rest) {
            none if none.is_empty() => allowed,
            rest => rest,
        };
        match self.domain(thread).map(|domain| rest.intersection(&domain.cpus)) {
            Some(there) if !there.is_empty() => there,
            _ => rest,
        }
    }

    fn assign(&self, view: &View<'_>, thread: &ThreadView<'_>, ready: f64) -> Assignment {
        let urgent = self.phases.as_ref().and_then(|phases| phases.get(&thread.id));
        if view.allowed(thread).is_empty() {
            return Assignment::os(OFFLINE);
        }
        if !thread.lifecycle.is_settled() {
            return urgent.cloned().unwrap_or_else(|| Assignment::os(NOT_SETTLED));
        }
        if let Some(why) = self.pays.released(thread.program) {
            return Assignment::os(why);
        }
        if let Some(owned) = self.owned(thread) {
            return Assignment {
                reason: format!("phases: {}", owned.reason).into(),
                ..owned.clone()
            };
        }
        let priority = urgent.map_or(Priority::Normal, |assignment| assignment.priority);
        let cpus = self.within(view, thread);
        let mut reason = match self.domain(thread) {
            Some(domain) => {
                let cache = self.caches.reason(thread.program, domain, &self.domains);
                let why = cache.unwrap_or_else(|| "fits there".to_owned());
                format!("{}: its program {why}", domain.name)
            }
            None if self.domains.len() > 1 => "its program fits no domain".to_owned(),
            None => "one domain".to_owned(),
        };
        if !self.owned.is_empty() {
            reason += "; next to cores of serial threads";
        }
        if self.avoids {
            reason += "; CPUs with unmanaged load are avoided";
        }
        let mut assignment = Assignment::on(cpus.clone(), "");
        match self.groups.get(&thread.id) {
            Some(held) => {
                if let Some(core) = held.core.clone().filter(|core| !core.is_empty()) {
                    assignment = Assignment::on(core, "");
                    assignment.predicted_slowdown = held.predicted;
                }
                reason += &format!("; {}: {}", self.chosen, held.reason);
            }
            None if self.usable.crowded => {
                reason += "; too many CPUs are shared with unmanaged load: no groups";
            }
            None if ready < STEADY => {
                reason += &format!("; ready for {ready:.2} of its time: in no group");
            }
            None => reason += "; no groups on a core",
        }
        if assignment.target == Target::Cpus(view.allowed(thread)) {
            assignment.target = Target::Os;
        }
        Assignment { priority, reason: reason.into(), ..assignment }
    }
}

impl Policy for Auto {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn requirements(&self) -> Requirements {
        let mut requirements = self.phases.requirements();
        requirements.required.extend(self.choice.required());
        if self.counts_instructions {
            requirements.required.insert(Signal::Ipc);
        }
        if self.unequal.counts {
            requirements.optional.insert(Signal::CacheMisses);
        }
        let mut alternatives = choice::signals(&self.settings);
        alternatives.insert(Signal::CacheMisses);
        Requirements { alternatives, ..requirements }
    }

    fn offer(&mut self, offered: &Support, topology: &Topology) -> Option<String> {
        self.phases.offer(offered, topology);
        self.choice = Choice::on(offered, topology, &self.settings);
        self.counts_instructions = offered.signals.get(&Signal::Ipc).is_some_and(Ability::exists);
        let domains = match self.choice.places_by_memory() {
            true => Vec::new(),
            false => domains(topology, &topology.cpus()),
        };
        self.domains = domains.len().max(1);
        self.unequal = Unequal::of(offered, &domains);
        None
    }

    fn choice(&self) -> Option<String> {
        let domains = match self.domains {
            0 | 1 => "one domain of cores".to_owned(),
            several => format!("{several} domains of cores"),
        };
        let domains = match &self.unequal.text {
            Some(caches) => format!("{domains}, {caches}"),
            None => domains,
        };
        let grouped = match self.choice.name() {
            Some(name) => format!("groups on a core by {name} ({})", self.choice.why),
            None => self.choice.why.clone(),
        };
        Some(format!("serial phases first; {domains}; {grouped}"))
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        let over = view.threads.iter().filter_map(|t| t.did).map(|did| did.over).max();
        let over = over.unwrap_or_default();
        self.smooth(view, over);
        let ready: f64 = view.threads.iter().map(|thread| self.ready(thread)).sum();
        let choice = &self.choice;
        let achieved = |thread| choice.groups.as_ref()?.1.achieved_slowdown(thread);
        self.pays.learn(view, &achieved, ready, over);
        // Where all programs are held to a part of the machine, that part is the machine.
        let mut reduced = view.clone();
        reduced.online = reach(view);
        self.unmanaged.learn(&reduced, over);
        let usable = self.unmanaged.usable(&reduced, ready);
        let avoids = usable.cpus != reduced.online;
        reduced.online = usable.cpus.clone();
        let programs = self.phases.programs(&reduced);
        let phases = self.phases.decide(&reduced);
        let phases = asks_phases(&programs).then(|| phases.placement(&reduced));
        let nothing = BTreeMap::new();
        let owned = if phases.is_some() { self.phases.owned() } else { &nothing };
        let rest = owned.values().fold(usable.cpus.clone(), |rest, cpus| rest.difference(cpus));
        let domains = match self.choice.places_by_memory() {
            true => Vec::new(),
            false => domains(view.topology, &rest),
        };
        // Without threads there is no reach to divide: what is known of the machine stays.
        if !domains.is_empty() {
            self.domains = domains.len();
        }
        self.caches.learn(&reduced, &domains, over);
        let loads = self.loads(&reduced, &domains, owned);
        let homes = self.homes.decide(&domains, &loads, over);
        let mut decision = Decision {
            usable,
            avoids,
            phases,
            owned,
            rest,
            domains,
            caches: &self.caches,
            homes,
            groups: BTreeMap::new(),
            pays: &self.pays,
            chosen: self.choice.name().unwrap_or_default(),
        };
        let shown = self.shown(&reduced, &decision);
        decision.groups = self.groups.decide(&mut self.choice, &reduced, &shown, over).clone();
        let assign = |thread: &ThreadView<'_>| {
            let ready = self.ready.get(&thread.id).copied().unwrap_or_default();
            (thread.id, decision.assign(view, thread, ready))
        };
        view.threads.iter().map(assign).collect()
    }

    fn achieved_slowdown(&self, thread: ThreadId) -> Option<f64> {
        self.choice.groups.as_ref()?.1.achieved_slowdown(thread)
    }

    fn stack_alone(&self, thread: ThreadId) -> Option<Vec<(&str, f64)>> {
        self.choice.groups.as_ref()?.1.stack_alone(thread)
    }

    fn foresight(&self, view: &View<'_>) -> Option<Box<dyn Foresight>> {
        self.choice.groups.as_ref()?.1.foresight(view)
    }

    fn learned(&self) -> Option<LearnedPairs> {
        self.choice.groups.as_ref()?.1.learned()
    }

    fn learned_of(&self, thread: ThreadId, co_runner: ThreadId) -> Option<f64> {
        self.choice.groups.as_ref()?.1.learned_of(thread, co_runner)
    }

    fn gain_over_chance(&self) -> Option<f64> {
        self.choice.groups.as_ref()?.1.gain_over_chance()
    }

    fn findings(&self) -> Vec<Finding> {
        let times = |name: &str, count: u64| Finding::new(name, count as f64, "times");
        let groups = match self.choice.name() {
            Some(name) => format!("auto: groups on a core decided by {name}"),
            None => "auto: no groups on a core".to_owned(),
        };
        let mut findings = vec![
            times(&groups, self.groups.decisions),
            Finding::new("auto: domains", self.domains as f64, "domains"),
            times("auto: programs moved to another domain", self.homes.moves),
            times("auto: CPUs found shared with unmanaged load", self.unmanaged.found),
            times("auto: trials without placement", self.pays.trials),
            times("auto: programs released", self.pays.releases),
        ];
        for (ProgramId(program), share) in self.pays.verdicts() {
            let name = format!("auto: progress of program {program}, placed over not placed");
            findings.push(Finding::new(name, share, "1"));
        }
        for (ProgramId(program), slowdowns) in &self.pays.slowdowns {
            let quanta = slowdowns.quanta.max(1) as f64;
            for (word, sum) in
                [("predicted", slowdowns.predicted), ("achieved", slowdowns.achieved)]
            {
                let name = format!("auto: {word} slowdown of program {program}");
                findings.push(Finding::new(name, sum / quanta, "1"));
            }
        }
        findings.extend(self.phases.findings());
        findings.extend(self.choice.groups.iter().flat_map(|(_, policy)| policy.findings()));
        findings
    }
}

/// Do serial threads get cores of their own? Only where parallel programs run: among serial ones none
/// holds up more than itself.
fn asks_phases(programs: &BTreeMap<ProgramId, ProgramPhase>) -> bool {
    programs.values().any(|program| program.phase == Phase::Parallel)
}
