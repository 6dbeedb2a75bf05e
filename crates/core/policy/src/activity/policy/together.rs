//! As many ready threads as hardware threads, or fewer: those of a core overlap least.

use std::collections::BTreeMap;

use symbiont_machine::{Assignment, Placement};
use symbiont_matching::{GroupError, Request, group};

use super::{Activity, Jobs};
use crate::View;
use crate::core_slots::{CoreSlots, Group, Pool, home};

impl Activity {
    /// Each ready thread has a hardware thread: those of a core overlap least.
    pub(super) fn together(
        &mut self,
        view: &View<'_>,
        pool: &Pool,
        slots: &mut CoreSlots,
        placement: &mut Placement,
    ) {
        let jobs = self.jobs(view, pool);
        for id in &jobs.ids {
            if let Some(state) = self.threads.get_mut(id) {
                state.turn = None;
                state.resident += 1;
            }
        }
        let width = slots.width(pool);
        if width <= 1 {
            let alone = Assignment::os("no two hardware threads that it may use share a core");
            placement.extend(jobs.ids.iter().map(|id| (*id, alone.clone())));
            return;
        }
        match self.matched(view, pool, &jobs, (slots.cores(pool), width)) {
            Ok(groups) => slots.assign(view, pool, &groups, placement),
            Err(why) => {
                let left = Assignment::os(why.to_string());
                placement.extend(jobs.ids.iter().map(|id| (*id, left.clone())));
            }
        }
    }

    fn matched(
        &self,
        view: &View<'_>,
        pool: &Pool,
        jobs: &Jobs<'_>,
        (cores, width): (usize, usize),
    ) -> Result<Vec<Group>, GroupError> {
        let count = jobs.jobs.len();
        // Groups are built from pairs.
        let width = 1 << width.ilog2();
        let pairs: Vec<Vec<f64>> = jobs
            .jobs
            .iter()
            .map(|one| jobs.jobs.iter().map(|other| self.overlap(one, &[other])).collect())
            .collect();
        let overlap = |members: &[usize]| -> f64 {
            let each = members.iter().enumerate();
            each.flat_map(|(n, one)| members.iter().take(n).map(|other| pairs[*one][*other])).sum()
        };
        let previous = before(view, pool);
        let cores = cores.max(count.div_ceil(width));
        let request = Request { previous: &previous, ..Request::new(count, cores, width) };
        let grouping = group(&request, overlap)?;
        let named = |members: Vec<usize>| {
            let others = |at: usize| members.iter().copied().filter(move |other| *other != at);
            let words = |at: &usize| {
                let others: Vec<usize> = others(*at).collect();
                let name = jobs.names.get(*at).copied().unwrap_or_default();
                format!("{name}: {}", jobs.words(self, *at, &others))
            };
            let reason = members.iter().map(words).collect::<Vec<_>>().join("; ");
            let members = members.iter().filter_map(|at| pool.threads.get(*at).copied()).collect();
            Group { members, reason: reason.into() }
        };
        Ok(grouping.groups.into_iter().map(named).collect())
    }
}

/// The threads of a pool that share a core now, by their number in it.
fn before(view: &View<'_>, pool: &Pool) -> Vec<Vec<usize>> {
    let mut cores: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (number, &at) in pool.threads.iter().enumerate() {
        let core = view.threads.get(at).and_then(home).and_then(|pu| view.topology.core_of(pu));
        if let Some(core) = core {
            cores.entry(core.id).or_default().push(number);
        }
    }
    cores.into_values().collect()
}
