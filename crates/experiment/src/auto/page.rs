//! From runs to a report.

use std::fmt::Write;

use symbiont_policy::find;

use super::play::{Lab, NARROW, Record, Run, contenders};
use super::{FILLED, JUDGED, OS, Options, Terms};
use crate::harness::{Check, Error, Verdict};
use crate::metrics;
use crate::report::{Block, Cell, Column, Highlight, Report, Table, Value};
use crate::simulated::{Provenance, Setup};
use crate::stats::{Estimate, StatsError, mean, mean_estimate};

/// A figure of the speedups of a run.
type Figure = fn(&[f64]) -> Option<f64>;

const OWN: (&str, Terms) = (JUDGED, Terms::Plain);
const MODELLED: (&str, Terms) = (JUDGED, Terms::Modelled);
const BASELINE: (&str, Terms) = (OS, Terms::Plain);

fn runs<'r>(record: &'r Record, of: (&str, Terms)) -> impl Iterator<Item = &'r Run> {
    record.runs.iter().filter(move |run| run.policy == of.0 && run.terms == of.1)
}

/// A figure of one contender over that of another minus 1, in each repeat that both ran.
pub(super) fn gains(
    record: &Record,
    own: (&str, Terms),
    other: (&str, Terms),
    figure: Figure,
) -> Vec<f64> {
    let pairs = runs(record, own).filter_map(|run| {
        let beside = runs(record, other).find(|beside| beside.repeat == run.repeat)?;
        Some(figure(&run.speedups)? / figure(&beside.speedups)? - 1.0)
    });
    pairs.collect()
}

/// Over the workloads of a machine: the mean over repeats of each.
fn over_workloads(records: &[&Record], of: impl Fn(&Record) -> Vec<f64>) -> Option<Estimate> {
    let means: Vec<f64> = records.iter().filter_map(|record| mean(&of(record))).collect();
    mean_estimate(&means).ok()
}

fn figures(record: &Record, of: (&str, Terms), figure: Figure) -> Vec<f64> {
    runs(record, of).filter_map(|run| figure(&run.speedups)).collect()
}

/// How `auto` did on a workload against the OS.
struct Judged<'r> {
    record: &'r Record,
    name: &'static str,
    stp: Estimate,
    antt: Estimate,
    fairness: Option<Estimate>,
}

/// What tables call a contender.
fn name(of: (&str, Terms)) -> &'static str {
    if of.1 == Terms::Modelled { "auto with a model" } else { "auto" }
}

impl<'r> Judged<'r> {
    fn new(record: &'r Record, own: (&str, Terms)) -> Result<Self, StatsError> {
        let gain = |figure| mean_estimate(&gains(record, own, BASELINE, figure));
        Ok(Self {
            record,
            name: name(own),
            stp: gain(metrics::stp)?,
            antt: gain(metrics::antt)?,
            fairness: gain(metrics::fairness).ok(),
        })
    }

    /// In what it is worse, beyond the interval and by at least [`NARROW`]; none: in nothing.
    fn loses(&self) -> Option<String> {
        let stp = self.stp.high().is_some_and(|high| high < 0.0) && self.stp.value < -NARROW;
        let antt = self.antt.low().is_some_and(|low| low > 0.0) && self.antt.value > NARROW;
        let (stp, antt) = (stp.then_some("STP"), antt.then_some("ANTT"));
        let lost: Vec<&str> = stp.into_iter().chain(antt).collect();
        (!lost.is_empty()).then(|| lost.join(" and "))
    }

    fn verdict(&self) -> Cell {
        match self.loses() {
            Some(lost) => Cell::from(format!("loses {lost}")).highlight(Highlight::Worse),
            None if self.stp.low().is_some_and(|low| low > 0.0) => {
                Cell::from("gains").highlight(Highlight::Better)
            }
            None => Cell::from("equal within the interval").highlight(Highlight::Muted),
        }
    }
}

