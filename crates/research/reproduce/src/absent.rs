//! Tables and figures that are not reproduced, and why.

use super::figure::Paper;

/// A table or figure of a paper that nothing is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absent {
    /// What it would be called.
    pub id: &'static str,
    /// The paper.
    pub paper: Paper,
    /// Where in it.
    pub place: &'static str,
    /// Why it is not reproduced.
    pub why: &'static str,
}

const fn absent(id: &'static str, paper: Paper, place: &'static str, why: &'static str) -> Absent {
    Absent { id, paper, place, why }
}

const INPUT: &str = "an input: the simulated POWER8 is described by these values, so that it would \
                     only give them back (`symbiont machines power8-s812l --memory`)";
const INPUT_OF_XSIM: &str =
    "an input: the simulated machine is described by it (`symbiont machines xsim`)";
const DRAWING: &str = "a drawing, no result";
const EQUATION: &str =
    "equations, no measurements; morad-fig6 and morad-fig7 hold ours against them";

/// All of them.
pub const ABSENT: &[Absent] = &[
    absent("feliu-fig1", Paper::Feliu, "Fig. 1", DRAWING),
    absent("feliu-fig2", Paper::Feliu, "Fig. 2", DRAWING),
    absent("feliu-tab1", Paper::Feliu, "Table 1", "a list of events, no result"),
    absent("feliu-fig3", Paper::Feliu, "Fig. 3", DRAWING),
    absent("feliu-fig4", Paper::Feliu, "Fig. 4", INPUT),
    absent("feliu-tab2", Paper::Feliu, "Table 2", INPUT),
    absent("morad-fig1", Paper::Morad, "Fig. 1 to 5", DRAWING),
    absent("morad-tab1", Paper::Morad, "Tables 1 to 3", EQUATION),
    absent("peternier-fig1", Paper::Peternier, "Fig. 1 to 5", DRAWING),
    absent("settle-tab3", Paper::Settle, "Table 3", INPUT_OF_XSIM),
    absent("settle-fig4", Paper::Settle, "Fig. 4 to 6", DRAWING),
];
