use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::json;
use symbiont_synth::{Ratio, Report};

use super::plan::{BASELINE, TRIED};
use super::*;
use crate::harness::{Programs, Verdict};
use crate::worlds::scripts::script;
use symbiont_campaign::{Error, Progress};
use symbiont_report;

const RATE: f64 = 1e6;

/// A report of a pure program on two CPUs, from its progress in units of RATE.
fn reported(ratio: Ratio, progress: f64) -> Report {
    let parallel = if ratio == Ratio::PARALLEL { 2.0 * progress * RATE } else { 0.0 };
    let serial = if ratio == Ratio::PARALLEL { 0.0 } else { progress * RATE };
    let work =
        |rate: f64| json!({"iterations": 1, "iterations_per_s": rate, "phases": 1, "seconds": 1.0});
    serde_json::from_value(json!({
        "ratio": ratio.to_string(), "threads": 2, "seed": 1, "mean_phase_iterations": 1000.0,
        "calibration": "given", "elapsed_s": 1.0, "ended_by": "time",
        "serial": work(serial), "parallel": work(parallel),
        "iterations_per_s": serial + parallel,
        "cpu_s": (serial + parallel) / RATE, "voluntary_switches": 1, "involuntary_switches": 1,
    }))
    .unwrap()
}

/// Headline and matrix of pure programs, each run's progress given by a function
/// of policy, grouping, own ratio and the other's; 1 alone; a little noise by round.
fn records(of: impl Fn(&str, Grouping, Ratio, Ratio) -> f64) -> Vec<PhasesRecord> {
    records_by_round(|_, policy, grouping, own, other| of(policy, grouping, own, other))
}

/// The same, with the round as well.
fn records_by_round(of: impl Fn(u32, &str, Grouping, Ratio, Ratio) -> f64) -> Vec<PhasesRecord> {
    let size = PhasesSize {
        headline_rounds: 6,
        headline_least: None,
        headline_time: Duration::from_secs(1),
        matrix_ratios: vec![Ratio::PARALLEL, Ratio::SERIAL],
        matrix_rounds: 3,
        matrix_time: Duration::from_secs(1),
        groupings: Grouping::ALL.into(),
        real_rounds: 2,
        real_time: Duration::from_secs(1),
    };
    plan(&size, 1)
        .into_iter()
        .map(|run| {
            let noise = 1.0 + f64::from(run.round % 3) * 1e-3;
            let programs = match &run.what {
                RunKind::Alone { program } => {
                    vec![reported(program.ratio, noise)]
                }
                RunKind::Together { programs: [a, b], policy, grouping } => [(a, b), (b, a)]
                    .map(|(own, other)| {
                        let progress = of(run.round, policy, *grouping, own.ratio, other.ratio);
                        // No two measurements are equal.
                        let own_noise = match (*policy == TRIED, run.round % 2) {
                            (false, _) => 0.0,
                            (true, 0) => 1e-4,
                            (true, _) => -1e-4,
                        };
                        reported(own.ratio, progress * (noise + own_noise))
                    })
                    .into(),
                RunKind::RealAlone | RunKind::RealTogether { .. } => Vec::new(),
            };
            let real = (run.part == Part::Real).then(|| {
                let progress = run.what.managed().map_or(1.0, |(policy, grouping)| {
                    of(run.round, policy, grouping, Ratio::SERIAL, Ratio::PARALLEL)
                });
                record::Timed { seconds: 2.0 / progress, digest: "d1".to_owned() }
            });
            PhasesRecord { run, wall_s: 1.5, programs, real, managed: None }
        })
        .collect()
}

/// As the model says for two CPUs.
fn as_predicted(policy: &str, _: Grouping, own: Ratio, other: Ratio) -> f64 {
    match (own == Ratio::SERIAL, other == Ratio::SERIAL) {
        (true, true) => 1.0,
        (false, false) => 0.5,
        _ if policy == BASELINE => 2.0 / 3.0,
        (true, false) => 1.0,
        (false, true) => 0.5,
    }
}

