//! Tables of a function of many inputs, made of functions of few.
//!
//! # Problem
//! The window model answers in a tenth of a millisecond; a simulated quantum of a
//! thread needs several answers in a microsecond. A grid over twenty inputs is out
//! of reach.
//!
//! # Approach
//! Most of what inputs do, they do alone or two or three together (anchored
//! high-dimensional model representation: Rabitz and Aliş, 1999). Around an
//! anchor a,
//! f(x) ≈ f(a) + Σ fᵢ(xᵢ) + Σ fᵢⱼ(xᵢ, xⱼ) + Σ fᵢⱼₖ(xᵢ, xⱼ, xₖ),
//! where a term is what its inputs do together beyond what fewer of them do, and so is 0
//! wherever one of them is at the anchor. Inputs that do nothing at the anchor and at some
//! corners are left out; a term over several inputs is made where the corners show that
//! it does something, and refined while finer values differ from interpolated ones. To
//! learn that most do nothing together, quick answers are enough ([`build::Effort`]).
//! What is tabulated is a vector; its first element steers all that.
//!
//! # Terms and units
//! *Coordinate*, *position*: see [`axis`]. *Tolerance*: a share of the answer.
//!
//! # Properties
//! - Sums of functions of up to three inputs are met within the tolerance
//!   (`sums_of_functions_of_few_inputs_are_met`); the anchor and the axes
//!   exactly (`anchor_and_axes_are_exact`).
//! - An input without effect costs nothing (`an_input_without_effect_is_left_out`).
//! - Slopes lead to what the table says nearby (`slopes_lead_to_what_is_near`).

pub mod axis;
pub mod build;
mod layout;
mod slopes;
#[cfg(test)]
mod tests;

pub use axis::Range;
use axis::{Axis, MIDDLE, STEPS};
pub use build::build;
use layout::{Layout, Place};
use serde::{Deserialize, Serialize};

/// Most inputs that a table tells apart.
pub const MOST_AXES: usize = 24;

/// What some axes do together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Term {
    /// Indices of one to three axes, rising; the rest stays unused.
    axes: [u8; 3],
    /// How many.
    order: u8,
    /// Which of [`GRIDS`] it has, if it is over several axes.
    grid: u8,
    /// Nodes along each axis.
    nodes: u32,
    /// Where its values begin.
    start: u32,
}

/// A tabulated function; `H` values that are often asked for, `C` that are not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Parts<H, C>", into = "Parts<H, C>")]
pub struct Table<const H: usize, const C: usize> {
    axes: Vec<Axis>,
    /// Those over one axis, then those over two, then those over three.
    terms: Vec<Term>,
    /// The first value of all terms.
    first: Vec<[f32; 1]>,
    /// Of terms over one axis alone.
    often: Vec<[f32; H]>,
    /// Of terms over one or two axes.
    seldom: Vec<[f32; C]>,
    /// Axes, and the first value of terms over several, once more.
    layout: Layout,
}

/// What a table follows from.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Parts<const H: usize, const C: usize> {
    axes: Vec<Axis>,
    terms: Vec<Term>,
    #[serde(with = "rows")]
    first: Vec<[f32; 1]>,
    #[serde(with = "rows")]
    often: Vec<[f32; H]>,
    #[serde(with = "rows")]
    seldom: Vec<[f32; C]>,
}

impl<const H: usize, const C: usize> From<Parts<H, C>> for Table<H, C> {
    fn from(parts: Parts<H, C>) -> Self {
        let Parts { axes, terms, first, often, seldom } = parts;
        let layout = Layout::new(&axes, &terms, &first);
        Self { axes, terms, first, often, seldom, layout }
    }
}

impl<const H: usize, const C: usize> From<Table<H, C>> for Parts<H, C> {
    fn from(table: Table<H, C>) -> Self {
        let Table { axes, terms, first, often, seldom, layout: _ } = table;
        Self { axes, terms, first, often, seldom }
    }
}

/// Where inputs lie on the axes of a table: the place, and the cell of each of `GRIDS`.
#[derive(Debug, Clone, Copy)]
pub struct Places([(Place, [(u32, f32); 3]); MOST_AXES]);

