//! From text to the parsed line.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::{
    CoreGroup, LlcGroup, MAX_NODES, MAX_PUS, NodeGroup, Numbering, PackageGroup, Synthetic,
    SyntheticError,
};
use crate::{CoreKind, CpuSet, ParseCpuSetError};

const KEYS: [&str; 12] = [
    "package",
    "node",
    "llc",
    "core",
    "smt",
    "kind",
    "capacity",
    "mhz",
    "cache",
    "memory",
    "numbering",
    "offline",
];

/// What is wrong, and where it begins.
struct Fault {
    byte: usize,
    reason: String,
}

type Parsed<T> = Result<T, Fault>;

impl FromStr for Synthetic {
    type Err = SyntheticError;

    fn from_str(text: &str) -> Result<Self, SyntheticError> {
        parse(text).map_err(|fault| SyntheticError::Syntax {
            text: text.to_owned(),
            column: text.char_indices().take_while(|(byte, _)| *byte < fault.byte).count() + 1,
            reason: fault.reason,
        })
    }
}

fn parse(text: &str) -> Parsed<Synthetic> {
    let mut machine =
        Synthetic { packages: Vec::new(), numbering: Numbering::default(), offline: CpuSet::new() };
    let mut offline = Piece { byte: 0, text: "" };
    for part in split(text, |c| c == '|') {
        let part = Part::read(part)?;
        if machine.packages.is_empty() {
            machine.numbering =
                part.choice("numbering", "adjacent", ("spread", Numbering::Spread))?;
            offline = part.items.get("offline").copied().unwrap_or(offline);
        } else {
            part.refuse(&["numbering", "offline"], "belongs to the first part")?;
        }
        machine.attach(&part)?;
        let (pus, nodes) = machine.totals();
        if pus > MAX_PUS || nodes > MAX_NODES {
            let most = format!("{MAX_PUS} hardware threads and {MAX_NODES} NUMA nodes");
            return Err(part.start.fault(format!("the machine is too large; at most {most}")));
        }
    }
    machine.offline =
        offline.text.parse().map_err(|error: ParseCpuSetError| offline.fault(error.to_string()))?;
    let (pus, _) = machine.totals();
    let beyond = machine.offline.iter().find(|pu| u64::from(pu.0) >= pus);
    match beyond {
        Some(pu) => Err(offline.fault(format!("there is no {pu} to take offline"))),
        None => Ok(machine),
    }
}

/// A piece of the text and the byte where it begins.
#[derive(Clone, Copy)]
struct Piece<'a> {
    byte: usize,
    text: &'a str,
}

impl Piece<'_> {
    fn fault(self, reason: impl Into<String>) -> Fault {
        Fault { byte: self.byte, reason: reason.into() }
    }
}

/// The pieces between separators, which must be ASCII characters.
fn split(text: &str, at: impl Fn(char) -> bool) -> impl Iterator<Item = Piece<'_>> {
    let mut byte = 0;
    text.split(at).map(move |text| {
        let piece = Piece { byte, text };
        byte += text.len() + 1;
        piece
    })
}

/// The items of one part.
struct Part<'a> {
    start: Piece<'a>,
    items: BTreeMap<&'a str, Piece<'a>>,
}

impl<'a> Part<'a> {
    fn read(part: Piece<'a>) -> Parsed<Self> {
        let mut items = BTreeMap::new();
        let nothing = || part.fault("nothing is described here; try 'core:4 smt:2'");
        let first_word = words(part).next().ok_or_else(nothing)?;
        for word in words(part) {
            let Some((key, value)) = word.text.split_once(':') else {
                return Err(word.fault(format!("'{}' is not of the form key:value", word.text)));
            };
            if !KEYS.contains(&key) {
                let keys = KEYS.join(", ");
                return Err(word.fault(format!("'{key}' is not a key; the keys are {keys}")));
            }
            let value = Piece { byte: word.byte + key.len() + 1, text: value };
            if items.insert(key, value).is_some() {
                return Err(word.fault(format!("'{key}' is given twice in one part")));
            }
        }
        Ok(Self { start: first_word, items })
    }

    fn has(&self, key: &str) -> bool {
        self.items.contains_key(key)
    }

    fn number(&self, key: &str, range: RangeInclusive<u32>) -> Parsed<Option<u32>> {
        let Some(&value) = self.items.get(key) else { return Ok(None) };
        match value.text.parse() {
            Ok(n) if range.contains(&n) => Ok(Some(n)),
            _ => Err(value.fault(format!(
                "'{}' is not a number from {} to {}",
                value.text,
                range.start(),
                range.end()
            ))),
        }
    }

    fn count(&self, level: &str) -> Parsed<u32> {
        Ok(self.number(level, 1..=u32::MAX)?.unwrap_or(1))
    }

