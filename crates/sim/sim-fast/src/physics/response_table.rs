//! The window model's results for one phase on one core in one SMT mode, tabulated.
//!
//! # Approach
//! Each part of an [`Environment`] is an input of a [`Table`], in the coordinate in which its effect is
//! most nearly linear: dispatch and ports as time per operation; entries, reach and memory's interval
//! as logarithms. Each ranges from having everything, to sharing it with as many threads as this
//! machine can run, to being starved by them. The anchor is an even share.
//!
//! Where only the front end or the ports hold a thread up, its CPI is the largest of the demands on each
//! over its share (`Bound`): a kink that runs across all these inputs, which a sum of functions of few
//! inputs cannot follow. So the table holds the CPI beyond that bound, as a logarithm: fewer
//! miss registers or a shorter reach lengthen the stalls by a factor, whichever others there are. (Sums of
//! cycles were off by a tenth far from the anchor; example `preparation`.)
//!
//! The occupancy of a queue is a product of the thread's speed and of how long its operations stay,
//! both changed by other inputs, so the table holds its logarithm too. Miss registers may not be
//! occupied at all: of these it holds the sum. No thread occupies more than there is.
//!
//! # Properties
//! - Solved with tables, threads run as fast as solved with the window model
//!   (`tables_meet_the_direct_solve`).
//! - No environment makes a thread faster than the best one
//!   (`no_answer_is_faster_than_the_best_environment`).

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use symbiont_profile::PREDICTORS;

use super::alike::{Alike, Reuses};
use super::domains::{CoreTypePlace, MemoryPlace};
use super::for_core::ForCore;
use super::linearization::{Bound, INPUTS, Linearization};
use super::part;
use super::pipeline::{
    CacheLevel, Environment, FIRST_ENTRIES, FIRST_PORT, FIRST_REACH, GROUPS, Pipeline, Queue,
    REACHES, STRUCTURES,
};
use super::table::build::Tolerance;
use super::table::function::Effort;
use super::table::{Places, Range, Table, build};
use super::window::account::{CYCLE_CAUSES, SLOT_CAUSES};
use super::window::{Course, Outcome, Window};

/// Values of a summary: CPI, occupancies, cycles of ports and front end; in fours.
const OFTEN: usize = (1 + STRUCTURES + GROUPS + 1).next_multiple_of(4);
/// The stacks, and cycles with vector operations; in fours.
const SELDOM: usize = (CYCLE_CAUSES + SLOT_CAUSES + 1).next_multiple_of(4);
/// The predictor's size, and memory's latency and interval.
const PREDICTOR: usize = FIRST_REACH + REACHES;
const LATENCY: usize = PREDICTOR + 1;
const INTERVAL: usize = LATENCY + 1;

/// Cycles that no instruction takes less of.
const SHORTEST: f64 = 1e-3;
/// A queue that is held for less, entries times cycles, is not held.
const LEAST: f64 = 1e-2;
const MSHR: usize = Queue::Mshr as usize;

/// A cache is taken to be starved down to this part of an even share.
const STARVED: f64 = 1.0 / 16.0;

/// Micro-traces that stand for all where that is enough: to learn what may be left out.
const PART: usize = 4;

/// The table of one phase on one core type in one SMT mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResponseTable {
    table: Table<OFTEN, SELDOM>,
    bound: Bound,
    fastest: f32,
    active: u32,
}

/// What a round of the fixed point needs to know of a thread; per instruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Cycles.
    pub cpi: f64,
    /// Occupancy of each queue: entries times cycles.
    pub held: [f64; STRUCTURES],
    /// Cycles for which the ports of each group are taken.
    pub port_cycles: [f64; GROUPS],
    /// Cycles for which the front end is taken.
    pub front: f64,
}

impl From<&Outcome> for Summary {
    fn from(outcome: &Outcome) -> Self {
        Self {
            cpi: outcome.cpi,
            held: outcome.held,
            port_cycles: outcome.port_cycles,
            front: outcome.front,
        }
    }
}