/// The evaluation of runs as predicted; made once, as bootstraps take time.
fn predicted() -> &'static Evaluation {
    static EVALUATION: LazyLock<Evaluation> =
        LazyLock::new(|| evaluate(&records(as_predicted), Cpus::alike(2), RATE, 1).unwrap());
    &EVALUATION
}

/// The runs of one cell, and those alone.
fn few() -> Vec<PhasesRecord> {
    let mut runs = records(as_predicted);
    runs.retain(|record| match &record.run.what {
        RunKind::Together { grouping, .. } => {
            record.run.part == Part::Headline && *grouping == Grouping::OneSession
        }
        RunKind::Alone { .. } => true,
        RunKind::RealAlone | RunKind::RealTogether { .. } => false,
    });
    runs
}

fn headline(evaluation: &Evaluation, grouping: Grouping) -> &figures::PhasesCell {
    evaluation
        .cells
        .iter()
        .find(|cell| cell.part == Part::Headline && cell.grouping == grouping)
        .unwrap()
}

fn verdict<'a>(evaluation: &'a Evaluation, words: &str) -> &'a crate::harness::Check {
    evaluation.checks.iter().find(|check| check.requirement.contains(words)).unwrap()
}

#[test]
fn speedups_are_together_over_alone_and_stand_next_to_the_model() {
    let evaluation = predicted();
    let cell = headline(evaluation, Grouping::OneSession);
    assert_eq!(cell.ratios, [Ratio::PARALLEL, Ratio::SERIAL]);
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    near(cell.baseline.speedup[1].value, 2.0 / 3.0);
    near(cell.tried.speedup[1].value, 1.0);
    near(cell.tried.speedup[0].value, 0.5);
    near(cell.tried.fairness.value, 0.5);
    near(cell.baseline.fairness.value, 1.0);
    near(cell.change.speedup[1].value, 1.0 / 3.0);
    let model = cell.tried.prediction.unwrap();
    near(model.speedup[1], 1.0);
    near(model.speedup[0], 0.5);
    assert_eq!(model.range.unwrap()[1], (1.0, 1.0));
    near(cell.baseline.prediction.unwrap().speedup[1], 2.0 / 3.0);
    // 2/3 of two threads and 2/3 of one, as against 1 and 1; noise 0, 1, 2 ‰.
    near(cell.baseline.throughput.value, 2.0 * 1.001);
    near(cell.change.throughput_ratio.value, 1.0);
    assert_eq!(evaluation.alone.len(), 4);
}

#[test]
fn jitter_is_that_of_times_not_of_rates() {
    let jitter = headline(predicted(), Grouping::OneSession).baseline.jitter[1].unwrap();
    let times = [1.5, 1.5 / 1.001, 1.5 / 1.002];
    let expected = symbiont_report::metrics::jitter(&[times, times].concat()).unwrap();
    assert!((jitter.value - expected).abs() < 1e-12);
}

#[test]
fn real_programs_are_judged_by_their_times() {
    let real = predicted().real.as_ref().unwrap();
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    near(real.alone_s.value, 2.0);
    for cell in &real.cells {
        near(cell.baseline.time_s.value, 3.0);
        near(cell.baseline.speedup.value, 2.0 / 3.0);
        near(cell.baseline.predicted.unwrap(), 2.0 / 3.0);
        near(cell.tried.speedup.value, 1.0);
        near(cell.tried.predicted.unwrap(), 1.0);
    }
}

#[test]
fn verdicts_follow_the_runs() {
    let good = predicted();
    assert_eq!(verdict(good, "at least 0.97").verdict, Verdict::Pass);
    assert_eq!(verdict(good, "in sessions of their own").verdict, Verdict::Pass);
    assert_eq!(verdict(good, "no cell").verdict, Verdict::Pass);
    // The same noise under both: the jitters do not differ.
    assert_eq!(verdict(good, "jitter").verdict, Verdict::Undecided);

    let bad = records(|policy, grouping, own, other| match (policy, grouping) {
        (TRIED, Grouping::OwnSessions) => 0.4,
        (TRIED, Grouping::OneSession) if own == Ratio::SERIAL && own != other => 0.9,
        _ => as_predicted(policy, grouping, own, other),
    });
    let bad = evaluate(&bad, Cpus::alike(2), RATE, 1).unwrap();
    assert_eq!(verdict(&bad, "at least 0.97").verdict, Verdict::Fail);
    assert_eq!(verdict(&bad, "in sessions of their own").verdict, Verdict::Fail);
    let cells = verdict(&bad, "no cell");
    assert_eq!(cells.verdict, Verdict::Fail);
    assert!(
        cells.reference.contains("∞:1 co-running with ∞:1, own sessions"),
        "{}",
        cells.reference
    );
    assert!(
        !cells.reference.contains("∞:1 co-running with ∞:1, one session"),
        "{}",
        cells.reference
    );
}

