//! Serial phases first for real parallel programs, on this machine: Tables 6 and 7 of Morad et al.
//!
//! # Approach
//! The paper's SPEC OMP2001 is not free, so the kernels of [`symbiont_experiments_host::openmp`] run in its place, in
//! all pairs and both orders, under this kernel's scheduler and under `phases`: once with CPUs as they are
//! (symmetric), once with all CPUs but one at half their speed (asymmetric, a = 2), as far as the user may slow them.
//!
//! # Terms and units
//! *Speedup*: time until both orders are through under Linux over that under `phases`, less 1; mean over all pairs.
//! *Fairness* (eq. 4) and *jitter* (eq. 6): changes of the means over all pairs, in percent; intervals over pairs.
//!
//! # Properties
//! - Points stand next to what was published of the same machine (`points_stand_next_to_the_tables`).

use std::path::PathBuf;
use std::time::Duration;

use symbiont_experiments_host::openmp::{Evaluation, OpenmpOptions, OpenmpSize, measure};
use symbiont_linux::slow::SlowCpu;
use symbiont_topology::PuId;

use crate::figure::{Drawing, Figure, Point};
use crate::{Context, Effort, Reproduction, Source, on_path};
use symbiont_campaign::{Error, Progress};
use symbiont_experiments_host::harness::{Machine, Programs};
use symbiont_report::published::morad as published;
use symbiont_report::stats::{Estimate, StatsError, over_rounds};

/// OpenMP kernels in pairs, on this machine.
#[derive(Debug)]
pub struct Openmp;

const KERNELS: &str = "OpenMP kernels of 0.3 s in the place of SPEC OMP2001, by this kernel's scheduler instead of \
                       Linux 2.6.18, on this machine's CPUs instead of eight; asymmetric: all CPUs but one at half their speed. No \
                       negative control is run.";
/// How many times as slow the small CPUs are: a = 2.
const SLOWED: f64 = 2.0;

const fn figure(id: &'static str, place: &'static str, title: &'static str) -> Figure {
    Figure {
        quantity: "Mean speedup",
        drawn: Drawing::Dots,
        deviations: &[KERNELS],
        ..super::figure(id, place, title)
    }
}

const FIGURES: &[Figure] = &[
    figure("morad-tab6", "Table 6, section 7", "Speedup of pairs of OpenMP kernels, measured"),
    Figure {
        quantity: "Change; more fairness and less jitter are better",
        ..figure(
            "morad-tab7",
            "Table 7",
            "Fairness and jitter of pairs of OpenMP kernels, measured",
        )
    },
];

impl Source for Openmp {
    fn name(&self) -> &'static str {
        "serial phases first for OpenMP kernels, on this machine"
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn simulated(&self) -> bool {
        false
    }

    fn missing(&self, _: &Context<'_>) -> Option<String> {
        (!on_path("cc")).then(|| "cc is not installed (package gcc)".to_owned())
    }

    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduction, Error> {
        let size = match context.effort {
            Effort::Quick => {
                let kernels = ["jacobi", "sort"].map(str::to_owned).into();
                OpenmpSize {
                    kernels,
                    rounds: 1,
                    time: Duration::from_millis(200),
                    ..OpenmpSize::short()
                }
            }
            Effort::Full => OpenmpSize { rounds: 3, ..OpenmpSize::short() },
        };
        let machine = Machine::read();
        let small = (1..machine.cpus).filter_map(|cpu| SlowCpu::new(PuId(cpu), SLOWED));
        let mut reproduced = Reproduction { facts: machine.facts(), ..Reproduction::default() };
        let mut ways = vec![(published::SYMMETRIC, Vec::new())];
        if context.effort == Effort::Full && rustix::process::geteuid().is_root() {
            ways.push((published::ASYMMETRIC, small.collect()));
        } else {
            let why = "not run: quick, or CPUs are only slowed down for root".to_owned();
            reproduced.facts.push((published::ASYMMETRIC.to_owned(), why));
        }
        for (kind, slow) in ways {
            let options = OpenmpOptions {
                programs: Programs::next_to_this_one()?,
                compiler: PathBuf::from("cc"),
                output: context.records.join(format!("morad-openmp-{kind}")),
                size: size.clone(),
                seed: context.seed,
                slow,
            };
            let evaluation = measure(&options, progress)?;
            for (id, points) in points(&evaluation, kind, context.seed)? {
                reproduced.points.entry(id).or_default().extend(points);
            }
        }
        Ok(reproduced)
    }
}

