//! What a table is made of.

/// The values of a function: the hot and the cold ones.
pub type Values<const H: usize, const C: usize> = ([f32; H], [f32; C]);

/// How well a function shall answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// The first value alone, about: differences of such answers are near those of exact ones.
    Quick,
    /// The first value alone, as exactly as it can.
    First,
    /// All values, as exactly as it can.
    Full,
}

/// A function to tabulate; it is asked at values of all its inputs. The first question is not
/// a quick one. Where only the first value is asked for, the others may be anything.
pub type Function<'f, const H: usize, const C: usize> =
    dyn FnMut(&[f64], Effort) -> Values<H, C> + 'f;