    /// One of two words; the first is the default.
    fn choice<T: Default>(&self, key: &str, default: &str, other: (&str, T)) -> Parsed<T> {
        match self.items.get(key) {
            Some(value) if value.text == other.0 => Ok(other.1),
            Some(value) if value.text != default => {
                let (there, other) = (value.text, other.0);
                Err(value.fault(format!("'{there}' is neither '{default}' nor '{other}'")))
            }
            _ => Ok(T::default()),
        }
    }

    fn size(&self, key: &str) -> Parsed<Option<u64>> {
        let Some(&value) = self.items.get(key) else { return Ok(None) };
        read_size(value.text).map(Some).ok_or_else(|| {
            value.fault(format!("'{}' is not a size like 512K, 8M or 32G", value.text))
        })
    }

    /// Refuses keys that have no meaning in this part.
    fn refuse(&self, keys: &[&str], reason: &str) -> Parsed<()> {
        match keys.iter().find_map(|key| self.items.get(key).map(|value| (key, value))) {
            Some((key, value)) => Err(value.fault(format!("'{key}' {reason}"))),
            None => Ok(()),
        }
    }

    /// The highest level that the part names.
    fn level(&self) -> &'static str {
        ["package", "node", "llc"].into_iter().find(|level| self.has(level)).unwrap_or("core")
    }

    fn node_group(&self) -> Parsed<NodeGroup> {
        let memory_only = self.items.get("core").is_some_and(|count| count.text == "0");
        let llcs = if memory_only {
            let of_cores = ["llc", "smt", "kind", "capacity", "mhz", "cache"];
            self.refuse(&of_cores, "has no meaning for a node without cores")?;
            Vec::new()
        } else {
            vec![self.llc_group()?]
        };
        Ok(NodeGroup { count: self.count("node")?, memory_bytes: self.size("memory")?, llcs })
    }

    fn llc_group(&self) -> Parsed<LlcGroup> {
        let cores = vec![self.core_group()?];
        Ok(LlcGroup { count: self.count("llc")?, bytes: self.size("cache")?, cores })
    }

    fn core_group(&self) -> Parsed<CoreGroup> {
        let kind = self.choice("kind", "performance", ("efficiency", CoreKind::Efficiency))?;
        let (most, default) = match kind {
            CoreKind::Performance => (1024, Some(1024)),
            CoreKind::Efficiency => (1023, None),
        };
        let capacity = self
            .number("capacity", 1..=most)?
            .or(default)
            .ok_or_else(|| self.start.fault("'kind:efficiency' needs a capacity from 1 to 1023"))?;
        Ok(CoreGroup {
            count: self.count("core")?,
            smt: self.count("smt")?,
            kind,
            capacity,
            mhz: self.number("mhz", 1..=1_000_000)?,
        })
    }
}

impl Synthetic {
    /// Adds a part at its highest named level, the first one at the top.
    fn attach(&mut self, part: &Part<'_>) -> Parsed<()> {
        let Some(package) = self.packages.last_mut().filter(|_| !part.has("package")) else {
            let nodes = vec![part.node_group()?];
            self.packages.push(PackageGroup { count: part.count("package")?, nodes });
            return Ok(());
        };
        if part.level() == "node" {
            package.nodes.push(part.node_group()?);
            return Ok(());
        }
        part.refuse(&["memory"], "belongs to a part that starts a node")?;
        let Some(llcs) = package.nodes.last_mut().map(|n| &mut n.llcs).filter(|l| !l.is_empty())
        else {
            return Err(part.start.fault("the part before has no cores to join; name a 'node'"));
        };
        match llcs.last_mut() {
            Some(llc) if part.level() == "core" => {
                part.refuse(&["cache"], "belongs to a part that starts an LLC domain")?;
                llc.cores.push(part.core_group()?);
            }
            _ => llcs.push(part.llc_group()?),
        }
        Ok(())
    }

    /// Hardware threads and nodes in all.
    fn totals(&self) -> (u64, u64) {
        let times = |a: u64, b: u32| a.saturating_mul(u64::from(b));
        let (mut pus, mut nodes) = (0u64, 0u64);
        for package in &self.packages {
            for node in &package.nodes {
                let here = times(u64::from(package.count), node.count);
                nodes = nodes.saturating_add(here);
                for llc in &node.llcs {
                    for core in &llc.cores {
                        let cores = times(times(here, llc.count), core.count);
                        pus = pus.saturating_add(times(cores, core.smt));
                    }
                }
            }
        }
        (pus, nodes)
    }
}

fn words(part: Piece<'_>) -> impl Iterator<Item = Piece<'_>> {
    split(part.text, |c| c.is_ascii_whitespace())
        .filter(|word| !word.text.is_empty())
        .map(move |word| Piece { byte: part.byte + word.byte, ..word })
}

/// `32G`; a size without a unit is 0 or a mistake.
fn read_size(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let shift = match text.chars().next_back()? {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => return None,
    };
    text.get(..text.len() - 1)?.parse::<u64>().ok()?.checked_mul(1 << shift)
}
