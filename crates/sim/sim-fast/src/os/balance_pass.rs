//! One balance pass of a busy hardware thread, by the rules that
//! [`super::load_balancer`] names.

use super::sched_domains::SchedDomains;
use super::{Generation, Map, Queues, ReadyThread, Shift};

/// What a hardware thread of capacity 1024 can do, and the unit of averages.
const SCALE: u64 = 1024;

/// A busy hardware thread that may take threads: Linux's destination CPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct DestinationCpu<'a> {
    pub level: &'a SchedDomains,
    pub at: usize,
    /// How often it looked in vain.
    pub failures: u32,
    /// Have the queues that it takes from already switched to their next thread?
    pub switched: bool,
}

/// What a look led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BalancePass {
    /// Nothing is to do.
    Even,
    Moved,
    /// A thread should have moved, but none was light enough.
    Failed,
    /// No thread there may run here.
    Pinned,
}

/// How full a group is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fullness {
    Room,
    Full,
    Overloaded,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    fullness: Fullness,
    load: u64,
    capacity: u64,
}

impl Group {
    /// Load in relation to capacity.
    fn density(&self) -> u64 {
        self.load * SCALE / self.capacity
    }
}

/// Where all are at this moment of a tick.
pub(super) struct Now<'a> {
    map: &'a Map,
    ready: &'a [ReadyThread<'a>],
    at: Vec<usize>,
    pub queues: Queues,
    loads: Vec<u64>,
    used: Vec<f64>,
    generation: Generation,
    pub shifts: Vec<Shift>,
}

