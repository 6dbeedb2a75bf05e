//! What the colours of a matrix say.
//!
//! What is better than neutral is blue and what is worse orange: colour-blind readers can distinguish these.

use super::theme::Role;

/// How figures of a matrix become colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colours {
    /// Of figures of which more is better: as deep as they differ from neutral.
    MoreIsBetter,
    /// Of slowdowns, of which less is better: as deep as their logarithm differs from that of neutral, so that half
    /// the speed is as deep as twice the speed.
    Slowdowns,
}

impl Colours {
    /// How far a figure lies above neutral; no number for a slowdown that is not positive.
    pub(super) fn distance(self, value: f64, neutral: f64) -> f64 {
        match self {
            Self::MoreIsBetter => value - neutral,
            Self::Slowdowns => (value / neutral).ln(),
        }
    }

    /// The figure that lies so far above neutral.
    pub(super) fn at(self, distance: f64, neutral: f64) -> f64 {
        match self {
            Self::MoreIsBetter => neutral + distance,
            Self::Slowdowns => neutral * distance.exp(),
        }
    }

    /// How much larger than neutral the figure is that lies so far above it.
    pub(super) fn size(self, distance: f64, neutral: f64) -> f64 {
        match self {
            Self::MoreIsBetter => distance,
            Self::Slowdowns => self.at(distance, neutral) - neutral,
        }
    }

    /// The colour of figures so far above neutral.
    pub(super) fn role(self, distance: f64) -> Role {
        match (self, distance < 0.0) {
            (Self::MoreIsBetter, false) | (Self::Slowdowns, true) => Role::Above,
            (Self::MoreIsBetter, true) | (Self::Slowdowns, false) => Role::Below,
        }
    }

    /// What stands behind the figures at the lower and the upper end of the scale.
    pub(super) fn ends(self) -> [&'static str; 2] {
        match self {
            Self::MoreIsBetter => ["", ""],
            Self::Slowdowns => [" (faster)", " (slower)"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worse_is_orange() {
        let role = |colours: Colours, value| colours.role(colours.distance(value, 1.0));
        assert_eq!(role(Colours::MoreIsBetter, 0.5), Role::Below);
        assert_eq!(role(Colours::MoreIsBetter, 1.5), Role::Above);
        assert_eq!(role(Colours::Slowdowns, 0.5), Role::Above);
        assert_eq!(role(Colours::Slowdowns, 1.5), Role::Below);
    }

    #[test]
    fn half_the_speed_is_as_deep_as_twice_the_speed() {
        let of = |value| Colours::Slowdowns.distance(value, 1.0);
        assert!((of(2.0) + of(0.5)).abs() < 1e-12);
        for colours in [Colours::MoreIsBetter, Colours::Slowdowns] {
            for value in [0.25, 1.0, 3.0] {
                assert!((colours.at(colours.distance(value, 2.0), 2.0) - value).abs() < 1e-12);
            }
        }
    }
}
