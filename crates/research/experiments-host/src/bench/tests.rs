//! Tests of comparisons by simulated trials and by stand-ins for programs.

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use tempfile::TempDir;

use super::*;
use crate::worlds::scripts::script;

const ROUNDS: Repeats = Repeats { least: 4, most: 16, narrow: 0.02 };

fn options(
    output: &Path,
    commands: &[&str],
    contenders: &[&str],
    repeats: Repeats,
) -> BenchOptions {
    let all = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    BenchOptions {
        symbiont: output.join("symbiont"),
        state_dir: None,
        commands: all(commands),
        contenders: all(contenders),
        repeats,
        limit: Duration::from_secs(20),
        seed: 1,
        output: output.to_owned(),
    }
}

/// Runs as `symbiont run` would: contender `other` needs `factor` of the time of `stay`.
struct Trial<'a> {
    comparison: Comparison<'a>,
    factor: f64,
    noise: f64,
    seed: u64,
}

impl Trial<'_> {
    /// The rounds that a comparison asks for, with times that scatter by `noise`.
    fn rounds(&self) -> Vec<FinishedRunOf<Comparison<'_>>> {
        let mut rng = Pcg64::seed_from_u64(self.seed);
        let mut done = Vec::new();
        loop {
            let runs = self.comparison.next(&done);
            if runs.is_empty() {
                return done;
            }
            for run in runs {
                let mut time =
                    |seconds: f64| seconds * (1.0 + self.noise * (rng.random_range(-1.0..1.0_f64)));
                let seconds = match &run.cell {
                    BenchCell::Alone(_) => vec![time(1.0)],
                    BenchCell::Together(contender) => {
                        let slowed = if contender == "stay" { 1.5 } else { 1.5 * self.factor };
                        vec![time(slowed), time(slowed)]
                    }
                };
                done.push(FinishedRunOf::<Comparison<'_>> {
                    run,
                    record: BenchRecord { seconds, noise: Noise::default() },
                });
            }
        }
    }
}

fn decision(factor: f64, noise: f64, seed: u64) -> (Decision, usize) {
    let options = options(Path::new("/nowhere"), &["a", "b"], &["stay", "other"], ROUNDS);
    let machine = Machine::default();
    let comparison = Comparison { options: &options, machine: &machine };
    let trial = Trial { comparison, factor, noise, seed };
    let done = trial.rounds();
    (decisions(&options, &rows(&options, &done))[0], done.len() / 4)
}

#[test]
fn equal_policies_are_not_distinguished_and_unequal_ones_are() {
    let count = |factor: f64, is: fn(Decision) -> bool| {
        (0..100).filter(|seed| is(decision(factor, 0.05, *seed).0)).count()
    };
    assert!(count(1.0, |decision| decision != Decision::Differs) >= 95);
    assert!(count(1.0 / 1.05, |decision| decision == Decision::Differs) >= 80);
}

#[test]
fn rounds_end_when_all_is_decided() {
    assert_eq!(decision(0.5, 0.01, 1), (Decision::Differs, 4));
    assert_eq!(decision(1.0, 0.001, 1), (Decision::Equal, 4));
    assert_eq!(decision(1.0, 0.5, 1), (Decision::Undecided, 16));
}

/// A manager that writes a report for two jobs.
fn stand_in(folder: &Path, exit_code: u8) -> PathBuf {
    let text = format!(
        r#"#!/bin/sh
for word; do case $word in --report-file=*) report=${{word#*=}};; --job=*) jobs=${{word#*=}};; esac; done
[ -n "$jobs" ] || exit 0
count=$(grep -c command "$jobs")
entry='{{"wall_s": 0.5, "exit_code": {exit_code}}}'
[ "$count" = 1 ] || entry="$entry, $entry"
echo "{{\"jobs\": [$entry], \"manager\": {{\"cpu_ns\": 1, \"quanta\": 1, \"thread_quanta\": 1, \"rss_kb\": null}}}}" > "$report"
echo it broke >&2
exit {exit_code}
"#
    );
    script(folder, "symbiont", &text)
}

#[test]
fn a_comparison_is_written_and_goes_on() {
    let folder = TempDir::new().unwrap();
    let symbiont = stand_in(folder.path(), 0);
    let options =
        options(folder.path(), &["true 1", "true 2"], &["stay", "auto"], Repeats::exactly(2));
    let report = bench(&options, &mut ()).unwrap();
    assert_eq!(report.facts.iter().filter(|(name, _)| name.starts_with("Program")).count(), 2);
    assert!(folder.path().join("index.html").is_file());
    // Nothing is left to run.
    fs::remove_file(&symbiont).unwrap();
    script(folder.path(), "symbiont", "#!/bin/sh\ncase $* in *--job=*) exit 1;; esac\n");
    bench(&options, &mut ()).unwrap();
}

#[test]
fn a_program_that_fails_is_named() {
    let folder = TempDir::new().unwrap();
    stand_in(folder.path(), 3);
    let options = options(folder.path(), &["false"], &["stay"], Repeats::exactly(1));
    let error = bench(&options, &mut ()).unwrap_err().to_string();
    assert!(error.contains("`false`") && error.contains("it broke"), "{error}");
}

#[test]
fn a_policy_that_cannot_run_here_is_reported_before_anything_runs() {
    let folder = TempDir::new().unwrap();
    script(folder.path(), "symbiont", "#!/bin/sh\necho no model >&2; exit 125\n");
    let options = options(folder.path(), &["true"], &["symbiotic"], Repeats::exactly(1));
    let error = bench(&options, &mut ()).unwrap_err().to_string();
    assert_eq!(error, "no comparison with 'symbiotic': no model");
}

proptest! {
    #[test]
    fn a_page_is_written_whatever_the_times_are(
        times in prop::collection::vec(1e-6..1e6_f64, 4..40),
    ) {
        let options = options(Path::new("/nowhere"), &["a"], &["stay", "b"], ROUNDS);
        let machine = Machine::default();
        let comparison = Comparison { options: &options, machine: &machine };
        let runs = comparison.next(&[]);
        let done: Vec<FinishedRunOf<Comparison<'_>>> = runs.into_iter().zip(times.iter().cycle()).map(|(run, time)| {
            let noise = Noise { others_cpus: *time, stolen_cpus: *time };
            FinishedRunOf::<Comparison<'_>> { run, record: BenchRecord { seconds: vec![*time], noise } }
        }).collect();
        prop_assert!(page::page(&options, &machine, &done).is_ok());
    }
}
