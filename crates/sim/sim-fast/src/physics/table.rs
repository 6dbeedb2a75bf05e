//! Tables of a function of many inputs, as a sum of functions of few.
//!
//! # Problem
//! One run of the window model takes a tenth of a millisecond; a simulated quantum needs several
//! results per thread within a microsecond. A grid over twenty inputs is out of reach.
//!
//! # Approach
//! Anchored high-dimensional model representation (cut-HDMR: Rabitz and Aliş, 1999): most of the effect
//! of the inputs is that of one, two or three of them. Around an anchor a,
//! f(x) ≈ f(a) + Σ fᵢ(xᵢ) + Σ fᵢⱼ(xᵢ, xⱼ) + Σ fᵢⱼₖ(xᵢ, xⱼ, xₖ),
//! where a term is what its inputs do together beyond what fewer of them do, hence 0 wherever one of them
//! is at the anchor. Inputs without effect at the anchor and at some corners are left out; a term
//! of several inputs is made where the corners show an effect, and refined while finer values differ from
//! interpolated ones. Quick, approximate runs suffice to learn that most have none
//! ([`function::Effort`]). The jitter of single results is removed from the anchor's, and is not taken for
//! an interaction (`jitter`). The tabulated function is a vector; its first element steers all that.
//!
//! # Terms and units
//! *Coordinate*, *position*: see [`axis`]. *Tolerance*: by how much the first element may be off.
//!
//! # Properties
//! - Sums of functions of up to three inputs are met within the tolerance
//!   (`sums_of_functions_of_few_inputs_are_met`); the anchor and the axes exactly
//!   (`anchor_and_axes_are_exact`).
//! - An input without effect costs nothing (`an_input_without_effect_is_left_out`).
//! - Slopes lead to what the table says nearby (`slopes_lead_to_what_is_near`).

pub mod axis;
pub mod build;
pub mod function;
mod jitter;
mod layout;
mod slopes;
mod sums;
#[cfg(test)]
mod tests;

pub use axis::Range;
use axis::{Axis, MIDDLE, STEPS};
pub use build::build;
use layout::{AxisPosition, Layout};
use serde::{Deserialize, Serialize};
use sums::Sum;

/// Most inputs that a table distinguishes.
pub const MOST_AXES: usize = 24;

/// A term: the joint effect of some axes.
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

/// A tabulated function with `H` hot values, which are often looked up, and `C` cold ones.
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

/// Where inputs lie on the axes of a table.
#[derive(Debug, Clone, Default)]
pub struct Places([AxisPosition; MOST_AXES]);

impl<const H: usize, const C: usize> Table<H, C> {
    /// Number of sampled points that it keeps.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.first.len()
    }

    /// How many axes and terms it has.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.axes.len(), self.terms.len())
    }

    /// The inputs that have any effect.
    pub fn inputs(&self) -> impl Iterator<Item = usize> + '_ {
        self.layout.inputs()
    }

    /// Sets where inputs lie; `input` gives the coordinate of each, as the function had them.
    #[inline(always)]
    pub fn locate(&self, input: impl Fn(usize) -> f64, places: &mut Places) {
        self.layout.locate(input, places);
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
        let mut sum = Sum::new(values);
        for term in self.terms.iter().take_while(|term| term.order <= most) {
            sum.add(term, places);
        }
        sum.all()
    }
}

/// The grids of terms over several axes: nodes per position, and cells. Each is twice as fine as the
/// one before.
const GRIDS: [(f32, u32); 3] = {
    let half = (STEPS / MIDDLE) as u32;
    [(0.25, half), (0.5, 2 * half), (1.0, 4 * half)]
};

/// The cells of the grids that a position lies in, and where in each.
fn cells(position: f32) -> [(u32, f32); GRIDS.len()] {
    let finest = GRIDS[GRIDS.len() - 1].1;
    let whole = (position as u32).min(finest - 1);
    GRIDS.map(|(density, cells)| {
        let index = whole / (finest / cells);
        (index, position * density - index as f32)
    })
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
