//! How steeply a table rises where it was looked at.
//!
//! # Approach
//! Within a cell each term is a straight line or a product of such, so that its slope along each axis
//! follows from the same nodes as its value. Beyond the ends of an axis there is none.
//!
//! # Properties
//! Near where it was looked at, value and slopes tell what the table says there
//! (`slopes_lead_to_what_is_near`).

use super::{GRIDS, MOST_AXES, Places, Table, node};

/// By axis: change of the first value per unit of the coordinate.
pub type Slopes = [f32; MOST_AXES];

impl<const H: usize, const C: usize> Table<H, C> {
    /// The first of the values, in full, and its slopes.
    #[must_use]
    pub fn rising(&self, places: &Places) -> (f32, Slopes) {
        let mut slopes = [0.0; MOST_AXES];
        let at = |index: usize| self.first.get(index).map_or(0.0, |value| value[0]);
        let mut sum = at(0);
        for term in &self.terms {
            let start = term.start as usize;
            let axes = term.axes.map(|axis| usize::from(axis) % MOST_AXES);
            let [a, b, c] = axes.map(|axis| &places.0[axis]);
            let (grid, n) = (usize::from(term.grid) % GRIDS.len(), term.nodes as usize);
            let [(i, x), (j, y), (k, z)] = [a, b, c].map(|axis| node(axis.1[grid]));
            // Cells per unit of each axis' coordinate.
            let pace = [a, b, c].map(|axis| GRIDS[grid].0 * axis.0.pace);
            match term.order {
                1 => {
                    let from = start + a.0.node as usize;
                    let (low, step) = (at(from), at(from + 1) - at(from));
                    sum += low + a.0.share * step;
                    slopes[axes[0]] += step * a.0.rise;
                }
                2 => {
                    let [value, along_a, along_b] = square(start + i * n + j, n, x, y, at);
                    sum += value;
                    slopes[axes[0]] += pace[0] * along_a;
                    slopes[axes[1]] += pace[1] * along_b;
                }
                _ => {
                    let cell = start + (i * n + j) * n + k;
                    let near = square(cell, n, y, z, at);
                    let far = square(cell + n * n, n, y, z, at);
                    let between = |of: usize| near[of] + x * (far[of] - near[of]);
                    sum += between(0);
                    slopes[axes[0]] += pace[0] * (far[0] - near[0]);
                    slopes[axes[1]] += pace[1] * between(1);
                    slopes[axes[2]] += pace[2] * between(2);
                }
            }
        }
        (sum, slopes)
    }
}

/// Between four nodes: the value, and its rise per cell along both axes.
fn square(start: usize, n: usize, x: f32, y: f32, at: impl Fn(usize) -> f32) -> [f32; 3] {
    let [low, right, up, both] = [start, start + 1, start + n, start + n + 1].map(at);
    let (near, far) = (low + y * (right - low), up + y * (both - up));
    [near + x * (far - near), far - near, (1.0 - x) * (right - low) + x * (both - up)]
}
