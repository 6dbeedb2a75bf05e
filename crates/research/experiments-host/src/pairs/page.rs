//! The page: pure.

use symbiont_report::stats::{mean, median};
use symbiont_report::{
    Block, Cell, Chart, Column, Highlight, Matrix as Picture, Plot, Report, Table, Value,
};

use super::machine::Method;
use super::sharing::{Sharing, Verdict, are_siblings, disagreements};
use super::{CpuChoice, Found};

/// Of pairs that are predicted worst, so many are listed.
const WORST: usize = 20;
/// CPUs that others used, and that a hypervisor withheld, on average, above which a reader is warned.
const OTHERS: f64 = 0.05;
const STOLEN: f64 = 0.01;

/// The report of what was found.
pub(super) fn page(found: &Found) -> Report {
    let Found { cpus: (one, other), chosen, method, plan, even, matrix, .. } = found;
    let mut report = Report::new(
        "How programs slow each other down",
        format!(
            "{} programs in all pairs on {one} and {other}{}, measured",
            matrix.programs.len(),
            match chosen {
                CpuChoice::User => "",
                CpuChoice::Measured | CpuChoice::Topology => ", two hardware threads of a core",
            }
        ),
    );
    report.fact("Hardware threads", format!("{one} and {other}, {}", reason(*chosen)));
    report.fact("Speeds", method.to_string());
    let window = match method {
        Method::Work | Method::Ipc => format!(", {} ms each", plan.window.as_millis()),
        Method::CpuTime => String::new(),
    };
    report.fact("Rounds", format!("{}, each pair once in each{window}", even.rounds));
    for warning in warnings(found) {
        report.push(Block::Warning(warning));
    }
    report.push(Block::Heading("Slowdowns".to_owned()));
    report.push(picture(found));
    report.push(on_average(found));
    report.push(Block::Prose(format!(
        "The file pairs.csv has these slowdowns and the names of programs, and nothing else; pairs.json has the \
         intervals and which CPUs share a core, too. {}",
        use_of(found)
    )));
    report.push(Block::Heading("Predicted and measured".to_owned()));
    predicted(&mut report, found);
    report.push(Block::Heading("Which hardware threads share a core".to_owned()));
    match &found.sharing {
        Some(sharing) => shared(&mut report, sharing, found),
        None => report.push(Block::Prose(
            "Not measured: the kernels for that are for x86-64. This is what /sys says.".to_owned(),
        )),
    }
    report
}

/// What the matrix is good for: that of two cores is no matrix of a core's hardware threads.
fn use_of(found: &Found) -> String {
    let commands = "symbiont simulate --pairs pairs.csv --policy learned\n\n\
                    symbiont reproduce symbiont-measured-pairs --pairs pairs.csv";
    match together(found) {
        Some(Verdict::Apart) => {
            "Do not simulate with it: symbiont simulate --pairs and symbiont reproduce \
             symbiont-measured-pairs take slowdowns of programs that share a core."
                .to_owned()
        }
        Some(Verdict::Shared) => format!("These commands take the former:\n\n{commands}"),
        Some(Verdict::Undecided) | None => {
            format!("If the two CPUs share a core, these commands take the former:\n\n{commands}")
        }
    }
}

/// What was found of the two CPUs; none: nothing was measured.
fn together(found: &Found) -> Option<Verdict> {
    Some(found.sharing.as_ref()?.of(found.cpus)?.verdict)
}

fn reason(chosen: CpuChoice) -> &'static str {
    match chosen {
        CpuChoice::Measured => "which were found to share a core",
        CpuChoice::Topology => "which share a core by /sys; measured, that is undecided",
        CpuChoice::User => "which were named (--cpus)",
    }
}

fn warnings(found: &Found) -> Vec<String> {
    let Found { cpus, chosen, even, .. } = found;
    let mut warnings = Vec::new();
    match (chosen, together(found)) {
        (CpuChoice::User, Some(Verdict::Shared)) | (CpuChoice::Measured, _) => {}
        (CpuChoice::User, Some(Verdict::Apart)) => warnings.push(format!(
            "{} and {} do not share a core, as measured: these are slowdowns of two cores, which share caches and \
             memory at most. They say nothing of SMT.",
            cpus.0, cpus.1
        )),
        (CpuChoice::User | CpuChoice::Topology, _) => warnings.push(format!(
            "Whether {} and {} share a core could not be decided by measuring. If they do not, these are slowdowns \
             of two cores.",
            cpus.0, cpus.1
        )),
    }
    if even.rounds < even.planned {
        warnings.push(format!(
            "It ended after {} of {} rounds. Each pair was measured equally often. The same command goes on from here.",
            even.rounds, even.planned
        ));
    }
    if even.rounds == 1 {
        warnings.push(
            "One round gives no intervals: how far off these figures are is not known.".to_owned(),
        );
    }
    let noise = |of: fn(&crate::bench::Noise) -> f64| {
        mean(&even.done.iter().map(|done| of(&done.record.noise)).collect::<Vec<_>>())
            .unwrap_or(0.0)
    };
    let (others, stolen) = (noise(|it| it.others_cpus), noise(|it| it.stolen_cpus));
    if others > OTHERS {
        warnings.push(format!(
            "Other programs used {others:.2} CPUs meanwhile. On a quiet machine the figures are better."
        ));
    }
    if stolen > STOLEN {
        warnings.push(format!(
            "A hypervisor withheld {stolen:.2} CPUs meanwhile: other machines run on the same hardware."
        ));
    }
    warnings
}