#[test]
fn a_loss_in_each_round_is_seen_although_rounds_differ() {
    let lower = records_by_round(|round, policy, grouping, own, other| {
        let programs = [0.8, 1.0, 1.2][round as usize % 3];
        let loss = if policy == TRIED { 0.97 } else { 1.0 };
        as_predicted(BASELINE, grouping, own, other) * programs * loss
    });
    let evaluation = evaluate(&lower, Cpus::alike(2), RATE, 1).unwrap();
    assert_eq!(verdict(&evaluation, "no cell").verdict, Verdict::Fail);
}

#[test]
fn the_order_of_finished_runs_does_not_matter() {
    let mut runs = few();
    let forward = evaluate(&runs, Cpus::alike(2), RATE, 1).unwrap();
    runs.reverse();
    let backward = evaluate(&runs, Cpus::alike(2), RATE, 1).unwrap();
    let order = |e: &Evaluation| e.cells.iter().map(|c| (c.name(), c.part)).collect::<Vec<_>>();
    assert_eq!(order(&forward), order(&backward));
    assert_eq!(forward.checks[0].verdict, backward.checks[0].verdict);
}

#[test]
fn missing_runs_are_an_error_that_says_which() {
    let mut runs = records(as_predicted);
    runs.retain(|record| !matches!(&record.run.what, RunKind::Alone { .. }));
    let error = evaluate(&runs, Cpus::alike(2), RATE, 1).unwrap_err().to_string();
    assert!(error.contains("alone"), "{error}");
    let mut runs = records(as_predicted);
    runs.retain(
        |record| !matches!(&record.run.what, RunKind::Together { policy, .. } if policy == TRIED),
    );
    let error = evaluate(&runs, Cpus::alike(2), RATE, 1).unwrap_err().to_string();
    assert!(error.contains("each policy"), "{error}");
}

#[test]
fn one_cpu_has_no_model_and_still_a_report() {
    let evaluation = evaluate(&few(), Cpus::alike(1), RATE, 1).unwrap();
    assert!(evaluation.cells.iter().all(|cell| cell.tried.prediction.is_none()));
    page::page(&evaluation, &PhasesSize::short()).html().unwrap();
}

#[test]
fn the_model_covers_one_cpu_that_is_faster_than_all_others() {
    let large = |count, slow: &[&str]| {
        let slow: Vec<_> = slow.iter().map(|text| text.parse().unwrap()).collect();
        Cpus::slowed(count, &slow).large
    };
    assert_eq!(large(4, &[]), Some(1.0));
    assert_eq!(large(2, &["1:2"]), Some(2.0));
    assert_eq!(large(4, &["0:1.5", "1:1.5", "3:1.5"]), Some(1.5));
    assert_eq!(large(4, &["0:1.5", "1:2", "3:1.5"]), None);
    assert_eq!(large(4, &["0:2"]), None);
    assert_eq!(large(4, &["0:2", "0:2", "0:2"]), None);
}

#[test]
fn cpu_time_that_neither_program_used_is_idle() {
    let of = |share: f64, cpus: Cpus| {
        let half = |policy: &str, grouping, own, other| {
            let share = if policy == TRIED { share } else { 1.0 };
            share * as_predicted(policy, grouping, own, other)
        };
        let cell = evaluate(&records(half), cpus, RATE, 1).unwrap().cells.remove(0);
        [cell.baseline.idle, cell.tried.idle].map(|idle| idle.unwrap().value)
    };
    let near = |measured: [f64; 2], expected: [f64; 2]| {
        assert!(measured.iter().zip(expected).all(|(a, b)| (a - b).abs() < 5e-3), "{measured:?}");
    };
    near(of(0.5, Cpus::alike(2)), [0.0, 0.5]);
    // Half of a CPU is taken away.
    let slowed = Cpus::slowed(2, &["1:2".parse().unwrap()]);
    near(of(0.5, slowed), [-1.0 / 3.0, 1.0 / 3.0]);
}

