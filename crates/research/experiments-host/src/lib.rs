//! Experiments on the real machine.
//!
//! | experiment | question |
//! |---|---|
//! | [`mod@bench`] | does a policy make a command faster than Linux alone? |
//! | [`phases`] | what serial phases first gains (Morad et al.) |
//! | [`openmp`] | the same for real parallel programs |
//! | [`pairs`] | how programs slow each other down on a core |
//! | [`latency`] | what classes do for requests |
//! | `hardware` (a feature) | simulated pairs, kernels and programs against measured ones |
//!
//! What they share: programs run within bounds, and measured cell by cell ([`harness`]); both orders of two programs
//! ([`orders`]).

pub mod bench;
#[cfg(feature = "hardware")]
pub mod hardware;
pub mod harness;
pub mod latency;
pub mod openmp;
pub mod orders;
pub mod pairs;
pub mod phases;
#[cfg(test)]
mod worlds {
    pub(crate) mod scripts;
}
