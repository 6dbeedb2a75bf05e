//! Where the caller of a nudge runs meanwhile.
//!
//! A thread that runs is narrow until its CPU was interrupted to let it go, which takes some twenty microseconds,
//! more on a busy machine; one that is only queued is moved within the call. So the caller goes to the thread's CPU
//! first, which displaces it, and narrows and widens it from there. Of 2,500 nudges of two to five threads that read
//! their masks all the time on two CPUs, 18 were seen; without it, one in seven (kernel 6.18).
//!
//! It goes only where it may run anyway, so that it stays off cores that it keeps off
//! ([`super::super::launch::OwnCpus`]), and has its own mask again at the end
//! (`the_caller_runs_where_it_was_sent_and_has_its_mask_again`).

use symbiont_topology::{CpuSet, PuId};

use super::affinity;
use super::settings::Mask;

/// The calling thread, while it goes from CPU to CPU; dropped, it has its own mask again.
#[derive(Debug)]
pub(super) struct Standing {
    /// What it may use.
    own: CpuSet,
    /// The same, as it is to be restored.
    saved: Mask,
    cpuset: CpuSet,
    at: Option<PuId>,
}

impl Standing {
    /// The calling thread as it is, in a cpuset; none where the kernel does not say.
    pub fn begin(cpuset: &CpuSet) -> Option<Self> {
        let own = affinity::get(None).ok()?;
        let saved = Mask::classify(own.clone(), cpuset);
        Some(Self { own, saved, cpuset: cpuset.clone(), at: None })
    }

    /// Goes to a CPU, if it may. One that cannot be gone to is left out: the nudge only takes longer.
    pub fn on(&mut self, cpu: PuId) {
        if self.at == Some(cpu) || !self.own.contains(cpu) {
            return;
        }
        if affinity::set(None, Some(&CpuSet::from(cpu))).is_ok() {
            self.at = Some(cpu);
        }
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        if self.at.is_some() {
            // A caller whose CPUs have gone meanwhile has what the kernel gave it.
            let _ = affinity::set(None, self.saved.to_write(&self.cpuset));
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::thread::sched_getcpu;

    use super::*;

    #[test]
    fn the_caller_runs_where_it_was_sent_and_has_its_mask_again() {
        let all = affinity::get(None).unwrap();
        let last = all.iter().last().unwrap();
        // A mask of its own, and all.
        for own in [CpuSet::from(last), all.clone()] {
            affinity::set(None, Some(&own)).unwrap();
            let mut standing = Standing::begin(&all).unwrap();
            for cpu in all.iter() {
                standing.on(cpu);
                assert!(own.contains(PuId(u32::try_from(sched_getcpu()).unwrap())));
                assert!(!own.contains(cpu) || sched_getcpu() == cpu.0 as usize);
            }
            drop(standing);
            assert_eq!(affinity::get(None).unwrap(), own);
        }
    }
}