#[test]
fn a_disturbed_machine_is_reported() {
    let warns = |rate: f64| {
        let evaluation = evaluate(&few(), Cpus::alike(2), rate, 1).unwrap();
        let blocks = page::page(&evaluation, &PhasesSize::short()).blocks;
        blocks.iter().any(|block| matches!(block, symbiont_report::Block::Warning(_)))
    };
    assert!(!warns(RATE));
    // As if one thread had been twice as fast when the rate was measured.
    assert!(warns(2.0 * RATE));
}

#[test]
fn the_report_holds_checks_plots_and_matrices() {
    let folder = tempfile::tempdir().unwrap();
    page::page(predicted(), &PhasesSize::short()).write(folder.path()).unwrap();
    for file in [
        "index.html",
        "report.json",
        "checks.csv",
        "headline.csv",
        "headline-speedup.svg",
        "headline-jitter.png",
        "throughput-one-session.svg",
        "speedup-phases-own-sessions.csv",
        "alone.csv",
        "real.csv",
        "real-speedup.png",
    ] {
        assert!(folder.path().join(file).is_file(), "{file} is missing");
    }
}

/// Counts what it is notified of; stops the campaign after some runs.
#[derive(Default)]
struct Watcher {
    begun: Vec<(usize, usize)>,
    done: usize,
    stop_after: Option<usize>,
    notes: Vec<String>,
}

impl Progress for Watcher {
    fn begin(&mut self, runs: usize, done: Option<usize>, _: Duration) {
        self.begun.push((runs, done.unwrap_or(0)));
    }
    fn running(&mut self, _: &str) {}
    fn done(&mut self) {
        self.done += 1;
    }
    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
    fn cancelled(&self) -> bool {
        self.stop_after.is_some_and(|count| self.done >= count)
    }
}

/// Stand-ins for the two programs: shell scripts that write canned results.
/// `symbiont` fails as long as a file `broken` stands next to it.
fn stand_ins(folder: &Path) -> Programs {
    let canned = serde_json::to_string(&reported(Ratio::SERIAL, 1.0)).unwrap();
    let rate = json!({"iterations_per_s": 1e6, "median_share": 0.5, "samples": 1});
    let reported = json!({
        "manager": {"cpu_ns": 1_000_000, "quanta": 5, "thread_quanta": 20, "rss_kb": 900},
        "lateness_ms": null, "moves": {"done": 3, "refused": 1}, "trouble": ["a test of trouble"],
    });
    let synth = format!(
        "#!/bin/sh\nif [ \"$1\" = calibrate ]; then echo '{rate}'; else sleep 0.01; echo '{canned}'; fi\n"
    );
    let symbiont = format!(
        "#!/bin/sh\n[ -e \"${{0%/*}}/broken\" ] && {{ echo out of order >&2; exit 1; }}\n\
         for word in \"$@\"; do case $word in\n\
         --report-file=*) echo '{reported}' > \"${{word#*=}}\" ;;\n\
         --job=*) sed -n 's/^stdout = \"\\(.*\\)\"/\\1/p' \"${{word#*=}}\" |\n\
         while read -r out; do case $out in\n\
         */serial.json) \"${{0%/*}}/python3\" > \"$out\" ;;\n\
         */parallel.xz) cp \"${{out%/*}}/../real.txt\" \"$out\" ;;\n\
         *) echo '{canned}' > \"$out\" ;; esac; done ;;\nesac; done\nsleep 0.01\n"
    );
    Programs {
        symbiont: script(folder, "symbiont", &symbiont),
        synth: script(folder, "symbiont-synth", &synth),
    }
}

