//! What the experiment has to show, judged by its figures.

use super::evaluate::{Cell, Departures, Evaluation, Matrix, Predicted};
use super::page::{published_label, published_means};
use super::plan::{CORES, MACHINES};
use crate::harness::{Check, Goes, Verdict};
use crate::stats::{Estimate, mean};

/// What the experiment has to show.
pub(super) fn checks(evaluation: &Evaluation) -> Vec<Check> {
    let mut checks = Vec::new();
    for point in evaluation.points.iter().filter(|point| point.cores == 8) {
        let (name, _) = MACHINES[point.machine];
        let wanted = point.model[1].0;
        checks.push(Check {
            requirement: format!(
                "{name}: beside a parallel program the serial one performs as Table 3 says (within 3 %)"
            ),
            measured: Some(point.performance[1]),
            beside: format!("Table 3: {wanted:.3}; stay: {:.3}", point.performance[0].value),
            verdict: Verdict::of((point.performance[1].value / wanted - 1.0).abs() <= 0.03),
        });
    }
    for matrix in &evaluation.matrices {
        let (name, _) = MACHINES[matrix.machine];
        let (gain, [fairness, jitter, idle]) = published_means(matrix.machine);
        let mean = &matrix.mean;
        let low = |e: &Estimate| e.low().unwrap_or(e.value);
        checks.push(Check {
            requirement: format!("{name}: throughput rises on average over all pairs (%)"),
            measured: Some(mean.gain.percent()),
            beside: format!("published: {}", gain.unwrap_or_default()),
            verdict: Verdict::of(low(&mean.gain) > 0.0),
        });
        let told = |values: [Option<f64>; 2]| {
            let [stay, phases] = values.map(Option::unwrap_or_default);
            format!("published: from {stay} to {phases}")
        };
        let mut falls = |what: &str, rises: bool, of: [Estimate; 2], scale: f64, beside: String| {
            let [stay, phases] = of;
            let better = if rises { phases.value > stay.value } else { phases.value < stay.value };
            let goes = if rises { "rises" } else { "falls" };
            checks.push(Check {
                requirement: format!("{name}: mean {what} {goes}"),
                measured: Some(Estimate {
                    value: scale * (phases.value - stay.value),
                    interval: None,
                    ..phases
                }),
                beside: format!(
                    "from {:.3} to {:.3}; {beside}",
                    scale * stay.value,
                    scale * phases.value
                ),
                verdict: Verdict::of(better),
            });
        };
        let fairness = format!("{}{}", told(fairness), tables_tell(matrix));
        falls("fairness of runs", true, mean.run_fairness, 1.0, fairness);
        falls("jitter × 1000", false, mean.jitter, 1e3, told(jitter));
        falls("idle time (%)", false, mean.idle, 100.0, told(idle));
        for by in [Against::Tables, Against::WithSeniority] {
            checks.push(fairness_goes_as_told(name, matrix, by));
        }
        checks.push(nobody_gets_slower(name, matrix));
    }
    checks
}

/// What Tables 1 and 3 say of the fairness of the mean pair.
fn tables_tell(matrix: &Matrix) -> String {
    let models = || matrix.cells.iter().filter_map(|cell| cell.model);
    let of = |what: fn(&Predicted) -> f64| mean(&models().map(|m| what(&m)).collect::<Vec<_>>());
    let all = [of(|m| m.fairness[0]), of(|m| m.fairness[1]), of(|m| m.with_seniority)];
    let [Some(stay), Some(phases), Some(senior)] = all else { return String::new() };
    format!(
        "; Tables 1 and 3 say of the mean speedups: from {stay:.3} to {phases:.3}, with seniority \
         to {senior:.3}"
    )
}

/// Least change of fairness in a prediction that says where the measured one goes.
const TOLD: f64 = 0.01;

/// What fairness is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Against {
    /// Tables 1 and 3 as they stand.
    Tables,
    /// Table 1, and Table 3 with the seniority boost.
    WithSeniority,
}

impl Against {
    fn name(self) -> &'static str {
        match self {
            Self::Tables => "Tables 1 and 3",
            Self::WithSeniority => "Table 1 and Table 3 with seniority",
        }
    }

    /// By how much it says that fairness rises.
    fn told(self, model: &Predicted) -> f64 {
        let phases = match self {
            Self::Tables => model.fairness[1],
            Self::WithSeniority => model.with_seniority,
        };
        phases - model.fairness[0]
    }
}

