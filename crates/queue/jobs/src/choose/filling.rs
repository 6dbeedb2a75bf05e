//! A node as it fills, and what is kept of it.

use crate::{Job, Node, Program};

/// A node as it fills.
#[derive(Debug)]
pub(super) struct Filling<'a> {
    pub name: &'a str,
    pub slots: usize,
    pub free: usize,
    /// Of what runs and of what was put there: when each ends by its limit, and the slots that it takes.
    ends: Vec<(f64, usize)>,
    /// Sorted, so that equal sets are predicted once.
    pub running: Vec<Program>,
    /// Number of this set.
    pub set: usize,
    kept: Option<Kept>,
}

/// A job for which a node is kept.
#[derive(Debug)]
struct Kept {
    job: u64,
    /// When it has room, by the limits of what runs.
    from_s: f64,
    /// Slots that it leaves free then.
    spare: usize,
}

impl<'a> Filling<'a> {
    pub fn new(node: &'a Node) -> Self {
        let mut running: Vec<Program> = node.running.iter().map(|job| job.program).collect();
        running.sort_unstable();
        Self {
            name: &node.name,
            slots: node.slots,
            free: node.free.min(node.slots),
            ends: node.running.iter().map(|job| (job.ends_s, job.slots)).collect(),
            running,
            set: 0,
            kept: None,
        }
    }

    /// The job that it is kept for.
    pub fn kept_for(&self) -> Option<u64> {
        self.kept.as_ref().map(|kept| kept.job)
    }

    /// Does a job fit? On a node that is kept for another it must have ended when that one has room, or fit next
    /// to it.
    pub fn takes(&self, job: &Job, now_s: f64) -> bool {
        let slots = job.slots.max(1);
        let delays = |kept: &Kept| !ends_by(now_s + job.limit_s, kept.from_s) && slots > kept.spare;
        slots <= self.free && !self.kept.as_ref().is_some_and(delays)
    }

    /// When so many slots are free, by the limits of what runs, and how many are then; infinite if that is not
    /// known.
    pub fn room(&self, slots: usize, now_s: f64) -> (f64, usize) {
        if self.free >= slots {
            return (now_s, self.free);
        }
        let finite = self.ends.iter().filter(|(ends_s, _)| ends_s.is_finite());
        let mut ends: Vec<_> = finite.copied().collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = self.free;
        for all in ends.chunk_by(|a, b| a.0 == b.0) {
            free += all.iter().map(|(_, slots)| slots).sum::<usize>();
            if free >= slots {
                return (all[0].0.max(now_s), free);
            }
        }
        (f64::INFINITY, slots)
    }

    /// Keeps it for a job.
    pub fn keep(&mut self, job: &Job, now_s: f64) {
        let (from_s, free) = self.room(job.slots, now_s);
        self.kept = Some(Kept { job: job.id, from_s, spare: free.saturating_sub(job.slots) });
    }

    /// Starts a job.
    pub fn put(&mut self, job: &Job, now_s: f64) {
        let (slots, ends_s) = (job.slots.max(1), now_s + job.limit_s);
        self.free = self.free.saturating_sub(slots);
        self.ends.push((ends_s, slots));
        if let Some(kept) = self.kept.as_mut().filter(|kept| !ends_by(ends_s, kept.from_s)) {
            kept.spare = kept.spare.saturating_sub(slots);
        }
        let place = self.running.partition_point(|&program| program < job.program);
        self.running.insert(place, job.program);
    }
}

/// Does what ends then, by its limit, end by this time? Not where there is none.
fn ends_by(ends_s: f64, time_s: f64) -> bool {
    time_s.is_finite() && ends_s <= time_s
}