/// The report of all records, which are in order.
pub(super) fn page(
    options: &Options,
    labs: &[Lab<'_, '_>],
    records: &[Record],
) -> Result<Report, Error> {
    let mut report = Report::new(
        "auto against the OS and against each single policy, simulated",
        "Paired runs of the same seeded workloads from the same starts",
    );
    report.push(Block::Warning("Simulated: nothing of this was measured on hardware.".to_owned()));
    let judged: Result<Vec<Judged<'_>>, StatsError> = [OWN, MODELLED]
        .into_iter()
        .flat_map(|own| {
            let ran = records.iter().filter(move |record| runs(record, own).next().is_some());
            ran.map(move |record| Judged::new(record, own))
        })
        .collect();
    let judged = judged.map_err(|why| Error::Evaluation(why.to_string()))?;
    report.push(Check::table(&checks(labs, &judged)));
    report.push(losers(&judged));
    report.push(contenders_table(labs, records)?);
    report.push(workloads(&judged));
    report.push(controls(labs, records));
    for lab in labs {
        let description = lab.workshop.description();
        let from = Provenance::new(description, &Setup::default());
        let (cores, threads) = (from.cores, from.hardware_threads);
        let title = format!("{}; {cores} cores, {threads} hardware threads", from.title);
        let assumed = format!("{} of its {} values are assumed", from.assumed, from.values);
        report.fact(
            format!("Simulated machine {}", from.machine),
            format!("{title}; {}; {assumed}", from.checked),
        );
        let (_, left_out) = contenders(description, &lab.support()?, &lab.settings);
        let left_out = left_out.iter().fold(String::new(), |mut text, (name, why)| {
            let _ = write!(text, "{}{name}: {why}", if text.is_empty() { "" } else { "; " });
            text
        });
        report.fact(format!("Left out on {}", from.machine), left_out);
    }
    let size = &options.size;
    report.fact("Programs", labs.first().map(Lab::programs).unwrap_or_default().join(", "));
    report.fact(
        "Workloads",
        format!(
            "{} of each machine, filling {FILLED:?} of the hardware threads in turn",
            size.workloads
        ),
    );
    report.fact(
        "Repeats",
        format!(
            "{} to {} of {JUDGED} and {OS}, 1 of the others; targets of {:?} alone",
            size.repeats.0, size.repeats.1, size.alone
        ),
    );
    report.fact("Seed", options.seed.to_string());
    report.fact("Version", env!("CARGO_PKG_VERSION"));
    Ok(report)
}

fn of_machine<'r>(lab: &Lab<'_, '_>, records: &'r [Record]) -> Vec<&'r Record> {
    records.iter().filter(|record| record.machine == lab.name()).collect()
}

