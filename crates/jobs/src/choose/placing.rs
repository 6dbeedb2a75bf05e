//! Nodes as they fill, and what each job would cost there.

use std::collections::HashMap;

use crate::predict::finite;
use crate::{Choice, Job, Node, Predict, Program, Reason, Release};

/// A node that fills.
#[derive(Debug)]
struct Filling<'a> {
    name: &'a str,
    slots: usize,
    free: usize,
    ends_s: f64,
    /// Sorted, so that equal sets are predicted once.
    running: Vec<Program>,
    /// Number of this set.
    set: usize,
    /// Kept for an overdue job that does not fit yet.
    is_kept: bool,
}

/// Nodes, the jobs that were put there, and what is predicted.
pub(super) struct Placing<'a, P> {
    /// By name.
    nodes: Vec<Filling<'a>>,
    predict: &'a P,
    /// Sets of running programs, numbered.
    sets: HashMap<Vec<Program>, usize>,
    /// By set and program.
    costs: HashMap<(usize, Program), f64>,
    composition: Vec<(Program, usize)>,
    averages: HashMap<Program, f64>,
    choice: Choice,
}

impl<'a, P: Predict> Placing<'a, P> {
    pub(super) fn new(nodes: &'a [Node], predict: &'a P) -> Self {
        let mut sets = HashMap::new();
        let filling = |node: &'a Node| {
            let mut running = node.running.clone();
            running.sort_unstable();
            let (name, slots) = (node.name.as_str(), node.slots);
            let (set, free) = (number(&mut sets, &running), node.free.min(slots));
            Filling { name, slots, free, ends_s: node.ends_s, running, set, is_kept: false }
        };
        let mut nodes: Vec<_> = nodes.iter().map(filling).collect();
        nodes.sort_by(|a, b| {
            (a.name, &a.running, a.free, a.slots).cmp(&(b.name, &b.running, b.free, b.slots))
        });
        let (costs, averages) = (HashMap::new(), HashMap::new());
        let (composition, choice) = (Vec::new(), Choice::default());
        Self { nodes, predict, sets, costs, composition, averages, choice }
    }

    /// Free slots in all.
    pub(super) fn free(&self) -> usize {
        self.open().map(|(_, node)| node.free).sum()
    }

    /// Free slots of the node that has most.
    pub(super) fn most_free(&self) -> usize {
        self.open().map(|(_, node)| node.free).max().unwrap_or(0)
    }

    pub(super) fn free_of(&self, node: usize) -> usize {
        self.nodes.get(node).filter(|node| !node.is_kept).map_or(0, |node| node.free)
    }

    fn open(&self) -> impl Iterator<Item = (usize, &Filling<'a>)> {
        self.nodes.iter().enumerate().filter(|(_, node)| !node.is_kept && node.free > 0)
    }

    /// Nodes with free slots, the emptiest first.
    pub(super) fn by_occupancy(&self) -> Vec<usize> {
        let mut open: Vec<_> = self.open().map(|(at, node)| (node.running.len(), at)).collect();
        open.sort_unstable();
        open.into_iter().map(|(_, at)| at).collect()
    }

    /// The node where a job fits and costs least.
    pub(super) fn cheapest(&mut self, job: &Job) -> Option<usize> {
        let fits = self.open().filter(|(_, node)| job.slots.max(1) <= node.free);
        let fits: Vec<_> = fits.map(|(at, node)| (node.running.len(), at)).collect();
        let cost = |(jobs, at): (usize, usize)| (self.cost(job.program, at), jobs, at);
        let costs: Vec<_> = fits.into_iter().map(cost).collect();
        let best =
            costs.into_iter().min_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        best.map(|(.., at)| at)
    }

    /// Is there a node with room for it?
    pub(super) fn fits(&self, job: &Job) -> bool {
        self.open().any(|(_, node)| job.slots.max(1) <= node.free)
    }

    /// Lets no other job start on the node where this one will fit first; is there one that is large enough?
    pub(super) fn keep_a_node_for(&mut self, job: &Job) -> bool {
        let large = self.nodes.iter_mut().filter(|node| node.slots >= job.slots && !node.is_kept);
        // Of equals the first by name.
        let first = large.min_by(|a, b| a.ends_s.total_cmp(&b.ends_s).then(b.free.cmp(&a.free)));
        let Some(node) = first else { return false };
        node.is_kept = true;
        self.choice.kept.push((job.id, node.name.to_owned()));
        true
    }

    /// What a job of each program costs next to one job of the window, on average.
    pub(super) fn learn_averages(&mut self, composition: &[(Program, usize)]) {
        self.composition = composition.to_vec();
        self.averages.clear();
    }

    /// What a job of a program costs on a node beyond what it costs next to average jobs.
    pub(super) fn relative_cost(&mut self, program: Program, node: usize) -> f64 {
        let co_runners = self.nodes.get(node).map_or(0, |node| node.running.len());
        if co_runners == 0 {
            return 0.0;
        }
        self.cost(program, node) - self.average(program) * co_runners as f64
    }

    fn average(&mut self, program: Program) -> f64 {
        if let Some(average) = self.averages.get(&program) {
            return *average;
        }
        let (mut sum, mut jobs) = (0.0, 0);
        for &(other, count) in &self.composition {
            sum += joining(self.predict, program, &[other]) * count as f64;
            jobs += count;
        }
        let average = if jobs == 0 { 0.0 } else { sum / jobs as f64 };
        self.averages.insert(program, average);
        average
    }

    fn cost(&mut self, program: Program, node: usize) -> f64 {
        let Some(node) = self.nodes.get(node) else { return 0.0 };
        let predicted = || joining(self.predict, program, &node.running);
        *self.costs.entry((node.set, program)).or_insert_with(predicted)
    }

    /// Starts a job on a node.
    pub(super) fn put(&mut self, job: &Job, node: usize, reason: Reason) {
        let cost = self.cost(job.program, node);
        let Some(node) = self.nodes.get_mut(node) else { return };
        let co_runners = node.running.clone();
        let slowdown = finite(self.predict.slowdown(job.program, &co_runners));
        node.free = node.free.saturating_sub(job.slots.max(1));
        let place = node.running.partition_point(|&program| program < job.program);
        node.running.insert(place, job.program);
        node.set = number(&mut self.sets, &node.running);
        let node = node.name.to_owned();
        self.choice.releases.push(Release {
            job: job.id,
            node,
            co_runners,
            slowdown,
            cost,
            reason,
        });
    }

    pub(super) fn into_choice(self) -> Choice {
        self.choice
    }
}

/// The number of a set of programs.
fn number(sets: &mut HashMap<Vec<Program>, usize>, running: &[Program]) -> usize {
    if let Some(&number) = sets.get(running) {
        return number;
    }
    let number = sets.len();
    sets.insert(running.to_vec(), number);
    number
}

/// The slowdown that a program suffers next to others, and that it adds to them, in sum.
fn joining(predict: &impl Predict, program: Program, running: &[Program]) -> f64 {
    if running.is_empty() {
        return 0.0;
    }
    let mut cost = finite(predict.slowdown(program, running)) - 1.0;
    let mut others = Vec::with_capacity(running.len());
    for (at, &victim) in running.iter().enumerate() {
        others.clear();
        others.extend(running.iter().enumerate().filter(|(o, _)| *o != at).map(|(_, one)| *one));
        let before =
            if others.is_empty() { 1.0 } else { finite(predict.slowdown(victim, &others)) };
        others.push(program);
        cost += finite(predict.slowdown(victim, &others)) - before;
    }
    cost
}