fn options(folder: &Path) -> PhasesOptions {
    let size = PhasesSize {
        headline_rounds: 2,
        headline_least: None,
        headline_time: Duration::from_millis(10),
        matrix_ratios: vec![Ratio::SERIAL],
        matrix_rounds: 1,
        matrix_time: Duration::from_millis(10),
        groupings: Grouping::ALL.into(),
        real_rounds: 1,
        real_time: Duration::from_millis(10),
    };
    let python =
        "#!/bin/sh\necho '{\"seconds\": 0.01, \"digest\": \"d1\", \"python\": \"'\"$0\"'\"}'\n";
    let xz = "#!/bin/sh\n[ \"$1\" = --version ] || cat \"$2\"\n";
    let tools =
        real::Tools { python: script(folder, "python3", python), xz: script(folder, "xz", xz) };
    PhasesOptions { tools, ..PhasesOptions::new(stand_ins(folder), folder.join("out"), size, 3) }
}

fn leaves_no_scratch(folder: &Path) -> bool {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.into_iter().all(|name| !name.to_string_lossy().starts_with("running"))
}

#[test]
fn a_campaign_runs_everything_and_writes_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let mut watcher = Watcher::default();
    let report = run(&options(folder.path()), &mut watcher).unwrap();
    // Headline: 2 × (2 + 4); matrix: 1 + 4; real: 1 + 4.
    // Before that, the benchmark's rate and the real programs' work.
    assert_eq!((watcher.begun, watcher.done), (vec![(1, 0), (1, 0), (22, 0)], 24));
    assert!(watcher.notes.iter().any(|note| note.contains("not idle")));
    let out = folder.path().join("out");
    let csv = std::fs::read_to_string(out.join("runs.csv")).unwrap();
    // Alone a line each, pairs two, and the head.
    assert_eq!(csv.lines().count(), 1 + 5 + 2 * 12);
    assert!(csv.lines().skip(1).all(|line| line.split(',').count() == 16));
    let real = std::fs::read_to_string(out.join("real-runs.csv")).unwrap();
    assert_eq!(real.lines().count(), 1 + 5);
    let page = std::fs::read_to_string(out.join("index.html")).unwrap();
    assert!(page.contains("phases, 8 runs: a test of trouble"));
    assert!(out.join("managers.csv").is_file() && leaves_no_scratch(&out));
    let text = std::fs::read_to_string(out.join("report.json")).unwrap();
    assert_eq!(symbiont_report::Report::from_json(&text).unwrap(), report);
}

#[test]
fn an_interrupted_campaign_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    // Cancellation is noticed while a run goes on: make runs slow enough.
    let slow = std::fs::read_to_string(&options.programs.symbiont).unwrap();
    script(folder.path(), "symbiont", &slow.replace("sleep 0.01", "sleep 0.4"));
    let mut watcher = Watcher { stop_after: Some(6), ..Watcher::default() };
    let error = run(&options, &mut watcher).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
    let kept = watcher.done - 2;
    assert!((4..22).contains(&kept));
    script(folder.path(), "symbiont", &slow);
    let mut watcher = Watcher::default();
    run(&options, &mut watcher).unwrap();
    assert_eq!((watcher.begun, watcher.done), (vec![(1, 1), (1, 1), (22, kept)], 22 - kept));
}

#[test]
fn a_matrix_in_one_session_alone_has_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.size.groupings = vec![Grouping::OneSession];
    options.size = options.size.only(&[Part::Matrix]);
    let report = run(&options, &mut ()).unwrap();
    let html = report.html().unwrap();
    assert!(html.contains("one session") && !html.contains("All pairs, own sessions"));
}

#[test]
fn another_seed_is_another_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let first = options(folder.path());
    run(&first, &mut ()).unwrap();
    let second = PhasesOptions { seed: first.seed + 1, ..first };
    let mut watcher = Watcher::default();
    run(&second, &mut watcher).unwrap();
    // The rate is the same; what xz gets follows from the seed as well.
    assert_eq!(watcher.begun, [(1, 1), (1, 0), (22, 0)]);
}

#[test]
fn a_run_that_fails_again_and_again_ends_the_campaign_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    std::fs::write(folder.path().join("broken"), "").unwrap();
    let error = run(&options, &mut ()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("3 times") && text.contains("out of order"), "{text}");
}

