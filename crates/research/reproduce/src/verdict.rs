//! Do our values and the published ones point the same way, and how large is our effect?

use std::collections::BTreeMap;

use symbiont_report::stats::{Estimate, Interval};

use super::figure::{Control, Figure, Paper, Point};

/// An effect whose whole interval is below this part of another one is none next to it: simulated runs are
/// so much alike that intervals of effects of a millionth do not hold 0.
const NOTHING: f64 = 0.05;

/// A published change of less than so many of its own standard errors has no certain direction.
const CERTAIN: f64 = 2.0;

/// How a point of ours stands to the published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Both lie on the same side of the neutral value, the negative controls gain nothing, and ours more than they.
    Agrees,
    /// They lie on different sides.
    Contradicts,
    /// The interval of ours holds the neutral value.
    Undecided,
    /// The whole interval of ours is next to the neutral value: less than a twentieth of the published
    /// effect, either way.
    NoEffect,
    /// The paper prints how its runs spread, and by that the published value may lie on either side of the neutral one.
    Uncertain,
    /// Both lie on the same side, but a negative control gains, too, or it is not certain that ours gains more: what is
    /// gained there is not due to what the paper says.
    ControlGains,
}

impl Verdict {
    /// None where nothing was published, where the published value is the neutral one, where values
    /// have no direction or one that is known beforehand, and where ours has no interval.
    #[must_use]
    pub fn of(point: &Point, neutral: Option<f64>) -> Option<Self> {
        let neutral = neutral.filter(|_| !point.foregone)?;
        let published = point.published.filter(|published| *published != neutral)?;
        let ours = point.ours?;
        let interval = ours.interval?;
        let error = point.published_error.unwrap_or(0.0);
        if (published - neutral).abs() < CERTAIN * error {
            return Some(Self::Uncertain);
        }
        let above = published > neutral;
        let least = NOTHING * (published - neutral).abs();
        if [interval.low, interval.high].iter().all(|end| (end - neutral).abs() < least) {
            return Some(Self::NoEffect);
        }
        let same = match interval {
            it if it.low > neutral => above,
            it if it.high < neutral => !above,
            _ => return Some(Self::Undecided),
        };
        let gains = |control: &Control| gains(control, (ours.value - neutral, neutral));
        let is_as_good = |control: &Control| !gains_more(&ours, control, ours.value - neutral);
        Some(match same {
            false => Self::Contradicts,
            true if point.controls.iter().any(|one| gains(one) || is_as_good(one)) => {
                Self::ControlGains
            }
            true => Self::Agrees,
        })
    }

    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Contradicts => "contradicts",
            Self::Undecided => "undecided",
            Self::NoEffect => "no effect",
            Self::ControlGains => "undecided: its control gains, too",
            Self::Uncertain => "uncertain in the paper",
        }
    }
}

/// Does a control gain, too, where what it is the control of has this effect? Without an interval it is not
/// known that it does not.
fn gains(control: &Control, (effect, neutral): (f64, f64)) -> bool {
    let Some(Interval { low, high }) = control.ours.interval else { return true };
    let [low, high] = [low, high].map(|end| (end - neutral) * effect.signum());
    low.min(high) > 0.0 && low.max(high) > NOTHING * effect.abs()
}

/// Is it certain that ours, which lies on this side of the neutral value, goes further than its control? Errors of
/// both are taken for independent: that of the difference is the root of the sum of their squares.
fn gains_more(ours: &Estimate, control: &Control, side: f64) -> bool {
    let (Some(of_ours), Some(of_control)) = (ours.interval, control.ours.interval) else {
        return false;
    };
    let [nearer, further] = match side > 0.0 {
        true => [ours.value - of_ours.low, of_control.high - control.ours.value],
        false => [of_ours.high - ours.value, control.ours.value - of_control.low],
    };
    (ours.value - control.ours.value) * side.signum() > nearer.hypot(further)
}

