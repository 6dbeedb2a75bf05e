//! `symbiont analyze`: what published models predict.

use anyhow::Context;
use serde::Serialize;
use symbiont_policy::Phases;
use symbiont_report::number::counted;
use symbiont_report::theory::mix::{self, Cores, Load};
use symbiont_report::theory::{Scheduler, Speedups};
use symbiont_topology::{PuId, Topology};

use crate::described::{Described, described};
use crate::research::args::AnalyzePhases;

/// What the model says.
#[derive(Debug, Serialize)]
struct Analysis {
    /// Speeds of the cores, fastest first.
    cores: Vec<f64>,
    rows: Vec<Row>,
}

/// One program in one joint state.
#[derive(Debug, Serialize)]
struct Row {
    state: String,
    ready: u32,
    /// Ready threads of the others.
    co_running: Vec<u32>,
    baseline: SchedulerSpeedups,
    proposed: SchedulerSpeedups,
}

/// One program in one joint state under one scheduler.
#[derive(Debug, Serialize)]
struct SchedulerSpeedups {
    min: f64,
    avg: f64,
    max: f64,
    max_over_min: f64,
    /// Of two programs, at worst: this one slow and the other fast, and the
    /// other way round.
    fairness_cases: Option<[f64; 2]>,
    /// Of two programs, by their averages.
    fairness: Option<f64>,
}

/// Evaluates the model of Morad et al. and prints its tables.
pub fn phases(args: &AnalyzePhases) -> anyhow::Result<()> {
    let cores = cores(args)?;
    let count = cores.speeds().len();
    let states = if args.ready.is_empty() {
        let parallel = u32::try_from(count).context("too many cores")?;
        anyhow::ensure!(parallel >= 2, "the model of two programs needs at least 2 cores");
        let serial = ("S", Load { ready: 1, serial: true });
        let parallel = ("P", Load { ready: parallel, serial: false });
        let pairs =
            [(serial, serial), (serial, parallel), (parallel, serial), (parallel, parallel)];
        pairs.map(|(own, other)| (format!("{},{}", own.0, other.0), own.1, vec![other.1])).to_vec()
    } else {
        one_state(&args.ready, threshold(args.threshold, count))
    };
    let row = |(state, own, others): &(String, Load, Vec<Load>)| {
        Ok(Row {
            state: state.clone(),
            ready: own.ready,
            co_running: others.iter().map(|other| other.ready).collect(),
            baseline: speedups_under(Scheduler::Baseline, &cores, *own, others)?,
            proposed: speedups_under(Scheduler::Proposed, &cores, *own, others)?,
        })
    };
    let rows = states.iter().map(row).collect::<anyhow::Result<_>>()?;
    let analysis = Analysis { cores: cores.speeds().to_vec(), rows };
    if args.json {
        say!("{}", crate::out::json(&analysis)?);
    } else {
        say!("{}", analysis.text());
    }
    Ok(())
}

fn cores(args: &AnalyzePhases) -> anyhow::Result<Cores> {
    /// Far more than the model has been checked for.
    const MOST: u32 = 4096;
    if let Some(line) = &args.machine {
        let topology = Topology::synthetic(line).context("what machine is that?")?;
        return by_capacity(&topology);
    }
    if let Some(given) = &args.topology {
        let Described { topology, left_out } = described(given)?;
        left_out.iter().for_each(|what| note!("symbiont: left out: {what}"));
        return by_capacity(&topology);
    }
    let count = args.cores.unwrap_or_default();
    anyhow::ensure!(count <= MOST, "--cores {count}: at most {MOST}");
    let one = (0..count).map(|core| if core == 0 { args.fast } else { 1.0 });
    Cores::new(one.collect()).with_context(|| format!("--cores {count} --fast {}", args.fast))
}

/// The cores of a machine by their capacity; the slowest have speed 1.
fn by_capacity(topology: &Topology) -> anyhow::Result<Cores> {
    let capacities = topology.cores().iter().map(|core| f64::from(core.capacity));
    let slowest = capacities.clone().fold(f64::INFINITY, f64::min);
    Ok(Cores::new(capacities.map(|capacity| capacity / slowest).collect())?)
}

fn threshold(asked: Option<f64>, cores: usize) -> f64 {
    let cpus = (0u32..).take(cores).map(PuId).collect();
    Phases::new(asked).threshold(&cpus)
}

