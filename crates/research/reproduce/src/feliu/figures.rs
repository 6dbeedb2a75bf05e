//! The figures, and their points.

use std::collections::BTreeMap;

use super::{
    L1, NUMA, ONLINE, ORACLE, OS, PRIVATE, RANDOM, RANDOM_FREE, RANDOM_PRIVATE, SYMBIOTIC,
};
use super::{SHUFFLED, STATIC, Size};
use crate::Reproduction;
use crate::figure::{Drawing, Figure, Paper, Point};
use symbiont_campaign::{FinishedRun, Metric, Rows};
use symbiont_experiments_sim::mixes::{Mix, MixRecord, MixRun};
use symbiont_report::published::feliu::{ANTT, STP, Statement};
use symbiont_report::stats::Estimate;

const OTHERS: &str = "Other programs than the paper's SPEC CPU2006, with shorter targets; the programs are known to \
                      the model, as in the paper. Each decision takes 1 ms, for which the last core is left to it (the \
                      paper's time is not printed).";
const COUNTS: &str = "Of the counts of cores that were run: quick experiments run 4 and 7.";
const SERIES: &str = "\"symbiotic\" and \"symbiotic-numa\" are the paper's; \"symbiotic-online\" is ours: its predictions \
                      are corrected by measured feedback.";
const FOREGONE: &str = "What the oracle gains over a policy is not judged: it knows what is to be known, so that its \
                        direction says nothing. The paper has it to say how little is left to gain.";
const LARGEST: &str = "The published values are of the completion stalls, the largest component there; they stand \
                       next to the largest of ours.";
const FOUND: &str = "The best static grouping found, by a search over groups of four that were measured on one core, is ours: \
                     the paper has no oracle for SMT4. It rests on measurements that no scheduler has beforehand, and \
                     follows neither phases nor memory: on cores of both nodes others may do better.";
const ENDS: &str = "Errors of 50 % and more on either side are not drawn.";
const SHARES: &str = "Of the published symbiotic scheduler on the fewest cores of at least five that were run. The \
                      paper prints no numbers except for two pairs of one SMT2 workload, which share a core in 66 % \
                      and 70 % of the quanta.";

pub(super) const fn figure(id: &'static str, place: &'static str, title: &'static str) -> Figure {
    Figure {
        id,
        paper: Paper::Feliu,
        place,
        title,
        quantity: "STP over random",
        unit: Some("%"),
        neutral: Some(0.0),
        drawn: Drawing::Lines { x: "Cores" },
        deviations: &[OTHERS, SERIES],
    }
}

const fn matrix(id: &'static str, place: &'static str, title: &'static str) -> Figure {
    Figure {
        quantity: "Share of quanta",
        neutral: None,
        drawn: Drawing::Matrix { row: "program", column: "co-running with" },
        deviations: &[OTHERS, SHARES],
        ..figure(id, place, title)
    }
}

pub const FIGURES: &[Figure] = &[
    Figure {
        quantity: "Error of predicted slowdowns",
        neutral: None,
        drawn: Drawing::Table,
        ..figure(
            "feliu-fig5",
            "Fig. 5",
            "Accuracy of the forward model, programs left out, simulated",
        )
    },
    Figure {
        quantity: "Share of predictions",
        neutral: None,
        drawn: Drawing::Lines { x: "Error, %" },
        deviations: &[OTHERS, SERIES, ENDS],
        ..figure("feliu-fig5-errors", "Fig. 5", "Errors of predicted slowdowns, simulated")
    },
    Figure {
        quantity: "Error of estimated components",
        neutral: None,
        drawn: Drawing::Table,
        deviations: &[OTHERS, LARGEST],
        ..figure(
            "feliu-fig6",
            "Fig. 6",
            "Accuracy of the inverse model by component, programs left out, simulated",
        )
    },
    Figure {
        quantity: "Share of estimates",
        neutral: None,
        drawn: Drawing::Lines { x: "Error, %" },
        deviations: &[OTHERS, LARGEST, ENDS],
        ..figure("feliu-fig6-errors", "Fig. 6", "Errors of the largest component, simulated")
    },
    figure("feliu-fig7a", "Fig. 7(a)", "STP over random in SMT2, simulated"),
    Figure {
        deviations: &[OTHERS, SERIES, FOUND],
        ..figure("feliu-fig7b", "Fig. 7(b)", "STP over random in SMT4, simulated")
    },
    Figure {
        quantity: "Gain in STP",
        drawn: Drawing::Dots,
        deviations: &[OTHERS, SERIES, COUNTS, FOREGONE],
        ..figure("feliu-sec63", "section 6.3", "Gains in STP that the text states, simulated")
    },
    Figure {
        quantity: "ANTT",
        unit: None,
        neutral: None,
        ..figure("feliu-fig8a", "Fig. 8(a)", "ANTT in SMT2, simulated")
    },
    Figure {
        quantity: "ANTT",
        unit: None,
        neutral: None,
        deviations: &[OTHERS, SERIES, FOUND],
        ..figure("feliu-fig8b", "Fig. 8(b)", "ANTT in SMT4, simulated")
    },
    Figure {
        quantity: "Change of ANTT; lower is better",
        drawn: Drawing::Dots,
        deviations: &[OTHERS, SERIES, COUNTS],
        ..figure("feliu-sec64", "section 6.4", "Changes of ANTT that the text states, simulated")
    },
    matrix("feliu-fig9a", "Fig. 9", "Pairs on one core in an SMT2 workload, simulated"),
    matrix("feliu-fig9b", "Fig. 9", "Pairs on one core in another SMT2 workload, simulated"),
    matrix("feliu-fig10", "Fig. 10", "Pairs on one core in an SMT4 workload, simulated"),
    Figure {
        drawn: Drawing::Dots,
        ..figure(
            "feliu-controls",
            "our controls",
            "What is gained without a signal or contention, simulated",
        )
    },
];