impl<'a> Now<'a> {
    pub fn new(
        map: &'a Map,
        ready: &'a [ReadyThread<'a>],
        used: &[f64],
        generation: Generation,
    ) -> Self {
        let at: Vec<usize> = ready.iter().map(|ready| ready.task.at).collect();
        let queues = Queues::new(map, at.iter().copied());
        let mut loads = vec![0; map.len()];
        ready.iter().for_each(|ready| loads[ready.task.at] += ready.weight);
        let (used, shifts) = (used.to_vec(), Vec::new());
        Self { map, ready, at, queues, loads, used, generation, shifts }
    }

    fn group(&self, members: &[usize], imbalance_pct: u64) -> Group {
        let (mut load, mut capacity, mut threads, mut used) = (0, 0, 0, 0);
        for &at in members {
            let own = u64::from(self.map.place(at).capacity);
            capacity += own;
            load += self.loads[at];
            threads += u64::from(self.queues.len(at));
            used += ((self.used[at] * SCALE as f64) as u64).min(own);
        }
        let places = members.len() as u64;
        let wanted = capacity * imbalance_pct < threads * SCALE * 100;
        let fullness = if threads > places && (wanted || capacity * 100 < used * imbalance_pct) {
            Fullness::Overloaded
        } else if threads < places || (!wanted && capacity * 100 > used * imbalance_pct) {
            Fullness::Room
        } else {
            Fullness::Full
        };
        Group { fullness, load, capacity }
    }

    /// A busy hardware thread balances one level.
    pub fn balance(&mut self, destination: &DestinationCpu<'_>) -> BalancePass {
        let Some((group, imbalance)) = self.imbalance(destination.level, destination.at) else {
            return BalancePass::Even;
        };
        match self.fullest(group, imbalance) {
            None => BalancePass::Even,
            Some(from) if self.queues.len(from) < 2 => BalancePass::Failed,
            Some(from) if !self.evens(from, destination.at) => BalancePass::Even,
            Some(from) => self.take(destination, from, imbalance),
        }
    }

    /// The group that should give to that of a hardware thread, and how much load.
    fn imbalance<'l>(&self, level: &'l SchedDomains, to: usize) -> Option<(&'l [usize], u64)> {
        let pct = level.imbalance_pct;
        let own = self.group(level.group(to), pct);
        let (mut load, mut capacity) = (own.load, own.capacity);
        let mut fullest: Option<(&[usize], Group)> = None;
        for members in level.others(to) {
            let group = self.group(members, pct);
            load += group.load;
            capacity += group.capacity;
            let fuller = fullest.is_none_or(|(_, most)| group.density() > most.density());
            if group.fullness == Fullness::Overloaded && fuller {
                fullest = Some((members, group));
            }
        }
        let (members, fullest) = fullest?;
        let mean = load * SCALE / capacity;
        let (here, there) = (own.density(), fullest.density());
        let much = own.fullness < Fullness::Overloaded || 100 * there > pct * here;
        if own.fullness == Fullness::Room || here >= there.min(mean) || !much {
            return None;
        }
        let surplus = there.saturating_sub(mean) * fullest.capacity;
        let imbalance = surplus.min((mean - here) * own.capacity) / SCALE;
        (imbalance > 0).then_some((members, imbalance))
    }

    /// Would a move make the two queues more even? Only the older scheduler asks.
    fn evens(&self, from: usize, to: usize) -> bool {
        let mean = |at: usize| self.loads[at] / u64::from(self.queues.len(at)).max(1);
        let threads = if mean(from) > mean(to) { 1 } else { 2 };
        let more = self.loads[from].saturating_sub(self.loads[to]);
        self.generation == Generation::Today || more >= threads * mean(from)
    }

    /// The fullest queue of a group that may have a thread to give.
    fn fullest(&self, group: &[usize], imbalance: u64) -> Option<usize> {
        let mut fullest: Option<usize> = None;
        let capacity = |at: usize| u64::from(self.map.place(at).capacity);
        for &at in group {
            let load = self.loads[at];
            let alone = self.queues.len(at) == 1 && load > imbalance;
            let most = fullest.map_or((0, 1), |most| (self.loads[most], capacity(most)));
            if !alone && load * most.1 > most.0 * capacity(at) {
                fullest = Some(at);
            }
        }
        fullest
    }

    /// Takes threads from a queue.
    fn take(
        &mut self,
        destination: &DestinationCpu<'_>,
        from: usize,
        mut imbalance: u64,
    ) -> BalancePass {
        let &DestinationCpu { level, at: to, failures, switched } = destination;
        let (here, there) = (self.map.place(from), self.map.place(to));
        let may = |one: &usize| self.ready[*one].task.allowed.contains(there.pu);
        let mut queue: Vec<usize> =
            (0..self.at.len()).filter(|&one| self.at[one] == from).collect();
        if !queue.iter().any(may) {
            return BalancePass::Pinned;
        }
        queue.sort_by(|&a, &b| self.ready[a].turn.total_cmp(&self.ready[b].turn));
        let now = queue.iter().copied().find(|&one| self.ready[one].runs);
        // A thread that has come at this tick does not run yet.
        let next = queue.iter().copied().find(|&one| self.ready[one].task.at == from);
        let runs = if switched { next } else { now };
        let strangers = queue.iter().any(|&one| self.ready[one].task.home != here.node);
        let local = |home| here.node != there.node && home == here.node && strangers;
        let before = self.shifts.len();
        for one in queue.into_iter().filter(|one| Some(*one) != runs && may(one)) {
            let ReadyThread { task, weight, .. } = &self.ready[one];
            let stays = local(task.home) && failures <= level.tries;
            if stays || weight.checked_shr(failures).unwrap_or(0) > imbalance {
                continue;
            }
            self.shift(one, to);
            imbalance = imbalance.saturating_sub(*weight);
            if imbalance == 0 {
                break;
            }
        }
        if self.shifts.len() > before { BalancePass::Moved } else { BalancePass::Failed }
    }

    fn shift(&mut self, one: usize, to: usize) {
        let from = std::mem::replace(&mut self.at[one], to);
        let ReadyThread { weight, used, .. } = self.ready[one];
        self.queues.remove(self.map, from);
        self.queues.add(self.map, to);
        self.loads[from] -= weight;
        self.loads[to] += weight;
        self.used[from] = (self.used[from] - used).max(0.0);
        self.used[to] += used;
        self.shifts.push((one, to));
    }
}