impl Summary {
    /// Occupancies and port cycles, averaged with those before: where operations go to other
    /// ports as soon as some are scarce, they would oscillate.
    #[must_use]
    pub fn half_way(mut self, before: &Self) -> Self {
        let old = before.held.iter().chain(&before.port_cycles);
        for (new, old) in self.held.iter_mut().chain(&mut self.port_cycles).zip(old) {
            *new = f64::midpoint(*new, *old);
        }
        self.front = f64::midpoint(self.front, before.front);
        self
    }
}

/// The coordinates of an environment, by input; those that take long to compute if they are active, one
/// bit each.
fn coordinates(environment: &Environment, active: u32) -> [f64; INPUTS] {
    let Environment { dispatch, ports, entries, reach, .. } = environment;
    let is_active = |input: usize, of: f64| if active >> input & 1 == 1 { of.log2() } else { 0.0 };
    let mut inputs = [0.0; INPUTS];
    inputs[0] = 1.0 / dispatch;
    for (input, share) in inputs[FIRST_PORT..FIRST_ENTRIES].iter_mut().zip(ports) {
        *input = 1.0 / share;
    }
    for (queue, entries) in entries.iter().enumerate() {
        inputs[FIRST_ENTRIES + queue] = is_active(FIRST_ENTRIES + queue, *entries);
    }
    inputs[FIRST_REACH..PREDICTOR].copy_from_slice(reach);
    if active >> PREDICTOR & 1 == 1 {
        inputs[PREDICTOR] = environment.predictor as f64;
    }
    inputs[LATENCY] = environment.memory_latency;
    inputs[INTERVAL] = is_active(INTERVAL, environment.memory_interval);
    inputs
}

/// How much a coordinate rises per unit of that part of the environment.
fn rise(environment: &Environment, input: usize) -> f64 {
    let log2 = |of: f64| 1.0 / (of * std::f64::consts::LN_2);
    match input {
        0 => -environment.dispatch.powi(-2),
        FIRST_PORT..FIRST_ENTRIES => -environment.ports[input - FIRST_PORT].powi(-2),
        FIRST_ENTRIES..FIRST_REACH => log2(environment.entries[input - FIRST_ENTRIES]),
        // Sizes of the predictor are distinguished, not between.
        PREDICTOR => 0.0,
        INTERVAL => log2(environment.memory_interval),
        _ => 1.0,
    }
}

/// The environment with such coordinates.
fn environment(inputs: &[f64]) -> Environment {
    let at = |input: usize| inputs.get(input).copied().unwrap_or_default();
    let size = (at(PREDICTOR).round() as usize).min(PREDICTORS - 1);
    Environment {
        dispatch: 1.0 / at(0),
        ports: std::array::from_fn(|group| 1.0 / at(FIRST_PORT + group)),
        entries: std::array::from_fn(|queue| at(FIRST_ENTRIES + queue).exp2()),
        reach: std::array::from_fn(|level| at(FIRST_REACH + level)),
        predictor: size,
        memory_latency: at(LATENCY),
        memory_interval: at(INTERVAL).exp2(),
    }
}

/// Is the L2 the last level?
fn tied(core_type: &CoreTypePlace) -> bool {
    core_type.caches[CacheLevel::L2 as usize] == core_type.caches[CacheLevel::Last as usize]
}

