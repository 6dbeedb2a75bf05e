//! Partners in a queue: what `symbiont slurm` gains on a simulated cluster, against the order of the queue.
//!
//! No paper has this. Slowdowns of pairs come from the simulated Xeon, and the scheduler knows them, so this is
//! the most that choosing can gain there. The rules alone differ from backfilling, too: they let no short job start
//! on the node that they keep. So partners are compared with the rules where nothing is predicted. Controls: with the
//! table of other programs nothing may be gained over these, nor without interference.

use std::time::Duration;

use symbiont_experiments_sim::cluster::{
    Cluster, ClusterOutcome, PairTable, QueuedJob, Scheduler, generate, given, nodes_for, play,
};
use symbiont_jobs::{Predict, Rules};

use super::figure::{Drawing, Figure, Paper, Point};
use super::own::{CPU2006_AND_2017, ProgramUse};
use super::{Context, Effort, GivenWorkload, Reproduction, Source};
use symbiont_campaign::{Error, Progress};
use symbiont_experiments_sim::code::described;
use symbiont_report::stats::{Estimate, mean_estimate};

/// Jobs on a cluster, simulated.
#[derive(Debug)]
pub struct Queue;

const MACHINE: &str = "xeon-e5-2620v4";
const FIRST_COME: &str = "first come, first served";
const RULES: &str = "rules of symbiont slurm, nothing predicted";
const PARTNERS: &str = "partners";
const ADDED: &str = "partners over the rules alone";
const SHUFFLED: &str = "partners over the rules alone, by the table of other programs";
const ALIKE: &str = "partners over the rules alone, without interference";

/// Time between two decisions.
const EVERY_S: f64 = 30.0;
/// The longest time that a job waits while others overtake it.
const MOST_WAIT_S: f64 = 2.0 * 3600.0;

const NODES: &str = "Nodes are single cores of two hardware threads; each program is in its heaviest phase. \
                     Unless a workload is given: run times by Lublin and Feitelson (2003), four of five jobs take \
                     one slot, arrivals at random.";
const KNOWN: &str =
    "The scheduler knows the slowdowns of all pairs: the most that choosing can gain.";

const fn figure(id: &'static str, title: &'static str, quantity: &'static str) -> Figure {
    Figure {
        id,
        paper: Paper::Symbiont,
        place: "slurm",
        title,
        quantity,
        unit: Some("%"),
        neutral: Some(0.0),
        drawn: Drawing::Dots,
        deviations: &[NODES, KNOWN],
    }
}

const FIGURES: &[Figure] = &[
    figure(
        "symbiont-cluster-slowdown",
        "Slowdown of jobs on a simulated cluster against backfilling",
        "Mean slowdown less than with backfilling",
    ),
    figure(
        "symbiont-cluster-throughput",
        "Throughput of a simulated cluster against backfilling",
        "Throughput over backfilling",
    ),
    figure(
        "symbiont-cluster-wait",
        "Waiting on a simulated cluster against backfilling",
        "Mean wait less than with backfilling",
    ),
];

struct Size {
    nodes: usize,
    jobs: usize,
    seeds: u64,
}

impl Source for Queue {
    fn name(&self) -> &'static str {
        "jobs of a cluster, simulated"
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn uses(&self, context: &Context<'_>) -> Vec<ProgramUse> {
        ProgramUse::of_pool(&context.programs(CPU2006_AND_2017), CPU2006_AND_2017, FIGURES)
    }

    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduction, Error> {
        let log = context.workload.as_ref();
        let size = match context.effort {
            Effort::Quick => Size { nodes: 100, jobs: 1_000, seeds: 4 },
            Effort::Full => Size { nodes: 1_000, jobs: 10_000, seeds: 5 },
        };
        let machine = super::described(MACHINE)?;
        let programs = context.programs(CPU2006_AND_2017);
        let table = PairTable::simulated(&machine, &context.profiles(&programs)?)
            .map_err(Error::evaluation)?;
        let alike = PairTable::new(&vec![vec![1.0; table.programs()]; table.programs()])
            .map_err(Error::evaluation)?;
        let loads = [("as many jobs as slots can do", 1.0), ("twice as many", 2.0)];
        progress.begin(loads.len() * size.seeds as usize, None, Duration::ZERO);
        let mut reproduced = Reproduction::default();
        let (mut most_queued, mut longest_wait) = (0, 0.0_f64);
        for (name, load) in loads {
            let mut rounds = Vec::new();
            for seed in 0..size.seeds {
                if progress.cancelled() {
                    return Err(Error::Stopped);
                }
                progress.running(&format!("{name}, workload {seed}"));
                let seed = context.seed ^ seed;
                let (workload, nodes) = workload(&size, log, &table, load, seed);
                let round = Round::play(&workload, nodes, &table, &alike, seed);
                most_queued = round.partners.most_queued.max(most_queued);
                longest_wait = longest_wait.max(round.partners.wait_s[1]);
                rounds.push(round);
                progress.done();
            }
            points(name, &rounds, &mut reproduced).map_err(Error::evaluation)?;
        }
        let (all, nodes) = workload(&size, log, &table, 1.0, context.seed);
        let (took, queued) = decision(all, nodes, &table);
        let of = |name: &str, value: String| (name.to_owned(), value);
        reproduced.facts.extend([
            described(&machine),
            of("Workload", log.map_or_else(|| "drawn".to_owned(), |log| described_log(&size, log))),
            of("Cluster", format!("{nodes} nodes of two slots, where {}", loads[0].0)),
            of("Programs", programs.join(", ")),
            of("Longest wait for partners", format!("{:.0} min", longest_wait / 60.0)),
            of("Most jobs that waited", most_queued.to_string()),
            of(
                "A decision here",
                format!("{:.1} ms with {queued} jobs queued", took.as_secs_f64() * 1e3),
            ),
        ]);
        Ok(reproduced)
    }
}

