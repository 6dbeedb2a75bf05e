//! Acting on threads: affinity, nice value and wait class, with the way back.
//!
//! # Problem
//! A managed program must be as it was when Symbiont leaves it, however it
//! leaves; settings that a user, a program or a cpuset made must never be
//! overruled; and the numbers by which the kernel names threads are used again.
//!
//! # Approach
//! An [`Actuator`] keeps for each adopted thread what it had before, and what
//! of ours is in force. Before each act it checks that the thread is still the
//! same and that its setting is still the one we left; then it writes to a
//! journal what it is about to do; then it acts, and checks the identity again.
//! At the end everything is put back; after a crash [`restore`] does so from
//! the journal. Affinity is the default. Priorities are changed only where
//! they can be put back, where one scheduling group holds all contenders, and
//! where no `sched_ext` scheduler is loaded, which need not heed them.
//! Autogroup and cgroup weights are never changed.
//!
//! # Terms and units
//! *Saved*: what a thread had before us; a mask equal to its cpuset's is saved
//! as "all" and put back as all ones, so that it follows a cpuset that grows.
//! *Limit*: the saved mask within the cpuset. *In force*: what we set and did
//! not put back. *Foreign*: changed by somebody else since. Births are in
//! clock ticks since boot, nice values from −20 (most urgent) to 19.
//!
//! # The rule for foreign changes
//! What somebody else set becomes the thread's saved setting, and its new
//! limit if it is a mask. It stays until a later move fits inside the limit;
//! that move then is undone to the new setting, not to the first one.
//!
//! # Properties
//! - Settings come back at the end (`everything_comes_back_at_the_end`), after
//!   SIGKILL, for children born since too (`a_crash_is_undone_also_for_children`),
//!   and follow a cpuset that grew (`a_restored_mask_follows_a_cpuset_that_grew`).
//! - A mask is never widened (`a_narrow_mask_is_never_widened`), a foreign one
//!   is left alone (`a_foreign_mask_is_left_alone`).
//! - A mask that a child chose is no inheritance
//!   (`a_child_that_pinned_itself_keeps_its_mask`,
//!   `after_a_crash_a_child_that_had_pinned_itself_keeps_its_mask`).
//! - A mask that another process or the kernel changed is found without a move
//!   (`a_change_from_outside_is_found_without_a_move`).
//! - A CPU that goes offline meanwhile is no other process
//!   (`a_cpu_that_goes_offline_while_a_mask_is_looked_at_is_no_other_process`).
//! - Another thread with the same number is not touched
//!   (`a_reused_number_is_not_touched`).
//! - A child does not keep what it inherited (`a_newborn_gets_its_parents_own_mask`).
//! - Journals of any content and length are read or refused without panic
//!   (`any_journal_is_read_or_refused`, `a_journal_of_any_length_is_read_whole`); one of another
//!   user makes root do nothing that this user could not do, but widen descendants' masks
//!   (`a_descendant_of_another_user_is_only_widened`).
//! - For an ordinary user no process is placed that makes others, which could
//!   become another user's (`process_of_a_user_that_makes_processes_is_placed_no_more`, a fault
//!   test of the CLI, as is `setuid_child_that_stays_narrowed_is_reported_and_restored_by_root`).
//! - A removed state directory is made again with all that the journal said
//!   (`a_removed_directory_is_made_again_with_all_that_the_journal_said`).
//!
//! # What remains
//! - For an ordinary user the first child of a placed process, and a placed
//!   thread that executes a setuid program itself, can take another user's
//!   identity before the report is read. Root restores it from the journal.
//! - No call sets the affinity of a thread by a descriptor, only by number.
//!   Between the check and the act, some microseconds, the number could come
//!   to mean another thread. The check after the act finds this, and gives
//!   that thread the mask that was read just before the act. Threads that used
//!   one number within one clock tick cannot be told apart.
//! - After a crash, a child is known by its process, its ancestors, or a
//!   session or process group that a managed process created. An orphan in the
//!   shell's own session, made between the crash and the restore by a parent
//!   that exited, keeps what it inherited.
//! - The kernel tells what is left of a chosen mask within the cpuset, not the
//!   mask itself: after a restore, CPUs that a user chose and that a cpuset did
//!   not allow at the time stay out when the cpuset grows (or, if what was left
//!   equalled the cpuset, more than the chosen ones come in).
//! - A child that inherited a mask of which its cpuset left nothing keeps it, for when the cpuset
//!   grows, if its maker's user had chosen a mask.
//! - A child of a thread with `SCHED_RESET_ON_FORK` and a nice value above 0 has nice 0 if it was
//!   born while its maker was boosted below 0: the kernel resets it.
//! - A thread with a mask that its user chose, all of whose CPUs go offline and come back before the
//!   next sample, cannot be told from one that another process let run everywhere.
//! - A thread that calls exec at once, before its birth was reported and undone, keeps what it
//!   inherited; so does a leader whose exec is reported more than ten seconds after the exchange.
//! - Another thread of a process that ended within ten seconds before may be taken for the caller
//!   of an exec if a leader pins itself to the mask that was in force on it.
//! - A leader whose user changed settings since they were last read cannot be told from another
//!   thread of its process that calls exec and has these settings.
//! - Of threads that have one mask within a clock tick it is not told which made a newborn: that gets
//!   the narrower of what their users chose.
//! - A thread that pins itself to the very mask that is in force on it, or a
//!   child to its parent's before it was ever adopted, cannot be told from one
//!   that did not. Nor can, after a crash, a child that pinned itself to a mask
//!   that we had set on others, if no move had met it since.

mod ability;
mod acts;
mod actuator;
pub(crate) mod affinity;
mod book;
mod cgroup;
#[cfg(any(test, fuzzing))]
pub mod event_machine;
mod exec;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod groups;
mod journal;
mod kernel;
mod lapses;
#[cfg(test)]
mod leaving_tests;
mod ledger;
mod lock;
mod managers;
mod mounts;
mod namespace;
mod parents;
mod putback;
mod release;
mod restore;
mod scheduler;
mod settings;
mod state_dir;
mod trust;

pub use ability::{Abilities, MOST_URGENT, Privilege, boost_ability};
pub use actuator::{Actuator, ActuatorError};
pub use affinity::{allowed, pin};
pub use cgroup::Cgroups;
pub use groups::{GroupKey, Grouping, share_one_group};
pub use journal::JournalError;
pub use kernel::{ThreadError, ThreadKey};
pub use lock::{Lock, LockError};
pub use managers::managed_by;
pub use putback::{NotRestored, RestoreReport};
pub use restore::{Restored, restore};
pub use scheduler::loaded_scheduler;
pub use state_dir::{StateDirError, all_state_dirs, default_state_dir, visible_state_dirs};
