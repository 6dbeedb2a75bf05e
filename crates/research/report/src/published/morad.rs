//! Tables 4, 5 and 7 and headline figures of T. Y. Morad, A. Kolodny and
//! U. C. Weiser, "Multiple Multithreaded Applications on Asymmetric and
//! Symmetric Chip MultiProcessors", CCIT Report 701, Technion, August 2008.
//!
//! Two remarks on the print. The abstract speaks of throughput gains "as much
//! as 16 %" and the conclusions of "more than 16 %"; the largest cell of Table 4
//! is 18 % ((1:8) co-running with (1:4)). Table 5's jitter is stated to be multiplied by
//! 1000; Table 7 does not say whether its is. Fig. 8 (the symmetric
//! counterpart of Table 4) is a contour plot without numbers.

use super::{Headline, PairTable};

/// The paper, as reports cite it.
pub const CITATION: &str = "Morad et al., CCIT Report 701, 2008";

/// What the figures were measured on and how (sections 3 and 6).
pub const CONDITIONS: &str = "four dual-core 2.66 GHz Xeon, 8 cores without SMT, 8 GB, Linux \
     2.6.18 with the scheduler extended; asymmetric (a = 2) by halving the duty cycle of seven \
     cores; synthetic benchmarks run for 60 s, SPEC OMP2001 (medium) to the end";

/// Names of the paper's two machines.
pub const SYMMETRIC: &str = "symmetric";
/// Seven cores half as fast as the eighth (a = 2).
pub const ASYMMETRIC: &str = "asymmetric";

/// Which of them has such a large core; none where the paper has no figures.
#[must_use]
pub fn kind(large: Option<f64>) -> Option<&'static str> {
    match large? {
        1.0 => Some(SYMMETRIC),
        2.0 => Some(ASYMMETRIC),
        _ => None,
    }
}

/// Table 4: throughput of two synthetic benchmarks, proposed over baseline, on
/// the asymmetric machine (a = 2).
pub const TABLE_4: PairTable = PairTable {
    place: "Table 4",
    what: "gain in throughput of two synthetic benchmarks, asymmetric (a = 2)",
    programs: &["∞:1", "8:1", "4:1", "2:1", "1:1", "1:2", "1:4", "1:8", "1:∞"],
    cells: &[
        &[1],
        &[-1, 1],
        &[-1, 1, 1],
        &[0, -1, 4, 4],
        &[-2, 1, 3, 4, 7],
        &[0, 1, 3, 5, 8, 7],
        &[-2, 2, 0, 6, 9, 11, 8],
        &[-2, 1, 3, 8, 7, 15, 18, 3],
        &[-2, 2, 3, 6, 12, 16, 17, 10, 12],
    ],
    averages: &[-1, 1, 2, 4, 5, 7, 8, 7, 8],
    average: 4.5,
};

/// Fairness and jitter of one machine, as printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Mean fairness (eq. 4), in %; in the row of improvements, its change.
    pub fairness: f64,
    /// Mean jitter (eq. 6) times the table's scale; in the row of
    /// improvements, its reduction in %.
    pub jitter: f64,
}

/// A row of Table 5 or 7.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// On the symmetric machine.
    pub symmetric: Outcome,
    /// On the asymmetric machine.
    pub asymmetric: Outcome,
}

/// Table 5 or 7.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FairnessAndJitter {
    /// Where it is printed.
    pub place: &'static str,
    /// Of which programs.
    pub programs: &'static str,
    /// What jitter is multiplied by; absent where the paper does not say.
    pub jitter_scale: Option<f64>,
    /// Linux 2.6.18.
    pub baseline: Row,
    /// The proposed scheduler.
    pub proposed: Row,
    /// The change from baseline to proposed, in %.
    pub improvement: Row,
}

const fn row(symmetric: (f64, f64), asymmetric: (f64, f64)) -> Row {
    Row {
        symmetric: Outcome { fairness: symmetric.0, jitter: symmetric.1 },
        asymmetric: Outcome { fairness: asymmetric.0, jitter: asymmetric.1 },
    }
}

/// Runs of each pair, of which a mean is printed: as many as the paper prints of its synthetic benchmarks, of which
/// each configuration of Figs 6 and 7 was run 50 times. Of Tables 4 to 6 it prints no number (the 5 of Table 7 are of
/// SPEC OMP2001).
pub const RUNS: usize = 50;

impl FairnessAndJitter {
    /// Standard error of the change from baseline to proposed that is printed of the mean throughput of so many
    /// pairs, in %: jitter is the standard deviation of what a run takes, in parts of its mean ([`RUNS`] of each pair).
    /// None where the paper does not say what its jitter is multiplied by.
    #[must_use]
    pub fn error_of_change(&self, machine: impl Fn(Row) -> Outcome, pairs: usize) -> Option<f64> {
        let scale = self.jitter_scale?;
        let [baseline, proposed] =
            [self.baseline, self.proposed].map(|row| machine(row).jitter / scale);
        Some(100.0 * baseline.hypot(proposed) / ((RUNS * pairs) as f64).sqrt())
    }
}

