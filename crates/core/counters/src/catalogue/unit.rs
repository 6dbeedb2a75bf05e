//! Units of derived values.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    /// Cycles of the hardware thread.
    Cycles,
    /// Retired (completed) instructions.
    Instructions,
    /// Issue or dispatch slots: width × cycles.
    Slots,
    /// Accesses to a cache.
    Accesses,
    /// Misses of a cache.
    Misses,
    /// Requests to main memory, one cache line each.
    Requests,
    /// Floating-point operations or instructions, as the formula says.
    Operations,
    /// Page, alignment or emulation faults.
    Faults,
    /// Context switches.
    Switches,
    /// Moves to another hardware thread.
    Migrations,
    /// Time.
    Nanoseconds,
}

const QUANTITIES: [(Quantity, &str); 11] = [
    (Quantity::Cycles, "cycles"),
    (Quantity::Instructions, "instructions"),
    (Quantity::Slots, "slots"),
    (Quantity::Accesses, "accesses"),
    (Quantity::Misses, "misses"),
    (Quantity::Requests, "requests"),
    (Quantity::Operations, "operations"),
    (Quantity::Faults, "faults"),
    (Quantity::Switches, "switches"),
    (Quantity::Migrations, "migrations"),
    (Quantity::Nanoseconds, "nanoseconds"),
];

/// Unit of a value, written `fraction`, `cycles` or `cycles/instructions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Unit {
    /// A share of a whole: without dimension, 1 = all.
    Fraction,
    /// A count.
    Of(Quantity),
    /// A count for each unit of another.
    Per(Quantity, Quantity),
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = QUANTITIES.iter().find(|(quantity, _)| quantity == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fraction => f.write_str("fraction"),
            Self::Of(quantity) => quantity.fmt(f),
            Self::Per(quantity, base) => write!(f, "{quantity}/{base}"),
        }
    }
}

/// A unit that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown unit '{0}'; expected fraction, a quantity or quantity/quantity, of: {names}",
    names = QUANTITIES.map(|(_, name)| name).join(", "))]
pub struct UnknownUnit(String);

impl FromStr for Unit {
    type Err = UnknownUnit;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let quantity = |name: &str| {
            let known = QUANTITIES.iter().find(|(_, known)| *known == name);
            known.map(|(quantity, _)| *quantity).ok_or_else(|| UnknownUnit(text.to_owned()))
        };
        match text.split_once('/') {
            None if text == "fraction" => Ok(Self::Fraction),
            None => quantity(text).map(Self::Of),
            Some((of, per)) => Ok(Self::Per(quantity(of)?, quantity(per)?)),
        }
    }
}

impl TryFrom<String> for Unit {
    type Error = UnknownUnit;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Unit> for String {
    fn from(unit: Unit) -> Self {
        unit.to_string()
    }
}
