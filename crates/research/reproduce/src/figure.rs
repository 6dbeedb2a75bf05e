//! Figures as data, and the points that they are drawn from.

use serde::{Deserialize, Serialize};

use symbiont_report::published;
use symbiont_report::stats::Estimate;

/// A paper whose figures are reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Paper {
    /// Feliu et al., symbiotic scheduling on POWER8.
    Feliu = 0,
    /// Peternier et al., WorkOver.
    Peternier = 1,
    /// Morad et al., serial phases first.
    Morad = 2,
    /// Navarro et al., Hy-Sched.
    Navarro = 3,
    /// Settle et al., cache activity vectors.
    Settle = 4,
    /// Ours: what no paper has.
    Symbiont = 5,
}

impl Paper {
    /// All papers, and what is ours.
    pub const ALL: [Self; 6] =
        [Self::Feliu, Self::Peternier, Self::Morad, Self::Navarro, Self::Settle, Self::Symbiont];

    /// The paper of this name, or of its number.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|paper| [paper.name(), paper.number()].contains(&name))
    }

    /// Its number in lists that programs read.
    #[must_use]
    pub fn number(self) -> &'static str {
        match self {
            Self::Feliu => "0",
            Self::Peternier => "1",
            Self::Morad => "2",
            Self::Navarro => "3",
            Self::Settle => "4",
            Self::Symbiont => "5",
        }
    }

    /// As reports cite it.
    #[must_use]
    pub fn citation(self) -> &'static str {
        match self {
            Self::Feliu => published::feliu::CITATION,
            Self::Peternier => published::peternier::CITATION,
            Self::Morad => published::morad::CITATION,
            Self::Navarro => published::navarro::CITATION,
            Self::Settle => published::settle::CITATION,
            Self::Symbiont => "Symbiont, ours, not published",
        }
    }

    /// Its first author, as ids of its figures begin; of what is ours, symbiont.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Feliu => "feliu",
            Self::Peternier => "peternier",
            Self::Morad => "morad",
            Self::Navarro => "navarro",
            Self::Settle => "settle",
            Self::Symbiont => "symbiont",
        }
    }
}

/// How a figure is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawing {
    /// Lines over a quantity, which the points have as `x`.
    Lines {
        /// The quantity.
        x: &'static str,
    },
    /// A matrix of rows (series) and columns (places).
    Matrix {
        /// What rows are.
        row: &'static str,
        /// What columns are.
        column: &'static str,
    },
    /// Dots with intervals for each place.
    Dots,
    /// A table alone.
    Table,
}

/// A table or figure of a paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// What users call it: paper, kind, number.
    pub id: &'static str,
    /// The paper.
    pub paper: Paper,
    /// Where in it.
    pub place: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What the values are.
    pub quantity: &'static str,
    /// Their unit; none for ratios.
    pub unit: Option<&'static str>,
    /// The value at which nothing is gained or lost; none where values have no direction.
    pub neutral: Option<f64>,
    /// How it is drawn.
    pub drawn: Drawing,
    /// How ours was made differently.
    pub deviations: &'static [&'static str],
}

/// What the same comparison gives where nothing may come of it: without the signal, or without what
/// programs contend for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// What was taken away.
    pub without: String,
    /// What came out, in the unit of its point.
    pub ours: Estimate,
}

/// A value of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// What it is of: a contender, a row.
    pub series: String,
    /// Where: a workload, a column, a count of cores.
    pub at: String,
    /// The same as a number, where it is one.
    pub x: Option<f64>,
    /// What came out; none where nothing did.
    pub ours: Option<Estimate>,
    /// What was published; none where nothing was.
    pub published: Option<f64>,
    /// Standard error of that; none where the paper does not print how its runs spread.
    pub published_error: Option<f64>,
    /// Its negative controls.
    pub controls: Vec<Control>,
    /// Is its direction known beforehand, as that of what knows everything over a policy? It is not judged then.
    pub foregone: bool,
}

impl Point {
    /// Of ours alone.
    #[must_use]
    pub fn new(series: impl Into<String>, at: impl Into<String>, ours: Estimate) -> Self {
        let (series, at) = (series.into(), at.into());
        let ours = Some(ours);
        let (published, published_error) = (None, None);
        let (controls, foregone) = (Vec::new(), false);
        Self { series, at, x: None, ours, published, published_error, controls, foregone }
    }

    /// The same, with what was published.
    #[must_use]
    pub fn published(self, published: Option<f64>) -> Self {
        Self { published, ..self }
    }

    /// The same, with the standard error of what was published, if anything was.
    #[must_use]
    pub fn published_error(self, error: Option<f64>) -> Self {
        Self { published_error: self.published.and(error), ..self }
    }

    /// The same, with a negative control; none: it was not run.
    #[must_use]
    pub fn control(mut self, without: &str, ours: Option<Estimate>) -> Self {
        self.controls.extend(ours.map(|ours| Control { without: without.to_owned(), ours }));
        self
    }

    /// The same; its direction may be known beforehand.
    #[must_use]
    pub fn foregone(self, foregone: bool) -> Self {
        Self { foregone, ..self }
    }

    /// The same, at this place of the horizontal axis.
    #[must_use]
    pub fn x(self, x: f64) -> Self {
        Self { x: Some(x), ..self }
    }
}
