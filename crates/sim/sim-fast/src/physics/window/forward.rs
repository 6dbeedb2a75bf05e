//! Store-to-load forwarding: a load that reads what an undrained store wrote.
//!
//! # Approach
//! A load waits for the youngest store to its bytes as for a source. If that wrote all of them, they come
//! from the store queue after the forwarding latency; else the load waits until the store has drained, and
//! takes longer than a hit. A core that renames memory hands the stored register at once to what depends on
//! the load, which itself still goes to the store queue to verify it. No dependence is mispredicted.
//!
//! # Properties
//! `a_chain_through_memory_takes_its_forwarding`, `a_renamed_chain_takes_no_forwarding`,
//! `a_partial_store_is_waited_for_until_it_drained`, `stores_that_drained_forward_nothing`.

use symbiont_profile::{FromStore, OpClass};

use super::account::{Ticks, Wait, cycle};
use super::{HISTORY, Op, Pipeline, RunContext, Window};

/// A store that was issued.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IssuedStore {
    /// When the register that it stores was there.
    pub(super) data: u32,
    pub(super) issue: u32,
    /// When it was in the cache.
    pub(super) drained: Ticks,
}

/// What a load waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    from: FromStore,
    pub(super) data: u32,
    issue: u32,
    drained: u32,
}

impl Source {
    /// Does the core hand the register on?
    pub(super) fn renamed(&self, pipeline: &Pipeline) -> bool {
        pipeline.forwarding.renames && self.from.whole && self.from.same_form
    }
}

impl Window {
    /// The store that a load gets its bytes from, unless it has drained when the load could be issued.
    pub(super) fn source(&self, ops: &[Op], index: usize, ready: u32) -> Option<Source> {
        let op = ops.get(index)?;
        let from = op.stored?;
        let back = usize::from(from.back);
        if back > index.min(HISTORY - 1) {
            return None;
        }
        ops.get(index - back).filter(|store| store.class == OpClass::Store)?;
        let IssuedStore { data, issue, drained } = self.stored[(index - back) % HISTORY];
        let drained = cycle(drained);
        (drained > ready).then_some(Source { from, data, issue, drained })
    }

    /// Issues a load that waits for a store: when it issues, when it is done, and what it waits for then.
    pub(super) fn forward(
        &mut self,
        fixed: &RunContext<'_>,
        op: &Op,
        store: &Source,
        ready: u32,
        now: u32,
    ) -> (u32, u32, Wait) {
        let pipeline = fixed.pipeline;
        let kind = fixed.kinds[op.class as usize];
        let (from, latency) = if store.from.whole {
            (store.issue + 1, pipeline.forwarding.latency.saturating_sub(1).max(1))
        } else {
            (store.drained, pipeline.forwarding.partial)
        };
        let issue = self.ports.issue(kind.able, kind.busy, ready.max(from), now);
        (issue, issue + latency, Wait::L1)
    }

    /// When the register was made that a store stores: the younger of its sources.
    pub(super) fn data(&self, op: &Op, index: usize) -> u32 {
        let back = usize::from(op.sources[0]);
        let known = op.class == OpClass::Store && back > 0 && back <= index.min(HISTORY - 1);
        if known { self.times[(index - back) % HISTORY].done } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LONG, about, environment, op, pipeline, trace};
    use super::*;
    use crate::description::Forwarding;

    fn stored(back: u16, whole: bool, same_form: bool) -> Op {
        Op { stored: Some(FromStore { back, whole, same_form }), ..op(OpClass::Load) }
    }

    /// Cycles per round of a load, an addition to it and a store of the sum. What the load reads was stored so many
    /// rounds ago.
    fn rounds(renames: bool, rounds: u16, whole: bool, same_form: bool) -> f64 {
        let pipeline =
            Pipeline { forwarding: Forwarding { renames, ..pipeline().forwarding }, ..pipeline() };
        let trace = trace(LONG, |index| match index % 3 {
            0 if rounds > 0 && index >= 3 * u32::from(rounds) => {
                stored(3 * rounds - 2, whole, same_form)
            }
            0 => op(OpClass::Load),
            1 => Op { sources: [1, 0], ..op(OpClass::Integer) },
            _ => Op { sources: [1, 0], ..op(OpClass::Store) },
        });
        3.0 * Window::default().run(&pipeline, &trace, &environment(&pipeline)).cpi
    }

    #[test]
    fn a_chain_through_memory_takes_its_forwarding() {
        about(rounds(false, 1, true, true), 5.0 + 1.0);
        about(rounds(true, 1, true, false), 5.0 + 1.0);
        // Two chains side by side.
        about(rounds(false, 2, true, true), 3.0);
        // Nothing depends on anything: a store a cycle.
        about(rounds(false, 0, true, true), 1.0);
    }

    #[test]
    fn a_renamed_chain_takes_no_forwarding() {
        about(rounds(true, 1, true, true), 1.0);
    }

    #[test]
    fn a_partial_store_is_waited_for_until_it_drained() {
        // Issued, it is done and retires a cycle later.
        about(rounds(false, 1, false, true), 1.0 + 12.0 + 1.0);
        about(rounds(true, 1, false, true), 1.0 + 12.0 + 1.0);
    }

    #[test]
    fn stores_that_drained_forward_nothing() {
        // A hundred rounds later.
        about(rounds(false, 100, true, true), 1.0);
        about(rounds(false, 100, false, true), 1.0);
    }
}