#[test]
fn a_wrong_output_of_a_real_program_fails_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    script(folder.path(), "xz", "#!/bin/sh\necho wrong\n");
    let text = run(&options, &mut ()).unwrap_err().to_string();
    assert!(text.contains("xz wrote something else"), "{text}");
}

#[test]
fn without_real_programs_their_part_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.tools.xz = folder.path().join("no-such-program");
    let mut watcher = Watcher::default();
    let report = run(&options, &mut watcher).unwrap();
    assert_eq!(watcher.begun, [(1, 0), (1, 0), (17, 0)]);
    let says = |block: &symbiont_report::Block| match block {
        symbiont_report::Block::Note(text) => text.contains("no-such-program"),
        _ => false,
    };
    assert!(report.blocks.iter().any(says));
    assert!(!folder.path().join("out/real.csv").exists());
}

/// Has the stand-in for `symbiont` say first what a line of a shell says, in which `$n` counts the calls.
fn says_first(options: &PhasesOptions, line: &str) {
    let text = std::fs::read_to_string(&options.programs.symbiont).unwrap();
    let folder = options.programs.symbiont.parent().unwrap();
    let count = "echo >>\"${0%/*}/calls\"; n=$(wc -l <\"${0%/*}/calls\")";
    script(
        folder,
        "symbiont",
        &text.replace("#!/bin/sh\n", &format!("#!/bin/sh\n{count}\n{line}\n")),
    );
}

/// As the benchmark says it.
fn late() -> String {
    let why = symbiont_synth::Error::Past(Duration::from_millis(7));
    format!("echo 'symbiont-synth: {why}' >&2; exit 1")
}

#[test]
fn a_run_that_begins_late_is_repeated_with_more_time() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    says_first(&options, &format!("[ $n -gt 4 ] || {{ {}; }}", late()));
    let mut watcher = Watcher::default();
    run(&options, &mut watcher).unwrap();
    assert_eq!(watcher.done, 24);
}

#[test]
fn a_machine_on_which_runs_begin_late_again_and_again_is_too_busy() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    says_first(&options, &late());
    let error = run(&options, &mut ()).unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    assert!(error.to_string().contains("too busy"), "{error}");
}

#[test]
fn a_quick_look_at_a_machine_that_becomes_too_busy_tells_of_the_rounds_that_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.size.headline_least = Some(2);
    // Of each headline round four runs are managed.
    says_first(&options, &format!("[ $n -le 6 ] || {{ {}; }}", late()));
    let outcome = carry_out(&options, &mut ()).unwrap();
    assert!(outcome.sentence.is_some());
    let says = |block: &symbiont_report::Block| match block {
        symbiont_report::Block::Warning(text) => {
            text.starts_with("It ended after 6 runs") && text.contains("too busy")
        }
        _ => false,
    };
    assert!(outcome.report.blocks.iter().any(says));
}

#[test]
fn a_quick_look_ends_when_the_serial_program_is_decided() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.size = PhasesSize { headline_rounds: 4, headline_least: Some(2), ..options.size };
    options.size = options.size.only(&[Part::Headline]);
    let mut watcher = Watcher::default();
    run(&options, &mut watcher).unwrap();
    // Two rounds of six runs each: all that is measured is equal. When more follow is
    // `symbiont_campaign`'s to say.
    assert_eq!(watcher.begun.split_off(2), [(12, 0)]);
}

#[test]
fn what_came_out_is_one_sentence() {
    assert_eq!(
        sentence(predicted()).unwrap(),
        "Placed by Symbiont, a serial program next to a parallel one ran at 1.00 of its speed alone, \
         under Linux at 0.67 (the parallel one: 0.50 and 0.67)."
    );
    let same = records(|_, grouping, own, other| as_predicted(BASELINE, grouping, own, other));
    let same = evaluate(&same, Cpus::alike(2), RATE, 1).unwrap();
    assert!(sentence(&same).unwrap().contains("which 6 pairs of runs do not distinguish"));
    // As if one thread had been twice as fast when the rate was measured.
    let busy = evaluate(&few(), Cpus::alike(2), 2.0 * RATE, 1).unwrap();
    assert!(sentence(&busy).unwrap().contains("other programs took about 50 % of the machine"));
}
