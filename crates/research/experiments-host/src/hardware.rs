//! Simulated pairs of programs held against pairs that were measured on a real SMT core.
//!
//! # Problem
//! Both levels of the simulated machine leave out the same effects, so their agreement proves little.
//!
//! # Approach
//! Slowdowns of all ordered pairs of some programs, measured by others, are compared with simulated ones. Two
//! guesses that know nothing of cores show what an error is worth: the mean of all measured slowdowns for
//! each pair, and the sum of what each victim and each co-runner adds on average. Since a scheduler needs the order of
//! pairs and not their speed, the pairing that simulated slowdowns choose is judged by the measured ones.
//!
//! # Terms and units
//! *Slowdown*: time co-running over time alone. *Error*: mean size of the difference of slowdowns, *bias*: its mean.
//! *Headroom*: what the best pairing of eight programs gains in STP over the mean of all pairings. *Captured*: the
//! share of it that the pairing chosen by simulated slowdowns gains. Simulated speeds *choose pairs* if they pass the
//! limits of [`PairAgreement::chooses_pairs`].
//!
//! # Properties
//! - Simulated slowdowns that equal the measured ones have no error and capture all of the headroom
//!   (`equal_slowdowns_capture_all_of_the_headroom`).
//! - Shuffled ones capture nothing on average (`shuffled_slowdowns_capture_nothing`).
//! - Slowdowns that rank victims rightly and co-runners wrongly choose no pairs
//!   (`co_runners_are_ranked_by_themselves`).
//! - A file that is not one square table is refused (`files_that_are_no_square_table_are_refused`).

pub mod host;

use std::collections::{BTreeMap, BTreeSet};

use rand::SeedableRng;
use rand::seq::index::sample;
use rand_pcg::Pcg64Mcg;
use serde::Serialize;
use symbiont_matching::{GroupError, Request, group};
use symbiont_policy::PairSlowdowns;
use symbiont_sim_cycle::check::rank_correlation;

use symbiont_report::stats::mean;

/// Programs that are paired.
const PAIRED: usize = 8;
/// Draws this many programs.
const DRAWS: usize = 300;
/// Least rank correlation of co-runners, and least share of the headroom, of speeds that choose pairs.
const CHOOSES: f64 = 0.3;
/// No measured slowdown is outside of this.
const SLOWDOWNS: std::ops::RangeInclusive<f64> = 0.01..=1000.0;
/// Most characters of a wrong first line that are shown.
const MOST_SHOWN: usize = 60;
/// Columns of a file that are read.
const COLUMNS: [&str; 3] = ["program", "co_runner", "slowdown"];

/// A file that holds no measured pairs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPairs {
    /// A column is missing.
    #[error(
        "no column is called '{0}': the first line has to name {columns}, and {1}", columns = COLUMNS.join(",")
    )]
    Column(&'static str, String),
    /// A line has none, or the slowdown is no positive number.
    #[error(
        "line {0}: a program, a co-runner and a slowdown from {least} to {most} are expected, and as many fields as the \
         first line has, without quotes",
        least = SLOWDOWNS.start(), most = SLOWDOWNS.end()
    )]
    Line(usize),
    /// The file has no pair.
    #[error("no pair is there")]
    Nothing,
    /// A pair is missing.
    #[error("{0} co-running with {1} is missing")]
    Missing(String, String),
    /// A pair is there several times.
    #[error("{0} co-running with {1} is there {2} times, and expected once")]
    Repeated(String, String, usize),
}

/// The first line of a file as it can be printed, shortened where it is long.
fn first_line(line: Option<&str>) -> String {
    let Some(line) = line else { return "there is none".to_owned() };
    let end = line.char_indices().nth(MOST_SHOWN).map(|(end, _)| end);
    let (shown, more) = end.map_or((line, ""), |end| (line.get(..end).unwrap_or_default(), "…"));
    format!("it is '{}{more}'", shown.escape_debug())
}

/// Measured pairs of programs; of a program with itself not always.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredPairs {
    /// Names of the programs, in order.
    pub programs: Vec<String>,
    /// Slowdown of each victim next to each co-runner.
    rows: Vec<Vec<Option<f64>>>,
}

