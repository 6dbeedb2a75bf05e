//! A workload on a cluster, from the first submission to the last end.

use std::time::{Duration, Instant};

use symbiont_jobs::{Job, Node, Predict, ProgramNumber};

use super::order::{Moment, Scheduler};
use super::{PairTable, QueuedJob};

/// Slots of a node: the hardware threads of one core.
pub(super) const SLOTS: usize = 2;

/// Nodes and what programs do to each other there.
#[derive(Debug, Clone, Copy)]
pub struct Cluster<'t> {
    /// How many nodes.
    pub nodes: usize,
    /// The truth.
    pub table: &'t PairTable,
    /// Time between two decisions, s.
    pub every_s: f64,
}

/// A job that runs.
#[derive(Debug, Clone, Copy)]
struct Running {
    /// Its place in the workload.
    job: usize,
    program: ProgramNumber,
    slots: usize,
    started_s: f64,
    requested_s: f64,
    /// What is left of it, in seconds alone.
    left_s: f64,
}

impl Running {
    /// What a scheduler sees of it.
    fn seen(&self) -> symbiont_jobs::Running {
        let ends_s = self.started_s + self.requested_s;
        symbiont_jobs::Running { program: self.program, slots: self.slots, ends_s }
    }
}

/// The result.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterOutcome {
    /// Start and end of each job, s.
    pub times_s: Vec<(f64, f64)>,
    /// Mean of time on the node / time alone.
    pub slowdown: f64,
    /// Mean and longest time from submission to start, s.
    pub wait_s: [f64; 2],
    /// Jobs per hour, from the first submission to the last end.
    pub throughput: f64,
    /// Longest time that a decision took on this host, and the length of the queue then.
    pub longest_decision: (Duration, usize),
    /// Most jobs that waited.
    pub most_queued: usize,
}

/// Plays a workload; jobs that ask for more slots than a node has get all of one.
#[must_use]
pub fn play<P: Predict>(
    cluster: &Cluster<'_>,
    workload: &[QueuedJob],
    scheduler: &Scheduler<'_, P>,
) -> ClusterOutcome {
    let mut simulation = ClusterSimulation::new(cluster, workload);
    let mut now = workload.iter().map(|job| job.submitted_s).fold(f64::INFINITY, f64::min);
    while simulation.ended < workload.len() {
        simulation.submit(now);
        simulation.decide(now, scheduler);
        let next = simulation.next_decision(now);
        simulation.pass(now, next);
        now = next;
    }
    simulation.played()
}

/// A cluster while a workload is played on it.
struct ClusterSimulation<'r> {
    cluster: &'r Cluster<'r>,
    workload: &'r [QueuedJob],
    /// Jobs in the order of submission, and how many were submitted.
    order: Vec<usize>,
    submitted: usize,
    /// Places of the jobs that wait, in order.
    queue: Vec<usize>,
    nodes: Vec<Node>,
    running: Vec<Vec<Running>>,
    times_s: Vec<(f64, f64)>,
    ended: usize,
    longest: (Duration, usize),
    most_queued: usize,
}

impl<'r> ClusterSimulation<'r> {
    fn new(cluster: &'r Cluster<'r>, workload: &'r [QueuedJob]) -> Self {
        let mut order: Vec<usize> = (0..workload.len()).collect();
        order.sort_by(|&a, &b| workload[a].submitted_s.total_cmp(&workload[b].submitted_s));
        let node = |at: usize| Node {
            name: format!("n{at:05}"),
            slots: SLOTS,
            free: SLOTS,
            running: Vec::new(),
        };
        Self {
            cluster,
            workload,
            order,
            submitted: 0,
            queue: Vec::new(),
            nodes: (0..cluster.nodes.max(1)).map(node).collect(),
            running: vec![Vec::new(); cluster.nodes.max(1)],
            times_s: vec![(0.0, 0.0); workload.len()],
            ended: 0,
            longest: (Duration::ZERO, 0),
            most_queued: 0,
        }
    }

    fn submit(&mut self, now: f64) {
        let come = |at: &&usize| self.workload[**at].submitted_s <= now;
        let count = self.order[self.submitted..].iter().take_while(come).count();
        self.queue.extend(&self.order[self.submitted..self.submitted + count]);
        self.submitted += count;
        self.most_queued = self.most_queued.max(self.queue.len());
    }

