//! One input of a table: where it was looked at, and how much it does.
//!
//! An axis runs over a coordinate of its own. The tables over several
//! axes are spaced by the *effect* of each: a position from 0 to [`STEPS`], with the
//! anchor at the middle, in which the answer along the axis changes evenly. So a
//! cliff between two close coordinates is crossed in many steps, and a plain in
//! few.

use serde::{Deserialize, Serialize};

/// Positions of an axis beyond the first.
pub const STEPS: usize = 8;
/// The position of the anchor.
pub const MIDDLE: usize = STEPS / 2;

/// Which coordinates an input may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Where the thread does best.
    pub best: f64,
    /// Where all others are looked at from.
    pub anchor: f64,
    /// Where it does worst.
    pub worst: f64,
}

impl Range {
    /// A range, whatever its ends, whose anchor lies within.
    #[must_use]
    pub fn new(best: f64, anchor: f64, worst: f64) -> Self {
        Self { best, anchor: anchor.clamp(best.min(worst), best.max(worst)), worst }
    }

    /// Is there anything to choose?
    #[must_use]
    pub fn is_wide(self) -> bool {
        (self.best - self.worst).abs() > 1e-9 * self.best.abs().max(1.0)
    }
}

/// An input of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Nodes", into = "Nodes")]
pub struct Axis {
    /// Which input of the function it is.
    pub input: usize,
    /// Coordinates at which it was looked at, rising.
    coordinates: Vec<f32>,
    /// The position of each.
    positions: Vec<f32>,
    /// From each node but the last to the next one, close together.
    ways: Vec<Way>,
    /// The first coordinate.
    first: f32,
    /// The node at or before the start of each of [`BUCKETS`] equal parts.
    starts: [u8; BUCKETS],
    /// Parts per unit of the coordinate.
    scale: f32,
}

/// Equal parts in which a node is looked for.
const BUCKETS: usize = 32;

/// From one node to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Way {
    /// Coordinate and position of the node.
    from: f32,
    position: f32,
    /// Share of the way per unit of the coordinate.
    rise: f32,
    /// Positions to the next.
    step: f32,
}

/// What an axis follows from.
#[derive(Clone, Serialize, Deserialize)]
struct Nodes {
    input: usize,
    coordinates: Vec<f32>,
    positions: Vec<f32>,
}

impl From<Nodes> for Axis {
    fn from(nodes: Nodes) -> Self {
        let Nodes { input, coordinates, positions } = nodes;
        let first = coordinates.first().copied().unwrap_or_default();
        let last = coordinates.last().copied().unwrap_or_default();
        let width = (last - first) / BUCKETS as f32;
        let starts = std::array::from_fn(|bucket| {
            let start = first + bucket as f32 * width;
            let after = coordinates.iter().skip(1).take_while(|node| **node <= start).count();
            u8::try_from(after.min(coordinates.len().saturating_sub(2))).unwrap_or(u8::MAX)
        });
        let scale = if width > 0.0 { 1.0 / width } else { 0.0 };
        let way = |(at, to): (&[f32], &[f32])| Way {
            from: at[0],
            position: to[0],
            rise: if at[1] > at[0] { 1.0 / (at[1] - at[0]) } else { 0.0 },
            step: to[1] - to[0],
        };
        let ways = coordinates.windows(2).zip(positions.windows(2)).map(way).collect();
        Self { input, coordinates, positions, ways, first, starts, scale }
    }
}

impl From<Axis> for Nodes {
    fn from(axis: Axis) -> Self {
        Self { input: axis.input, coordinates: axis.coordinates, positions: axis.positions }
    }
}

/// Where a coordinate lies on an axis.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// The node before it, and the share of the way to the next.
    pub node: u32,
    /// 0 to 1.
    pub share: f32,
    /// Its position, 0 to [`STEPS`].
    pub position: f32,
    /// Share of the way per unit of the coordinate; 0 beyond the ends.
    pub rise: f32,
    /// Positions per unit of the coordinate; 0 beyond the ends.
    pub pace: f32,
}