impl MeasuredPairs {
    /// Reads comma-separated lines, the first of which names the columns.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn read(text: &str) -> Result<Self, NoPairs> {
        // Spreadsheets begin a file with the mark of its byte order.
        let text = text.trim_start_matches('\u{feff}');
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let first = lines.next().map(|(_, line)| line);
        let header: Vec<&str> =
            first.map_or(Vec::new(), |line| line.split(',').map(str::trim).collect());
        let find = |name: &'static str| {
            let at = header.iter().position(|column| *column == name);
            at.ok_or_else(|| NoPairs::Column(name, first_line(first)))
        };
        let [program, co_runner, slowdown] =
            [find(COLUMNS[0])?, find(COLUMNS[1])?, find(COLUMNS[2])?];
        let mut pairs: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
        for (number, line) in lines {
            let wrong = || NoPairs::Line(number + 1);
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            // As of a number with a decimal comma, which would be read as another one.
            if cells.len() != header.len() {
                return Err(wrong());
            }
            let cell =
                |at: usize| cells.get(at).copied().filter(|it| !it.is_empty()).ok_or_else(wrong);
            let value: f64 = cell(slowdown)?.parse().map_err(|_| wrong())?;
            if !SLOWDOWNS.contains(&value) {
                return Err(wrong());
            }
            let names = (cell(program)?.to_owned(), cell(co_runner)?.to_owned());
            pairs.entry(names).or_default().push(value);
        }
        if pairs.is_empty() {
            return Err(NoPairs::Nothing);
        }
        let names: BTreeSet<&String> = pairs.keys().flat_map(|(one, other)| [one, other]).collect();
        let row = |victim: &String| {
            let of = |co_runner: &&String| {
                let all = pairs.get(&(victim.clone(), (*co_runner).clone()));
                match all.map_or(&[][..], Vec::as_slice) {
                    [value] => Ok(Some(*value)),
                    [] if victim == *co_runner => Ok(None),
                    [] => Err(NoPairs::Missing(victim.clone(), (*co_runner).clone())),
                    all => Err(NoPairs::Repeated(victim.clone(), (*co_runner).clone(), all.len())),
                }
            };
            names.iter().map(of).collect::<Result<Vec<_>, NoPairs>>()
        };
        let rows = names.iter().map(|victim| row(victim)).collect::<Result<_, _>>()?;
        Ok(Self { programs: names.into_iter().cloned().collect(), rows })
    }

    /// Programs of which the slowdown next to themselves was not measured.
    pub fn not_next_to_themselves(&self) -> impl Iterator<Item = &str> {
        let rows = self.programs.iter().zip(&self.rows).enumerate();
        let missing = rows.filter(|(at, (_, row))| row.get(*at).is_none_or(Option::is_none));
        missing.map(|(_, (name, _))| name.as_str())
    }

    /// Slowdowns of all pairs, victim by co-runner. Of a program next to itself, where that was not measured, the
    /// mean of it as a victim plus that of it as a co-runner, less the mean of all.
    #[must_use]
    pub fn slowdowns(&self) -> Vec<Vec<f64>> {
        let mean = |values: &mut dyn Iterator<Item = Option<f64>>| {
            mean(&values.flatten().collect::<Vec<_>>()).unwrap_or(1.0)
        };
        let all = mean(&mut self.rows.iter().flatten().copied());
        let one = |victim: usize, co_runner: usize| {
            self.rows[victim][co_runner].unwrap_or_else(|| {
                let suffers = mean(&mut self.rows[victim].iter().copied());
                suffers + mean(&mut self.rows.iter().map(|row| row[co_runner])) - all
            })
        };
        let count = self.programs.len();
        (0..count).map(|victim| (0..count).map(|other| one(victim, other)).collect()).collect()
    }
}

/// Reads measured pairs of a machine, each program with each, itself included.
///
/// # Errors
/// What is wrong with them.
pub fn read_pairs(text: &str, machine: &str) -> Result<PairSlowdowns, NoPairs> {
    let pairs = MeasuredPairs::read(text)?;
    if let Some(name) = pairs.not_next_to_themselves().next() {
        return Err(NoPairs::Missing(name.to_owned(), name.to_owned()));
    }
    let rows = pairs.slowdowns();
    PairSlowdowns::new(machine.to_owned(), pairs.programs, rows).map_err(|_| NoPairs::Line(1))
}

