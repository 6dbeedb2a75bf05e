//! One input of a table: where it was sampled, and how much effect it has.
//!
//! An axis runs over a coordinate of its own. Tables over several axes are spaced by the *effect* of
//! each: a position from 0 to [`STEPS`], with the anchor in the middle, along which the function changes
//! evenly. So a cliff between two close coordinates is crossed in many steps, and a plain in few.

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
pub struct Axis {
    /// Which input of the function it is.
    pub input: usize,
    /// Coordinates at which it was looked at, rising.
    coordinates: Vec<f32>,
    /// The position of each.
    positions: Vec<f32>,
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
        Self { input, coordinates, positions }
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

    /// Coordinates of the nodes, rising.
    #[must_use]
    pub fn coordinates(&self) -> &[f32] {
        &self.coordinates
    }

    /// Positions of the nodes.
    #[must_use]
    pub fn positions(&self) -> &[f32] {
        &self.positions
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
