//! The simulated machine: described hardware, seeded and deterministic.
//!
//! # Problem
//! How threads that share a core affect each other can be studied only on cores with several hardware threads
//! and counters. Few users of a scheduler have such a machine at hand, and no one has all the machines
//! that the published schedulers were measured on.
//!
//! # Approach
//! | module | it holds |
//! |---|---|
//! | [`description`] | machines as text files: each value with its source, or marked as assumed |
//! | [`physics`] | how fast threads co-run: the window model and its fixed point |
//! | [`program`] | what programs do over time: profiles, serial and parallel phases |
//! | [`machine`] | virtual time, the operating system, counters, moves: [`machine::SimMachine`] |
//! | [`fast`] | the physics as the machine uses it |
//! | [`ready`] | tables made in advance, in parallel, and kept from run to run |
//! | [`activity`] | what a thread did, in terms of the hardware |
//!
//! This crate knows no policy and no interference model, so that none is judged by its own assumptions. It
//! reads no clock: equal seeds give equal bytes.

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
