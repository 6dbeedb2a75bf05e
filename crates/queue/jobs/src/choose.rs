//! Which jobs start now, and where.
//!
//! # Approach
//! 1. Jobs that are overdue start first, the one that waits longest first, each on the node where it
//!    costs least. Where one does not fit, a node is kept for it: the one that has room for it first, by the
//!    limits that users gave. No other job starts there, unless it ends by then, by its own limit, or fits next to
//!    this one.
//! 2. Then come as many jobs of the queue, in its order, as there are free slots: of those that fit nowhere the
//!    first gets a node kept (EASY backfilling with one reservation: Lifka 1995), so that jobs of several slots
//!    do not wait until they are overdue while jobs of one slot take each that becomes free.
//! 3. The other slots are filled node by node, those with the fewest jobs first, so that jobs have a node
//!    to themselves as long as there are more nodes than jobs. Each takes, of the window, the job that
//!    costs least there *relative to what this job costs next to an average job of the window*. What a
//!    job costs next to every partner alike cannot be saved by any choice; without the average taken
//!    off, the easy jobs would start first, and the difficult ones would be left for one another.
//!
//! The cost of a job on a node is its own predicted slowdown less 1, and what it adds to the slowdowns of
//! those that run there. Costs are predicted once for each program and set of co-runners.
//!
//! # Properties
//! - Never more jobs than slots (`never_more_than_the_slots`).
//! - No slot stays free for which a job waits, but for those that are kept
//!   (`no_slot_is_free_for_which_a_job_waits`).
//! - No job waits past the maximum while a slot is free for it
//!   (`no_job_waits_past_the_maximum_while_a_slot_is_free`).
//! - A job of several slots gets a node once its turn has come
//!   (`a_node_is_kept_for_the_first_job_that_fits_nowhere`).
//! - What starts on a kept node does not delay the job that it is kept for, by their limits
//!   (`jobs_on_kept_nodes_delay_none_that_they_are_kept_for`), and short jobs do start there
//!   (`a_kept_node_is_filled_by_jobs_that_end_in_time_or_fit_next_to_it`).
//! - Ten times the jobs and nodes take at most ten times the predictions
//!   (`predictions_grow_no_faster_than_the_queue`).
//! - No job starts on a node that does not take it, and none is kept for it
//!   (`no_job_starts_where_it_is_not_taken`).
//! - The order of the input does not matter (`the_order_of_the_input_does_not_matter`).
//! - A flat prediction is first come, first served (`a_flat_prediction_is_first_come_first_served`).

mod filling;
mod placing;
#[cfg(test)]
mod tests;
mod window;

use placing::Placing;
use window::Window;

use crate::{Choice, Job, Node, Predict, Reason, Rules};

/// Chooses which jobs start now, and where, of nodes that take every job: see the module.
#[must_use]
pub fn choose(
    queue: &[Job],
    nodes: &[Node],
    now_s: f64,
    rules: &Rules,
    predict: &impl Predict,
) -> Choice {
    choose_among(queue, nodes, now_s, rules, predict, None)
}

/// Does the node of this name take the job, as far as it has slots?
pub type Admits<'a> = dyn Fn(&Job, &str) -> bool + 'a;

/// Chooses which jobs start now, and where, of the nodes that take them: see the module.
#[must_use]
pub fn choose_among(
    queue: &[Job],
    nodes: &[Node],
    now_s: f64,
    rules: &Rules,
    predict: &impl Predict,
    admits: Option<&Admits<'_>>,
) -> Choice {
    let mut placing = Placing::new(nodes, now_s, predict, admits);
    let is_overdue = |job: &&Job| job.waited_s(now_s) >= rules.most_wait_s;
    let (mut overdue, mut rest): (Vec<&Job>, Vec<&Job>) = queue.iter().partition(is_overdue);
    overdue.sort_by(|a, b| a.age_order(b));
    for job in overdue {
        if placing.most_free() == 0 {
            break;
        }
        match placing.cheapest(job) {
            Some(node) => {
                placing.put(job, node, Reason::Overdue { waited_s: job.waited_s(now_s) });
            }
            None => {
                placing.keep_a_node_for(job);
            }
        }
    }
    rest.sort_by(|a, b| a.order(b));
    keep_nodes(&mut placing, &rest, rules);
    if placing.most_free() == 0 {
        return placing.into_choice();
    }
    let mut window = Window::new(rest, rules, placing.fitting());
    placing.learn_averages(&window.composition());
    loop {
        let mut placed = false;
        for node in placing.by_occupancy() {
            let picked = window.pick(node, &mut placing);
            if let Some((job, reason)) = picked {
                placing.put(job, node, reason);
                placed = true;
            }
        }
        if !placed {
            return placing.into_choice();
        }
        window.replace(placing.fitting());
    }
}

/// Keeps nodes for jobs that would start now in the order of the queue, but fit nowhere.
fn keep_nodes<P: Predict>(placing: &mut Placing<'_, P>, queue: &[&Job], rules: &Rules) {
    let (mut before, mut kept, mut queue) = (0, 0, queue.iter());
    while kept < rules.reservations {
        let unfit = {
            let (fits, free) = (placing.fitting(), placing.free());
            loop {
                match queue.next().filter(|_| before < free) {
                    Some(job) if fits(job) => before += job.slots.max(1),
                    unfit => break unfit,
                }
            }
        };
        let Some(job) = unfit else { return };
        kept += usize::from(placing.keep_a_node_for(job));
    }
}