fn picture(found: &Found) -> Plot {
    let matrix = &found.matrix;
    let cells =
        matrix.slowdowns.iter().map(|row| row.iter().copied().map(Some).collect()).collect();
    let chart = Picture {
        row: "program".to_owned(),
        column: "co-runner".to_owned(),
        rows: matrix.programs.clone(),
        columns: matrix.programs.clone(),
        cells,
        label: "slowdown".to_owned(),
        unit: None,
        neutral: 1.0,
    };
    Plot::new(
        "slowdowns",
        "Slowdown of each program, by co-runner",
        "Speed alone over speed co-running, in the same round; geometric mean over rounds. Orange is slower than \
         alone, blue is faster.",
        Chart::Slowdowns(chart),
    )
}

/// What each program suffers and inflicts.
fn on_average(found: &Found) -> Table {
    let columns = vec![
        Column::text("Program"),
        Column::number("Suffers"),
        Column::number("Inflicts"),
        Column::number("Next to itself"),
    ];
    let mut table = Table::new(
        "averages",
        "Slowdown of each program, and of its co-runners, on average",
        columns,
    );
    let matrix = &found.matrix;
    for (at, name) in matrix.programs.iter().enumerate() {
        let own: Vec<f64> =
            matrix.slowdowns.get(at).into_iter().flatten().map(|it| it.value).collect();
        let column = matrix.slowdowns.iter().filter_map(|row| row.get(at)).map(|it| it.value);
        table.row(vec![
            name.clone().into(),
            mean(&own).into(),
            mean(&column.collect::<Vec<_>>()).into(),
            matrix.slowdowns.get(at).and_then(|row| row.get(at)).copied().into(),
        ]);
    }
    table
}

fn predicted(report: &mut Report, found: &Found) {
    let Some((error, guess)) = found.matrix.errors() else { return };
    let mut cells: Vec<_> = found.matrix.cells().collect();
    let off = |cell: &(&str, &str, symbiont_report::stats::Estimate, Option<f64>)| {
        cell.3.map_or(0.0, |predicted| (predicted - cell.2.value).abs())
    };
    cells.sort_by(|one, other| off(other).total_cmp(&off(one)));
    let widths: Vec<f64> =
        cells.iter().filter_map(|cell| Some(cell.2.interval?.width() / 2.0)).collect();
    let noise = median(&widths).map_or(String::new(), |half| {
        format!(" The intervals of what was measured reach {half:.3} to either side (median).")
    });
    report.push(Block::Prose(format!(
        "A sum predicts each slowdown from all others: what the program suffers on average, plus what its co-runner \
         inflicts on average, less the mean; it has not seen the pair itself. It errs by {error:.3} on average, \
         guessing the mean of all by {guess:.3}.{noise} What a sum does not know is which programs suit each other: \
         it gives all pairings of the same programs nearly equal throughput."
    )));
    let columns = vec![
        Column::text("Program"),
        Column::text("Co-runner"),
        Column::number("Measured"),
        Column::number("Predicted by sums"),
        Column::text("Within the interval"),
    ];
    let caption = format!("The {} pairs that sums predict worst", cells.len().min(WORST));
    let mut table = Table::new("predicted", caption, columns);
    for (program, co_runner, measured, predicted) in cells.into_iter().take(WORST) {
        let within = measured.interval.zip(predicted).map(|(interval, it)| interval.contains(it));
        let within = within.map(|within| if within { "yes" } else { "no" });
        table.row(vec![
            program.into(),
            co_runner.into(),
            measured.into(),
            predicted.into(),
            within.map_or(Cell::from(Value::Missing), Cell::from),
        ]);
    }
    report.push(table);
}

fn shared(report: &mut Report, sharing: &Sharing, found: &Found) {
    let wrong = disagreements(sharing, &found.cores);
    let cores: Vec<String> = sharing.cores.iter().map(|core| format!("{{{core}}}")).collect();
    let cores = match cores.as_slice() {
        [] => "No two of the measured CPUs were found to share a core.".to_owned(),
        some => format!("CPUs that were found to share a core: {}.", some.join(", ")),
    };
    let noise = sharing.noise().map_or(String::new(), |noise| {
        format!(" Intervals of the slowdowns reach {noise:.3} to either side (median).")
    });
    let sys = match wrong.as_slice() {
        [] => "/sys says nothing else.".to_owned(),
        some => {
            let names: Vec<String> = some
                .iter()
                .map(|it| format!("{} and {}: {}", it.cpus.0, it.cpus.1, it.verdict))
                .collect();
            format!("/sys says something else of {}.", names.join("; "))
        }
    };
    report.push(Block::Prose(format!(
        "A kernel that keeps all ports of loads busy runs at about half its speed on each of two hardware threads of a \
         core, and at nearly its own on two cores. {cores}{noise} {sys}"
    )));
    let columns = vec![
        Column::text("CPUs"),
        Column::number("Slowdown"),
        Column::text("Measured"),
        Column::text("/sys"),
    ];
    let mut table = Table::new("sharing", "Pairs of CPUs", columns);
    for pair in &sharing.pairs {
        let sys =
            if are_siblings(pair.cpus, &found.cores) { Verdict::Shared } else { Verdict::Apart };
        let differs = pair.verdict != Verdict::Undecided && pair.verdict != sys;
        let highlight = if differs { Highlight::Strong } else { Highlight::Plain };
        table.row(vec![
            format!("{}, {}", pair.cpus.0, pair.cpus.1).into(),
            pair.slowdown.into(),
            Cell::from(pair.verdict.to_string()).highlight(highlight),
            sys.to_string().into(),
        ]);
    }
    report.push(table);
}