/// How simulated slowdowns compare with measured ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairAgreement {
    /// Ordered pairs.
    pub pairs: usize,
    /// Mean slowdown, measured.
    pub measured: f64,
    /// Mean slowdown, simulated.
    pub simulated: f64,
    /// Mean of simulated less measured.
    pub bias: f64,
    /// Mean of its size.
    pub error: f64,
    /// Spearman's rank correlation; none where all are equal.
    pub rank: Option<f64>,
    /// The same of what each victim suffers on average.
    pub rank_of_victims: Option<f64>,
    /// The same of what each co-runner costs its victims on average.
    pub rank_of_co_runners: Option<f64>,
    /// The error of guessing the mean.
    pub error_of_mean: f64,
    /// The error of guessing a sum of what victim and co-runner add.
    pub error_of_sums: f64,
    /// What pairing can gain, by measured slowdowns, as a share of the mean STP.
    pub headroom: f64,
    /// The share of it that simulated slowdowns find; none where there is none.
    pub captured: Option<f64>,
}

impl PairAgreement {
    /// Are simulated slowdowns good enough to choose pairs on the real machine? They must err by less than their
    /// measured mean does, rank co-runners alike to 0.3 at least, and find as much of the headroom.
    #[must_use]
    pub fn chooses_pairs(&self) -> bool {
        let enough = |value: Option<f64>| value.is_some_and(|value| value >= CHOOSES);
        self.error < self.error_of_mean && enough(self.rank_of_co_runners) && enough(self.captured)
    }
}

/// Compares tables of slowdowns, victim by co-runner.
///
/// # Errors
/// When a slowdown is no number.
pub fn hold_against(
    measured: &[Vec<f64>],
    simulated: &[Vec<f64>],
    seed: u64,
) -> Result<PairAgreement, GroupError> {
    let (real, ours) = (measured.concat(), simulated.concat());
    let average = |values: &[f64]| mean(values).unwrap_or(f64::NAN);
    let all = average(&real);
    let error = |guess: &dyn Fn(usize, usize) -> f64| {
        let cells = measured.iter().enumerate();
        let sizes = cells.flat_map(|(victim, row)| {
            row.iter().enumerate().map(move |(other, value)| (guess(victim, other) - value).abs())
        });
        average(&sizes.collect::<Vec<_>>())
    };
    let of_victims =
        |table: &[Vec<f64>]| -> Vec<f64> { table.iter().map(|row| average(row)).collect() };
    let of_co_runners = |table: &[Vec<f64>]| -> Vec<f64> {
        let column =
            |at: usize| table.iter().filter_map(|row| row.get(at)).copied().collect::<Vec<_>>();
        (0..table.len()).map(|at| average(&column(at))).collect()
    };
    let (victims, others) = (of_victims(measured), of_co_runners(measured));
    let (headroom, captured) = headroom(measured, simulated, seed)?;
    Ok(PairAgreement {
        pairs: real.len(),
        measured: all,
        simulated: average(&ours),
        bias: average(&ours) - all,
        error: error(&|victim, other| simulated[victim][other]),
        rank: rank_correlation(&ours, &real),
        rank_of_victims: rank_correlation(&of_victims(simulated), &victims),
        rank_of_co_runners: rank_correlation(&of_co_runners(simulated), &others),
        error_of_mean: error(&|_, _| all),
        error_of_sums: error(&|victim, other| victims[victim] + others[other] - all),
        headroom,
        captured,
    })
}

/// Throughput of two programs on a core.
fn stp(slowdowns: &[Vec<f64>], one: usize, other: usize) -> f64 {
    1.0 / slowdowns[one][other] + 1.0 / slowdowns[other][one]
}

