//! What published models predict, to be put beside what was measured.

pub mod phases;
