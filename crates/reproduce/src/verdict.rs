//! Do ours and the published values point the same way?

use super::figure::{Figure, Point};

/// How a point of ours stands to the published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Both lie on the same side of the neutral value.
    Agrees,
    /// They lie on different sides.
    Contradicts,
    /// The interval of ours holds the neutral value, or there is none.
    Undecided,
}

impl Verdict {
    /// None where nothing was published, where the published value is the neutral one, and where values
    /// have no direction.
    #[must_use]
    pub fn of(point: &Point, neutral: Option<f64>) -> Option<Self> {
        let neutral = neutral?;
        let published = point.published.filter(|published| *published != neutral)?;
        let interval = point.ours.and_then(|ours| ours.interval);
        let above = published > neutral;
        Some(match interval {
            Some(it) if it.low > neutral => Self::side(above),
            Some(it) if it.high < neutral => Self::side(!above),
            _ => Self::Undecided,
        })
    }

    fn side(same: bool) -> Self {
        if same { Self::Agrees } else { Self::Contradicts }
    }

    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Contradicts => "contradicts",
            Self::Undecided => "undecided",
        }
    }
}

/// How many points of a figure agree, contradict and are undecided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// On the same side.
    pub agree: usize,
    /// On different sides.
    pub contradict: usize,
    /// The interval holds the neutral value.
    pub undecided: usize,
}

impl Tally {
    /// Of a figure's points.
    #[must_use]
    pub fn of(figure: &Figure, points: &[Point]) -> Self {
        let mut tally = Self::default();
        for verdict in points.iter().filter_map(|point| Verdict::of(point, figure.neutral)) {
            match verdict {
                Verdict::Agrees => tally.agree += 1,
                Verdict::Contradicts => tally.contradict += 1,
                Verdict::Undecided => tally.undecided += 1,
            }
        }
        tally
    }

    /// The figure's verdict: that of most points that are decided; none where no published value is a
    /// number.
    #[must_use]
    pub fn verdict(self) -> Option<Verdict> {
        match (self.agree, self.contradict, self.undecided) {
            (0, 0, 0) => None,
            (agree, contradict, _) if agree > contradict => Some(Verdict::Agrees),
            (agree, contradict, _) if agree < contradict => Some(Verdict::Contradicts),
            _ => Some(Verdict::Undecided),
        }
    }
}
