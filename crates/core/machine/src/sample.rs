//! What a machine reports of its threads.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_topology::{CpuSet, PuId};

use crate::{Class, Counting, Ended, GroupCounts, ProgramId, ThreadId, Timestamp};

/// A program, as its user described it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its identity.
    pub id: ProgramId,
    /// Its name, for people.
    pub name: String,
    /// Its purpose.
    #[serde(default, skip_serializing_if = "Class::is_normal")]
    pub class: Class,
    /// Whose it is, where several users' programs are managed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<u32>,
    /// What it is known by from one run to the next, as a digest of its executable; none: its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

impl Program {
    /// Of the normal class.
    #[must_use]
    pub fn new(id: ProgramId, name: impl Into<String>) -> Self {
        Self { id, name: name.into(), class: Class::Normal, user: None, identity: None }
    }
}

/// A cookie of core scheduling (Linux: prctl(2), `PR_SCHED_CORE`): threads that do not trust each other have
/// different ones, or one has none. On one core such threads never run at the same time: while one runs, the
/// OS forces the siblings of its hardware thread idle rather than run the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CoreCookie(NonZeroU64);

impl CoreCookie {
    /// As the OS numbers it; zero is none.
    #[must_use]
    pub fn new(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }
}

/// The state of a thread at the moment of the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Runs, or waits for a hardware thread.
    Runnable,
    /// Waits for something else.
    Sleeping,
    /// Stopped by a signal, a debugger or a freezer.
    Stopped,
}

/// One thread at one moment; all counts are cumulative.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadSample {
    /// Which thread.
    pub id: ThreadId,
    /// The program that it belongs to.
    pub program: ProgramId,
    /// Its state now.
    pub state: RunState,
    /// Time that it spent running.
    pub run_time: Duration,
    /// Time that it was ready but did not run. Linux credits this only when
    /// the thread next runs.
    pub wait_time: Duration,
    /// Times that it was put on a hardware thread.
    pub switches: u64,
    /// Where it runs or ran last, where known; of a thread that hardly runs, where
    /// it did up to a second ago.
    pub cpu: Option<PuId>,
    /// The CPUs on which the user's mask and the cpuset allow it to run.
    pub allowed: Arc<CpuSet>,
    /// Which of its settings may change now.
    pub lifecycle: Lifecycle,
    /// Does a scheduler in the kernel keep it on its target, once it has one? It needs no nudges then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// Its cookie of core scheduling; none: it has none, or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<CoreCookie>,
    /// For each group that is counted ([`Counting::groups`]), what it counted
    /// of this thread; empty where nothing is counted.
    pub counts: Vec<GroupCounts>,
}

/// Which settings of a thread may change without surprise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Lifecycle {
    /// Nothing, whatever its age: it is scheduled in real time or by deadlines, or its user has it run when no other
    /// thread is ready.
    Special,
    /// Nothing: it was just born, or forked or exec'd of late, and others would
    /// inherit what it is given.
    Fresh,
    /// Its urgency: its program starts, and a program may count the CPUs that
    /// it is given when it starts.
    Starting,
    /// Its place too.
    Settled,
}

impl Lifecycle {
    /// May it be placed now?
    #[must_use]
    pub fn is_settled(self) -> bool {
        self == Self::Settled
    }
}

/// All enrolled threads at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When, on the machine's clock.
    pub at: Timestamp,
    /// The threads, ordered by identity.
    pub threads: Vec<ThreadSample>,
    /// The programs that they belong to.
    pub programs: Vec<Program>,
    /// What is counted of them; none if nothing is.
    pub counting: Option<Arc<Counting>>,
    /// Counted threads that ended since the last sample, ordered by identity.
    pub ended: Vec<Ended>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CountedGroup, GroupReading, Signal};

    #[test]
    fn samples_round_trip() {
        let reading = GroupReading {
            opened: Timestamp(40),
            enabled: Duration::from_nanos(900),
            running: Duration::from_nanos(450),
            counts: vec![u64::MAX, 0],
        };
        let counts = vec![Ok(reading), Err("no descriptor left".into())];
        let group = |name: &str, events: &[&str]| CountedGroup {
            name: name.into(),
            events: events.iter().map(|&event| event.into()).collect(),
        };
        let counting = Counting {
            catalogue: "toy".into(),
            text: "name = \"toy\"".into(),
            signals: [Signal::Ipc, Signal::All3L].into(),
            groups: vec![group("stack", &["cycles", "stalls"]), group("caches", &["misses"])],
            refused: [("loads".into(), "unknown here".into())].into(),
        };
        let sample = Sample {
            at: Timestamp(1_500_000_000),
            threads: vec![ThreadSample {
                kept: false,
                id: ThreadId { process: 10, thread: 12, born: 99, generation: 1 },
                program: ProgramId(0),
                state: RunState::Runnable,
                run_time: Duration::from_nanos(123_456_789),
                wait_time: Duration::from_nanos(7),
                switches: 3,
                cpu: Some(PuId(1)),
                allowed: Arc::new("0-1".parse().unwrap()),
                lifecycle: Lifecycle::Settled,
                cookie: CoreCookie::new(7),
                counts: counts.clone(),
            }],
            programs: vec![Program::new(ProgramId(0), "make")],
            counting: Some(counting.into()),
            ended: vec![Ended {
                id: ThreadId { process: 10, thread: 11, born: 98, generation: 0 },
                program: ProgramId(0),
                counts,
            }],
        };
        let text = serde_json::to_string(&sample).unwrap();
        assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), sample);
        let before_cookies = text.replace(r#","cookie":7"#, "");
        assert_ne!(before_cookies, text);
        let read: Sample = serde_json::from_str(&before_cookies).unwrap();
        assert_eq!(read.threads[0].cookie, None);
        assert_eq!(serde_json::to_string(&read).unwrap(), before_cookies);
    }

    #[test]
    fn time_since_a_later_moment_is_zero() {
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
        assert_eq!(Timestamp(9).since(Timestamp(5)), Duration::from_nanos(4));
    }
}