/// How far each input can go.
fn ranges(
    phase: &ForCore,
    written: f64,
    pipeline: &Pipeline,
    core_type: &CoreTypePlace,
    memory: &MemoryPlace,
) -> Vec<Range> {
    let n = f64::from(pipeline.mode.max(1));
    let sharers = pipeline.sharers();
    let mut ranges = vec![Range::new(1.0, sharers.sqrt(), sharers).over(pipeline.width)];
    for group in 0..GROUPS {
        let alone = pipeline.group_size(group) == 0.0 || pipeline.private_groups[group];
        let most = if alone { 1.0 } else { sharers };
        ranges.push(Range::new(1.0, most.sqrt(), most));
    }
    for room in pipeline.rooms {
        let sharers = if room.halved { n / 2.0 } else { n };
        let least = if room.shared { (room.total / sharers).min(room.most) } else { room.most };
        let anchor = (least * room.most).sqrt();
        ranges.push(Range::new(room.most.log2(), anchor.log2(), least.log2()));
    }
    let tied = tied(core_type);
    for (level, (name, cache)) in CacheLevel::ALL.iter().zip(&core_type.caches).enumerate() {
        let footprint = &phase.footprints[level];
        let sharers = cache.cores as f64 * if cache.per_thread { 1.0 } else { n };
        let fixed = sharers <= 1.0
            && CacheLevel::ALL.get(level).is_none_or(|level| level.occupancy_index().is_none());
        let least = if fixed { 1.0 } else { STARVED / sharers };
        // Without an L3 both levels are one: the last one stands for both.
        let reuses = phase.trace.reuses(*name).filter(|_| !(tied && *name == CacheLevel::L2));
        let (shortest, longest) = reuses.unwrap_or((0.0, 0.0));
        let at = |part: f64| footprint.reach(cache.lines * part).clamp(shortest, longest);
        ranges.push(Range::new(at(1.0), at(1.0 / sharers), at(least)));
    }
    let largest = pipeline.predictor_of(1.0) as f64;
    let smallest = pipeline.predictor_of(n) as f64;
    ranges.push(Range::new(largest, smallest, smallest));
    let line = f64::from(pipeline.line);
    let (slow, fast) = core_type.ghz;
    let near = memory.latency * slow;
    ranges.push(Range::new(near, near * 1.2, memory.longest(line) * fast));
    let interval = memory.interval(line, written);
    let quick = (interval * slow / memory.nodes).log2();
    let starved =
        (interval.max(memory.link_interval(line, written)) * fast * core_type.threads).log2();
    ranges.push(Range::new(quick, quick + (starved - quick) / 4.0, starved));
    ranges
}

impl Range {
    /// All of it divided.
    fn over(self, by: f64) -> Self {
        Self { best: self.best / by, anchor: self.anchor / by, worst: self.worst / by }
    }
}

/// A phase on a core, with the window-model runs made so far.
struct Trial<'a> {
    pipeline: &'a Pipeline,
    whole: Course<'a>,
    /// Is the L2 the last level?
    tied: bool,
    window: Window,
    /// Of each run of the whole trace, the cycles of each of its pieces.
    runs: Vec<Vec<f64>>,
    /// The part that represents the whole.
    part: Option<Course<'a>>,
    reuses: Reuses,
    /// Answers of the whole, and of the part; with the cycles of the pieces, as far as they were wanted.
    known: [HashMap<Alike, Answer>; 2],
}

/// The result of a run.
#[derive(Debug, Clone)]
struct Answer {
    outcome: Outcome,
    /// Is it more than the CPI?
    full: bool,
    /// Of each piece.
    cycles: Vec<f64>,
}

impl Trial<'_> {
    fn run(&mut self, inputs: &[f64], effort: Effort) -> Outcome {
        let mut environment = environment(inputs);
        if self.tied {
            environment.reach[CacheLevel::L2 as usize] =
                environment.reach[CacheLevel::Last as usize];
        }
        let trace = self.whole.trace();
        let in_part = effort == Effort::Quick && trace.pieces.len() > PART;
        let choosing = !in_part && self.part.is_none();
        let course = if in_part {
            self.part.get_or_insert_with(|| {
                let instructions: Vec<f64> =
                    trace.pieces.iter().map(|piece| piece.instructions).collect();
                let part = trace.part(&part::choose(&instructions, &self.runs, PART));
                Course::new(self.pipeline, Cow::Owned(part))
            })
        } else {
            &self.whole
        };
        let full = effort == Effort::Full;
        let alike = self.reuses.alike(course, &environment);
        let known = &mut self.known[usize::from(in_part)];
        if let Some(known) = known.get(&alike).filter(|known| known.full || !full) {
            if choosing {
                self.runs.push(known.cycles.clone());
            }
            return known.outcome;
        }
        let outcome = if full {
            self.window.follow(course, &environment)
        } else {
            let cpi = self.window.cpi(course, &environment);
            Outcome { cpi, ..Outcome::default() }
        };
        let mut cycles = Vec::new();
        if choosing {
            cycles.extend(self.window.cycles_of_pieces());
            self.runs.push(cycles.clone());
        }
        known.insert(alike, Answer { outcome, full, cycles });
        outcome
    }
}