/// Fairness of the mean speedups rises in some pairs and falls in others by each
/// prediction: it has to go where that says, pair by pair.
fn fairness_goes_as_told(name: &str, matrix: &Matrix, by: Against) -> Check {
    let (mut right, mut open, mut wrong) = (0, 0, Vec::new());
    for cell in &matrix.cells {
        let Some(model) = cell.model else { continue };
        let change = cell.figures.fairness_change;
        match Goes::of(by.told(&model), TOLD, &change) {
            None => {}
            Some(Goes::AsTold) => right += 1,
            Some(Goes::Either) => open += 1,
            Some(Goes::Against) => wrong.push(departs(cell, &model, by)),
        }
    }
    let wrong_ones = match wrong.is_empty() {
        true => "none against them".to_owned(),
        false => format!("against them {}", wrong.join(", ")),
    };
    Check {
        requirement: format!(
            "{name}: no pair's fairness of the mean speedups goes against {}",
            by.name()
        ),
        measured: Some(matrix.mean.fairness_change),
        beside: format!("as they say in {right} pairs, within chance in {open}, {wrong_ones}"),
        verdict: match (wrong.is_empty(), right) {
            (false, _) => Verdict::Fail,
            (true, 0) => Verdict::Undecided,
            (true, _) => Verdict::Pass,
        },
    }
}

/// A pair whose fairness goes against what is told, and which of the two policies'
/// fairness departs from it by how much.
fn departs(cell: &Cell, model: &Predicted, by: Against) -> String {
    let change = cell.figures.fairness_change.value;
    let told = by.told(model);
    let Some(off) = Departures::of(cell) else { return pair(cell) };
    let (phases, table, seniority) = match by {
        Against::Tables => {
            let told = Against::WithSeniority.told(model);
            (off.phases, "Table 3", seniority_tells(change, told))
        }
        Against::WithSeniority => (off.with_seniority, "Table 3 with seniority", String::new()),
    };
    let more = if off.stay.abs() > phases.abs() { "stay" } else { "phases" };
    format!(
        "{} ({change:+.3}, told {told:+.3}: mostly {more} departs; stay from Table 1 by {:+.3}{}, \
         phases from {table} by {phases:+.3}{seniority})",
        pair(cell),
        off.stay,
        sharing_tells(model, &off)
    )
}

/// How often serial threads shared their cores, and what is left with that.
fn sharing_tells(model: &Predicted, off: &Departures) -> String {
    let (Some(sharing), Some(left)) = (model.sharing, off.with_sharing) else {
        return String::new();
    };
    let chance = 2.0 / (f64::from(CORES) + 1.0);
    format!(
        ", for serial threads share their cores in {:.2} of their time beside parallel ones \
         (any placement as likely: {chance:.2}), which leaves {left:+.3}",
        sharing.share
    )
}

/// Does the prediction with seniority say which way fairness went?
fn seniority_tells(change: f64, told: f64) -> String {
    let says = match told {
        told if told.abs() < TOLD => "neither way",
        told if told * change > 0.0 => "as measured",
        _ => "against it, too",
    };
    format!("; with seniority {told:+.3}, {says}")
}

/// Share of the throughput below which a loss is none: where a short run ends.
const LOST: f64 = 1e-3;

/// Pairs that lose throughput are named with what else changed.
fn nobody_gets_slower(name: &str, matrix: &Matrix) -> Check {
    let slower: Vec<String> = (matrix.cells.iter())
        .filter(|cell| cell.figures.gain.high().is_some_and(|high| high < -LOST))
        .map(|cell| {
            let gain = 100.0 * cell.figures.gain.value;
            format!("{}: {gain:.2} %, {}", pair(cell), why(cell, matrix.machine))
        })
        .collect();
    Check {
        requirement: format!("{name}: no pair loses throughput beyond its interval"),
        measured: None,
        beside: match slower.is_empty() {
            true => format!("none of {} pairs", matrix.cells.len()),
            false => slower.join("; "),
        },
        verdict: Verdict::of(slower.is_empty()),
    }
}

/// Why a pair got slower, as far as its figures tell.
fn why(cell: &Cell, machine: usize) -> String {
    let [stay, phases] = cell.figures.idle.map(|idle| 100.0 * idle.value);
    let model = cell.model.map_or(0.0, |model| 100.0 * model.gain);
    match (model, phases - stay) {
        (model, _) if model < -0.05 => format!("as the tables predict ({model:.2} %)"),
        (_, more) if more > 0.05 => format!(
            "cores idle for longer ({stay:.2} to {phases:.2} %): a phase is acted on when it was \
             seen, up to a quantum late, and a core kept for a serial thread waits for it"
        ),
        _ if MACHINES.get(machine).is_some_and(|(_, faster)| *faster == 1.0) => {
            "cores are as busy: moves cost what they gain".to_owned()
        }
        _ => "cores are as busy: the faster core serves the program that gains less by it, or \
              moves cost what they gain"
            .to_owned(),
    }
}