/// What the best pairing gains over the mean of all, and the share of it that simulated slowdowns find.
fn headroom(
    measured: &[Vec<f64>],
    simulated: &[Vec<f64>],
    seed: u64,
) -> Result<(f64, Option<f64>), GroupError> {
    let count = PAIRED.min(measured.len() / 2 * 2);
    if count < 4 {
        return Ok((0.0, None));
    }
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let (mut chosen, mut best, mut usual) = (0.0, 0.0, 0.0);
    for _ in 0..DRAWS {
        let drawn = sample(&mut random, measured.len(), count).into_vec();
        let by = |slowdowns: &[Vec<f64>]| -> Result<f64, GroupError> {
            let cost = |members: &[usize]| match members {
                [one, other] => -stp(slowdowns, drawn[*one], drawn[*other]),
                _ => 0.0,
            };
            let pairs = group(&Request::new(count, count / 2, 2), cost)?.groups;
            let real = |pair: &Vec<usize>| match pair[..] {
                [one, other] => stp(measured, drawn[one], drawn[other]),
                _ => 0.0,
            };
            Ok(pairs.iter().map(real).sum())
        };
        chosen += by(simulated)?;
        best += by(measured)?;
        let pairs = drawn.iter().enumerate().flat_map(|(at, one)| {
            drawn.iter().take(at).map(move |other| stp(measured, *one, *other))
        });
        // In all pairings each pair occurs equally often.
        usual += pairs.sum::<f64>() / (count - 1) as f64;
    }
    let gain = best - usual;
    Ok((gain / usual, (gain > 1e-9 * usual).then(|| (chosen - usual) / gain)))
}

#[cfg(test)]
mod tests {
    use rand::Rng;
    use rand::seq::SliceRandom;

    use super::*;

    fn random_table(random: &mut Pcg64Mcg) -> Vec<Vec<f64>> {
        (0..10).map(|_| (0..10).map(|_| random.random_range(1.0..2.0)).collect()).collect()
    }

    #[test]
    fn equal_slowdowns_capture_all_of_the_headroom() {
        let table = random_table(&mut Pcg64Mcg::seed_from_u64(1));
        let held = hold_against(&table, &table, 1).unwrap();
        assert_eq!((held.pairs, held.error, held.bias), (100, 0.0, 0.0));
        assert!((held.rank.unwrap() - 1.0).abs() < 1e-9);
        assert!((held.captured.unwrap() - 1.0).abs() < 1e-9);
        assert!(held.headroom > 0.05 && held.error_of_sums < held.error_of_mean);
    }

    #[test]
    fn sums_of_victim_and_co_runner_are_guessed_without_error() {
        let table: Vec<Vec<f64>> = (0..6)
            .map(|victim| (0..6).map(|other| 1.0 + f64::from(victim * 2 + other) / 10.0).collect())
            .collect();
        let one = vec![vec![1.0; 6]; 6];
        let held = hold_against(&table, &one, 1).unwrap();
        assert!(held.error_of_sums < 1e-12, "{held:?}");
        assert!((held.error - (held.measured - 1.0)).abs() < 1e-12);
        assert_eq!((held.rank, held.simulated), (None, 1.0));
    }

    #[test]
    fn co_runners_are_ranked_by_themselves() {
        let table = |co_runner: &dyn Fn(u32) -> f64| -> Vec<Vec<f64>> {
            let slowdown = |victim: u32, other: u32| {
                1.2 + f64::from(victim) / 20.0
                    + co_runner(other)
                    + f64::from(victim * other % 3) / 500.0
            };
            (0..10).map(|victim| (0..10).map(|other| slowdown(victim, other)).collect()).collect()
        };
        let measured = table(&|other| f64::from(other) / 100.0);
        let alike = hold_against(&measured, &measured, 1).unwrap();
        let ranks = [alike.rank_of_victims, alike.rank_of_co_runners];
        assert!(ranks.iter().all(|rank| *rank > Some(0.999)), "{alike:?}");
        assert!(alike.chooses_pairs(), "{alike:?}");
        let reversed =
            hold_against(&measured, &table(&|other| f64::from(9 - other) / 100.0), 1).unwrap();
        assert!(reversed.rank_of_victims > Some(0.999), "{reversed:?}");
        assert!(reversed.rank_of_co_runners < Some(-0.9), "{reversed:?}");
        assert!(
            reversed.error < reversed.error_of_mean && !reversed.chooses_pairs(),
            "{reversed:?}"
        );
    }

