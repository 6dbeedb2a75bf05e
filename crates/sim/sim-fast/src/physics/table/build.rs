//! How a table is made.

use std::collections::HashMap;

use super::axis::{Axis, MIDDLE, Range, STEPS};
use super::function::{Effort, Function, Values};
use super::jitter::Jitter;
use super::{MOST_AXES, Parts, Table, Term, nodes_at};

/// How closely a table shall match the first value of its function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// An input that does no more anywhere it is tried is left out.
    pub axis: f64,
    /// A node is added along an axis where interpolation misses by more.
    pub node: f64,
    /// What inputs do together is left out below this, and refined while
    /// finer nodes differ by more.
    pub term: f64,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self { axis: 5e-4, node: 2e-3, term: 1.5e-2 }
    }
}

/// A term is refined while it may err by so many tolerances.
const DOUBT: f64 = 2.0;

/// A term is looked at closely from this part of the tolerance on, by quick answers.
const SEEN: f64 = 0.5;

/// What three inputs do counts below the tolerance, since so many do anything three by three.
const THREE: f64 = 0.5;

/// What jitter of all the answers that a term over two or three axes is made of adds up to at most in
/// nineteen of twenty terms, in standard deviations of one answer: of 4 points with 4 answers
/// each, of 8 with 8.
const JITTER: [f64; 2] = [5.0, 7.5];

/// Most halvings of an axis' first quarters.
const HALVINGS: usize = 4;

/// A point: positions of the axes that are not at the anchor.
type Key = Vec<(u8, u8)>;

/// The function and what is known of it.
struct KnownPoints<'f, const H: usize, const C: usize> {
    function: &'f mut Function<'f, H, C>,
    anchor: Vec<f64>,
    axes: Vec<Axis>,
    /// By effort.
    values: [HashMap<Key, Values<H, C>>; 3],
}

fn plus<const N: usize>(a: &mut [f32; N], b: &[f32; N], share: f32) {
    for (a, b) in a.iter_mut().zip(b) {
        *a += share * b;
    }
}

/// Adds a share of one value to another.
fn add<const H: usize, const C: usize>(to: &mut Values<H, C>, value: &Values<H, C>, share: f32) {
    plus(&mut to.0, &value.0, share);
    plus(&mut to.1, &value.1, share);
}

impl<const H: usize, const C: usize> KnownPoints<'_, H, C> {
    /// The value at a point.
    fn at(&mut self, key: &Key, effort: Effort) -> Values<H, C> {
        let known = |effort: Effort| self.values[effort as usize].get(key);
        let full = || known(Effort::Full).filter(|_| effort == Effort::First);
        if let Some(known) = known(effort).or_else(full) {
            return *known;
        }
        let mut inputs = self.anchor.clone();
        for &(axis, position) in key {
            let axis = &self.axes[usize::from(axis)];
            inputs[axis.input] = axis.coordinate(usize::from(position));
        }
        let value = (self.function)(&inputs, effort);
        self.values[effort as usize].insert(key.clone(), value);
        value
    }

    /// What the axes of `key` do together, beyond what fewer of them do, by
    /// inclusion and exclusion.
    fn together(&mut self, key: &Key, effort: Effort) -> Values<H, C> {
        let mut sum = ([0.0; H], [0.0; C]);
        for subset in 0..1_u32 << key.len() {
            let part: Key =
                (0..key.len()).filter(|i| subset >> i & 1 == 1).map(|i| key[i]).collect();
            let sign = if (key.len() - part.len()) % 2 == 0 { 1.0 } else { -1.0 };
            add(&mut sum, &self.at(&part, effort), sign);
        }
        sum
    }
}

/// Tabulates a function. `ranges` are those of its inputs; the function is asked at
/// values within them.
pub fn build<const H: usize, const C: usize>(
    ranges: &[Range],
    tolerance: Tolerance,
    function: &mut Function<'_, H, C>,
) -> Table<H, C> {
    let anchor: Vec<f64> = ranges.iter().map(|range| range.anchor).collect();
    let here = function(&anchor, Effort::Full);
    let Jitter { middle, deviation } = Jitter::new(ranges, here, tolerance.node, function);
    let mut table = Parts {
        axes: Vec::new(),
        terms: Vec::new(),
        first: Vec::new(),
        often: vec![middle.0],
        seldom: vec![middle.1],
    };
    for input in active(ranges, tolerance.axis, function) {
        let mut nodes = scan(ranges[input], input, &anchor, tolerance.node, function);
        nodes.iter_mut().filter(|node| node.0 == anchor[input]).for_each(|node| node.1 = middle);
        let along: Vec<_> = nodes.iter().map(|(x, v)| (*x, f64::from(v.0[0]))).collect();
        let number = table.axes.len() as u8;
        table.axes.push(Axis::new(input, &along, anchor[input]));
        let start = table.often.len() as u32;
        let nodes_here = nodes.len() as u32;
        for (_, mut value) in nodes {
            add(&mut value, &middle, -1.0);
            table.often.push(value.0);
            table.seldom.push(value.1);
        }
        table.terms.push(Term {
            axes: [number, 0, 0],
            order: 1,
            grid: 0,
            nodes: nodes_here,
            start,
        });
    }
    let axes = table.axes.clone();
    let mut known = KnownPoints { function, anchor, axes, values: Default::default() };
    known.values[Effort::Full as usize].insert(Key::new(), middle);
    let alone = table.often.len();
    let term = tolerance.term;
    let [pairs, threes] = JITTER.map(|most| most * deviation);
    let tolerances = [term.max(pairs), (THREE * term).max(threes)];
    let with_pairs = combine(&mut table, &mut known, tolerances);
    table.first = table.often.iter().map(|values| [values[0]]).collect();
    // What is left out of answers need not be kept.
    table.often.truncate(alone);
    table.seldom.truncate(with_pairs);
    table.into()
}

