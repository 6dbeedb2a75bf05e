//! From the fields of a vendor's manual to the words of `perf_event_attr`.

use serde::Serialize;

use super::CatalogueError;
use super::document::Section;

/// The unit that the kernel asks to count an event (`perf_event_attr.type`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PmuType {
    /// The core's counters, vendor encoding (`PERF_TYPE_RAW`).
    Raw,
    /// The kernel's generic hardware events (`PERF_TYPE_HARDWARE`).
    Hardware,
    /// The kernel's own counters (`PERF_TYPE_SOFTWARE`).
    Software,
    /// A PMU by name; its number stands in
    /// `/sys/bus/event_source/devices/NAME/type`.
    Device(String),
}

impl PmuType {
    /// The number for `perf_event_attr.type`, where the kernel's ABI fixes it.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        match self {
            Self::Hardware => Some(0),
            Self::Software => Some(1),
            Self::Raw => Some(4),
            Self::Device(_) => None,
        }
    }
}

/// The words of `perf_event_attr` that select an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Encoding {
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `perf_event_attr.config1`; 0 where unused.
    pub config1: u64,
}

/// Where a named field of an event goes: ranges of bits, lowest first, written
/// as the kernel writes them in `/sys/bus/event_source/devices/*/format`
/// (`config:0-7,32-35`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub(super) name: String,
    extended: bool,
    /// First bit and width.
    ranges: Vec<(u32, u32)>,
}

impl Field {
    pub(super) fn read(section: &Section<'_>, name: &str) -> Result<Self, CatalogueError> {
        let text = section.text(name)?;
        let refuse = || format!("'{text}' is no field; expected a form like config:0-7,32-35");
        Self::parse(name, &text).ok_or_else(|| section.error_in(name, refuse()))
    }

    /// Reads where a field goes; none if the text does not say, or names
    /// another word than `config` and `config1`.
    #[must_use]
    pub fn parse(name: &str, text: &str) -> Option<Self> {
        let (word, bits) = text.split_once(':')?;
        let extended = match word {
            "config" => false,
            "config1" => true,
            _ => return None,
        };
        let bit = |digits: &str| digits.parse::<u32>().ok().filter(|&bit| bit < 64);
        let range = |part: &str| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let (low, high) = (bit(low)?, bit(high)?);
            (low <= high).then(|| (low, high - low + 1))
        };
        let ranges = bits.split(',').map(range).collect::<Option<Vec<_>>>()?;
        Some(Self { name: name.to_owned(), extended, ranges })
    }

    /// Puts a value into its bits; none if it does not fit.
    #[must_use]
    pub fn place(&self, mut value: u64, encoding: &mut Encoding) -> Option<()> {
        let word = if self.extended { &mut encoding.config1 } else { &mut encoding.config };
        for &(first, width) in &self.ranges {
            let mask = u64::MAX >> (64 - width);
            *word |= (value & mask) << first;
            value = value.checked_shr(width).unwrap_or(0);
        }
        (value == 0).then_some(())
    }
}