    /// Negative control.
    #[test]
    fn shuffled_slowdowns_capture_nothing() {
        let mut random = Pcg64Mcg::seed_from_u64(2);
        let mut captured = Vec::new();
        for seed in 0..40 {
            let table = random_table(&mut random);
            let mut cells = table.concat();
            cells.shuffle(&mut random);
            let shuffled: Vec<Vec<f64>> = cells.chunks(10).map(<[f64]>::to_vec).collect();
            captured.extend(hold_against(&table, &shuffled, seed).unwrap().captured);
        }
        let estimate = symbiont_report::stats::mean_estimate(&captured).unwrap();
        assert!(estimate.low() < Some(0.0) && estimate.high() > Some(0.0), "{estimate:?}");
    }

    #[test]
    fn pairs_are_read_by_the_names_of_columns() {
        let text = "co_runner,program,x,slowdown\nb,a,9,1.5\na,a,9,1.25\na,b,9,2\n\nb,b,9,1\n";
        let pairs = read_pairs(text, "here").unwrap();
        assert_eq!(
            (pairs.programs(), pairs.machine()),
            (&["a".to_owned(), "b".to_owned()][..], "here")
        );
        assert_eq!(pairs.slowdowns(), [[1.25, 1.5], [2.0, 1.0]]);
    }

    #[test]
    fn a_program_next_to_itself_may_be_left_out() {
        // Victims differ by 1 and co-runners by 0.2; pairs add nothing.
        let text =
            "program,co_runner,slowdown\na,b,1.2\na,c,1.4\nb,a,2.0\nb,c,2.4\nc,a,3.0\nc,b,3.2\n";
        let pairs = MeasuredPairs::read(text).unwrap();
        let slowdowns = pairs.slowdowns();
        assert_eq!((slowdowns[0][1], slowdowns[2][0]), (1.2, 3.0));
        assert!((slowdowns[1][1] - (2.2 + 2.2 - 2.2)).abs() < 1e-9, "{slowdowns:?}");
        assert!(pairs.not_next_to_themselves().eq(["a", "b", "c"]));
        let pairs = MeasuredPairs::read(&format!("{text}b,b,1.5\n")).unwrap();
        assert!(pairs.not_next_to_themselves().eq(["a", "c"]));
    }

    #[test]
    fn files_that_are_no_square_table_are_refused() {
        let refused = |text: &str| read_pairs(text, "m").unwrap_err().to_string();
        assert!(refused("").contains("no column is called 'program'"));
        assert!(
            refused("\n \n").ends_with("has to name program,co_runner,slowdown, and there is none")
        );
        let found = refused("\nprogram;co_runner;\u{1b}[2Jslowdown\na;a;1\n");
        assert!(found.ends_with("and it is 'program;co_runner;\\u{1b}[2Jslowdown'"), "{found}");
        let long = refused(&"é,".repeat(1 << 20));
        assert!(long.ends_with("é,…'") && long.chars().count() < 200, "{long}");
        assert!(refused("program,co_runner\n").contains("'slowdown'"));
        let head = "program,co_runner,slowdown\n";
        assert_eq!(refused(head), "no pair is there");
        let line = |rest: &str| refused(&format!("{head}{rest}"));
        for rest in ["a,a,0", "a,a,nan", "a,a", "a,,1", "a,a,1e308", "a,a,1e-9"] {
            assert!(line(rest).starts_with("line 2: "), "{rest}");
        }
        assert_eq!(refused(&format!("\u{feff}{head}")), "no pair is there");
        assert_eq!(line("a,b,1"), "b co-running with a is missing");
        assert_eq!(line("a,b,1\nb,a,1"), "a co-running with a is missing");
        assert!(line("a,a,1\na,a,1").contains("a co-running with a is there 2 times"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            cells in proptest::collection::vec("[abc]?,[abc]?,(1.5|-1|x|1e999|0)?(,.{0,3})?", 0..20),
        ) {
            let text = format!("program,co_runner,slowdown\n{}", cells.join("\n"));
            if let Ok(pairs) = MeasuredPairs::read(&text) {
                let slowdowns = pairs.slowdowns();
                let is_square = slowdowns.iter().all(|row| row.len() == slowdowns.len());
                proptest::prop_assert!(is_square && slowdowns.len() == pairs.programs.len());
            }
        }
    }
}
