//! Workloads, metrics, published figures and reports.
//!
//! Experiments on the real machine: [`phases`] (serial phases first),
//! [`overhead`] (what managing costs), [`counting`] (what counting costs),
//! [`decision`] (how long a decision takes), [`latency`] (what classes do for requests), [`detection`] (how soon phases are seen), [`openmp`] (serial phases first for
//! real parallel programs) and [`seniority`] (turns of parallel programs), on what
//! they share ([`harness`]).
//!
//! On the simulated machine: [`simulated`], [`hysched`] (pairs of categories),
//! and the other sources of [`reproduce`]. On both machines: [`training`] (interference models).
//!
//! What every experiment uses: estimates with intervals ([`stats`]), the
//! figures that runs are judged by ([`metrics`], [`orders`]), what models predict
//! ([`theory`]), what papers print ([`published`]), and the writer of pages,
//! plots and data files ([`report`]).

pub mod activity;
pub mod bench;
pub mod campaign;
pub mod counting;
pub mod decision;
pub mod detection;
pub mod hardware;
pub mod harness;
pub mod hysched;
pub mod latency;
pub mod metrics;
pub mod openmp;
pub mod orders;
pub mod overhead;
pub mod phases;
pub mod published;
pub mod report;
pub mod reproduce;
pub mod seniority;
pub mod simulated;
pub mod stats;
pub mod theory;
pub mod training;
