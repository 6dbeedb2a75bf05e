//! A node as jobs are put on it, and the job for which it is kept.

use crate::{Job, Node, ProgramNumber};

/// A node with the jobs that run there, and those that were put there.
#[derive(Debug)]
pub(super) struct OpenNode<'a> {
    pub name: &'a str,
    pub slots: usize,
    pub free: usize,
    /// When each of its jobs ends by its limit, and the slots that it takes.
    ends: Vec<(f64, usize)>,
    /// The programs of its jobs, sorted, so that equal sets are predicted once.
    pub running: Vec<ProgramNumber>,
    /// The number of this set of programs.
    pub set: usize,
    reservation: Option<Reservation>,
}

/// A job for which a node is kept.
#[derive(Debug)]
struct Reservation {
    job: u64,
    /// When there is room for it, by the limits of what runs.
    from_s: f64,
    /// Slots that are free next to it then.
    spare: usize,
}

impl<'a> OpenNode<'a> {
    pub fn new(node: &'a Node) -> Self {
        let mut running: Vec<ProgramNumber> = node.running.iter().map(|job| job.program).collect();
        running.sort_unstable();
        Self {
            name: &node.name,
            slots: node.slots,
            free: node.free.min(node.slots),
            ends: node.running.iter().map(|job| (job.ends_s, job.slots)).collect(),
            running,
            set: 0,
            reservation: None,
        }
    }

    /// The job for which it is kept.
    pub fn kept_for(&self) -> Option<u64> {
        self.reservation.as_ref().map(|kept| kept.job)
    }

    /// Does a job fit, without delaying the one for which the node is kept?
    pub fn takes(&self, job: &Job, now_s: f64) -> bool {
        let slots = job.slots.max(1);
        let delays =
            |kept: &Reservation| !ends_by(now_s + job.limit_s, kept.from_s) && slots > kept.spare;
        slots <= self.free && !self.reservation.as_ref().is_some_and(delays)
    }

    /// When so many slots are free, by the limits of what runs, and how many are free then. Infinite: not known.
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
        self.reservation =
            Some(Reservation { job: job.id, from_s, spare: free.saturating_sub(job.slots) });
    }

    /// Starts a job.
    pub fn put(&mut self, job: &Job, now_s: f64) {
        let (slots, ends_s) = (job.slots.max(1), now_s + job.limit_s);
        self.free = self.free.saturating_sub(slots);
        self.ends.push((ends_s, slots));
        if let Some(kept) = self.reservation.as_mut().filter(|kept| !ends_by(ends_s, kept.from_s)) {
            kept.spare = kept.spare.saturating_sub(slots);
        }
        let place = self.running.partition_point(|&program| program < job.program);
        self.running.insert(place, job.program);
    }
}

/// Does a job that ends at `ends_s` by its limit end by a time? Never by one that is not known.
fn ends_by(ends_s: f64, time_s: f64) -> bool {
    time_s.is_finite() && ends_s <= time_s
}
