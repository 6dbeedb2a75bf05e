//! Performance of programs alone and in groups, at either level.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use serde::Serialize;
use symbiont_profile::{Phase, Profile};
use symbiont_sim_fast::activity::CYCLES;
use symbiont_sim_fast::machine::{Contention, Runner, ThreadRate};
use symbiont_topology::{CoreId, NodeId};

/// Long enough for caches to be as they stay, ns.
const LONG: f64 = 1e12;

/// The programs and groups to compare.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The programs.
    pub programs: Vec<String>,
    /// Threads of a group.
    pub threads: usize,
    /// Groups, by number of program.
    pub groups: Vec<Vec<usize>>,
}

impl Plan {
    /// All groups of `threads` programs, twins too; at most `most`, drawn with a seed.
    #[must_use]
    pub fn new(programs: Vec<String>, threads: usize, most: usize, seed: u64) -> Self {
        let mut groups = vec![Vec::new()];
        for _ in 0..threads {
            let longer = |group: &Vec<usize>| {
                let first = group.last().copied().unwrap_or(0);
                let group = group.clone();
                (first..programs.len()).map(move |next| [group.as_slice(), &[next]].concat())
            };
            groups = groups.iter().flat_map(longer).collect();
        }
        groups.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
        groups.truncate(most);
        groups.sort();
        Self { programs, threads, groups }
    }
}

/// A program's performance at one level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Performance {
    /// Cycles per instruction.
    pub cpi: f64,
    /// Shares of its cycles by cause, in the order of [`symbiont_sim_fast::activity::CAUSES`].
    pub shares: [f64; CYCLES],
}

/// The results of one level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Matrix {
    /// Each program alone.
    pub alone: Vec<Performance>,
    /// Alone on a core that is set up for the groups' threads.
    pub throttled: Vec<Performance>,
    /// The members of each group.
    pub together: Vec<Vec<Performance>>,
}

/// The names of a group's programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group(pub Vec<String>);

/// A program, perhaps in a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Case {
    /// The program.
    pub program: String,
    /// All programs of the group.
    pub group: Vec<String>,
}

/// The phase that a program spends most instructions in.
#[must_use]
pub fn most_frequent(profile: &Profile) -> Option<&Phase> {
    let spent = |phase: usize| -> u64 {
        let spans = profile.threads.iter().flat_map(|thread| &thread.sequence);
        spans.filter(|s| usize::from(s.phase) == phase).map(|span| span.instructions).sum()
    };
    let most = (0..profile.phases.len()).max_by_key(|phase| spent(*phase))?;
    profile.phases.get(most)
}

/// Asks a level how fast a phase is alone on a core.
///
/// # Errors
/// When it cannot be simulated.
pub fn alone<'p, C: Contention<'p>>(
    level: &mut C,
    phase: &'p Phase,
    home: NodeId,
) -> Result<Option<Performance>, C::Error> {
    let phase = level.prepare(phase)?;
    let runner = Runner { thread: 1, core: CoreId(0), phase, home, mode: 1 };
    let thread_rate =
        level.thread_rates(&[runner], LONG).first().map(|thread_rate| measured(thread_rate));
    level.forget(runner.thread);
    Ok(thread_rate)
}

/// Asks a level all that is planned; `phases` are of the plan's programs. `report` gets
/// how many questions were answered of how many; it ends the matter by false.
///
/// # Errors
/// When a phase cannot be simulated. None of a result when `report` ended it.
pub fn measure<'p, C: Contention<'p>>(
    level: &mut C,
    plan: &Plan,
    phases: &[&'p Phase],
    home: NodeId,
    report: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Option<Matrix>, C::Error> {
    let numbers: Vec<usize> =
        phases.iter().map(|phase| level.prepare(phase)).collect::<Result<_, _>>()?;
    let of = 2 * numbers.len() + plan.groups.len();
    let (mut asked, mut thread, mut on) = (0, 0, true);
    let mut ask = |members: &[usize], mode: usize| -> Vec<Performance> {
        if !on {
            return Vec::new();
        }
        // No thread was here before.
        let runners: Vec<Runner> = members
            .iter()
            .filter_map(|member| numbers.get(*member))
            .map(|phase| {
                thread += 1;
                Runner { thread, core: CoreId(0), phase: *phase, home, mode: mode as u32 }
            })
            .collect();
        let thread_rates = level.thread_rates(&runners, LONG);
        runners.iter().for_each(|runner| level.forget(runner.thread));
        asked += 1;
        on = report(asked, of);
        thread_rates.iter().map(|thread_rate| measured(thread_rate)).collect()
    };
    let mut single = |mode| -> Vec<Performance> {
        (0..plan.programs.len()).flat_map(|program| ask(&[program], mode)).collect()
    };
    let alone = single(1);
    let throttled = single(plan.threads);
    let together = plan.groups.iter().map(|group| ask(group, plan.threads)).collect();
    Ok(on.then_some(Matrix { alone, throttled, together }))
}

fn measured(thread_rate: &ThreadRate) -> Performance {
    let cycles = thread_rate.activity.all_cycles();
    Performance {
        cpi: thread_rate.ghz / thread_rate.speed,
        shares: thread_rate.activity.cycles.map(|c| c / cycles),
    }
}