/// Inputs that do something at the best or the worst corner, at the anchor, or at two
/// corners between: the first ones those whose effect was largest where it was seen first.
fn active<const H: usize, const C: usize>(
    ranges: &[Range],
    least: f64,
    function: &mut Function<'_, H, C>,
) -> Vec<usize> {
    let mut effects = vec![0.0_f64; ranges.len()];
    for base in 0..5 {
        let ends = |(input, range): (usize, &Range)| match base {
            0 => (range.best, range.worst),
            1 => (range.worst, range.best),
            2 => (range.anchor, range.worst),
            _ if (input + base) % 2 == 0 => (range.best, range.worst),
            _ => (range.worst, range.best),
        };
        let ends: Vec<(f64, f64)> = ranges.iter().enumerate().map(ends).collect();
        let inputs: Vec<f64> = ends.iter().map(|ends| ends.0).collect();
        let here = f64::from(function(&inputs, Effort::First).0[0]);
        for (input, range) in ranges.iter().enumerate() {
            if !range.is_wide() || effects[input] > least {
                continue;
            }
            let mut moved = inputs.clone();
            moved[input] = ends[input].1;
            let there = f64::from(function(&moved, Effort::First).0[0]);
            effects[input] = effects[input].max((there - here).abs());
        }
    }
    let mut found: Vec<usize> = (0..ranges.len()).filter(|&i| effects[i] > least).collect();
    found.sort_by(|&a, &b| effects[b].total_cmp(&effects[a]));
    found.truncate(MOST_AXES);
    found
}

/// The function along one input, with nodes where it bends.
fn scan<const H: usize, const C: usize>(
    range: Range,
    input: usize,
    anchor: &[f64],
    tolerance: f64,
    function: &mut Function<'_, H, C>,
) -> Vec<(f64, Values<H, C>)> {
    let mut at = |coordinate: f64| {
        let mut inputs = anchor.to_vec();
        inputs[input] = coordinate;
        function(&inputs, Effort::Full)
    };
    let (low, high) = (range.best.min(range.worst), range.best.max(range.worst));
    let mut ends = vec![low];
    for end in [range.anchor, high] {
        let from = ends[ends.len() - 1];
        if end > from + 1e-6 * (high - low) {
            ends.extend([from + (end - from) / 2.0, end]);
        }
    }
    let mut nodes: Vec<_> = ends.into_iter().map(|x| (x, at(x))).collect();
    // How far nodes lie from the straight line between their neighbours shows how
    // straight it is between them.
    let off = |[a, b, c]: [&(f64, Values<H, C>); 3]| {
        let share = (b.0 - a.0) / (c.0 - a.0);
        let line = f64::from(a.1.0[0]) * (1.0 - share) + f64::from(c.1.0[0]) * share;
        (f64::from(b.1.0[0]) - line).abs()
    };
    let bends: Vec<f64> = nodes.windows(3).map(|n| off([&n[0], &n[1], &n[2]])).collect();
    let bent = |node: Option<usize>| {
        node.and_then(|node| bends.get(node)).is_some_and(|bend| *bend > tolerance)
    };
    let mut doubtful: Vec<bool> =
        (0..nodes.len() - 1).map(|i| bent(i.checked_sub(1)) || bent(Some(i))).collect();
    for _ in 0..HALVINGS {
        let (mut next, mut next_doubtful) = (vec![nodes[0]], Vec::new());
        for (pair, doubt) in nodes.windows(2).zip(&doubtful) {
            let [(a, va), (b, vb)] = [pair[0], pair[1]];
            if *doubt {
                let middle = f64::midpoint(a, b);
                let value = at(middle);
                let expected = f64::from(va.0[0] + vb.0[0]) / 2.0;
                let wrong = (f64::from(value.0[0]) - expected).abs() > tolerance;
                // The node was paid for: it stays.
                next.push((middle, value));
                next_doubtful.extend([wrong, wrong]);
            } else {
                next_doubtful.push(false);
            }
            next.push((b, vb));
        }
        (nodes, doubtful) = (next, next_doubtful);
    }
    nodes
}

