//! `oracle`: knows beforehand how much each two programs slow each other down
//! (Feliu et al., section 6.2).
//!
//! It matches pairs on the slowdowns that were measured of each pair of programs
//! beforehand, by the objective of `symbiotic`: what the two differ
//! by is what the model and the counters err. It follows the pairs' course over time, where that was kept, by how long
//! each thread has been running: one that is slower than its profile is ahead of itself there, as in the paper
//! (`pairs_follow_the_course_of_their_programs`). It knows pairs only, and nothing of memory: it is not the best that
//! can be. The published one is used for SMT2 alone, as is this.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_machine::{Assignment, Placement, ProgramId, RunState, Signal, ThreadId};
use symbiont_matching::{Request, group};
use symbiont_model::{Interference, Objective};

use crate::core_slots::{CoreSlots, Group, Pool, pools};
use crate::{Entry, MissingInput, Policy, Requirements, Symbiotic, ThreadView, View};

pub(crate) const ENTRY: Entry = Entry {
    name: "oracle",
    summary: "pairs threads by slowdowns that were measured of each pair beforehand",
    paper: Some(
        "Feliu et al., Improving IBM POWER8 performance through symbiotic job scheduling, section 6.2",
    ),
    quantum: Duration::from_millis(100),
    boosts: false,
    parameters: &[&Symbiotic::OBJECTIVE],
    make: |settings| {
        let oracle = Oracle::new(settings.slowdowns.clone());
        Box::new(oracle.judging_by(settings.get(&Symbiotic::OBJECTIVE)))
    },
};

const SLOWDOWNS: MissingInput =
    MissingInput::trained("the slowdowns of pairs of programs", "--slowdowns");

/// Threads of a group at most.
const WIDTH: usize = 2;

/// Slowdowns of co-running programs, against running alone: means, and their course where it is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct PairSlowdowns {
    written: Written,
    places: BTreeMap<String, usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    machine: String,
    programs: Vec<String>,
    slowdowns: Vec<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    course: Option<Course>,
}

/// Slowdowns over the time since both programs began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Course {
    /// Length of an interval, ms; above 0.
    pub interval_ms: u32,
    /// Victim by co-runner by interval; each with at least one.
    pub slowdowns: Vec<Vec<Vec<f64>>>,
}

impl Course {
    fn is_sound(&self, programs: usize) -> bool {
        let sound =
            |all: &Vec<f64>| !all.is_empty() && all.iter().all(|s| *s > 0.0 && s.is_finite());
        let row = |row: &Vec<Vec<f64>>| row.len() == programs && row.iter().all(sound);
        self.interval_ms > 0 && self.slowdowns.len() == programs && self.slowdowns.iter().all(row)
    }
}

/// A table that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "slowdowns of pairs need one positive number for each pair of programs, each with itself included, and so does each \
     interval of their course"
)]
pub struct PairSlowdownsError;

impl TryFrom<Written> for PairSlowdowns {
    type Error = PairSlowdownsError;

    fn try_from(written: Written) -> Result<Self, PairSlowdownsError> {
        let named = written.programs.iter().cloned().zip(0..);
        let places: BTreeMap<String, usize> = named.collect();
        let n = places.len();
        let sound =
            |row: &Vec<f64>| row.len() == n && row.iter().all(|s| *s > 0.0 && s.is_finite());
        let course = written.course.as_ref().is_none_or(|course| course.is_sound(n));
        let all = written.programs.len() == n && written.slowdowns.len() == n && course;
        if all && written.slowdowns.iter().all(sound) {
            Ok(Self { written, places })
        } else {
            Err(PairSlowdownsError)
        }
    }
}

impl From<PairSlowdowns> for Written {
    fn from(slowdowns: PairSlowdowns) -> Self {
        slowdowns.written
    }
}

impl PairSlowdowns {
    /// From a table, victim by co-runner, of programs on a machine.
    ///
    /// # Errors
    /// When the table is not square in the programs, or a number not positive
    /// and finite, or a program is there twice.
    pub fn new(
        machine: String,
        programs: Vec<String>,
        slowdowns: Vec<Vec<f64>>,
    ) -> Result<Self, PairSlowdownsError> {
        Written { machine, programs, slowdowns, course: None }.try_into()
    }

    /// With their course.
    ///
    /// # Errors
    /// When it is not of these programs, or a number not positive and finite.
    pub fn over_time(self, course: Course) -> Result<Self, PairSlowdownsError> {
        Written { course: Some(course), ..self.written }.try_into()
    }

    /// The machine that they were measured on.
    #[must_use]
    pub fn machine(&self) -> &str {
        &self.written.machine
    }

    /// The programs, in the order of rows and columns.
    #[must_use]
    pub fn programs(&self) -> &[String] {
        &self.written.programs
    }

    /// Victim by co-runner.
    #[must_use]
    pub fn slowdowns(&self) -> &[Vec<f64>] {
        &self.written.slowdowns
    }

    /// Slowdown of one program co-running with another, if both are known.
    #[must_use]
    pub fn slowdown(&self, victim: &str, other: &str) -> Option<f64> {
        let row = self.written.slowdowns.get(*self.places.get(victim)?)?;
        row.get(*self.places.get(other)?).copied()
    }

    /// The same when the victim has been running for so long; the mean where the course is not known.
    #[must_use]
    pub fn slowdown_after(&self, victim: &str, other: &str, age: Duration) -> Option<f64> {
        let Some(course) = &self.written.course else { return self.slowdown(victim, other) };
        let row = course.slowdowns.get(*self.places.get(victim)?)?;
        let pair = row.get(*self.places.get(other)?)?;
        let interval = age.as_millis() / u128::from(course.interval_ms.max(1));
        usize::try_from(interval).ok().and_then(|at| pair.get(at)).or(pair.last()).copied()
    }

