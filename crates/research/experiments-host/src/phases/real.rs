//! Two real programs side by side: the same question without synthetic ones.
//!
//! # Problem
//! What a synthetic program gains, a real one might not: it reads and writes,
//! has helpers, and its threads wait for each other.
//!
//! # Approach
//! Two programs that every Debian or Ubuntu machine has. The *serial* one is
//! Python, computing a chain of SHA-256 digests: fixed work, one thread. The
//! *parallel* one is `xz` with a thread per hardware thread, which compresses
//! seeded text, fed to it again and again until the serial one is done. So the
//! serial program has n busy threads co-running with it from its first digest to its
//! last, and Morad et al.'s two orders of programs (eq. 5) are not needed.
//!
//! Only the serial program is measured. The parallel one's progress is known
//! to a block of its input at best, which is too coarse for runs this short;
//! what a parallel program pays, the synthetic ones show.
//!
//! Both outputs are checked after each run: the digest against that of an
//! unmanaged run, what `xz` wrote against its input. A machine without one of
//! the programs leaves the part out, and the report says so.
//!
//! # Terms and units
//! *Time* of the serial program: seconds from its first digest to its last, by
//! its own monotonic clock; starting Python is not in it. *Speedup*: mean time
//! alone over mean time side by side (eq. 5).
//!
//! # Properties
//! - Speedup is time alone over time together, and stands next to the model
//!   (`real_programs_are_judged_by_their_times`).
//! - A wrong output fails the run (`a_wrong_output_of_a_real_program_fails_the_run`).
//! - A missing program leaves the part out
//!   (`without_real_programs_their_part_is_left_out`).

mod evaluate;
mod run;

pub use evaluate::{Outcome, Real, RealCell, evaluate};
pub(super) use run::{Prepare, Work, start};
pub use run::{Tools, csv};

/// What the serial program says where it was to begin before it was ready.
pub(super) const LATE: &str = "was ready too late";
