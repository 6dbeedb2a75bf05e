//! The slopes of a table where it was looked up.
//!
//! # Approach
//! Within a cell each term is linear along each axis, so its slope follows from the same nodes as its
//! value. Beyond the ends of an axis the slope is 0.
//!
//! # Properties
//! Close to where it was looked up, value and slopes give what the table says there
//! (`slopes_lead_to_what_is_near`).

use super::layout::AxisPosition;
use super::sums::Sum;
use super::{MOST_AXES, Places, Table};

/// By axis: change of the first value per unit of the coordinate.
pub type Slopes = [f32; MOST_AXES];

impl<const H: usize, const C: usize> Table<H, C> {
    /// The first of the values, in full; its slopes; and the values that are often asked for, from
    /// which what several inputs do together is left out.
    #[must_use]
    pub fn rising(&self, places: &Places) -> (f32, Slopes, [f32; H]) {
        let mut slopes = [0.0; MOST_AXES];
        let mut often = Sum::new(&self.often);
        let at = |row: usize| self.often.get(row).map_or(0.0, |values| values[0]);
        let mut sum = at(0);
        for term in self.terms.iter().take_while(|term| term.order == 1) {
            let axis = usize::from(term.axes[0]).min(MOST_AXES - 1);
            let AxisPosition { node, share, rise, .. } = places.0[axis];
            let from = term.start as usize + node as usize;
            let (low, step) = (at(from), at(from + 1) - at(from));
            sum += low + share * step;
            slopes[axis] += step * rise;
            often.add(term, places);
        }
        sum += self.layout.together(places, &mut slopes);
        (sum, slopes, often.all())
    }
}