impl Axis {
    /// An axis from nodes (rising, at least two) and the answer at each. The
    /// anchor is one of them.
    #[must_use]
    pub fn new(input: usize, nodes: &[(f64, f64)], anchor: f64) -> Self {
        let at = nodes.iter().position(|node| node.0 >= anchor).unwrap_or(0);
        let mut positions = vec![0.0; nodes.len()];
        // Effect passed since the end of the half, in a mix with plain distance so
        // that no stretch has none.
        let mut spread = |from: usize, to: usize, first: f64, last: f64| {
            let part = &nodes[from..=to];
            let change = |pair: &[(f64, f64)]| (pair[1].1 - pair[0].1).abs();
            let whole: f64 = part.windows(2).map(change).sum();
            let length = part[part.len() - 1].0 - part[0].0;
            let mut passed = first;
            positions[from] = first as f32;
            for (index, pair) in part.windows(2).enumerate() {
                let plain = (pair[1].0 - pair[0].0) / length;
                let effect = if whole > 0.0 { change(pair) / whole } else { plain };
                passed += (last - first) * (0.97 * effect + 0.03 * plain);
                positions[from + index + 1] = passed as f32;
            }
            positions[to] = last as f32;
        };
        let (middle, end) = (MIDDLE as f64, STEPS as f64);
        if at > 0 {
            spread(0, at, 0.0, middle);
        }
        if at + 1 < nodes.len() {
            spread(at, nodes.len() - 1, middle, end);
        }
        let coordinates = nodes.iter().map(|node| node.0 as f32).collect();
        Nodes { input, coordinates, positions }.into()
    }

    /// Is it as [`Axis::new`] makes them?
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let rises = |values: &[f32]| values.windows(2).all(|pair| pair[0] <= pair[1]);
        let ends = 0.0..=STEPS as f32;
        (2..=usize::from(u8::MAX)).contains(&self.coordinates.len())
            && self.positions.len() == self.coordinates.len()
            && rises(&self.coordinates)
            && rises(&self.positions)
            && self.positions.iter().all(|position| ends.contains(position))
            && self.coordinates.iter().all(|coordinate| coordinate.is_finite())
    }

    /// How many nodes it has.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.coordinates.len()
    }

    /// First and last position: the anchor may lie at an end.
    #[must_use]
    pub fn ends(&self) -> (usize, usize) {
        let whole = |position: Option<&f32>| position.map_or(MIDDLE, |p| p.round() as usize);
        (whole(self.positions.first()), whole(self.positions.last()))
    }

    /// Where a coordinate lies; one beyond the ends at the end.
    #[must_use]
    pub fn place(&self, coordinate: f64) -> Place {
        let coordinate = coordinate as f32;
        // A cast from a float saturates.
        let bucket = ((coordinate - self.first) * self.scale) as u32 as usize;
        let mut node = usize::from(self.starts[bucket.min(BUCKETS - 1)]);
        while self.ways.get(node + 1).is_some_and(|next| next.from <= coordinate) {
            node += 1;
        }
        let Some(way) = self.ways.get(node) else { return Place::default() };
        let share = (coordinate - way.from) * way.rise;
        let within = (0.0..=1.0).contains(&share);
        let share = share.clamp(0.0, 1.0);
        let rise = if within { way.rise } else { 0.0 };
        let position = way.position + share * way.step;
        Place { node: node as u32, share, position, rise, pace: rise * way.step }
    }

    /// The coordinate at a position.
    #[must_use]
    pub fn coordinate(&self, position: usize) -> f64 {
        let position = position as f32;
        let after = self.positions.partition_point(|node| *node <= position);
        let node = after.clamp(1, self.positions.len() - 1) - 1;
        let (a, b) = (self.positions[node], self.positions[node + 1]);
        let share = if b > a { ((position - a) / (b - a)).clamp(0.0, 1.0) } else { 0.0 };
        let (from, to) = (self.coordinates[node], self.coordinates[node + 1]);
        f64::from(from + share * (to - from))
    }
}