/// Points of both tables.
fn points(
    evaluation: &Evaluation,
    kind: &str,
    seed: u64,
) -> Result<[(&'static str, Vec<Point>); 2], StatsError> {
    let speedup = evaluation.completion.iter().map(|(_, completion)| {
        let less = |value: f64| 100.0 * (value - 1.0);
        let point =
            Point::new("phases over this kernel's scheduler", kind, changed(*completion, less));
        point.published(published::headline(&format!("mean speedup, SPEC OMP2001, {kind}")))
    });
    let printed = published::TABLE_7.improvement;
    let printed = if kind == published::SYMMETRIC { printed.symmetric } else { printed.asymmetric };
    let over_pairs = |of: &dyn Fn(usize) -> [f64; 2]| {
        over_rounds(evaluation.cells.len(), seed, |pairs| {
            let [stay, phases] =
                [0, 1].map(|policy| pairs.iter().map(|pair| of(*pair)[policy]).sum::<f64>());
            100.0 * (phases / stay - 1.0)
        })
    };
    let cells = &evaluation.cells;
    let fairness = over_pairs(&|pair| cells[pair].compared.fairness.map(|it| it.value))?;
    let mut table_7 =
        vec![Point::new("fairness", kind, fairness).published(Some(printed.fairness))];
    // Of one round alone there is none.
    let jitter = over_pairs(&|pair| cells[pair].compared.jitter.map(|it| it.value));
    if let Some(jitter) = jitter.ok().filter(|jitter| jitter.value.is_finite()) {
        table_7.push(Point::new("jitter", kind, jitter).published(Some(-printed.jitter)));
    }
    Ok([(FIGURES[0].id, speedup.collect()), (FIGURES[1].id, table_7)])
}

/// A function that never falls, of an estimate.
fn changed(estimate: Estimate, of: impl Fn(f64) -> f64) -> Estimate {
    let interval = estimate.interval.map(|mut interval| {
        [interval.low, interval.high] = [interval.low, interval.high].map(&of);
        interval
    });
    Estimate { value: of(estimate.value), interval, ..estimate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use symbiont_experiments_host::openmp::{OpenmpCell, TimeSpent};
    use symbiont_experiments_host::orders::OrderComparison;
    use symbiont_experiments_host::phases::{Cpus, Grouping};
    use symbiont_report::stats::Interval;

    #[test]
    fn points_stand_next_to_the_tables() {
        let exact = Estimate::exact;
        let cell = |fairness: [f64; 2]| OpenmpCell {
            kernels: ["a".to_owned(), "b".to_owned()],
            grouping: Grouping::OneSession,
            compared: OrderComparison {
                completion: exact(1.02),
                speedup: [[exact(0.5); 2]; 2],
                fairness: fairness.map(exact),
                fairness_change: exact(0.0),
                jitter: [exact(0.02), exact(0.01)],
            },
            spent: [TimeSpent { cpu_s: 1.0, alone_s: 0.0 }; 2],
            model: None,
        };
        let completion =
            Estimate { interval: Some(Interval { low: 1.01, high: 1.05 }), ..exact(1.03) };
        let evaluation = Evaluation {
            cpus: Cpus::alike(2),
            alone: Vec::new(),
            cells: vec![cell([0.8, 0.6]), cell([0.8, 0.6])],
            completion: vec![(Grouping::OneSession, completion)],
        };
        let [(_, speedup), (_, table_7)] = points(&evaluation, published::SYMMETRIC, 1).unwrap();
        let ours = speedup[0].ours.unwrap();
        assert!((ours.value - 3.0).abs() < 1e-9 && (ours.low().unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(speedup[0].published, Some(1.5));
        let values: Vec<_> = table_7
            .iter()
            .map(|point| (point.ours.unwrap().value.round(), point.published))
            .collect();
        assert_eq!(values, [(-25.0, Some(-1.4)), (-50.0, Some(-88.1))]);
        let [(_, speedup), (_, table_7)] = points(&evaluation, published::ASYMMETRIC, 1).unwrap();
        assert_eq!((speedup[0].published, table_7[0].published), (Some(3.5), Some(25.9)));
    }
}
