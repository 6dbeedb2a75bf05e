//! Parallel to serial work, as the paper labels programs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Parallel to serial work of a program, Morad et al., eq. 1:
/// `(k · I_parallel / n) : (k · I_serial)` for n cores.
///
/// Because parallel work is divided by n, the label is also the ratio of the
/// times that an idle machine of n cores spends in each kind of phase. One of
/// the two numbers is 1 and the other at least 1 (that is what k is for).
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ratio {
    parallel: f64,
    serial: f64,
}

/// Why a text is no ratio.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseRatioError {
    /// Not two numbers with a colon between them.
    #[error("`{0}` is no ratio: write PARALLEL:SERIAL, such as 4:1, 1:1, inf:1 or 1:inf")]
    Form(String),
    /// Zero, negative or not a number.
    #[error("`{0}` is no ratio: both numbers must be above zero (all parallel is inf:1)")]
    NotPositive(String),
    /// Both sides infinite.
    #[error("`{0}` is no ratio: only one side can be inf")]
    BothInfinite(String),
}

impl Ratio {
    /// Completely parallel, ∞:1.
    pub const PARALLEL: Self = Self { parallel: f64::INFINITY, serial: 1.0 };
    /// Completely serial, 1:∞.
    pub const SERIAL: Self = Self { parallel: 1.0, serial: f64::INFINITY };

    /// Share of its time that the program spends in parallel phases on an idle
    /// machine, 0…1.
    #[must_use]
    pub fn parallel_share(self) -> f64 {
        if self.parallel.is_infinite() {
            1.0
        } else if self.serial.is_infinite() {
            0.0
        } else {
            self.parallel / (self.parallel + self.serial)
        }
    }

    /// Serial iterations that follow this many parallel ones on n cores
    /// (Fig. 3): `parallel · ratio_S / (ratio_P · n)`. Endless for 1:∞.
    #[must_use]
    pub fn serial_after(self, parallel: f64, cores: f64) -> f64 {
        if self.parallel.is_infinite() {
            0.0
        } else {
            parallel * self.serial / (self.parallel * cores)
        }
    }
}

impl FromStr for Ratio {
    type Err = ParseRatioError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || ParseRatioError::Form(text.to_owned());
        let number = |side: &str| match side.trim() {
            "inf" | "∞" => Ok(f64::INFINITY),
            // "infinity" and "nan" parse as floats too; only digits are meant.
            digits if digits.contains(|c: char| c.is_ascii_digit()) => {
                digits.parse::<f64>().map_err(|_| form())
            }
            _ => Err(form()),
        };
        let (parallel, serial) = text.split_once(':').ok_or_else(form)?;
        let (parallel, serial) = (number(parallel)?, number(serial)?);
        if parallel <= 0.0 || serial <= 0.0 {
            return Err(ParseRatioError::NotPositive(text.to_owned()));
        }
        match (parallel.is_infinite(), serial.is_infinite()) {
            (true, true) => Err(ParseRatioError::BothInfinite(text.to_owned())),
            (true, false) => Ok(Self::PARALLEL),
            (false, true) => Ok(Self::SERIAL),
            (false, false) => {
                let least = parallel.min(serial);
                Ok(Self { parallel: parallel / least, serial: serial / least })
            }
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.parallel, self.serial)
    }
}

impl TryFrom<String> for Ratio {
    type Error = ParseRatioError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Ratio> for String {
    fn from(ratio: Ratio) -> Self {
        ratio.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_are_normalised_so_that_one_side_is_one() {
        for (text, label) in [
            ("1:1", "1:1"),
            ("8:2", "4:1"),
            ("2:8", "1:4"),
            ("0.5:0.5", "1:1"),
            (" 4 : 1 ", "4:1"),
            ("inf:1", "inf:1"),
            ("∞:7", "inf:1"),
            ("3:inf", "1:inf"),
        ] {
            assert_eq!(text.parse::<Ratio>().unwrap().to_string(), label, "{text}");
        }
    }

    #[test]
    fn what_is_no_ratio_is_refused_with_the_reason() {
        for text in ["", "1", ":", "1:", "a:b", "nan:1", "infinity:1", "1:1:1"] {
            assert!(matches!(text.parse::<Ratio>(), Err(ParseRatioError::Form(_))), "{text}");
        }
        for text in ["0:1", "1:0", "-1:1", "1:-4"] {
            assert!(matches!(text.parse::<Ratio>(), Err(ParseRatioError::NotPositive(_))));
        }
        assert!(matches!("inf:inf".parse::<Ratio>(), Err(ParseRatioError::BothInfinite(_))));
    }

    #[test]
    fn the_share_of_time_is_the_label() {
        let share = |text: &str| text.parse::<Ratio>().unwrap().parallel_share();
        assert_eq!(share("inf:1"), 1.0);
        assert_eq!(share("4:1"), 0.8);
        assert_eq!(share("1:1"), 0.5);
        assert_eq!(share("1:inf"), 0.0);
    }

    proptest! {
        #[test]
        fn labels_read_back_as_the_same_ratio(p in 0.01f64..100.0, s in 0.01f64..100.0) {
            let ratio: Ratio = format!("{p}:{s}").parse().unwrap();
            let again: Ratio = ratio.to_string().parse().unwrap();
            prop_assert!((again.parallel_share() - ratio.parallel_share()).abs() < 1e-9);
            prop_assert!(ratio.parallel >= 1.0 && ratio.serial >= 1.0);
            prop_assert!(ratio.parallel == 1.0 || ratio.serial == 1.0);
        }

        #[test]
        fn any_text_is_a_ratio_or_an_error(text in ".{0,12}") {
            let _ = text.parse::<Ratio>();
        }
    }
}
