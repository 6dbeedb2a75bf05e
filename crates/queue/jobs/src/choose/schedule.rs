//! The nodes as jobs are put on them, and what each further job would cost there.

use std::collections::HashMap;

use super::Admits;
use super::open_node::OpenNode;
use crate::predict::finite;
use crate::{Choice, Job, Node, Predict, ProgramNumber, Reason, Release};

/// Nodes, the jobs that were put on them, and the costs that were predicted so far.
pub(super) struct Schedule<'a, P> {
    /// By name.
    nodes: Vec<OpenNode<'a>>,
    now_s: f64,
    predict: &'a P,
    admits: Option<&'a Admits<'a>>,
    /// Sets of running programs, numbered.
    sets: HashMap<Vec<ProgramNumber>, usize>,
    /// Costs, by set and program.
    costs: HashMap<(usize, ProgramNumber), f64>,
    composition: Vec<(ProgramNumber, usize)>,
    averages: HashMap<ProgramNumber, f64>,
    choice: Choice,
}

impl<'a, P: Predict> Schedule<'a, P> {
    pub(super) fn new(
        nodes: &'a [Node],
        now_s: f64,
        predict: &'a P,
        admits: Option<&'a Admits<'a>>,
    ) -> Self {
        let mut sets = HashMap::new();
        let open = |node: &'a Node| {
            let mut open = OpenNode::new(node);
            open.set = number(&mut sets, &open.running);
            open
        };
        let mut nodes: Vec<_> = nodes.iter().map(open).collect();
        nodes.sort_by(|a, b| {
            (a.name, &a.running, a.free, a.slots).cmp(&(b.name, &b.running, b.free, b.slots))
        });
        let (costs, averages) = (HashMap::new(), HashMap::new());
        let (composition, choice) = (Vec::new(), Choice::default());
        Self { nodes, now_s, predict, admits, sets, costs, composition, averages, choice }
    }

    /// Free slots of nodes that are kept for no job.
    pub(super) fn free(&self) -> usize {
        self.nodes.iter().filter(|node| node.kept_for().is_none()).map(|node| node.free).sum()
    }

    /// The most slots that are free on one node.
    pub(super) fn most_free(&self) -> usize {
        self.nodes.iter().map(|node| node.free).max().unwrap_or(0)
    }

    /// Does a job fit on a node?
    pub(super) fn takes(&self, node: usize, job: &Job) -> bool {
        self.nodes
            .get(node)
            .is_some_and(|node| self.admits(job, node.name) && node.takes(job, self.now_s))
    }

    fn admits(&self, job: &Job, node: &str) -> bool {
        self.admits.is_none_or(|admits| admits(job, node))
    }

    /// Nodes with free slots, the emptiest first.
    pub(super) fn by_occupancy(&self) -> Vec<usize> {
        let open = self.nodes.iter().enumerate().filter(|(_, node)| node.free > 0);
        let mut open: Vec<_> = open.map(|(at, node)| (node.running.len(), at)).collect();
        open.sort_unstable();
        open.into_iter().map(|(_, at)| at).collect()
    }

    /// The node where a job fits and costs least.
    pub(super) fn cheapest(&mut self, job: &Job) -> Option<usize> {
        let fits = self.nodes.iter().enumerate().filter(|(at, _)| self.takes(*at, job));
        let fits: Vec<_> = fits.map(|(at, node)| (node.running.len(), at)).collect();
        let cost = |(jobs, at): (usize, usize)| (self.cost(job.program, at), jobs, at);
        let costs: Vec<_> = fits.into_iter().map(cost).collect();
        let best =
            costs.into_iter().min_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        best.map(|(.., at)| at)
    }

    /// Is there a node now where a job fits?
    pub(super) fn fitting(&self) -> impl Fn(&Job) -> bool {
        let (kept, open): (Vec<_>, Vec<_>) =
            self.nodes.iter().partition(|node| node.kept_for().is_some());
        let most = open.into_iter().map(|node| node.free).max().unwrap_or(0);
        let now_s = self.now_s;
        let mut open_ones: Vec<&OpenNode<'_>> = Vec::new();
        if self.admits.is_some() {
            open_ones.extend(self.nodes.iter().filter(|node| node.kept_for().is_none()));
        }
        move |job| {
            let takes =
                |node: &&OpenNode<'_>| self.admits(job, node.name) && node.takes(job, now_s);
            match self.admits {
                None if job.slots.max(1) <= most => true,
                _ => kept.iter().chain(&open_ones).any(takes),
            }
        }
    }

    /// Keeps the node for a job that will have room for it first. False: no node is large enough.
    pub(super) fn keep_a_node_for(&mut self, job: &Job) -> bool {
        let (slots, now_s, admits) = (job.slots, self.now_s, self.admits);
        let is_open = |node: &&mut OpenNode<'_>| {
            let admits = admits.is_none_or(|admits| admits(job, node.name));
            admits && node.slots >= slots && node.kept_for().is_none()
        };
        let open =
            self.nodes.iter_mut().filter(is_open).map(|node| (node.room(slots, now_s).0, node));
        // Of equals the one with most free slots, then the first by name.
        let first = open.min_by(|a, b| a.0.total_cmp(&b.0).then(b.1.free.cmp(&a.1.free)));
        let Some((_, node)) = first else { return false };
        node.keep(job, now_s);
        self.choice.kept.push((job.id, node.name.to_owned()));
        true
    }

    /// From now on costs are relative to those next to the jobs of this window.
    pub(super) fn set_window(&mut self, composition: &[(ProgramNumber, usize)]) {
        self.composition = composition.to_vec();
        self.averages.clear();
    }

    /// What a job of a program costs on a node beyond what it costs next to average jobs.
    pub(super) fn relative_cost(&mut self, program: ProgramNumber, node: usize) -> f64 {
        let co_runners = self.nodes.get(node).map_or(0, |node| node.running.len());
        if co_runners == 0 {
            return 0.0;
        }
        self.cost(program, node) - self.average(program) * co_runners as f64
    }

    fn average(&mut self, program: ProgramNumber) -> f64 {
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

    fn cost(&mut self, program: ProgramNumber, node: usize) -> f64 {
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
        node.put(job, self.now_s);
        node.set = number(&mut self.sets, &node.running);
        let (node, kept_for) = (node.name.to_owned(), node.kept_for());
        self.choice.releases.push(Release {
            job: job.id,
            node,
            co_runners,
            slowdown,
            cost,
            reason,
            kept_for,
        });
    }

    pub(super) fn into_choice(self) -> Choice {
        self.choice
    }
}

/// The number of a set of programs.
fn number(sets: &mut HashMap<Vec<ProgramNumber>, usize>, running: &[ProgramNumber]) -> usize {
    if let Some(&number) = sets.get(running) {
        return number;
    }
    let number = sets.len();
    sets.insert(running.to_vec(), number);
    number
}

/// The sum of what a program suffers next to others, and of what it adds to the slowdowns of these.
fn joining(predict: &impl Predict, program: ProgramNumber, running: &[ProgramNumber]) -> f64 {
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
