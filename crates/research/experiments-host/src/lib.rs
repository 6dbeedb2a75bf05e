//! Experiments on the real machine.
//!
//! | experiment | question |
//! |---|---|
//! | [`mod@bench`] | does a policy make a command faster than Linux alone? |
//! | [`phases`] | what serial phases first gains (Morad et al.) |
//! | [`openmp`] | the same for real parallel programs |
//! | [`seniority`] | do parallel programs take turns fairly? |
//! | [`detection`] | how soon phases are seen |
//! | [`pairs`] | how programs slow each other down on a core |
//! | [`latency`] | what classes do for requests |
//! | [`overhead`], [`counting`] | what managing and counting cost |
//! | `hardware` (a feature) | simulated pairs, kernels and programs against measured ones |
//!
//! What they share: how runs are carried out ([`symbiont_campaign`]), orders of runs ([`orders`]), and what
//! the analytic model of serial phases predicts ([`theory`]).

pub mod bench;
pub mod counting;
pub mod detection;
#[cfg(feature = "hardware")]
pub mod hardware;
pub mod latency;
pub mod openmp;
pub mod orders;
pub mod overhead;
pub mod pairs;
pub mod phases;
pub mod seniority;
pub mod theory;
