//! Which threads share a core, at least cost.
//!
//! # Problem
//! A model predicts the cost of each group of threads on one core. The groups of a quantum shall cost as
//! little as possible together. For pairs that is a perfect matching of least weight, which can be found
//! exactly; for wider cores it is NP-complete (Jiang et al., *Analysis and approximation of optimal
//! co-scheduling on chip multiprocessors*, 2008).
//!
//! # Approach
//! [`group()`] works for any cost of groups and any width that is a power of two ([`group_by`] for costs
//! that compute all parts of a union at once): threads are matched to pairs, pairs to groups of four,
//! and so on (module `group`). [`perfect_matching`] is the exact part (module `perfect`).
//!
//! # Terms and units
//! Costs and weights have the caller's unit; only their differences matter for a matching. *Dual*: a
//! number for each vertex; two of them never exceed the weight of their pair, except within an odd set
//! that has a price. *Slack*: the rest of a weight; an edge without is *tight*. *Mate*: the other vertex
//! of a pair. *Blossom*: an odd cycle of tight edges, treated as one node.
//!
//! # Properties
//! The modules `perfect` and `group` list them.
//!
//! # Example
//! ```
//! use symbiont_matching::{Request, group};
//!
//! // Memory bandwidth that each thread uses, in percent.
//! let uses = [80_i32, 70, 10, 30];
//! let cost = |group: &[usize]| {
//!     let sum: i32 = group.iter().map(|&thread| uses[thread]).sum();
//!     f64::from((sum - 100).max(0))
//! };
//! let found = group(&Request::new(4, 2, 2), cost)?;
//! assert_eq!(found.groups, [[0, 2], [1, 3]]);
//! # Ok::<(), symbiont_matching::GroupError>(())
//! ```

mod auction;
mod blossom;
mod costs;
mod dual;
mod group;
mod local;
mod matrix;
mod perfect;
mod search;
mod solve;
mod weights;

pub use costs::{GroupCosts, GroupError};
pub use group::{Grouping, Request, group, group_by};
pub use perfect::{Matching, OddVertices, perfect_matching};
pub use weights::{WeightError, Weights};