    /// The table of some programs, which may occur several times, each with how long it has been running.
    fn among(&self, programs: &[(&str, Duration)]) -> Result<Interference, String> {
        let unknown = programs.iter().find(|(name, _)| !self.places.contains_key(*name));
        if let Some((name, _)) = unknown {
            return Err(format!("nothing is known of program '{name}'"));
        }
        let of = |&(victim, age): &(&str, Duration)| {
            programs.iter().filter_map(|(it, _)| self.slowdown_after(victim, it, age)).collect()
        };
        let rows: Vec<Vec<f64>> = programs.iter().map(of).collect();
        Interference::measured(&rows).ok_or_else(|| PairSlowdownsError.to_string())
    }
}

/// The policy.
#[derive(Debug, Clone)]
pub struct Oracle {
    slowdowns: Option<Arc<PairSlowdowns>>,
    /// How long each thread has been there.
    ages: BTreeMap<ThreadId, Duration>,
    objective: Objective,
}

impl Oracle {
    /// Knows this; without it, everything is left to the OS. Schedules are judged as by `symbiotic`.
    #[must_use]
    pub fn new(slowdowns: Option<Arc<PairSlowdowns>>) -> Self {
        Self { slowdowns, ages: BTreeMap::new(), objective: Objective::Slowdown }
    }

    /// Judges schedules by this.
    #[must_use]
    pub fn judging_by(self, objective: Objective) -> Self {
        Self { objective, ..self }
    }
}

impl Policy for Oracle {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn requirements(&self) -> Requirements {
        Requirements {
            missing_input: self.slowdowns.is_none().then_some(SLOWDOWNS),
            ..Requirements::of([Signal::RunStates])
        }
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        let Some(slowdowns) = &self.slowdowns else {
            return pools(view, |_, _| Some(SLOWDOWNS.to_string().into())).1;
        };
        let over = |thread: &ThreadView<'_>| thread.did.map(|did| did.over).unwrap_or_default();
        let age = |thread: &ThreadView<'_>| {
            (thread.id, self.ages.get(&thread.id).copied().unwrap_or_default() + over(thread))
        };
        self.ages = view.threads.iter().map(age).collect();
        let asleep = |thread: &ThreadView<'_>| thread.state != RunState::Runnable;
        let (pools, mut placement) =
            pools(view, |_, thread| asleep(thread).then(|| "asleep".into()));
        let mut slots = CoreSlots::new(view.topology);
        for pool in &pools {
            let by = (slowdowns.as_ref(), self.objective);
            match pairs(by, &self.ages, view, pool, (slots.cores(pool), slots.width(pool))) {
                Ok((groups, known)) => {
                    slots.assign(view, pool, &groups, &mut placement);
                    for (index, slowdown) in known {
                        let thread = view.threads.get(index).map(|thread| thread.id);
                        if let Some(assignment) = thread.and_then(|id| placement.get_mut(&id)) {
                            assignment.predicted_slowdown = Some(slowdown);
                        }
                    }
                }
                Err(why) => {
                    let threads = pool.threads.iter().filter_map(|&at| view.threads.get(at));
                    let os = Assignment::os(why);
                    placement.extend(threads.map(|thread| (thread.id, os.clone())));
                }
            }
        }
        placement
    }
}

/// Groups, and the slowdown of each thread by its index in the view.
type Pairs = (Vec<Group>, Vec<(usize, f64)>);

/// The pairs of least cost with their known slowdowns, or why there are none.
fn pairs(
    (slowdowns, objective): (&PairSlowdowns, Objective),
    ages: &BTreeMap<ThreadId, Duration>,
    view: &View<'_>,
    pool: &Pool,
    (cores, places): (usize, usize),
) -> Result<Pairs, String> {
    let names: BTreeMap<ProgramId, &str> =
        view.programs.iter().map(|program| (program.id, program.name.as_str())).collect();
    let name = |&at: &usize| {
        let program = view.threads.get(at).map(|thread| thread.program);
        program.and_then(|program| names.get(&program).copied()).unwrap_or("")
    };
    let age = |&at: &usize| view.threads.get(at).and_then(|thread| ages.get(&thread.id)).copied();
    let programs: Vec<(&str, Duration)> =
        pool.threads.iter().map(|at| (name(at), age(at).unwrap_or_default())).collect();
    let table = slowdowns.among(&programs)?;
    let request = Request::new(programs.len(), cores, places.clamp(1, WIDTH));
    let grouping = group(&request, |members| table.cost(objective, members))
        .map_err(|why| format!("the oracle knows pairs only: {why}"))?;
    let mut known = Vec::with_capacity(programs.len());
    let reported = |members: Vec<usize>| {
        let slowdowns: Vec<f64> = members.iter().map(|&at| table.slowdown(at, &members)).collect();
        let each: Vec<String> = slowdowns.iter().map(|slowdown| format!("{slowdown:.2}")).collect();
        let reason = format!("known slowdowns {}", each.join(", "));
        let members: Vec<usize> =
            members.iter().filter_map(|&at| pool.threads.get(at).copied()).collect();
        known.extend(members.iter().copied().zip(slowdowns));
        Group { members, reason: reason.into() }
    };
    let groups = grouping.groups.into_iter().map(reported).collect();
    Ok((groups, known))
}

#[cfg(test)]
mod tests;