    fn decide<P: Predict>(&mut self, now_s: f64, scheduler: &Scheduler<'_, P>) {
        if self.queue.is_empty() || self.nodes.iter().all(|node| node.free == 0) {
            return;
        }
        let job = |&at: &usize| Job {
            id: at as u64,
            program: ProgramNumber(self.workload[at].program),
            priority: 0,
            submitted_s: self.workload[at].submitted_s,
            slots: self.workload[at].slots.clamp(1, SLOTS),
            limit_s: self.workload[at].requested_s,
        };
        let queue: Vec<Job> = self.queue.iter().map(job).collect();
        let moment = Moment { queue: &queue, nodes: &self.nodes, now_s };
        let began = Instant::now();
        let started = scheduler.start(&moment);
        self.longest = self.longest.max((began.elapsed(), queue.len()));
        let mut starts = vec![false; self.workload.len()];
        for (id, node) in started {
            let Some(&Job { program, slots, .. }) = queue.iter().find(|job| job.id == id) else {
                continue;
            };
            let at = id as usize;
            starts[at] = true;
            self.times_s[at].0 = now_s;
            let QueuedJob { requested_s, run_s, .. } = self.workload[at];
            let job =
                Running { job: at, program, slots, started_s: now_s, requested_s, left_s: run_s };
            self.running[node].push(job);
            self.nodes[node].free = self.nodes[node].free.saturating_sub(slots);
            self.nodes[node].running.push(job.seen());
        }
        self.queue.retain(|&at| !starts[at]);
    }

    /// The next whole interval at which there is something to decide.
    fn next_decision(&self, now: f64) -> f64 {
        let comes = self.order.get(self.submitted).map(|&at| self.workload[at].submitted_s);
        let idle = self.queue.is_empty() && self.ended == self.submitted;
        let next = now + self.cluster.every_s;
        comes.filter(|_| idle).map_or(next, |comes| comes.max(next))
    }

    /// Lets time pass on every node, from one end of a job to the next.
    fn pass(&mut self, from: f64, until: f64) {
        for node in 0..self.running.len() {
            let mut now = from;
            while !self.running[node].is_empty() && now < until {
                let speeds = speeds(self.cluster.table, &self.running[node]);
                let jobs = self.running[node].iter().zip(&speeds);
                let first =
                    jobs.map(|(job, speed)| job.left_s / speed).fold(f64::INFINITY, f64::min);
                let span = first.min(until - now);
                for (job, speed) in self.running[node].iter_mut().zip(&speeds) {
                    job.left_s -= span * speed;
                }
                now += span;
                self.end(node, now);
            }
        }
    }

    fn end(&mut self, node: usize, now: f64) {
        let (over, left): (Vec<Running>, Vec<Running>) =
            self.running[node].iter().partition(|job| job.left_s <= 1e-9);
        for job in &over {
            self.times_s[job.job].1 = now;
            self.nodes[node].free += job.slots;
        }
        self.ended += over.len();
        self.nodes[node].running = left.iter().map(Running::seen).collect();
        self.running[node] = left;
    }

    fn played(self) -> ClusterOutcome {
        let count = self.workload.len().max(1) as f64;
        let jobs = || self.workload.iter().zip(&self.times_s);
        let waits = || jobs().map(|(job, (start, _))| start - job.submitted_s);
        let first = self.workload.iter().map(|job| job.submitted_s).fold(f64::INFINITY, f64::min);
        let last = self.times_s.iter().map(|(_, end)| *end).fold(0.0, f64::max);
        ClusterOutcome {
            slowdown: jobs().map(|(job, (start, end))| (end - start) / job.run_s).sum::<f64>()
                / count,
            wait_s: [waits().sum::<f64>() / count, waits().fold(0.0, f64::max)],
            throughput: self.workload.len() as f64 * 3600.0 / (last - first).max(1.0),
            longest_decision: self.longest,
            most_queued: self.most_queued,
            times_s: self.times_s,
        }
    }
}

/// Seconds alone per second, of each job of a node.
fn speeds(table: &PairTable, jobs: &[Running]) -> Vec<f64> {
    let speed = |(at, job): (usize, &Running)| {
        let other = jobs.iter().enumerate().find(|(other, _)| *other != at);
        let co_runner = match other {
            Some((_, other)) => Some(other.program),
            None => (job.slots > 1).then_some(job.program),
        };
        1.0 / table.slowdown_of(job.program, co_runner)
    };
    jobs.iter().enumerate().map(speed).collect()
}