/// Each program of one joint state, seen with the others.
fn one_state(ready: &[u32], threshold: f64) -> Vec<(String, Load, Vec<Load>)> {
    let load = |&ready: &u32| Load { ready, serial: f64::from(ready) <= threshold };
    let loads: Vec<Load> = ready.iter().map(load).collect();
    let letter = |load: &Load| if load.serial { "S" } else { "P" };
    let seen = |own: usize| {
        let mut others = loads.clone();
        let own = others.remove(own);
        let names: Vec<&str> = std::iter::once(&own).chain(&others).map(letter).collect();
        (names.join(","), own, others)
    };
    (0..loads.len()).map(seen).collect()
}

fn speedups_under(
    scheduler: Scheduler,
    cores: &Cores,
    own: Load,
    others: &[Load],
) -> anyhow::Result<SchedulerSpeedups> {
    let Speedups { min, avg, max } = mix::speedups(scheduler, cores, own, others)?;
    let (mut fairness_cases, mut fairness) = (None, None);
    if let [other] = others {
        fairness_cases = Some(mix::fairness_cases(scheduler, cores, [own, *other])?);
        fairness = Some(mix::expected_fairness(scheduler, cores, [own, *other])?);
    }
    Ok(SchedulerSpeedups { min, avg, max, max_over_min: max / min, fairness_cases, fairness })
}

impl Analysis {
    fn text(&self) -> String {
        let speeds: Vec<String> = runs(&self.cores);
        let mut text = format!(
            "{}, speeds {}\nSpeedup of the first program of each state against the same \
             phase alone\n",
            counted(self.cores.len(), "core"),
            speeds.join(" + "),
        );
        let baseline = self.table(|row| &row.baseline);
        let proposed = self.table(|row| &row.proposed);
        text.push_str(&format!(
            "\nBaseline: all threads are equal (Table 1; fairness: Table 2)\n{baseline}\n\n\
             Proposed: serial threads have the fastest cores (Table 3)\n{proposed}"
        ));
        text
    }

    fn table(&self, of: fn(&Row) -> &SchedulerSpeedups) -> comfy_table::Table {
        let mut drawn = comfy_table::Table::new();
        drawn.load_preset(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
        drawn.set_header([
            "state",
            "threads",
            "min",
            "average",
            "max",
            "max/min",
            "worst fairness",
            "other case",
            "fairness of averages",
        ]);
        for row in &self.rows {
            let speedups = of(row);
            let shown = |value: Option<f64>| value.map_or("–".to_owned(), |v| format!("{v:.4}"));
            let co_running: Vec<String> = row.co_running.iter().map(u32::to_string).collect();
            let [worst, other] = match speedups.fairness_cases {
                Some([a, b]) => [Some(a.min(b)), Some(a.max(b))],
                None => [None, None],
            };
            drawn.add_row([
                row.state.clone(),
                format!("{} with {}", row.ready, co_running.join("+")),
                shown(Some(speedups.min)),
                shown(Some(speedups.avg)),
                shown(Some(speedups.max)),
                shown(Some(speedups.max_over_min)),
                shown(worst),
                shown(other),
                shown(speedups.fairness),
            ]);
        }
        drawn
    }
}

/// Equal neighbours written once: `1 × 2`, `7 × 1`.
fn runs(speeds: &[f64]) -> Vec<String> {
    speeds
        .chunk_by(|a, b| (a - b).abs() < 1e-12)
        .filter_map(|run| Some(format!("{} × {}", run.len(), run.first()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_serial_up_to_the_threshold() {
        let states = one_state(&[1, 2, 8], threshold(None, 8));
        let names: Vec<&str> = states.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["S,S,P", "S,S,P", "P,S,S"]);
        assert_eq!(one_state(&[2], threshold(None, 2))[0].0, "P");
    }

    #[test]
    fn equal_cores_are_written_once() {
        assert_eq!(runs(&[2.0, 1.0, 1.0]), ["1 × 2", "2 × 1"]);
    }

    #[test]
    fn a_machine_can_be_described_by_a_line() {
        let args = |machine: Option<&str>, topology: Option<&str>, cores| AnalyzePhases {
            cores,
            fast: 2.0,
            machine: machine.map(str::to_owned),
            topology: topology.map(str::to_owned),
            ready: vec![],
            threshold: None,
            json: false,
        };
        let line = Some("core:1 | core:7 capacity:512");
        let machine = cores(&args(line, None, None)).unwrap();
        assert_eq!(machine, cores(&args(None, None, Some(8))).unwrap());
        assert_eq!(machine, cores(&args(None, line, None)).unwrap());
        assert!(cores(&args(Some("core:x"), None, None)).is_err());
        assert!(cores(&args(None, Some("core:x"), None)).is_err());
        assert!(cores(&args(None, None, Some(0))).is_err());
    }
}