/// Table 5: synthetic benchmarks.
pub const TABLE_5: FairnessAndJitter = FairnessAndJitter {
    place: "Table 5",
    programs: "synthetic benchmarks",
    jitter_scale: Some(1000.0),
    baseline: row((75.9, 9.07), (87.5, 38.74)),
    proposed: row((90.7, 3.66), (88.7, 25.12)),
    improvement: row((19.5, 59.7), (1.4, 35.1)),
};

/// Table 7: SPEC OMP2001; jitter of 5 runs of equake co-running with art.
pub const TABLE_7: FairnessAndJitter = FairnessAndJitter {
    place: "Table 7",
    programs: "SPEC OMP2001",
    jitter_scale: None,
    baseline: row((79.6, 1.13), (49.3, 1.90)),
    proposed: row((78.5, 0.13), (62.1, 0.94)),
    improvement: row((-1.4, 88.1), (25.9, 50.5)),
};

/// Figures that the text states.
pub const HEADLINES: &[Headline] = &[
    percent("largest gain in throughput", 16.0, "abstract"),
    percent("largest gain in fairness", 26.0, "abstract"),
    percent("largest reduction of jitter", 88.0, "abstract"),
    percent("idle time, synthetic, symmetric, baseline", 20.0, "section 7"),
    percent("idle time, synthetic, symmetric, proposed", 17.2, "section 7"),
    percent("idle time, synthetic, asymmetric, baseline", 25.6, "section 7"),
    percent("idle time, synthetic, asymmetric, proposed", 22.8, "section 7"),
    percent("mean gain in throughput, synthetic, symmetric", 3.0, "section 7"),
    percent("mean gain in throughput, synthetic, asymmetric", 4.5, "section 7"),
    percent("mean speedup, SPEC OMP2001, symmetric", 1.5, "section 7"),
    percent("mean speedup, SPEC OMP2001, asymmetric", 3.5, "section 7"),
];

/// The value of a headline.
#[must_use]
pub fn headline(what: &str) -> Option<f64> {
    HEADLINES.iter().find(|headline| headline.what == what).map(|headline| headline.value)
}

const fn percent(what: &'static str, value: f64, place: &'static str) -> Headline {
    Headline { what, value, unit: "%", place }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_averages_follow_from_the_cells() {
        let table = TABLE_4;
        let n = table.programs.len();
        assert_eq!((table.cells.len(), table.averages.len()), (n, n));
        for (i, row) in table.cells.iter().enumerate() {
            assert_eq!(row.len(), i + 1, "row {i}");
            let name = table.programs[i];
            let pairs = table.programs.iter().map(|p| table.percent(name, p).unwrap());
            let average = pairs.sum::<f64>() / n as f64;
            let printed = f64::from(table.averages[i]);
            // Cells are rounded to ± 0.5, and so is the average.
            assert!((average - printed).abs() <= 1.0, "{name} {average}");
        }
        let all: Vec<f64> =
            table.cells.iter().flat_map(|r| r.iter().copied()).map(f64::from).collect();
        let average = all.iter().sum::<f64>() / all.len() as f64;
        assert!((average - table.average).abs() <= 0.55, "{average}");
    }

    #[test]
    fn printed_improvements_follow_from_the_cells() {
        for table in [TABLE_5, TABLE_7] {
            for of in [|row: Row| row.symmetric, |row: Row| row.asymmetric] {
                let [base, new, better] =
                    [table.baseline, table.proposed, table.improvement].map(of);
                let fairness = 100.0 * (new.fairness / base.fairness - 1.0);
                let jitter = 100.0 * (1.0 - new.jitter / base.jitter);
                assert!((fairness - better.fairness).abs() <= 0.15, "{}", table.place);
                assert!((jitter - better.jitter).abs() <= 0.5, "{}: {jitter}", table.place);
            }
        }
    }

    #[test]
    fn a_change_is_as_uncertain_as_the_printed_jitter_makes_it() {
        let of = |pairs| TABLE_5.error_of_change(|row| row.asymmetric, pairs).unwrap();
        // √(38.74² + 25.12²) thousandths over √50, in %.
        assert!((of(1) - 0.653).abs() < 0.001, "{}", of(1));
        assert!((of(1) / of(45) - 45_f64.sqrt()).abs() < 1e-9);
        let symmetric = TABLE_5.error_of_change(|row| row.symmetric, 1).unwrap();
        assert!((symmetric - 0.138).abs() < 0.001, "{symmetric}");
        assert_eq!(TABLE_7.error_of_change(|row| row.symmetric, 1), None, "of unknown scale");
    }

    #[test]
    fn pairs_are_found_in_either_order() {
        assert_eq!(TABLE_4.percent("1:8", "1:4"), Some(18.0));
        assert_eq!(TABLE_4.percent("1:4", "1:8"), Some(18.0));
        assert_eq!(TABLE_4.percent("1:∞", "1:∞"), Some(12.0));
        assert_eq!(TABLE_4.percent("1:∞", "1:3"), None);
        let speedup = TABLE_4.speedup("∞:1", "1:∞").unwrap();
        assert_eq!((speedup.value, speedup.interval), (0.98, None));
    }
}