/// Adds what two and three axes do together; returns the rows there are without what three do.
fn combine<const H: usize, const C: usize>(
    table: &mut Parts<H, C>,
    known: &mut KnownPoints<'_, H, C>,
    [two, three]: [f64; 2],
) -> usize {
    let axes = table.axes.len() as u8;
    let mut pairs: Vec<Vec<u8>> = Vec::new();
    for a in 0..axes {
        for b in a + 1..axes {
            if add_term(table, known, &[a, b], two, 1) {
                pairs.push(vec![a, b]);
            }
        }
    }
    let rows = table.often.len();
    for (index, pair) in pairs.iter().enumerate() {
        for other in pairs[index + 1..].iter().filter(|other| other[0] == pair[0]) {
            let (a, b, c) = (pair[0], pair[1], other[1]);
            if pairs.contains(&vec![b.min(c), b.max(c)]) {
                add_term(table, known, &[a, b.min(c), b.max(c)], three, 2);
            }
        }
    }
    rows
}

/// All points of a grid over axes with one node every `stride` positions.
fn grid(axes: &[u8], stride: usize) -> Vec<Key> {
    let mut keys = vec![Key::new()];
    for &axis in axes {
        keys = keys
            .into_iter()
            .flat_map(|key| {
                (0..=STEPS).step_by(stride).map(move |position| {
                    let mut key = key.clone();
                    key.push((axis, position as u8));
                    key
                })
            })
            .collect();
    }
    keys
}

/// Adds what axes do together, if that is anything; down to `finest` positions. Quick answers
/// show whether it is.
fn add_term<const H: usize, const C: usize>(
    table: &mut Parts<H, C>,
    known: &mut KnownPoints<'_, H, C>,
    axes: &[u8],
    tolerance: f64,
    finest: usize,
) -> bool {
    let most = |values: &[Values<H, C>]| {
        values.iter().map(|value| f64::from(value.0[0]).abs()).fold(0.0, f64::max)
    };
    let mut stride = MIDDLE;
    if most(&term_values(known, axes, stride, Effort::Quick)) <= SEEN * tolerance {
        return false;
    }
    // Of what three do only the first value is kept.
    let effort = if axes.len() > 2 { Effort::First } else { Effort::Full };
    let mut values = term_values(known, axes, stride, effort);
    let mut doubt = most(&values);
    if doubt <= tolerance {
        return false;
    }
    // Finer grids cost much: they must promise something.
    while stride > finest && doubt > DOUBT * tolerance {
        let finer = term_values(known, axes, stride / 2, effort);
        doubt = misfit(&values, &finer, nodes_at(stride), axes.len());
        (values, stride) = (finer, stride / 2);
    }
    let start = table.often.len() as u32;
    table.often.extend(values.iter().map(|value| value.0));
    table.seldom.extend(values.iter().map(|value| value.1));
    table.terms.push(Term {
        axes: std::array::from_fn(|i| axes.get(i).copied().unwrap_or_default()),
        order: axes.len() as u8,
        grid: (MIDDLE / stride).ilog2() as u8,
        nodes: nodes_at(stride) as u32,
        start,
    });
    true
}

/// What axes do together at each point of a grid: nothing where one is at the anchor, or
/// beyond the end of an axis that begins or ends at its anchor.
fn term_values<const H: usize, const C: usize>(
    known: &mut KnownPoints<'_, H, C>,
    axes: &[u8],
    stride: usize,
    effort: Effort,
) -> Vec<Values<H, C>> {
    let mut values = Vec::new();
    for key in grid(axes, stride) {
        let absent = key.iter().any(|&(axis, position)| {
            let (first, last) = known.axes[usize::from(axis)].ends();
            let position = usize::from(position);
            position == MIDDLE || position < first || position > last
        });
        values.push(if absent { ([0.0; H], [0.0; C]) } else { known.together(&key, effort) });
    }
    values
}

/// The most by which finer values differ from what the coarser ones say there.
fn misfit<const H: usize, const C: usize>(
    coarse: &[Values<H, C>],
    fine: &[Values<H, C>],
    nodes: usize,
    axes: usize,
) -> f64 {
    let finer = 2 * nodes - 1;
    let mut worst = 0.0_f64;
    for (index, value) in fine.iter().enumerate() {
        // Digits of the index are the node along each axis.
        let mut rest = index;
        let mut around = vec![(0_usize, 1.0_f64)];
        let mut weight_of_axis = 1;
        for _ in 0..axes {
            let at = rest % finer;
            rest /= finer;
            let ends = [at / 2, at.div_ceil(2)];
            around = around
                .into_iter()
                .flat_map(|(base, share)| {
                    ends.map(|end| (base + end * weight_of_axis, share / 2.0))
                })
                .collect();
            weight_of_axis *= nodes;
        }
        let expected: f64 =
            around.iter().map(|&(at, share)| share * f64::from(coarse[at].0[0])).sum();
        worst = worst.max((f64::from(value.0[0]) - expected).abs());
    }
    worst
}
