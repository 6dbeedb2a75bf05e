//! Figures of Settle et al. (cache activity vectors).

/// The paper.
pub const CITATION: &str =
    "Settle et al., Architectural Support for Enhanced SMT Job Scheduling, PACT 2004";

/// Vectors, in the order of Tables 1 and 2.
pub const VECTORS: [&str; 6] =
    ["D-cache use", "D-cache miss", "I-cache use", "I-cache miss", "L2-cache use", "L2-cache miss"];

/// Table 1: average slope of IPC over intersecting bits, and average r², by vector.
pub const SLOPES: [(f64, f64); 6] = [
    (0.109, 0.326),
    (-0.023, 0.142),
    (0.085, 0.395),
    (0.007, 0.177),
    (-0.022, 0.143),
    (-0.151, 0.331),
];

/// Section 2.3, of 45 pairs: those with strong and with weak positive correlation, and the rest.
pub const CORRELATIONS: [(&str, f64); 3] =
    [("strong positive", 16.0), ("weak positive", 17.0), ("negative or none", 12.0)];

/// Table 2: predictability of the bits, %, by vector.
pub const PREDICTABLE: [f64; 6] = [82.3, 93.6, 94.9, 90.3, 93.8, 94.6];

/// Section 2.1: share of misses of the L2 that are conflicts between threads, %, on average a bound from
/// below; and of gzip co-running with gzip the miss rate and that share.
pub const CONFLICTS: (f64, f64, f64) = (30.0, 34.0, 25.0);

/// Table 4: programs, reduction of kick-outs between threads (%), gain in IPC (%).
pub const MIXES: [([&str; 4], f64, f64); 15] = [
    (["gzip", "gzip", "mcf", "equake"], 54.0, 3.6),
    (["gzip", "gzip", "ammp", "twolf"], 10.5, 4.5),
    (["gzip", "mesa", "mcf", "equake"], 39.5, 3.0),
    (["gzip", "mesa", "equake", "equake"], 47.0, 2.4),
    (["gzip", "parser", "perlbmk", "twolf"], -9.2, 1.4),
    (["mesa", "mesa", "parser", "twolf"], 10.3, 4.8),
    (["mesa", "mcf", "perlbmk", "bzip2"], -4.1, 3.7),
    (["mesa", "ammp", "perlbmk", "twolf"], -6.3, 3.0),
    (["mesa", "parser", "parser", "twolf"], -0.7, 4.0),
    (["mcf", "mcf", "bzip2", "bzip2"], -3.3, 5.4),
    (["mcf", "equake", "perlbmk", "twolf"], 1.7, 3.0),
    (["mcf", "perlbmk", "perlbmk", "bzip2"], 13.0, 12.1),
    (["ammp", "ammp", "parser", "parser"], -2.7, 3.0),
    (["ammp", "twolf", "twolf", "twolf"], 1.9, 6.1),
    (["parser", "parser", "perlbmk", "bzip2"], 1.3, 5.7),
];

/// Means of Table 4: reduction of kick-outs, gain in IPC, %.
pub const MEAN: (f64, f64) = (10.2, 4.4);

/// Table 5: workloads of eight programs.
pub const WORKLOADS: [[&str; 8]; 6] = [
    ["gzip", "vpr", "gcc", "mesa", "art", "mcf", "equake", "crafty"],
    ["parser", "gap", "vortex", "bzip2", "vpr", "mesa", "crafty", "mcf"],
    ["mesa", "twolf", "vortex", "gzip", "gcc", "art", "crafty", "vpr"],
    ["gzip", "twolf", "vpr", "bzip2", "gcc", "gap", "mesa", "parser"],
    ["equake", "crafty", "mcf", "parser", "art", "gap", "mesa", "vortex"],
    ["twolf", "bzip2", "vortex", "gap", "parser", "crafty", "equake", "mcf"],
];

/// Fig. 7 and section 4.3.4: invocations that trigger the activity scheduler, %, on average a bound from below.
pub const OPPORTUNITY: f64 = 45.0;
/// Fig. 8 and section 5.2: poor decisions of the default scheduler, the middle of 30 to 40 %.
pub const BAD_DECISIONS: f64 = 35.0;
/// Fig. 9 and section 5.2: poor decisions with at least one better job in the pool, and with two, %.
pub const BETTER_CHOICES: (f64, f64) = (85.0, 10.0);
/// Fig. 11 and section 5.2: delay of the job that is delayed most, %, on average.
pub const LATE: f64 = 12.0;
