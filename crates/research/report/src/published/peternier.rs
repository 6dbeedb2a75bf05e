//! Figures of Peternier et al. (WorkOver).

/// The paper.
pub const CITATION: &str = "Peternier et al., Improving Execution Unit Occupancy on SMT-based Processors through \
                            Hardware-aware Thread Scheduling, Future Generation Computer Systems, 2013";

/// A program of Table 1 and 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// Its name in the paper.
    pub program: &'static str,
    /// FPU usage on Bulldozer (eq. 1) and on POWER7 (eq. 2); none where a bound is printed or nothing.
    pub fpu: [Option<f64>; 2],
    /// Misses of the L2 per cycle on both, in the table's unit, which is not printed; none as above.
    pub l2: [Option<f64>; 2],
}

const fn usage(program: &'static str, fpu: [Option<f64>; 2], l2: [Option<f64>; 2]) -> Usage {
    Usage { program, fpu, l2 }
}

/// Tables 1 and 2. "< 0.01" and the like are no values.
pub const TABLES: &[Usage] = &[
    usage("perl", [Some(0.01), None], [Some(0.12), Some(0.004)]),
    usage("bzip2", [None, None], [Some(0.5), Some(0.017)]),
    usage("gcc", [Some(0.08), None], [Some(0.84), Some(0.030)]),
    usage("mcf", [None, Some(0.002)], [Some(1.62), Some(0.045)]),
    usage("gobmk", [Some(0.03), Some(0.004)], [Some(0.08), Some(0.003)]),
    usage("hmmer", [Some(0.03), None], [Some(0.07), Some(0.004)]),
    usage("h264ref", [Some(0.15), None], [Some(0.07), Some(0.003)]),
    usage("soplex", [Some(0.79), Some(0.074)], [Some(2.14), Some(0.027)]),
    usage("bwaves", [Some(0.92), Some(0.18)], [Some(0.98), Some(0.014)]),
    usage("milc", [Some(0.91), Some(0.13)], [Some(1.74), Some(0.018)]),
    usage("povray", [Some(0.72), Some(0.13)], [Some(0.01), None]),
    usage("gromacs", [Some(0.94), Some(0.42)], [Some(0.05), Some(0.003)]),
    usage("tonto", [Some(0.76), Some(0.15)], [Some(0.24), Some(0.004)]),
    usage("sphinx3", [Some(0.75), None], [Some(1.63), None]),
    usage("FFT", [Some(0.86), Some(0.43)], [None, None]),
    usage("SOR", [Some(0.99), Some(0.18)], [None, None]),
    usage("MC", [Some(0.87), Some(0.09)], [None, None]),
    usage("MM", [Some(0.99), Some(0.11)], [None, None]),
    usage("LU", [Some(0.97), Some(0.61)], [None, None]),
];

/// A gain in percent that the text of sections 5.4 to 5.7 prints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// Which programs, as in the paper.
    pub programs: &'static str,
    /// Over the suboptimal scheduling, where there is one.
    pub over_suboptimal: Option<f64>,
    /// Over the OS.
    pub over_os: Option<f64>,
    /// Change of the misses of the L2 over the suboptimal scheduling, %.
    pub misses: Option<f64>,
}

const fn gain(
    programs: &'static str,
    over_suboptimal: Option<f64>,
    over_os: Option<f64>,
    misses: Option<f64>,
) -> Gain {
    Gain { programs, over_suboptimal, over_os, misses }
}

/// Fig. 11, Bulldozer (section 5.4). Over the OS the text prints a range of both pairs alone, 6 to 10 %: its middle
/// stands for each. The misses of hmmer + povray fall by "a similar" percentage as its gain.
pub const FIGURE_11: [Gain; 2] = [
    gain("hmmer + povray", Some(14.0), Some(8.0), Some(-14.0)),
    gain("mcf + sphinx3", Some(20.0), Some(8.0), Some(0.0)),
];
/// Fig. 12a, POWER7 in SMT2 (section 5.5). Of h264ref + povray over the OS a range of both pairs and modes alone is
/// printed, 6 to 16 %: its middle stands for it in each mode.
pub const FIGURE_12A: [Gain; 2] = [
    gain("h264ref + povray", Some(47.0), Some(11.0), Some(-32.0)),
    gain("gobmk + bwaves", Some(22.0), Some(8.0), Some(0.0)),
];
/// Fig. 12b, the same in SMT4.
pub const FIGURE_12B: [Gain; 2] = [
    gain("h264ref + povray", Some(40.0), Some(11.0), Some(-40.0)),
    gain("gobmk + bwaves", Some(19.0), Some(6.0), Some(-3.0)),
];
/// Fig. 13, SciMark on Bulldozer: the suite and two kernels.
pub const FIGURE_13: [Gain; 2] =
    [gain("SciMark", None, Some(8.0), None), gain("FFT + MM", None, Some(11.0), None)];
/// Fig. 14, SciMark on POWER7 in SMT2.
pub const FIGURE_14A: [Gain; 2] =
    [gain("SciMark", None, Some(5.0), None), gain("LU + MC", None, Some(9.0), None)];
/// The same in SMT4.
pub const FIGURE_14B: [Gain; 2] =
    [gain("SciMark", None, Some(11.0), None), gain("LU + MC", None, Some(19.0), None)];
