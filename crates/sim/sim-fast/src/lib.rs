//! The simulated machine: described hardware, seeded and deterministic.
//!
//! # Problem
//! What threads do to each other on one core can be studied only where cores
//! have several hardware threads and counters; few people that try a scheduler
//! have such a machine at hand, and no one has all of those that the published
//! schedulers were measured on.
//!
//! # Approach
//! | module | it holds |
//! |---|---|
//! | [`description`] | machines as text files: every figure with its source, or marked as assumed |
//! | [`physics`] | how fast threads co-run: the window model and its fixed point |
//! | [`program`] | what programs do over time: profiles, serial and parallel phases |
//! | [`machine`] | virtual time, the operating system, counters, moves: [`machine::SimMachine`] |
//! | [`fast`] | the physics behind the machine |
//! | [`ready`] | what the physics needs first, by all processors, kept from run to run |
//! | [`activity`] | what a thread did, in the terms of the hardware |
//!
//! This crate knows no policy and no interference model, so that nothing is graded
//! by its own assumptions. It knows no clock: equal seeds give equal bytes.

pub mod activity;
pub mod description;
mod events;
pub mod fast;
pub mod machine;
pub mod measured;
pub mod names;
pub mod os;
pub mod physics;
pub mod program;
pub mod ready;

pub use physics::prepared::PrepareError;
