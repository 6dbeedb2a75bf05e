//! Changes threads' affinity, nice value and idle class, and undoes every change.
//!
//! # Problem
//! However Symbiont lets go of a program, the program must be left as it was. A setting that the user, the
//! program or a cpuset chose must never be overruled. And the kernel reuses thread numbers.
//!
//! # Approach
//! An [`Actuator`] remembers for each adopted thread what it had before, and what of ours is applied now:
//! ```text
//! act(thread, setting):
//!     is it still the same thread, and does it still have what we left on it? else: gone, or changed by another
//!     write to the journal what it had and what it is about to get, and act
//!     is it still the same thread?          else: undo it on whichever thread it was
//! ```
//! At the end everything is restored; after a crash [`restore()`] does so from the journal. A thread that only has
//! to be moved, not kept, is nudged: its mask is narrowed and widened again at once. Priorities are changed only
//! where they can be restored, where one scheduling group holds all contenders, and where no `sched_ext`
//! scheduler is loaded. Weights of autogroups and cgroups are never changed. `LIMITATIONS.md` lists the limits.
//!
//! # Terms and units
//! *Saved*: what a thread had before us. A mask equal to its cpuset's is saved as "all" and restored as all ones,
//! so that it follows a cpuset that grows. *Allowed CPUs*: the saved mask within the cpuset. *Applied*: what we
//! set and have not restored. *Externally changed*: changed by another process since; then that value is the
//! saved one. Births are in clock ticks since boot.
//!
//! # Properties
//! - Settings come back at the end (`everything_comes_back_at_the_end`) and after SIGKILL
//!   (`a_crash_is_undone_also_for_children`), and follow a cpuset (`a_restored_mask_follows_a_cpuset_that_grew`).
//! - A mask is never widened (`a_narrow_mask_is_never_widened`); external changes are left alone
//!   (`a_foreign_mask_is_left_alone`) and found without a move (`a_change_from_outside_is_found_without_a_move`).
//! - A mask that a child chose stays (`a_child_that_pinned_itself_keeps_its_mask`,
//!   `after_a_crash_a_child_that_had_pinned_itself_keeps_its_mask`); one that it inherited does not
//!   (`a_newborn_gets_its_parents_own_mask`).
//! - A CPU that goes offline is no external change
//!   (`a_cpu_that_goes_offline_while_a_mask_is_looked_at_is_no_other_process`).
//! - Another thread with the same number is not touched (`a_reused_number_is_not_touched`).
//! - Journals are read or refused (`any_journal_is_read_or_refused`, `a_journal_of_any_length_is_read_whole`);
//!   another user's only widens descendants' masks (`a_descendant_of_another_user_is_only_widened`).
//! - A removed state directory is made again
//!   (`a_removed_directory_is_made_again_with_all_that_the_journal_said`).

mod ability;
mod acts;
mod actuator;
pub(crate) mod affinity;
mod announcing;
mod applied_state;
mod blocker;
mod cgroup;
mod cgroup_paths;
#[cfg(any(test, fuzzing))]
#[path = "worlds/event_machine/mod.rs"]
pub mod event_machine;
mod exec;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod groups;
mod hierarchy;
mod inheritance;
mod journal;
mod journal_state;
mod kernel;
mod lapses;
#[cfg(test)]
mod leaving_tests;
mod lock;
mod managers;
mod mounts;
mod namespace;
mod nudge;
mod order;
mod origin;
mod parents;
mod past_nudges;
mod quota;
mod release;
mod restore;
mod restoring;
mod scheduler;
mod settings;
mod standing;
mod state;
mod state_dir;
mod suspect;
mod syscalls;
mod thread;
mod trust;

pub use ability::{Abilities, MOST_URGENT, Privilege, boost_ability};
pub use actuator::{Actuator, ActuatorError};
pub use affinity::{allowed, pin};
pub use cgroup::{Cgroups, Share};
pub use cgroup_paths::CgroupPaths;
pub use groups::{GroupKey, Grouping, share_one_group};
pub use journal::JournalError;
pub use lock::{Lock, LockError};
pub use managers::{left_behind, managed_by};
pub use quota::{CpuQuotas, Periods, Quota};
pub use restore::{Restored, is_manager_ending, restore};
pub use restoring::{NotRestored, RestoreReport};
pub use scheduler::loaded_scheduler;
pub(crate) use settings::Mask;
pub use state::Suspect;
pub use state_dir::{StateDirError, all_state_dirs, default_state_dir, visible_state_dirs};
pub use thread::{ThreadError, ThreadKey};
