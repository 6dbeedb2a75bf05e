//! Tables 1 and 2 and headline figures of M. Navarro, L. Pons and
//! J. Sahuquillo, "Hy-Sched: A Simple Hyperthreading-Aware Thread to Core
//! Allocation Strategy".
//!
//! Remarks on the print. The abstract and the conclusions say that the gain over
//! Linux is 15 % on average, section 6.1 says 14 % for TopB2M3L. Fig. 2 is a chart
//! without numbers. Section 4.1 says that mix2-c outperforms Linux by 4.6 %, which is 2.817 over 2.694, Linux's STP of
//! mix2-s in Table 1; over that of mix2-c it is 2.2 %. So which of both orders Linux ran faster in is not certain. In the text, TopB2M3L has nine categories, of which eight are
//! named. Table 2's rows and columns sum to 100.03 % and 100.03 %.

use super::Headline;

/// The paper, as reports cite it.
pub const CITATION: &str = "Navarro et al., Hy-Sched";

/// What the figures were measured on and how (section 6).
pub const CONDITIONS: &str = "Intel Xeon E5-2620 v4 (8 cores, SMT2, 2.2 GHz), Ubuntu 16.04; mixes \
     of 8 programs of SPEC CPU2006 and CPU2017; targets of 60 s alone; quanta of 500 ms; 25 events \
     multiplexed";

/// A mix of Table 1: which programs are pinned to which core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// Its name; `c` combined, `s` same.
    pub name: &'static str,
    /// The programs of each core.
    pub cores: [[&'static str; 2]; 2],
    /// STP when pinned.
    pub pinned: f64,
    /// STP under Linux.
    pub linux: f64,
}

/// Table 1: STP of two copies of two programs on two cores.
pub const TABLE_1: &[Mix] = &[
    combined("mix1-c", "mcf", "calculix", 2.836, 2.670),
    same("mix1-s", "mcf", "calculix", 2.628, 2.825),
    combined("mix2-c", "cam4_r", "hmmer", 2.817, 2.757),
    same("mix2-s", "cam4_r", "hmmer", 2.574, 2.694),
    combined("mix3-c", "imagick_r", "calculix", 2.676, 2.566),
    same("mix3-s", "imagick_r", "calculix", 2.460, 2.627),
];

const fn combined(
    name: &'static str,
    one: &'static str,
    other: &'static str,
    pinned: f64,
    linux: f64,
) -> Mix {
    Mix { name, cores: [[one, other], [one, other]], pinned, linux }
}

const fn same(
    name: &'static str,
    one: &'static str,
    other: &'static str,
    pinned: f64,
    linux: f64,
) -> Mix {
    Mix { name, cores: [[one, one], [other, other]], pinned, linux }
}

/// Table 2: pairs made in wk10 under TopB2M3L, by the categories of both, in %.
pub const TABLE_2: &[(&str, &str, f64)] = &[
    ("retiring", "ext. memory", 2.70),
    ("retiring", "L1", 1.35),
    ("retiring", "stores", 0.68),
    ("retiring", "core", 4.05),
    ("retiring", "retiring", 0.0),
    ("core", "ext. memory", 21.62),
    ("core", "L1", 10.81),
    ("core", "stores", 0.68),
    ("core", "core", 29.75),
    ("stores", "ext. memory", 0.0),
    ("stores", "L1", 0.68),
    ("stores", "stores", 0.0),
    ("L1", "ext. memory", 17.57),
    ("L1", "L1", 0.68),
    ("ext. memory", "ext. memory", 9.46),
];

/// Mean gain of TopB2M3L over Linux.
pub const GAIN: Headline = Headline {
    what: "mean gain in STP of TopB2M3L over Linux",
    value: 14.0,
    unit: "%",
    place: "section 6.1",
};

/// Mean gain of the L1-aware baseline.
pub const L1_GAIN: Headline = Headline {
    what: "mean gain in STP of L1-aware over Linux: half of TopB2M3L's",
    value: 7.0,
    unit: "%",
    place: "section 6.1",
};

/// Category changes of the finest variants.
pub const CHANGES: Headline = Headline {
    what: "quanta in which a thread's category changes, with nine categories or more",
    value: 40.0,
    unit: "%",
    place: "section 6.1",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_statements_follow_from_the_cells() {
        // "in all cases Static performs worse when two instances of the same
        // application are pinned to the same core"
        for pair in TABLE_1.chunks(2) {
            assert!(pair[0].pinned > pair[1].pinned, "{pair:?}");
            assert!(pair[0].pinned > pair[0].linux && pair[0].pinned > pair[1].linux, "{pair:?}");
        }
        // "Retiring behavior is shown by only one application in 8.78 %"
        let retiring = TABLE_2.iter().filter(|(one, ..)| *one == "retiring").map(|(.., p)| p);
        assert!((retiring.sum::<f64>() - 8.78).abs() < 0.005);
        assert!((TABLE_2.iter().map(|(.., p)| p).sum::<f64>() - 100.0).abs() < 0.05);
    }
}
