//! Values of several terms, each interpolated between its nodes, summed up.
//!
//! # Approach
//! An interpolated value is a weighted sum of the rows of nodes. The rows and weights of all terms are
//! collected first, then added one after the other in a tight loop, so that the sums stay in registers.

use super::layout::AxisPosition;
use super::{GRIDS, MOST_AXES, Places, Term};

/// Rows that are noted before they are added.
const BATCH: usize = 64;
/// Most rows of a term.
const MOST: usize = 8;

/// A sum of rows of `N` values.
pub(super) struct Sum<'v, const N: usize> {
    values: &'v [[f32; N]],
    sum: [f32; N],
    /// Rows that are still to be added, each with its weight.
    noted: [(u32, f32); BATCH],
    count: usize,
}

impl<'v, const N: usize> Sum<'v, N> {
    /// Begins with the first of the rows.
    pub(super) fn new(values: &'v [[f32; N]]) -> Self {
        let sum = values.first().copied().unwrap_or([0.0; N]);
        Self { values, sum, noted: [(0, 0.0); BATCH], count: 0 }
    }

    /// Adds what a term says.
    #[inline]
    pub(super) fn add(&mut self, term: &Term, places: &Places) {
        if self.count > BATCH - MOST {
            self.flush();
        }
        let (start, n) = (term.start, term.nodes);
        let place = |at: usize| &places.0[usize::from(term.axes[at]).min(MOST_AXES - 1)];
        let cell = |at: usize| place(at).cells[usize::from(term.grid).min(GRIDS.len() - 1)];
        if term.order == 1 {
            let AxisPosition { node, share, .. } = *place(0);
            self.note([(start + node, 1.0 - share), (start + node + 1, share)]);
            return;
        }
        let [(i, x), (j, y)] = [cell(0), cell(1)];
        if term.order == 2 {
            self.note(square(start + i * n + j, n, x, y, 1.0));
            return;
        }
        let (k, z) = cell(2);
        let row = start + (i * n + j) * n + k;
        self.note(square(row, n, y, z, 1.0 - x));
        self.note(square(row + n * n, n, y, z, x));
    }

    #[inline]
    fn note<const R: usize>(&mut self, rows: [(u32, f32); R]) {
        if let Some(noted) = self.noted.get_mut(self.count..self.count + R) {
            noted.copy_from_slice(&rows);
            self.count += R;
        }
    }

    fn flush(&mut self) {
        let noted = self.noted.get(..self.count).unwrap_or_default();
        add_all(&mut self.sum, self.values, noted);
        self.count = 0;
    }

    /// The sum of all.
    pub(super) fn all(mut self) -> [f32; N] {
        self.flush();
        self.sum
    }
}

/// Four nodes from `row` on, two of them a row of `n` later, each with its part of a weight.
fn square(row: u32, n: u32, x: f32, y: f32, weight: f32) -> [(u32, f32); 4] {
    let (near, far) = (weight * (1.0 - x), weight * x);
    [
        (row, near * (1.0 - y)),
        (row + 1, near * y),
        (row + n, far * (1.0 - y)),
        (row + n + 1, far * y),
    ]
}

#[inline(never)]
fn add_all<const N: usize>(sum: &mut [f32; N], values: &[[f32; N]], rows: &[(u32, f32)]) {
    let mut total = *sum;
    for (row, weight) in rows {
        let value = &values[*row as usize];
        for (total, value) in total.iter_mut().zip(value) {
            *total += weight * value;
        }
    }
    *sum = total;
}
