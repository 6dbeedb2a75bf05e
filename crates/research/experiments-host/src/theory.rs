//! What published models predict, to be put next to what was measured.

pub mod phases;
