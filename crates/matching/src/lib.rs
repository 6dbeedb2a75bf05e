//! Who shares a core with whom, at least cost.
//!
//! # Problem
//! A model says what each group of threads would cost on one core. The groups
//! of a quantum shall cost as little as possible together. For pairs that is a
//! perfect matching of least weight, which can be found exactly; for wider
//! cores it is NP-complete (Jiang et al., *Analysis and approximation of
//! optimal co-scheduling on chip multiprocessors*, 2008).
//!
//! # Approach
//! [`group`] works for any cost of groups and any width that is a power of two
//! ([`group_by`] for costs that tell all parts of a union at once).
//! Threads are matched to pairs, pairs to groups of four, and so on, each level
//! exactly; then each two groups are rearranged where that makes them cheaper
//! (Jiang et al.; Feliu et al., section 4.2). Where cores allow it, a thread
//! may get a partner that stands for nothing: it stays alone if that costs less.
//! Among equally cheap pairings the one nearest to the previous is taken; a
//! wider grouping gives way to the previous one, rearranged as well, if it is no
//! cheaper. Groups of many threads are rearranged only: what changes from one quantum to the
//! next is mended there as well as by building them up, in less than half the time.
//!
//! [`perfect_matching`] is the exact part by itself:
//!
//! 1. Weights become whole numbers ([`Weights`]), so that no sum is rounded.
//!    Below the last step of the grid there is room for a wish for each pair:
//!    that is how ties are broken.
//! 2. An auction finds duals that are feasible for all pairs and nearly best
//!    without odd sets (module `auction`).
//! 3. The ten partners of least slack of each vertex make a sparse graph. What
//!    tight edges do not match, Edmonds' algorithm does, one tree at a time
//!    (modules `search` and `blossom`; the manner of Applegate and Cook,
//!    *Solving large-scale matching problems*, 1993).
//! 4. The duals are checked on all pairs. Pairs that break them join the sparse
//!    graph, and the search goes on from there (pricing, as in Cook and Rohe,
//!    *Computing minimum-weight perfect matchings*, 1999). When none is broken,
//!    the value of the duals equals the weight: the proof that it is least.
//!
//! Duals of the last quantum are not used: with 1 % of noise on every stack and
//! a new phase in every twentieth thread, starting from them took as long as
//! starting anew.
//!
//! # Terms and units
//! Costs and weights have the caller's unit; only their differences matter for
//! a matching. *Dual*: a number for each vertex; two of them never
//! exceed the weight of their pair, except within an odd set that has a price.
//! *Slack*: how much is left of a weight; an edge without is *tight*. *Mate*:
//! the other vertex of a pair. *Blossom*: an odd cycle of tight edges, treated
//! as one node.
//!
//! # Properties
//! - A matching weighs what brute force finds (`weight_equals_brute_force`),
//!   what other implementations find on larger instances
//!   (`rustworkx_finds_the_same_weight`, `networkx_found_the_same_weight`), and
//!   what its own duals prove (`weight_equals_the_lower_bound`).
//! - Starting duals are feasible (`starting_duals_are_feasible_for_all_pairs`),
//!   and a broken pair is found (`each_broken_pair_is_named_with_its_shortage`).
//! - Floats are matched within the stated rounding
//!   (`floats_are_matched_within_the_stated_rounding`), whole ones exactly
//!   (`whole_floats_equal_integers`); nothing overflows within the range
//!   (`the_whole_range_is_matched_without_overflow`).
//! - Ties keep as many previous pairs as can be
//!   (`ties_keep_as_many_previous_pairs_as_brute_force`); a grouping that is no
//!   dearer stays (`a_grouping_that_is_no_dearer_stays`,
//!   `equal_costs_keep_any_previous_grouping`).
//! - Every grouping is a partition within cores and width
//!   (`every_grouping_is_a_partition`). In pairs it is the cheapest, with
//!   threads alone where that pays (`groups_of_two_cost_what_brute_force_finds`,
//!   `threads_are_alone_when_sharing_costs_more`).
//! - Groups of four lose less than a twentieth of what random ones lose
//!   (`groups_of_four_are_near_the_best`). Of many threads, rearranged from quantum to quantum, they
//!   lose at most 0.5 % of it more than built up (`rearranged_groups_keep_up_with_noise_and_new_phases`),
//!   2 % when they begin as chance makes them (`groups_of_chance_are_rearranged`). No core idles
//!   where using it pays (`idle_cores_are_used_at_once`).
//! - What is no number is refused, with its pair or group
//!   (`weights_that_are_no_numbers_are_refused_with_their_pair`,
//!   `costs_that_are_no_numbers_are_refused_with_their_group`,
//!   `a_part_whose_cost_is_no_number_is_named`).
//! - Costs that tell many groups at once ([`GroupCosts::parts`]) make the same groups
//!   (`parts_told_at_once_make_the_same_groups`).
//!
//! # Example
//! ```
//! use symbiont_matching::{Request, group};
//!
//! // How much of the memory bandwidth each thread wants, in percent.
//! let wants = [80_i32, 70, 10, 30];
//! let cost = |group: &[usize]| {
//!     let sum: i32 = group.iter().map(|&thread| wants[thread]).sum();
//!     f64::from((sum - 100).max(0))
//! };
//! let found = group(&Request::new(4, 2, 2), cost)?;
//! assert_eq!(found.groups, [[0, 2], [1, 3]]);
//! # Ok::<(), symbiont_matching::GroupError>(())
//! ```

mod auction;
mod blossom;
mod dual;
mod group;
mod local;
mod matrix;
mod perfect;
mod search;
mod solve;
mod weights;

pub use group::{GroupCosts, GroupError, Grouping, Request, group, group_by};
pub use perfect::{Matching, OddVertices, perfect_matching};
pub use weights::{WeightError, Weights};
