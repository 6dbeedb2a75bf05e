//! Time of a decision, compared with other libraries.
//!
//!     cargo bench -p symbiont-matching
//!
//! All get the same weights: costs of pairs as an interference model
//! predicts them, of programs that all differ or of copies of a few, or uniform
//! ones; asking for the weights is part of the time of each.
#![allow(clippy::unwrap_used, reason = "a failed benchmark panics")]

#[path = "../tests/it/instances.rs"]
mod instances;

use std::fmt;

use divan::Bencher;
use instances::{Random, Stacks};
use rustworkx_core::max_weight_matching::max_weight_matching;
use rustworkx_core::petgraph::graph::{EdgeReference, UnGraph};
use symbiont_matching::{Request, Weights, group, perfect_matching};

fn main() {
    divan::main();
}

#[derive(Clone, Copy)]
enum Kind {
    Interaction,
    Copies,
    Uniform,
}

/// A kind of weights and how many threads.
#[derive(Clone, Copy)]
struct Case(Kind, usize);

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0 {
            Kind::Interaction => "interaction",
            Kind::Copies => "copies",
            Kind::Uniform => "uniform",
        };
        write!(f, "{kind} {:>5}", self.1)
    }
}

const SIZES: [usize; 8] = [16, 40, 80, 128, 160, 320, 640, 1024];

fn cases() -> impl Iterator<Item = Case> {
    let kinds = [Kind::Interaction, Kind::Copies, Kind::Uniform];
    kinds.into_iter().flat_map(|kind| SIZES.map(|n| Case(kind, n)))
}

/// The cost of a pair.
fn cost(Case(kind, threads): Case) -> Box<dyn Fn(usize, usize) -> f64> {
    match kind {
        Kind::Interaction => {
            let stacks = Stacks::new(threads, 1);
            Box::new(move |i, j| stacks.slowdown(&[i, j]))
        }
        // In steps, as costs that differ by less mean nothing.
        Kind::Copies => {
            let stacks = Stacks::copies(threads, 14, 1);
            Box::new(move |i, j| (stacks.loss(&[i, j]) * 8192.0).round() / 8192.0)
        }
        Kind::Uniform => {
            let mut random = Random::new(1);
            let cells: Vec<f64> =
                (0..threads * threads).map(|_| random.below(1 << 30) as f64 / ONE).collect();
            Box::new(move |i, j| cells[i * threads + j])
        }
    }
}

#[divan::bench(args = cases(), max_time = 1)]
fn symbiont(bencher: Bencher<'_, '_>, case: Case) {
    let cost = cost(case);
    bencher.bench_local(|| {
        let weights = Weights::from_floats(case.1, &cost).unwrap();
        perfect_matching(&weights, []).unwrap()
    });
}

/// As many cores as threads, so that each thread may be alone.
#[divan::bench(args = [40, 160, 512], max_time = 1)]
fn symbiont_pairs_or_alone(bencher: Bencher<'_, '_>, threads: usize) {
    let stacks = Stacks::new(threads, 1);
    bencher.bench_local(|| {
        group(&Request::new(threads, threads, 2), |g| match g {
            [_] => 0.35,
            _ => stacks.loss(g),
        })
    });
}

#[divan::bench(args = [16, 40, 128, 512, 1024], max_time = 1)]
fn symbiont_groups_of_four(bencher: Bencher<'_, '_>, threads: usize) {
    let stacks = Stacks::new(threads, 1);
    bencher.bench_local(|| group(&Request::new(threads, threads / 4, 4), |g| stacks.loss(g)));
}

/// From the groups of the quantum before: 1 % of noise on each stack, and a new phase in every twentieth
/// thread.
#[divan::bench(args = [16, 40, 128, 512, 1024], max_time = 1)]
fn symbiont_groups_of_four_rearranged(bencher: Bencher<'_, '_>, threads: usize) {
    let mut stacks = Stacks::new(threads, 1);
    let request = Request::new(threads, threads / 4, 4);
    let previous = group(&request, |g| stacks.loss(g)).unwrap().groups;
    stacks.later(0.01, 0.05, &mut Random::new(1));
    let request = Request { previous: &previous, ..request };
    bencher.bench_local(|| group(&request, |g| stacks.loss(g)));
}

#[divan::bench(args = [16, 40, 128, 512], max_time = 1)]
fn symbiont_groups_of_eight(bencher: Bencher<'_, '_>, threads: usize) {
    let stacks = Stacks::new(threads, 1);
    bencher.bench_local(|| group(&Request::new(threads, threads / 8, 8), |g| stacks.loss(g)));
}

/// Whole numbers for the libraries that want them, in parts of this.
const ONE: f64 = (1 << 30) as f64;

fn whole(cost: f64) -> i64 {
    (cost * ONE) as i64
}

#[divan::bench(args = cases(), max_time = 1, sample_size = 1, sample_count = 20)]
fn rustworkx_core(bencher: Bencher<'_, '_>, case: Case) {
    let cost = cost(case);
    bencher.bench_local(|| {
        let mut graph = UnGraph::<(), i128>::new_undirected();
        let nodes: Vec<_> = (0..case.1).map(|_| graph.add_node(())).collect();
        for i in 0..case.1 {
            for j in i + 1..case.1 {
                graph.add_edge(nodes[i], nodes[j], -i128::from(whole(cost(i, j))));
            }
        }
        let weight =
            |edge: EdgeReference<'_, i128>| Ok::<i128, std::convert::Infallible>(*edge.weight());
        max_weight_matching(&graph, true, weight, false).unwrap()
    });
}
