//! Figures of J. Feliu, S. Eyerman, J. Sahuquillo, S. Petit and L. Eeckhout, "Improving IBM POWER8 Performance Through
//! Symbiotic Job Scheduling".

/// The paper, as reports cite it.
pub const CITATION: &str =
    "Feliu et al., Improving IBM POWER8 performance through symbiotic job scheduling";

/// The scheduler that chooses at random.
pub const RANDOM: &str = "random";
/// Linux.
pub const OS: &str = "OS";
/// Threads balanced by their use of the L1 cache's bandwidth.
pub const L1: &str = "L1 bandwidth";
/// The paper's scheduler.
pub const SYMBIOTIC: &str = "symbiotic";
/// The same with programs kept on their NUMA node.
pub const NUMA: &str = "symbiotic-numa";
/// The scheduler that knows the slowdowns.
pub const ORACLE: &str = "oracle";

/// Errors of a model in an SMT mode, in %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accuracy {
    /// Hardware threads of a core.
    pub smt: usize,
    /// Mean absolute error.
    pub mean_error: f64,
    /// Predictions that err by 5 % at most.
    pub within: f64,
}

/// Section 6.1, Fig. 5: the forward model.
pub const FORWARD: [Accuracy; 2] = [
    Accuracy { smt: 2, mean_error: 7.6, within: 45.0 },
    Accuracy { smt: 4, mean_error: 11.5, within: 29.0 },
];

/// Section 6.2, Fig. 6: the inverse model, of the completion stalls, the largest component.
pub const INVERSE: [Accuracy; 2] = [
    Accuracy { smt: 2, mean_error: 9.3, within: 47.0 },
    Accuracy { smt: 4, mean_error: 15.1, within: 24.0 },
];

/// Section 4.2: mean difference between ABCD and ACBD over 50 combinations of four programs, in %.
pub const HALVES: f64 = 0.9;

/// Section 5: counts of cores, and the gain of SMT8 over SMT4 on them, in %.
pub const SMT8_OVER_SMT4: [(usize, f64); 2] = [(4, 0.9), (10, -7.8)];

/// What the text states of one scheduler over another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statement {
    /// Hardware threads of a core.
    pub smt: usize,
    /// The fewest and the most cores of the workloads that it is a mean over.
    pub cores: (usize, usize),
    /// The scheduler.
    pub own: &'static str,
    /// The one that it is compared with.
    pub other: &'static str,
    /// How much more of the figure it has, in %.
    pub percent: f64,
}

impl Statement {
    /// Which schedulers it is of, and where.
    #[must_use]
    pub fn place(&self) -> String {
        let Self { smt, cores: (from, to), own, other, .. } = self;
        let cores = if from == to { from.to_string() } else { format!("{from} to {to}") };
        format!("{own} over {other}, SMT{smt}, {cores} cores")
    }
}

const fn statement(
    smt: usize,
    from: usize,
    to: usize,
    own: &'static str,
    other: &'static str,
    percent: f64,
) -> Statement {
    Statement { smt, cores: (from, to), own, other, percent }
}

/// STP: section 6.3; of all counts of cores and the most, section 1 and the abstract.
pub const STP: &[Statement] = &[
    statement(2, 4, 10, SYMBIOTIC, RANDOM, 8.9),
    statement(2, 4, 10, SYMBIOTIC, OS, 4.0),
    statement(2, 4, 10, SYMBIOTIC, L1, 3.4),
    statement(2, 4, 10, ORACLE, SYMBIOTIC, 1.2),
    statement(2, 9, 9, ORACLE, SYMBIOTIC, 2.5),
    statement(2, 7, 7, SYMBIOTIC, RANDOM, 13.1),
    statement(2, 7, 7, SYMBIOTIC, OS, 7.4),
    statement(2, 4, 10, NUMA, RANDOM, 9.9),
    statement(2, 4, 10, NUMA, OS, 5.2),
    statement(2, 6, 6, NUMA, OS, 11.0),
    statement(4, 4, 10, NUMA, RANDOM, 12.4),
    statement(4, 4, 10, NUMA, OS, 5.1),
    statement(2, 6, 10, NUMA, RANDOM, 13.5),
    statement(2, 6, 10, NUMA, OS, 6.7),
    statement(2, 6, 10, NUMA, L1, 5.9),
    statement(2, 6, 10, NUMA, SYMBIOTIC, 1.3),
    statement(4, 6, 10, NUMA, RANDOM, 16.2),
    statement(4, 6, 10, NUMA, OS, 5.9),
    statement(4, 6, 10, NUMA, SYMBIOTIC, 5.3),
];

/// ANTT: section 6.4.
pub const ANTT: &[Statement] = &[
    statement(2, 6, 8, NUMA, OS, -8.6),
    statement(4, 10, 10, NUMA, RANDOM, -14.7),
    statement(4, 9, 9, NUMA, OS, -3.7),
    statement(4, 10, 10, NUMA, OS, -6.6),
];