/// What has to hold on each machine.
fn checks(labs: &[Lab<'_, '_>], judged: &[Judged<'_>]) -> Vec<Check> {
    let check = |lab: &Lab<'_, '_>| {
        let own: Vec<&Judged<'_>> =
            judged.iter().filter(|judged| judged.record.machine == lab.name()).collect();
        let lost = own.iter().filter(|judged| judged.loses().is_some()).count();
        let gained = own.iter().filter(|judged| judged.stp.low().is_some_and(|low| low > 0.0));
        let worst = own.iter().min_by(|a, b| a.stp.value.total_cmp(&b.stp.value));
        Check {
            requirement: format!(
                "{}: auto loses to the OS on no workload, without a model and with one; the least gain in \
                 STP, %",
                lab.name()
            ),
            measured: worst.map(|worst| worst.stp.percent()),
            beside: format!("of {} comparisons {} gain, {lost} lose", own.len(), gained.count()),
            verdict: Verdict::of(lost == 0 && !own.is_empty()),
        }
    };
    labs.iter().map(check).collect()
}

fn losers(judged: &[Judged<'_>]) -> Block {
    let lost = judged.iter().filter_map(|judged| {
        let Record { machine, workload, programs, .. } = judged.record;
        let programs: Vec<String> = programs.iter().map(ToString::to_string).collect();
        Some(format!(
            "{} on {machine} workload {workload} loses {} ({})",
            judged.name,
            judged.loses()?,
            programs.join(" ")
        ))
    });
    match lost.collect::<Vec<_>>().as_slice() {
        [] => Block::Note("auto loses to the OS on no workload.".to_owned()),
        lost => Block::Warning(format!("auto loses to the OS: {}.", lost.join("; "))),
    }
}

fn contenders_table(labs: &[Lab<'_, '_>], records: &[Record]) -> Result<Table, Error> {
    let columns = vec![
        Column::text("Machine"),
        Column::text("Policy"),
        Column::text("Settings"),
        Column::number("STP"),
        Column::number("ANTT"),
        Column::number("Fairness"),
        Column::number("STP, auto over it").unit("%"),
        Column::number("ANTT, auto over it").unit("%"),
        Column::number("Fairness, auto over it").unit("%"),
        Column::number("Moves").unit("1/s"),
    ];
    let caption = "Contenders over all workloads of a machine; simulated";
    let mut table = Table::new("auto-contenders", caption, columns);
    for lab in labs {
        let records = of_machine(lab, records);
        let support = lab.support()?;
        let description = lab.workshop.description();
        let plain = contenders(description, &support, &lab.settings).0;
        let plain = plain.into_iter().map(|entry| (entry, Terms::Plain));
        let modelled = lab.settings.symbiosis.iter().map(|_| (JUDGED, Terms::Modelled));
        let modelled = modelled.filter_map(|(name, terms)| Some((find(name).ok()?, terms)));
        for (entry, terms) in modelled.chain(plain) {
            let of = (entry.name, terms);
            // All of them ran in the first repeat.
            let first = |r: &Record, figure| figures(r, of, figure).into_iter().take(1).collect();
            let level = |figure: Figure| over_workloads(&records, |r| first(r, figure));
            let over = |figure: Figure| -> Value {
                let gain = over_workloads(&records, |r| gains(r, OWN, of, figure));
                gain.filter(|_| of != OWN).map(Estimate::percent).into()
            };
            let mut made = (entry.make)(&lab.given(entry.name, terms));
            made.adapt(&support, &description.topology);
            let choice = made.choice().map_or(String::new(), |choice| format!("; {choice}"));
            let moves = over_workloads(&records, |r| runs(r, of).map(|run| run.moves).collect());
            table.row(vec![
                lab.name().into(),
                if terms == Terms::Modelled { name(of) } else { entry.name }.into(),
                format!("quantum {:?}{choice}", entry.quantum).into(),
                level(metrics::stp).into(),
                level(metrics::antt).into(),
                level(metrics::fairness).into(),
                over(metrics::stp).into(),
                over(metrics::antt).into(),
                over(metrics::fairness).into(),
                moves.map(|moves| Estimate::exact(moves.value)).into(),
            ]);
        }
    }
    table.note("Below 0 is better in ANTT, above 0 in the others.");
    Ok(table)
}

fn workloads(judged: &[Judged<'_>]) -> Table {
    let columns = vec![
        Column::text("Machine"),
        Column::text("Policy"),
        Column::number("Workload"),
        Column::number("Threads"),
        Column::text("Phases"),
        Column::number("Repeats"),
        Column::number("STP, auto over the OS").unit("%"),
        Column::number("ANTT, auto over the OS").unit("%"),
        Column::number("Fairness, auto over the OS").unit("%"),
        Column::text("Verdict"),
    ];
    let caption = "auto against the OS on each workload, paired; simulated";
    let mut table = Table::new("auto-workloads", caption, columns);
    table.note(format!(
        "Loses: worse in STP or ANTT beyond the interval, by at least {} %.",
        1e2 * NARROW
    ));
    for each in judged {
        let Record { machine, workload, programs, .. } = each.record;
        let phased = |(_, threads): &(String, usize)| *threads;
        let threads: usize = programs.iter().map(|one| one.phased.as_ref().map_or(1, phased)).sum();
        let phases = programs.iter().any(|one| one.phased.is_some());
        table.row(vec![
            machine.as_str().into(),
            each.name.into(),
            (*workload as u64).into(),
            (threads as u64).into(),
            if phases { "with" } else { "without" }.into(),
            (each.stp.n as u64).into(),
            each.stp.percent().into(),
            each.antt.percent().into(),
            each.fairness.map(Estimate::percent).into(),
            each.verdict(),
        ]);
    }
    table
}

fn controls(labs: &[Lab<'_, '_>], records: &[Record]) -> Table {
    let columns = vec![
        Column::text("Machine"),
        Column::text("Workloads"),
        Column::number("Gain").unit("%"),
        Column::number("All resources private").unit("%"),
        Column::number("Measurements shuffled").unit("%"),
    ];
    let caption = "Negative controls: STP of auto over the OS, first repeat; simulated";
    let mut table = Table::new("auto-controls", caption, columns);
    for lab in labs {
        for (with, name) in [(false, "without phases"), (true, "with phases")] {
            let has =
                |record: &&&Record| record.programs.iter().any(|p| p.phased.is_some()) == with;
            let records: Vec<&Record> =
                of_machine(lab, records).iter().filter(has).copied().collect();
            let gain = |own, other| -> Value {
                // The first repeat, as that of the controls.
                let first =
                    |r: &Record| gains(r, own, other, metrics::stp).into_iter().take(1).collect();
                over_workloads(&records, first).map(Estimate::percent).into()
            };
            table.row(vec![
                lab.name().into(),
                name.into(),
                gain(OWN, BASELINE).into(),
                gain((JUDGED, Terms::Private), (OS, Terms::Private)).into(),
                gain((JUDGED, Terms::Shuffled), BASELINE).into(),
            ]);
        }
    }
    table.note("Cores of their own and faster cores do not depend on measurements; a faster core is faster in private too.");
    table
}