/// The bound of a phase: the demand on each port group when it is scarcest.
fn bound(ranges: &[Range], pipeline: &Pipeline, trial: &mut Trial<'_>) -> Bound {
    let mut run = |inputs: &[f64]| trial.run(inputs, Effort::Full);
    let best: Vec<f64> = ranges.iter().map(|range| range.best).collect();
    let front = run(&best).front;
    let mut least = [0.0; FIRST_ENTRIES];
    least[0] = (front * pipeline.width) as f32;
    for group in 0..GROUPS {
        let (input, ports) = (FIRST_PORT + group, pipeline.group_size(group));
        if ports > 0.0 && ranges[input].is_wide() {
            let mut scarce = best.clone();
            scarce[input] = ranges[input].worst;
            least[input] = (run(&scarce).port_cycles[group] / ports) as f32;
        }
    }
    let anchor: Vec<f64> = ranges.iter().map(|range| range.anchor).collect();
    Bound::new(least, &environment(&anchor))
}

impl ResponseTable {
    /// Makes the table, running the window model wherever that is needed.
    #[must_use]
    pub fn new(
        phase: &ForCore,
        written: f64,
        pipeline: &Pipeline,
        core_type: &CoreTypePlace,
        memory: &MemoryPlace,
    ) -> Self {
        let ranges = ranges(phase, written, pipeline, core_type, memory);
        let mut trial = Trial {
            pipeline,
            whole: Course::new(pipeline, Cow::Borrowed(&phase.trace)),
            tied: tied(core_type),
            window: Window::default(),
            runs: Vec::new(),
            part: None,
            reuses: Reuses::new(&phase.trace),
            known: Default::default(),
        };
        let best: Vec<f64> = ranges.iter().map(|range| range.best).collect();
        let fastest = trial.run(&best, Effort::Full).cpi as f32;
        let bound = bound(&ranges, pipeline, &mut trial);
        let table = build(&ranges, Tolerance::default(), &mut |inputs, effort| {
            let (mut often, seldom) = split(&trial.run(inputs, effort));
            let above = f64::from(often[0]) - bound.beyond_anchor(&environment(inputs));
            often[0] = above.max(SHORTEST).ln() as f32;
            (often, seldom)
        });
        let active = table.inputs().fold(0, |active, input| active | 1 << input);
        let active = bound.inputs().fold(active, |active, input| active | 1 << input);
        Self { table, bound, fastest, active }
    }

    /// Numbers of sampled points, axes and terms.
    #[must_use]
    pub fn size(&self) -> (usize, usize, usize) {
        let (axes, terms) = self.table.size();
        (self.table.nodes(), axes, terms)
    }