impl<const H: usize, const C: usize> Table<H, C> {
    /// How many points were looked at to make it, beyond those that were left out.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.first.len()
    }

    /// How many axes and terms it has.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.axes.len(), self.terms.len())
    }

    /// The inputs that do anything.
    pub fn inputs(&self) -> impl Iterator<Item = usize> + '_ {
        self.axes.iter().map(|axis| axis.input)
    }

    /// Where inputs lie; `input` tells the coordinate of each, as the function had them.
    #[must_use]
    pub fn places(&self, input: impl Fn(usize) -> f64) -> Places {
        self.layout.places(input)
    }

    /// The first of the values, in full; [`Table::rising`] tells its slopes, too.
    #[must_use]
    pub fn first(&self, places: &Places) -> f32 {
        self.rising(places).0
    }

    /// The values that are often asked for; what several inputs do together is left
    /// out.
    #[must_use]
    pub fn often(&self, places: &Places) -> [f32; H] {
        self.sum(&self.often, 1, places)
    }

    /// The values that are seldom asked for; what three inputs do together is left
    /// out.
    #[must_use]
    pub fn seldom(&self, places: &Places) -> [f32; C] {
        self.sum(&self.seldom, 2, places)
    }

    /// Is it as [`build()`] makes tables? One that was read from outside may not be.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        // Rows that terms of each order must have.
        let rows = [self.often.len(), self.seldom.len(), self.first.len()];
        let axis = |index: &u8| self.axes.get(usize::from(*index));
        let term = |term: &Term| {
            let (order, nodes) = (usize::from(term.order), term.nodes as usize);
            let Some(axes) = term.axes.get(..order) else { return false };
            let fits = match order {
                1 => axes.first().and_then(axis).is_some_and(|axis| axis.nodes() == nodes),
                2 | 3 => GRIDS
                    .get(usize::from(term.grid))
                    .is_some_and(|grid| nodes == grid.1 as usize + 1),
                _ => false,
            };
            let size = nodes.checked_pow(u32::from(term.order));
            let end = size.and_then(|size| size.checked_add(term.start as usize));
            let known = axes.iter().all(|index| axis(index).is_some());
            let there = |rows: &usize| end.is_some_and(|end| end <= *rows);
            fits && known && rows.get(order - 1..).is_some_and(|rows| rows.iter().all(there))
        };
        let finite = |row: &[f32]| row.iter().all(|value| value.is_finite());
        rows.iter().all(|rows| *rows > 0)
            && self.first.iter().all(|row| finite(row))
            && self.often.iter().all(|row| finite(row))
            && self.seldom.iter().all(|row| finite(row))
            && self.axes.len() <= MOST_AXES
            && self.axes.iter().all(Axis::is_sound)
            && self.terms.iter().all(term)
            && self.terms.is_sorted_by_key(|term| term.order)
    }

    fn sum<const N: usize>(&self, values: &[[f32; N]], most: u8, places: &Places) -> [f32; N] {
        let mut sum = values.first().copied().unwrap_or([0.0; N]);
        for term in self.terms.iter().take_while(|term| term.order <= most) {
            let start = term.start as usize;
            let [a, b, c] = term.axes.map(|axis| &places.0[usize::from(axis) % MOST_AXES]);
            let (grid, n) = (usize::from(term.grid) % GRIDS.len(), term.nodes as usize);
            let [(i, x), (j, y), (k, z)] = [a, b, c].map(|axis| node(axis.1[grid]));
            match term.order {
                1 => {
                    let (place, _) = a;
                    let rows = &values[start + place.node as usize..][..2];
                    add(&mut sum, &rows[0], 1.0 - place.share);
                    add(&mut sum, &rows[1], place.share);
                }
                2 => square(&mut sum, &values[start + i * n + j..], n, x, y, 1.0),
                _ => {
                    let at = start + (i * n + j) * n + k;
                    for (di, wi) in [(0, 1.0 - x), (n * n, x)] {
                        square(&mut sum, &values[at + di..], n, y, z, wi);
                    }
                }
            }
        }
        sum
    }
}

/// The grids of terms over several axes: nodes per position, and cells.
const GRIDS: [(f32, u32); 3] = {
    let half = (STEPS / MIDDLE) as u32;
    [(0.25, half), (0.5, 2 * half), (1.0, 4 * half)]
};

/// The cell of a grid that a position lies in, and where in it.
fn cell((density, cells): (f32, u32), position: f32) -> (u32, f32) {
    let at = position * density;
    let index = (at as u32).min(cells - 1);
    (index, at - index as f32)
}

/// The node at the start of a cell, and where in the cell.
fn node((index, share): (u32, f32)) -> (usize, f32) {
    (index as usize, share)
}

/// Adds what lies between the four nodes at the start of `rows`, two of them a row of `n` later.
fn square<const N: usize>(
    sum: &mut [f32; N],
    rows: &[[f32; N]],
    n: usize,
    x: f32,
    y: f32,
    weight: f32,
) {
    let (near, far) = (&rows[..2], &rows[n..n + 2]);
    add(sum, &near[0], weight * (1.0 - x) * (1.0 - y));
    add(sum, &near[1], weight * (1.0 - x) * y);
    add(sum, &far[0], weight * x * (1.0 - y));
    add(sum, &far[1], weight * x * y);
}

fn add<const N: usize>(sum: &mut [f32; N], value: &[f32; N], weight: f32) {
    for (sum, value) in sum.iter_mut().zip(value) {
        *sum += weight * value;
    }
}

/// Nodes of a term that has one every `stride` positions.
const fn nodes_at(stride: usize) -> usize {
    STEPS / stride + 1
}

/// Rows of a fixed length, written one after the other.
mod rows {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub fn serialize<S: Serializer, const N: usize>(
        rows: &[[f32; N]],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        rows.concat().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        from: D,
    ) -> Result<Vec<[f32; N]>, D::Error> {
        let values = Vec::<f32>::deserialize(from)?;
        let rows = values.chunks(N).map(|row| row.try_into().map_err(D::Error::custom));
        rows.collect()
    }
}