/// One workload under each scheduler.
struct Round {
    backfill: ClusterOutcome,
    first_come: ClusterOutcome,
    rules: ClusterOutcome,
    partners: ClusterOutcome,
    shuffled: ClusterOutcome,
    /// Without interference: partners by the table, and the rules alone.
    alike: [ClusterOutcome; 2],
}

impl Round {
    fn play(
        workload: &[QueuedJob],
        nodes: usize,
        table: &PairTable,
        alike: &PairTable,
        seed: u64,
    ) -> Self {
        let with =
            |table, scheduler: Scheduler<'_, PairTable>| by(nodes, table, workload, &scheduler);
        Self {
            backfill: with(table, Scheduler::Backfill),
            first_come: with(table, Scheduler::FirstCome),
            rules: with(table, Scheduler::Partners(alike, rules())),
            partners: with(table, Scheduler::Partners(table, rules())),
            shuffled: with(table, Scheduler::Partners(&table.shuffled(seed), rules())),
            alike: [
                with(alike, Scheduler::Partners(table, rules())),
                with(alike, Scheduler::Partners(alike, rules())),
            ],
        }
    }
}

fn rules() -> Rules {
    Rules { most_wait_s: MOST_WAIT_S, ..Rules::default() }
}

fn by<P: Predict>(
    nodes: usize,
    table: &PairTable,
    workload: &[QueuedJob],
    scheduler: &Scheduler<'_, P>,
) -> ClusterOutcome {
    play(&Cluster { nodes, table, every_s: EVERY_S }, workload, scheduler)
}

/// Jobs that ask for `load` times what the slots can do, and the nodes: drawn jobs come as fast as these nodes
/// need; those of a log when they did, to as many nodes as it takes.
fn workload(
    size: &Size,
    log: Option<&GivenWorkload>,
    table: &PairTable,
    load: f64,
    seed: u64,
) -> (Vec<QueuedJob>, usize) {
    let programs = table.programs() as u32;
    match log {
        None => (generate(size.jobs, programs, 2 * size.nodes, load, seed), size.nodes),
        Some(GivenWorkload { log, .. }) => {
            let first = log.jobs.get(..size.jobs).unwrap_or(&log.jobs);
            let workload = given(first, programs, seed);
            let nodes = nodes_for(&workload, load);
            (workload, nodes)
        }
    }
}

/// What is used of a log.
fn described_log(size: &Size, GivenWorkload { name, log }: &GivenWorkload) -> String {
    let used = log.jobs.get(..size.jobs).unwrap_or(&log.jobs);
    let wide = used.iter().filter(|job| job.processors > 2).count();
    let out = &log.left_out;
    format!(
        "{name}: the first {} of {} jobs, programs drawn; {wide} of more than two processors take one whole node; \
         left out: {} that never ran, {} without processors, {} parts of checkpointed jobs",
        used.len(),
        log.jobs.len(),
        out.never_ran,
        out.no_processors,
        out.parts
    )
}

/// How long the longest decision takes on this host when all jobs are submitted at once.
fn decision(mut all: Vec<QueuedJob>, nodes: usize, table: &PairTable) -> (Duration, usize) {
    for job in &mut all {
        job.submitted_s = 0.0;
        // Later decisions are about fewer jobs, and not of interest.
        job.run_s = 1.0;
    }
    by(nodes, table, &all, &Scheduler::Partners(table, rules())).longest_decision
}

fn points(
    at: &'static str,
    rounds: &[Round],
    reproduced: &mut Reproduction,
) -> Result<(), symbiont_report::stats::StatsError> {
    type Of = fn(&ClusterOutcome, &ClusterOutcome) -> f64;
    let less: [(&'static str, Of); 3] = [
        ("symbiont-cluster-slowdown", |own, base| 1.0 - own.slowdown / base.slowdown),
        ("symbiont-cluster-throughput", |own, base| own.throughput / base.throughput - 1.0),
        ("symbiont-cluster-wait", |own, base| 1.0 - own.wait_s[0] / base.wait_s[0].max(1.0)),
    ];
    type Pair = fn(&Round) -> [&ClusterOutcome; 2];
    let series: [(&str, Pair); 6] = [
        (FIRST_COME, |round| [&round.first_come, &round.backfill]),
        (RULES, |round| [&round.rules, &round.backfill]),
        (PARTNERS, |round| [&round.partners, &round.backfill]),
        (ADDED, |round| [&round.partners, &round.rules]),
        (SHUFFLED, |round| [&round.shuffled, &round.rules]),
        (ALIKE, |round| [&round.alike[0], &round.alike[1]]),
    ];
    for (id, of) in less {
        for (name, pair) in series {
            let gains: Vec<f64> = rounds
                .iter()
                .map(|round| {
                    let [own, base] = pair(round);
                    of(own, base)
                })
                .collect();
            let gain: Estimate = mean_estimate(&gains)?;
            let point = Point::new(name, at, gain.percent());
            reproduced.points.entry(id).or_default().push(point);
        }
    }
    Ok(())
}