    /// Is it as [`ResponseTable::new`] makes them? One that was read from outside may
    /// not be.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let bits = self
            .table
            .inputs()
            .fold(0_u32, |bits, input| bits | 1_u32.checked_shl(input as u32).unwrap_or(u32::MAX));
        self.table.is_sound() && bits & !self.active == 0 && self.bound.is_sound()
    }

    /// The inputs that affect the results, one bit each.
    #[must_use]
    pub fn inputs(&self) -> u32 {
        self.active
    }

    /// The summary.
    #[must_use]
    pub fn summary(&self, environment: &Environment) -> Summary {
        self.linearized_summary(environment).0
    }

    /// The summary with its linearization.
    #[must_use]
    pub fn linearized_summary(&self, environment: &Environment) -> (Summary, Linearization) {
        let mut places = Places::default();
        self.locate(environment, &mut places);
        self.summary_at(&places, environment)
    }

    #[inline(always)]
    fn locate(&self, environment: &Environment, places: &mut Places) {
        let coordinates = coordinates(environment, self.active);
        let of = |input: usize| coordinates.get(input).copied().unwrap_or_default();
        self.table.locate(of, places);
    }

    fn summary_at(&self, places: &Places, environment: &Environment) -> (Summary, Linearization) {
        let (first, along, often) = self.table.rising(places);
        let above = first.exp();
        let mut slopes = [0.0; INPUTS];
        for (input, slope) in self.table.inputs().zip(along) {
            if let Some(of) = slopes.get_mut(input) {
                *of = above * slope * rise(environment, input) as f32;
            }
        }
        let linear =
            Linearization::new(above.into(), slopes, self.bound, self.fastest, self.active);
        let at = |index: usize| f64::from(often[index].max(0.0));
        let cpi = f64::from(above) + self.bound.beyond_anchor(environment);
        let held = |queue: usize| {
            let coordinate = f64::from(often[1 + queue]);
            let held = if queue == MSHR { coordinate.max(0.0) } else { coordinate.exp() };
            held.min(environment.entries[queue] * cpi)
        };
        let summary = Summary {
            cpi: cpi.max(f64::from(self.fastest)),
            held: std::array::from_fn(held),
            port_cycles: std::array::from_fn(|group| at(1 + STRUCTURES + group)),
            front: at(1 + STRUCTURES + GROUPS),
        };
        (summary, linear)
    }

    /// In full, with its linearization. The stacks sum to the CPI, as those of the window
    /// model do.
    #[must_use]
    pub fn detail(&self, environment: &Environment, width: f64) -> (Outcome, Linearization) {
        let mut places = Places::default();
        self.locate(environment, &mut places);
        let (summary, linear) = self.summary_at(&places, environment);
        let Summary { cpi, held, port_cycles, front } = summary;
        let seldom = self.table.seldom(&places);
        let (cycles, rest) = seldom.split_at(CYCLE_CAUSES);
        let (slots, vector) = rest.split_at(SLOT_CAUSES);
        let outcome = Outcome {
            cpi,
            cycles: fit(cycles, cpi),
            slots: fit(slots, cpi * width),
            held,
            port_cycles,
            front,
            vector_cycles: f64::from(vector[0]).clamp(0.0, cpi),
        };
        (outcome, linear)
    }
}

/// The parts of an outcome as the table keeps them.
fn split(outcome: &Outcome) -> ([f32; OFTEN], [f32; SELDOM]) {
    let mut often = [0.0; OFTEN];
    let taken = outcome.port_cycles.into_iter().chain([outcome.front]);
    let held = outcome.held.into_iter().enumerate();
    let held = held.map(|(queue, held)| if queue == MSHR { held } else { held.max(LEAST).ln() });
    let short = [outcome.cpi].into_iter().chain(held).chain(taken);
    often.iter_mut().zip(short).for_each(|(to, from)| *to = from as f32);
    let mut seldom = [0.0; SELDOM];
    let parts = outcome.cycles.iter().chain(&outcome.slots).chain([&outcome.vector_cycles]);
    seldom.iter_mut().zip(parts).for_each(|(to, from)| *to = *from as f32);
    (often, seldom)
}

/// Parts that sum to `whole`; none is below zero.
fn fit<const N: usize>(parts: &[f32], whole: f64) -> [f64; N] {
    let part = |index: usize| parts.get(index).map_or(0.0, |part| f64::from(part.max(0.0)));
    let sum: f64 = (0..N).map(part).sum();
    let factor = if sum > 0.0 { whole / sum } else { 0.0 };
    std::array::from_fn(|index| part(index) * factor)
}

#[cfg(test)]
mod tests;