fn pair(cell: &Cell) -> String {
    let [a, b] = cell.ratios.map(published_label);
    format!("{a} beside {b}")
}

#[cfg(test)]
mod tests {
    use super::super::evaluate::{Figures, Shared};
    use super::*;
    use crate::stats::Interval;

    fn within(low: f64, high: f64) -> Estimate {
        let interval = Some(Interval { low, high });
        Estimate { interval, ..Estimate::exact(f64::midpoint(low, high)) }
    }

    /// A pair with these changes, of which the tables say that fairness rises by 0.1, and
    /// with seniority falls by 0.1.
    fn matrix(gain: Estimate, fairness_change: Estimate, gain_told: f64) -> Matrix {
        let both = [Estimate::exact(0.5); 2];
        let figures = Figures {
            gain,
            fairness: both,
            fairness_change,
            run_fairness: both,
            jitter: both,
            idle: both,
        };
        let ratios = ["1:1", "1:2"].map(|label| label.parse().unwrap());
        let sharing = Some(Shared { share: 0.5, fairness: 0.6 });
        let model =
            Some(Predicted { gain: gain_told, fairness: [0.8, 0.9], with_seniority: 0.7, sharing });
        let cell = Cell { ratios, figures: figures.clone(), model };
        Matrix { machine: 0, cells: vec![cell], mean: figures }
    }

    #[test]
    fn pairs_against_what_is_told_are_named_with_the_side_that_departs() {
        let check =
            |change, by| fairness_goes_as_told("m", &matrix(within(0.0, 0.1), change, 0.0), by);
        let (falls, rises) = (within(-0.08, -0.02), within(0.02, 0.08));
        for (by, as_told, against) in
            [(Against::Tables, rises, falls), (Against::WithSeniority, falls, rises)]
        {
            assert_eq!(check(as_told, by).verdict, Verdict::Pass);
            assert_eq!(check(within(-0.02, 0.08), by).verdict, Verdict::Undecided);
            assert_eq!(check(against, by).verdict, Verdict::Fail);
        }
        // Fairness is 0.5 under both here.
        let against = check(falls, Against::Tables);
        let told = "1:1 beside 1:2 (-0.050, told +0.100: mostly phases departs; stay from Table \
                    1 by -0.300, for serial threads share their cores in 0.50 of their time beside \
                    parallel ones (any placement as likely: 0.22), which leaves -0.100, phases from \
                    Table 3 by -0.400; with seniority -0.100, as measured)";
        assert!(against.beside.ends_with(told), "{against:?}");
        let against = check(rises, Against::WithSeniority);
        let told = "which leaves -0.100, phases from Table 3 with seniority by -0.200)";
        assert!(against.beside.contains("told -0.100: mostly stay departs"), "{against:?}");
        assert!(against.beside.ends_with(told), "{against:?}");
    }

    #[test]
    fn what_the_tables_say_of_the_mean_pair_is_told() {
        let told = tables_tell(&matrix(within(0.0, 0.1), within(0.0, 0.1), 0.0));
        assert!(told.ends_with("from 0.800 to 0.900, with seniority to 0.700"), "{told}");
    }

    #[test]
    fn seniority_is_told_apart_from_chance() {
        assert!(seniority_tells(0.05, 0.009).ends_with("neither way"));
        assert!(seniority_tells(0.05, 0.02).ends_with("as measured"));
        assert!(seniority_tells(0.05, -0.02).ends_with("against it, too"));
    }

    #[test]
    fn pairs_that_get_slower_are_named() {
        let check = |gain, told| nobody_gets_slower("m", &matrix(gain, within(0.0, 0.1), told));
        assert_eq!(check(within(-0.01, 0.02), 0.0).verdict, Verdict::Pass);
        let slower = check(within(-0.03, -0.01), 0.0);
        assert_eq!(slower.verdict, Verdict::Fail);
        assert!(
            slower.beside.starts_with("1:1 beside 1:2: -2.00 %, cores are as busy"),
            "{slower:?}"
        );
        let told = check(within(-0.03, -0.01), -0.02);
        assert!(told.beside.contains("as the tables predict (-2.00 %)"), "{told:?}");
    }
}