/// The effect of ours in parts of the published one, with its interval: 1 is as much, 0 none, below 0 the
/// other way. An effect is what differs from the neutral value, or from 0.
#[must_use]
pub fn magnitude(point: &Point, neutral: Option<f64>) -> Option<Estimate> {
    let neutral = neutral.unwrap_or(0.0);
    let published = point.published.filter(|published| *published != neutral)? - neutral;
    let part = |value: f64| (value - neutral) / published;
    let ours = point.ours?;
    let interval = ours.interval.map(|it| {
        let [one, other] = [it.low, it.high].map(part);
        Interval { low: one.min(other), high: one.max(other) }
    });
    Some(Estimate { value: part(ours.value), interval, ..ours })
}

/// How a figure stands to the published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Overall {
    /// Points agree, and none contradicts.
    Agrees,
    /// Some agree, some contradict.
    Mixed,
    /// Points contradict, and none agrees.
    Contradicts,
    /// None does either.
    Undecided,
}

impl Overall {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Agrees, Self::Mixed, Self::Contradicts, Self::Undecided];

    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Mixed => "mixed",
            Self::Contradicts => "contradicts",
            Self::Undecided => "undecided",
        }
    }
}

/// How many points agree, contradict and are undecided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// On the same side.
    pub agree: usize,
    /// On different sides.
    pub contradict: usize,
    /// The interval holds the neutral value.
    pub undecided: usize,
    /// Next to nothing is gained or lost.
    pub no_effect: usize,
    /// Those of which a control gains, too.
    pub control_gains: usize,
    /// Those of which the published value has no certain direction.
    pub uncertain: usize,
}

impl Tally {
    /// Of a figure's points.
    #[must_use]
    pub fn of(figure: &Figure, points: &[Point]) -> Self {
        let mut tally = Self::default();
        for verdict in points.iter().filter_map(|point| Verdict::of(point, figure.neutral)) {
            *match verdict {
                Verdict::Agrees => &mut tally.agree,
                Verdict::Contradicts => &mut tally.contradict,
                Verdict::Undecided => &mut tally.undecided,
                Verdict::NoEffect => &mut tally.no_effect,
                Verdict::ControlGains => &mut tally.control_gains,
                Verdict::Uncertain => &mut tally.uncertain,
            } += 1;
        }
        tally
    }

    /// The figure's verdict; none where nothing is judged.
    #[must_use]
    pub fn verdict(self) -> Option<Overall> {
        let open = self.undecided + self.no_effect + self.control_gains + self.uncertain;
        match (self.agree, self.contradict, open) {
            (0, 0, 0) => None,
            (0, 0, _) => Some(Overall::Undecided),
            (_, 0, _) => Some(Overall::Agrees),
            (0, _, _) => Some(Overall::Contradicts),
            _ => Some(Overall::Mixed),
        }
    }

    fn add(&mut self, other: Self) {
        self.agree += other.agree;
        self.contradict += other.contradict;
        self.undecided += other.undecided;
        self.no_effect += other.no_effect;
        self.control_gains += other.control_gains;
        self.uncertain += other.uncertain;
    }
}

/// How a paper's figures stand to ours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Score {
    /// Figures by verdict.
    pub figures: BTreeMap<Overall, usize>,
    /// Values of all of them.
    pub values: Tally,
}

/// By paper; those of which nothing is judged are left out.
#[must_use]
pub fn scores(figures: &[(&'static Figure, Vec<Point>)]) -> BTreeMap<Paper, Score> {
    let mut scores = BTreeMap::<Paper, Score>::new();
    for (figure, points) in figures {
        let tally = Tally::of(figure, points);
        if let Some(verdict) = tally.verdict() {
            let score = scores.entry(figure.paper).or_default();
            *score.figures.entry(verdict).or_default() += 1;
            score.values.add(tally);
        }
    }
    scores
}
