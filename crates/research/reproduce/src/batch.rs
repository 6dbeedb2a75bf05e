//! Partners in a batch: what `symbiont batch` saves of the time of 16 jobs, two at a time, by headroom.
//!
//! No paper has this. Slowdowns of pairs come from simulated cores of two hardware threads and are known, so this
//! is the most that choosing can save there. Starting long jobs first saves time without any prediction; so
//! partners are compared with that. The batches of each machine are divided by headroom, which is what the best
//! order that a search finds saves. Controls: with the table of other programs nothing may be saved, nor without
//! interference.

use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_campaign::{Error, Progress};
use symbiont_experiments_sim::batch::Batch;
use symbiont_experiments_sim::cluster::PairTable;
use symbiont_experiments_sim::code::described;
use symbiont_jobs::Flat;
use symbiont_report::stats::{StatsError, mean_estimate};

use super::figure::{Drawing, Figure, Paper, Point};
use super::own::{CPU2006_AND_2017, ProgramUse};
use super::{Context, Effort, Reproduction, Source};

/// Jobs of a batch, simulated.
#[derive(Debug)]
pub struct Batches;

const MACHINES: [&str; 2] = ["xeon-e5-2620v4", "epyc-9004"];
const JOBS: usize = 16;
const ALL: &str = "all";
const THIRDS: [&str; 3] = ["least headroom", "middle", "most headroom"];

const LONGEST: &str = "longest first, over first come";
const PARTNERS: &str = "best partners together";
const HEADROOM: &str = "best order that a search finds";
const SHUFFLED: &str = "partners by the table of other programs, over longest first";
const ALIKE: &str = "partners without interference, over longest first";

const JOBS_ALONE: &str = "One core of two hardware threads; each program is in its heaviest phase. Times alone \
     from 30 to 120 s, evenly by logarithm.";

const GAIN: Figure = Figure {
    id: "symbiont-batch",
    paper: Paper::Symbiont,
    place: "batch",
    title: "Time of a batch of 16 jobs, two at a time, by headroom, simulated",
    quantity: "Time saved, over starting long jobs first",
    unit: Some("%"),
    neutral: Some(0.0),
    drawn: Drawing::Dots,
    deviations: &[
        JOBS_ALONE,
        "Times alone and slowdowns of all pairs are known: the most that choosing can save.",
    ],
};

const CONTROLS: Figure = Figure {
    id: "symbiont-batch-controls",
    title: "What long jobs first save in a batch of 16, and partners by a wrong table, simulated",
    quantity: "Time saved",
    deviations: &[
        JOBS_ALONE,
        "Where longest first does badly the headroom over it is large, so in that third most other orders save \
         something, as the table of other programs does; over all batches it saves nothing.",
    ],
    ..GAIN
};

const FIGURES: &[Figure] = &[GAIN, CONTROLS];

impl Source for Batches {
    fn name(&self) -> &'static str {
        "jobs of a batch, simulated"
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn uses(&self, context: &Context<'_>) -> Vec<ProgramUse> {
        ProgramUse::of_pool(&context.all_programs(CPU2006_AND_2017), CPU2006_AND_2017, FIGURES)
    }

    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduction, Error> {
        let batches = match context.effort {
            Effort::Quick => 30,
            Effort::Full => 300,
        };
        // All, however little is run: no two jobs of a batch are of one program.
        let programs = context.all_programs(CPU2006_AND_2017);
        let profiles = context.profiles(&programs)?;
        progress.begin(MACHINES.len() * batches, None, Duration::ZERO);
        let mut reproduced = Reproduction::default();
        for name in MACHINES {
            let machine = super::described(name)?;
            let table = PairTable::simulated(&machine, &profiles).map_err(Error::evaluation)?;
            let alike = PairTable::new(&vec![vec![1.0; table.programs()]; table.programs()])
                .map_err(Error::evaluation)?;
            let mut saved = Vec::new();
            for seed in 0..batches as u64 {
                if progress.cancelled() {
                    return Err(Error::Stopped);
                }
                progress.running(&format!("{name}, batch {seed}"));
                saved.push(Saved::of(&table, &alike, context.seed ^ seed));
                progress.done();
            }
            for (figure, points) in points(name, saved).map_err(Error::evaluation)? {
                reproduced.points.entry(figure).or_default().extend(points);
            }
            reproduced.facts.push(described(&machine));
        }
        reproduced.facts.push(("Programs".to_owned(), programs.join(", ")));
        Ok(reproduced)
    }
}

/// Shares of the time of one batch that are saved.
#[derive(Debug, Clone, Copy)]
struct Saved {
    longest: f64,
    partners: f64,
    headroom: f64,
    shuffled: f64,
    alike: f64,
}

impl Saved {
    fn of(table: &PairTable, alike: &PairTable, seed: u64) -> Self {
        let batch = Batch::drawn(JOBS, table, seed);
        let longest = batch.chosen(&Flat, true, table);
        let over = |base: f64, own: f64| 1.0 - own / base;
        Self {
            longest: over(batch.chosen(&Flat, false, table), longest),
            partners: over(longest, batch.chosen(table, true, table)),
            headroom: over(longest, batch.best_found(table, seed)),
            shuffled: over(longest, batch.chosen(&table.shuffled(seed), true, table)),
            alike: over(batch.chosen(&Flat, true, alike), batch.chosen(table, true, alike)),
        }
    }
}

/// Means over the batches of a machine, in thirds by headroom.
fn points(
    machine: &str,
    mut saved: Vec<Saved>,
) -> Result<BTreeMap<&'static str, Vec<Point>>, StatsError> {
    type Of = fn(&Saved) -> f64;
    let series: [(&Figure, &str, Of); 5] = [
        (&GAIN, PARTNERS, |saved| saved.partners),
        (&GAIN, HEADROOM, |saved| saved.headroom),
        (&CONTROLS, LONGEST, |saved| saved.longest),
        (&CONTROLS, SHUFFLED, |saved| saved.shuffled),
        (&CONTROLS, ALIKE, |saved| saved.alike),
    ];
    saved.sort_by(|a, b| a.headroom.total_cmp(&b.headroom));
    let thirds = saved.chunks(saved.len().div_ceil(3).max(1));
    let mut points = BTreeMap::<_, Vec<_>>::new();
    for (part, saved) in std::iter::once((ALL, &saved[..])).chain(THIRDS.into_iter().zip(thirds)) {
        let at = format!("{machine}, {part}");
        for (figure, name, of) in series {
            let shares: Vec<f64> = saved.iter().map(of).collect();
            let point = Point::new(name, &at, mean_estimate(&shares)?.percent());
            points.entry(figure.id).or_default().push(point);
        }
    }
    Ok(points)
}
