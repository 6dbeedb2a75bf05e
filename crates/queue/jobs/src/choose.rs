//! Which jobs start now, and where.
//!
//! # Approach
//! ```text
//! cost(j, n)     := predicted slowdown of job j on node n − 1 + what j adds to the slowdowns of those on n
//! relative(j, n) := cost(j, n) − jobs on n × mean cost of j next to one job of the window
//! 1. for each overdue job, the longest wait first:
//!        start it on the node that it fits on where cost is least; else keep a node for it
//! 2. for each of the next jobs in the order of the queue, as many as slots are free:
//!        if it fits nowhere: keep a node for it, within the bound of reservations
//! 3. repeat until no job starts: for each node with free slots, the emptiest first:
//!        start the job of the window that fits and whose relative cost is least,
//!        or the first that fits, where that costs no more than least_gain above it
//! ```
//!
//! The node that is kept for a job is the one that has room for it first, by the time limits of what runs. Another job
//! starts there only if it ends by then, by its own limit, or fits next to that job: EASY backfilling (Lifka 1995), so
//! that jobs of several slots are not left until they are overdue. Emptiest nodes come first so that a job has a
//! node to itself as long as there are more nodes than jobs. What a job costs next to every partner alike no choice can
//! save; unless that is taken off, easy jobs start first, and the difficult ones are left for one another.
//!
//! # Properties
//! - Never more jobs than slots (`never_more_than_the_slots`).
//! - No slot stays free for which a job waits, except those that are kept
//!   (`no_slot_is_free_for_which_a_job_waits`).
//! - No job waits past the maximum while a slot is free for it
//!   (`no_job_waits_past_the_maximum_while_a_slot_is_free`).
//! - A job of several slots gets a node once its turn has come
//!   (`a_node_is_kept_for_the_first_job_that_fits_nowhere`).
//! - What starts on a kept node does not delay the job that it is kept for, by their limits
//!   (`jobs_on_kept_nodes_delay_none_that_they_are_kept_for`), and short jobs do start there
//!   (`a_kept_node_is_filled_by_jobs_that_end_in_time_or_fit_next_to_it`).
//! - Ten times the jobs and nodes need at most ten times the predictions
//!   (`predictions_grow_no_faster_than_the_queue`).
//! - No job starts on a node that does not take it, and none is kept for it
//!   (`no_job_starts_where_it_is_not_taken`).
//! - The order of the input does not matter (`the_order_of_the_input_does_not_matter`).
//! - A flat prediction is first come, first served (`a_flat_prediction_is_first_come_first_served`).

mod open_node;
mod schedule;
#[cfg(test)]
mod tests;
mod window;

use schedule::Schedule;
use window::Window;

use crate::{Choice, Job, Node, Predict, Reason, Rules};

/// Chooses which jobs start now, and where, if every node may run every job: see the module.
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

/// May a job run on the node of this name, if that has slots for it?
pub type Admits<'a> = dyn Fn(&Job, &str) -> bool + 'a;

/// Chooses which jobs start now, and where, among the nodes that may run them: see the module.
#[must_use]
pub fn choose_among(
    queue: &[Job],
    nodes: &[Node],
    now_s: f64,
    rules: &Rules,
    predict: &impl Predict,
    admits: Option<&Admits<'_>>,
) -> Choice {
    let mut schedule = Schedule::new(nodes, now_s, predict, admits);
    let is_overdue = |job: &&Job| job.waited_s(now_s) >= rules.most_wait_s;
    let (mut overdue, mut rest): (Vec<&Job>, Vec<&Job>) = queue.iter().partition(is_overdue);
    overdue.sort_by(|a, b| a.age_order(b));
    for job in overdue {
        if schedule.most_free() == 0 {
            break;
        }
        match schedule.cheapest(job) {
            Some(node) => {
                schedule.put(job, node, Reason::Overdue { waited_s: job.waited_s(now_s) });
            }
            None => {
                schedule.keep_a_node_for(job);
            }
        }
    }
    rest.sort_by(|a, b| a.order(b));
    keep_nodes(&mut schedule, &rest, rules);
    if schedule.most_free() == 0 {
        return schedule.into_choice();
    }
    let mut window = Window::new(rest, rules, schedule.fitting());
    schedule.set_window(&window.composition());
    loop {
        let mut placed = false;
        for node in schedule.by_occupancy() {
            let picked = window.pick(node, &mut schedule);
            if let Some((job, reason)) = picked {
                schedule.put(job, node, reason);
                placed = true;
            }
        }
        if !placed {
            return schedule.into_choice();
        }
        window.replace(schedule.fitting());
    }
}

/// Keeps nodes for jobs that would start now in the order of the queue, but fit nowhere.
fn keep_nodes<P: Predict>(schedule: &mut Schedule<'_, P>, queue: &[&Job], rules: &Rules) {
    let (mut before, mut kept, mut queue) = (0, 0, queue.iter());
    while kept < rules.reservations {
        let unfit = {
            let (fits, free) = (schedule.fitting(), schedule.free());
            loop {
                match queue.next().filter(|_| before < free) {
                    Some(job) if fits(job) => before += job.slots.max(1),
                    unfit => break unfit,
                }
            }
        };
        let Some(job) = unfit else { return };
        kept += usize::from(schedule.keep_a_node_for(job));
    }
}
