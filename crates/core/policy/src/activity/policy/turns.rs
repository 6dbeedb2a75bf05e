//! More ready threads than hardware threads: they take turns, and the others are in the idle class.

use std::collections::BTreeMap;

use symbiont_machine::{Assignment, Placement, Priority};
use symbiont_topology::{CpuSet, PuId, Topology};

use super::{Activity, Jobs, Turn};
use crate::View;
use crate::activity::{Job, choose};
use crate::core_slots::Pool;

/// Quanta after which a machine that put no thread in the idle class is taken to refuse it.
const TIMEOUT: u32 = 3;

impl Activity {
    /// More ready threads than hardware threads: they take turns.
    pub(super) fn in_turn(&mut self, view: &View<'_>, pool: &Pool, placement: &mut Placement) {
        let jobs = self.jobs(view, pool);
        let refused = (self.unheeded >= TIMEOUT).then_some(
            "none is in the idle class that should be: are its programs of one session?",
        );
        if let Some(why) = self.no_idle_class.as_deref().or(refused) {
            let reason = format!("more threads than hardware threads, and {why}");
            for id in &jobs.ids {
                placement.insert(*id, Assignment::os(reason.clone()));
                if let Some(state) = self.threads.get_mut(id) {
                    state.turn = None;
                }
            }
            return;
        }
        let domains = domains(view.topology, &pool.allowed);
        for (cpus, members) in domains.iter().zip(self.parted(&jobs, &domains)) {
            self.take_turns(&jobs, cpus, &members, placement);
        }
    }

    /// The jobs of each domain: those of before, as far as there is room.
    fn parted(&self, jobs: &Jobs<'_>, domains: &[CpuSet]) -> Vec<Vec<usize>> {
        let places: usize = domains.iter().map(CpuSet::len).sum();
        let mut parted: Vec<Vec<usize>> = vec![Vec::new(); domains.len()];
        let quota = |at: usize| (jobs.ids.len() * domains[at].len()).div_ceil(places.max(1));
        let mut homeless = Vec::new();
        for (job, id) in jobs.ids.iter().enumerate() {
            let turn = self.threads.get(id).and_then(|state| state.turn);
            let own =
                domains.iter().position(|it| turn.is_some_and(|turn| it.contains(turn.domain)));
            match own.filter(|at| parted[*at].len() < quota(*at)) {
                Some(at) => parted[at].push(job),
                None => homeless.push(job),
            }
        }
        for job in homeless {
            let room = |at: &usize| (parted[*at].len() + 1) as f64 / domains[*at].len() as f64;
            let emptiest = (0..domains.len()).min_by(|a, b| room(a).total_cmp(&room(b)));
            if let Some(at) = emptiest {
                parted[at].push(job);
            }
        }
        parted.iter_mut().for_each(|members| members.sort_unstable());
        parted
    }

    /// The jobs of a domain, some of which run in this quantum.
    fn take_turns(
        &mut self,
        jobs: &Jobs<'_>,
        cpus: &CpuSet,
        members: &[usize],
        placement: &mut Placement,
    ) {
        let Some(domain) = cpus.first() else { return };
        let own: Vec<Job> = members.iter().filter_map(|at| jobs.jobs.get(*at)).cloned().collect();
        let runs_on = |member: &usize| {
            let state = self.threads.get(jobs.ids.get(*member)?)?;
            state.turn?.runs_on
        };
        let running: Vec<Option<usize>> = cpus
            .iter()
            .map(|cpu| members.iter().position(|member| runs_on(member) == Some(cpu)))
            .collect();
        let chosen = choose(&own, &running, &self.weights);
        let all: Vec<usize> =
            chosen.iter().flatten().filter_map(|at| members.get(*at)).copied().collect();
        let places: BTreeMap<usize, PuId> = chosen
            .iter()
            .zip(cpus.iter())
            .filter_map(|(at, cpu)| Some((*members.get((*at)?)?, cpu)))
            .collect();
        for member in members {
            let Some(id) = jobs.ids.get(*member) else { continue };
            let others: Vec<usize> = all.iter().copied().filter(|other| other != member).collect();
            let words = jobs.words(self, *member, &others);
            let Some(state) = self.threads.get_mut(id) else { continue };
            let ran = state.turn.is_some_and(|turn| turn.runs_on.is_some());
            let runs_on = places.get(member).copied();
            state.turn = Some(Turn { domain, runs_on });
            if ran != runs_on.is_some() {
                state.since = self.quantum;
            }
            let assignment = match runs_on {
                Some(cpu) => {
                    state.resident += 1;
                    Assignment::on(cpu.into(), format!("its turn: {words}"))
                }
                None => Assignment {
                    priority: Priority::Idle,
                    ..Assignment::on(cpus.clone(), format!("waits for its turn: {words}"))
                },
            };
            placement.insert(*id, assignment);
        }
    }
}

/// Sets of allowed hardware threads that share caches: those of a core; where no core has two, those of a
/// last-level cache.
fn domains(topology: &Topology, allowed: &CpuSet) -> Vec<CpuSet> {
    let own = |cpus: &CpuSet| Some(cpus.intersection(allowed)).filter(|cpus| !cpus.is_empty());
    let cores: Vec<CpuSet> = topology.cores().iter().filter_map(|core| own(&core.cpus)).collect();
    if cores.iter().any(|cpus| cpus.len() > 1) {
        return cores;
    }
    topology.llcs().iter().filter_map(|llc| own(&llc.cpus)).collect()
}
