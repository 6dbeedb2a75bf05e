//! `fpu-least`: as `fpu`, where the counter of a busy floating-point unit sees all threads of the core.
//!
//! # Problem
//! On AMD's Bulldozer the event that `fpu` reads belongs to the module: an integer thread that co-runs with a
//! floating-point thread reads as FPU-hungry. Once threads are placed well, all read so, and whichever is
//! counted a little more is in the top.
//!
//! # Approach
//! A co-runner can only add to a reading. So of the last [`WINDOW`] readings of a thread the least one counts:
//! an integer thread that was without a floating-point co-runner in one of these periods is taken for what it
//! is. A thread that becomes FPU-hungry is seen so many periods later. This is ours; the paper does not
//! mention the event's scope.
//!
//! # Properties
//! - An integer thread that a co-runner made read as hungry stays out of the top
//!   (`a_reading_that_a_co_runner_raised_does_not_count`).

use std::time::Duration;

use symbiont_machine::Placement;

use crate::parameter::Parameters;
use crate::{Entry, Fpu, Kind, Parameter, Policy, Requirements, View};

pub(crate) const ENTRY: Entry = Entry {
    name: "fpu-least",
    summary: "as fpu, by the least of each thread's last readings: for counters that see the whole core",
    paper: None,
    quantum: Duration::from_secs(1),
    boosts: false,
    parameters: PARAMETERS,
    make: |settings| {
        let policy = Fpu::new(settings).by_the_least_of(settings.get(&WINDOW));
        Box::new(FpuLeast(policy))
    },
};

const PARAMETERS: Parameters = &[&Fpu::ACTIVE, &Fpu::TOP, &WINDOW];

/// How many readings of a thread are looked at.
const WINDOW: Parameter<usize> = Parameter::new(
    "window",
    Kind::Count { least: 1, most: 1000 },
    10,
    "Periods of which the least reading of a thread counts",
);

/// The policy.
#[derive(Debug, Clone)]
struct FpuLeast(Fpu);

impl Policy for FpuLeast {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn requirements(&self) -> Requirements {
        self.0.requirements()
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        self.0.place(view)
    }
}
