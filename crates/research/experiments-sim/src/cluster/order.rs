//! Which jobs start now: in the order of the queue, with later jobs filled in (backfilling), or by partners.

use symbiont_jobs::{Job, Node, Predict, Rules, choose};

/// Decides which jobs start.
pub enum Scheduler<'p, P> {
    /// In the order of the queue; a job that does not fit holds up those behind it.
    FirstCome,
    /// The same, but a later job starts where it does not delay the first that does not fit, as far as the
    /// times that users asked for show (EASY, with one reservation).
    Backfill,
    /// Jobs whose predicted slowdowns together are least, by the rules of `symbiont slurm`.
    Partners(&'p P, Rules),
}

/// What a scheduler sees.
pub(super) struct Moment<'m> {
    /// In the order of the queue.
    pub queue: &'m [Job],
    pub nodes: &'m [Node],
    pub now_s: f64,
}

impl<P: Predict> Scheduler<'_, P> {
    /// Jobs to start, each with the index of its node.
    pub(super) fn start(&self, moment: &Moment<'_>) -> Vec<(u64, usize)> {
        match self {
            Self::FirstCome => in_order(moment, false),
            Self::Backfill => in_order(moment, true),
            Self::Partners(predict, rules) => {
                let place = |name: &str| moment.nodes.iter().position(|node| node.name == name);
                choose(moment.queue, moment.nodes, moment.now_s, rules, *predict)
                    .releases
                    .into_iter()
                    .filter_map(|release| Some((release.job, place(&release.node)?)))
                    .collect()
            }
        }
    }
}

/// Slots that are free, by node, with those of one slot apart: nodes with one job are filled first.
struct Free {
    slots: Vec<usize>,
    half: Vec<usize>,
    whole: Vec<usize>,
}

impl Free {
    fn new(nodes: &[Node]) -> Self {
        let slots: Vec<usize> = nodes.iter().map(|node| node.free).collect();
        let of = |free: usize| (0..slots.len()).rev().filter(|&at| slots[at] == free).collect();
        Self { half: of(1), whole: of(2), slots }
    }

    /// The node that a job takes, if one has room: nodes with the fewest jobs first, as `symbiont slurm` does.
    fn take(&mut self, slots: usize) -> Option<usize> {
        let node = match slots {
            1 if self.whole.is_empty() => self.half.pop()?,
            _ => self.whole.pop()?,
        };
        self.slots[node] -= slots.min(self.slots[node]);
        if self.slots[node] == 1 {
            self.half.push(node);
        }
        Some(node)
    }
}

fn in_order(moment: &Moment<'_>, backfill: bool) -> Vec<(u64, usize)> {
    let mut free = Free::new(moment.nodes);
    let mut started = Vec::new();
    // When, by what users asked for, a whole node is free for the job that does not fit.
    let mut reserved: Option<(f64, usize)> = None;
    for job in moment.queue {
        if free.half.is_empty() && free.whole.is_empty() {
            break;
        }
        if let Some((begins_s, node)) = reserved {
            if job.slots > 1 {
                continue;
            }
            // A job that ends before the reservation begins may run on its node, too.
            let ends_early = moment.now_s + job.limit_s <= begins_s;
            let kept = free.half.iter().position(|&at| at == node).filter(|_| !ends_early);
            if let Some(at) = kept {
                free.half.remove(at);
            }
            let taken = free.take(1);
            if kept.is_some() {
                free.half.push(node);
            }
            match taken {
                Some(at) => started.push((job.id, at)),
                None => continue,
            }
            continue;
        }
        match free.take(job.slots) {
            Some(node) => started.push((job.id, node)),
            None if backfill => reserved = earliest(moment, &free),
            None => break,
        }
    }
    started
}

/// The node that is free as a whole first, and when.
fn earliest(moment: &Moment<'_>, free: &Free) -> Option<(f64, usize)> {
    let ends = |node: usize| {
        let running = moment.nodes[node].running.iter();
        running.map(|job| job.ends_s).fold(moment.now_s, f64::max)
    };
    // Nodes that were given a job right now have no time yet.
    let nodes = (0..moment.nodes.len()).filter(|&node| free.slots[node] == moment.nodes[node].free);
    nodes.map(|node| (ends(node), node)).min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
}