/// Of some counts of cores.
pub fn of_cores(rows: &Rows, width: usize, cores: &[usize]) -> Rows {
    let begins: Vec<String> = cores.iter().map(|c| format!("smt{width}-{c:02}-")).collect();
    rows.only(|row| begins.iter().any(|begin| row.workload.starts_with(begin)))
}

pub fn points(size: &Size, by_width: &BTreeMap<usize, Rows>, seed: u64) -> Reproduction {
    let mut reproduced = Reproduction::default();
    let contenders = [OS, L1, SYMBIOTIC, ONLINE, NUMA, ORACLE, STATIC];
    for (width, fig7, fig8) in
        [(2, "feliu-fig7a", "feliu-fig8a"), (4, "feliu-fig7b", "feliu-fig8b")]
    {
        let Some(rows) = by_width.get(&width) else { continue };
        let (mut gains, mut levels) = (Vec::new(), Vec::new());
        for contender in std::iter::once(RANDOM).chain(contenders) {
            for cores in size.cores {
                let own = of_cores(rows, width, &[*cores]);
                let at = |ours: Estimate| {
                    Point::new(contender, cores.to_string(), ours).x(*cores as f64)
                };
                if contender != RANDOM {
                    let gain = own.gain(contender, RANDOM, Metric::Stp, seed);
                    gains.extend(gain.ok().map(|gain| at(gain.percent())));
                }
                levels.extend(own.level(contender, Metric::Antt, seed).ok().map(at));
            }
        }
        reproduced.points.insert(fig7, gains);
        reproduced.points.insert(fig8, levels);
    }
    let stated = |statements: &[Statement], metric: Metric| {
        let point = |statement: &Statement| {
            let Statement { smt, cores: (from, to), own, other, percent } = *statement;
            let cores: Vec<usize> = (from..=to).collect();
            let all = by_width.get(&smt)?;
            let rows = of_cores(all, smt, &cores);
            let ours = rows.gain(own, other, metric, seed).ok()?.percent();
            let mut point = Point::new("ours", statement.place(), ours).published(Some(percent));
            point = point.foregone(own == ORACLE);
            // What the signal brings a policy over one that has none.
            for (without, own, other) in CONTROLS.iter().filter(|_| is_by_signal(own, other)) {
                let gain = all.gain(own, other, metric, seed).ok();
                point = point.control(without, gain.map(Estimate::percent));
            }
            Some(point)
        };
        statements.iter().filter_map(point).collect::<Vec<_>>()
    };
    reproduced.points.insert("feliu-sec63", stated(STP, Metric::Stp));
    reproduced.points.insert("feliu-sec64", stated(ANTT, Metric::Antt));
    let mut controls = Vec::new();
    for (width, rows) in by_width {
        let pairs = CONTROLS.map(|(_, own, other)| (own, other));
        for (own, other) in [(SYMBIOTIC, RANDOM)].into_iter().chain(pairs) {
            let gain = rows.gain(own, other, Metric::Stp, seed).ok();
            let at = format!("SMT{width}");
            controls.extend(gain.map(|gain| Point::new(own, at, gain.percent())));
        }
    }
    reproduced.points.insert("feliu-controls", controls);
    reproduced
}

/// Negative controls: what is taken away, and what is held against what.
const CONTROLS: [(&str, &str, &str); 2] = [
    ("measurements shuffled", SHUFFLED, RANDOM_FREE),
    ("units and caches private", PRIVATE, RANDOM_PRIVATE),
];

/// Is it a policy by its signal over one that has none?
fn is_by_signal(own: &str, other: &str) -> bool {
    [SYMBIOTIC, NUMA].contains(&own) && [RANDOM, OS, L1].contains(&other)
}

/// Fig. 9 and 10: how often the programs of a mix share a core, over all repeats of a contender that was
/// watched.
pub fn together(mix: &Mix, finished: &[FinishedRun<MixRun, MixRecord>]) -> Vec<Point> {
    let names: Vec<String> = (mix.programs.iter().enumerate())
        .map(|(at, name)| match mix.programs.iter().take(at).filter(|one| *one == name).count() {
            0 => name.clone(),
            before => format!("{name} ({})", before + 1),
        })
        .collect();
    let of_mix = finished.iter().filter(|it| it.run.mix == mix.name);
    let tables: Vec<&Vec<Vec<f64>>> =
        of_mix.map(|it| &it.record.together).filter(|table| !table.is_empty()).collect();
    let mut points = Vec::new();
    for (row, one) in names.iter().enumerate() {
        for (column, other) in names.iter().enumerate().filter(|(column, _)| *column != row) {
            let share = |table: &&Vec<Vec<f64>>| table.get(row)?.get(column).copied();
            let shares: Vec<f64> = tables.iter().filter_map(share).collect();
            let mean = symbiont_report::stats::mean(&shares);
            points.extend(mean.map(|mean| Point::new(one, other, Estimate::exact(100.0 * mean))));
        }
    }
    points
}
